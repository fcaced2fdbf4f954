"""Progress of a long call from Python: a line on a terminal, one line elsewhere, nothing for short work."""

import io
import time

import pytest

from agrotools.core.progress import patient_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_long_work_has_one_line(clock: list[float]):
    stream = io.StringIO()
    progress = patient_progress(stream)
    for done in range(11):
        progress("scenes", done, 10)
        clock[0] += 2
    assert stream.getvalue() == "scenes: 3/10, about 14 s left\n"


def test_short_work_has_none(clock: list[float]):
    stream = io.StringIO()
    progress = patient_progress(stream)
    for done in range(11):
        progress("scenes", done, 10)
        clock[0] += 0.1
    assert stream.getvalue() == ""


def test_a_terminal_has_a_line_that_is_cleared_at_the_end(clock: list[float]):
    stream = Terminal()
    progress = patient_progress(stream)
    for done in range(3):
        progress("scenes", done, 2)
        clock[0] += 1
    shown = stream.getvalue().split("\r\x1b[2K")
    assert shown == ["", "scenes: 0/2", "scenes: 1/2", ""]


def test_a_closed_stream_ends_no_work():
    stream = io.StringIO()
    progress = patient_progress(stream)
    stream.close()
    progress("scenes", 0, 2)
