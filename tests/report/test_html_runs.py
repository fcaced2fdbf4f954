"""Which records a page shows: the same ones that a plain definition of the choice picks, in little memory."""

from pathlib import Path

import pytest

from agrotools.core import Record, Sample
from agrotools.report.html.runs import value_of
from agrotools.runner.records import record_index
from support.made_runs import call, end_to_end, made_sample, predicted, right, write_run

SAMPLES = [made_sample(f"s{at}", task_type=f"task-{at % 3}") for at in range(9)]
KINDS = ("right", "half", "wrong", "invalid")


def record_of(sample: Sample, mode: str, epoch: int, kind: str) -> Record:
    """A record that scores 1, something between, 0 or nothing."""
    if kind == "invalid":
        return Record.model_validate({"sample": sample, "mode": mode, "epoch": epoch, "invalid": "timeout"})
    if mode == "step-by-step":
        second = "6 + 1" if kind == "right" else "1"
        made = predicted(sample, "2*3", second) if kind != "wrong" else predicted(sample, "1", "1", answer="rows: 1")
        return made.model_copy(update={"epoch": epoch})
    made = right(sample) if kind == "right" else end_to_end(sample, call("1"), answer="rows: 9")
    return made.model_copy(update={"mode": mode, "epoch": epoch})


def test_the_kinds_of_records_score_as_they_are_named():
    from agrotools.scoring import score_record

    def value(mode: str, kind: str) -> float | None:
        record = record_of(SAMPLES[0], mode, 0, kind)
        return value_of(record, score_record(record))

    assert [value("step-by-step", kind) for kind in KINDS] == [1, pytest.approx(2 / 3), 0, None]
    assert [value("end-to-end", kind) for kind in KINDS] == [1, 0, 0, None]


def test_records_at_places_are_the_last_finished_record_of_each_key_in_order(tmp_path: Path):
    lost = Record(sample=SAMPLES[1], mode="end-to-end", invalid="timeout")
    again = end_to_end(SAMPLES[2], call("1"), answer="rows: 9")
    folder = write_run(tmp_path / "run", [right(SAMPLES[2]), lost, right(SAMPLES[0]), again, right(SAMPLES[1]), lost])
    with (folder / "records.jsonl").open("a") as file:
        file.write("no record\n")
    shelf = record_index(folder)
    assert [record.sample.id for record in shelf] == ["s0", "s1", "s2"]
    assert list(shelf) == [right(SAMPLES[0]), right(SAMPLES[1]), again]
    assert list(shelf.at([2, 0, 2])) == [again, right(SAMPLES[0]), again]
    assert len(shelf) == 3
    assert "1 line cannot be read" in shelf.notes[0]
