"""Screens of finished evaluations: the same command shows the same screen again, as long as nothing has changed.

A screen is kept in the user's cache after a run of a model, of baselines or of scripted replies in which every sample
has a valid record. It stands for the program (files of agrotools, installed distributions, modules from elsewhere), the
command, its terminal and the names of the keys that are set, and the files that it was computed from: benchmark, run
folders with hashes of their records, runs of baselines beside them, the user's knowledge, trained heads and probes of
models. Agents, replays, judges, budgets, anything else and any doubt: the command evaluates as usual.
"""

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import orjson

from agrotools.cli.output import ARGUMENTS, WARNED

if TYPE_CHECKING:
    from agrotools.formats.benchmark import Benchmark
    from agrotools.runner.config import EvalConfig

_FOLDER = "finished"
_MOST_SCREENS, _MOST_FILES = 200, 50_000
_KINDS = ("baseline:", "scripted:")
_VARIABLES = ("COLUMNS", "LINES", "TERM", "LANG", "HOME", "PYTHONPATH", "TZ")
_PREFIXES = ("AGROTOOLS_", "XDG_", "LC_", "HF_", "OPENAI_BASE", "FORCE_COLOR", "NO_COLOR", "TTY_")
_SECRETS = ("KEY", "TOKEN")
"""Ends of the names of variables with keys: whether they are set counts, not their values."""
_BASELINES = ("guess", "planner", "oracle")
"""Baselines whose runs beside a run are shown as its floor and ceiling (:mod:`agrotools.runner.ladder`)."""
_HASHED = frozenset(("manifest.json", "records.jsonl", "scores.json"))
_READ = ("manifest.json", "records.jsonl")
_LOCK = ".lock"


def shown_before(config_file: Path | None) -> bool:
    """Print the screen that the running command has shown before; False if it has to be evaluated."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = orjson.loads(_place(config_file).read_bytes())
        if all(_state_of(kind, path) == state for kind, path, state in kept["files"]):
            sys.stderr.write(kept["stderr"])
            sys.stderr.flush()
            sys.stdout.write(kept["stdout"])
            return True
    return False


def keep_screen(
    text: str,
    notes: Sequence[str],
    runs: Sequence[Path],
    benchmark: "Benchmark",
    configs: "Sequence[EvalConfig]",
    config_file: Path | None,
    *,
    loaded_ns: int,
    scored_ns: int,
) -> None:
    """Keep ``text``, the screen of a complete evaluation, for the same command.

    Nothing is kept if the screen depends on more than can be compared cheaply, if a file that it was computed from has
    changed since, or if the cache cannot be written.

    Args:
        notes: lines on standard error when the runs are already done.
        loaded_ns: time (``time.time_ns``) when the benchmark was loaded.
        scored_ns: time when the scoring of the runs began.
    """
    from agrotools.core.files import write_whole

    if WARNED or not all(_depends_on_files_alone(config) for config in configs):
        return
    trees = {benchmark.root, *benchmark.external_folders.values(), *_user_folders()}
    trees |= {config.data_root for config in configs if config.data_root is not None}
    files = [Path(config.model.partition(":")[2]) for config in configs if config.model.startswith("scripted:")]
    beside = {run.absolute().parent for run in runs}
    with suppress(OSError, ValueError, TypeError):  # TypeError: a path that is not UTF-8
        kinds = [("tree", trees), ("file", files), ("run", runs), ("beside", beside), ("file", _foreign_modules())]
        states = [(kind, str(path), _state_of(kind, str(path))) for kind, paths in kinds for path in paths]
        limits = {"run": scored_ns, "beside": scored_ns}
        if any(_newest(kind, state) > limits.get(kind, loaded_ns) for kind, _, state in states):
            return
        place = _place(config_file)
        place.parent.mkdir(parents=True, exist_ok=True)
        stderr = "".join(f"{note}\n" for note in notes)
        write_whole(place, orjson.dumps({"stdout": text, "stderr": stderr, "files": states}), synced=False)
        for old in sorted(place.parent.iterdir(), key=lambda path: -path.stat().st_mtime)[_MOST_SCREENS:]:
            old.unlink()


def _depends_on_files_alone(config: "EvalConfig") -> bool:
    """True if neither an agent, a judge of pictures, a budget nor a longer run could change what the command shows."""
    from agrotools.runner.policies import names_endpoint

    if not config.model.startswith(_KINDS) and (config.budget or not names_endpoint(config.model)):
        return False
    return not config.vlm_model and config.repeat_until is None


class _Copied:
    """A text stream that also collects what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self.parts = stream, list[str]()

    def write(self, text: str) -> int:
        n_written = self._stream.write(text)  # raises an error first if click tries whether bytes are taken
        self.parts.append(text)
        return n_written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def copied_output() -> Iterator[list[str]]:
    """Within the block, collect what is written to standard output."""
    stream = sys.stdout
    copied = _Copied(stream)
    sys.stdout = cast("TextIO", copied)
    try:
        yield copied.parts
    finally:
        sys.stdout = stream


