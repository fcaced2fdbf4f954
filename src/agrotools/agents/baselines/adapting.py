"""A plan of one sample put to use on another: other files, other sizes, the same tools and arguments.

Case-based planning (Hammond, Case-based planning: viewing planning as a memory task, 1989): the steps of a similar
solved case are carried over, and only what stands for the case itself is exchanged.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from agrotools.agents.baselines.blank import BlankSlot, blank
from agrotools.core import Arguments, ReferenceStep, Sample, SampleFile, ToolSpec
from agrotools.tools import get_tool

_METADATA = ("gsd_m", "depth_unit_mm", "fx_px", "fy_px", "cx_px", "cy_px")


@dataclass(frozen=True)
class PlannedSlot:
    """What a slot of the followed sample asked, and the expression over the steps that answered it."""

    slot: BlankSlot
    from_: str


@dataclass(frozen=True)
class Plan:
    """Steps to take (tools, and arguments with references between them), and how the answer followed from them."""

    donor: str
    """Id of the sample whose plan it is."""
    steps: tuple[ReferenceStep, ...]
    slots: tuple[PlannedSlot, ...]


def adapted_plan(donor: Sample, sample: Sample) -> Plan:
    """The reference trajectory of ``donor`` on the files of ``sample``.

    A file stands for the file of the same kind and order (the last one where there are fewer). An optional file of a
    kind that ``sample`` does not have is left out. Boxes are scaled to the size of the other image, and arguments
    that repeat what the donor's file says of itself (ground sampling distance, intrinsics) are taken from the other
    file. All other arguments are carried over. Observations and truth stay behind.
    """
    assert donor.reference is not None
    files = _counterparts(donor.files, sample.files)
    steps: list[ReferenceStep] = []
    for step in donor.reference.steps:
        spec = get_tool(step.tool).spec
        steps.append(ReferenceStep(tool=step.tool, arguments=_adapted(step.arguments, spec, donor.files, files)))
    slots = tuple(
        PlannedSlot(blank(slot), str(_renamed(slot.from_, files))) for slot in donor.answer if slot.from_ is not None
    )
    return Plan(donor.id, tuple(steps), slots)


@dataclass(frozen=True)
class _Counterpart:
    """The file that stands for one of the donor's; of the same ``kind`` or only in the same place."""

    file: SampleFile
    same_kind: bool


def _counterparts(theirs: Sequence[SampleFile], ours: Sequence[SampleFile]) -> dict[str, _Counterpart]:
    found: dict[str, _Counterpart] = {}
    for position, file in enumerate(theirs):
        of_kind = [each for each in ours if each.kind == file.kind]
        before = sum(each.kind == file.kind for each in theirs[:position])
        candidates, order = (of_kind, before) if of_kind else (ours, position)
        if candidates:
            found[file.name] = _Counterpart(candidates[min(order, len(candidates) - 1)], bool(of_kind))
    return found


def _adapted(
    arguments: Arguments, spec: ToolSpec, theirs: Sequence[SampleFile], files: Mapping[str, _Counterpart]
) -> Arguments:
    required = cast("list[str]", spec.parameters.get("required", []))
    # A file that an earlier call made is given by reference, and is none of the sample's.
    given = {name: value for name, value in arguments.items() if isinstance(value, str) and value in files}
    named = [name for name, kind in spec.agreement.items() if kind == "file" and name in given]
    of_name = {file.name: file for file in theirs}
    looked_at = cast(str, arguments[named[0]]) if named else None
    adapted: Arguments = {}
    for name, value in arguments.items():
        if name in named and name not in required and not files[cast(str, value)].same_kind:
            continue
        if looked_at is not None and spec.agreement.get(name) == "box":
            value = _scaled(value, of_name[looked_at], files[looked_at].file)
        elif looked_at is not None and value is not None and value == _says(of_name[looked_at], name):
            value = _says(files[looked_at].file, name)
            if value is None:
                continue
        adapted[name] = _renamed(value, files)
    return adapted


def _says(file: SampleFile, name: str) -> JsonValue:
    """What the file's metadata say under the name of an argument."""
    if name not in _METADATA:
        return None
    return getattr(file.intrinsics, name, None) if name.endswith("_px") else getattr(file, name)


def _scaled(box: JsonValue, theirs: SampleFile, ours: SampleFile) -> JsonValue:
    sizes = (theirs.width_px, theirs.height_px, ours.width_px, ours.height_px)
    if not isinstance(box, list) or len(box) != 4 or None in sizes or sizes[:2] == sizes[2:]:
        return box
    if not all(isinstance(side, int | float) for side in box):
        return box
    width, height, new_width, new_height = cast("tuple[int, int, int, int]", sizes)
    factors = (new_width / width, new_height / height)
    return [round(cast(float, side) * factors[index % 2]) for index, side in enumerate(box)]


def _renamed(value: JsonValue, files: Mapping[str, _Counterpart]) -> JsonValue:
    """``value`` with the names of files exchanged, also inside of texts."""
    if isinstance(value, str) and files:
        names = "|".join(re.escape(name) for name in sorted(files, key=len, reverse=True))
        return re.sub(rf"(?<![\w.-])(?:{names})(?![\w-]|\.\w)", lambda name: files[name[0]].file.name, value)
    if isinstance(value, dict):
        return {key: _renamed(item, files) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, files) for item in value]
    return value
