"""Scoring of a run while it goes on, in a process of its own, so that scores and report are ready when the run ends.

The process reads the records that are already written, in the order in which they are scored. If some are left when
the run has ended, it scores them, and the main process writes them to the page meanwhile. It changes nothing but
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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agrotools.core import Record, Score
    from agrotools.runner.rescore import Rescored

_FEWEST = 1_000
"""Records from which a process of its own is worth its start."""
_NICE = 5


class ScoringAhead:
    """Process that scores one run from its first sample on."""

    def __init__(self, *, allow_invalid: bool) -> None:
        self._options = ["--allow-invalid"] if allow_invalid else []
        self._process: subprocess.Popen[bytes] | None = None
        self._has_floor = False
        """True if a floor will be computed, whose scores need scipy in this process, too."""

    def begin(self, run: Path) -> None:
        """Begin to score the run in a folder, if it is long, but not longer than a page lists."""
        from agrotools.plugin import plugin_of
        from agrotools.report.html.listing import MOST_LISTED
        from agrotools.runner.ladder import MOST_SAMPLES
        from agrotools.runner.store import read_manifest

        manifest = read_manifest(run)
        self._has_floor = len(manifest.sample_ids) <= MOST_SAMPLES
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
        self._send(_END)

    def collected(self) -> dict[str, Any] | None:
        """Return what was collected for the page, after :meth:`end`; None if the run has to be scored as usual.

        The process adds no further record to it.
        """
        self._send(_HAND_OVER)
        return self._received()

    def scored(self) -> "Rescored | None":
        """Return the scores of all records, after :meth:`collected`; None if the run has to be scored as usual."""
        if self._process is not None and self._has_floor:
            import scipy.special  # noqa: F401  # pyright: ignore[reportMissingTypeStubs]  # while it is waited for
        return self._received()

    def _send(self, line: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # it has ended before
                self._process.stdin.write(line)
                self._process.stdin.flush()

    def _received(self) -> Any:
        if self._process is None or self._process.stdout is None:
            return None
        try:
            return pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError):
            return None

    def __enter__(self) -> "ScoringAhead":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


_END, _HAND_OVER = b"end\n", b"hand over\n"


def _score(run: Path, ended: threading.Event, asked: threading.Event, *, allow_invalid: bool) -> None:
    """Score a run, and write what is collected for its page, when it is ``asked`` for, and then the scores."""
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
    draft: ReportDraft | None = ReportDraft([run], NO_COMPARISONS)
    draft.begin_run()
    read_to = -1

    def hand_over() -> None:
        nonlocal draft
        if draft is not None:
            sys.stdout.buffer.write(pickle.dumps(draft.collected()))
            sys.stdout.buffer.flush()
            draft = None

    def add(record: "Record", scores: "list[Score]") -> None:
        nonlocal read_to
        if asked.is_set():
            hand_over()
        if draft is None or record.sample.files:
            return  # pictures share a budget, which is divided when all records are known
        if read_to != index.end:
            draft.page.read_on()
            read_to = index.end
        draft.add(record, scores)

    with draft.page.prompts_open():
        scored = rescore(run, allow_invalid=allow_invalid, on_scored=add, records=index)
    hand_over()
    sys.stdout.buffer.write(pickle.dumps(scored))
    sys.stdout.buffer.flush()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of standard input decides
    with suppress(AttributeError, OSError):
        os.nice(_NICE)
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    ended, asked = threading.Event(), threading.Event()

    def wait() -> None:
        for line, event in ((_END, ended), (_HAND_OVER, asked)):
            if sys.stdin.buffer.readline() != line:
                os._exit(1)
            event.set()

    threading.Thread(target=wait, daemon=True).start()
    warnings.showwarning = lambda *_: os._exit(1)  # a warning is for the user, who sees nothing of this process
    _score(Path(sys.argv[1]), ended, asked, allow_invalid="--allow-invalid" in sys.argv)
    gc.freeze()  # so that its objects are not visited once more


if __name__ == "__main__":
    main()
