"""Isolation of workers: command lines, environments and filters of the runners, best first in :data:`RUNNERS`."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from agrotools.core import UsageError
from agrotools.sandbox.seccomp import assemble, machine, number

WARM = ("numpy", "matplotlib", "sympy")
"""Packages that a worker imports before it receives its code."""
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
"""Folders of shared libraries next to a package that are not named ``<package>.libs``."""
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_LINKED = "LD_LIBRARY_PATH"

INSIDE = Path(__file__).parent / "inside"
"""Folder of the code that runs inside a worker."""


@dataclass(frozen=True)
class Readable:
    """Resolved paths that a worker may read: ``folders`` (or files) without ``hidden``, and ``packages`` inside
    ``hidden``."""

    folders: tuple[str, ...]
    hidden: tuple[str, ...]
    packages: tuple[str, ...]

    def expand(self) -> tuple[list[str], list[str]]:
        """Return readable paths without exclusions, and the folders whose entries may be listed."""
        read, listed = list(self.packages), [str(Path(package).parent) for package in self.packages]
        todo = list(self.folders)
        while todo:
            path = todo.pop()
            if path in self.hidden:
                continue
            if any(_inside(hidden, path) for hidden in self.hidden):
                listed.append(path)
                with os.scandir(path) as entries:
                    todo += [entry.path for entry in entries if not entry.is_symlink()]
            else:
                read.append(path)
        return read, list(dict.fromkeys(listed))


def interpreter() -> str:
    """Return the path of the Python interpreter of this process, outside its virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@cache
def package_folders() -> dict[str, str]:
    """Return the parent folder of each installed package that code may import."""
    return {name: str(Path(places[0]).parent) for name, places in _packages().items()}


@cache
def readable() -> Readable:
    """Return the paths on this machine that a worker may read."""
    prefix = Path(sys.base_prefix).resolve()
    paths = [*_LIBRARIES, interpreter(), str(prefix / "lib"), str(prefix / "lib64"), sysconfig.get_path("stdlib")]
    paths += [entry for entry in os.environ.get(_LINKED, "").split(os.pathsep) if entry.startswith("/")]
    folders = _outermost(paths)
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
    """Return the complete environment of a worker."""
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
    if linked := os.environ.get(_LINKED):  # some Python installations do not start without it
        variables[_LINKED] = linked
    return variables


