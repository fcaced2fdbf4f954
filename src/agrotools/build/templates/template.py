"""Question templates: question, answer and wordings for measured things, as data.

A file of templates is TOML, a table per template::

    [worse_leaf]
    task_type = "lesion_severity"
    of = "leaf"                       # the kind of thing it is asked of
    things = 2                        # how many; each is measured by one call
    answer_type = "exact"
    given = { limit = [5, 10, 15] }   # drawn by chance; {limit} in wordings, labels, expressions and arguments
    clear = ["abs(@0.severity_pct - @1.severity_pct) >= 2"]   # what must hold of what is measured, or it is not asked
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

``@N.field`` is field ``field`` of what step N returned; a string in ``arguments`` that is nothing else is a reference.
Steps are counted as they stand in the chain: what comes before the measurements of all things, the measurements, what
looks closer, ``steps``. ``{one}``, ``{two}``... are what the things are called, in Chinese where it has a word for it.
Every answer follows from the truth by the slot's own ``from``, so a template cannot disagree with itself.

Answers are to be worth nothing when guessed: ask for a value beside a yes or no and beside a choice of two, keep
thresholds near the middle of usual values (a yes is then as likely as a no at each of them), and set ``shuffled`` where
the order of several things says nothing. A word that is an option is given (``given = { small = ["small"] }``): it has
a name in each language.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from typing import Annotated, Any, Literal, cast

import numpy as np
import orjson
from pydantic import Field, JsonValue, field_validator

from agrotools.build.references import PlannedCall
from agrotools.build.templates.slot_draft import SlotDraft, evaluated, same_answer
from agrotools.build.templates.thing import (
    QuestionInstance,
    Thing,
    Words,
    calls_on,
    distinct_files,
    filled,
    filled_arguments,
)
from agrotools.build.templates.wording import Language, expanded, said_in
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
from agrotools.tools.result import round_significant

_DIGITS = 6
"""Tools round what they return to six significant digits."""


def exact_result(tool: str, arguments: Mapping[str, Any], *, unrounded: bool = False) -> dict[str, JsonValue]:
    """Result of ``calculate``, ``plot`` or ``lookup_agronomy`` for these arguments: the fields that questions need.

    ``unrounded``: so are the values in ``arguments``; a result of ``calculate`` stays so, a chart's points are rounded.
    """
    if tool == "calculate":
        value = evaluate(arguments["expression"], arguments.get("variables") or {})
        if isinstance(value, float) and not unrounded:
            value = round_significant(value, _DIGITS)
        return {"value": value}
    if tool == "plot":
        return {"spec": _spec(arguments, unrounded)}
    return _looked_up(arguments)


def _spec(arguments: Mapping[str, Any], unrounded: bool) -> dict[str, JsonValue]:
    def y(values: Sequence[Any]) -> list[Any]:
        return [round_significant(value, _DIGITS) for value in values] if unrounded else list(values)

    series = tuple(PlotSeries.model_validate({**each, "y": y(each["y"])}) for each in arguments["series"])
    figure_texts = {
        name: arguments[name] for name in ("title", "x_label", "y_label", "x_unit", "y_unit") if name in arguments
    }
    legend = arguments["kind"] == "pie" or len(series) > 1
    spec = PlotSpec.model_validate({"kind": arguments["kind"], "series": series, "legend": legend, **figure_texts})
    return spec.model_dump(mode="json")


def _looked_up(arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    return orjson.loads(_hits(orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)))


@lru_cache(maxsize=1024)
def _hits(arguments: bytes) -> str:
    """The same entries are asked about of many pictures."""
    from agrotools.tools import lookup_agronomy

    return lookup_agronomy(**orjson.loads(arguments)).model_dump_json()


PLACES = ("one", "two", "three", "four", "five", "six", "seven", "eight")

_MOST_DRAWS = 48

Choices = Annotated[list[int | float | str], Field(min_length=1)]


class StepDraft(FrozenModel):
    """A call after the measurements, of a tool that is exact itself."""

    tool: Literal["calculate", "plot", "lookup_agronomy"]
    arguments: dict[str, JsonValue]
    thought: str


class Template(FrozenModel):
    """A kind of question; see the module's text. ``wordings`` are all combinations, in the template's language."""

    template: str
    task_type: str
    of: str
    things: Annotated[int, Field(ge=1, le=len(PLACES))] = 1
    shuffled: bool = False
    """True if more than two things come in any order, not in their own (dates, quarters): which is the largest of them
    must not follow from the place."""
    answer_type: AnswerType
    given: dict[str, Choices] = {}
    drawn: tuple[str | int, ...] = ()
    """Parts or values that suit what is measured (:func:`~agrotools.build.templates.field.drawn_parts`)."""
    needs: tuple[str, ...] = ()
    """Rules that are checked before anything is drawn, of what is measured as its source reads it."""
    clear: tuple[str, ...] = ()
    steps: tuple[StepDraft, ...] = ()
    slots: Annotated[tuple[SlotDraft, ...], Field(min_length=1)]
    wordings: Annotated[tuple[str, ...], Field(min_length=1)]
    wordings_zh: tuple[str, ...] = ()
    language: Language = "en"

    @field_validator("wordings", "wordings_zh")
    @classmethod
    def _every_combination(cls, wordings: tuple[str, ...]) -> tuple[str, ...]:
        return expanded(wordings)

    def instantiate(self, shown: Sequence[Thing], rng: np.random.Generator) -> QuestionInstance | None:
        """Question about these things; None if no drawn values make it clear.

        Raises:
            ValueError: the template refers to an unknown name.
        """
        things = tuple(shown)
        if not self._holds(self.needs, {}, [thing.as_read for thing in things]):
            return None
        if self.drawn:
            from agrotools.build.templates.field import drawn_parts

            if (drawn := drawn_parts(self.drawn, things, rng)) is None:
                return None
            parts, values = drawn
            return self._filled_with(parts, {name: only for name, (only,) in self.given.items()} | {**values})
        draws = _draws(self.given, rng)
        # Which answer of those offered should come out is drawn first, as far as drawn values allow: a yes is then no
        # likelier than a no, nor one class than another.
        leading = next(
            (slot for slot in self.slots if slot.type == "boolean" or (slot.type == "exact" and slot.options)), None
        )
        place = int(rng.integers(2 if leading is None or leading.type == "boolean" else len(leading.options)))
        otherwise: QuestionInstance | None = None
        for given in draws:
            instance = self._filled_with(things, given)
            if instance is None:
                continue
            if leading is None or _is_option(
                next(slot for slot in instance.slots if slot.name == leading.name), leading, place, instance.words
            ):
                return instance
            otherwise = otherwise or instance
        return otherwise

    def _filled_with(self, things: tuple[Thing, ...], given: Mapping[str, Any]) -> QuestionInstance | None:
        """Question with these drawn values; None if they do not make it clear, readings of the truth do not
        agree on its answer, or no slot of it would count."""
        spoken = {**_words(things), **{name: _spoken(value) for name, value in given.items()}}
        words = {name: said_in(self.language, word) for name, word in spoken.items()}
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
        files = " and ".join(dict.fromkeys(file.name for thing in things for file in thing.files[1:]))
        remarks = things[0].remarks if self.language == "en" else ()
        return QuestionInstance(
            files=distinct_files(things),
            calls=(*measured, *(_planned(step, words) for step in self.steps)),
            slots=slots,
            answer_type=self.answer_type,
            words=words,
            remarks=tuple(filled(remark, {**words, "files": files}) for remark in remarks),
        )

    def _answer(
        self, things: tuple[Thing, ...], words: Words, results: list[dict[str, JsonValue] | None]
    ) -> tuple[Slot, ...] | None:
        """Slots that follow from the results of the measurements; None if these leave them open."""
        unrounded = bool(things[0].readings)
        try:
            # Rules about the things alone come first: a drawn value need not be charted to be refused.
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
        """Raises ValueError: the template names what is not there, rather than what the truth leaves open."""
        if "is null" not in str(error) and "no value to calculate" not in str(error):
            raise ValueError(f"template {self.template}: {error}") from error


@cache
def load_templates(file: str, language: Language = "en") -> tuple[Template, ...]:
    """Templates of ``build/templates/<file>.toml`` in that language."""
    text = files("agrotools.build.templates").joinpath(f"{file}.toml").read_text("utf-8")
    written = [Template.model_validate({"template": name, **body}) for name, body in tomllib.loads(text).items()]
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


def _draws(given: Mapping[str, Sequence[Any]], rng: np.random.Generator) -> list[dict[str, Any]]:
    """Combinations of given values in random order, :data:`_MOST_DRAWS` at most."""
    every = list(product(*given.values()))
    return [
        dict(zip(given, every[number], strict=True)) for number in rng.permutation(len(every))[:_MOST_DRAWS].tolist()
    ]


def _is_option(slot: Slot, draft: SlotDraft, place: int, words: Words) -> bool:
    """True if the slot's value is the one at ``place`` of those that its draft offers (of yes and no: no first)."""
    if isinstance(slot, BooleanSlot):
        return slot.value == bool(place)
    return getattr(slot, "value", None) == filled(draft.options[place], words)


def _words(things: Sequence[Thing]) -> dict[str, str]:
    words: dict[str, str] = dict(things[0].words)
    for place, thing in zip(PLACES, things, strict=False):
        words[place] = thing.called
        words |= {f"{place}_{name}": word for name, word in thing.words.items()}
    return words


def _spoken(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
