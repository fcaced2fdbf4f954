"""Summaries made record by record: the same numbers as from all records at once, in little memory."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import Fact, OpenTextSlot, Record, Score, Step, Trajectory
from agrotools.scoring import RunAggregator, summarise
from agrotools.scoring.open_text import MAX_OTHERS, _OtherSample, _selected_samples  # pyright: ignore[reportPrivateUsage]
from support.plain_sample import plain_sample

FAS = "agrotools.fas"


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


@given(st.lists(st.tuples(st.integers(0, 30), st.text("0123456789abcdef", min_size=6, max_size=6)), unique_by=lambda
                pair: pair[1], max_size=90))  # fmt: skip
def test_drawing_one_by_one_is_drawing_from_all(pairs):
    others = [_OtherSample(digest, cluster, []) for cluster, digest in pairs]
    selected: list[_OtherSample] = []
    for other in others:
        selected = _selected_samples([*selected, other])
    assert selected == _selected_samples(others)
    assert len(selected) == min(len(others), MAX_OTHERS)
    assert len({other.cluster for other in selected}) == min(len({other.cluster for other in others}), MAX_OTHERS)


def test_chance_is_how_often_an_answer_states_the_facts_of_others():
    slots = [
        OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=(word,)),)) for word in ("spray", "hoe", "wait")
    ]
    texts = ["spray, hoe and wait", "drain", "hoe"]
    records = [
        record(number, text=text, answer=(slot,), answer_type="open_text", cluster=f"c{number}")
        for number, (slot, text) in enumerate(zip(slots, texts, strict=True))
    ]
    expected = [1.0, 0.0, 0.5]
    chance = summarise(records).modes["end-to-end"].ots_chance
    assert chance.value == pytest.approx(sum(expected) / 3)
