"""Plans of a description: what two runs must differ by, for all questions and by task type."""

from pathlib import Path

import pytest

import agrotools as at
from agrotools.loading.describing import Description, describe
from agrotools.report.description import description_tables
from agrotools.scoring.statistics import MIN_CLUSTERS, planned_detectable
from support.benchmark_folders import number_sample, write_folder
from support.shown import rendered

FEW, MANY = MIN_CLUSTERS - 1, 2 * MIN_CLUSTERS
"""Places, one question each, of the two task types."""


@pytest.fixture
def described(tmp_path: Path) -> Description:
    samples = [
        number_sample(tmp_path, f"tiny-{place}", place)
        | {"task_type": "canopy_height" if place <= FEW else "plotting"}
        for place in range(1, FEW + MANY + 1)
    ]
    return describe(at.load_benchmark(write_folder(tmp_path, samples)))


def test_each_task_type_has_the_plan_that_its_questions_alone_have(described: Description):
    plan = described.by_task_type["plotting"]
    assert (plan.questions, plan.clusters) == (MANY, MANY)
    alone = planned_detectable([1.0] * MANY, correlation=0.3)
    assert plan.detectable["paired"] == pytest.approx(alone)
    assert plan.detectable["paired"] > described.detectable["paired"]


def test_a_task_type_of_too_few_places_has_no_plan(described: Description):
    plan = described.by_task_type["canopy_height"]
    assert (plan.clusters, plan.detectable) == (FEW, {})
    (row,) = [
        line
        for line in rendered(description_tables(described), 100).splitlines()
        if line.startswith("canopy height")
    ]
    assert row.split()[-2:] == [str(FEW), "—"]
