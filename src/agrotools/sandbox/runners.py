"""Isolation of workers: command lines, environments and filters of the runners, best first in :data:`RUNNERS`."""

import errno
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple, cast

from agrotools.core import UsageError
from agrotools.core.systems import HAS_GROUPS, has_poll

Stage = Literal["start", "code", "code_reading_host"]
"""``start``: for a worker that is being set up. ``code``: for untrusted code in a separate file system.
``code_reading_host``: for untrusted code that sees the host's file system and may open nothing for writing."""

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4
_X32 = 0x40000000
_EPERM, _ENOSYS, _ENOTTY = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS, _ERRNO | errno.ENOTTY

_CLONE_THREAD = 0x00010000
_PR_SET_NAME = 15
_FCNTLS = (8, 10, 15, 1024, 1026)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY"""
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX"""
_WRITING = (
    os.O_WRONLY
    | os.O_RDWR
    | os.O_CREAT
    | os.O_TRUNC
    | os.O_APPEND
    | (getattr(os, "O_TMPFILE", 0) & ~getattr(os, "O_DIRECTORY", 0))
)


def assemble(stage: Stage, architecture: str) -> bytes:
    """Return the filter of a stage as an array of ``struct sock_filter``."""
    lines = [
        _line(_LOAD, _ARCHITECTURE),
        _line(_JUMP_EQUAL, AUDIT_ARCHITECTURES[architecture], 1, 0),
        _line(_RETURN, _KILL),
        _line(_LOAD, _NUMBER),
    ]
    if architecture == "x86_64":
        lines += [_line(_JUMP_AT_LEAST, _X32, 0, 1), _line(_RETURN, _KILL)]
    lines += [_line(_JUMP_AT_LEAST, LAST_KNOWN + 1, 0, 1), _line(_RETURN, _ENOSYS)]
    # libc falls back to clone and openat, whose flags a filter can see
    refused = [name for name, call in SYSTEM_CALLS.items() if call.refused in _REFUSED_IN[stage]]
    refusals = dict.fromkeys(refused, _EPERM) | {"clone3": _ENOSYS, "openat2": _ENOSYS}
    for name in sorted(refusals):
        if (value := number(name, architecture)) is not None:
            lines += [_line(_JUMP_EQUAL, value, 0, 1), _line(_RETURN, refusals[name])]
    if stage == "start":
        threads = (
            _line(_JUMP_BITS, _CLONE_THREAD, 1, 0),
            _line(_RETURN, _EPERM),
            _line(_RETURN, _ALLOW),
        )
        lines += _on("clone", architecture, [_argument(0), *threads])
    else:
        lines += _on("ioctl", architecture, _by_value(1, _IOCTLS, listed=_ALLOW, other=_ENOTTY))
        lines += _on("fcntl", architecture, _by_value(1, _FCNTLS, listed=_EPERM, other=_ALLOW))
        lines += _on(
            "prctl", architecture, _by_value(0, (_PR_SET_NAME,), listed=_ALLOW, other=_EPERM)
        )
        lines += _on("prlimit64", architecture, _unless_null(2))
    if stage == "code_reading_host":
        lines += _on("open", architecture, _if_bits(1, _WRITING))
        lines += _on("openat", architecture, _if_bits(2, _WRITING))
    lines.append(_line(_RETURN, _ALLOW))
    return b"".join(lines)


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _on(name: str, architecture: str, body: list[bytes]) -> list[bytes]:
    """Return lines that run ``body``, which ends the filter, for this call only."""
    value = number(name, architecture)
    return [] if value is None else [_line(_JUMP_EQUAL, value, 0, len(body)), *body]


def _argument(index: int, *, high: bool = False) -> bytes:
    return _line(_LOAD, 16 + 8 * index + (4 if high else 0))


def _by_value(index: int, values: Iterable[int], *, listed: int, other: int) -> list[bytes]:
    """Return lines with one verdict if an argument is one of ``values``, and another one otherwise."""
    body = [_argument(index)]
    for value in values:
        body += [_line(_JUMP_EQUAL, value, 0, 1), _line(_RETURN, listed)]
    return [*body, _line(_RETURN, other)]


def _if_bits(index: int, bits: int) -> list[bytes]:
    return [
        _argument(index),
        _line(_JUMP_BITS, bits, 0, 1),
        _line(_RETURN, _EPERM),
        _line(_RETURN, _ALLOW),
    ]


def _unless_null(index: int) -> list[bytes]:
    """Return lines that allow only a NULL pointer, with which a call can query but not set values."""
    return [
        _argument(index),
        _line(_JUMP_EQUAL, 0, 0, 3),
        _argument(index, high=True),
        _line(_JUMP_EQUAL, 0, 0, 1),
        _line(_RETURN, _ALLOW),
        _line(_RETURN, _EPERM),
    ]


LAST_KNOWN = 450
"""Highest known call number; newer calls fail as unknown."""

Refused = Literal["always", "code", "host", ""]
"""Stage from which on a call is refused.

``always``: from the first instruction of a worker. This includes the file calls that Landlock does not check (chmod,
utime...) and calls on other processes, because without a process namespace they could reach this one. ``code``: once
the worker is set up, because bubblewrap and the worker itself need them before. This includes threads (clone): code
that draws or solves starts none, and many small ones would exhaust the process numbers of a machine. ``host``: if the
worker sees the host's file system, which it may only read. Empty: allowed, or decided by the arguments.
"""
_REFUSED_IN: dict[Stage, tuple[Refused, ...]] = {
    "start": ("always",),
    "code": ("always", "code"),
    "code_reading_host": ("always", "code", "host"),
}


