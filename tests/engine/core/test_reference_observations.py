"""What step-by-step shows as history."""

from agrotools.agents.modes import with_shown_observations
from agrotools.core import (
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    ToleranceSlot,
    ToolError,
)
from support.plain_sample import plain_sample

REF = "steps[0].observation.weed_pct"


def sample(observed: Observation | None) -> Sample:
    steps = (
        ReferenceStep(
            tool="measure",
            arguments={"image": "image_1.jpg"},
            observation=observed,
            truth={"weed_pct": 9.0},
        ),
        ReferenceStep(
            tool="calculate",
            arguments={"expression": "a * 2", "variables": {"a": {"$ref": REF, "value": 9.0}}},
            observation=Observation(result={"value": 16.0}),
            truth={"value": 18.0},
        ),
    )
    return plain_sample(
        answer_type="tolerance",
        toolset=("measure", "calculate"),
        reference=ReferenceTrajectory(steps=steps),
        answer=(
            ToleranceSlot(
                name="weeds", label="weeds", value=18.0, **{"from": "steps[1].observation.value"}
            ),
        ),
    )


def shown(sample: Sample) -> list[object]:
    return [
        step.observation.result if step.observation else None for step in sample.reference.steps
    ]


def literal(sample: Sample) -> object:
    return sample.reference.steps[1].arguments["variables"]["a"]["value"]  # type: ignore[index,call-overload]


def test_observations_or_truths_are_shown_with_their_literals():
    result = with_shown_observations(sample(Observation(result={"weed_pct": 8.0})))
    assert shown(result) == [{"weed_pct": 8.0}, {"value": 16.0}]
    assert literal(result) == 8.0
    failed = Observation(error=ToolError("unreadable_file", "cannot read").info)
    for observed in (Observation(result={"weed_pct": None}), Observation(result={}), failed, None):
        result = with_shown_observations(sample(observed))
        assert shown(result) == [
            {"weed_pct": 9.0},
            {"value": 18.0},
        ]  # 16.0 came from a weed_pct that is not shown
        assert literal(result) == 9.0
