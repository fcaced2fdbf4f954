"""What is left to do."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import ReferenceTrajectory, Sample
from agrotools.formats.benchmark import LazySamples, facts_of, select_samples
from agrotools.loading import load_benchmark
from agrotools.runner.plan import remaining, work_items
from support.plain_sample import plain_sample


def sample(name: str, *, eligible: bool = True, reference: bool = True) -> Sample:
    return plain_sample(
        name,
        no_tool_eligible=eligible,
        reference=ReferenceTrajectory(steps=()) if reference else None,
    )


def test_each_mode_takes_the_samples_it_can():
    samples = [sample("all"), sample("raster", eligible=False), sample("no-gold", reference=False)]
    items = work_items(samples, ["end-to-end", "no-tool", "step-by-step"], 1)
    assert [(item.mode, item.sample.id) for item in items] == [
        ("no-tool", "all"),
        ("no-tool", "no-gold"),
        ("end-to-end", "all"),
        ("end-to-end", "raster"),
        ("end-to-end", "no-gold"),
        ("step-by-step", "all"),
        ("step-by-step", "raster"),
    ]


def test_a_limit_is_the_number_of_samples_in_each_mode_and_a_larger_one_adds_to_them():
    samples = [sample(f"s{n}", eligible=n % 3 == 0, reference=n % 2 == 0) for n in range(30)]
    small, large = (
        work_items(samples, ["end-to-end", "no-tool", "step-by-step"], 1, limit=limit)
        for limit in (4, 12)
    )
    assert small.sizes() == {"no-tool": 4, "end-to-end": 4, "step-by-step": 4}
    assert large.sizes() == {"no-tool": 10, "end-to-end": 12, "step-by-step": 12}
    assert set(small.keys()) < set(large.keys())
    assert sorted(small.sample_ids()) == sorted({item.sample.id for item in small})


@given(st.integers(1, 5), st.integers(1, 4), st.data())
def test_what_is_finished_and_what_remains_is_the_whole(
    count: int, epochs: int, data: st.DataObject
):
    items = work_items(
        [sample(f"s{number}") for number in range(count)], ["end-to-end", "no-tool"], epochs
    )
    assert len(items) == len({item.key for item in items}) == 2 * count * epochs
    assert [item.key for item in items] == list(items.keys())
    finished = data.draw(st.sets(st.sampled_from([item.key for item in items])))
    left = remaining(items, finished)
    assert {item.key for item in left} == {item.key for item in items} - finished
    assert [item.key for item in left] == [item.key for item in items if item.key not in finished]
    assert len(left) == len(items) - len(finished)
    assert not remaining(left, {item.key for item in left})


def test_what_failed_before_is_tried_again_last():
    items = work_items(
        [sample(name) for name in ("a", "b", "c", "d")], ["end-to-end", "no-tool"], 1
    )
    failed = {("no-tool", "a", 0), ("no-tool", "d", 0), ("end-to-end", "b", 0)}
    left = [item.key for item in remaining(items, {("end-to-end", "a", 0)}, failed)]
    fresh = [
        ("no-tool", "b", 0),
        ("no-tool", "c", 0),
        ("end-to-end", "c", 0),
        ("end-to-end", "d", 0),
    ]
    assert left == [*fresh, ("no-tool", "a", 0), ("no-tool", "d", 0), ("end-to-end", "b", 0)]


@pytest.mark.process
def test_a_plan_parses_nothing_before_its_turn(small_benchmark: Path):
    loaded, parsed = load_benchmark(small_benchmark).samples, list[int]()

    def parse(position: int) -> Sample:
        parsed.append(position)
        return loaded[position]

    samples = LazySamples(facts_of(loaded), parse)
    plan = work_items(select_samples(samples, [2, 0]), ["end-to-end"], 1)
    left = remaining(plan, {("end-to-end", samples[0].id, 0)})
    assert parsed == [0]
    assert (len(plan), len(left)) == (2, 1)
    assert [item.sample.id for item in left] == [samples[2].id]
    assert parsed == [0, 2]


def test_a_limit_keeps_twins_together():
    pairs = [(f"u{n}", f"t{n}") for n in range(20)]
    samples = [plain_sample(name, twin=twin) for pair in pairs for name, twin in (pair, pair[::-1])]
    for limit in (1, 2, 7, 12):
        chosen = {item.sample.id for item in work_items(samples, ["end-to-end"], 1, limit=limit)}
        assert 0 <= limit - len(chosen) <= 1
        assert limit == 1 or all(
            ({one, other} <= chosen) or not ({one, other} & chosen) for one, other in pairs
        )
