"""The ways to keep a worker in: what to start, with which environment and filters. Best first in :data:`RUNNERS`."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from agrotools.core import UsageError
from agrotools.sandbox import bpf, places
from agrotools.sandbox.syscalls import machine, number

RUNNERS = ("bubblewrap", "landlock")
NONE = "none"
"""No isolation: limits of resources only. Used only where somebody asks for it by name."""

TEMPORARY_BYTES = 32 * 2**20
"""What a worker in bubblewrap may write to ``/tmp``, in memory, gone when it ends."""
_INSIDE = "/sandbox"
_CALLS = (
    "seccomp",
    "landlock_create_ruleset",
    "landlock_add_rule",
    "landlock_restrict_self",
)
_DISABLE_USERNS_SINCE = (0, 8)


@dataclass(frozen=True)
class Start:
    """How a worker is started."""

    argv: list[str]
    environment: Mapping[str, str]
    folder: str
    """working folder of the new process"""
    filter: bytes = b""
    """what bubblewrap reads from the descriptor ``filter_fd``"""
    code_filter: bytes = field(default=b"", repr=False)
    """what the worker installs before it runs the code"""


def missing(runner: str) -> tuple[str, str] | None:
    """What this runner lacks here, and what to do about it; None where nothing is known to be lacking.

    Raises:
        UsageError: there is no such runner.
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
    """How to start a worker of ``runner`` that writes its frames to ``result_fd``.

    ``folder``, of ours, becomes its working folder where the runner gives it none of its own.
    """
    architecture = machine() or "x86_64"
    config = {
        "result_fd": result_fd,
        "parent": 0 if runner == "bubblewrap" else os.getpid(),
        "packages": places.package_folders(),
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
            bpf.assemble("start", architecture),
            bpf.assemble("code", architecture),
        )
    if runner == "landlock":
        read, listed = places.readable().pieces()
        own = [str(places.INSIDE), "/dev/null", "/dev/urandom", *([folder] if folder else [])]
        config["read_only"] = {"read": [*read, *own], "list": listed}
    script = _python(str(places.INSIDE / "worker.py"), json.dumps(config))
    code_filter = bpf.assemble("code_reading_host", architecture) if runner == "landlock" else b""
    return Start(script, places.environment(), folder or "/", code_filter=code_filter)


def _python(script: str, config: str) -> list[str]:
    return [places.interpreter(), "-S", "-s", "-B", script, config]


def _bubblewrap(filter_fd: int, config: str) -> list[str]:
    argv = [_bwrap(), "--unshare-user", "--unshare-all", "--new-session", "--die-with-parent", "--clearenv"]
    if _version() >= _DISABLE_USERNS_SINCE:
        argv += ["--disable-userns"]
    argv += ["--cap-drop", "ALL", "--hostname", "sandbox", "--seccomp", str(filter_fd)]
    argv += ["--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp"]
    seen = places.readable()
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
    argv += ["--ro-bind", str(places.INSIDE), _INSIDE]
    argv += ["--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"]
    for name, value in places.environment().items():
        argv += ["--setenv", name, value]
    return [*argv, "--remount-ro", "/", "--chdir", "/tmp", "--", *_python(f"{_INSIDE}/worker.py", config)]


@cache
def _bwrap() -> str:
    found = shutil.which("bwrap")
    return str(Path(found).resolve()) if found else "bwrap"


@cache
def _version() -> tuple[int, ...]:
    try:
        said = subprocess.run([_bwrap(), "--version"], env={}, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return (0,)
    numbers = re.search(r"(\d+)\.(\d+)", said.stdout)
    return tuple(map(int, numbers.groups())) if numbers else (0,)


def needs_folder(runner: str, inputs: bool) -> bool:
    """Whether the job needs a folder of ours: without a file system of its own a worker has nowhere to put files."""
    return runner == NONE or (runner == "landlock" and inputs)
