"""Questions as data: what to measure, how the answer follows, and whether the truth settles it.

A :class:`Question` is a kind of question with several wordings; asked of pictures it gives a :class:`Draft` (or None
where it cannot be asked of them), which becomes a sample once its chain of calls has been run.
"""

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, cast

import numpy as np
from pydantic import JsonValue

from agrotools.build.area_truth import AreaTruth, Region
from agrotools.build.asking import Asked
from agrotools.build.references import PlannedCall
from agrotools.build.templates.slot_draft import in_one_language
from agrotools.build.templates.wording import Language, expanded, said_in
from agrotools.core import (
    AnswerType,
    Arguments,
    ExactSlot,
    PlotSlot,
    PlotSpec,
    SampleFile,
    Slot,
    ToleranceSlot,
)

MEASURE = "measure_crop_weed_area"
PLOT_MARGIN = 0.05
"""A point of a chart is right within 5 %; so far must the truth be known."""


@dataclass(frozen=True)
class Picture:
    """A picture that questions can be asked of.

    ``arguments`` are what the measuring tool needs for it, ``area`` counts its truth, ``noun`` is what the person
    asking calls it, ``remarks`` are sentences they might add ("The class map belongs to it.").
    """

    files: tuple[SampleFile, ...]
    arguments: Arguments
    area: Callable[[Region | None], AreaTruth]
    width: int
    height: int
    noun: str = "photo"
    remarks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the file that is looked at."""
        return self.files[0].name


@dataclass(frozen=True)
class Measure:
    """One measurement of a chain: of which picture (by position), and of which part of it."""

    picture: int = 0
    region: Region | None = None


Areas = Sequence[AreaTruth]


@dataclass(frozen=True)
class Draft:
    """A question asked of certain pictures.

    The measurements come first and, where there are several, are one group. ``then`` are the calls after them.
    ``slots`` gives the answer for measured areas; ``clear`` says what must hold besides (ties stay away).
    """

    slots: Callable[[Areas], tuple[Slot, ...]]
    answer_type: AnswerType
    measures: tuple[Measure, ...] = (Measure(),)
    then: tuple[PlannedCall, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    clear: Callable[[Areas], bool] = lambda _: True


@dataclass(frozen=True)
class Ask:
    """The pictures asked of, and a source of chance for thresholds, areas and boxes."""

    pictures: tuple[Picture, ...]
    rng: np.random.Generator

    @property
    def picture(self) -> Picture:
        return self.pictures[0]

    def area(self, picture: int = 0, region: Region | None = None) -> AreaTruth:
        return self.pictures[picture].area(region)


@dataclass(frozen=True)
class Question:
    """A kind of question about one or two pictures; how it is worded stands in ``wordings.toml`` and
    ``wordings_zh.toml``."""

    template: str
    task_type: str
    things: int
    draft: Callable[[Ask], Draft | None]
    of: str = "field"
    shuffled: bool = False
    language: Language = "en"

    @property
    def wordings(self) -> tuple[str, ...]:
        """Format strings over the draft's words, all combinations of their alternatives."""
        return _wordings(self.language).get(self.template, ())

    def asked(self, shown: Sequence[Picture], rng: np.random.Generator) -> Asked | None:
        """The question asked of these pictures, if the truth settles it."""
        ask = Ask(tuple(shown), rng)
        settled = settled_draft(self, ask)
        if settled is None:
            return None
        draft, slots = settled
        noun = ask.picture.noun
        named = " and ".join(file.name for picture in ask.pictures for file in picture.files[1:])
        words = {"photo": noun, "photos": f"{noun}s", **draft.words}
        calls = planned_calls(draft, ask)
        if self.language == "zh":
            words = {name: said_in("zh", word) for name, word in (words | {"photos": noun}).items()}
            slots = tuple(_in_chinese(slot, words) for slot in slots)
            calls = tuple(replace(call, arguments=_charted_in_chinese(call.arguments)) for call in calls)
        return Asked(
            files=tuple(file for picture in ask.pictures for file in picture.files),
            calls=calls,
            slots=slots,
            answer_type=draft.answer_type,
            words=words,
            remarks=tuple(remark.format(files=named) for remark in ask.picture.remarks)
            if self.language == "en"
            else (),
        )


