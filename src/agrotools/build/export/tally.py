"""Counts of a benchmark's samples (never of answers), and of what was left out."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from agrotools.core import Sample

_WORDS = ("absent", "dropped", "left_out", "unread")
"""A key that is one of these or ends in one, ``tiles_dropped``, says what is not in the benchmark."""


def left_out(metadata: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    """Omissions, with their number or names: (``weedmap, tiles dropped, empty``, ``3``), in
    the order of the alphabet: a header that was written and read again has another."""
    found = ((" ".join(where.replace("_", " ").split()), text) for where, text in _omissions(metadata, "") if text)
    return sorted(found)


def without_left_out(metadata: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The metadata that is not about what was left out."""
    kept: dict[str, JsonValue] = {}
    for key, value in metadata.items():
        if _is_omission(key):
            continue
        kept[key] = without_left_out(value) if isinstance(value, dict) else value
    return kept


def as_words(value: JsonValue) -> str:
    """A value of the metadata as words."""
    if isinstance(value, list):
        return ", ".join(map(as_words, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {as_words(item)}" for key, item in sorted(value.items()))
    return "" if value is None else str(value)


def _omissions(metadata: Mapping[str, JsonValue], at: str) -> Iterator[tuple[str, str]]:
    for key, value in metadata.items():
        where = f"{at}, {key}" if at else key
        if _is_omission(key):
            if isinstance(value, dict):
                yield from ((f"{where}, {reason}", as_words(what)) for reason, what in value.items())
            else:
                yield where, as_words(value)
        elif isinstance(value, dict):
            yield from _omissions(value, where)


def _is_omission(key: str) -> bool:
    return key in _WORDS or key.endswith(tuple(f"_{word}" for word in _WORDS))


_CJK = re.compile(r"[㐀-鿿豈-﫿]")


@dataclass
class Tally:
    """Counts over samples. ``tasks`` are by task type and answer type; ``tools`` counts reference calls;
    ``distinct_tools``, ``calls`` and ``files`` are by how many a sample has; ``kinds`` counts different files."""

    samples: int = 0
    families: Counter[str] = field(default_factory=Counter)
    tasks: Counter[tuple[str, str]] = field(default_factory=Counter)
    answer_types: Counter[str] = field(default_factory=Counter)
    slots: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    templates: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    distinct_tools: Counter[int] = field(default_factory=Counter)
    calls: Counter[int] = field(default_factory=Counter)
    files: Counter[int] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    no_tool_eligible: int = 0

    @property
    def task_types(self) -> Counter[str]:
        found = Counter[str]()
        for (task_type, _), count in self.tasks.items():
            found[task_type] += count
        return found

    @property
    def all_calls(self) -> int:
        return self.tools.total()

    @property
    def all_files(self) -> int:
        return self.kinds.total()


def tally(samples: Iterable[Sample]) -> Tally:
    """Count ``samples``."""
    counted = Tally()
    seen: set[str] = set()
    for sample in samples:
        tools = sample.reference.tools if sample.reference else ()
        counted.samples += 1
        counted.families[sample.family] += 1
        counted.tasks[sample.task_type, sample.answer_type] += 1
        counted.answer_types[sample.answer_type] += 1
        counted.slots.update(slot.type for slot in sample.answer)
        counted.sources[sample.source] += 1
        counted.templates[sample.template] += 1
        counted.tools.update(tools)
        counted.distinct_tools[len(set(tools))] += 1
        counted.calls[len(tools)] += 1
        counted.files[len(sample.files)] += 1
        counted.kinds.update(file.kind for file in sample.files if file.path not in seen)
        seen.update(file.path for file in sample.files)
        counted.languages["zh" if _CJK.search(sample.query) else "en"] += 1
        counted.no_tool_eligible += sample.no_tool_eligible
    return counted
