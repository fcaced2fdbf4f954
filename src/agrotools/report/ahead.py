"""Scoring of a run while it goes on, in a process of its own, so that scores and report are ready when the run ends.

The process reads the records that are already written, in the order in which they are scored. If some are left when
the run has ended, it scores them, and the main process writes them to the page meanwhile. It changes nothing but
``scores.json``, and whatever goes wrong in it, or is not expected here, is left to the usual scoring of the whole run.
"""

import gc
import multiprocessing
import os
import signal
import threading
import time
import warnings
from contextlib import suppress
from itertools import product
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agrotools.core.interrupts import STOP_SIGNALS

if TYPE_CHECKING:
    from agrotools.core import Record, Score
    from agrotools.runner.rescore import Rescored

FEWEST = 1_000
"""Records from which a process of its own is worth its start."""
_NICE = 5
_LONGEST_S = 60.0
"""Time after which a process that does not hand over, which it does between two records, is given up."""


class ScoringAhead:
    """Process that scores one run from its first sample on."""

    def __init__(self, *, allow_invalid: bool) -> None:
        self._allow_invalid = allow_invalid
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._has_begun = False
        self._has_floor = False
        """True if a floor will be computed, whose scores need scipy in this process, too."""

    def prepare(self) -> None:
        """Start the process, which gets ready while the benchmark is loaded."""
        if (os.cpu_count() or 1) > 1:
            # A copy of this process has its imports; with threads, a lock could stay closed in it.
            is_copy = threading.active_count() == 1
            context: Any = multiprocessing.get_context("fork" if is_copy else "spawn")
            self._connection, its_end = context.Pipe()
            with suppress(OSError):
                ends = its_end, self._connection if is_copy else None
                process: BaseProcess = context.Process(target=_serve, args=(*ends, self._allow_invalid), daemon=True)
                process.start()
                self._process = process
            its_end.close()

    def begin(self, run: Path) -> None:
        """Begin to score the run in a folder, if it is long."""
        from agrotools.runner.ladder import MOST_SAMPLES
        from agrotools.runner.store import read_manifest

        manifest = read_manifest(run)
        self._has_floor = len(manifest.sample_ids) <= MOST_SAMPLES
        if sum(manifest.planned.values()) >= FEWEST:
            if self._process is None:
                self.prepare()
            self._send(run)
            self._has_begun = True
        else:
            self.__exit__()

    def end(self) -> None:
        """Send the process the end of the run."""
        if self._has_begun:
            self._send("end")
        else:
            self._connection = None  # all is done already

    def collected(self) -> dict[str, Any] | None:
        """Return what was collected for the page, after :meth:`end`; None if the run has to be scored as usual.

        The process adds no further record to it.
        """
        self._send("hand over")
        return self._received(_LONGEST_S)

    def scored(self) -> "Rescored | None":
        """Return the scores of all records, after :meth:`collected`; None if the run has to be scored as usual."""
        if self._process is not None and self._has_floor:
            import scipy.special  # noqa: F401  # pyright: ignore[reportMissingTypeStubs]  # while it is waited for
        return self._received()

    def _send(self, message: object) -> None:
        if self._connection is not None:
            with suppress(OSError):  # it has ended before
                self._connection.send(message)

    def _received(self, longest_s: float | None = None) -> Any:
        with suppress(EOFError, OSError):
            if self._connection is not None and self._connection.poll(longest_s):
                return self._connection.recv()
        self._connection = None  # it has ended, or was stopped
        return None

    def __enter__(self) -> "ScoringAhead":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def _score(
    run: Path, ended: threading.Event, asked: threading.Event, connection: Connection, *, allow_invalid: bool
) -> None:
    """Score a run, and send what is collected for its page, when it is ``asked`` for, and then the scores."""
    from agrotools.core import RunStoreError
    from agrotools.plugin import NO_COMPARISONS, plugin_of
    from agrotools.report.html.building import ReportDraft
    from agrotools.report.html.listing import MOST_LISTED
    from agrotools.runner.growing_index import GrowingIndex
    from agrotools.runner.rescore import rescore
    from agrotools.runner.store import read_manifest

    manifest = read_manifest(run)
    n_planned, n_runs = sum(manifest.planned.values()), len(manifest.planned) * manifest.epochs
    plugin = plugin_of(manifest.benchmark)
    has_paper = plugin is not None and plugin.reporting.paper is not None
    if has_paper or n_planned != n_runs * len(manifest.sample_ids) or n_planned > MOST_LISTED:
        return  # scored as usual
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
            connection.send(draft.collected())
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
    connection.send(scored)


def _get_ready() -> None:
    """Import what scoring needs, and compile patterns that most answers need."""
    import scipy.special  # noqa: F401  # pyright: ignore[reportMissingTypeStubs]

    import agrotools.report.html.building
    import agrotools.runner.rescore  # noqa: F401
    from agrotools.core import ToleranceSlot
    from agrotools.scoring.slots import score_slot

    slot = ToleranceSlot(name="count", label="trees", value=1)
    score_slot(slot, [slot], "One of the 2 rows has trees.\ntrees: 1")


def _serve(connection: Connection, other_end: Connection | None, allow_invalid: bool) -> None:
    """Score the run whose folder comes first, in this process, which ends with it or with the one that started it.

    ``other_end``: a copy of that process's end of the connection; while it is open, the connection does not end.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the end of the run decides
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with suppress(AttributeError, OSError):
            os.nice(_NICE)
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)
        ended, asked = threading.Event(), threading.Event()
        if other_end is not None:
            other_end.close()
        warnings.showwarning = lambda *_: os._exit(1)  # a warning is for the user, who sees nothing of this process
        _get_ready()
        run = connection.recv()

        def receive() -> None:
            try:
                for event in (ended, asked, threading.Event()):
                    connection.recv()
                    event.set()
            except (EOFError, OSError):
                os._exit(1)

        threading.Thread(target=receive, daemon=True).start()
        _score(run, ended, asked, connection, allow_invalid=allow_invalid)
    except BaseException:
        os._exit(1)
    os._exit(0)  # without visiting its objects once more
