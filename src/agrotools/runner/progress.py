"""Progress of runs and staged work: a bar with the time left on a terminal, otherwise plain lines."""

import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, TextIO

from agrotools.core import Record
from agrotools.core.texts import count_text
from agrotools.models import WireStats

_LIVE_EVERY_S = 0.25
_CLEAR = "\r\x1b[2K"
"""Back to the beginning of the line, which is then empty."""
_PLAIN_FIRST_S = 2.0
_PLAIN_EVERY_S = 10.0
_QUIET_S = 15.0
"""Seconds without any reply or finished sample after which the line says so."""
_BAR_CELLS = 16
_USUAL_COLUMNS = 80
_DUMB = ("dumb", "unknown")
_FIRST_RATE_S = 0.5
"""Seconds of work after which its rate is known."""


def notebook_display() -> Any:
    """Return the module ``IPython.display`` if this process is a notebook kernel, else None.

    A program that only starts kernels imports ``ipykernel``, too.
    """
    application = sys.modules.get("ipykernel.kernelapp")
    is_kernel = application is not None and application.IPKernelApp.initialized()
    return import_module("IPython.display") if is_kernel else None


class ProgressLine:
    """The last line of a terminal, redrawn repeatedly; in a pipe, plain lines.

    Errors of the stream (closed by its reader, disk full) are never raised; further output is dropped. Characters that
    it cannot encode are escaped. ``live``: True if lines are redrawn in place.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._gone = False
        self.live = _is_terminal(stream)
        self._drawn = ""

    def draw(self, text: str, share: float) -> None:
        """Replace the drawn line by a bar, filled to ``share``, and text, as far as they fit."""
        filled = round(share * _BAR_CELLS)
        self._drawn = self._fitting(f"{'#' * filled}{'.' * (_BAR_CELLS - filled)} {text}")
        self._write(f"{_CLEAR}{self._drawn}")

    def print(self, text: str) -> None:
        """Write a permanent line above the drawn one."""
        self._write(f"{_CLEAR if self._drawn else ''}{_printable(text)}\n{self._drawn}")

    def end(self) -> None:
        """Keep the drawn line and continue below it."""
        if self._drawn:
            self._write("\n")
        self._drawn = ""

    def _fitting(self, text: str) -> str:
        from rich.cells import cell_len, set_cell_size

        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = _USUAL_COLUMNS
        text = _printable(text)
        # The last column stays free, because terminals differ in when they wrap.
        return text if cell_len(text) < columns else set_cell_size(text, max(columns - 1, 0))

    def _write(self, text: str) -> None:
        if self._gone:
            return
        try:
            try:
                self._stream.write(text)
            except UnicodeEncodeError:
                self._stream.write(text.encode("ascii", "backslashreplace").decode())
            self._stream.flush()
        except BlockingIOError:
            pass
        except (OSError, ValueError):
            self._gone = True
            redirect_to_null(self._stream)


def _plan_text(total: int, already: int, composition: str) -> str:
    """Return how many samples a run begins with, and how many of them were recorded earlier."""
    if not already:
        return (
            f"{composition} ({total} to run)"
            if composition
            else f"{count_text(total, 'sample')} to run"
        )
    answers = count_text(already + total, "answer")
    if composition:
        answers = f"{answers} ({composition})"
    were_recorded = (
        "was recorded earlier and is reused"
        if already == 1
        else "were recorded earlier and are reused"
    )
    return f"{already} of {answers} {were_recorded}"


def _printable(text: str) -> str:
    """Return ``text`` without control characters, so that a name cannot move the cursor or break the line."""
    return (
        text
        if text.isprintable()
        else "".join(each if each.isprintable() else "?" for each in text)
    )


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM") not in _DUMB
    except ValueError:
        return False


def redirect_to_null(stream: TextIO) -> None:
    """Redirect a standard stream to the null device, because Python would fail at exit on its unwritten buffer."""
    if stream in (sys.stdout, sys.stderr):
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
        except (OSError, ValueError):
            return


class Progress:
    """Progress of a run: counts of finished samples, rate, time left, and state of the wire.

    Args:
        total: samples to run now. If 0, a line says immediately that all were recorded earlier.
        already: samples finished earlier; they count as done, but not in the rate.
        stats: current state of the wire; None for a run without a model.
        composition: number of samples and their modes or epochs, if a sample is run more than once.
    """

    def __init__(
        self,
        stream: TextIO,
        title: str,
        total: int,
        already: int,
        stats: Callable[[], WireStats] | None = None,
        *,
        composition: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = ProgressLine(stream)
        self._title = title
        self._total = total
        self._already = already
        self._stats = stats
        self._clock = clock
        self._n_done = self._invalid = 0
        self._started = clock()
        self._due = self._started + (0.0 if self._line.live else _PLAIN_FIRST_S)
        self._began = self._started
        self._signs, self._last_sign = -1, self._started
        self._closed = not total
        self.note(f"{title}: {_plan_text(total, already, composition)}")

    def finished(self, record: Record) -> None:
        """Count one record."""
        now = self._clock()
        if not self._n_done:
            # Time before the first sample began (e.g. to start workers) must not affect the rate.
            self._began = max(self._started, now - record.seconds)
        self._n_done += 1
        self._invalid += record.invalid is not None
        if now >= self._due:
            self._draw(now)

    def tick(self) -> None:
        """Redraw the state if it is due. Should be called about twice per second."""
        now = self._clock()
        self._watch(now)
        if now >= self._due and not self._closed:
            self._draw(now)

    def note(self, text: str) -> None:
        """Write a permanent line above the live one, if that is drawn already."""
        self._line.print(text)

    def close(self) -> None:
        """Show the final state. Further calls do nothing."""
        if not self._closed:
            self._closed = True
            self._draw(self._clock())
            self._line.end()

    def _watch(self, now: float) -> None:
        """Show new warnings, and record new samples and replies since the last call."""
        stats = self._stats() if self._stats else None
        while stats and stats.warnings:
            self.note(stats.warnings.pop(0))
        signs = self._n_done + (stats.replies + stats.cached if stats else 0)
        if signs != self._signs:
            self._signs, self._last_sign = signs, now

    def _draw(self, now: float) -> None:
        self._due = now + (_LIVE_EVERY_S if self._line.live else _PLAIN_EVERY_S)
        self._watch(now)
        text = ", ".join(self._parts(now))
        if self._line.live:
            self._line.draw(text, (self._already + self._n_done) / (self._already + self._total))
        else:
            self.note(f"{self._title}: {text}")

    def _parts(self, now: float) -> list[str]:
        """Return all parts of the line, the most important ones first."""
        stats = self._stats() if self._stats else WireStats()
        ended = self._closed
        per_s = _per_s(self._n_done, now - self._began, is_known=ended)
        quiet = now - self._last_sign
        time_left = _duration((self._total - self._n_done) / per_s) if per_s else ""
        lacking = "no reply" if stats.in_flight or stats.waiting else "nothing finished"
        slowed = f" ({stats.rate_limit_waits} for the rate limit)" if stats.rate_limit_waits else ""
        parts = (
            (True, f"{self._already + self._n_done}/{self._already + self._total} done"),
            (True, _duration(now - self._started)),
            (not ended and per_s, f"{time_left} left"),
            (not ended and quiet >= _QUIET_S, f"{lacking} for {quiet:.0f} s"),
            (self._invalid, f"{self._invalid} invalid"),
            (stats.spent_usd is not None, f"${stats.spent_usd or 0.0:.4f}"),
            (per_s, f"{60 * per_s:,.{int(per_s < 1 / 6)}f}/min"),
            (stats.in_flight and not ended, f"{count_text(stats.in_flight, 'request')} in flight"),
            (stats.waiting and not ended, f"{stats.waiting} waiting{slowed}"),
            (stats.retries, count_text(stats.retries, "retry", "retries")),
            (stats.cached, f"{stats.cached} cached"),
        )
        return [text for is_shown, text in parts if is_shown]


def _per_s(done: int, seconds: float, *, is_known: bool = False) -> float:
    return done / max(seconds, 1e-9) if is_known or seconds >= _FIRST_RATE_S else 0.0


def _duration(seconds: float) -> str:
    whole = round(max(seconds, 0.0))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def stage_progress(stream: TextIO) -> Callable[[str, int, int], None]:
    """Return a callback ``(stage, done, total)`` that draws a bar on a terminal and prints plain lines elsewhere.

    Plain lines: when a stage begins with nothing done, every ten seconds, and when it is complete.
    """
    line = ProgressLine(stream)
    began: dict[str, float] = {}
    due = 0.0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if stage not in began:
            began[stage], due = now, now + (0.0 if line.live else _PLAIN_FIRST_S)
        if not done or done == total or now >= due:
            due = now + (_LIVE_EVERY_S if line.live else _PLAIN_EVERY_S)
            per_s = _per_s(done, now - began[stage])
            time_left = (
                f", {_duration((total - done) / per_s)} left" if per_s and done < total else ""
            )
            if line.live:
                line.draw(f"{stage} {done}/{total}{time_left}", done / total if total else 1.0)
            else:
                line.print(f"{stage}: {done}/{total}{time_left}")
            if done == total:
                line.end()

    return report