# --- what a screen depends on -----------------------------------------------------------------------------------------


def _place(config_file: Path | None) -> Path:
    """Return the file of the screen of this command, program and terminal."""
    from agrotools.core.files import cache_dir

    variables = {name: value for name, value in os.environ.items() if name.startswith((*_VARIABLES, *_PREFIXES))}
    config = _state_of("file", str(config_file)) if config_file else None
    line = " ".join(ARGUMENTS)  # may name the variable of a key
    keys = [name for name, value in os.environ.items() if value and (name in line or name.endswith(_SECRETS))]
    command = [ARGUMENTS, str(Path.cwd()), config, variables, sorted(keys), _terminal(), sys.version, _program()]
    content = orjson.dumps(command, option=orjson.OPT_SORT_KEYS)
    return cache_dir(_FOLDER) / f"{hashlib.sha256(content).hexdigest()}.json"


def _terminal() -> list[Any]:
    shown: list[Any] = [getattr(sys.stdout, "encoding", "")]
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        try:
            shown.append([stream.isatty(), *os.get_terminal_size(number)])
        except (OSError, ValueError, AttributeError):
            shown.append(None)
    return shown


@cache
def _program() -> list[Any]:
    """Return the state of the files of agrotools and of the folders in which distributions are installed."""
    folders = [Path(entry or ".") for entry in sys.path]
    installed = [_status(path) for folder in folders for path in (folder, *sorted(folder.glob("*.dist-info")))]
    return [_tree(Path(__file__).parents[1]), installed]


def _foreign_modules() -> list[str]:
    """Return the files of imported modules that belong neither to Python, nor to its environment, nor to agrotools."""
    known = tuple(f"{path}{os.sep}" for path in {sys.prefix, sys.base_prefix, str(Path(__file__).parents[1])})
    paths = {getattr(module, "__file__", None) or "" for module in [*sys.modules.values()]}
    return sorted(path for path in paths if path and not path.startswith(known))


def _user_folders() -> list[Path]:
    from agrotools.benchmarks.loading import RECORDS, data_folder
    from agrotools.core.files import cache_dir
    from agrotools.knowledge.entries import user_folders

    return [*user_folders(), *map(cache_dir, ("heads", "packs", "probes")), data_folder() / RECORDS]


def _state_of(kind: str, path: str) -> Any:
    if kind == "tree":
        return _tree(Path(path))
    if kind == "run":
        return _run(Path(path))
    if kind == "beside":
        folders = {folder for name in _BASELINES for folder in Path(path).glob(f"*{name}*")}
        return [[str(each), _run(each)] for each in sorted(folders)]
    return _status(Path(path))


def _status(path: Path) -> list[int] | None:
    """Return size and times of a file; None if there is none. The time of change betrays one set back by hand."""
    try:
        status = path.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _run(folder: Path) -> dict[str, Any]:
    """Return the state of the files of a run, with hashes of its manifest, records and scores."""
    files = [path for path in folder.iterdir() if path.is_file() and path.name != _LOCK]
    return {path.name: [_status(path), _digest(path) if path.name in _HASHED else ""] for path in sorted(files)}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tree(folder: Path) -> list[Any]:
    """Return a hash of names, sizes and times of all files below ``folder``, and the newest time of change.

    Raises:
        ValueError: there are more files than can be compared in a moment.
    """
    entries = sorted(islice(_entries(str(folder)), _MOST_FILES + 1))
    if len(entries) > _MOST_FILES:
        raise ValueError("too many files")
    return [hashlib.blake2b(repr(entries).encode()).hexdigest(), max((each[-1] for each in entries), default=0)]


def _newest(kind: str, state: Any) -> int:
    """Return the newest time of change, in nanoseconds, of what the evaluation has read but not written."""
    if kind == "tree":
        return state[1]
    if kind == "file":
        return state[2] if state else 0
    runs = [state] if kind == "run" else [each for _, each in state]
    statuses = [run[name][0] for run in runs for name in _READ if name in run]
    return max((status[2] for status in statuses if status), default=0)


def _entries(folder: str) -> Iterator[tuple[str, int, int, int]]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _entries(entry.path)
            else:
                status = entry.stat(follow_symlinks=False)
                yield entry.path, status.st_size, status.st_mtime_ns, status.st_ctime_ns
