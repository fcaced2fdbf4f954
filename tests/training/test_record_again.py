"""Reference calls of a made-up sample, recorded again with the tools as they are."""

from pathlib import Path

import numpy as np
from PIL import Image
from record_again import Changes, reference_again

from agrotools.calling.execution import ToolExecutor
from agrotools.calling.services import run_now
from agrotools.core import (
    ErrorInfo,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    ToleranceSlot,
)
from support.picture_files import discs, field

GRID = [(x, y) for x in range(30, 200, 60) for y in range(30, 200, 60)]


def _sample(folder: Path) -> Sample:
    (folder / "files").mkdir()
    pixels = field(discs((200, 220), GRID, 12))
    Image.fromarray(np.asarray(pixels, np.uint8)).save(folder / "files/1.png")
    counted = Observation(result={"count": 4, "flags": ["of_an_older_version"]})
    doubled = Observation(result={"value": 8})
    steps = (
        ReferenceStep(
            tool="count_objects",
            arguments={"image": "image_1.png", "target": "plants"},
            observation=counted,
        ),
        ReferenceStep(
            tool="calculate",
            arguments={
                "expression": "2 * n",
                "variables": {"n": {"$ref": "steps[0].observation.count", "value": 4}},
            },
            observation=doubled,
        ),
    )
    return Sample(
        id="made-1",
        query="How many plants are there, times two?",
        files=(SampleFile(name="image_1.png", path="files/1.png", kind="image"),),
        family="CM",
        task_type="plant_counting",
        answer_type="exact",
        template="plants_twice",
        source="made up",
        toolset=("count_objects", "calculate"),
        reference=ReferenceTrajectory(steps=steps),
        answer=(ToleranceSlot(name="plants", label="plants times two", value=18, abs_tol=1),),
    )


def _recorded(sample: Sample, root: Path, changed: set[str]) -> tuple[ReferenceTrajectory, Changes]:
    changes = Changes()

    async def run() -> ReferenceTrajectory:
        async with ToolExecutor(workers=1) as executor:
            return await reference_again(sample, root, changed, executor, changes)

    return run_now(run()), changes


def test_changed_tools_run_again_and_what_follows_from_them(tmp_path: Path) -> None:
    sample = _sample(tmp_path)
    reference, changes = _recorded(sample, tmp_path, {"count_objects"})
    count, double = (step.observation.result for step in reference.steps if step.observation)
    assert count is not None
    assert double is not None
    assert (count["count"], double["value"]) == (len(GRID), 2 * len(GRID))
    assert changes.ran == {"count_objects": 1, "calculate": 1}
    assert changes.places["count_objects", "-of_an_older_version"] == 1
    assert any("count: 4 -> 9" in line for line in changes.values)


def test_what_did_not_change_is_kept(tmp_path: Path) -> None:
    sample = _sample(tmp_path)
    reference, changes = _recorded(sample, tmp_path, {"detect_change"})
    assert reference == sample.reference
    assert not changes.ran


def test_a_recorded_refusal_stays_where_the_back_end_is_not_here(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    unsure = Observation(error=ErrorInfo(kind="low_confidence", message="no pest stands out"))
    step = ReferenceStep(
        tool="diagnose_pest_disease",
        arguments={"image": "image_1.png", "kind": "pest"},
        observation=unsure,
    )
    sample = _sample(tmp_path).model_copy(
        update={
            "reference": ReferenceTrajectory(steps=(step,)),
            "toolset": ("diagnose_pest_disease",),
        }
    )
    reference, changes = _recorded(sample, tmp_path, {"diagnose_pest_disease"})
    assert reference.steps[0].observation == unsure
    assert [line.partition(",")[0] for line in changes.lacking] == ["made-1"]