@cache
def _packages() -> dict[str, tuple[str, ...]]:
    """Return the paths of each installed package that code may import, and of its shared libraries."""
    files_of_package: dict[str, tuple[str, ...]] = {}
    for name in _IMPORTABLE:
        spec = find_spec(name)
        places = list(spec.submodule_search_locations or ()) or [spec.origin] if spec else []
        real = [Path(os.path.realpath(place)) for place in places if place]
        real += [place.parent / _BESIDE.get(name, f"{name}.libs") for place in real]
        if real:
            files_of_package[name] = tuple(str(place) for place in real if place.exists())
    return files_of_package


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Return existing paths, with links resolved and without paths inside others."""
    real_paths = sorted({os.path.realpath(path) for path in paths if Path(path).exists()} - {"/"})
    return tuple(path for path in real_paths if not any(_inside(path, other) for other in real_paths))


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder + "/")


RUNNERS = ("bubblewrap", "landlock")
NONE = "none"
"""No isolation, only resource limits. Used only if it is named explicitly."""

TEMPORARY_BYTES = 32 * 2**20
"""Bytes that a worker in bubblewrap may write to ``/tmp``, which is in memory and discarded at the end."""
_INSIDE = "/sandbox"
_CALLS = ("seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")
_DISABLE_USERNS_SINCE = (0, 8)


@dataclass(frozen=True)
class Start:
    """Command, environment and filters with which a worker is started."""

    argv: list[str]
    environment: Mapping[str, str]
    folder: str
    """Working folder of the new process."""
    filter: bytes = b""
    """Filter that bubblewrap reads from the descriptor ``filter_fd``."""
    code_filter: bytes = field(default=b"", repr=False)
    """Filter that the worker installs before it runs the code."""


def missing(runner: str) -> tuple[str, str] | None:
    """Return a missing requirement of a runner and how to provide it; None if none is known to be missing.

    Raises:
        UsageError: the runner is unknown.
    """
    if runner not in (*RUNNERS, NONE):
        raise UsageError(f"there is no sandbox {runner!r}", hint=f"one of {', '.join((*RUNNERS, NONE))}")
    if runner == NONE:
        return None
    if machine() is None:
        return "it needs Linux on x86_64 or aarch64", "use such a machine, a virtual one or a container"
    if runner == "bubblewrap" and shutil.which("bwrap") is None:
        return "the program bwrap is not there", "apt-get install bubblewrap (or dnf, pacman, apk: the same name)"
    return None


def start(runner: str, result_fd: int, filter_fd: int, *, warm: tuple[str, ...], folder: str | None = None) -> Start:
    """Return the command that starts a worker of ``runner``, which writes its frames to ``result_fd``.

    ``folder`` becomes its working folder if the runner does not isolate it.
    """
    architecture = machine() or "x86_64"
    config = {
        "result_fd": result_fd,
        "parent": 0 if runner == "bubblewrap" else os.getpid(),
        "packages": package_folders(),
        "warm": list(warm),
        "read_only": None,
        "drop": runner == "landlock",
        "calls": {name: number(name, architecture) for name in _CALLS},
    }
    if runner == "bubblewrap":
        return Start(
            _bubblewrap(filter_fd, json.dumps(config)),
            {},
            "/",
            assemble("start", architecture),
            assemble("code", architecture),
        )
    if runner == "landlock":
        read, listed = readable().expand()
        config["read_only"] = {"read": [*read, str(INSIDE), "/dev/null", "/dev/urandom"], "list": listed}
    script = _python(str(INSIDE / "worker.py"), json.dumps(config))
    code_filter = assemble("code_reading_host", architecture) if runner == "landlock" else b""
    return Start(script, environment(), folder or "/", code_filter=code_filter)


def _python(script: str, config: str) -> list[str]:
    return [interpreter(), "-S", "-s", "-B", script, config]


def _bubblewrap(filter_fd: int, config: str) -> list[str]:
    argv = [_bwrap(), "--unshare-user", "--unshare-all", "--new-session", "--die-with-parent", "--clearenv"]
    if _version() >= _DISABLE_USERNS_SINCE:
        argv += ["--disable-userns"]
    argv += ["--cap-drop", "ALL", "--hostname", "sandbox", "--seccomp", str(filter_fd)]
    argv += ["--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp"]
    seen = readable()
    for path in seen.folders:
        argv += ["--ro-bind", path, path]
    for path in seen.hidden:
        argv += ["--tmpfs", path]
    for path in seen.packages:
        argv += ["--ro-bind", path, path]
    for path in seen.hidden:
        argv += ["--remount-ro", path]
    for name in ("/lib", "/lib32", "/lib64"):
        if os.path.islink(name):  # noqa: PTH114
            argv += ["--symlink", os.readlink(name), name]  # noqa: PTH115
    argv += ["--ro-bind", str(INSIDE), _INSIDE]
    argv += ["--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"]
    for name, value in environment().items():
        argv += ["--setenv", name, value]
    return [*argv, "--remount-ro", "/", "--chdir", "/tmp", "--", *_python(f"{_INSIDE}/worker.py", config)]


@cache
def _bwrap() -> str:
    path = shutil.which("bwrap")
    return str(Path(path).resolve()) if path else "bwrap"


@cache
def _version() -> tuple[int, ...]:
    try:
        reported = subprocess.run(
            [_bwrap(), "--version"], env={}, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return (0,)
    numbers = re.search(r"(\d+)\.(\d+)", reported.stdout)
    return tuple(map(int, numbers.groups())) if numbers else (0,)
