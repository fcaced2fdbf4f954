"""Decisions of a review: their journal loses nothing, and what they come to is worked out by hand."""

import os
from pathlib import Path

import pytest

from agrotools.core import BenchmarkError, RunStoreError
from agrotools.core.texts import install_command
from agrotools_build.cli.own_farm import print_next_steps
from agrotools_build.review.agreement import (
    Decision,
    ReviewJournal,
    cohens_kappa,
    review_status,
    summary_of,
)
from support.command import run_command

CONTENT = "0" * 16


def decision(
    number: int,
    reviewer: str = "Ada",
    verdict: str = "accept",
    sample: str = "s1",
    **changes: object,
) -> Decision:
    fields = {
        "id": f"{number:08x}",
        "sample": sample,
        "content": CONTENT,
        "reviewer": reviewer,
        "verdict": verdict,
    }
    edits = {"edits": {"query": "What then?"}} if verdict == "edit" else {}
    return Decision.model_validate(fields | {"reason": "because"} | edits | changes)


def test_the_last_decision_of_each_reviewer_on_each_sample_counts(tmp_path: Path):
    journal = ReviewJournal(tmp_path / "review.jsonl")
    assert journal.append(decision(1))
    assert journal.append(decision(2, verdict="reject"))
    assert journal.append(decision(3, "Bo"))
    assert journal.append(decision(4, sample="s2"))
    found = {
        (each.reviewer, each.sample): each.verdict
        for each in ReviewJournal(journal.path).decisions()
    }
    assert found == {("Ada", "s1"): "reject", ("Bo", "s1"): "accept", ("Ada", "s2"): "accept"}
    assert len(journal.path.read_text().splitlines()) == 4
    assert not ReviewJournal(journal.path).append(decision(1)), (
        "a save that is tried again is stored once"
    )
    assert len(journal.path.read_text().splitlines()) == 4
    journal.append(decision(5, verdict="withdraw"))
    assert {(each.reviewer, each.sample) for each in journal.decisions()} == {
        ("Bo", "s1"),
        ("Ada", "s2"),
    }


@pytest.mark.parametrize("cut", [1, 30, -1])
def test_a_last_line_that_was_cut_off_is_removed_and_costs_no_other(tmp_path: Path, cut: int):
    journal = ReviewJournal(tmp_path / "review.jsonl")
    for number in (1, 2):
        journal.append(decision(number, sample=f"s{number}"))
    first, second = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(first + second[:cut])
    again = ReviewJournal(journal.path)
    assert [each.sample for each in again.decisions()] == ["s1"]
    again.append(decision(3, sample="s3"))
    assert [each.sample for each in ReviewJournal(journal.path).decisions()] == ["s1", "s3"]


def test_a_line_that_is_no_decision_is_named(tmp_path: Path):
    journal = ReviewJournal(tmp_path / "review.jsonl")
    journal.append(decision(1))
    with journal.path.open("a") as file:
        file.write('{"id": "x"}\n')
    with pytest.raises(RunStoreError, match="line 2 is not a decision"):
        ReviewJournal(journal.path)


def test_two_that_share_a_journal_see_what_the_other_stored(tmp_path: Path):
    one, other = ReviewJournal(tmp_path / "review.jsonl"), ReviewJournal(tmp_path / "review.jsonl")
    one.append(decision(1))
    other.append(decision(2, "Bo"))
    one.refresh()
    assert [each.reviewer for each in one.decisions()] == ["Ada", "Bo"]


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    journal = ReviewJournal(tmp_path / "review.jsonl")
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


def test_a_journal_that_cannot_be_written_is_told_before_anybody_decides(tmp_path: Path):
    with pytest.raises(BenchmarkError, match="cannot be written"):
        ReviewJournal(tmp_path / "none" / "review.jsonl").open_for_writing()
    (tmp_path / "review.jsonl").mkdir()
    with pytest.raises(RunStoreError, match="is not a file"):
        ReviewJournal(tmp_path / "review.jsonl")


def test_kappa_is_that_of_the_textbook_and_edits_that_differ_disagree():
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed 0.7, by chance 0.5.
    pairs = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    assert cohens_kappa(pairs) == (pytest.approx(0.4), "")
    assert cohens_kappa([("a", "b"), ("b", "a")]) == (pytest.approx(-1.0), "")
    assert cohens_kappa([("a", "a"), ("b", "b"), ("c", "c")]) == (pytest.approx(1.0), "")
    kappa, why = cohens_kappa([("accept", "accept")] * 7)
    assert kappa is None
    assert "one and the same verdict" in why
    assert cohens_kappa([]) == (None, "no sample was decided by both")
    same = [decision(1, "Ada", "edit", "s"), decision(1, "Bo", "edit", "s")]
    assert review_status(same) == "edited"
    other = [same[0], decision(1, "Bo", "edit", "s", edits={"query": "Which one?"})]
    assert review_status(other) == "disputed"
    assert (
        review_status([decision(1, "Ada", "accept", "s"), decision(1, "Bo", "reject", "s")])
        == "disputed"
    )
    assert (
        review_status(
            [decision(1, "Ada", "reject", "s", reason="a"), decision(1, "Bo", "reject", "s")]
        )
        == "rejected"
    )
    assert review_status([]) == "undecided"


def test_a_summary_counts_what_is_decided_on_the_samples_as_they_are():
    decisions = [
        decision(1, "Ada", "accept", "s1"),
        decision(1, "Bo", "accept", "s1"),
        decision(1, "Ada", "reject", "s2"),
        decision(1, "Bo", "accept", "s2"),
        decision(1, "Ada", "accept", "s3", content="f" * 16),
        decision(1, "Ada", "accept", "gone"),
    ]
    summary = summary_of(dict.fromkeys(["s1", "s2", "s3"], CONTENT), decisions)
    assert summary.standings == {
        "undecided": 1,
        "accepted": 1,
        "rejected": 0,
        "edited": 0,
        "disputed": 1,
    }
    assert summary.reviewers == {"Ada": {"accept": 1, "reject": 1}, "Bo": {"accept": 2}}
    assert summary.disputed == ("s2",)
    assert (summary.outdated, summary.unknown) == (1, 1)
    (pair,) = summary.agreements
    assert (pair.reviewers, pair.n, pair.agreed) == (("Ada", "Bo"), 2, 1)
    # Observed 1/2; by chance 1/2 * 1 + 1/2 * 0 = 1/2.
    assert pair.kappa == pytest.approx(0.0)


@pytest.mark.process
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    import agrotools_build.review as review

    monkeypatch.setattr(review, "find_spec", lambda _name: None)
    assert run_command("review", "my-farm").returncode == 2
    print_next_steps(Path("my-farm"))
    assert install_command("review") in capsys.readouterr().out
