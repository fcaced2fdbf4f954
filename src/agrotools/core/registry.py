"""Registries of named objects that are imported on first use, with a rule for names claimed by two packages."""

import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

from agrotools.core.errors import AgrotoolsError, BenchmarkError, UsageError, words_of
from agrotools.core.libraries import library_of
from agrotools.core.texts import install_command, suggestion
from agrotools.packages import PackageTable, is_ours, package_tables

T = TypeVar("T")

_OURS = __name__.partition(".")[0]
CLASHES: list[str] = []
"""Warnings about names claimed by two packages, collected so far in this process."""


class PluginWarning(UserWarning):
    """A name of an installed plug-in is ignored because another package already uses it."""


def join_tables(noun: str, tables: Iterable[tuple[str, Mapping[str, T]]]) -> dict[str, T]:
    """Merge tables of several packages. The first entry of a duplicate name is used, with a warning about the other.

    Args:
        noun: noun for a named object, for the warning.
        tables: the tables, each with the name of its package.
    """
    joined: dict[str, tuple[str, T]] = {}
    for package, table in tables:
        for name, value in table.items():
            owner, known = joined.setdefault(name, (package, value))
            if known is not value and known != value:
                text = f"{noun} {name!r} of the package {package} is ignored: {owner} has one of that name"
                if text not in CLASHES:
                    CLASHES.append(text)
                    warnings.warn(text, PluginWarning, stacklevel=2)
    return {name: value for name, (_, value) in joined.items()}


def package_of(target: str) -> str:
    """Return the package of a target ``"package.module:attribute"``; ``agrotools`` for all that belong to it."""
    package = target.partition(":")[0].partition(".")[0]
    return _OURS if is_ours(package) else package


class Registry(Generic[T]):
    """Named targets (``"package.module:attribute"``), imported on first use.

    Other packages add targets as entry points in the group ``agrotools.<plural>``, if there is one. A target that
    cannot be imported is reported with its own error when it is requested, never as "unknown".

    Args:
        noun: noun for an object, for messages.
        group: group of the entry points; empty if other packages add none.
        targets: targets of this distribution by name, or a function that returns them.
        more: returns further names and targets; called if a name is not found otherwise, or if all names are listed.
        kind: target of the class that every object must be an instance of.
    """

    def __init__(
        self,
        noun: str,
        group: str,
        targets: Mapping[str, str] | Callable[[], Mapping[str, str]],
        more: Callable[[], Iterable[tuple[str, str]]] = tuple,
        kind: str = "",
    ) -> None:
        self._noun = noun
        self._group = group
        self._local_targets = targets
        self._more = more
        self._kind = kind
        self._loaded: dict[str, T] = {}
        self._broken: dict[str, UsageError] = {}

    @cached_property
    def _targets(self) -> dict[str, str]:
        local_targets = (
            self._local_targets() if callable(self._local_targets) else self._local_targets
        )
        entries = [
            (package_of(each.value), {each.name: each.value})
            for each in entry_points(group=self._group)
        ]
        return join_tables(self._noun, [(_OURS, local_targets), *entries])

    @cached_property
    def _all_targets(self) -> dict[str, str]:
        more = [(package_of(target), {name: target}) for name, target in self._more()]
        known = [(self.package_of(name), {name: target}) for name, target in self._targets.items()]
        self._targets.update(join_tables(self._noun, [*known, *more]))
        return self._targets

    def package_of(self, name: str) -> str:
        """Return the package of the named object; ``agrotools`` for objects that were added directly."""
        return package_of(self._targets[name]) or _OURS

    def add(self, name: str, value: T) -> None:
        """Register an object directly, for the lifetime of the process."""
        self._targets[name] = ""
        self._loaded[name] = value

    def remove(self, name: str) -> None:
        """Remove the named object, for the lifetime of the process."""
        self._targets.pop(name, None)
        self._loaded.pop(name, None)

    def names(self) -> tuple[str, ...]:
        return tuple(self._all_targets)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self._targets or name in self._all_targets

    def get(self, name: str) -> T:
        """Return the named object.

        Raises:
            UsageError: the name is unknown (with the closest ones), its module cannot be imported (with the reason), or
                the object is of another kind.
        """
        if name in self._loaded:
            return self._loaded[name]
        if name not in self:
            raise UsageError(
                f"unknown {self._noun} {name!r}", hint=suggestion(name, sorted(self.names()))
            )
        if name in self._broken:
            raise self._broken[name]
        target = self._targets[name]
        try:
            value: T = imported(target)
        except (
            Exception,
            SystemExit,
        ) as error:  # a third-party package may raise anything on import
            module, reason = target.partition(":")[0], words_of(error)
            if not isinstance(error, ImportError | AttributeError):
                reason = f"{type(error).__name__}: {reason}".removesuffix(": ")
            self._broken[name] = UsageError(
                f"{self._noun} {name!r} cannot be loaded from {module}: {reason}",
                hint=install_command("tools") if library_of(error) else None,
            )
            raise self._broken[name] from error
        if self._kind and not isinstance(value, imported(self._kind)):
            self._broken[name] = UsageError(
                f"{self._noun} {name!r}: {target} is a {type(value).__name__}, not an {self._kind.replace(':', '.')}",
                hint="update its package: the entry point must name such an object (agrotools docs extending)",
            )
            raise self._broken[name]
        self._loaded[name] = value
        return value

    def loaded(self, names: Iterable[str] | None = None) -> list[T]:
        """Return the objects of ``names`` (None: all), without those that cannot be imported."""
        objects: list[T] = []
        for name in self.names() if names is None else names:
            with suppress(UsageError):
                objects.append(self.get(name))
        return objects

    def broken(self, names: Iterable[str] | None = None) -> dict[str, UsageError]:
        """Return the errors of ``names`` (None: all) that cannot be imported, by name."""
        faults: dict[str, UsageError] = {}
        for name in self.names() if names is None else names:
            try:
                self.get(name)
            except UsageError as error:
                faults[name] = error
        return faults


