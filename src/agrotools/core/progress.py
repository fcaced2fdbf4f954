"""Callback for the progress of work on many items."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

Progress = Callable[[str, int, int], None]
"""Called between the steps of work, with its name, the number of items done, and the total number of items.

An error that it raises ends the work.
"""


def no_progress(what: str, done: int, total: int) -> None:
    """Ignore the progress."""


_PATIENCE_S = 5.0
"""Seconds of work without a word, where no line can be redrawn."""
_REDRAWN_EVERY_S = 0.25


def patient_progress(stream: TextIO | None) -> Progress:
    """Return a callback for a call from Python: a line that is redrawn on a terminal, elsewhere one line after 5 s.

    ``stream``: standard error, which is None in a program without a console.
    """
    if stream is None or stream.closed:
        return no_progress
    began: dict[str, float] = {}
    told = set[str]()
    is_live = stream.isatty()
    due = 0.0

    def report(what: str, done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        waited = now - began.setdefault(what, now)
        text = ""
        if is_live and (now >= due or done == total):
            due = now + _REDRAWN_EVERY_S
            text = "\r\x1b[2K" if done == total else f"\r\x1b[2K{what}: {done}/{total}"
        elif not is_live and waited >= _PATIENCE_S and what not in told and done < total:
            told.add(what)
            left = waited * (total - done) / max(done, 1)
            text = f"{what}: {done}/{total}, about {left:.0f} s left\n"
        with suppress(OSError, ValueError):  # a stream that is closed ends no work
            stream.write(text)
            stream.flush()

    return report
