"""Runner of the studies, each in its own process.

A process per study has two reasons: its peak memory is that of one tool on one folder, and a study that crashes, hangs
or is killed does not affect the others. This module is also the program of that process: it reads one line of JSON on
its standard input (tool, number of the study among the tool's, folder, scratch folder, file of the answer), writes the
result to the file, and exits when its input is closed, so that it does not outlive its parent. Standard output is left
to libraries that print.
"""

import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from accuracy import STUDIES, studies_of
from accuracy.study import Bench, Figure, estimate
from agrotools.calling import TOOLS, get_tool
from agrotools.calling.worker_process import worker_environment
from agrotools.core.errors import AgrotoolsError, BenchmarkError, UsageError
from agrotools.core.texts import count_text
from agrotools_tools.vision import STRANGENESS_FILES
from prepared import read_items

FOLDERS = Path(__file__).with_name("folders.toml")
TIME_LIMIT_S = 1800.0
"""Time limit of a study, seconds."""


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure of one tool on one folder, or the ``error`` that prevented it.

    ``low`` and ``high`` are the 95 % interval, None under ten independent images. ``n`` is the number of images (or
    drawn scenes), of which ``independent`` show different scenes. ``ms_median`` is the time per call,
    ``ms_per_megapixel`` the median over calls of time divided by the size of the files read; ``peak_mb`` is for the
    whole study, libraries included. ``sources``: repositories, commits and numbers of the images, from ``truth.json``.
    ``unreadable``: images left out.
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
    sources: str = ""
    unreadable: Sequence[str] = ()
    error: str | None = None


@dataclass(frozen=True)
class Planned:
    """Study to run: number ``number`` of the tool, on the folder ``path`` (ignored if ``drawn``)."""

    tool: str
    number: int
    folder: str
    path: Path
    drawn: bool


@dataclass(frozen=True)
class Plan:
    """Studies to run.

    ``absent``: required folders that do not exist; ``ignored``: folders of the data that no study uses, beside the
    ``layouts`` that some do; ``drawn_left_out``: studies on drawn scenes that nobody asked for.
    """

    studies: tuple[Planned, ...]
    absent: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    drawn_left_out: int = 0


def plan(data: Path | None, tools: Sequence[str] = (), folders: Sequence[str] = ()) -> Plan:
    """Select the studies of ``tools`` (default: all) on ``folders`` (default: all) of the folder ``data``.

    Studies on drawn scenes are left out of data of which none is ours, unless ``folders`` names them.

    Raises:
        UsageError: no study knows the tool or folder, or ``data`` is not a folder.
    """
    if data is not None and not data.is_dir():
        raise UsageError(
            f"{data} is not a folder",
            hint="--data names the folder that holds a folder of images per source",
        )
    names = tuple(dict.fromkeys(tools)) or tuple(STUDIES)
    known: set[str] = set()
    studies: list[Planned] = []
    absent: list[str] = []
    for tool in names:
        for number, study in enumerate(studies_of(tool)):
            known.add(study.folder)
            if folders and study.folder not in folders:
                continue
            path = (data or Path()) / study.folder
            if study.needs_folder and (data is None or not (path / "truth.json").is_file()):
                absent.append(study.folder)
                continue
            studies.append(Planned(tool, number, study.folder, path, not study.needs_folder))
    for folder in folders:
        if folder not in known:
            raise UsageError(f"no study of {', '.join(names)} uses a folder {folder!r}",
                             hint=f"known: {', '.join(sorted(known))}")  # fmt: skip
    chosen = studies
    real = [study for study in studies if not study.drawn]
    on_photographs = any(study.needs_folder for tool in names for study in studies_of(tool))
    if data is not None and not folders and on_photographs and not any(map(_is_ours, real)):
        chosen = real
    layouts = _layouts()
    there = [] if data is None else sorted(path.name for path in data.iterdir() if path.is_dir())
    ignored = tuple(name for name in there if name not in layouts and not name.startswith("."))
    return Plan(tuple(chosen), tuple(dict.fromkeys(absent)), ignored, layouts,
                len(studies) - len(chosen))  # fmt: skip