def imported(target: str) -> Any:
    """Return the object of a target ``"package.module:attribute"``; the attribute may be dotted.

    Raises:
        ImportError: the module cannot be imported.
        AttributeError: the module has no such attribute.
    """
    module, _, attribute = target.partition(":")
    return attrgetter(attribute)(import_module(module))


def deferred(target: str, *first: Any) -> Callable[..., Any]:
    """Return a function that imports the target ``"package.module:NAME"`` when called, and calls it with ``first`` and
    its own arguments."""
    return lambda *arguments, **named: imported(target)(*first, *arguments, **named)


def known_packages() -> tuple[PackageTable, ...]:
    """Return the tables of the packages of this distribution.

    Raises:
        UsageError: there is none, because what pip knows of the installation is older than the source code.
    """
    tables = package_tables()
    if not tables:
        raise UsageError(
            "the tools and benchmarks of agrotools are not registered with this Python",
            hint="install it again: pip install -e . in its folder, or pip install --force-reinstall agrotools",
        )
    return tables


def joined_targets(of_table: Callable[[PackageTable], Mapping[str, str]]) -> dict[str, str]:
    """Return the targets of all packages of this distribution, by name."""
    return {name: target for table in known_packages() for name, target in of_table(table).items()}


def function_of(name: str) -> Callable[..., Any]:
    """Return the function that a package offers to the engine under this name, imported now."""
    for table in known_packages():
        if name in table.functions:
            return imported(table.functions[name])
    raise LookupError(f"no package offers {name}")


def _benchmarks_of(table: PackageTable) -> dict[str, str]:
    return {name: each.target for name, each in table.benchmarks.items()}


BENCHMARKS: Registry[Any] = Registry(
    "benchmark",
    "agrotools.benchmarks",
    lambda: joined_targets(_benchmarks_of),
    kind="agrotools.plugin:BenchmarkPlugin",
)
"""Benchmark plug-ins by name; each is a :class:`agrotools.plugin.BenchmarkPlugin`."""

SOURCES: Registry[Any] = Registry(
    "source", "agrotools.sources", lambda: joined_targets(lambda table: table.sources)
)
"""Builders of benchmarks by name, for ``agrotools build --source``.

Each takes the folder of the data set, the folder to write, and a progress callback, and returns the header of the
benchmark.
"""


@contextmanager
def report_plugin_faults(what: str) -> Generator[None]:
    """Report any exception of the block, which runs code of another package, as a fault of ``what``.

    Raises:
        BenchmarkError: the block raised something other than an AgrotoolsError or OSError; names the file and line.
    """
    try:
        yield
    except (AgrotoolsError, OSError):
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise BenchmarkError(
            f"{what}: {type(error).__name__}: {words_of(error)} ({Path(place.filename).name}, line {place.lineno})"
        ) from error
