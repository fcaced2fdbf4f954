"""Unanswerable twins of questions: the same question in the same words with something withheld that an answer needs.

``templates/rules/unanswerable.toml`` has one table for each way of withholding::

    [no_depth]
    reason = "no_scale"
    of = ["apple_row", "boxed_apple"]     # kinds of things (``of`` of a template) whose questions it makes unanswerable
    blank = "depth"                       # a file of this kind that all values need holds nothing
    missing = true                        # one of several pictures that all values need is left out
    forget = ["intrinsics"]               # facts about the files that are left out
    instead = "bare"                      # pictures of this kind take the place of others (``instead`` of a subject)
    sought = true                         # only of the picture that is the answer, so that no picture is
    shows = "'blurred' in @0.flags"       # expression that is true if the results show that there is no answer
    too_close = true                      # other things of the subject, whose values differ by less than their error
    skip = ["row_larger"]                 # templates that can be answered all the same, such as comparisons
    absent_mark = true                    # the question names a mark of a colour that the picture lacks
    seen = true                           # whoever looks sees the reason, even if the tools do not

A question is not asked if the withheld fact is in the question itself. The reference calls end where a tool fails or
lacks a value. A question that the tools answer all the same is dropped, unless people see the reason and their word
counts, as in ``field``.
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from agrotools.core import (
    AbstainSlot,
    BooleanSlot,
    ChoiceSetSlot,
    FileSlot,
    FrozenModel,
    SampleFile,
    Slot,
)
from agrotools.core.files import read_table
from agrotools.core.slot import AbstainReason
from agrotools.core.taxonomy import FileKind
from agrotools_build.choosing import Chosen, ask_subject
from agrotools_build.references import steps_in, steps_used
from agrotools_build.templates.template import Template
from agrotools_build.templates.thing import (
    QuestionInstance,
    Subject,
    filled,
    references_written_out,
)

ELSEWHERE = "elsewhere"
"""Kind of ``instead`` that depends on the places that a question points at (``elsewhere`` of a subject)."""
LABEL = "the files do not allow an answer"
T = TypeVar("T")
_SCALE_WORDS = re.compile(r"\{(?:\w+_)?(?:gsd_m|metres|disc|disc_cm)\}")
"""Words of a wording that give the scale."""


class Withholding(FrozenModel):
    """A way to make questions unanswerable; the fields are described in the module docstring."""

    name: str
    reason: AbstainReason
    of: tuple[str, ...] = ()
    """Kinds of things; empty for all."""
    blank: FileKind | None = None
    missing: bool = False
    forget: tuple[Literal["gsd_m", "intrinsics", "depth_unit_mm"], ...] = ()
    instead: str = ""
    sought: bool = False
    shows: str = ""
    too_close: bool = False
    absent_mark: bool = False
    seen: bool = False
    skip: tuple[str, ...] = ()

    def suits(self, question: Template) -> bool:
        return (not self.of or question.of in self.of) and question.template not in self.skip

    @property
    def must_be_looked_at(self) -> bool:
        """True if only a look at what a file shows tells the reason: no file is missing or empty, no fact left out."""
        return not (self.blank or self.missing or self.forget)

    @property
    def rank(self) -> int:
        """Place among the ways: empty files, and last of all blank pictures and missing files, which suit most."""
        if self.missing or self.blank == "image":
            return 2
        return 1 if self.blank else 0

    def others(self, item: Chosen) -> Mapping[str, SampleFile]:
        """Return the files that take the place of those of a question, by their stored paths."""
        if self.instead == ELSEWHERE and item.subject.elsewhere is not None:
            return item.subject.elsewhere(item.instance.calls)
        return item.subject.instead.get(self.instead, {})

    def without(
        self, file: SampleFile, others: Mapping[str, SampleFile], answer: Slot | None
    ) -> SampleFile:
        """Return a file without the withheld facts, or the one of ``others`` in its place."""
        stays = self.sought and file.name != getattr(answer, "value", None)
        shown = file if stays else others.get(file.path, file)
        return shown.model_copy(update={"name": file.name, **dict.fromkeys(self.forget)})


@cache
def withholdings() -> tuple[Withholding, ...]:
    """Return all ways of withholding."""
    table = read_table(Path(__file__).with_name("templates") / "rules" / "unanswerable.toml")
    return tuple(Withholding.model_validate({"name": name, **body}) for name, body in table.items())


def unanswerable_twin(
    item: Chosen, subjects: Sequence[Subject] = (), *, looked_at: bool = False
) -> Chosen | None:
    """Return the unanswerable twin of a chosen question; None if nothing can be withheld that its answer needs.

    ``subjects``: others that the same question may be asked about, if a difference there is within its error.
    ``looked_at``: only in ways that must be looked at.

    Of several ways, one is taken by the question's words, so that the same question always gets the same twin. Missing
    and empty files, which suit most questions, come after all other ways.
    """
    pair = f"{item.subject.name} {item.query}"
    shift = zlib.crc32(pair.encode())
    suitable = [way for way in withholdings() if way.suits(item.question)]
    if looked_at:
        suitable = [way for way in suitable if way.must_be_looked_at]
    for way in sorted(_turned(suitable, shift), key=lambda way: way.rank):
        if (instance := _withheld(item, way, shift, subjects)) is not None:
            told = replace(instance, reason_is_seen=way.seen, has_empty_file=way.blank is not None)
            return replace(item, instance=told, pair=pair)
    return None


def _turned(members: list[T], shift: int) -> list[T]:
    """Return the members from a place that ``shift`` decides on, followed by those before it."""
    start = shift % max(1, len(members))
    return members[start:] + members[:start]


def with_twin(item: Chosen) -> tuple[Chosen, ...]:
    """Return a question and its unanswerable twin, in an order that does not tell which is which."""
    twin = unanswerable_twin(item)
    return (item,) if twin is None else paired(item, twin)


def paired(item: Chosen, twin: Chosen) -> tuple[Chosen, Chosen]:
    """Return both in an order that does not tell which is which."""
    asked = replace(item, pair=twin.pair)
    return (asked, twin) if zlib.crc32(twin.pair.encode()) >> 8 & 1 else (twin, asked)


def _withheld(
    item: Chosen, way: Withholding, shift: int, subjects: Sequence[Subject]
) -> QuestionInstance | None:
    instance = item.instance
    if any(slot.made_by_tools or slot.free_text or slot.from_ is None for slot in instance.slots):
        return None  # A text may be known without the files.
    slot = AbstainSlot(name="refusal", label=LABEL, reason=way.reason, asks=instance.slots)
    if way.absent_mark:
        return _with_absent_mark(instance, slot)
    if way.missing or way.blank:
        return _with_lost_file(item, way, slot, shift)
    if way.too_close:
        return _with_close_values(item, slot, shift, subjects)
    if way.forget and _SCALE_WORDS.search(item.wording):
        return None
    answer = next((each for each in instance.slots if isinstance(each, FileSlot)), None)
    if way.sought and answer is None:
        return None
    others = way.others(item)
    shown = tuple(way.without(each, others, answer) for each in instance.files)
    if shown == instance.files:
        return None
    shows = (
        f"({answer.from_}) == ''"
        if way.sought and answer
        else references_written_out(filled(way.shows, instance.words)) or None
    )
    return replace(instance, files=shown, slots=(slot.model_copy(update={"from_": shows}),))


def _with_lost_file(
    item: Chosen, way: Withholding, slot: AbstainSlot, shift: int
) -> QuestionInstance | None:
    """Return the question with one file, which the values of all slots need, left out or in its place a blank one.

    Of pictures of two dates, it is the later one, which alone may tell much of what has happened. A picture beside a
    height model (``chm``) is not blank, since its trees can be counted there.
    """
    instance, blank = item.instance, item.subject.blank
    alike = [file for file in instance.files if file.kind == (way.blank or "image")]
    modelled = way.blank == "image" and any("chm" in call.arguments for call in instance.calls)
    if modelled or (blank is None) is not way.missing or (way.missing and len(alike) < 2):
        return None
    for file in _turned([file for file in alike if not file.name.startswith("before")], shift):
        lost: set[int] = set()
        for index, call in enumerate(instance.calls):
            if file.name in call.arguments.values() or steps_used(call.arguments) & lost:
                lost.add(index)
        if all(_needs(each, lost) for each in instance.slots):
            place = () if blank is None else (blank(file),)
            if None in place:
                continue
            files = tuple(
                shown for each in instance.files for shown in (place if each is file else (each,))
            )
            return replace(instance, files=files, slots=(slot,))
    return None


def _with_close_values(
    item: Chosen, slot: AbstainSlot, shift: int, subjects: Sequence[Subject]
) -> QuestionInstance | None:
    """Return the question about other things of the subject or of one like it, whose values differ too little."""
    question = item.question
    if not question.too_close:
        return None
    among = question.model_copy(update={"clear": question.too_close})
    series = item.subject.name.rpartition("-")[0]
    alike = [
        each
        for each in subjects
        if each.name.rpartition("-")[0] == series and each is not item.subject
    ]
    tried = (ask_subject(each, among, shift) for each in (item.subject, *_turned(alike, shift)))
    close = next(
        (each for each in tried if each and each.instance.query(item.wording) == item.query), None
    )
    if close is None:
        return None
    shows = references_written_out(filled(question.within_error, close.instance.words))
    return replace(
        close.instance, slots=(slot.model_copy(update={"asks": close.slots, "from_": shows}),)
    )


def _needs(slot: Slot, lost: set[int]) -> bool:
    """Return True if the value of a slot needs the result of one of the ``lost`` steps."""
    used = steps_in(str(slot.from_))
    return bool(used & lost) and not (
        isinstance(slot, BooleanSlot | ChoiceSetSlot) and len(used) > 1
    )


def _with_absent_mark(instance: QuestionInstance, slot: AbstainSlot) -> QuestionInstance | None:
    """Return the question about the colour ``{absent}``, in which the picture has no mark."""
    old, new = (instance.words.get(name) for name in ("one_colour", "one_absent"))
    marks = [call for call in instance.calls if "mark_color" in call.arguments]
    if not new or len(marks) != 1 or marks[0].arguments["mark_color"] != old:
        return None

    def renamed(text: str) -> str:
        return re.sub(rf"\b{old}\b", new, text)

    asks = tuple(each.model_copy(update={"label": renamed(each.label)}) for each in slot.asks)
    find = replace(
        marks[0],
        arguments={**marks[0].arguments, "mark_color": new},
        thought=renamed(marks[0].thought),
    )
    calls = tuple(find if call is marks[0] else call for call in instance.calls)
    words = {name: new if word == old else word for name, word in instance.words.items()}
    return replace(
        instance, calls=calls, words=words, slots=(slot.model_copy(update={"asks": asks}),)
    )
