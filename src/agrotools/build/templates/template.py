"""Questions as data: a template says what is asked of measured things, what follows from it, and how people put it.

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

from agrotools.build.asking import Asked
from agrotools.build.references import PlannedCall
from agrotools.build.templates.slot_draft import SlotDraft
from agrotools.build.templates.thing import (
    Thing,
    Words,
    calls_on,
    distinct_files,
    filled,
    filled_arguments,
    references_written_out,
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
from agrotools.core.refs import resolved_value
from agrotools.text.expressions import evaluate, evaluate_from
from agrotools.tools.result import round_significant

_DIGITS = 6
"""Tools round what they return to six significant digits."""


def exact_result(tool: str, arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Result of ``calculate``, ``plot`` or ``lookup_agronomy`` for these arguments, as far as questions need it."""
    if tool == "calculate":
        return _calculated(arguments)
    if tool == "plot":
        return {"spec": _spec(arguments)}
    return _looked_up(arguments)


def _calculated(arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    value = evaluate(arguments["expression"], arguments.get("variables") or {})
    return {"value": cast(JsonValue, round_significant(float(value), _DIGITS) if isinstance(value, float) else value)}


def _spec(arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    series = tuple(PlotSeries.model_validate(each) for each in arguments["series"])
    told = {name: arguments[name] for name in ("title", "x_label", "y_label", "x_unit", "y_unit") if name in arguments}
    legend = arguments["kind"] == "pie" or len(series) > 1
    spec = PlotSpec.model_validate({"kind": arguments["kind"], "series": series, "legend": legend, **told})
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

    def asked(self, shown: Sequence[Thing], rng: np.random.Generator) -> Asked | None:
        """The question asked of these things; None where no drawn values make it clear.

        Raises:
            ValueError: the template names what is not there.
        """
        things = tuple(shown)
        draws = _draws(self.given, rng)
        # Which answer of those offered should come out is drawn first, as far as drawn values allow: a yes is then no
        # likelier than a no, nor one class than another.
        leading = next(
            (slot for slot in self.slots if slot.type == "boolean" or (slot.type == "exact" and slot.options)), None
        )
        place = int(rng.integers(2 if leading is None or leading.type == "boolean" else len(leading.options)))
        otherwise: Asked | None = None
        for given in draws:
            asked = self._asked_with(things, given)
            if asked is None:
                continue
            if leading is None or _is_option(
                next(slot for slot in asked.slots if slot.name == leading.name), leading, place, asked.words
            ):
                return asked
            otherwise = otherwise or asked
        return otherwise

    def _asked_with(self, things: tuple[Thing, ...], given: Mapping[str, Any]) -> Asked | None:
        """The question with these drawn values; None where they do not make it clear, or no slot of it would count."""
        spoken = {**_words(things), **{name: _spoken(value) for name, value in given.items()}}
        words = {name: said_in(self.language, word) for name, word in spoken.items()}
        calls = list(calls_on(things))
        results: list[dict[str, JsonValue] | None] = [call.truth for call in calls]
        try:
            # Rules about the things alone come first: a drawn value need not be charted to be refused.
            if not all(evaluate_from(references_written_out(filled(rule, words)), results) for rule in self.clear):
                return None
            for step in self.steps:
                calls.append(_planned(step, words))
                plain = resolved_value(cast(JsonValue, dict(calls[-1].arguments)), results)
                results.append(exact_result(step.tool, cast("dict[str, Any]", plain)))
            slots = tuple(draft.slot(words, results, things, self.language) for draft in self.slots)
        except UnresolvedRef as error:
            if "is null" in str(error) or "no value to calculate" in str(error):
                return None
            raise ValueError(f"template {self.template}: {error}") from error
        if not any(map(counts_in_headline, slots)):
            return None
        return Asked(
            files=distinct_files(things),
            calls=tuple(calls),
            slots=slots,
            answer_type=self.answer_type,
            words=words,
            remarks=things[0].remarks if self.language == "en" else (),
        )


@cache
def load_templates(file: str, language: Language = "en") -> tuple[Template, ...]:
    """The templates of ``build/templates/<file>.toml`` that can be asked in that language."""
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
