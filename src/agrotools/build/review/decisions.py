"""Decisions of reviewers: one line of JSON each, appended at once; the last per reviewer and sample counts."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, FiniteFloat, StringConstraints, model_validator

from agrotools.core import FrozenModel, PlotSlot, Sample

Verdict = Literal["accept", "reject", "edit", "withdraw"]
"""``withdraw`` takes an earlier decision back: the sample is undecided again."""
CheckName = Literal["tool_order", "arguments", "executable", "plot_inputs", "open_answer"]
CHECKS: dict[CheckName, tuple[str, str]] = {
    "tool_order": ("Tool order", "the tools are called in the one order that leads to the answer"),
    "arguments": ("Arguments", "files, regions, units and constants are those that the question means"),
    "executable": ("Chain complete", "every step ran, none is missing, and the answer follows from what was observed"),
    "plot_inputs": ("Plot inputs", "the figure shows the observed values, rightly named, with their units"),
    "open_answer": ("Open answer", "what the open answer states is agronomically right"),
}
"""The five checks of the AgroTools paper (arXiv 2605.22366, section 4.1): name, and what it means that one holds."""

LONGEST_NAME = 60
"""Characters of a reviewer's name."""
_LONGEST_REASON = 2000
Reviewer = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00-\x1f]+$")
]


class SlotEdit(FrozenModel):
    """What a reviewer would change of a slot; None leaves it as it is."""

    label: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)] | None = None
    abs_tol: Annotated[FiniteFloat, Field(ge=0)] | None = None
    rel_tol: Annotated[FiniteFloat, Field(ge=0)] | None = None


class Edits(FrozenModel):
    """Proposed changes of a sample: the wording of the question, and labels and tolerances of slots by slot name."""

    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)] | None = None
    slots: dict[str, SlotEdit] = {}


class Decision(FrozenModel):
    """What one reviewer thinks of one sample. ``content`` identifies the sample as it was seen: a decision on another
    version of it does not count. ``id`` is made by the page, so that a save that is tried again is stored once."""

    id: Annotated[str, Field(pattern=r"^[0-9a-f-]{8,64}$")]
    sample: Annotated[str, Field(max_length=120)]
    content: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    reviewer: Reviewer
    verdict: Verdict
    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=_LONGEST_REASON)] = ""
    checks: dict[CheckName, Literal["holds", "fails"]] = {}
    edits: Edits | None = None
    at: str = ""
    """When it was stored, UTC, ISO 8601."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.verdict in ("reject", "edit") and not self.reason:
            raise ValueError("say why: a reason is needed")
        if (self.verdict == "edit") != (self.edits is not None):
            raise ValueError("changes belong to the verdict edit, and it needs some")
        failing = [CHECKS[name][0] for name, state in self.checks.items() if state == "fails"]
        if self.verdict == "accept" and failing:
            raise ValueError(f"a check fails ({', '.join(failing)}): reject or edit the sample, or clear the check")
        return self


def checks_of(sample: Sample) -> list[CheckName]:
    """The checks that apply to ``sample``: without a figure or an open answer there is nothing to check of them."""
    steps = sample.reference.steps if sample.reference else ()
    applies = {
        "tool_order": len(steps) > 0,
        "arguments": len(steps) > 0,
        "executable": True,
        "plot_inputs": any(step.tool == "plot" for step in steps)
        or any(isinstance(s, PlotSlot) for s in sample.answer),
        "open_answer": any(slot.type == "open_text" for slot in sample.answer),
    }
    return [name for name in CHECKS if applies[name]]


def effective_edits(sample: Sample, edits: Edits) -> Edits | None:
    """``edits`` without what changes nothing; None where nothing is left.

    Raises:
        ValueError: a slot that the sample does not have, or a tolerance of one that is no number.
    """
    slots = {slot.name: slot for slot in sample.answer}
    changed: dict[str, SlotEdit] = {}
    for name, edit in edits.slots.items():
        if name not in slots:
            raise ValueError(f"the sample has no slot {name!r}")
        given = edit.model_dump(exclude_none=True)
        if slots[name].type != "tolerance" and given.keys() & {"abs_tol", "rel_tol"}:
            raise ValueError(f"slot {name!r} has no tolerance")
        if new := {field: value for field, value in given.items() if getattr(slots[name], field) != value}:
            changed[name] = SlotEdit.model_validate(new)
    query = edits.query if edits.query != sample.query else None
    return Edits(query=query, slots=changed) if query is not None or changed else None


def edited(sample: Sample, edits: Edits) -> Sample:
    """``sample`` with ``edits`` applied, checked as a sample again.

    Raises:
        ValueError: as :func:`effective_edits`, or the result is no sample.
    """
    effective_edits(sample, edits)
    answer = [
        slot.model_copy(update=edits.slots[slot.name].model_dump(exclude_none=True))
        if slot.name in edits.slots
        else slot
        for slot in sample.answer
    ]
    changed = sample.model_copy(update={"query": edits.query or sample.query, "answer": tuple(answer)})
    return Sample.model_validate_json(changed.model_dump_json(by_alias=True))


def reason_key(reason: str) -> str:
    """Reasons that differ in case, spaces or a full stop only are one reason."""
    return re.sub(r"\s+", " ", reason).strip().rstrip(".").casefold()
