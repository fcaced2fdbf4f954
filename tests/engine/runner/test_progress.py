"""What a run says of itself while it goes on."""

import io
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from rich.cells import cell_len

from agrotools.core import Record
from agrotools.models import WireStats
from agrotools.runner.progress import Progress, stage_progress
from support.plain_sample import plain_sample

fcntl = pytest.importorskip("fcntl")
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

SAMPLE = plain_sample()
BUSY = WireStats(
    in_flight=64,
    waiting=12,
    rate_limit_waits=7,
    replies=900,
    retries=31,
    cached=40,
    spent_usd=0.0312,
)


def record(seconds: float = 0.0, invalid: str | None = None) -> Record:
    return Record(sample=SAMPLE, mode="no-tool", seconds=seconds, invalid=invalid)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Terminal:
    """A pseudo-terminal: a stream to write to, and what arrived on it."""

    def __init__(self, columns: int) -> None:
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)
        self._arrived = b""
        self.stream = os.fdopen(slave, "w", encoding="utf-8")
        fcntl.ioctl(
            self.stream.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0)
        )

    def pump(self) -> None:
        """Take what has arrived: a terminal that nobody reads holds a few kilobytes and then blocks its writer."""
        with suppress(BlockingIOError):
            while True:
                self._arrived += os.read(self._master, 1 << 16)

    def read(self) -> str:
        """What was written since the last call."""
        self.pump()
        taken, self._arrived = self._arrived, b""
        return taken.decode().replace("\r\n", "\n")

    def close(self) -> None:
        self.stream.close()
        os.close(self._master)


@contextmanager
def terminal(columns: int) -> Iterator[Terminal]:
    made = Terminal(columns)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def _usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")


def drawn(output: str) -> list[str]:
    """The texts that were shown one over the other."""
    return [part for part in output.split("\r\x1b[2K") if part]


@pytest.mark.parametrize("columns", [5, 200])
def test_on_a_terminal_one_line_under_the_title_is_drawn_again_and_never_wraps(columns: int):
    clock = Clock()
    with terminal(columns) as screen:
        progress = Progress(screen.stream, "千问 on b", 400, 0, lambda: BUSY, clock=clock)
        for _ in range(200):
            clock.now += 0.3
            progress.finished(record(0.3, "no reply" if clock.now < 1005 else None))
            progress.tick()
            screen.pump()
        progress.close()
        title, line, _ = screen.read().split("\n")
    assert title == "千问 on b: 400 samples to run"
    lines = drawn(line)
    assert len(lines) > 100
    assert max(map(cell_len, lines)) < columns
    if columns == 200:
        assert lines[-2] == (
            "########........ 200/400 done, 0:01:00, 0:01:00 left, 16 invalid, $0.0312, 200/min, "
            "64 requests in flight, 12 waiting (7 for the rate limit), 31 retries, 40 cached"
        )


@pytest.mark.parametrize(
    ("total", "already", "composition", "shown"),
    [
        (0, 60, "", "60 of 60 answers were recorded earlier and are reused"),
        (59, 1, "", "1 of 60 answers was recorded earlier and is reused"),
        (2, 58, "20 samples in 3 modes", "58 of 60 answers (20 samples in 3 modes) were recorded"),
    ],
)
def test_the_first_line_says_how_many_answers_are_reused(total, already, composition, shown):
    stream = io.StringIO()
    Progress(stream, "model on bench", total, already, composition=composition)
    assert stream.getvalue().startswith(f"model on bench: {shown}")


def test_in_a_pipe_there_are_plain_lines_soon_after_the_start_and_then_every_ten_seconds():
    clock, stream = Clock(), io.StringIO()
    progress = Progress(stream, "model\x1b[31m\n on bench", 1000, 0, lambda: BUSY, clock=clock)
    for _ in range(125):
        clock.now += 0.5
        progress.finished(record(0.5))
        progress.tick()
    progress.close()
    progress.close()
    text = stream.getvalue()
    assert set(text) - {"\n"} == {each for each in text if each.isprintable()}
    lines = text.splitlines()
    assert lines[0] == "model?[31m? on bench: 1,000 samples to run"
    assert [line.split(", ")[1] for line in lines[1:]] == [
        f"0:{minute:02}:{second:02}"
        for minute, second in ((0, 2), (0, 12), (0, 22), (0, 32), (0, 42), (0, 52))
    ] + ["0:01:02"] * 2
    assert "64 requests in flight" in lines[-2]
    assert "in flight" not in lines[-1]
    assert " left" not in lines[-1]


