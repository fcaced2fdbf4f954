"""Entries of GTA's own data set, with their gold as the prediction."""

import json

import pytest

from agrotools.scoring.predictions import compare_file

pytestmark = pytest.mark.data


def test_the_gold_of_real_entries_has_all_points_when_corrected_and_loses_its_minus_as_published(
    field_data, tmp_path
):
    source = field_data / "gta_entries" / "real_entries_via_TRACE.json"
    if not source.is_file():
        pytest.skip(f"no entries of GTA at {source.parent}: set AGROTOOLS_TEST_DATA")
    dialogs = [entry["dialogs"][1:] for entry in json.loads(source.read_text("utf-8")).values()]
    assistant_turns = [
        [message for message in dialog if message["role"] == "assistant"] for dialog in dialogs
    ]
    files = {
        "step-by-step": {
            str(i): {"gold": gold, "prediction": gold} for i, gold in enumerate(assistant_turns)
        },
        "end-to-end": {
            str(i): {"gold": [gold], "prediction": [gold]} for i, gold in enumerate(dialogs)
        },
    }
    for mode, content in files.items():
        path = tmp_path / f"{mode}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        compared = compare_file("gta", path, data=source)
        assert compared.mode == mode
        assert {figure.value for figure in compared.corrected.metrics.values()} <= {100, None}
        answers = "gta.summ_acc" if mode == "step-by-step" else "gta.ans_acc"
        assert compared.published.metrics[answers] == (50, 2)
        assert not any(compared.errors.counts.values())
