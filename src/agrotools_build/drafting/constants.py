"""Numbers and texts that a model wrote into calls and expressions: each must stand in the question, or mean no value.

Otherwise a model could write the answer itself: ``0 * n + 42``.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from agrotools.core import SampleFile
from agrotools.core.record import REF_PATTERN, is_ref
from agrotools.text.json_kinds import is_number
from agrotools.text.units import canonical_unit
from agrotools_build.composing import AnswerPart, TraceStep
from agrotools_build.composing.tolerance import defaults_of
from agrotools_build.drafting.reasons import Dropped

_POWERS = frozenset(10.0**power for power in range(-6, 7))
"""Factors between units of one quantity, and shares in percent."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def check_constants(
    question: str,
    steps: Sequence[TraceStep],
    parts: Sequence[AnswerPart],
    files: Sequence[SampleFile],
) -> None:
    """Raise Dropped if a number or a text of a call or an answer is the model's own."""
    for own in own_constants(question, steps, [(part.name, part.from_) for part in parts], files):
        raise own


def own_constants(
    question: str,
    steps: Sequence[TraceStep],
    expressions: Sequence[tuple[str, str]],
    files: Sequence[SampleFile],
) -> Iterator[Dropped]:
    """Yield why numbers and texts of calls and of answers are those of whoever wrote them.

    ``expressions``: name of each part of the answer, and the expression that gives its value. Allowed are what the
    question states, defaults of tools, names of files and units. A calculation may also hold powers of ten and the
    numbers up to that of files and calls, as in a mean; a comparison only 0.
    """
    stated = {*_stated(question)}
    factors = {*_POWERS, *(float(n) for n in range(1, max(len(files), len(steps)) + 1))}
    names = {file.name for file in files}
    for step in steps:
        defaults = defaults_of(step.tool)
        for name, value in step.arguments.items():
            if value == defaults.get(name, object()):
                continue
            yield from _own_numbers(value, stated, f"{step.tool}, {name}")
            if step.tool == "calculate" and name == "expression":
                yield from _own_in_expression(str(value), stated, factors, names, step.tool)
            elif step.tool == "calculate":
                yield from _own_texts(value, names, f"{step.tool}, {name}")
    for name, expression in expressions:
        yield from _own_in_expression(expression, stated, factors, names, name)


def _stated(question: str) -> Iterator[float]:
    """Yield the numbers that a question states: 1,500 may be 1500 or 1.5."""
    for match in _NUMBER.finditer(question):
        for text in (match[0].replace(",", ""), match[0].replace(",", ".")):
            try:
                yield float(text)
            except ValueError:
                continue


def _written(value: JsonValue) -> Iterator[JsonValue]:
    """Yield the numbers and texts in a value that are no result of a call."""
    if is_ref(value):
        return
    if not isinstance(value, dict | list):
        yield value
        return
    for item in value.values() if isinstance(value, dict) else value:
        yield from _written(item)


def _own_numbers(value: JsonValue, stated: set[float], where: str) -> Iterator[Dropped]:
    for each in _written(value):
        if is_number(each) and float(str(each)) not in stated:
            yield Dropped("unstated_number", f"{each} ({where}) stands nowhere in the question")


def _own_texts(value: JsonValue, names: set[str], where: str) -> Iterator[Dropped]:
    for each in _written(value):
        if isinstance(each, str) and each not in names and canonical_unit(each) is None:
            yield Dropped("written_value", f"{each!r} ({where}) is a text of the model")


def _own_in_expression(
    expression: str, stated: set[float], factors: set[float], names: set[str], where: str
) -> Iterator[Dropped]:
    """Yield why numbers and texts that are written in an expression are own ones, or that it cannot be read."""
    plain = REF_PATTERN.sub("ref", expression)
    try:
        tree = ast.parse(plain.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield Dropped("not_read", f"{expression!r} ({where}) is no expression")
        return
    compared = {
        id(node)
        for comparison in ast.walk(tree)
        if isinstance(comparison, ast.Compare)
        for node in ast.walk(comparison)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant):
            continue
        if isinstance(node.value, str):
            yield from _own_texts(node.value, names, where)
        elif isinstance(node.value, int | float) and not isinstance(node.value, bool):
            # A limit decides an answer, a factor only its unit.
            allowed = {0.0} if id(node) in compared else factors
            yield from _own_numbers(node.value, stated | allowed, where)
        else:
            yield Dropped("written_value", f"{node.value!r} ({where}) is a value of the model")