class SystemCall(NamedTuple):
    """Numbers of a call, None on an architecture without it, and the stage from which on it is refused."""

    x86_64: int | None
    aarch64: int | None
    refused: Refused


def _read_system_calls() -> dict[str, SystemCall]:
    calls: dict[str, SystemCall] = {}
    for line in Path(__file__).with_name("system_calls.csv").read_text("ascii").splitlines()[1:]:
        name, *numbers, refused = line.split(",")
        x86_64, aarch64 = (int(number) if number else None for number in numbers)
        calls[name] = SystemCall(x86_64, aarch64, cast(Refused, refused))
    return calls


SYSTEM_CALLS = _read_system_calls()
AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def machine() -> str | None:
    """Return ``x86_64`` or ``aarch64``; None if system calls cannot be filtered on this machine."""
    name = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine()
    )
    return name if name in AUDIT_ARCHITECTURES and platform.system() == "Linux" else None


def number(name: str, architecture: str) -> int | None:
    """Return the number of a call; None if the architecture does not have it."""
    return SYSTEM_CALLS[name].x86_64 if architecture == "x86_64" else SYSTEM_CALLS[name].aarch64


WARM = ("numpy", "matplotlib", "sympy")
"""Packages that a worker imports before it receives its code."""
_IMPORTABLE = (
    *WARM,
    *"mpl_toolkits contourpy cycler dateutil fontTools kiwisolver packaging PIL pyparsing six".split(),
    *"mpmath scipy pandas pytz tzdata seaborn".split(),
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
def readable() -> Readable:
    """Return the paths on this machine that a worker may read."""
    prefix = Path(sys.base_prefix).resolve()
    paths = [
        *_LIBRARIES,
        interpreter(),
        str(prefix / "lib"),
        str(prefix / "lib64"),
        sysconfig.get_path("stdlib"),
    ]
    paths += [
        entry for entry in os.environ.get(_LINKED, "").split(os.pathsep) if entry.startswith("/")
    ]
    folders = _outermost(paths)
    parts = sysconfig.get_python_version()
    hidden = [entry for entry in sys.path if Path(entry).name in _PACKAGE_FOLDERS]
    for root in (prefix, Path("/usr"), Path("/usr/local")):
        hidden += [
            str(root / f"lib/{python}/{name}")
            for python in ("python3", f"python{parts}")
            for name in _PACKAGE_FOLDERS
        ]
    within = [
        path for path in _outermost(hidden) if any(_inside(path, folder) for folder in folders)
    ]
    packages = dict.fromkeys(place for places in _packages().values() for place in places)
    return Readable(folders, tuple(within), tuple(packages))


def environment() -> dict[str, str]:
    """Return the complete environment of a worker."""
    variables = {"HOME": "/tmp", "LC_ALL": "C.UTF-8", "TZ": "UTC", "MPLBACKEND": "Agg"}
    variables |= {"SOURCE_DATE_EPOCH": "0", "PYTHONHASHSEED": "0"}
    variables |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
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
    real_paths = sorted({os.path.realpath(path) for path in paths if Path(path).exists()} - {"/"})
    return tuple(
        path for path in real_paths if not any(_inside(path, other) for other in real_paths)
    )


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
        raise UsageError(
            f"there is no sandbox {runner!r}", hint=f"one of {', '.join((*RUNNERS, NONE))}"
        )
    if not (HAS_GROUPS and has_poll()):
        return (
            "it needs Linux (without isolation, macOS will do)",
            "use Linux, on Windows also in its subsystem for Linux (WSL) or a container",
        )
    if runner == NONE:
        return None
    if machine() is None:
        return (
            "it needs Linux on x86_64 or aarch64",
            "use such a machine, a virtual one or a container",
        )
    if runner == "bubblewrap" and shutil.which("bwrap") is None:
        return (
            "the program bwrap is not there",
            "apt-get install bubblewrap (or dnf, pacman, apk: the same name)",
        )
    return None


def start(
    runner: str, result_fd: int, filter_fd: int, *, warm: tuple[str, ...], folder: str | None = None
) -> Start:
    """Return the command that starts a worker of ``runner``, which writes its frames to ``result_fd``.

    ``folder`` becomes its working folder if the runner does not isolate it.
    """
    architecture = machine() or "x86_64"
    config = {
        "result_fd": result_fd,
        "parent": 0 if runner == "bubblewrap" else os.getpid(),
        "packages": {name: str(Path(places[0]).parent) for name, places in _packages().items()},
        "warm": list(warm),
        "read_only": None,
        "drop": runner == "landlock",
        "calls": {name: number(name, architecture) for name in _CALLS},
    }
    if runner == "bubblewrap":
        filters = assemble("start", architecture), assemble("code", architecture)
        return Start(_bubblewrap(filter_fd, json.dumps(config)), {}, "/", *filters)
    if runner == "landlock":
        read, listed = readable().expand()
        config["read_only"] = {
            "read": [*read, str(INSIDE), "/dev/null", "/dev/urandom"],
            "list": listed,
        }
    script = _python(str(INSIDE / "worker.py"), json.dumps(config))
    code_filter = assemble("code_reading_host", architecture) if runner == "landlock" else b""
    return Start(script, environment(), folder or "/", code_filter=code_filter)


def _python(script: str, config: str) -> list[str]:
    return [interpreter(), "-S", "-s", "-B", script, config]


def _bubblewrap(filter_fd: int, config: str) -> list[str]:
    argv = [
        _bwrap(),
        "--unshare-user",
        "--unshare-all",
        "--new-session",
        "--die-with-parent",
        "--clearenv",
    ]
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
    return [
        *argv,
        "--remount-ro",
        "/",
        "--chdir",
        "/tmp",
        "--",
        *_python(f"{_INSIDE}/worker.py", config),
    ]


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
