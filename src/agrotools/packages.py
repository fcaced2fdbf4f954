"""The packages of this distribution that build on the engine: what each adds is one light table behind one entry point.

The engine imports none of them. It finds tools, benchmarks, sources and commands by name in the tables, and asks for a
function of a package where it needs one (:func:`agrotools.core.registry.function_of`). This module and the tables
import nothing else, because the help of the command reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

GROUP = "agrotools.packages"
"""Group of the entry points. Only this distribution may use it; strangers add tools and benchmarks in other groups."""
_DISTRIBUTION = "agrotools"


class BuiltIn(NamedTuple):
    """Plug-in of a benchmark. It is imported for computing metrics only if a sample has one of ``slot_types``."""

    target: str
    slot_types: frozenset[str] = frozenset()


class CommandEntry(NamedTuple):
    """A command, or group of commands: its target ``"package.module:NAME"``, and its line in the help."""

    target: str
    summary: str


@dataclass(frozen=True)
class PackageTable:
    """Table of what a package adds to the engine. Targets (``"package.module:NAME"``) are imported when first used."""

    package: str
    tools: Mapping[str, str] = field(default_factory=dict[str, str])
    """Target of each tool."""
    benchmarks: Mapping[str, BuiltIn] = field(default_factory=dict[str, BuiltIn])
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """Target of each source of ``agrotools build --source``."""
    commands: Mapping[str, Mapping[str, CommandEntry]] = field(
        default_factory=dict[str, Mapping[str, CommandEntry]]
    )
    """Commands by the group of the help that they stand in."""
    pictures: Mapping[str, str] = field(default_factory=dict[str, str])
    """Target of each collection of pictures that ``agrotools benchmarks get`` downloads and tools learn from."""
    answers: tuple[str, ...] = ()
    """Folders of the package from which right answers could be read: agents in a sandbox do not see them."""
    functions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Target of each function that the engine asks for by name."""

    @property
    def data(self) -> Path:
        """Folder of the data files of the package."""
        return Path(str(files(self.package))) / "data"


@cache
def package_tables() -> tuple[PackageTable, ...]:
    """Return the tables of the packages of this distribution, in the order of their names; empty if there are none."""
    entries = [
        entry
        for entry in entry_points(group=GROUP)
        if entry.dist is None or entry.dist.name == _DISTRIBUTION
    ]
    return tuple(entry.load() for entry in sorted(entries, key=lambda entry: entry.name))


@cache
def built_in_benchmarks() -> dict[str, BuiltIn]:
    """Return the benchmarks of this distribution, by name."""
    return {name: each for table in package_tables() for name, each in table.benchmarks.items()}


@cache
def answer_folders_of_packages() -> dict[str, tuple[str, ...]]:
    """Return the folders of each package from which right answers could be read, by the name of the package."""
    return {table.package: table.answers for table in package_tables()}


def packaged_file(name: str) -> Path | None:
    """Return a file of this name in the data of a package; None if no package has one."""
    for table in package_tables():
        path = table.data / name
        if path.is_file():
            return path
    return None


def our_folders() -> list[Path]:
    """Return the folders of all packages of this distribution, the engine's first."""
    return [Path(str(files(_DISTRIBUTION))), *(table.data.parent for table in package_tables())]


def is_ours(package: str) -> bool:
    """Return True if a top-level package belongs to this distribution."""
    return package == _DISTRIBUTION or any(table.package == package for table in package_tables())
