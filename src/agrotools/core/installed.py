"""The installed benchmark plug-ins, and tables of the engine joined with theirs.

Every room asks for plug-ins here, the lowest ones as well. Their contract,
:class:`agrotools.loading.contract.BenchmarkPlugin`, is made of what higher rooms declare (metrics, protocols, files),
so it stands above them, and a plug-in has the type ``Any`` here. The registry has checked that it is one.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from agrotools.core.registry import BENCHMARKS, join_tables
from agrotools.core.slot import SLOT_TYPES, Slot
from agrotools.packages import built_in_benchmarks

V = TypeVar("V")
Plugin = Any
"""A :class:`agrotools.loading.contract.BenchmarkPlugin`."""


def plugins() -> list[Plugin]:
    """Return all installed benchmark plug-ins that can be imported."""
    return BENCHMARKS.loaded()


def plugin_of(benchmark: str) -> Plugin | None:
    """Return the plug-in of a benchmark; None if none is installed, e.g. for a benchmark folder."""
    return BENCHMARKS.get(benchmark) if benchmark in BENCHMARKS else None


def scope_of(benchmark: str) -> str:
    """Return what a score on a benchmark says, what it does not, and which task types are not asked; may be empty."""
    plugin = plugin_of(benchmark)
    return "" if plugin is None else plugin.scope


def benchmark_id(name: str) -> str:
    """Return the id of the benchmark whose name differs from ``name`` at most in case, ``-`` and ``_``; other names
    and paths are returned unchanged."""
    if name in BENCHMARKS or "/" in name or os.sep in name:
        return name
    return {_plain(each): each for each in BENCHMARKS}.get(_plain(name), name)


def _plain(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")


def plugins_of_slots(slots: Iterable[Slot]) -> list[Plugin]:
    """Return the plug-ins that define the types of ``slots``."""
    types = {type(slot) for slot in slots}.difference(SLOT_TYPES)
    return [plugin for plugin in plugins() if not types.isdisjoint(plugin.slots)] if types else []


def plugins_for_slot_types(types: frozenset[str]) -> list[Plugin]:
    """Return the plug-ins that may have metrics for slots of these types. Of the benchmarks in this package only those
    with such metrics are imported; plug-ins of other packages always are."""
    known = built_in_benchmarks()
    return BENCHMARKS.loaded(
        name
        for name in BENCHMARKS
        if name not in known or not types.isdisjoint(known[name].slot_types)
    )


def plugins_of_metrics(metrics: Iterable[str]) -> list[Plugin]:
    """Return the plug-ins that define any of ``metrics``."""
    theirs = {metric for metric in metrics if "." in metric}
    return (
        [plugin for plugin in plugins() if not plugin.metrics.keys().isdisjoint(theirs)]
        if theirs
        else []
    )


class WithPlugins(Mapping[str, V]):
    """Table of the engine joined with the corresponding tables of all plug-ins when it is first read. ``noun`` names
    the entries in the warning about two packages that define the same name."""

    def __init__(
        self,
        noun: str,
        entries: Mapping[str, V],
        table: Callable[[Plugin], Mapping[str, V]],
    ) -> None:
        self._noun = noun
        self._entries = entries
        self._table = table
        self._joined: Mapping[str, V] = {}
        self._names: tuple[str, ...] | None = None

    def joined(self) -> Mapping[str, V]:
        """Return all entries, the engine's first; see :func:`agrotools.core.registry.join_tables`."""
        if self._names != BENCHMARKS.names():
            tables = [
                (BENCHMARKS.package_of(plugin.name), self._table(plugin)) for plugin in plugins()
            ]
            self._joined = join_tables(self._noun, [("agrotools", self._entries), *tables])
            self._names = BENCHMARKS.names()
        return self._joined

    def __getitem__(self, key: str) -> V:
        return self._entries[key] if key in self._entries else self.joined()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.joined())

    def __len__(self) -> int:
        return len(self.joined())
