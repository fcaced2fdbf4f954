"""Shards: the same split on every machine, whole clusters, equal loads; wrong values say what is right."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agrotools as at
from agrotools.core import ReferenceTrajectory, Sample, UsageError
from agrotools.core.record import ReferenceStep
from agrotools.runner.estimate import expected_requests
from agrotools.runner.plan import work_items
from agrotools.runner.shards import shard_text, split
from support.plain_sample import plain_sample
from support.text_benchmark import write_text_benchmark


def sample(number: int, cluster: int, calls: int) -> Sample:
    steps = tuple(ReferenceStep(tool="calculate", arguments={}) for _ in range(calls))
    return plain_sample(
        f"s{number}", cluster=f"c{cluster}", reference=ReferenceTrajectory(steps=steps)
    )


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), min_size=1, max_size=40),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_shards_are_parts_of_whole_clusters_the_same_everywhere_and_about_equal(
    rows, count, random
):
    samples = [sample(number, *row) for number, row in enumerate(rows)]
    clusters = {each.cluster for each in samples}
    count = min(count, len(clusters))
    shards = split(work_items(samples, ["end-to-end"], 2), count)
    named = [{samples[at].id for at in shard} for shard in shards]
    assert sorted(name for shard in named for name in shard) == sorted(each.id for each in samples)
    assert all(named)
    homes = [{samples[at].cluster for at in shard} for shard in shards]
    assert sum(map(len, homes)) == len(clusters)

    mixed = random.sample(samples, len(samples))
    elsewhere = split(work_items(mixed, ["end-to-end"], 1), count)
    assert [{mixed[at].id for at in shard} for shard in elsewhere] == named

    cost = dict.fromkeys(clusters, 0)
    for each in samples:
        cost[each.cluster] += expected_requests(each, "end-to-end")
    loads = [sum(cost[name] for name in home) for home in homes]
    assert max(loads) - min(loads) <= max(cost.values())


@pytest.mark.parametrize(
    ("given_shard", "text"), [("3/16", "3/16"), (" 03 / 16", "3/16"), ((1, 1), "1/1")]
)
def test_a_shard_is_given_as_text_or_numbers(given_shard: object, text: str):
    assert shard_text(given_shard) == text


@pytest.mark.parametrize(
    "wrong", ["0/3", "4/3", "0/0", "x", "3", "-1/3", "1/2/3", "1.5/3", (1,), (0, 3), ("a", "b"), 7]
)
def test_a_wrong_shard_is_a_usage_error_with_a_hint(wrong: object, tmp_path: Path):
    folder = write_text_benchmark(tmp_path / "farm", 3)
    with pytest.raises(UsageError, match="shard") as failed:
        at.evaluate(folder, "baseline:echo", shard=wrong, out=tmp_path / "run")  # pyright: ignore[reportArgumentType]
    assert failed.value.hint
    assert "/" in failed.value.hint
    assert not (tmp_path / "run").exists()


def test_more_shards_than_clusters_are_refused_by_every_machine(tmp_path: Path):
    folder = write_text_benchmark(tmp_path / "farm", 3)
    for number in (1, 4):
        with pytest.raises(UsageError, match="4 shards of 3 clusters"):
            at.evaluate(folder, "baseline:echo", shard=(number, 4), out=tmp_path / "run")


def test_a_shard_has_a_folder_of_its_own_is_resumed_and_never_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    write_text_benchmark(tmp_path / "farm", 8)
    first, second = (
        at.evaluate("farm", "baseline:echo", shard=(number, 2), limit=6) for number in (1, 2)
    )
    assert {each.path.name[-13:] for each in (first, second)} == {"-shard-1-of-2", "-shard-2-of-2"}
    assert first.path.name[:-13] == second.path.name[:-13]
    assert {record.key for record in first.samples()}.isdisjoint(
        record.key for record in second.samples()
    )
    assert len(first) + len(second) == 12
    assert sum(first.manifest.planned.values()) == len(first)

    lines = (first.path / "records.jsonl").read_bytes().splitlines(keepends=True)
    (first.path / "records.jsonl").write_bytes(b"".join(lines[:2]))
    again = at.evaluate("farm", "baseline:echo", shard=(1, 2), limit=6, epochs=2)
    assert again.path == first.path
    assert len(again) == 2 * len(lines)
    assert again.manifest.sample_ids == first.manifest.sample_ids

    other = at.evaluate("farm", "baseline:echo", shard=(1, 2), limit=4)
    assert other.path != first.path, "a smaller run is split in another way"
    for another in (
        {"shard": (2, 2)},
        {"shard": (1, 3)},
        {"shard": (1, 2), "limit": None},
        {"shard": None},
    ):
        with pytest.raises(at.AgrotoolsError, match="shard: 1/2 of"):
            at.evaluate("farm", "baseline:echo", **{"limit": 6, **another}, out=first.path)
