"""One study in a process of its own.

The process reads one line of JSON on its standard input (``tool``, ``number`` of the study among the tool's,
``folder``, ``scratch``, ``answer``), leaves what came out in the file ``answer``, and ends itself when its input is
closed: nothing goes on measuring when whoever started it is gone. Standard output belongs to the libraries that write
there.
"""

import json
import math
import os
import resource
import statistics
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from agrotools.build.accuracy import STUDIES
from agrotools.build.accuracy.study import Bench, Figure, estimate
from agrotools.core.base import AgrotoolsError

_ROUNDING = 1e-9
"""By so much a goal may be missed: what rounding leaves of an exact zero."""


def measured(tool: str, number: int, folder: Path, scratch: Path) -> dict[str, Any]:
    """Result of a study: ``figures``, times, memory and overlays, or ``error``, one line that says what went wrong.

    Memory is the most that the process held at once, before any interval was computed: libraries, truth and all.
    """
    try:
        bench = Bench(tool, folder, scratch)
        figures = STUDIES.get(tool)[number].measure(bench)
        peak_mb = _peak_mb()
        rows = [_row(figure) for figure in figures]
        if not rows:
            return {"error": "it gave no figure"}
    except AgrotoolsError as error:
        return {"error": _one_line(f"{error} [{_where(error)}]")}
    except Exception as error:
        return {"error": _one_line(f"{type(error).__name__}: {error} [{_where(error)}]")}
    per_megapixel = [ms / mp for ms, mp in zip(bench.call_ms, bench.call_megapixels, strict=True) if mp > 0]
    return {
        "figures": rows,
        "calls": len(bench.call_ms),
        "ms_median": statistics.median(bench.call_ms) if bench.call_ms else None,
        "ms_per_megapixel": statistics.median(per_megapixel) if per_megapixel else None,
        "peak_mb": peak_mb,
        "overlays": [str(path) for path in bench.overlays if path.is_file()],
    }


def _row(figure: Figure) -> dict[str, Any]:
    interval = estimate(figure)
    reached = None
    if figure.goal is not None and math.isfinite(interval.value):
        beyond = interval.value - figure.goal if figure.higher_is_better else figure.goal - interval.value
        reached = beyond >= -_ROUNDING
    return {
        "metric": figure.metric,
        "value": _finite(interval.value),
        "low": _finite(interval.low),
        "high": _finite(interval.high),
        "n": interval.n,
        "independent": interval.independent,
        "goal": figure.goal,
        "higher_is_better": figure.higher_is_better,
        "goal_reached": reached,
        "note": figure.note,
    }


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _peak_mb() -> float:
    """Of this program alone: ``ru_maxrss`` of a process also counts what its parent held when it was started."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.split("VmHWM:", 1)[1].split(None, 1)[0]) / 1024
    except (OSError, IndexError, ValueError):
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    result = measured(order["tool"], order["number"], Path(order["folder"]), Path(order["scratch"]))
    Path(order["answer"]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
