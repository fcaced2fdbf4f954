"""A benchmark from new scenes: the same questions about other pictures."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from agrotools.core import BenchmarkError, Sample, UsageError
from agrotools.core.progress import no_progress
from agrotools.loading import load_benchmark
from agrotools.loading.pack import read_pack
from agrotools_build.sources.drawn.fresh import share_of, write_fresh
from support.sums_benchmark import write_sums

pytestmark = pytest.mark.process


def test_samples_are_replaced_by_the_same_questions_about_new_scenes(tmp_path: Path):
    whole = read_pack("embedded")
    kinds = ("fruit_counts", "leaf_lesions")
    twin = next(
        each
        for each in whole.samples
        if each.twin and each.answerable and each.id.startswith(kinds)
    )
    alone = next(each for each in whole.samples if not each.twin and each.id.startswith(kinds))
    sums = load_benchmark(write_sums(tmp_path / "sums", 1))
    part = replace(
        sums, header=whole.header, samples=[each for each in whole.samples if each in (twin, alone)]
    )
    write_fresh(part, 5, tmp_path / "fresh", progress=no_progress)
    fresh = load_benchmark(tmp_path / "fresh")
    assert fresh.version == f"{whole.header.version}-fresh-5"
    assert fresh.header.canary != whole.header.canary
    assert {each.template for each in fresh.samples} == {twin.template, alone.template}
    answerable = {each.template: each for each in fresh.samples if each.answerable}
    for old in (twin, alone):
        new = answerable[old.template]
        assert new.metadata["difficulty"] == old.metadata["difficulty"]
        assert new.metadata.get("variant") == old.metadata.get("variant")
        assert new.metadata["subject"] != old.metadata["subject"]
        assert _measuring(new) == _measuring(old)


def _measuring(sample: Sample) -> list[str]:
    """The tools of the reference calls except for those that find marks, which some of the pictures lack."""
    assert sample.reference is not None
    return [step.tool for step in sample.reference.steps if step.tool != "extract_marked_region"]


def test_fewer_samples_have_the_shares_of_all():
    samples = read_pack("embedded").samples
    some = share_of(samples, 100)
    of_all, of_some = Counter[str](), Counter[str]()
    for counts, chosen in (
        (of_all, [each for each in samples if each.answerable]),
        (of_some, some),
    ):
        for each in chosen:
            counts[each.task_type] += 2 if each.twin else 1
    assert abs(of_some.total() - 100) <= 2
    assert of_all.total() == len(samples)
    for task_type, number in of_all.items():
        assert abs(of_some[task_type] - number * 100 / len(samples)) <= 2, task_type
    asked = [each for each in samples if each.answerable]
    assert sorted(each.id for each in share_of(samples, len(samples))) == sorted(
        each.id for each in asked
    )
    with pytest.raises(UsageError, match="at most"):
        share_of(samples, len(samples) + 1)


def test_a_benchmark_without_scenes_is_refused(tmp_path: Path):
    sums = load_benchmark(write_sums(tmp_path / "sums", 3))
    with pytest.raises(BenchmarkError, match="not made of drawn scenes"):
        write_fresh(sums, 1, tmp_path / "fresh", progress=no_progress)
