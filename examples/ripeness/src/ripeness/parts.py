"""Loader, scorer, protocol and report of the benchmark; the samples are made here, as others would read them."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from agrotools import Action, Answer, Model, SampleView, Step
from agrotools.plugin import (
    AgentOptions,
    Benchmark,
    BenchmarkHeader,
    Loading,
    Message,
    Mode,
    ModeSummary,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Reporting,
    Sample,
    Scoring,
    Slot,
    SlotScore,
    ToolSpec,
    with_clusters,
)
from ripeness.slots import GradeSlot

_GRADES = {"green": 1, "pink": 3, "dark red": 5}


def load_ripeness(loading: Loading) -> Benchmark:
    """The three questions."""
    samples = [
        _sample(number, colour, grade) for number, (colour, grade) in enumerate(_GRADES.items())
    ]
    header = BenchmarkHeader(
        name="ripeness",
        version="1",
        licence="CC0-1.0",
        description="ripeness of tomatoes",
        toolset=("grade_colour",),
    )
    return Benchmark(header, Path(), with_clusters(samples), "ripeness-1")


def _sample(number: int, colour: str, grade: int) -> Sample:
    seen = Observation(result={"grade": grade})
    step = ReferenceStep(tool="grade_colour", arguments={"colour": colour}, observation=seen)
    slot = GradeSlot(
        name="grade", label="the grade of ripeness", value=grade, from_="steps[0].observation.grade"
    )
    about = {
        "family": "RR",
        "task_type": "ripeness",
        "answer_type": "exact",
        "template": "ripeness",
    }
    return Sample(
        id=f"tomato-{number}",
        query=f"A tomato is {colour}. How ripe is it?",
        files=(),
        source="ripeness",
        toolset=("grade_colour",),
        reference=ReferenceTrajectory(steps=(step,)),
        answer=(slot,),
        **about,
    )


def score_grade(slot: Slot, slots: Sequence[Slot], answer: str) -> SlotScore:
    """1 for the grade, half for the next one; the last number behind the name of the slot counts."""
    found = re.findall(rf"{slot.name}\s*:\s*(\d)", answer)
    if not found:
        return SlotScore(0.0, {"rule": "no grade"})
    distance = abs(int(found[-1]) - slot.value)
    return SlotScore({0: 1.0, 1: 0.5}.get(distance, 0.0), {"value": int(found[-1])})


SCORING = Scoring(slot_scorers={"ripeness_grade": score_grade})


class OneWordAgent:
    """Asks for one word, which is the grade."""

    def __init__(self, model: Model, mode: Mode, options: AgentOptions) -> None:
        self.model, self.mode, self.settings = model, mode, options.settings

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        messages, tools = await self.request_for(view, history)
        reply = await self.model.generate(messages, tools, self.settings)
        return Answer(text=f"grade: {reply.text.strip()}")

    async def request_for(
        self, view: SampleView, history: Sequence[Step]
    ) -> tuple[Sequence[Message], Sequence[ToolSpec]]:
        return [Message.of("user", f"Reply with one word. {view.query}")], ()


def _notes(part: ModeSummary) -> Iterator[str]:
    if "ripeness.grade" in part.metrics:
        yield f"{part.metrics['ripeness.grade'].overall.n} tomatoes graded"


REPORTING = Reporting(notes=_notes)
