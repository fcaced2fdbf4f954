"""Scoring a run from its folder: the file that is written, whatever the records are."""

import json
import re
from pathlib import Path

import orjson
import pytest

from agrotools.core import Mode, Record, RunStoreError, Step, Trajectory, UsageError
from agrotools.formats.manifest import Manifest
from agrotools.plugin import TextComparisons
from agrotools.runner import rescore as module
from agrotools.runner.rescore import compare_runs, rescore, scored_run
from agrotools.runner.store import RunStore
from agrotools.scoring.aggregate import score_record
from agrotools.scoring.embedders import Embedder
from agrotools.scoring.gate import gate
from agrotools.scoring.lost_points import LostPoints
from agrotools.scoring.metrics import METRICS
from agrotools_benchmarks.agrieval.plugin import ReferenceTextSlot
from support.plain_sample import plain_sample
from support.runs import summarise
from support.shown import tables_text

MANIFEST = Manifest(
    agrotools="0", scoring="4", benchmark="b", benchmark_path="b", benchmark_version="1", benchmark_hash="h", model="m",
    protocol="react", max_steps=3, seed=0, toolset_hash="t", prompt_hash="p", modes=("end-to-end",), epochs=1,
    sample_ids=(),
)  # fmt: skip


def record(
    name: str, text: str, *, invalid: str | None = None, mode: Mode = "end-to-end"
) -> Record:
    done = Trajectory(steps=(Step(turn=0, kind="answer", text=text),), termination="answered")
    return Record(
        sample=plain_sample(name),
        mode=mode,
        trajectory=None if invalid else done,
        invalid=invalid,
    )


def run_of(folder: Path, records: list[Record]) -> Path:
    folder.mkdir()
    (folder / "manifest.json").write_text(MANIFEST.model_dump_json())
    (folder / "records.jsonl").write_text(
        "".join(each.model_dump_json(by_alias=True) + "\n" for each in records)
    )
    return folder


@pytest.mark.parametrize(
    "records",
    [
        [record("b", "no"), record("a", "line one\nyes\u2028"), record("c", "", invalid="503")],
        [record("a", "", invalid="503")],
    ],
)
def test_the_scores_are_one_plain_document(tmp_path: Path, records: list[Record]):
    run = run_of(tmp_path / "run", records)
    scored = rescore(run)
    ordered = sorted(records, key=lambda each: each.key)
    rows = [score_record(each) for each in ordered]
    summary = summarise(
        ordered,
        rows,
        lost=LostPoints(),
        benchmark="b",
        benchmark_version="1",
        model="m",
        protocol="react",
    )
    content = {
        "summary": summary.model_dump(mode="json"),
        "scores": [
            {"mode": "end-to-end", **each.model_dump(mode="json")} for own in rows for each in own
        ],
    }
    assert scored.summary == summary
    written = (run / "scores.json").read_bytes()
    assert orjson.loads(written) == content
    lines = [line.strip().rstrip(b",") for line in written.splitlines()]
    assert all(orjson.dumps(row) in lines for row in content["scores"]), "a row stands on a line"
    assert sorted(path.name for path in run.iterdir()) == [
        "manifest.json",
        "records.jsonl",
        "scores.json",
    ]


def test_the_telling_sample_is_the_one_that_lost_most(tmp_path: Path):
    right, wrong = plain_sample("x").answer[0], "neither"
    assert right.type == "boolean"
    text = f"{right.name}: {'yes' if right.value else 'no'}"
    run = run_of(tmp_path / "run", [record("a", text), record("c", wrong), record("b", wrong)])
    found = rescore(run).telling_sample()
    assert found is not None
    assert (found.sample, found.mode) == ("b", "end-to-end")
    lost = run_of(tmp_path / "lost", [record("a", "", invalid="503")])
    assert rescore(lost).telling_sample() is None


def test_the_telling_sample_may_be_of_one_mode(tmp_path: Path):
    records = [record("a", "neither"), record("b", "weeds: no", mode="no-tool")]
    scored = rescore(run_of(tmp_path / "run", records))
    found = {modes: scored.telling_sample(modes) for modes in ((), ("no-tool",))}
    assert [each.sample for each in found.values() if each] == ["a", "b"]
    assert scored.telling_sample(["step-by-step"]) is None


