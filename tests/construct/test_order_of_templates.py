"""The order of tools that templates ask for is the only one that gives their answers."""

import re
from importlib import import_module
from importlib.resources import files
from typing import Any, cast

import pytest

from agrotools.construct.asking import Asked
from agrotools.construct.choosing import asked_of
from agrotools.construct.quality.order import order_faults
from agrotools.construct.sources.drawn import Drawn
from agrotools.construct.sources.drawn.catalogue import MODULES
from agrotools.construct.sources.part import Originals
from agrotools.construct.templates import Template, load_templates
from agrotools.construct.templates.exact_steps import exact_result
from agrotools.core import ReferenceStep, ReferenceTrajectory, Sample
from agrotools.core.refs import resolved_value
from support.plain_sample import plain_sample

ALL = [
    template
    for entry in sorted(files("agrotools.construct.templates").iterdir(), key=lambda entry: entry.name)
    if entry.name.endswith(".toml")
    for template in load_templates(entry.name.removesuffix(".toml"))
]


@pytest.mark.parametrize("template", ALL, ids=lambda template: template.template)
def test_every_measurement_and_every_step_has_a_use(template: Template):
    said = [slot.from_ for slot in template.slots] + [str(step.arguments) for step in template.steps]
    used = {int(number) for text in said for number in re.findall(r"@(\d+)", text)}
    assert len(used) >= template.things + len(template.steps)


def _sample(asked: Asked) -> Sample:
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
@pytest.mark.parametrize("name", MODULES)
def test_no_other_order_answers_what_is_asked_of_drawings(name: str, tmp_path):
    module = import_module(f"agrotools.construct.sources.drawn.{name}")
    subjects, originals = [], Originals(tmp_path)
    for seed in range(4):
        place = tmp_path / f"{seed}"
        place.mkdir()
        record = module.draw(seed, seed % 4, place)
        subjects += module.subjects(Drawn(name, seed, seed % 4, place, record), originals)
    templates = [template for file in module.TEMPLATES for template in load_templates(file)]

    asked = [
        (template.template, item.asked)
        for template in templates
        for subject in subjects
        if (item := asked_of(subject, template, 1)) is not None
    ]
    assert len({template for template, _ in asked}) > len(templates) / 2
    faults: dict[str, Any] = {}
    for template, one in asked:
        if found := order_faults(_sample(one)):
            faults.setdefault(template, found)
    assert faults == {}
