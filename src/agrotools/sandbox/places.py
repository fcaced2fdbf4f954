"""What of this machine a worker may read: the interpreter, its libraries and the packages that code may import.

Of folders of packages it sees nothing else: this package among others, with what the answers to its questions are.
"""

import os
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

WARM = ("numpy", "matplotlib", "sympy")
"""What a worker imports before it gets its code."""
_IMPORTABLE = (
    *WARM,
    *(
        "mpl_toolkits",
        "contourpy",
        "cycler",
        "dateutil",
        "fontTools",
        "kiwisolver",
        "packaging",
        "PIL",
        "pyparsing",
        "six",
    ),
    *("mpmath", "scipy", "pandas", "pytz", "tzdata", "seaborn"),
)
_BESIDE = {"PIL": "pillow.libs"}
"""Folders of shared libraries beside a package that are not named ``<package>.libs``."""
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_LINKED = "LD_LIBRARY_PATH"

INSIDE = Path(__file__).parent / "inside"
"""The worker's own code."""


@dataclass(frozen=True)
class Readable:
    """Real paths. To be seen are ``folders`` (or files) without ``hidden``, and ``packages`` even there."""

    folders: tuple[str, ...]
    hidden: tuple[str, ...]
    packages: tuple[str, ...]

    def pieces(self) -> tuple[list[str], list[str]]:
        """The same without anything to take away: what may be read, and folders whose entries may be listed."""
        read, listed = list(self.packages), [str(Path(package).parent) for package in self.packages]
        todo = list(self.folders)
        while todo:
            path = todo.pop()
            if path in self.hidden:
                continue
            if any(_inside(hidden, path) for hidden in self.hidden):
                listed.append(path)
                todo += [entry.path for entry in os.scandir(path) if not entry.is_symlink()]
            else:
                read.append(path)
        return read, list(dict.fromkeys(listed))


def interpreter() -> str:
    """The Python that this process runs on, without its virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@cache
def package_folders() -> dict[str, str]:
    """The folder in which each importable package lies, of those that are installed."""
    return {name: str(Path(places[0]).parent) for name, places in _packages().items()}


@cache
def readable() -> Readable:
    """What exists of it on this machine."""
    prefix = Path(sys.base_prefix).resolve()
    wanted = [*_LIBRARIES, interpreter(), str(prefix / "lib"), str(prefix / "lib64"), sysconfig.get_path("stdlib")]
    wanted += [entry for entry in os.environ.get(_LINKED, "").split(os.pathsep) if entry.startswith("/")]
    folders = _outermost(wanted)
    parts = sysconfig.get_python_version()
    hidden = [entry for entry in sys.path if Path(entry).name in _PACKAGE_FOLDERS]
    for root in (prefix, Path("/usr"), Path("/usr/local")):
        hidden += [
            str(root / f"lib/{python}/{name}") for python in ("python3", f"python{parts}") for name in _PACKAGE_FOLDERS
        ]
    within = [path for path in _outermost(hidden) if any(_inside(path, folder) for folder in folders)]
    packages = dict.fromkeys(place for places in _packages().values() for place in places)
    return Readable(folders, tuple(within), tuple(packages))


def environment() -> dict[str, str]:
    """All the environment that a worker has."""
    variables = {
        "HOME": "/tmp",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "MPLBACKEND": "Agg",
        "SOURCE_DATE_EPOCH": "0",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    if linked := os.environ.get(_LINKED):  # without it some installations of Python do not start
        variables[_LINKED] = linked
    return variables


@cache
def _packages() -> dict[str, tuple[str, ...]]:
    """Where each importable package that is installed lies, and its shared libraries."""
    found: dict[str, tuple[str, ...]] = {}
    for name in _IMPORTABLE:
        spec = find_spec(name)
        places = list(spec.submodule_search_locations or ()) or [spec.origin] if spec else []
        real = [Path(os.path.realpath(place)) for place in places if place]
        real += [place.parent / _BESIDE.get(name, f"{name}.libs") for place in real]
        if real:
            found[name] = tuple(str(place) for place in real if place.exists())
    return found


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Those that exist, links resolved, without those that lie inside of others."""
    found = sorted({os.path.realpath(path) for path in paths if Path(path).exists()} - {"/"})
    return tuple(path for path in found if not any(_inside(path, other) for other in found))


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder + "/")