def _layouts() -> tuple[str, ...]:
    """Return the folders of images that the studies of all tools use."""
    return tuple(
        sorted(
            {study.folder for tool in STUDIES for study in studies_of(tool) if study.needs_folder}
        )
    )


def _is_ours(study: Planned) -> bool:
    try:
        return study.drawn or sources_of(study.folder, study.path, study.tool)[1]
    except BenchmarkError:
        return False


def run(
    studies: Iterable[Planned],
    *,
    time_limit_s: float = TIME_LIMIT_S,
    ended: Callable[[Planned, list[Row], float], None] = lambda *_: None,
    overlays: Path | None = None,
) -> list[Row]:
    """Run studies one after another.

    Args:
        ended: called after each study with its rows and its duration in seconds.
        overlays: folder for the overlays of the tools: ``TOOL/NUMBER_FOLDER/CALL_NAME.png``.

    Raises:
        KeyboardInterrupt: on Ctrl-C; the running study has been stopped.
    """
    rows: list[Row] = []
    for study in studies:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(
            prefix="agrotools-bench-", ignore_cleanup_errors=True
        ) as scratch:
            result = _run_in_process(study, Path(scratch), time_limit_s)
            if overlays is not None:
                _copy_overlays(overlays, study, result.get("overlays", []))
        fresh = _rows(study, result)
        rows += fresh
        ended(study, fresh, time.monotonic() - begun)
    return rows


def _copy_overlays(folder: Path, study: Planned, overlays: Sequence[str]) -> None:
    # The folder of a study may be a readable name with blanks ("plants drawn here"); on disk it is one word.
    target = (
        folder / study.tool / f"{study.number}_{'_'.join(study.folder.replace('/', ' ').split())}"
    )
    for number, overlay in enumerate(map(Path, overlays)):
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(overlay, target / f"{number:03}_{overlay.name}")


