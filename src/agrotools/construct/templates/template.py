"""Questions as data: a template says what is asked of measured things, what follows from it, and how people put it.

A file of templates is TOML, a table per template::

    [worse_leaf]
    task_type = "lesion_severity"
    of = "leaf"                       # the kind of thing it is asked of
    things = 2                        # how many; each is measured by one call
    answer_type = "exact"
    given = { limit = [5, 10, 15] }   # drawn by chance; {limit} in wordings, labels, expressions and arguments
    clear = ["abs(@0.severity_pct - @1.severity_pct) >= 2"]   # what must hold of what is measured, or it is not asked
    wordings = ["Which leaf is worse off, {one} or {two}?"]

    [[worse_leaf.steps]]              # calls after the measurements, if any
    tool = "calculate"
    arguments = { expression = "a - b", variables = { a = "@0.severity_pct", b = "@1.severity_pct" } }
    thought = "..."

    [[worse_leaf.slots]]
    type = "file"
    name = "worse"
    label = "leaf with the larger share of its area lost"
    from = "'{one}' if @0.severity_pct > @1.severity_pct else '{two}'"

``@N.field`` is field ``field`` of what step N returned; a string in ``arguments`` that is nothing else is a reference.
``{one}``, ``{two}``... are what the things are called. Every answer follows from the truth by the slot's own ``from``,
so a template cannot disagree with itself.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic import Field, JsonValue

from agrotools.construct.asking import Asked
from agrotools.construct.references import PlannedCall, ref
from agrotools.construct.templates.thing import Thing
from agrotools.core import (
    AnswerType,
    Arguments,
    BooleanSlot,
    ExactSlot,
    FileSlot,
    Noun,
    PlotSeries,
    PlotSlot,
    PlotSpec,
    SampleFile,
    Slot,
    ToleranceSlot,
    UnresolvedRef,
)
from agrotools.core.refs import resolved_value
from agrotools.text.expressions import evaluate, evaluate_from
from agrotools.tools.result import rounded

PLACES = ("one", "two", "three", "four", "five", "six", "seven", "eight")
_REF = re.compile(r"@(\d+)((?:\.[A-Za-z_]\w*|\[\d+\])+)")
_GIVEN = re.compile(r"\{(\w+)\}")
_DIGITS = 6
"""Tools round what they return to six significant digits."""

Choices = Annotated[list[int | float | str], Field(min_length=1)]


class SlotDraft(Noun):
    """A slot before its value is known. ``options`` are all members of an exact slot's label set, ``aliases`` other
    names of some of them; in both, words stand for what they mean."""

    type: Literal["tolerance", "exact", "boolean", "file", "plot"]
    name: str
    label: str
    from_: Annotated[str, Field(alias="from")]
    unit: str | None = None
    abs_tol: float = 0.0
    rel_tol: float = 0.0
    options: tuple[str, ...] = ()
    aliases: dict[str, tuple[str, ...]] = {}


class StepDraft(Noun):
    """A call after the measurements, of a tool that is exact itself."""

    tool: Literal["calculate", "plot"]
    arguments: dict[str, JsonValue]
    thought: str


class Template(Noun):
    """A kind of question; see the module's text."""

    template: str
    task_type: str
    of: str
    things: Annotated[int, Field(ge=1, le=len(PLACES))] = 1
    answer_type: AnswerType
    given: dict[str, Choices] = {}
    clear: tuple[str, ...] = ()
    steps: tuple[StepDraft, ...] = ()
    slots: Annotated[tuple[SlotDraft, ...], Field(min_length=1)]
    wordings: Annotated[tuple[str, ...], Field(min_length=1)]

    def asked(self, shown: Sequence[Thing], rng: np.random.Generator) -> Asked | None:
        """The question asked of these things; None where no drawn values make it clear.

        Raises:
            ValueError: the template names what is not there.
        """
        things = tuple(shown)
        for given in _draws(self.given, rng):
            words = {**_words(things), **{name: _spoken(value) for name, value in given.items()}}
            results: list[dict[str, JsonValue] | None] = [dict(thing.truth) for thing in things]
            results += [call.truth for call in _closer(things)]
            try:
                if not all(evaluate_from(_full(_filled(rule, words)), results) for rule in self.clear):
                    continue
                calls = _calls(things, self.steps, words, results)
                slots = tuple(_slot(draft, words, results, things) for draft in self.slots)
            except UnresolvedRef as error:
                if "is null" in str(error) or "no value to calculate" in str(error):
                    continue
                raise ValueError(f"template {self.template}: {error}") from error
            return Asked(
                files=_distinct_files(things),
                calls=calls,
                slots=slots,
                answer_type=self.answer_type,
                words=words,
                remarks=things[0].remarks,
            )
        return None


@cache
def load_templates(file: str) -> tuple[Template, ...]:
    """The templates of ``construct/templates/<file>.toml``."""
    text = files("agrotools.construct.templates").joinpath(f"{file}.toml").read_text("utf-8")
    return tuple(Template.model_validate({"template": name, **body}) for name, body in tomllib.loads(text).items())


def _draws(given: Mapping[str, Sequence[Any]], rng: np.random.Generator) -> list[dict[str, Any]]:
    """Combinations of given values in random order, so that the first that is clear can be taken."""
    orders = {name: [values[int(k)] for k in rng.permutation(len(values))] for name, values in given.items()}
    most = max((len(values) for values in orders.values()), default=1)
    return [{name: values[number % len(values)] for name, values in orders.items()} for number in range(most)]


