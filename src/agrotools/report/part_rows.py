"""The parts that figures are broken down by, as rows of a table: families over task types, answer types, groups."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from agrotools.core import ANSWER_TYPES, FAMILIES, FAMILY_OF_TASK_TYPE

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Parted(Protocol[T_co]):
    """A figure over everything, and over each part."""

    @property
    def overall(self) -> T_co: ...
    @property
    def by_family(self) -> Mapping[str, T_co]: ...
    @property
    def by_task_type(self) -> Mapping[str, T_co]: ...
    @property
    def by_answer_type(self) -> Mapping[str, T_co]: ...
    @property
    def by_group(self) -> Mapping[str, Mapping[str, T_co]]: ...


_WORDS = {"tools": "tools that are offered"}
"""Groups whose names do not say what they count."""
PartRow = tuple[str, str, Callable[[Parted[T]], T | None]]
"""Label, style and figure of a row."""


def part_rows(figures: Sequence[Parted[T]]) -> Iterator[PartRow[T]]:
    """Families over their task types, then answer types, then what else a benchmark tells apart."""
    if not figures:
        return
    families = ordered(FAMILIES, [set(figure.by_family) for figure in figures])
    task_types = ordered(FAMILY_OF_TASK_TYPE, [set(figure.by_task_type) for figure in figures])
    for family in families:
        own = [task_type for task_type in task_types if FAMILY_OF_TASK_TYPE.get(task_type) == family]
        # Of a family with one task type, the figures of the family would only repeat those of the task type.
        yield FAMILIES.get(family, family), "bold", _nothing if len(own) == 1 else _family(family)
        for task_type in own:
            yield f"  {_words(task_type)}", "", _task_type(task_type)
    for task_type in task_types:
        if FAMILY_OF_TASK_TYPE.get(task_type) not in families:
            yield _words(task_type), "", _task_type(task_type)
    yield "By answer type", "bold", _nothing
    for answer_type in ordered(ANSWER_TYPES, [set(figure.by_answer_type) for figure in figures]):
        yield f"  {_words(answer_type)}", "", _answer_type(answer_type)
    for group in ordered((), [set(figure.by_group) for figure in figures]):
        yield f"By {_WORDS.get(group) or _words(group)}", "bold", _nothing
        for value in ordered((), [set(figure.by_group.get(group, {})) for figure in figures]):
            yield f"  {value}", "", _group(group, value)


def ordered(known: Sequence[str] | Mapping[str, str], present: Sequence[set[str]]) -> list[str]:
    """What is present anywhere: the known names in their order, then numbers, then the others by name."""
    there = set[str]().union(*present)
    return [name for name in known if name in there] + sorted(there.difference(known), key=_by_number)


def _by_number(name: str) -> tuple[bool, int, str]:
    return (not name.isdecimal(), int(name) if name.isdecimal() else 0, name)


def _nothing(_: object) -> None:
    return None


def _family(family: str) -> Callable[[Parted[T]], T | None]:
    return lambda figure: figure.by_family.get(family)


def _answer_type(answer_type: str) -> Callable[[Parted[T]], T | None]:
    return lambda figure: figure.by_answer_type.get(answer_type)


def _task_type(task_type: str) -> Callable[[Parted[T]], T | None]:
    return lambda figure: figure.by_task_type.get(task_type)


def _group(name: str, value: str) -> Callable[[Parted[T]], T | None]:
    return lambda figure: figure.by_group.get(name, {}).get(value)


def _words(identifier: str) -> str:
    return identifier.replace("_", " ")
