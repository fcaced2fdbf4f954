"""Where samples stand, and Cohen's kappa against values worked out by hand."""

import pytest

from agrotools.build.review.agreement import Decision, cohens_kappa, review_status, summary_of

CONTENT = "0" * 16


def decision(sample: str, reviewer: str, verdict: str, **changes: object) -> Decision:
    fields: dict[str, object] = {"id": f"{sample} by {reviewer}".encode().hex(), "sample": sample, "content": CONTENT}
    fields |= {"reviewer": reviewer, "verdict": verdict, "reason": "because"}
    if verdict == "edit":
        fields["edits"] = {"query": "What then?"}
    return Decision.model_validate(fields | changes)


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
    same = [decision("s", "Ada", "edit"), decision("s", "Bo", "edit")]
    assert review_status(same) == "edited"
    other = [same[0], decision("s", "Bo", "edit", edits={"query": "Which one?"})]
    assert review_status(other) == "disputed"
    assert review_status([decision("s", "Ada", "accept"), decision("s", "Bo", "reject")]) == "disputed"
    assert review_status([decision("s", "Ada", "reject", reason="a"), decision("s", "Bo", "reject")]) == "rejected"
    assert review_status([]) == "undecided"


def test_a_summary_counts_what_is_decided_on_the_samples_as_they_are():
    decisions = [
        decision("s1", "Ada", "accept"),
        decision("s1", "Bo", "accept"),
        decision("s2", "Ada", "reject"),
        decision("s2", "Bo", "accept"),
        decision("s3", "Ada", "accept", content="f" * 16),
        decision("gone", "Ada", "accept"),
    ]
    summary = summary_of(dict.fromkeys(["s1", "s2", "s3"], CONTENT), decisions)
    assert summary.standings == {"undecided": 1, "accepted": 1, "rejected": 0, "edited": 0, "disputed": 1}
    assert summary.reviewers == {"Ada": {"accept": 1, "reject": 1}, "Bo": {"accept": 2}}
    assert summary.disputed == ("s2",)
    assert (summary.outdated, summary.unknown) == (1, 1)
    (pair,) = summary.agreements
    assert (pair.reviewers, pair.n, pair.agreed) == (("Ada", "Bo"), 2, 1)
    # Observed 1/2; by chance 1/2 * 1 + 1/2 * 0 = 1/2.
    assert pair.kappa == pytest.approx(0.0)