def test_a_first_wave_that_ends_at_once_promises_no_end_at_once():
    clock, stream = Clock(), io.StringIO()
    progress = Progress(stream, "m on b", 6464, 0, clock=clock)
    clock.now += 10
    for _ in range(64):
        progress.finished(record(10.0))
    clock.now += 20
    progress.tick()
    assert "0:50:00 left" in stream.getvalue()


def test_a_hanging_server_is_seen():
    clock, stream = Clock(), io.StringIO()
    stats = WireStats(in_flight=8)
    progress = Progress(stream, "m on b", 10, 0, lambda: stats, clock=clock)
    for _ in range(84):
        clock.now += 0.5
        progress.tick()
    lines = stream.getvalue().splitlines()
    assert "no reply for" not in lines[2]
    assert "no reply for 42 s" in lines[-1]
    stats.replies += 1
    for _ in range(40):
        clock.now += 0.5
        progress.tick()
    assert "no reply for 20 s" in stream.getvalue().splitlines()[-1]
    stats.in_flight = 0
    clock.now += 10
    progress.tick()
    assert "nothing finished for 30 s" in stream.getvalue().splitlines()[-1]


@pytest.mark.process
def test_a_reader_that_goes_away_does_not_harm_the_run():
    code = (
        "import sys, os\n"
        "from agrotools.core import Record\n"
        "from agrotools.runner.progress import Progress\n"
        "from support.plain_sample import plain_sample\n"
        "sys.stdin.readline()\n"
        "progress = Progress(sys.stderr, 'm on b', 5, 0)\n"
        "for _ in range(5):\n"
        "    progress.finished(Record(sample=plain_sample(), mode='no-tool'))\n"
        "    progress.note('more')\n"
        "progress.close()\n"
        "print('ended')\n"
    )
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=writing,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    os.close(writing)
    os.close(reading)
    said, _ = process.communicate("go\n", timeout=60)
    assert (said, process.returncode) == ("ended\n", 0)


def test_streams_that_are_closed_or_full_or_speak_ascii_are_survived():
    closed = io.StringIO()
    closed.close()
    Progress(closed, "m on b", 2, 0).close()
    ended = False
    with suppress(OSError), Path("/dev/full").open("w") as full:
        progress = Progress(full, "m on b", 2, 0)
        progress.finished(record())
        progress.close()
        ended = True
    assert ended
    raw = io.BytesIO()
    ascii_only = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    Progress(ascii_only, "千问 on b", 2, 0).close()
    assert raw.getvalue().startswith(b"\\u5343\\u95ee on b: 2 samples to run\n")


def test_stages_are_told_every_ten_seconds_in_a_pipe_and_live_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
):
    stream, now = io.StringIO(), Clock()
    monkeypatch.setattr("agrotools.runner.progress.time.monotonic", now)
    report = stage_progress(stream)
    for done in range(101):
        report("scenes", done, 100)
        now.now += 0.25
    left = [
        f"scenes: {done}/100, 0:00:{seconds} left" for done, seconds in ((40, "15"), (80, "05"))
    ]
    assert stream.getvalue().splitlines() == ["scenes: 0/100", *left, "scenes: 100/100"]
    monkeypatch.undo()
    with terminal(12) as screen:
        report = stage_progress(screen.stream)
        for done in range(1, 101):
            report("scenes of crop rows", done, 100)
        output = screen.read()
    assert output.count("\n") == 1
    assert all(cell_len(text) < 12 for text in drawn(output.removesuffix("\n")))
