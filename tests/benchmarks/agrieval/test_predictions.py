"""AgriEval's result files from the command to the figures, sound and malformed."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import BenchmarkError, UsageError
from agrotools.report.predictions import as_data, compared_tables
from agrotools.scoring.predictions import ScoredFile, compare_file
from support.shown import rendered

OPTIONS = {"A": "叶绿体", "B": "线粒体", "C": "内质网", "D": " "}
CHOICE = {"id": 1, "question_type": "单选", "question": "？", "options": OPTIONS, "answer": "B"}
SEVERAL = CHOICE | {"question_type": "多选", "answer": "AC"}
OPEN = {"id": 2, "question": "？", "answer": "全池泼洒法：对病原杀灭彻底。"}


def scored(tmp_path: Path, *entries: Any) -> ScoredFile:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    return compare_file("agrieval", path)


def values(found: ScoredFile) -> dict[str, float | None]:
    published = found.published.metrics if found.published else {}
    return {name: figure.value for name, figure in {**found.corrected.metrics, **published}.items()}


def test_choices_have_the_published_accuracy_beside_ours(tmp_path: Path):
    replies = ("B", "不知道", "A和C都不对，选B", "DNA")
    found = scored(tmp_path, *(CHOICE | {"generated_answer": reply} for reply in replies), CHOICE)
    made = values(found)
    # As published: right, a lot of one in four, the first letter, one of three capitals; the last entry is left out.
    assert made["agrieval.accuracy_published"] == pytest.approx(100 * (1 + 1 / 4) / 4)
    assert found.published.metrics["agrieval.accuracy_published"].n == 4
    assert (
        found.corrected.metrics["agrieval.accuracy"],
        found.corrected.counts["without_reply"],
    ) == ((40, 5), 1)


def test_open_questions_have_rouge_and_several_replies_a_mean(tmp_path: Path):
    made = values(scored(tmp_path, OPEN | {"generated_answer": "全池泼洒法对病原杀灭彻底"}, OPEN))
    assert made["agrieval.rouge_l_published"] == 0
    assert made["agrieval.rouge_l"] == pytest.approx(100 * 0.923077 / 2, abs=1e-4)
    assert made["agrieval.rouge_l_normalised"] == 50
    found = scored(tmp_path, SEVERAL | {"response": ["AC", "A", "B", "C、A"]})
    assert found.corrected.metrics["agrieval.accuracy"] == (50, 1)
    assert "generated_answer" in found.published.left_out["agrieval.accuracy_published"]


@pytest.mark.parametrize("other", [None, True, 3, "²", "\ud800", [], [None], {}, {"a": [{}]}])
@pytest.mark.parametrize("key", [None, "question_type", "options", "answer", "generated_answer"])
@pytest.mark.parametrize(
    "entry", [CHOICE | {"generated_answer": "B"}, OPEN | {"generated_answer": OPEN["answer"]}]
)
def test_anything_in_any_place_is_named_and_never_right(
    tmp_path: Path, entry: Any, key: str | None, other: Any
):
    spoilt = entry | {key: other} if key else other
    found = scored(tmp_path, entry, spoilt)
    same = key == "question_type" and "options" not in entry
    main = "agrieval.accuracy" if "options" in entry else "agrieval.rouge_l"
    assert (
        sum(sample.parts[main].total for sample in found.corrected.samples if main in sample.parts)
        == 1 + same
    )
    assert (
        same
        or found.malformed
        or found.corrected.counts["without_reply"]
        or key in ("answer", "generated_answer")
    )
    json.dumps(as_data(found), allow_nan=False)
    assert "r.json: " in rendered(compared_tables(found, "r.json"), 100)


def test_the_command(tmp_path: Path):
    path = tmp_path / "r.json"
    path.write_text(
        json.dumps([CHOICE | {"generated_answer": "B"}, OPEN | {"generated_answer": "x"}])
    )
    shown = CliRunner().invoke(app, ["score", "--format", "agrieval", str(path)])
    assert shown.exit_code == 0, shown.output
    assert "2 samples of AgriEval, choices and open questions" in shown.stdout
    assert "errors" not in shown.stdout
    made = json.loads(
        CliRunner().invoke(app, ["score", "--format", "agrieval", str(path), "--json"]).stdout
    )
    assert made["published"]["metrics"]["agrieval.accuracy_published"] == {"value": 100, "n": 1}
    assert made["corrected"]["metrics"]["agrieval.accuracy"]["value"] == 100
    done = CliRunner().invoke(
        app, ["score", "--format", "agrieval", str(path), "--data", str(path)]
    )
    assert isinstance(done.exception, UsageError)
    for content in ({}, [{"question": "?"}]):
        path.write_text(json.dumps(content))
        with pytest.raises(BenchmarkError):
            compare_file("agrieval", path)
