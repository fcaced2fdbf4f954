"""Command that runs a program of somebody else's, such as an agent, with little of the file system and environment.

Unlike the workers for code (:mod:`agrotools.sandbox.runners`), an agent may use the network, threads and processes,
because it has models to call. It sees the system's programs and libraries, this Python environment without packed
benchmarks, its own code, a folder for the files of its task, an empty home folder, and the variables that are named.
"""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from agrotools.core import UsageError
from agrotools.sandbox.probe import probe

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
_SETTINGS = (
    *("resolv.conf", "hosts", "nsswitch.conf", "host.conf", "gai.conf", "ssl", "pki", "ca-certificates"),
    *("ca-certificates.conf", "localtime", "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mime.types"),
)
_PASSED = ("LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
_TEMPORARY_BYTES = 2**30
HOME = "/tmp/home"


def is_available() -> bool:
    """True if programs can be isolated on this machine: bubblewrap works here."""
    return probe("bubblewrap").holds


def agent_variables(names: Sequence[str]) -> dict[str, str]:
    """Return the environment of an agent: common settings, and the variables with these names.

    Raises:
        UsageError: a variable is not set.
    """
    if lacking := [name for name in names if name not in os.environ]:
        raise UsageError(f"the environment variable {lacking[0]} is not set", hint="set it, or omit its --agent-env")
    passed = {name: os.environ[name] for name in (*_PASSED, *names) if name in os.environ}
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": HOME, "TMPDIR": "/tmp", **passed}


def agent_command(
    command: Sequence[str], variables: Mapping[str, str], *, sealed: bool, readable: Sequence[Path], folder: Path
) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment of an agent's process.

    Variables are never part of the command line, which other users of the machine can read.

    Args:
        variables: its whole environment, but for the home folder of a process that is not sealed.
        sealed: True to run it in bubblewrap.
        readable: files and folders that it may read, besides the system and this Python environment.
        folder: folder of this process that it sees at the same path, read-only; its content may change meanwhile.
    """
    if sealed:
        return [*_bubblewrap(readable, folder), "--", *command], {**variables}
    return [*command], {**variables, "HOME": os.environ.get("HOME", "/")}


def _bubblewrap(readable: Sequence[Path], folder: Path) -> list[str]:
    bwrap = shutil.which("bwrap") or "bwrap"
    argv = [bwrap, "--unshare-user", "--unshare-all", "--share-net", "--new-session", "--die-with-parent"]
    argv += ["--cap-drop", "ALL", "--hostname", "agent", "--proc", "/proc", "--dev", "/dev"]
    argv += ["--size", str(_TEMPORARY_BYTES), "--tmpfs", "/tmp", "--dir", HOME]
    for path in _SYSTEM:
        if os.path.islink(path):  # noqa: PTH114
            argv += ["--symlink", os.readlink(path), path]  # noqa: PTH115
        elif Path(path).exists():
            argv += ["--ro-bind", path, path]
    for name in _SETTINGS:
        argv += ["--ro-bind-try", os.path.realpath(f"/etc/{name}"), f"/etc/{name}"]
    for path in _without_nested([*_python_folders(), *readable]):
        argv += ["--ro-bind", str(path), str(path)]
    for path in hidden_folders():
        argv += ["--tmpfs", str(path)]
    argv += ["--ro-bind", str(folder), str(folder)]
    return [*argv, "--chdir", HOME]


def hidden_folders() -> list[Path]:
    """Return folders of this package that contain answers."""
    spec = find_spec("agrotools")
    roots = [Path(place).resolve() for place in (spec.submodule_search_locations if spec else None) or ()]
    return [root / "data" / "benchmarks" for root in roots if (root / "data" / "benchmarks").is_dir()]


def _python_folders() -> list[Path]:
    """Return the folders of this Python environment, and of the packages that it links to (editable installations)."""
    folders = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent]
    folders += [Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    spec = find_spec("agrotools")
    folders += [Path(place) for place in (spec.submodule_search_locations if spec else None) or ()]
    return folders


def _without_nested(paths: Sequence[Path]) -> list[Path]:
    """Return existing paths, each once and resolved links besides, without those inside others or the system's."""
    given = {Path(os.path.abspath(path)) for path in paths} | {path.resolve() for path in paths}  # noqa: PTH100
    present = sorted(path for path in given if path.exists() and not str(path).startswith(("/usr/", "/lib", "/opt/")))
    return [path for path in present if not any(other in path.parents for other in present)]