@cache
def _wordings(language: Language) -> dict[str, tuple[str, ...]]:
    file = "wordings.toml" if language == "en" else "wordings_zh.toml"
    text = files("agrotools.build.questions").joinpath(file).read_text("utf-8")
    return {
        template: expanded(written["wordings"] if isinstance(written, dict) else written)
        for template, written in tomllib.loads(text).items()
    }


@cache
def _chinese_labels() -> dict[str, str]:
    text = files("agrotools.build.questions").joinpath("wordings_zh.toml").read_text("utf-8")
    return {name: label for written in tomllib.loads(text).values() for name, label in written["labels"].items()}


def _in_chinese(slot: Slot, words: Mapping[str, str]) -> Slot:
    """The slot with its label, its choices (where all have a word for it) and the names in its chart in Chinese."""
    slot = slot.model_copy(update={"label": _chinese_labels().get(slot.name, slot.label).format(**words)})
    if isinstance(slot, PlotSlot):
        return slot.model_copy(update={"value": _charted_in_chinese(slot.value)})
    if not isinstance(slot, ExactSlot):
        return slot
    aliases = {choice: (*slot.aliases.get(choice, ()), said_in("zh", choice)) for choice in slot.choices}
    return in_one_language(slot.model_copy(update={"aliases": aliases}), "zh", translate=True)


def _charted_in_chinese(chart: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Arguments or specification of a chart with the names of its series and bars in Chinese."""
    series = cast("list[dict[str, Any]]", chart.get("series", []))
    named = [
        {**one, "name": said_in("zh", str(one["name"])), "x": [said_in("zh", str(x)) for x in one["x"]]}
        for one in series
    ]
    return {**chart, "series": cast(JsonValue, named)} if named else dict(chart)


def settled_draft(question: Question, ask: Ask) -> tuple[Draft, tuple[Slot, ...]] | None:
    """The draft with its slots, if the truth settles the answer: the same whichever way unnamed plants are counted.

    A number must stay within its tolerance, a chart's points within 5 %, anything else must not change at all.
    """
    draft = question.draft(ask)
    if draft is None:
        return None
    areas = [ask.area(measure.picture, measure.region) for measure in draft.measures]
    if not draft.clear(areas):
        return None
    slots = draft.slots(areas)
    for variant in product(*(area.readings() for area in areas)):
        if not draft.clear(variant):
            return None
        if not all(_agrees(slot, other) for slot, other in zip(slots, draft.slots(variant), strict=True)):
            return None
    return draft, slots


def planned_calls(draft: Draft, ask: Ask) -> tuple[PlannedCall, ...]:
    """The whole chain: the measurements with their truth, then what follows from them."""
    group = 0 if len(draft.measures) > 1 else None
    calls = []
    for measure in draft.measures:
        picture = ask.pictures[measure.picture]
        arguments: dict[str, JsonValue] = dict(picture.arguments)
        if measure.region is not None:
            arguments["region"] = list(measure.region)
        truth = ask.area(measure.picture, measure.region).as_result(picture.files[0].gsd_m)
        part = "" if measure.region is None else " in the part asked for"
        thought = f"I need the areas of crop, weeds and bare soil in {picture.name}{part}."
        calls.append(PlannedCall(MEASURE, arguments, truth, group, thought))
    return (*calls, *draft.then)


def _agrees(slot: Slot, other: Slot) -> bool:
    if isinstance(slot, ToleranceSlot) and isinstance(other, ToleranceSlot):
        return abs(slot.value - other.value) <= slot.margin
    if isinstance(slot, PlotSlot) and isinstance(other, PlotSlot):
        first, second = PlotSpec.model_validate(slot.value), PlotSpec.model_validate(other.value)
        pairs = zip(first.series, second.series, strict=True)
        return all(
            math.isclose(a, b, rel_tol=PLOT_MARGIN) for one, two in pairs for a, b in zip(one.y, two.y, strict=True)
        )
    return getattr(slot, "value", None) == getattr(other, "value", None)
