"""Summaries made record by record: the same numbers as from all records at once, in little memory."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import Fact, OpenTextSlot, Record, Score, Step, Trajectory
from agrotools.scoring import RunAggregator
from support.plain_sample import plain_sample
from support.runs import summarise

FAS = "fas"


def record(number: int, epoch: int = 0, *, mode="end-to-end", text="yes", invalid=None, **fields) -> Record:
    trajectory = Trajectory(steps=(Step(turn=0, kind="answer", text=text),), termination="answered")
    return Record(
        sample=plain_sample(f"s{number}", **fields),
        mode=mode,
        epoch=epoch,
        trajectory=None if invalid else trajectory,
        invalid=invalid,
    )


def row(of: Record, value: float) -> Score:
    return Score(metric=FAS, version="1", sample_id=of.sample.id, epoch=of.epoch, value=value)


@given(
    st.lists(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=4), min_size=1, max_size=15),
    st.randoms(),
)
def test_means_and_bounds_are_those_of_the_plain_formula(samples, random):
    pairs = [
        (record(number, epoch, invalid="lost" if is_lost else None, cluster=f"c{number // 2}"), value)
        for number, epochs in enumerate(samples)
        for epoch, (value, is_lost) in enumerate(epochs)
    ]
    random.shuffle(pairs)
    tally = RunAggregator()
    for added, value in pairs:
        tally.add(added, [] if added.invalid else [row(added, value)])
    mode = tally.summary().modes["end-to-end"]
    given_: dict[str, list[float]] = defaultdict(list)
    lost_: dict[str, int] = defaultdict(int)
    for added, value in pairs:
        if added.invalid:
            lost_[added.sample.id] += 1
        else:
            given_[added.sample.id].append(value)
    means = [sum(values) / len(values) for values in given_.values()]
    assert mode.n_samples == len(samples)
    assert mode.n_clusters == len({number // 2 for number in range(len(samples))})
    assert mode.invalid.n == sum(lost_.values())
    if not means:
        assert mode.metrics == {}
        return
    metric = mode.metrics[FAS]
    assert metric.overall.value == pytest.approx(sum(means) / len(means))
    assert metric.overall.n == len(means)
    assert metric.by_family == {"SI": metric.overall}
    if mode.invalid.n:
        ids = given_.keys() | lost_.keys()
        low = sum(sum(given_[id_]) / (len(given_[id_]) + lost_[id_]) for id_ in ids) / len(ids)
        high = sum((sum(given_[id_]) + lost_[id_]) / (len(given_[id_]) + lost_[id_]) for id_ in ids) / len(ids)
        assert (metric.bounds.lower, metric.bounds.upper) == (pytest.approx(low), pytest.approx(high))
    else:
        assert metric.bounds is None


def test_samples_whose_open_text_no_judge_graded_are_counted():
    slot = OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=("hoe",)),))
    records = [record(number, text="hoe", answer=(slot,), answer_type="open_text") for number in range(3)]
    judged = row(records[0], 1.0).model_copy(update={"metric": "ots"})
    made = summarise(records, [[judged], [], []]).modes["end-to-end"]
    assert made.without_open_text == 2
    assert summarise(records).modes["end-to-end"].metrics.keys() == {"ots_floor"}
