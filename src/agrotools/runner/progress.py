"""Progress of runs and staged work: a bar with the time left on a terminal or in a notebook, otherwise plain lines."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from html import escape
from importlib import import_module
from typing import Any, TextIO

from agrotools.core import Record
from agrotools.core.base import count_text
from agrotools.models import WireStats

_LIVE_EVERY_S = 0.25
_CLEAR = "\r\x1b[2K"
"""Back to the beginning of the line, which is then empty."""
_PLAIN_FIRST_S = 2.0
_PLAIN_EVERY_S = 10.0
_QUIET_S = 15.0
"""Seconds without any reply or finished sample after which the line says so."""
_TITLE_CELLS = 8
"""Minimum cells of the title in a narrow terminal."""
_BAR_CELLS = 16
_COLUMNS_WITH_BAR = 60
_USUAL_COLUMNS = 80
_DUMB = ("dumb", "unknown")
_RATE_WINDOW_S = 30.0
_RATE_WINDOW_SAMPLES = 10
"""The rate covers the last 30 s, or the last 10 samples if they took longer."""


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
        self._notebook: Any = notebook_display() if stream in (sys.stderr, sys.stdout) else None
        self.live = self._notebook is not None or _is_terminal(stream)
        self._drawn = ""
        self._cell: Any = None  # the display handle of IPython

    @property
    def cells(self) -> int:
        """Width of a line in cells; the last column stays free, because terminals differ in when they wrap."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):  # no terminal
            columns = 0
        return max((columns or _USUAL_COLUMNS) - 1, 1)

    def draw(self, title: str, text: str, share: float = 0.0) -> None:
        """Replace the drawn line by title, bar (filled to ``share``) and text; in a pipe, print them as a line."""
        if not self.live:
            self.print(f"{title}: {text}")
        elif self._notebook is not None:
            self._draw_in_cell(title, text, share)
        else:
            filled = round(share * _BAR_CELLS)
            bar = f"{'#' * filled}{'.' * (_BAR_CELLS - filled)} " if self.bar_cells else ""
            self._drawn = cut(printable(f"{title} {bar}{text}"), self.cells)
            self._write(f"{_CLEAR}{self._drawn}")

    def print(self, text: str) -> None:
        """Write a permanent line above the drawn one."""
        self._write(f"{_CLEAR if self._drawn else ''}{printable(text)}\n{self._drawn}")

    def end(self) -> None:
        """Keep the drawn line and continue below it."""
        if self._drawn:
            self._write("\n")
        self._drawn, self._cell = "", None

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

    def _draw_in_cell(self, title: str, text: str, share: float) -> None:
        """Update a single output of the notebook's cell (rich would need ipywidgets for this)."""
        line = self._notebook.HTML(f"{escape(title)} <progress value={share:.4f}></progress> {escape(text)}")
        if self._cell is None:
            self._cell = self._notebook.display(line, display_id=True)
        else:
            self._cell.update(line)

    @property
    def bar_cells(self) -> int:
        """Cells of the bar including its margin; 0 in a narrow terminal."""
        return _BAR_CELLS + 1 if self.cells >= _COLUMNS_WITH_BAR else 0


