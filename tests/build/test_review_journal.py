"""The journal of a review: nothing that was stored is lost, and a torn line is mended."""

import os
from pathlib import Path

import pytest

from agrotools.build.review.agreement import Decision, ReviewJournal
from agrotools.core import BenchmarkError, RunStoreError


def decision(
    number: int, reviewer: str = "Ada", verdict: str = "accept", sample: str = "s1", **changes: object
) -> Decision:
    fields = {"id": f"{number:08x}", "sample": sample, "content": "0" * 16, "reviewer": reviewer, "verdict": verdict}
    if verdict in ("reject", "edit"):
        fields["reason"] = "because"
    return Decision.model_validate(fields | changes)


def test_the_last_decision_of_each_reviewer_on_each_sample_counts(tmp_path: Path):
    journal = ReviewJournal(tmp_path / "review.jsonl", Decision)
    assert journal.append(decision(1))
    assert journal.append(decision(2, verdict="reject"))
    assert journal.append(decision(3, "Bo"))
    assert journal.append(decision(4, sample="s2"))
    found = {(each.reviewer, each.sample): each.verdict for each in ReviewJournal(journal.path, Decision).decisions()}
    assert found == {("Ada", "s1"): "reject", ("Bo", "s1"): "accept", ("Ada", "s2"): "accept"}
    assert len(journal.path.read_text().splitlines()) == 4
    journal.append(decision(5, verdict="withdraw"))
    assert {(each.reviewer, each.sample) for each in journal.decisions()} == {("Bo", "s1"), ("Ada", "s2")}


def test_a_save_that_is_tried_again_is_stored_once(tmp_path: Path):
    journal = ReviewJournal(tmp_path / "review.jsonl", Decision)
    assert journal.append(decision(1))
    assert not ReviewJournal(journal.path, Decision).append(decision(1))
    assert len(journal.path.read_bytes().splitlines()) == 1


@pytest.mark.parametrize("cut", [1, 30, -1])
def test_a_last_line_that_was_cut_off_is_removed_and_costs_no_other(tmp_path: Path, cut: int):
    journal = ReviewJournal(tmp_path / "review.jsonl", Decision)
    for number in (1, 2):
        journal.append(decision(number, sample=f"s{number}"))
    first, second = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(first + second[:cut])
    again = ReviewJournal(journal.path, Decision)
    assert [each.sample for each in again.decisions()] == ["s1"]
    again.append(decision(3, sample="s3"))
    assert [each.sample for each in ReviewJournal(journal.path, Decision).decisions()] == ["s1", "s3"]


def test_a_line_that_is_no_decision_is_named(tmp_path: Path):
    journal = ReviewJournal(tmp_path / "review.jsonl", Decision)
    journal.append(decision(1))
    with journal.path.open("a") as file:
        file.write('{"id": "x"}\n')
    with pytest.raises(RunStoreError, match="line 2 is not a decision"):
        ReviewJournal(journal.path, Decision)


def test_two_that_share_a_journal_see_what_the_other_stored(tmp_path: Path):
    one, other = ReviewJournal(tmp_path / "review.jsonl", Decision), ReviewJournal(tmp_path / "review.jsonl", Decision)
    one.append(decision(1))
    other.append(decision(2, "Bo"))
    one.refresh()
    assert [each.reviewer for each in one.decisions()] == ["Ada", "Bo"]
    journal = tmp_path / "review.jsonl"
    replaced = tmp_path / "other"
    replaced.write_bytes(journal.read_bytes().splitlines(keepends=True)[1])
    replaced.replace(journal)
    one.refresh()
    assert [each.reviewer for each in one.decisions()] == ["Bo"]


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    journal = ReviewJournal(tmp_path / "review.jsonl", Decision)
    journal.append(decision(1))
    before = journal.path.read_bytes()
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda number, content: write(number, content[:20]))
        with pytest.raises(OSError, match="No space"):
            journal.append(decision(2))
    assert len(journal.decisions()) == 1
    assert journal.append(decision(2))
    assert journal.path.read_bytes().startswith(before)
    assert len(journal.path.read_bytes().splitlines()) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "reject", "reason": " "}, "say why"), ({"verdict": "edit", "reason": "x"}, "needs some"),
        ({"reviewer": " "}, "at least 1"), ({"reviewer": "a\nb"}, "pattern"),
    ],
)  # fmt: skip
def test_a_decision_that_says_too_little_is_refused(change: dict[str, object], message: str):
    fields = decision(1).model_dump() | change
    with pytest.raises(ValueError, match=message):
        Decision.model_validate(fields)


def test_a_journal_that_cannot_be_written_is_told_before_anybody_decides(tmp_path: Path):
    with pytest.raises(BenchmarkError, match="cannot be written"):
        ReviewJournal(tmp_path / "none" / "review.jsonl", Decision).open_for_writing()
    (tmp_path / "review.jsonl").mkdir()
    with pytest.raises(RunStoreError, match="is not a file"):
        ReviewJournal(tmp_path / "review.jsonl", Decision)
