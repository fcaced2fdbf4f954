"""Studies for a folder of images, run one by one, each in a process of its own.

A process per study has two reasons: its peak memory is that of one tool on one folder, and one that crashes, hangs or
is killed takes no other with it.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agrotools.build.accuracy import STUDIES
from agrotools.core.base import UsageError
from agrotools.tools.worker_process import worker_environment

TIME_LIMIT_S = 1800.0
"""A study that takes longer is stopped."""


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure of one tool on one folder, or, with ``error``, why there is none.

    ``low`` and ``high`` are the 95 % interval, None under ten independent images; ``n`` images (or drawn scenes), of
    which ``independent`` show different scenes. ``ms_median`` is per call, ``ms_per_megapixel`` the median over calls
    of time over the size of the files read; ``peak_mb`` belongs to the whole study, libraries included.
    """

    tool: str
    folder: str
    metric: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    independent: int = 0
    calls: int = 0
    ms_median: float | None = None
    ms_per_megapixel: float | None = None
    peak_mb: float | None = None
    goal: float | None = None
    higher_is_better: bool | None = None
    goal_reached: bool | None = None
    note: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Planned:
    """A study to be run: the ``number``-th of the tool's, on ``path`` (of no meaning where ``drawn``)."""

    tool: str
    number: int
    folder: str
    path: Path
    drawn: bool


@dataclass(frozen=True)
class Plan:
    """``absent``: folders that studies would need and that are not there; ``faults``: tools without usable studies."""

    studies: tuple[Planned, ...]
    absent: tuple[str, ...]
    faults: tuple[Row, ...] = ()


def plan(data: Path | None, tools: Sequence[str] = (), folders: Sequence[str] = ()) -> Plan:
    """The studies of ``tools`` (none named: all) on ``folders`` (none named: all) of the folder ``data``.

    Raises:
        UsageError: no such tool or folder is known to any study, or ``data`` is not a folder.
    """
    if data is not None and not data.is_dir():
        raise UsageError(
            f"{data} is not a folder", hint="--data names the folder that holds a folder of images per source"
        )
    names = tuple(dict.fromkeys(tools)) or STUDIES.names()
    known: set[str] = set()
    studies: list[Planned] = []
    absent: list[str] = []
    faults: list[Row] = []
    for tool in names:
        try:
            of_tool = STUDIES.get(tool)
        except UsageError as error:
            if tool not in STUDIES:
                raise
            faults.append(Row(tool, "-", error=" ".join(str(error).split())))
            continue
        for number, study in enumerate(of_tool):
            known.add(study.folder)
            if folders and study.folder not in folders:
                continue
            path = (data or Path()) / study.folder
            if study.needs_folder and (data is None or not (path / "truth.json").is_file()):
                absent.append(study.folder)
                continue
            studies.append(Planned(tool, number, study.folder, path, not study.needs_folder))
    for folder in folders:
        if folder not in known and not faults:
            raise UsageError(f"no study of {', '.join(names)} uses a folder {folder!r}",
                             hint=f"known: {', '.join(sorted(known))}")  # fmt: skip
    return Plan(tuple(studies), tuple(dict.fromkeys(absent)), tuple(faults))


def run(
    studies: Iterable[Planned],
    *,
    time_limit_s: float = TIME_LIMIT_S,
    started: Callable[[Planned], None] = lambda _: None,
    ended: Callable[[Planned, list[Row], float], None] = lambda *_: None,
    overlays: Callable[[Planned, list[Path]], None] | None = None,
) -> list[Row]:
    """Run studies one after another.

    Args:
        started, ended: called around each study; ``ended`` with its rows and the seconds it took.
        overlays: called with the pictures that the tool drew, which are gone afterwards.

    Raises:
        KeyboardInterrupt: the study that ran has been ended.
    """
    rows: list[Row] = []
    for study in studies:
        started(study)
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="agrotools-bench-", ignore_cleanup_errors=True) as scratch:
            result = _in_own_process(study, Path(scratch), time_limit_s)
            if overlays and result.get("overlays"):
                overlays(study, [Path(path) for path in result["overlays"]])
        fresh = _rows(study, result)
        rows += fresh
        ended(study, fresh, time.monotonic() - begun)
    return rows


def _in_own_process(study: Planned, scratch: Path, time_limit_s: float) -> dict[str, Any]:
    answer = scratch / "answer.json"
    order = {
        "tool": study.tool,
        "number": study.number,
        "folder": str(study.path.resolve()),
        "scratch": str(scratch / "made"),
        "answer": str(answer),
    }
    process: subprocess.Popen[bytes] | None = None
    with (scratch / "output.txt").open("wb") as output:
        try:
            with _interrupts_held():  # one in the middle would leave a process that nobody knows of
                process = subprocess.Popen(
                    [sys.executable, "-u", "-m", "agrotools.build.accuracy.worker"],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=worker_environment(),
                    cwd=scratch,
                    start_new_session=True,
                )
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(order).encode() + b"\n")
                process.stdin.flush()
            code = process.wait(time_limit_s)
        except subprocess.TimeoutExpired:
            return {"error": f"it took more than {time_limit_s:g} s and was stopped"}
        finally:
            if process is not None:
                _end(process)
    try:
        reply: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"error": _last_words(scratch / "output.txt", code)}
    return reply


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits until the block has ended."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Nothing that the study started goes on."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin:
        with suppress(BrokenPipeError):
            process.stdin.close()


def _last_words(path: Path, code: int) -> str:
    how = f"ended by {_signal_name(-code)}" if code < 0 else f"ended with status {code}"
    lines = [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return f"its process {how}" + (f": {lines[-1][:300]}" if lines else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _rows(study: Planned, result: dict[str, Any]) -> list[Row]:
    if "error" in result:
        where = str(study.path.resolve())
        return [Row(study.tool, study.folder, error=result["error"].replace(where, study.folder))]
    shared = {name: result[name] for name in ("calls", "ms_median", "ms_per_megapixel", "peak_mb")}
    return [Row(study.tool, study.folder, **figure, **shared) for figure in result["figures"]]
