"""Scoring of a run while it goes on, in a process of its own, so that scores and report are ready when the run ends.

The process reads the records that are already written, in the order in which they are scored. It changes nothing but
``scores.json``, and whatever goes wrong in it, or is not expected here, is left to the usual scoring of the whole run.
"""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agrotools.core import Record, Score
    from agrotools.runner.rescore import Rescored

_FEWEST = 1_000
"""Records from which a process of its own is worth its start."""
_NICE = 5


class ScoredAhead(NamedTuple):
    """Scores of a run, and the collected records of its report, if none of them has files."""

    scored: "Rescored"
    collected: dict[str, Any]


class ScoringAhead:
    """Process that scores one run from its first sample on."""

    def __init__(self, *, allow_invalid: bool) -> None:
        self._options = ["--allow-invalid"] if allow_invalid else []
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, run: Path) -> None:
        """Begin to score the run in a folder, if it is long, but not longer than a page lists."""
        from agrotools.plugin import plugin_of
        from agrotools.report.html.listing import MOST_LISTED
        from agrotools.runner.store import read_manifest

        manifest = read_manifest(run)
        n_planned, n_runs = sum(manifest.planned.values()), len(manifest.planned) * manifest.epochs
        plugin = plugin_of(manifest.benchmark)
        has_paper = plugin is not None and plugin.reporting.paper is not None
        is_whole = n_planned == n_runs * len(manifest.sample_ids)
        if is_whole and not has_paper and _FEWEST <= n_planned <= MOST_LISTED and (os.cpu_count() or 1) > 1:
            command = [sys.executable, "-P", "-m", "agrotools.report.ahead", str(run), *self._options]
            pipe, silent = subprocess.PIPE, subprocess.DEVNULL
            with suppress(OSError):
                self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=silent)

    def end(self) -> None:
        """Send the process the end of the run."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # it has ended before
                self._process.stdin.write(_END)
                self._process.stdin.flush()

    def result(self) -> ScoredAhead | None:
        """Return the scores of all records, after :meth:`end`; None if the run has to be scored as usual."""
        if self._process is None:
            return None
        import scipy.special  # noqa: F401  # pyright: ignore[reportMissingTypeStubs]  # for the page, while it is waited for

        content, _ = self._process.communicate()
        return ScoredAhead(*pickle.loads(content)) if self._process.returncode == 0 else None

    def __enter__(self) -> "ScoringAhead":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


_END = b"end\n"


def _score(run: Path, ended: threading.Event, *, allow_invalid: bool) -> "tuple[Rescored, dict[str, Any]]":
    from agrotools.core import RunStoreError
    from agrotools.plugin import NO_COMPARISONS
    from agrotools.report.html.building import ReportDraft
    from agrotools.runner.growing_index import GrowingIndex
    from agrotools.runner.rescore import rescore
    from agrotools.runner.store import read_manifest

    manifest = read_manifest(run)
    planned = list(product(manifest.planned, manifest.sample_ids, range(manifest.epochs)))
    while not len(index := GrowingIndex(run, planned, ended)):
        if ended.is_set():
            raise RunStoreError(f"{run} has no records")
        time.sleep(0.05)
    draft = ReportDraft([run], NO_COMPARISONS)
    draft.begin_run()
    read_to = -1

    def add(record: "Record", scores: "list[Score]") -> None:
        nonlocal read_to
        if record.sample.files:
            return  # pictures share a budget, which is divided when all records are known
        if read_to != index.end:
            draft.page.read_on()
            read_to = index.end
        draft.add(record, scores)

    with draft.page.writing():
        scored = rescore(run, allow_invalid=allow_invalid, on_scored=add, records=index)
    return scored, draft.collected()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of standard input decides
    with suppress(AttributeError, OSError):
        os.nice(_NICE)
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    ended = threading.Event()

    def wait() -> None:
        if sys.stdin.buffer.readline() != _END:
            os._exit(1)
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    warnings.showwarning = lambda *_: os._exit(1)  # a warning is for the user, who sees nothing of this process
    result = _score(Path(sys.argv[1]), ended, allow_invalid="--allow-invalid" in sys.argv)
    sys.stdout.buffer.write(pickle.dumps(result))


if __name__ == "__main__":
    main()
