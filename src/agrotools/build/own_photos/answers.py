"""The answer of a column for each picture, in the unit of the tool that measures it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agrotools.build.own_photos import cells
from agrotools.build.own_photos.cells import CellFault
from agrotools.build.own_photos.detect import DetectedTable
from agrotools.build.own_photos.plan import Column, Measure, SkippedRows, measures
from agrotools.text.normalise import canonical_unit, convert

Value = float | bool | str


class Answer(NamedTuple):
    """Ground truth of a picture in one row."""

    row: int
    value: Value


def answers_of(seen: DetectedTable, column: Column, drops: SkippedRows) -> dict[Path, Value]:
    """The value of each picture. Cells that cannot be used, and pictures with several answers, go to ``drops``.

    Raises:
        BenchmarkError: there is no such column.
    """
    measure = measures()[column.ask]
    by_image: dict[Path, list[Answer]] = {}
    for row, image, text in seen.cells_of(column.column):
        if cells.is_empty(text):
            continue
        try:
            value = _value(text, column, measure)
        except CellFault as fault:
            drops.add(column.column, fault.reason, fault.hint, row, text[:60])
            continue
        by_image.setdefault(image, []).append(Answer(row, value))
    values: dict[Path, Value] = {}
    for image, answers in by_image.items():
        if (value := _one(image, answers, column, drops)) is not None:
            values[image] = value
    return values


def _value(text: str, column: Column, measure: Measure) -> Value:
    if measure.kind == "yes":
        return cells.yes_or_no(text, column.yes, column.no)
    if measure.kind == "name":
        return cells.name(text)
    if measure.kind == "advice":
        return _advice(text)
    number = cells.quantity(text, column.decimal)
    value = _in_unit(number, column, measure)
    if measure.unit is None and value != round(value) and column.repeated != "mean":
        raise CellFault("is not a whole number", 'write a count, or repeated = "mean" in the plan')
    if measure.least is not None and value < measure.least:
        raise CellFault(f"is below {measure.least:g}{measure.unit or ''}", "correct the value or its unit")
    if measure.most is not None and value > measure.most:
        raise CellFault(f"is above {measure.most:g} {measure.unit or ''}", "correct the value or its unit")
    return value


def _in_unit(number: cells.Quantity, column: Column, measure: Measure) -> float:
    if measure.unit is None:
        if number.unit is not None:
            raise CellFault(f"is in {number.unit}, where a number of things is expected", "write the count alone")
        return number.value
    if number.counted is not None:
        raise CellFault(f"holds {number.counted!r}, where a unit is expected", f"write the number in {measure.unit}")
    unit = number.unit or canonical_unit(column.unit)
    if unit is None:
        raise CellFault("has no unit", "set unit of this column in the plan")
    try:
        return convert(number.value, unit, measure.unit)
    except ValueError as error:
        hint = f"write it in {measure.unit}, or in a unit of the same kind"
        raise CellFault(f"is in {unit}, which measures something else than {measure.unit}", hint) from error


def _advice(text: str) -> str:
    """Facts separated by semicolons, each checked like a name but allowed to be longer."""
    facts = [part.strip(" .。") for part in text.replace("；", ";").split(";") if part.strip(" .。")]
    if not facts:
        raise CellFault("holds no text", "write key facts, parted by semicolons")
    return ";".join(cells.name(fact) for fact in facts)


def _one(image: Path, answers: Sequence[Answer], column: Column, drops: SkippedRows) -> Value | None:
    """The value of a picture with one answer or several."""
    values = list(dict.fromkeys(answer.value for answer in answers))
    if len(values) == 1 and column.repeated != "sum":
        return values[0]
    numbers = [answer.value for answer in answers if isinstance(answer.value, int | float)]
    if column.repeated != "refuse" and len(numbers) == len(answers) and not isinstance(values[0], bool):
        return sum(numbers) if column.repeated == "sum" else sum(numbers) / len(numbers)
    several = " and ".join(f"{answer.value!r} (row {answer.row})" for answer in answers[:3])
    hint = 'keep one, or set repeated = "mean" or "sum" for this column in the plan'
    drops.add(column.column, "has different answers for one picture", hint, answers[0].row, f"{image.name}: {several}")
    return None
