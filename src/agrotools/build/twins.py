"""Unanswerable twins of questions: the same question in the same words with something withheld that an answer needs.

``templates/unanswerable.toml`` has one table for each way of withholding::

    [no_depth]
    reason = "no_scale"
    of = ["apple_row", "boxed_apple"]     # kinds of things (``of`` of a template) whose questions it makes unanswerable
    drop = "depth"                        # files of this kind are left out
    forget = ["intrinsics"]               # facts about the files that are left out
    cut = "; the disc is [0-9.]+ cm across"    # part of the files' notes that is left out (regular expression)
    skip = ["row_larger"]                 # templates that can be answered all the same, such as comparisons
    absent_mark = true                    # the question names a mark of a colour that the picture lacks

A question is not asked if the withheld fact is in the question itself. The reference calls end where a tool fails or
lacks a value, and a question that the tools answer all the same is dropped.
"""

import re
import tomllib
import zlib
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Literal

from agrotools.build.choosing import Chosen
from agrotools.build.references import PlannedCall
from agrotools.build.templates.template import Template
from agrotools.build.templates.thing import QuestionInstance
from agrotools.core import AbstainSlot, FrozenModel, SampleFile
from agrotools.core.slot import AbstainReason
from agrotools.core.taxonomy import FileKind

LABEL = "the files do not allow an answer"
_SCALE_WORDS = re.compile(r"\{(?:\w+_)?(?:gsd_m|metres|disc|disc_cm)\}")
"""Words of a wording that give the scale."""


class Withholding(FrozenModel):
    """A way to make questions unanswerable; the fields are described in the module docstring."""

    name: str
    reason: AbstainReason
    of: tuple[str, ...]
    drop: FileKind | None = None
    forget: tuple[Literal["gsd_m", "intrinsics", "depth_unit_mm"], ...] = ()
    cut: str = ""
    absent_mark: bool = False
    skip: tuple[str, ...] = ()

    def suits(self, question: Template) -> bool:
        """Return True if questions of a template lose their answer in this way."""
        return question.of in self.of and question.template not in self.skip

    def without(self, file: SampleFile) -> SampleFile | None:
        """Return a file without the withheld facts; None if it is left out itself."""
        if file.kind == self.drop:
            return None
        note = re.sub(self.cut, "", file.note) if self.cut and file.note else file.note
        return file.model_copy(update={"note": note, **dict.fromkeys(self.forget)})


@cache
def withholdings() -> tuple[Withholding, ...]:
    """Return all ways of withholding."""
    text = files("agrotools.build.templates").joinpath("unanswerable.toml").read_text("utf-8")
    return tuple(Withholding.model_validate({"name": name, **body}) for name, body in tomllib.loads(text).items())


def unanswerable_twin(item: Chosen) -> Chosen | None:
    """Return the unanswerable twin of a chosen question; None if nothing can be withheld that its answer needs.

    Of several ways, one is taken by the question's words, so that the same question always gets the same twin.
    """
    shift = zlib.crc32(f"{item.subject.name} {item.query}".encode())
    ways = [way for way in withholdings() if way.suits(item.question)]
    for number in range(len(ways)):
        way = ways[(shift + number) % len(ways)]
        if (instance := _withheld(item, way)) is not None:
            return replace(item, instance=instance, pair=f"{item.subject.name} {item.query}")
    return None


def with_twin(item: Chosen) -> tuple[Chosen, ...]:
    """Return a question and its unanswerable twin, in an order that does not tell which is which."""
    twin = unanswerable_twin(item)
    if twin is None:
        return (item,)
    pair = (replace(item, pair=twin.pair), twin)
    return pair if zlib.crc32(twin.pair.encode()) >> 8 & 1 else pair[::-1]


def _withheld(item: Chosen, way: Withholding) -> QuestionInstance | None:
    instance = item.instance
    if any(slot.made_by_tools or slot.from_ is None for slot in instance.slots):
        return None
    slot = AbstainSlot(name="refusal", label=LABEL, reason=way.reason, asks=instance.slots)
    if way.absent_mark:
        return _with_absent_mark(instance, slot)
    if _SCALE_WORDS.search(item.wording):
        return None
    shown = tuple(file for each in instance.files if (file := way.without(each)) is not None)
    if shown == instance.files:
        return None
    names = {file.name for file in shown}
    dropped = {file.name for file in instance.files} - names
    if any(name in item.query or any(name in each.label for each in instance.slots) for name in dropped):
        return None
    calls = tuple(_without_arguments(call, dropped, way) for call in instance.calls)
    return replace(instance, files=shown, calls=calls, slots=(slot,))


def _without_arguments(call: PlannedCall, dropped: set[str], way: Withholding) -> PlannedCall:
    marker = "scale_marker" if way.cut else None
    arguments = {
        name: value
        for name, value in call.arguments.items()
        if name != marker and not (isinstance(value, str) and value in dropped)
    }
    return replace(call, arguments=arguments)


def _with_absent_mark(instance: QuestionInstance, slot: AbstainSlot) -> QuestionInstance | None:
    """Return the question about the colour ``{absent}``, in which the picture has no mark."""
    old, new = (instance.words.get(name) for name in ("one_colour", "one_absent"))
    marks = [call for call in instance.calls if "mark_color" in call.arguments]
    if not new or len(marks) != 1 or marks[0].arguments["mark_color"] != old:
        return None

    def renamed(text: str) -> str:
        return re.sub(rf"\b{old}\b", new, text)

    asks = tuple(each.model_copy(update={"label": renamed(each.label)}) for each in slot.asks)
    find = replace(marks[0], arguments={**marks[0].arguments, "mark_color": new}, thought=renamed(marks[0].thought))
    calls = tuple(find if call is marks[0] else call for call in instance.calls)
    words = {name: new if word == old else word for name, word in instance.words.items()}
    return replace(instance, calls=calls, words=words, slots=(slot.model_copy(update={"asks": asks}),))
