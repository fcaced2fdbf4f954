"""Progress of long work on the standard error stream: one live line on a terminal, few plain lines elsewhere."""

import sys
import time

_LIVE_EVERY_S = 0.1


class BuildingProgress:
    """A progress callback. On a terminal one line per phase is rewritten; elsewhere a phase is told when it is done."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done < total and (not self._live or now - self._shown < _LIVE_EVERY_S):
            return
        self._shown = now
        start = "\r\033[K" if self._live else ""
        end = "\n" if done >= total else ""
        sys.stderr.write(f"{start}{what}: {done}/{total}{end}")
        sys.stderr.flush()