def test_a_fault_while_scoring_leaves_the_old_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = run_of(tmp_path / "run", [record("a", "yes"), record("b", "yes")])
    rescore(run)
    before = (run / "scores.json").read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "summary_of", full)
    with pytest.raises(RunStoreError, match=r"cannot write the scores.*No space left"):
        rescore(run)
    assert (run / "scores.json").read_bytes() == before
    assert sorted(path.name for path in run.iterdir()) == [
        "manifest.json",
        "records.jsonl",
        "scores.json",
    ]


def test_open_questions_are_compared_by_the_embedder_that_is_given_and_the_metric_names_it(
    tmp_path: Path,
):
    slot = ReferenceTextSlot(name="answer", label="answer", value="drain the field")
    sample = plain_sample("a", answer=(slot,))
    done = Trajectory(steps=(Step(turn=0, kind="answer", text="drain it"),), termination="answered")
    run = run_of(tmp_path / "run", [Record(sample=sample, mode="no-tool", trajectory=done)])
    plain = rescore(run).summary.modes["no-tool"].metrics
    for name, metric in (
        ("all-MiniLM-L6-v2", "similarity_minilm"),
        ("all-mpnet-base-v2", "similarity_mpnet"),
    ):
        summary = rescore(
            run, comparisons=TextComparisons(embedder=Embedder(name, lambda first, second: 0.25))
        ).summary
        metrics = summary.modes["no-tool"].metrics
        assert metrics.keys() - plain.keys() == {f"agrieval.{metric}"}
        assert metrics[f"agrieval.{metric}"].overall.value == 0.25
        assert METRICS[f"agrieval.{metric}"].label in " ".join(
            tables_text([summary], width=200).split()
        )
    with pytest.raises(UsageError, match="not compared by the embedder other"):
        rescore(
            run, comparisons=TextComparisons(embedder=Embedder("other", lambda first, second: 0.25))
        )


def test_a_run_without_records_has_no_scores(tmp_path: Path):
    run = run_of(tmp_path / "run", [])
    with pytest.raises(RunStoreError, match="contains no finished sample"):
        rescore(run)
    assert not (run / "scores.json").exists()
    assert json.loads((run / "manifest.json").read_text())["benchmark"] == "b"


def stored(folder: Path, count: int = 20) -> Path:
    """A run that was written by the store, and so has checksums."""
    records = [record(f"s{number:02}", "yes") for number in range(count)]
    with RunStore(folder, MANIFEST) as store:
        for each in records:
            store.append(each)
    return folder


def change_gold(run: Path, *ids: str) -> None:
    lines = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    for line in lines:
        if line["sample"]["id"] in ids:
            line["sample"]["answer"][0]["value"] = not line["sample"]["answer"][0]["value"]
    (run / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_right_answer_that_was_changed_in_the_records_is_noticed_by_all_who_score(
    tmp_path: Path,
):
    run, other = stored(tmp_path / "run"), stored(tmp_path / "other")
    before = rescore(run).summary
    assert before.modes["end-to-end"].headline
    assert not [line for line in before.warnings if "another question" in line]
    change_gold(run, "s03", "s07")
    says = "2 samples have another question or right answer in the records .*: s03, s07"
    part = rescore(run).summary.modes["end-to-end"]
    assert not part.headline
    assert re.search(says, part.withheld)
    with pytest.raises(UsageError, match=says):
        compare_runs([other, run])
    with pytest.raises(UsageError, match=says):
        gate(scored_run(run), scored_run(other), "end-to-end", 0.0)
    change_gold(other, "s03", "s07")
    with pytest.raises(UsageError, match=says):
        compare_runs([other, run])
    allowed = rescore(run, allow_invalid=True).summary
    assert allowed.modes["end-to-end"].headline
    assert any(re.search(says, line) for line in allowed.warnings)


def test_records_that_another_version_wrote_without_a_checksum_are_scored(tmp_path: Path):
    run = run_of(tmp_path / "run", [record("a", "yes"), record("b", "no")])
    assert rescore(run).summary.modes["end-to-end"].headline
