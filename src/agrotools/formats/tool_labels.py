"""Labels that the answers of a benchmark have, and the names that its tools must return for them.

The build of a benchmark from own photos stores them. What a tool can name depends on its back-end, so that each run
compares them again, before it starts.
"""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from agrotools.core import FrozenModel
from agrotools.core.texts import count_text, counted_names
from agrotools.formats.stored import read_stored
from agrotools.knowledge.words import FAR, name_distance

LABELS_KEY = "tool_labels"
"""Key of the labels in the metadata of a benchmark's header."""
_NAMED = 12
"""Labels that a line names: about as many as fit on two lines."""


class AskedLabel(FrozenModel):
    """A label of the table. ``names``: results of the tool that mean it; ``n``: number of its photos."""

    label: str
    names: tuple[str, ...]
    n: int


class ToolLabels(FrozenModel):
    """The labels of a column, and the arguments with which its tool is called."""

    column: str
    tool: str
    arguments: dict[str, JsonValue] = {}
    labels: tuple[AskedLabel, ...]

    def unnamed_by(self, nameable: Mapping[str, str]) -> list[AskedLabel]:
        """Return the labels that a tool cannot give, from its results with the label that each has for the tool."""
        return [each for each in self.labels if not nameable.keys() & set(each.names)]

    def warning(self, nameable: Mapping[str, str], by: str) -> str:
        """Return which labels a tool cannot give, what it can name, and what would help; empty if it gives all.

        ``by``: the tool and its back-end in words.
        """
        unnamed = self.unnamed_by(nameable)
        if not unnamed:
            return ""
        n_photos = sum(each.n for each in self.labels)
        lost = sum(each.n for each in unnamed)
        known = sorted(set(nameable.values()))
        line = (
            f"{self.column}: {by} cannot name {len(unnamed)} of {count_text(len(self.labels), 'label')} "
            f"({lost} of {count_text(n_photos, 'photo')}), whose questions are lost with it: "
            f"{_listed(each.label for each in unnamed)}; it can name: {_listed(known) or 'nothing here'}"
        )
        taken = {name for each in self.labels for name in each.names}
        free = [label for name, label in nameable.items() if name not in taken]
        for each in unnamed:
            if near := nearest_label(each.label, free):
                line += (
                    f"; if {near!r} is {each.label!r}: build again with "
                    f"--set '{self.column}.names.{each.label}={near}'"
                )
        return line


def _listed(texts: Iterable[str]) -> str:
    return counted_names([*map(repr, texts)], _NAMED)


def nearest_label(label: str, known: Iterable[str]) -> str | None:
    """Return the label of a tool that is spelt most like a label of a table, or is a word of it; None if none is."""
    distances = {
        each: min(name_distance(label, each), name_distance(each, label)) for each in known
    }
    best = min(distances, key=lambda each: distances[each], default=None)
    return best if best is not None and distances[best] < FAR else None


def stored_labels(metadata: Mapping[str, object]) -> list[ToolLabels]:
    """Return the labels in the metadata of a benchmark's header; empty if it has none.

    Raises:
        BenchmarkError: the metadata were changed, and are no labels.
    """
    listed = metadata.get(LABELS_KEY)
    if not isinstance(listed, list):
        return []
    return [read_stored(ToolLabels, each, LABELS_KEY) for each in listed]
