"""Registries: names that point to code, imported only when asked for."""

import importlib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from agrotools.core.errors import UsageError

T = TypeVar("T")


class Registry(Generic[T]):
    """Named targets (``"package.module:attribute"``), resolved on first use.

    Packages of others add theirs as entry points in the group ``agrotools.<plural>``. A target that fails to import
    is reported with its own error when it is asked for, never as "unknown".
    """

    def __init__(self, noun: str, group: str, targets: Mapping[str, str]) -> None:
        self._noun = noun
        self._group = group
        self._targets: dict[str, str] = dict(targets)
        self._loaded: dict[str, T] = {}
        self._plugins_seen = False

    def _see_plugins(self) -> None:
        if self._plugins_seen:
            return
        self._plugins_seen = True
        for entry in entry_points(group=self._group):
            self._targets.setdefault(entry.name, entry.value)

    def add(self, name: str, value: T) -> None:
        """Register an object directly, for the life of the process."""
        self._targets[name] = ""
        self._loaded[name] = value

    def names(self) -> tuple[str, ...]:
        self._see_plugins()
        return tuple(self._targets)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def get(self, name: str) -> T:
        """The object of that name.

        Raises:
            UsageError: no such name (with the closest ones), or its module cannot be imported (with the reason).
        """
        if name in self._loaded:
            return self._loaded[name]
        if name not in self:
            close = get_close_matches(name, self.names(), n=3, cutoff=0.5)
            known = f"did you mean {', '.join(close)}?" if close else f"known: {', '.join(sorted(self.names()))}"
            raise UsageError(f"unknown {self._noun} {name!r}", hint=known)
        module, _, attribute = self._targets[name].partition(":")
        try:
            value: T = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise UsageError(f"{self._noun} {name!r} cannot be loaded from {module}: {error}") from error
        self._loaded[name] = value
        return value
