"""The order of tools is unique where no other sequence of names gives the answer: cases made by hand."""

from typing import Any

import pytest

from agrotools.core import (
    ExactSlot,
    Fact,
    OpenTextSlot,
    ReferenceStep,
    ReferenceTrajectory,
    Slot,
    ToleranceSlot,
)
from agrotools_build.quality import order_faults, sequences_that_answer
from support.plain_sample import plain_sample


def _step(tool: str, truth: dict[str, Any], *uses: str, group: int | None = None) -> ReferenceStep:
    """A call whose arguments refer to ``uses``, e.g. ``0.count``."""
    refs = {
        f"a{k}": {"$ref": f"steps[{use[0]}].observation{use[1:]}", "value": 1}
        for k, use in enumerate(uses)
    }
    return ReferenceStep(tool=tool, arguments={"variables": refs}, truth=truth, group=group)


def _number(value: float, from_: str) -> ToleranceSlot:
    return ToleranceSlot.model_validate(
        {
            "name": "n",
            "label": "n",
            "value": value,
            "abs_tol": 1,
            "from": f"steps[{from_[0]}].observation{from_[1:]}",
        }
    )


def _sample(steps: list[ReferenceStep], *slots: Slot):
    return plain_sample(reference=ReferenceTrajectory(steps=tuple(steps)), answer=slots)


MARKED = _step("extract_marked_region", {"box": [1, 2, 30, 40]})
COUNTED = _step("count_objects", {"count": 7})

UNIQUE = {
    "one call": _sample([COUNTED], _number(7, "0.count")),
    "each uses the one before": _sample(
        [MARKED, _step("analyze_lesions", {"severity_pct": 12.3456}, "0.box"),
         _step("calculate", {"value": 87.6544}, "1.severity_pct")],
        _number(87.6544, "2.value"),
    ),
    "a group and what is made of it": _sample(
        [_step("count_objects", {"count": 7}, group=0), _step("count_objects", {"count": 9}, group=0),
         _step("calculate", {"value": 16}, "0.count", "1.count")],
        _number(16, "2.value"),
    ),
    "an early result is asked for as well": _sample(
        [COUNTED, _step("calculate", {"value": 350}, "0.count")], _number(7, "0.count"), _number(350, "1.value")
    ),
    "facts that only the last call states": _sample(
        [_step("diagnose_pest_disease", {"best": "disease.rust"}),
         _step("lookup_agronomy", {"texts": ["remove fallen leaves in autumn"]}, "0.best")],
        OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=("remove fallen leaves",)),)),
    ),
}  # fmt: skip


NOT_UNIQUE = {
    "independent tools may change places": (
        _sample(
            [COUNTED, _step("analyze_lesions", {"severity_pct": 12.3456}),
             _step("calculate", {"value": 0.56}, "0.count", "1.severity_pct")],
            _number(0.56, "2.value"),
        ),
        ("analyze_lesions", "count_objects", "calculate"),
    ),
    "a call that nothing uses": (
        _sample([_step("diagnose_pest_disease", {"best": "x"}), COUNTED], _number(7, "1.count")), ("count_objects",)
    ),
    "a calculation that changes nothing": (
        _sample(
            [_step("analyze_lesions", {"severity_pct": 8.0784}, group=0),
             _step("analyze_lesions", {"severity_pct": 0.0}, group=0),
             _step("calculate", {"value": 8.0784}, "0.severity_pct", "1.severity_pct")],
            _number(8.0784, "2.value"),
        ),
        ("analyze_lesions",),
    ),
    "facts that an earlier call states already": (
        _sample(
            [_step("diagnose_pest_disease", {"notes": ["rust: remove fallen leaves"]}),
             _step("lookup_agronomy", {"texts": ["remove fallen leaves"]}, "0.notes")],
            OpenTextSlot(name="advice", label="advice", facts=(Fact(phrases=("remove fallen leaves",)),)),
        ),
        ("diagnose_pest_disease",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", [*UNIQUE, *NOT_UNIQUE])
def test_an_order_is_unique_where_no_other_gives_the_answer(case):
    if case in UNIQUE:
        assert order_faults(UNIQUE[case]) == []
        assert len(sequences_that_answer(UNIQUE[case])) == 1
        return
    sample, other = NOT_UNIQUE[case]
    assert other in sequences_that_answer(sample)
    assert any(
        fault.startswith(f"{' -> '.join(other)} gives the answer") for fault in order_faults(sample)
    )


def test_a_label_told_alone_is_the_answer_and_one_beside_its_rivals_is_not():
    def larger(*colours: str):
        marks = [_step("extract_marked_region", {"color": colour}, group=0) for colour in colours]
        sizes = [
            _step("measure_fruit_size", {"n": k}, f"{k}.color", group=1)
            for k in range(len(colours))
        ]
        slot = ExactSlot.model_validate(
            {"name": "larger", "label": "larger", "value": "red", "choices": ["red", "blue"],
             "from": "'red' if steps[2].observation.n < steps[3].observation.n else 'blue'"}
        )  # fmt: skip
        return _sample([*marks, *sizes], slot)

    assert order_faults(larger("red", "blue")) == []
    (fault,) = order_faults(larger("red", "red"))
    assert fault.startswith("extract_marked_region gives the answer")


def test_equal_small_numbers_are_no_shortcut_and_long_chains_not_searched():
    steps = [_step("count_objects", {"count": 4}, group=0), _step("count_objects", {"count": 8}, group=0),
             _step("calculate", {"value": 4}, "0.count", "1.count")]  # fmt: skip
    assert order_faults(_sample(steps, _number(4, "2.value"))) == []
    steps = [_step("count_objects", {"count": 1})]
    steps += [_step("calculate", {"value": k}, f"{(k - 1) % 10}.value") for k in range(1, 14)]
    assert "too many" in order_faults(_sample(steps, _number(13, "9.value")))[-1]