def cut(text: str, cells: int) -> str:
    """Return ``text`` in at most ``cells`` cells, truncated with ``…``. A wide character takes two cells."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= cells:
        return text
    return set_cell_size(text, cells - 1).rstrip() + "…" if cells > 1 else "…"[:cells]


def printable(text: str) -> str:
    """Return ``text`` without control characters, so that a name cannot move the cursor or break the line."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)


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
        total: samples to run now. If 0, a line says immediately that all are done.
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
        self._n_done = 0
        self._invalid = 0
        self._started = clock()
        self._every_s = _LIVE_EVERY_S if self._line.live else _PLAIN_EVERY_S
        self._due = self._started + (0.0 if self._line.live else _PLAIN_FIRST_S)
        self._rate = _Rate(self._started)
        self._signs = -1
        self._last_sign = self._started
        self._closed = not total
        self._whole = f"{already + total} ({composition})" if composition else count_text(already + total, "sample")
        if not total:
            all_ = "all " if already != 1 else ""
            self._line.print(f"{title}: {all_}{self._whole} already done")
        elif already:
            self._line.print(f"{title}: resuming, {already} of {self._whole} done")
        elif not self._line.live:
            self._line.print(
                f"{title}: {f'{composition} ({total} to run)' if composition else f'{self._whole} to run'}"
            )

    def finished(self, record: Record) -> None:
        """Count one record."""
        now = self._clock()
        if not self._n_done:
            # Time before the first sample began (e.g. to start workers) must not affect the rate.
            self._rate.begin(max(self._started, now - record.seconds))
        self._n_done += 1
        if record.invalid is not None:
            self._invalid += 1
        if now >= self._due:
            self._show(now)

    def tick(self) -> None:
        """Redraw the state if it is due. Should be called about twice per second."""
        now = self._clock()
        self._watch(now)
        if now >= self._due and not self._closed:
            self._show(now)

    def note(self, text: str) -> None:
        """Write a permanent line above the live one, if that is drawn already."""
        self._line.print(text)

    def close(self) -> None:
        """Show the final state. Further calls do nothing."""
        if self._closed:
            return
        self._closed = True
        self._watch(self._clock())
        self._draw(self._clock())
        self._line.end()

    def _show(self, now: float) -> None:
        self._due = now + self._every_s
        self._watch(now)
        self._draw(now)

    def _watch(self, now: float) -> None:
        """Record new samples and replies since the last call."""
        self._rate.note(now, self._n_done)
        stats = self._stats() if self._stats else None
        while stats and stats.warnings:
            self.note(stats.warnings.pop(0))
        signs = self._n_done + (stats.replies + stats.cached if stats else 0)
        if signs != self._signs:
            self._signs, self._last_sign = signs, now

    def _draw(self, now: float) -> None:
        parts = self._parts(now)
        title = self._title
        if self._line.live:
            cells = self._line.cells - self._line.bar_cells
            while len(parts) > 1 and len(_joined(parts)) + min(len(title), _TITLE_CELLS) + 1 > cells:
                parts.remove(max(parts))
            title = cut(title, max(cells - len(_joined(parts)) - 1, 1))
        self._line.draw(title, _joined(parts), (self._already + self._n_done) / (self._already + self._total))

    def _parts(self, now: float) -> list[tuple[int, str]]:
        """Return all parts of the line, in order, with ranks: a narrow terminal drops those with a high one first."""
        stats = self._stats() if self._stats else WireStats()
        ended = self._closed
        per_s = self._n_done / max(now - self._rate.began, 1e-9) if ended else self._rate.per_s(now)
        quiet = now - self._last_sign
        time_left = _duration((self._total - self._n_done) / per_s) if per_s else ""
        lacking = "no reply" if stats.in_flight or stats.waiting else "nothing finished"
        slowed = f" ({stats.rate_limit_waits} for the rate limit)" if stats.rate_limit_waits else ""
        parts = (
            (0, True, f"{self._already + self._n_done}/{self._already + self._total} done"),
            (3, self._invalid, f"{self._invalid} invalid"),
            (4, stats.spent_usd is not None, _dollars(stats.spent_usd or 0.0)),
            (5, True, _duration(now - self._started)),
            (2, not ended and per_s, f"{time_left} left"),
            (1, not ended and quiet >= _QUIET_S, f"{lacking} for {quiet:.0f} s"),
            (8, per_s, _per_time(per_s)),
            (6, stats.in_flight and not ended, f"{count_text(stats.in_flight, 'request')} in flight"),
            (7, stats.waiting and not ended, f"{stats.waiting} waiting{slowed}"),
            (9, stats.retries, count_text(stats.retries, "retry", "retries")),
            (10, stats.cached, f"{stats.cached} cached"),
        )
        return [(rank, text) for rank, is_shown, text in parts if is_shown]


class _Rate:
    """Recent samples per second (rich drops samples older than its window, which leaves slow runs without a rate)."""

    def __init__(self, started: float) -> None:
        self.began = started
        self._n_done = 0
        self._seen: deque[tuple[float, int]] = deque([(started, 0)])

    def begin(self, at: float) -> None:
        """Set the time at which the first sample began."""
        self.began = at
        self._seen = deque([(at, 0)])

    def note(self, now: float, done: int) -> None:
        """Record that ``done`` samples are finished at time ``now``."""
        self._n_done = done
        seen = self._seen
        if done != seen[-1][1] and now - seen[-1][0] >= 0.5:
            seen.append((now, done))
        while len(seen) > 2 and now - seen[1][0] >= _RATE_WINDOW_S and done - seen[1][1] >= _RATE_WINDOW_SAMPLES:
            seen.popleft()

    def per_s(self, now: float) -> float:
        """Return the samples per second, or 0 while unknown."""
        at, done_before = self._seen[0]
        return (self._n_done - done_before) / (now - at) if now - at >= 0.5 else 0.0


def _joined(parts: list[tuple[int, str]]) -> str:
    return ", ".join(text for _, text in parts)


def _duration(seconds: float) -> str:
    """Format seconds as ``h:mm:ss``."""
    whole = round(max(seconds, 0.0))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def _per_time(per_s: float) -> str:
    per_min = 60 * per_s
    return f"{per_min:.1f}/min" if per_min < 10 else f"{per_min:,.0f}/min"


def _dollars(spent: float) -> str:
    return f"${spent:.2f}" if spent >= 1 or not spent else f"${spent:.4f}"


def stage_progress(stream: TextIO) -> Callable[[str, int, int], None]:
    """Return a callback ``(stage, done, total)`` that draws a bar on a terminal and prints plain lines elsewhere.

    Plain lines: when a stage begins with nothing done, every ten seconds, and when it is complete.
    """
    line = ProgressLine(stream)
    rates: dict[str, _Rate] = {}
    due = 0.0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if stage not in rates:
            rates[stage], due = _Rate(now), now + (0.0 if line.live else _PLAIN_FIRST_S)
        rate = rates[stage]
        if not done or done == total or now >= due:
            due = now + (_LIVE_EVERY_S if line.live else _PLAIN_EVERY_S)
            rate.note(now, done)
            per_s = rate.per_s(now)
            time_left = f", {_duration((total - done) / per_s)} left" if per_s and done < total else ""
            line.draw(stage, f"{done}/{total}{time_left}", done / total if total else 1.0)
            if done == total:
                line.end()

    return report
