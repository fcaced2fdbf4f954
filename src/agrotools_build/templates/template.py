"""Question templates: question, answer and wordings for measured things, as data.

A template file is TOML with one table per template::

    [worse_leaf]
    task_type = "lesion_severity"
    of = "leaf"                       # the kind of thing that the question is about
    things = 2                        # number of things; each is measured by one call
    beside = 1                        # number of further things whose files are shown, but not asked about
    answer_type = "exact"
    given = { limit = [5, 10, 15] }   # drawn at random; {limit} in wordings, labels, expressions and arguments
    clear = ["abs(@0.severity_pct - @1.severity_pct) >= 2"]   # conditions on measured values; else it is not asked
    wordings = ["[Which|What] leaf is worse off, {one} or {two}?"]   # every combination of alternatives
    wordings_zh = ["{one}和{two}，哪片叶子[更严重|病情更重]？"]

    [[worse_leaf.steps]]              # calls after the measurements, if any
    tool = "calculate"
    arguments = { expression = "a - b", variables = { a = "@0.severity_pct", b = "@1.severity_pct" } }
    thought = "..."

    [[worse_leaf.slots]]
    type = "file"
    name = "worse"
    label = "leaf with the larger share of its area lost"
    label_zh = "受害面积占比较大的叶片"
    from = "'{one}' if @0.severity_pct > @1.severity_pct else '{two}'"

``@N.field`` is field ``field`` of the result of step N; a string in ``arguments`` that consists of nothing else is a
reference. Steps are numbered in the order of the chain: calls before the measurements (of all things), the
measurements, closer inspections, ``steps``; ``@{m0}`` is the first measurement, whatever comes before it, ``@{m1}`` the
next step. ``{one}``, ``{two}``... are the names of the things, in Chinese if a
translation is known. Every answer follows from the truth by the slot's own ``from``, so a template cannot contradict
itself.

Guessed answers should score nothing: ask for a value as well as for a yes or no or a choice of two, keep thresholds
near the middle of usual values (so that yes and no are equally likely at each of them), and set ``shuffled`` if the
order of several things carries no meaning. Put words that are options into ``given``
(``given = { small = ["small"] }``): they then have a name in each language.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
import orjson
from pydantic import Field, JsonValue, field_validator

from agrotools.calling.result import round_significant
from agrotools.core import (
    AnswerType,
    Arguments,
    BooleanSlot,
    FrozenModel,
    PlotSeries,
    PlotSpec,
    Slot,
    UnresolvedRef,
    counts_in_headline,
)
from agrotools.core.record import Results, resolved_value
from agrotools.text.expressions import evaluate
from agrotools_build.references import PlannedCall, steps_used
from agrotools_build.templates.field import TEMPLATES, drawn_parts
from agrotools_build.templates.slot_draft import SlotDraft, evaluated, same_answer
from agrotools_build.templates.thing import (
    QuestionInstance,
    Thing,
    Words,
    calls_on,
    distinct_files,
    filled,
    filled_arguments,
    first_calls,
)
from agrotools_build.templates.wording import Language, expanded, translated

_DIGITS = 6
"""Significant digits to which tools round their results."""


def exact_result(
    tool: str, arguments: Mapping[str, Any], *, unrounded: bool = False
) -> dict[str, JsonValue]:
    """Return the fields that questions need from the result of ``calculate``, ``plot`` or ``lookup_agronomy``.

    ``unrounded``: True if the values in ``arguments`` are unrounded; a result of ``calculate`` then stays unrounded,
    and the points of a chart are rounded.
    """
    if tool == "calculate":
        value = evaluate(arguments["expression"], arguments.get("variables") or {})
        if isinstance(value, float) and not unrounded:
            value = round_significant(value, _DIGITS)
        return {"value": value}
    if tool == "plot":
        return {"spec": _spec(arguments, unrounded)}
    return orjson.loads(_hits(orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)))


def result_after(tool: str, arguments: Arguments, results: Results) -> dict[str, JsonValue]:
    """Return the unrounded result of a call of such a tool, whose arguments refer to unrounded results.

    Raises:
        UnresolvedRef, ExpressionError, ValueError: a calculation has no value.
        ToolError: a look-up fails.
    """
    resolved = cast("dict[str, Any]", resolved_value(dict(arguments), results))
    return exact_result(tool, resolved, unrounded=True)


def _spec(arguments: Mapping[str, Any], unrounded: bool) -> dict[str, JsonValue]:
    def y(values: Sequence[Any]) -> list[Any]:
        return (
            [round_significant(value, _DIGITS) for value in values] if unrounded else list(values)
        )

    series = tuple(
        PlotSeries.model_validate({**each, "y": y(each["y"])}) for each in arguments["series"]
    )
    figure_texts = {
        name: arguments[name]
        for name in ("title", "x_label", "y_label", "x_unit", "y_unit")
        if name in arguments
    }
    legend = arguments["kind"] == "pie" or len(series) > 1
    spec = PlotSpec.model_validate(
        {"kind": arguments["kind"], "series": series, "legend": legend, **figure_texts}
    )
    return spec.model_dump(mode="json")


@lru_cache(maxsize=1024)
def _hits(arguments: bytes) -> str:
    """Look up entries; cached because many pictures lead to the same query."""
    from agrotools_tools import lookup_agronomy

    return lookup_agronomy(**orjson.loads(arguments)).model_dump_json()


PLACES = ("one", "two", "three", "four", "five", "six", "seven", "eight")

_MOST_DRAWS, _NUMBERED = 48, 8

Choices = Annotated[list[int | float | str], Field(min_length=1)]


class StepDraft(FrozenModel):
    """A call after the measurements, of a tool whose result is exact."""

    tool: Literal["calculate", "plot", "lookup_agronomy"]
    arguments: dict[str, JsonValue]
    thought: str


class Template(FrozenModel):
    """A kind of question; the format is described in the module docstring.

    ``wordings`` holds all combinations of alternatives, in the template's language.
    """

    template: str
    task_type: str
    of: str
    things: Annotated[int, Field(ge=1, le=len(PLACES))] = 1
    shuffled: bool = False
    """True if more than two things are shown in random order, so that the place of one reveals nothing."""
    beside: Annotated[int, Field(ge=0, le=len(PLACES))] = 0
    """Number of further things whose files are shown but not asked about; the question must name its files."""
    answer_type: AnswerType
    given: dict[str, Choices] = {}
    drawn: tuple[str | int, ...] = ()
    """Kind and arguments of :func:`~agrotools_build.templates.field.drawn_parts`."""
    needs: tuple[str, ...] = ()
    """Conditions on the unrounded values of the source, checked before anything is drawn."""
    clear: tuple[str, ...] = ()
    too_close: tuple[str, ...] = ()
    """Conditions in place of ``clear`` under which values are too close to each other for any answer."""
    within_error: str = ""
    """Expression that is true if measured values differ by less than the error that the question states."""
    steps: tuple[StepDraft, ...] = ()
    slots: Annotated[tuple[SlotDraft, ...], Field(min_length=1)]
    wordings: Annotated[tuple[str, ...], Field(min_length=1)]
    wordings_zh: tuple[str, ...] = ()
    language: Language = "en"

    @field_validator("wordings", "wordings_zh")
    @classmethod
    def _every_combination(cls, wordings: tuple[str, ...]) -> tuple[str, ...]:
        return expanded(wordings)

    def instantiate(
        self, shown: Sequence[Thing], rng: np.random.Generator
    ) -> QuestionInstance | None:
        """Return the question about these things, None if it has no clear answer; ValueError for an unknown name."""
        things = tuple(shown)
        if not self._holds(self.needs, {}, [thing.as_read for thing in things]):
            return None
        if self.drawn:
            if (drawn := drawn_parts(self.drawn, things, rng)) is None:
                return None
            parts, values = drawn
            return self._filled_with(
                parts, {name: only for name, (only,) in self.given.items()} | {**values}
            )
        draws = _draws(self.given, rng)
        # The desired option is drawn first and values that lead to it are preferred, so that yes is as likely as no and
        # all classes are about equally likely.
        leading = next(
            (
                slot
                for slot in self.slots
                if slot.type == "boolean" or (slot.type == "exact" and slot.options)
            ),
            None,
        )
        place = int(
            rng.integers(
                2 if leading is None or leading.type == "boolean" else len(leading.options)
            )
        )
        otherwise: QuestionInstance | None = None
        for given in draws:
            instance = self._filled_with(things, given)
            if instance is None:
                continue
            if leading is None or _is_option(
                next(slot for slot in instance.slots if slot.name == leading.name),
                leading,
                place,
                instance.words,
            ):
                return instance
            otherwise = otherwise or instance
        return otherwise

    def _filled_with(
        self, things: tuple[Thing, ...], given: Mapping[str, Any]
    ) -> QuestionInstance | None:
        """Return the question with these drawn values; None if its answer is unclear or no slot would count."""
        spoken = _words(things) | {
            name: f"{value:g}" if isinstance(value, int | float) else str(value)
            for name, value in given.items()
        }
        words = {name: translated(self.language, word) for name, word in spoken.items()}
        measured = calls_on(things)
        read = product(*(thing.readings for thing in things))
        every = read if things[0].readings else [[call.truth for call in measured]]
        answers = (self._answer(things, words, [*results]) for results in every)
        slots = next(answers)
        if slots is None or not any(map(counts_in_headline, slots)):
            return None
        if not all(map(SlotDraft.is_large_enough, self.slots, slots)):
            return None
        if not all(other is not None and all(map(same_answer, slots, other)) for other in answers):
            return None
        return QuestionInstance(
            files=distinct_files(things),
            calls=_with_free_look_up([*measured, *(_planned(step, words) for step in self.steps)]),
            slots=slots,
            answer_type=self.answer_type,
            words=words,
        )

    def _answer(
        self, things: tuple[Thing, ...], words: Words, results: list[dict[str, JsonValue] | None]
    ) -> tuple[Slot, ...] | None:
        """Return the slots that follow from the measured results, or None if these leave the answer open."""
        unrounded = bool(things[0].readings)
        try:
            # Conditions on the things alone come first, so that unsuitable values are rejected without computing a
            # chart.
            if not self._holds(self.clear, words, results):
                return None
            for step in self.steps:
                arguments = cast(JsonValue, dict(_planned(step, words).arguments))
                plain = cast("dict[str, Any]", resolved_value(arguments, results))
                results.append(exact_result(step.tool, plain, unrounded=unrounded))
            return tuple(draft.slot(words, results, things, self.language) for draft in self.slots)
        except UnresolvedRef as error:
            return self._left_open(error)

    def _holds(self, rules: Sequence[str], words: Words, results: Results) -> bool:
        try:
            return all(evaluated(rule, words, results) for rule in rules)
        except UnresolvedRef as error:
            return bool(self._left_open(error))

    def _left_open(self, error: UnresolvedRef) -> None:
        """Raise ValueError if the template names an unknown field, rather than a value that the truth leaves open."""
        if "is null" not in str(error) and "no value to calculate" not in str(error):
            raise ValueError(f"template {self.template}: {error}") from error


@cache
def load_templates(file: str, language: Language = "en") -> tuple[Template, ...]:
    """Load the templates of ``build/templates/<file>.toml`` in a language."""
    text = Path(__file__).with_name(f"{file}.toml").read_text("utf-8")
    written = [
        Template.model_validate({"template": name, **body})
        for name, body in tomllib.loads(text).items()
    ]
    if language == "en":
        return tuple(written)
    return tuple(
        template.model_copy(update={"language": "zh", "wordings": template.wordings_zh})
        for template in written
        if template.wordings_zh
    )


def _planned(step: StepDraft, words: Words) -> PlannedCall:
    arguments = cast(Arguments, filled_arguments(step.arguments, words))
    return PlannedCall(step.tool, arguments, thought=filled(step.thought, words))


def _with_free_look_up(calls: Sequence[PlannedCall]) -> tuple[PlannedCall, ...]:
    """Return the calls; a last look-up that uses no result forms a group with the call before it.

    Either of the two may then come first.
    """
    *others, last = calls
    if last.tool != "lookup_agronomy" or not others or steps_used(last.arguments):
        return tuple(calls)
    *earlier, before = others
    group = before.group
    if group is None:
        group = 1 + max((call.group for call in calls if call.group is not None), default=-1)
    return (*earlier, replace(before, group=group), replace(last, group=group))


def _draws(given: Mapping[str, Sequence[Any]], rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return combinations of given values in random order, at most :data:`_MOST_DRAWS`."""
    every = list(product(*given.values()))
    return [
        dict(zip(given, every[number], strict=True))
        for number in rng.permutation(len(every))[:_MOST_DRAWS].tolist()
    ]


def _is_option(slot: Slot, draft: SlotDraft, place: int, words: Words) -> bool:
    """Return True if the slot's value is the option at index ``place`` of its draft (no is 0, yes is 1)."""
    if isinstance(slot, BooleanSlot):
        return slot.value == bool(place)
    return getattr(slot, "value", None) == filled(draft.options[place], words)


def _words(things: Sequence[Thing]) -> dict[str, str]:
    first = first_calls(things)
    words = {**things[0].words, **{f"m{k}": str(first + k) for k in range(_NUMBERED)}}
    for place, thing in zip(PLACES, things, strict=False):
        words[place] = thing.called
        words |= {f"{place}_{name}": word for name, word in thing.words.items()}
    return words


def field_templates() -> tuple[Template, ...]:
    """Return the templates for pictures of fields."""
    return tuple(template for file in TEMPLATES for template in load_templates(file))
