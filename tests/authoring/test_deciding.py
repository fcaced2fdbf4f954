"""Calls whose result decides: a number that is asked for does, a look-up that no answer uses does not."""

import pytest

from agrotools.core import (
    BooleanSlot,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    ToleranceSlot,
)
from agrotools_build.deciding import count_deciding, tried_calls

_TREES = (10, 24, 55, 90)


def _ref(step, path):
    return {"$ref": f"steps[{step}].observation.{path}"}


def _step(tool, arguments, truth):
    return ReferenceStep(
        tool=tool, arguments=arguments, observation=Observation(result=truth), truth=truth
    )


def _orchard(number, trees, slots, *, glued=False):
    """A question on how much water the trees of a picture need, perhaps with a look-up that no answer uses."""
    water = {"expression": "trees * 20", "variables": {"trees": _ref(1, "count")}}
    steps = [
        _step("extract_marked_region", {"image": "image_1.jpg"}, {"crop_box": [number, 0, 9, 9]}),
        _step("count_objects", {"region": _ref(0, "crop_box")}, {"count": trees}),
        _step("calculate", water, {"value": 20.0 * trees}),
    ]
    if glued:
        steps.append(_step("lookup_agronomy", {"query": "scab"}, {"text": f"entry {number}"}))
    return Sample(
        id=f"trees-{number}",
        query="How many litres do the trees inside the box need?",
        files=(),
        family="CM",
        task_type="tree_counting",
        answer_type="tolerance",
        template="water",
        source="made",
        toolset=("calculate",),
        reference=ReferenceTrajectory(steps=tuple(steps)),
        answer=slots(trees),
    )


def _litres(trees):
    value = "steps[2].observation.value"
    return (
        ToleranceSlot(
            name="litres", label="litres", value=20.0 * trees, rel_tol=0.1, **{"from": value}
        ),
    )


def _needs_tank(trees):
    value = "steps[2].observation.value > 100000"
    return (BooleanSlot(name="tank", label="tank", value=False, **{"from": value}),)


def _samples(slots, **more):
    return [_orchard(number, trees, slots, **more) for number, trees in enumerate(_TREES)]


def test_a_chain_that_ends_in_the_answer_decides_and_a_look_up_beside_it_does_not():
    plain, glued = (count_deciding(_samples(_litres, glued=glued)) for glued in (False, True))
    assert (plain.calls, plain.deciding) == (12, 12)
    assert plain.tools_per_question == plain.calls_per_question == {"3": 4}
    assert (glued.calls, glued.deciding) == (16, 12)
    assert glued.tools_per_question == plain.tools_per_question
    shares = {call.tool: call.share for call in tried_calls(_samples(_litres, glued=True))}
    assert shares["lookup_agronomy"] == 0


def test_a_result_that_leads_to_the_same_answer_whatever_it_is_does_not_decide():
    shares = {call.tool: call.share for call in tried_calls(_samples(_needs_tank))}
    assert (shares["count_objects"], shares["calculate"]) == (0, 0)


def test_a_result_within_the_tolerance_does_not_decide():
    samples = [_orchard(number, trees, _litres) for number, trees in enumerate((100, 101))]
    assert {call.share for call in tried_calls(samples) if call.tool == "calculate"} == {0}


@pytest.mark.parametrize("without", ["truth", "another question"])
def test_calls_without_true_results_or_without_another_result_are_not_counted(without):
    (sample,) = _samples(_litres)[:1]
    if without == "truth":
        steps = tuple(step.model_copy(update={"truth": None}) for step in sample.reference.steps)
        reference = sample.reference.model_copy(update={"steps": steps})
        assert count_deciding([sample.model_copy(update={"reference": reference})]) is None
    else:
        alone = count_deciding([sample])
        assert (alone.questions, alone.calls, alone.calls_per_question) == (1, 0, {"0": 1})
