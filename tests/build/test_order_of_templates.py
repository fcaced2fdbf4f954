"""The order of tools that templates ask for is the only one that gives their answers."""

import re
from collections import Counter
from importlib.resources import files
from typing import Any, cast

import pytest

from agrotools.build.quality.order import order_faults
from agrotools.build.sources.drawn.drawing import SCENE_KINDS
from agrotools.build.templates import Template, load_templates
from agrotools.build.templates.template import exact_result
from agrotools.build.templates.thing import QuestionInstance
from agrotools.core import ReferenceStep, ReferenceTrajectory, Sample
from agrotools.core.record import resolved_value
from support.drawn_scenes import asked_of_drawings
from support.plain_sample import plain_sample

ALL = [
    template
    for entry in sorted(files("agrotools.build.templates").iterdir(), key=lambda entry: entry.name)
    if entry.name.endswith(".toml")
    for template in load_templates(entry.name.removesuffix(".toml"))
]


@pytest.mark.parametrize("template", ALL, ids=lambda template: template.template)
def test_every_measurement_and_every_step_has_a_use(template: Template):
    said = [slot.from_ for slot in template.slots] + [str(step.arguments) for step in template.steps]
    used = {int(number) for text in said for number in re.findall(r"@(\d+)", text)}
    assert len(used) >= template.things + len(template.steps)


def _sample(asked: QuestionInstance) -> Sample:
    truths: list[dict[str, Any] | None] = []
    steps: list[ReferenceStep] = []
    for call in asked.calls:
        if call.truth is None:
            plain = cast("dict[str, Any]", resolved_value(dict(call.arguments), truths))
            truths.append(exact_result(call.tool, plain))
        else:
            truths.append(dict(call.truth))
        steps.append(ReferenceStep(tool=call.tool, arguments=call.arguments, group=call.group, truth=truths[-1]))
    return plain_sample(reference=ReferenceTrajectory(steps=tuple(steps)), answer=asked.slots)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENE_KINDS)
def test_no_other_order_answers_what_is_asked_of_drawings(name: str):
    faults: dict[str, Any] = {}
    seen = Counter[str]()
    for item in asked_of_drawings(name):
        if not isinstance(item.question, Template) or seen[item.question.template] == 3:
            continue
        seen[item.question.template] += 1
        if found := order_faults(_sample(item.instance)):
            faults[item.question.template] = found
    assert faults == {}
