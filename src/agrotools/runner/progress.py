"""Progress of a run: one live line on a terminal, a plain line now and then elsewhere."""

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TextIO

from agrotools.core import Record
from agrotools.models import WireStats
from agrotools.runner.live_line import LiveLine, cut

_LIVE_EVERY_S = 0.1
_PLAIN_FIRST_S = 2.0
_PLAIN_EVERY_S = 10.0
_QUIET_S = 15.0
"""So long without a sign of life, and the line says so."""
_TITLE_CELLS = 8
"""So much of the title stays in a narrow terminal."""
_RATE_WINDOW_S = 30.0
_RATE_WINDOW_SAMPLES = 10
"""The rate is that of the last 30 s, or of the last 10 samples where those took longer."""


class _Part(NamedTuple):
    """A part of the line; in a narrow terminal, parts of a high ``rank`` go first."""

    rank: int
    text: str


class Progress:
    """Counts finished samples and says how far the run is.

    Args:
        stream: where to say it. A stream that breaks is given up, and nothing is raised.
        title: what is run.
        total: samples to run now. Where there are none, a line says at once that all is done.
        already: samples that were finished before; they count as done, and not in the rate.
        stats: what the wire is doing now; None for a run without a model.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self,
        stream: TextIO,
        title: str,
        total: int,
        already: int,
        stats: Callable[[], WireStats] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = LiveLine(stream)
        self._title = title
        self._total = total
        self._already = already
        self._stats = stats
        self._clock = clock
        self._done = 0
        self._invalid = 0
        self._started = clock()
        self._every_s = _LIVE_EVERY_S if self._line.live else _PLAIN_EVERY_S
        self._due = self._started + (0.0 if self._line.live else _PLAIN_FIRST_S)
        self._rate = _Rate(self._started)
        self._signs = -1
        self._last_sign = self._started
        self._closed = not total
        if not total:
            self._line.print(f"{title}: all {already} samples already done")
        elif already:
            self._line.print(f"{title}: {already} of {already + total} already done, going on")
        elif not self._line.live:
            self._line.print(f"{title}: {total} samples to run")

    def finished(self, record: Record) -> None:
        """Count one record."""
        now = self._clock()
        if not self._done:
            # What came before the first sample began (starting workers, say) says nothing of the rate.
            self._rate.begin(max(self._started, now - record.seconds))
        self._done += 1
        if record.invalid is not None:
            self._invalid += 1
        if now >= self._due:
            self._show(now)

    def tick(self) -> None:
        """Say how things stand if that is due, also when nothing ends. To be called about twice a second."""
        now = self._clock()
        self._watch(now)
        if now >= self._due and not self._closed:
            self._show(now)

    def note(self, text: str) -> None:
        """Write a line that stays, above the live one."""
        self._line.print(text)
        if self._line.live and not self._closed:
            self._show(self._clock())

    def close(self) -> None:
        """Say how it ended. Further calls do nothing."""
        if self._closed:
            return
        self._closed = True
        self._line.draw(self._text(self._clock()))
        self._line.end()

    def _show(self, now: float) -> None:
        self._due = now + self._every_s
        self._watch(now)
        self._line.draw(self._text(now))

    def _watch(self, now: float) -> None:
        """Note samples and replies since the last look."""
        self._rate.note(now, self._done)
        stats = self._stats() if self._stats else None
        signs = self._done + (stats.replies + stats.cached if stats else 0)
        if signs != self._signs:
            self._signs, self._last_sign = signs, now

    def _text(self, now: float) -> str:
        parts = self._parts(now)
        if not self._line.live:
            return f"{self._title}: {_joined(parts)}"
        cells = self._line.cells
        while len(parts) > 1 and len(_joined(parts)) + min(len(self._title), _TITLE_CELLS) + 2 > cells:
            parts.remove(max(parts, key=lambda part: part.rank))
        rest = _joined(parts)
        room = cells - len(rest) - 2
        return f"{cut(self._title, room)}: {rest}" if room >= 4 else rest

    def _parts(self, now: float) -> list[_Part]:
        """All there is to say, in the order in which it stands in the line."""
        stats = self._stats() if self._stats else WireStats()
        ended = self._closed
        per_s = self._done / max(now - self._rate.began, 1e-9) if ended else self._rate.per_s(now)
        parts = [_Part(0, f"{self._already + self._done}/{self._already + self._total} done")]
        if self._invalid:
            parts.append(_Part(3, f"{self._invalid} invalid"))
        if stats.spent_usd is not None:
            parts.append(_Part(4, _dollars(stats.spent_usd)))
        parts.append(_Part(5, _duration(now - self._started)))
        if not ended and per_s:
            parts.append(_Part(2, f"{_duration((self._total - self._done) / per_s)} left"))
        quiet = now - self._last_sign
        if not ended and quiet >= _QUIET_S:
            asked = stats.in_flight or stats.waiting
            parts.append(_Part(1, f"no reply for {quiet:.0f} s" if asked else f"nothing ended for {quiet:.0f} s"))
        if per_s:
            parts.append(_Part(8, _per_time(per_s)))
        if stats.in_flight and not ended:
            parts.append(_Part(6, f"{stats.in_flight} in flight"))
        if stats.waiting and not ended:
            slowed = f" ({stats.rate_limit_waits} for the rate limit)" if stats.rate_limit_waits else ""
            parts.append(_Part(7, f"{stats.waiting} waiting{slowed}"))
        if stats.retries:
            parts.append(_Part(9, "1 retry" if stats.retries == 1 else f"{stats.retries} retries"))
        if stats.cached:
            parts.append(_Part(10, f"{stats.cached} cached"))
        return parts


class _Rate:
    """Samples a second as of late: what a run did in its first minute says little of its tenth."""

    def __init__(self, started: float) -> None:
        self.began = started
        self._done = 0
        self._seen: deque[tuple[float, int]] = deque([(started, 0)])

    def begin(self, at: float) -> None:
        """The first sample began then."""
        self.began = at
        self._seen = deque([(at, 0)])

    def note(self, now: float, done: int) -> None:
        """So many are done now."""
        self._done = done
        seen = self._seen
        if done != seen[-1][1] and now - seen[-1][0] >= 0.5:
            seen.append((now, done))
        while len(seen) > 2 and now - seen[1][0] >= _RATE_WINDOW_S and done - seen[1][1] >= _RATE_WINDOW_SAMPLES:
            seen.popleft()

    def per_s(self, now: float) -> float:
        """Samples a second; 0 where that cannot be told yet."""
        at, done = self._seen[0]
        return (self._done - done) / (now - at) if now - at >= 0.5 else 0.0


def _joined(parts: list[_Part]) -> str:
    return ", ".join(part.text for part in parts)


def _duration(seconds: float) -> str:
    """``h:mm:ss``."""
    whole = round(max(seconds, 0.0))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def _per_time(per_s: float) -> str:
    if per_s < 1:
        return f"{per_s * 60:.1f}/min"
    return f"{per_s:.1f}/s" if per_s < 100 else f"{per_s:.0f}/s"


def _dollars(spent: float) -> str:
    return f"${spent:.2f}" if spent >= 1 or not spent else f"${spent:.4f}"


def stage_progress(stream: TextIO) -> Callable[[str, int, int], None]:
    """A callback ``(what, done, total)`` for work in stages: a live line on a terminal, a line a quarter elsewhere."""
    line = LiveLine(stream)
    quarters: dict[str, int] = {}
    due = 0.0

    def report(what: str, done: int, total: int) -> None:
        nonlocal due
        quarter = done * 4 // total if total else 4
        now = time.monotonic()
        if line.live and (done == total or now >= due):
            due = now + _LIVE_EVERY_S
            line.draw(f"{what}: {done}/{total}")
            if done == total:
                line.end()
        elif not line.live and quarters.get(what) != quarter:
            quarters[what] = quarter
            line.draw(f"{what}: {done}/{total}")

    return report
