"""The released AgroTools questions: forms that they may have, and reports on what the field map does not read."""

import io
import json
from pathlib import Path

import pytest
from PIL import Image

from agrotools import evaluate
from agrotools.benchmarks.loading import load_benchmark
from agrotools.benchmarks.released.load import MAP
from agrotools.core import BenchmarkError

pyarrow = pytest.importorskip("pyarrow")


def _picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), (90, 140, 60)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "agrotools/image").mkdir(parents=True)
    (tmp_path / "agrotools/image/1.png").write_bytes(_picture())
    return tmp_path


def _in_dialogs(count: int = 2) -> dict:
    call = {
        "type": "function",
        "function": {"name": "count_objects", "arguments": {"image": "image/1.png", "target": "tree"}},
    }
    return {
        str(number): {
            "tools": [{"name": "count_objects"}, {"name": "calculate"}],
            "files": [{"type": "image", "path": "image/1.png", "sensor": "RGB"}],
            "dialogs": [
                {"role": "user", "content": f"How many trees are in part {number}?"},
                {"role": "assistant", "tool_calls": [call], "thought": "I count."},
                {"role": "tool", "name": "count_objects", "content": {"type": "text", "content": '{"count": 3}'}},
                {"role": "assistant", "content": "3"},
            ],
            "gt_answer": {"whitelist": [["3"]], "blacklist": None},
            "task": "tree_counting",
            "season": "spring",
        }
        for number in range(count)
    }


def test_the_form_of_gta_is_read_and_unknown_fields_are_reported(root):
    (root / "agrotools/data.json").write_text(json.dumps(_in_dialogs()))
    benchmark = load_benchmark("agrotools", root)
    assert [sample.task_type for sample in benchmark.samples] == ["tree_counting"] * 2
    first = benchmark.samples[0]
    assert [step.tool for step in first.reference.steps] == ["count_objects"]
    assert first.reference.steps[0].observation.result == {"count": 3}
    notes = str(benchmark.header.metadata["notes"])
    assert "season (2)" in notes
    assert "files: sensor (2)" in notes.replace("files|images|image|inputs", "files")
    assert load_benchmark("agrotools", root).content_hash == benchmark.content_hash


def test_flat_rows_of_parquet_with_pictures_inside_are_read(root):
    import pyarrow.parquet

    steps = [{"tool": "count_objects", "arguments": {"image": "a.png", "target": "tree"}, "observation": {"count": 3}}]
    rows = [
        {
            "query_id": f"q{number}",
            "question": f"How many trees are in part {number}?",
            "images": [{"bytes": _picture(), "path": "a.png"}],
            "steps": json.dumps(steps),
            "answer": json.dumps({"type": "exact", "value": 3, "name": "trees"}),
            "difficulty": 0.5,
        }
        for number in (1, 2)
    ]
    (root / "agrotools/image/1.png").unlink()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), root / "agrotools/test-00000.parquet")
    benchmark = load_benchmark("agrotools", root)
    assert [sample.id for sample in benchmark.samples] == ["q1", "q2"]
    sample = benchmark.samples[0]
    assert sample.reference.steps[0].arguments["image"] == sample.files[0].name
    assert sample.reference.steps[0].observation.result == {"count": 3}
    assert len(sample.toolset) == 14  # the rows list none: those of the steps would tell the solution
    assert "difficulty (2)" in str(benchmark.header.metadata["notes"])


def test_what_cannot_be_read_is_named_and_a_map_corrects_it(root):
    entries = [{"ask": "How many trees?", **entry} for entry in _in_dialogs().values()]
    for entry in entries:
        entry["dialogs"][0]["content"] = ""
    (root / "agrotools/data.json").write_text(json.dumps(entries))
    with pytest.raises(BenchmarkError, match="there is no question at") as caught:
        load_benchmark("agrotools", root)
    assert "--option map=FILE" in str(caught.value.hint)
    text = MAP.read_text().replace('query = "query|', 'query = "ask|query|')
    corrected = root / "agrotools/agrotools-map.toml"
    corrected.write_text(text)
    assert len(load_benchmark("agrotools", root).samples) == 2
    corrected.unlink()
    (elsewhere := Path(root / "map.toml")).write_text(text)
    assert len(load_benchmark("agrotools", root, options={"map": str(elsewhere)}).samples) == 2


def test_the_gold_scores_all_points_whatever_follows_from_the_calls(root):
    answers = [
        {"whitelist": [["3", "three"], ["trees"]], "blacklist": None},
        ["three trees", "3 trees"],
        {"type": "exact", "value": "oak", "name": "species"},
        {"type": "exact", "value": 3, "name": "trees"},  # the only one that is in the result of the call
    ]
    entries = [entry | {"gt_answer": answer} for entry, answer in zip(_in_dialogs(4).values(), answers, strict=True)]
    (root / "agrotools/data.json").write_text(json.dumps(entries))
    options = {"data_root": root, "mode": "end-to-end", "out": root / "run", "progress": io.StringIO()}
    found = evaluate("agrotools", "baseline:perfect-tools", **options).summary.modes["end-to-end"]
    assert (found.n_samples, found.n_underivable) == (4, 3)
    assert found.metrics["agrotools.fas"].overall.value == 1