def _run_in_process(study: Planned, scratch: Path, time_limit_s: float) -> dict[str, Any]:
    answer = scratch / "answer.json"
    order = [
        study.tool,
        study.number,
        str(study.path.resolve()),
        str(scratch / "made"),
        str(answer),
    ]
    process: subprocess.Popen[bytes] | None = None
    with (scratch / "output.txt").open("wb") as output:
        try:
            process = subprocess.Popen(
                [sys.executable, "-u", "-m", "accuracy.studies"],
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


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the study's process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin:
        with suppress(BrokenPipeError):
            process.stdin.close()


def _last_words(path: Path, code: int) -> str:
    how = f"ended with status {code}"
    if code < 0:
        names = {number.value: number.name for number in signal.Signals}
        how = f"ended by {names.get(-code, f'signal {-code}')}"
    lines = [
        line.strip()
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if line.strip()
    ]
    return f"its process {how}" + (f": {lines[-1][:300]}" if lines else "")


def _rows(study: Planned, result: dict[str, Any]) -> list[Row]:
    if "error" in result:
        where = str(study.path.resolve())
        return [Row(study.tool, study.folder, error=result["error"].replace(where, study.folder))]
    sources, is_ours = (
        ("", True) if study.drawn else sources_of(study.folder, study.path, study.tool)
    )
    names = ("calls", "ms_median", "ms_per_megapixel", "peak_mb", "unreadable")
    names = ("calls", "ms_median", "ms_per_megapixel", "peak_mb", "unreadable")
    origin = {"sources": sources, **{name: result[name] for name in names}}
    figures = (
        result["figures"] if is_ours else [{**figure, "note": ""} for figure in result["figures"]]
    )
    return [Row(study.tool, study.folder, **figure, **origin) for figure in figures]


def sources_of(name: str, folder: Path, tool: str) -> tuple[str, bool]:
    """Return the repositories of a folder's images as text, and True unless it is a known folder with other images.

    A repository that a description of the tool's weights names is marked: the tool learnt from it.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for item in read_items(folder):
        source = item.get("source")
        origin = source if isinstance(source, dict) else {}
        counts[
            str(origin.get("repo") or "source not stated"), str(origin.get("commit") or "")[:8]
        ] += 1
    described = get_tool(tool).data_files if tool in TOOLS else ()
    weights = [
        path for path in described if path.suffix == ".json" and path.name not in STRANGENESS_FILES
    ]
    learnt = "".join(path.read_text(encoding="utf-8", errors="replace") for path in weights)
    words = [
        f"{repo}{f' @ {commit}' if commit else ''} ({count_text(count, 'item')}"
        f"{', the tool learnt from other images of it' if repo.rpartition('/')[2] in learnt else ''})"
        for (repo, commit), count in sorted(counts.items())
    ]
    known = tomllib.loads(FOLDERS.read_text("utf-8"))["folders"].get(name)
    ours = known is None or (
        bool(counts) and {repo for repo, _ in counts} <= set(known.get("sources", ()))
    )
    return ", ".join(words), ours


_ROUNDING = 1e-9
"""Tolerance when a figure is compared with its goal, for rounding errors."""


def _with_place(error: Exception, text: str) -> str:
    """Return ``text`` on one line, with the line of code that raised ``error``."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return " ".join(f"{text} [{Path(last.filename).name}:{last.lineno}]".split())[:500]


def run_study(tool: str, number: int, folder: Path, scratch: Path) -> dict[str, Any]:
    """Return the result of a study: ``figures``, times, memory and overlays, or a one-line ``error``.

    Memory is the peak of the whole process (libraries and truth included) before any interval is computed.
    """
    try:
        bench = Bench(tool, folder, scratch)
        figures = studies_of(tool)[number].measure(bench)
        peak_mb = _peak_mb()
        rows = [_figure_row(figure) for figure in figures]
        if not rows:
            return {"error": "it gave no figure"}
    except BenchmarkError as error:
        return {"error": " ".join(str(error).split())}
    except Exception as error:
        kind = "" if isinstance(error, AgrotoolsError) else f"{type(error).__name__}: "
        return {"error": _with_place(error, f"{kind}{error}")}
    per_megapixel = [
        ms / mp for ms, mp in zip(bench.call_ms, bench.call_megapixels, strict=True) if mp > 0
    ]
    return {
        "figures": rows,
        "calls": len(bench.call_ms),
        "ms_median": statistics.median(bench.call_ms) if bench.call_ms else None,
        "ms_per_megapixel": statistics.median(per_megapixel) if per_megapixel else None,
        "peak_mb": peak_mb,
        "unreadable": bench.unreadable,
        "overlays": [str(path) for path in bench.overlays if path.is_file()],
    }


def _figure_row(figure: Figure) -> dict[str, Any]:
    interval = estimate(figure)
    reached = None
    if figure.goal is not None and math.isfinite(interval.value):
        beyond = (
            interval.value - figure.goal
            if figure.higher_is_better
            else figure.goal - interval.value
        )
        reached = beyond >= -_ROUNDING
    numbers = {
        name: value if math.isfinite(value or 0) else None
        for name, value in asdict(interval).items()
    }
    fields = {
        name: getattr(figure, name) for name in ("metric", "goal", "higher_is_better", "note")
    }
    return {**fields, **numbers, "goal_reached": reached}


def _peak_mb() -> float:
    """Return the peak memory of this program alone; ``ru_maxrss``, the fallback, counts the parent's at the fork."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.split("VmHWM:", 1)[1].split(None, 1)[0]) / 1024
    except (OSError, IndexError, ValueError):
        import resource

        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    tool, number, folder, scratch, answer = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    result = run_study(tool, number, Path(folder), Path(scratch))
    Path(answer).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
