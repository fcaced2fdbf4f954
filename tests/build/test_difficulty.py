"""Measured difficulty of samples, and their rank by it."""

import pytest

from agrotools.build.building import measured_difficulty, with_levels
from agrotools.build.templates.thing import QuestionInstance
from agrotools.core import ExactSlot, ReferenceStep, ReferenceTrajectory, SampleFile, ToleranceSlot
from support.plain_sample import plain_sample

FILES = tuple(SampleFile(name=f"image_{k}.png", path=f"{k}.png", kind="image") for k in (1, 2, 3))


def _measured(first: float, second: float) -> dict[str, float]:
    """Difficulty of the larger of two counts, and of their sum within 3."""
    steps = tuple(
        ReferenceStep(tool="count_objects", arguments={"image": file.name}, truth={"count": count})
        for file, count in zip(FILES, (first, second), strict=False)
    )
    larger = "'one' if steps[0].observation.count > steps[1].observation.count else 'two'"
    name = "one" if first > second else "two"
    slots = (
        ExactSlot.model_validate({"name": "larger", "label": "larger", "value": name, "from": larger}),
        ToleranceSlot.model_validate({"name": "sum", "label": "sum", "value": first + second, "abs_tol": 3.0}),
    )
    return measured_difficulty(QuestionInstance(FILES, (), slots, "exact", {}), ReferenceTrajectory(steps=steps))


def test_levels_rank_samples_by_calls_unused_files_and_margin():
    assert _measured(11.0, 10.0)["margin"] == 0.05
    assert _measured(2.0, 8.0)["margin"] == pytest.approx(0.3)
    assert _measured(2.0, 8.0) | {"margin": 0} == {"calls": 2, "tools": 1, "files": 3, "unused_files": 1, "margin": 0}
    measures = [
        {"calls": 1.0, "unused_files": 0.0, "margin": 0.5},
        {"calls": 6.0, "unused_files": 2.0, "margin": 0.05},
        {"calls": 3.0, "unused_files": 0.0, "margin": 0.2},
        {"calls": 3.0, "unused_files": 0.0, "margin": 0.2},
    ]
    ranked = with_levels([plain_sample(f"s{k}", difficulty=each) for k, each in enumerate(measures)])
    assert [sample.difficulty["level"] for sample in ranked] == [0.0, 1.0, 0.5, 0.5]
    assert with_levels([]) == []
