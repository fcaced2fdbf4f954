"""A sample of two dependent calls, and what runs its calls, for tests of agents."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from agrotools.agents.modes import Policy, run_end_to_end, run_no_tool, run_step_by_step
from agrotools.calling import get_tool
from agrotools.core import (
    Action,
    ErrorInfo,
    Mode,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    SampleView,
    ToleranceSlot,
    ToolCall,
    ToolError,
    ToolOutcome,
    Trajectory,
    UsageError,
)
from agrotools.core.form_item import asked_items
from agrotools.text.answer_form import answer_form


def small_sample(folder: Path) -> Sample:
    """Needs ``2*3`` and then one more; its file is drawn into ``folder``."""
    Image.new("RGB", (64, 48), (40, 120, 30)).save(folder / "field.jpg")
    steps = (
        ReferenceStep(
            tool="calculate",
            arguments={"expression": "2*3"},
            observation=Observation(result={"value": 6.0, "expression": "2*3"}),
            thought="First the rows.",
        ),
        ReferenceStep(
            tool="calculate",
            arguments={
                "expression": "rows + 1",
                "variables": {"rows": {"$ref": "steps[0].observation.value", "value": 6.0}},
            },
            observation=Observation(result={"value": 7.0, "expression": "rows + 1"}),
        ),
    )
    return Sample(
        id="small-1",
        query="How many rows are there with the one that is missing?",
        files=(SampleFile(name="image_1.jpg", path="field.jpg", kind="image", gsd_m=0.01),),
        family="CM",
        task_type="organ_counting",
        answer_type="tolerance",
        template="rows",
        source="drawn",
        toolset=("calculate",),
        reference=ReferenceTrajectory(steps=steps),
        answer=(
            ToleranceSlot.model_validate(
                {
                    "name": "rows",
                    "label": "number of rows",
                    "value": 7,
                    "from": "steps[1].observation.value",
                }
            ),
        ),
    )


def view_of(sample: Sample, folder: Path, toolset: Sequence[str] | None = None) -> SampleView:
    """What a policy may know of ``sample``."""
    return SampleView(
        id=sample.id,
        query=sample.query,
        files=tuple(
            file.model_copy(update={"path": str(folder / file.path)}) for file in sample.files
        ),
        toolset=sample.toolset if toolset is None else tuple(toolset),
        answer_form=answer_form(sample.answer),
        form=asked_items(sample.answer),
    )


async def run_tool(call: ToolCall) -> ToolOutcome:
    """Run the real tool in this process."""
    try:
        tool = get_tool(call.tool)
        result = tool(**tool.validate(call.arguments))
    except UsageError:
        return ToolOutcome(
            Observation(
                error=ErrorInfo(kind="unknown_tool", message=f"there is no tool {call.tool!r}")
            )
        )
    except ToolError as error:
        return ToolOutcome(Observation(error=error.info))
    return ToolOutcome(Observation(result=result.model_dump(mode="json")))


async def run_in_mode(
    mode: Mode, policy: Policy, sample: Sample, view: SampleView, *limits: int | None
) -> Trajectory | tuple[Action, ...]:
    """Run ``policy`` on ``sample``; ``limits`` are those of :func:`run_end_to_end`."""
    if mode == "no-tool":
        return await run_no_tool(policy, view)
    if mode == "step-by-step":
        assert sample.reference is not None
        return await run_step_by_step(policy, view, sample.reference)
    return await run_end_to_end(policy, view, run_tool, *limits)  # pyright: ignore[reportArgumentType]