def _words(things: Sequence[Thing]) -> dict[str, str]:
    words: dict[str, str] = dict(things[0].words)
    for place, thing in zip(PLACES, things, strict=False):
        words[place] = thing.called
        words |= {f"{place}_{name}": word for name, word in thing.words.items()}
    return words


def _spoken(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _distinct_files(things: Sequence[Thing]) -> tuple[SampleFile, ...]:
    """Parts of one file bring it once."""
    return tuple({file.name: file for thing in things for file in thing.files}.values())


def _filled(text: str, words: Mapping[str, str]) -> str:
    def word(match: re.Match[str]) -> str:
        if match[1] not in words:
            raise ValueError(f"{{{match[1]}}} is no word of this template; known: {', '.join(sorted(words))}")
        return words[match[1]]

    return _GIVEN.sub(word, text)


def _full(text: str) -> str:
    """``@0.severity_pct`` as ``steps[0].observation.severity_pct``."""
    return _REF.sub(lambda match: f"steps[{match[1]}].observation{match[2]}", text)


def _calls(
    things: Sequence[Thing],
    steps: Sequence[StepDraft],
    words: Mapping[str, str],
    results: list[dict[str, JsonValue] | None],
) -> tuple[PlannedCall, ...]:
    """The measurements and what follows; ``results`` grows by what each later step returns on the truth."""
    group = 0 if len(things) > 1 else None
    calls = [PlannedCall(thing.tool, thing.arguments, dict(thing.truth), group, thing.thought) for thing in things]
    calls += _closer(things)
    for step in steps:
        arguments = cast(Arguments, _arguments(step.arguments, words))
        calls.append(PlannedCall(step.tool, arguments, thought=_filled(step.thought, words)))
        plain = cast("dict[str, Any]", resolved_value(cast(JsonValue, dict(arguments)), results))
        results.append(_calculated(plain) if step.tool == "calculate" else {"spec": _spec(plain)})
    return tuple(calls)


def _closer(things: Sequence[Thing]) -> tuple[PlannedCall, ...]:
    """Of one thing alone: among several, the calls of a group do not build on each other."""
    return things[0].closer if len(things) == 1 else ()


def _arguments(value: JsonValue, words: Mapping[str, str]) -> JsonValue:
    if isinstance(value, dict):
        return {_filled(key, words): _arguments(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [_arguments(item, words) for item in value]
    if not isinstance(value, str):
        return value
    if found := _REF.fullmatch(value):
        return ref(int(found[1]), found[2].lstrip("."))
    if (lone := _GIVEN.fullmatch(value)) and lone[1] in words:
        return _number(words[lone[1]])
    return _filled(value, words)


def _number(text: str) -> JsonValue:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _calculated(arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    value = evaluate(arguments["expression"], arguments.get("variables") or {})
    return {"value": cast(JsonValue, rounded(float(value), _DIGITS) if isinstance(value, float) else value)}


def _spec(arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    series = tuple(PlotSeries.model_validate(each) for each in arguments["series"])
    told = {name: arguments[name] for name in ("title", "x_label", "y_label", "x_unit", "y_unit") if name in arguments}
    legend = arguments["kind"] == "pie" or len(series) > 1
    spec = PlotSpec.model_validate({"kind": arguments["kind"], "series": series, "legend": legend, **told})
    return spec.model_dump(mode="json")


def _slot(
    draft: SlotDraft,
    words: Mapping[str, str],
    results: Sequence[dict[str, JsonValue] | None],
    things: Sequence[Thing],
) -> Slot:
    from_ = _full(_filled(draft.from_, words))
    value: Any = evaluate_from(from_, results)
    if value is None:
        raise UnresolvedRef(f"{from_} is null")
    common: dict[str, Any] = {"name": draft.name, "label": _filled(draft.label, words), "from": from_}
    match draft.type:
        case "tolerance":
            tolerance = {"unit": draft.unit, "abs_tol": draft.abs_tol, "rel_tol": draft.rel_tol}
            return ToleranceSlot.model_validate({**common, "value": float(value), **tolerance})
        case "boolean":
            return BooleanSlot.model_validate({**common, "value": bool(value)})
        case "file":
            names = [file.name for file in _distinct_files(things)]
            called = {thing.called for thing in things}
            choices = tuple(name for name in names if name in called) or tuple(names)
            return FileSlot.model_validate({**common, "value": value, "choices": choices})
        case "plot":
            return PlotSlot.model_validate({**common, "value": value})
        case "exact":
            options = tuple(_filled(option, words) for option in draft.options)
            if options and value not in options:
                raise ValueError(f"{draft.name} is {value!r}, which is none of its options: {', '.join(options)}")
            others = tuple(option for option in options if option != value)
            aliases = _other_names(str(value), draft, words)
            return ExactSlot.model_validate({**common, "value": value, "aliases": aliases, "distractors": others})


def _other_names(value: str, draft: SlotDraft, words: Mapping[str, str]) -> tuple[str, ...]:
    """Other names of the answer, each once."""
    found = [name for of, names in draft.aliases.items() if _filled(of, words) == value for name in names]
    return tuple(dict.fromkeys(name for each in found if (name := _filled(each, words)) != value))
