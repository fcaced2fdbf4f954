"""Values of imports that were not read: 0 in the score, open in a verdict."""

import random
from collections.abc import Iterable

import pytest

from agrotools.core import AbstainSlot, ExactSlot, Record, Step, Trajectory
from agrotools.report.comparison import comparison_data
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.comparisons import comparisons
from agrotools.scoring.gate import Gate, gate
from agrotools.scoring.lost_points import LostPoints, lost_shares
from agrotools.scoring.missing import ScoredUnit, run_limits
from support.plain_sample import plain_sample

N = 100
RUBBISH = "value: much as last year, or so they say"
VALUE = ExactSlot(name="value", label="value of the plot", value=7)


def answered(name: str, text: str, termination="answered", **changes) -> Record:
    sample = plain_sample(name, **{"answer": (VALUE,), **changes})
    trajectory = Trajectory(
        steps=(Step(turn=0, kind="answer", text=text),), termination=termination
    )
    return Record(sample=sample, mode="no-tool", trajectory=trajectory)


def run_of(texts: Iterable[str], protocol="predictions") -> RunAggregator:
    run = RunAggregator(protocol, lost=LostPoints())
    for number, text in enumerate(texts):
        record = answered(f"s{number:03}", text)
        run.add(record, score_record(record))
    return run


def texts_of(rights: Iterable[bool], wrong: str = "value: 8") -> list[str]:
    return ["value: 7" if right else wrong for right in rights]


def spoilt(texts: list[str], count: int) -> list[str]:
    """The first right values with words behind them that the reader does not know."""
    changed = [*texts]
    for at in [at for at, text in enumerate(texts) if text == "value: 7"][:count]:
        changed[at] = "value: 7 (as measured by the tool)"
    return changed


def verdict(first: RunAggregator, second: RunAggregator) -> str:
    (found,) = comparisons([first, second], ["A", "B"])
    return comparison_data(found)["verdicts"]["no-tool"]


def gated(new: RunAggregator, old: RunAggregator) -> Gate:
    return gate(new, old, "no-tool", 0.0)


RIGHTS = [number % 10 < 7 for number in range(N)]


def test_the_same_values_with_words_behind_a_few_of_them_have_no_verdict():
    plain = texts_of(RIGHTS)
    runs = run_of(plain), run_of(spoilt(plain, 5))
    assert runs[1].summary().modes["no-tool"].metrics["fas"].overall.value == 0.65
    (found,) = comparisons([*runs], ["A", "B"])
    missing = found.missing["no-tool"]
    assert (missing.samples, missing.unread, missing.asked) == ((0, 0), (0, 5), (N, N))
    assert (missing.lowest.value, missing.highest.value) == (pytest.approx(-0.05), 0)
    assert verdict(*runs).startswith("no verdict, because 5 values of B were not read")


def test_above_5_percent_of_the_values_there_is_no_verdict_however_clear_the_bounds_are():
    poor = run_of(texts_of(number % 10 == 0 for number in range(N)))
    good = texts_of([True] * N)
    assert verdict(poor, run_of(spoilt(good, 5))).startswith("B is better: 85.0 points")
    assert verdict(poor, run_of(spoilt(good, 6))).startswith("no verdict: 6 values of B were not")
    assert gated(run_of(spoilt(good, 6)), poor).fault == (
        "no verdict: 6 of 100 values of the new version were not read"
    )


def test_a_gate_fails_only_if_the_unread_values_do_not_matter():
    plain = texts_of([True] * N)
    few = gated(run_of(spoilt(plain, 5)), run_of(plain))
    assert few.bound.drop == pytest.approx(0.05)
    assert (few.passed, few.rests_on_unread, few.unread) == (True, True, (0, 5))
    worse = gated(run_of(spoilt(texts_of(RIGHTS), 5)), run_of(plain))
    assert (worse.passed, worse.fault) == (False, "")
    many = gated(run_of(spoilt(plain, 30)), run_of(plain))
    assert not many.passed


def test_a_live_run_is_scored_as_it_stands_and_the_cause_is_unread():
    plain = texts_of(RIGHTS)
    live = run_of(spoilt(plain, 20), protocol="react")
    (found,) = comparisons([run_of(plain, protocol="react"), live], ["A", "B"])
    assert not found.missing
    assert verdict(run_of(plain, protocol="react"), live).startswith("A is better: 20.0 points")
    record = answered("s", RUBBISH, termination="no_form")
    assert lost_shares(record, score_record(record)) == {"form": 1}


@pytest.mark.parametrize("protocol", ["predictions", "react"])
def test_a_model_that_turns_its_wrong_answers_into_rubbish_never_wins_a_verdict(protocol):
    chance = random.Random(5)
    shown = 0
    for _ in range(30):
        first, second = chance.uniform(0.3, 0.9), chance.uniform(0.6, 1)
        rights = [[chance.random() < share for _ in range(N)] for share in (first, second)]
        other = run_of(texts_of(rights[0]), protocol)
        honest = verdict(other, run_of(texts_of(rights[1]), protocol))
        hiding = run_of(texts_of(rights[1], RUBBISH), protocol)
        shown += honest.startswith("B is better")
        if verdict(other, hiding).startswith("B is better"):
            assert honest.startswith("B is better")
        itself = run_of(texts_of(rights[1]), protocol)
        assert not verdict(itself, hiding).startswith("B is better")
    assert 5 < shown < 30


def test_unread_answers_of_a_pair_may_be_refusals():
    twins = {
        "s": {
            "twin": "t",
            "answer": (AbstainSlot(name="abstain", label="", reason="no_data", asks=(VALUE,)),),
        },
        "t": {"twin": "s"},
    }
    limits: dict[str, tuple[float, float]] = {}
    for name, (unanswerable, answerable) in {
        "read": ("value: unknown", "value: 7"),
        "twin unread": ("value: unknown", RUBBISH),
        "both unread": (RUBBISH, RUBBISH),
    }.items():
        run = RunAggregator("predictions")
        for sample, text in (("s", unanswerable), ("t", answerable)):
            record = answered(sample, text, may_abstain=True, **twins[sample])
            run.add(record, score_record(record))
        of_run = run_limits(run, "no-tool", "fas")
        limits[name] = of_run[ScoredUnit("s")][:2]
    assert limits == {"read": (1, 1), "twin unread": (0, 1), "both unread": (-1, 1)}


def test_values_that_were_read_and_are_wrong_are_not_open():
    run = RunAggregator("predictions")
    two = (VALUE, ExactSlot(name="kind", label="kind", value="rye", choices=("rye", "oats")))
    texts = {"wrong": "value: 8\nkind: oats", "refused": "value: unknown\nkind: unknown",
             "empty": "", "one": "value: 8\nkind: barley"}  # fmt: skip
    for name, text in texts.items():
        record = answered(name, text, answer=two)
        run.add(record, score_record(record))
    limits = {unit.sample: each[:2] for unit, each in run_limits(run, "no-tool", "fas").items()}
    assert limits == {"wrong": (0, 0), "refused": (0, 0), "empty": (0, 0), "one": (0, 0.5)}
    unread = run.summary().modes["no-tool"].unread
    assert unread is not None
    assert [(each.sample, each.item, each.text) for each in unread.values] == [
        ("one", "kind", "barley")
    ]
