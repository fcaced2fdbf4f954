"""Questions that reviewers rejected leave a build of ``field``, and their twins with them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "training"))

from field_parts import rejected

from agrotools.core import AbstainSlot, BooleanSlot
from support.plain_sample import plain_sample


def sample(name, query, twin=None, answerable=True):
    changes = {"query": query, "twin": twin, "may_abstain": True}
    if not answerable:
        slot = AbstainSlot(
            name="refusal",
            label="no",
            reason="wrong_subject",
            asks=(BooleanSlot(name="x", label="x", value=True),),
        )
        changes["answer"] = (slot,)
    return plain_sample(name, **changes)


@pytest.fixture
def reasons(monkeypatch):
    known = {}
    monkeypatch.setattr(rejected, "_reasons", lambda: known)
    return known


def test_a_rejected_question_goes_with_its_twin(reasons):
    asked, twin, other = (
        sample("a", "How many?", twin="b"),
        sample("b", "How many here?", twin="a", answerable=False),
        sample("c", "Which?"),
    )
    reasons[rejected.question_key(asked)] = "not clear"
    assert [each.id for each in rejected.without_rejected([asked, twin, other])] == ["c"]


def test_a_question_stays_where_only_its_twin_is_rejected(reasons):
    asked, twin = (
        sample("a", "How many?", twin="b"),
        sample("b", "How many here?", twin="a", answerable=False),
    )
    reasons[rejected.question_key(twin)] = "answerable, as two reviewers saw"
    (kept,) = rejected.without_rejected([asked, twin])
    assert (kept.id, kept.twin) == ("a", None)
