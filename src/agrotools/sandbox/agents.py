"""Command that runs a program of somebody else's, such as an agent, with little of the file system and environment.

Unlike the workers for code (:mod:`agrotools.sandbox.runners`), an agent may use the network, threads and processes,
because it has models to call. It sees the system's programs and libraries, the programs and libraries of this Python
environment, its own code, a folder for the files of its task, an empty home folder, and the variables that are named.
Folders with answers among them are empty there: packed benchmarks of any installed copy of this package, run folders,
benchmark folders, and the cache.
"""

import asyncio
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agrotools.core import UsageError
from agrotools.core.files import MANIFEST_COPY, MANIFEST_FILE, RECORDS_FILE
from agrotools.packages import answer_folders_of_packages, our_folders
from agrotools.sandbox.running import probe

_PARTS = ("bin", "sbin", "lib", "lib32", "lib64", "libexec", "include", "share", "etc", "ssl")
"""Folders of the system and of Python that hold programs and libraries; projects may be beside them."""
_SYSTEM = (
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    *(f"/usr/{part}" for part in _PARTS),
    *(f"/usr/local/{part}" for part in (*_PARTS, "cuda")),
)
_MOST_FOLDERS = 50_000
"""Folders below the paths of an agent that are searched for answers; with more, the paths are refused."""
_SETTINGS = (
    "resolv.conf",
    "hosts",
    "nsswitch.conf",
    "host.conf",
    "gai.conf",
    "ssl",
    "pki",
    "ca-certificates",
    "ca-certificates.conf",
    "localtime",
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "mime.types",
)
_PASSED = ("LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
_ANSWERS = (
    (MANIFEST_FILE, RECORDS_FILE),
    (MANIFEST_COPY, RECORDS_FILE),
    ("benchmark.toml", "samples.jsonl"),
)
_TEMPORARY_BYTES = 2**30
HOME = "/tmp/home"
_LONGEST_LINE = 64 * 2**20
_MOST_HASHED = 64 * 2**20
_NOT_CODE = frozenset({"node_modules", "site-packages", "runs"})
_VARIABLES = {"url": "OPENAI_BASE_URL", "key": "OPENAI_API_KEY", "model": "OPENAI_MODEL"}
"""Environment variables by which OpenAI's clients find the endpoint of a task, and its model."""


def is_available() -> bool:
    """True if programs can be isolated on this machine: bubblewrap works here."""
    return probe("bubblewrap").holds


def agent_variables(names: Sequence[str]) -> dict[str, str]:
    """Return the environment of an agent: common settings, and the variables with these names.

    Raises:
        UsageError: a variable is not set.
    """
    if lacking := [name for name in names if name not in os.environ]:
        raise UsageError(
            f"the environment variable {lacking[0]} is not set",
            hint="set it, or omit its --agent-env",
        )
    passed = {name: os.environ[name] for name in (*_PASSED, *names) if name in os.environ}
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": HOME, "TMPDIR": "/tmp", **passed}


def _bubblewrap(
    readable: Sequence[Path],
    folder: Path,
    hidden: Sequence[Path],
    *,
    has_network: bool,
    works_in_folder: bool,
) -> list[str]:
    bwrap = shutil.which("bwrap") or "bwrap"
    argv = [bwrap, "--unshare-user", "--unshare-all", "--new-session", "--die-with-parent"]
    argv += ["--share-net"] if has_network else []
    argv += ["--cap-drop", "ALL", "--hostname", "agent", "--proc", "/proc", "--dev", "/dev"]
    argv += ["--size", str(_TEMPORARY_BYTES), "--tmpfs", "/tmp", "--dir", HOME]
    for path in _SYSTEM:
        if os.path.islink(path):  # noqa: PTH114
            argv += ["--symlink", os.readlink(path), path]  # noqa: PTH115
        elif Path(path).exists():
            argv += ["--ro-bind", path, path]
    for name in _SETTINGS:
        argv += ["--ro-bind-try", os.path.realpath(f"/etc/{name}"), f"/etc/{name}"]
    bound = _without_nested([*_python_folders(), *readable])
    for path in bound:
        argv += ["--ro-bind", str(path), str(path)]
    for path in {*_of_packages(bound), *hidden}:
        with suppress(OSError):
            path.mkdir(parents=True, exist_ok=True)  # one that was made later would not be hidden
        argv += ["--tmpfs", str(path)]
    argv += ["--bind" if works_in_folder else "--ro-bind", str(folder), str(folder)]
    return [*argv, "--chdir", str(folder) if works_in_folder else HOME]


def answer_folders(readable: Sequence[Path], known: Sequence[Path] = ()) -> list[Path]:
    """Return the folders below ``readable`` that hold answers: run folders, benchmark folders, those of the package.

    Args:
        readable: files and folders that an agent may read.
        known: folders that hold answers whatever is in them, such as that of the benchmark and the cache.

    Raises:
        UsageError: a readable path is in such a folder, or there are too many folders to look into.
    """
    given = {path.resolve() for path in readable}
    apart = [path.resolve() for path in known]
    for path in sorted(given):
        for place in (path, *path.parents):
            if place in apart or _holds_answers(place):
                raise UsageError(
                    f"an agent may not read {path}, which is in {place}",
                    hint="keep answers out of it",
                )
    found = [path for path in apart if any(root in path.parents for root in given)]
    n_folders = 0
    for root in sorted(path for path in given if path.is_dir()):
        for place, names, _ in os.walk(root):
            n_folders += 1
            if n_folders > _MOST_FOLDERS:
                raise UsageError(
                    f"{root} has too many folders to look for answers in them",
                    hint="give narrower --agent-path",
                )
            here = Path(place)
            if _holds_answers(here):
                # Later runs are put beside earlier ones.
                is_given = any(path.is_relative_to(here.parent) for path in given)
                beside = here.parent if here.parent.name == "runs" and not is_given else here
                found.append(beside)
                names.clear()
            else:
                found += _of_package(here)
    return sorted(set(found))


def _holds_answers(folder: Path) -> bool:
    return any(all((folder / name).exists() for name in names) for names in _ANSWERS)


def _of_package(copy: Path) -> list[Path]:
    """Return the folders with answers in a copy of one of our packages; none of any other folder.

    These are packed benchmarks, and the code that draws scenes and their truth again.
    """
    names = answer_folders_of_packages().get(copy.name, ())
    return [copy / name for name in names if (copy / name).is_dir()]


def _of_packages(bound: Sequence[Path]) -> list[Path]:
    """Return the folders with answers of every copy of our packages below the system and Python's folders."""
    copies = {folder.resolve() for folder in our_folders()}
    for root in (*map(Path, _SYSTEM), *bound):
        places = [root] if root.name.endswith("-packages") else [*root.glob("python3*/*-packages")]
        copies |= {place / package for place in places for package in answer_folders_of_packages()}
    return [folder for copy in copies for folder in _of_package(copy)]


def interpreter_of(program: Path) -> tuple[Path, list[Path]]:
    """Return the program to start, and folders that it needs.

    For a command named python these are the interpreter that it starts (pyenv puts scripts in its place) and the
    programs and libraries of its environment.
    """
    if not re.fullmatch(r"python[\d.]*", program.name):
        return program, []
    code = "import sys; print(sys.executable, sys.prefix, sys.base_prefix, sep='\\n')"
    try:
        asked = subprocess.run(
            [program, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=True
        )
        executable, *prefixes = asked.stdout.strip().splitlines()
    except (OSError, ValueError, subprocess.SubprocessError):
        return program, []
    return Path(executable), _environment_folders(map(Path, prefixes))


def _environment_folders(prefixes: Iterable[Path]) -> list[Path]:
    return [prefix / part for prefix in prefixes for part in (*_PARTS, "pyvenv.cfg")]


def _python_folders() -> list[Path]:
    """Return the folders of this Python environment, and of the packages that it links to (editable installations)."""
    prefixes = {Path(prefix) for prefix in (sys.prefix, sys.base_prefix)}
    folders = _environment_folders(prefixes)
    folders += [Path(sys.executable).resolve().parent]
    folders += [
        Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")
    ]
    return [*folders, *our_folders()]


def _without_nested(paths: Sequence[Path]) -> list[Path]:
    """Return existing paths, each once and resolved links besides, without those inside others or the system's."""
    given = {Path(os.path.abspath(path)) for path in paths} | {path.resolve() for path in paths}  # noqa: PTH100
    system = [Path(path) for path in _SYSTEM]
    present = sorted(
        path
        for path in given
        if path.exists() and not any(path.is_relative_to(each) for each in system)
    )
    return [path for path in present if not any(other in path.parents for other in present)]


@dataclass(eq=False)
class Isolation:
    """Processes of an agent: what they may read, and folders for the files of their tasks.

    Args:
        sealed: True to isolate them with bubblewrap.
        variables: names of environment variables that they get.
        readable: files and folders that they may read, besides the system and their own folder.
        answers: folders with answers, besides those that are found below ``readable``.
        has_network: False to keep sealed processes off the network; for tools, which have no model to call.
        works_in_folder: True if processes start in their folder, and may write to it; for tools, which make files.
    """

    sealed: bool
    variables: Sequence[str] = ()
    readable: Sequence[Path] = ()
    answers: Sequence[Path] = ()
    has_network: bool = True
    works_in_folder: bool = False
    _hidden: list[Path] | None = None
    _folders: tempfile.TemporaryDirectory[str] | None = None

    def add_folder(self) -> Path:
        """Return a new folder."""
        self._folders = self._folders or tempfile.TemporaryDirectory(
            prefix="agrotools-agents-", ignore_cleanup_errors=True
        )
        return Path(tempfile.mkdtemp(dir=self._folders.name))

    async def start(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        endpoint: Mapping[str, str],
        folder: Path,
    ) -> asyncio.subprocess.Process:
        """Start a process with pipes, in a session of its own.

        Args:
            variables: further environment variables.
            endpoint: endpoint of its task; empty for none.
            folder: its folder, which it may read.
        """
        words, environment = self.command(command, folder)
        # Variables are never part of the command line, which other users of the machine can read.
        environment |= {
            **variables,
            **{_VARIABLES[name]: value for name, value in endpoint.items()},
        }
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *words,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=environment,
            cwd=folder if self.works_in_folder else None,
            limit=_LONGEST_LINE,
            start_new_session=True,
        )

    def command(self, command: Sequence[str], folder: Path) -> tuple[list[str], dict[str, str]]:
        """Return the command line and the environment of a process that sees ``folder``."""
        environment = agent_variables(self.variables)
        if not self.sealed:
            return [*command], environment | {"HOME": os.environ.get("HOME", "/")}
        if self._hidden is None:
            self._hidden = answer_folders(self.readable, self.answers)
        isolated = _bubblewrap(
            self.readable,
            folder,
            self._hidden,
            has_network=self.has_network,
            works_in_folder=self.works_in_folder,
        )
        return [*isolated, "--", *command], environment

    def close(self) -> None:
        """Remove all folders."""
        if self._folders is not None:
            self._folders.cleanup()
            self._folders = None


def code_hash(name: str, code: Sequence[Path]) -> str:
    """Return the SHA-256 over a name and files, but for hidden ones, caches and answers; beyond 64 MiB, their sizes."""
    digest = hashlib.sha256(name.encode())
    n_bytes = 0
    skipped = {path.resolve() for path in answer_folders(code)}
    for root in code:
        for path in sorted(_files_below(root, skipped)):
            n_bytes += path.stat().st_size
            content = (
                path.read_bytes() if n_bytes <= _MOST_HASHED else f"{path.stat().st_size}".encode()
            )
            digest.update(f"{path.relative_to(root)}\0".encode() + content)
    return digest.hexdigest()


def _files_below(root: Path, skipped: AbstractSet[Path]) -> Iterator[Path]:
    if root.is_file():
        yield root
    for place, folders, names in os.walk(root):
        here = Path(place)
        folders[:] = [
            name
            for name in folders
            if name[0] not in "._" and name not in _NOT_CODE and here / name not in skipped
        ]
        yield from (here / name for name in names if name[0] != "." and (here / name).is_file())
