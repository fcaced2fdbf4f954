"""What is done instead of what a system lacks."""

import asyncio
import os
import select
import threading
from pathlib import Path

import pytest

from agrotools.core.processes import KILL, kill_group, on_stop_signal
from agrotools.core.systems import has_no_reader, has_poll, is_own, locked, read_at


def test_threads_read_a_file_at_any_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "pread", raising=False)
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(100)))
    found: list[bytes] = []
    with path.open("rb") as file:
        threads = [
            threading.Thread(target=lambda at=at: found.append(read_at(file.fileno(), 5, at)))
            for at in range(0, 100, 5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert b"".join(sorted(found)) == bytes(range(100))


def test_nothing_is_said_of_a_pipe_that_cannot_be_asked(monkeypatch: pytest.MonkeyPatch):
    reading, writing = os.pipe()
    os.close(reading)
    assert has_no_reader(writing) == has_poll()
    monkeypatch.delattr(select, "poll", raising=False)
    assert not has_no_reader(writing)
    os.close(writing)


def test_a_folder_is_own_where_users_have_no_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert is_own(tmp_path)
    monkeypatch.delattr(os, "getuid", raising=False)
    assert is_own(tmp_path)


def test_a_process_is_killed_where_there_are_no_groups(monkeypatch: pytest.MonkeyPatch):
    killed: list[tuple[int, int]] = []
    monkeypatch.delattr(os, "killpg", raising=False)
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append((pid, number)))
    kill_group(4242)
    assert killed == [(4242, KILL)]


def test_a_locked_file_can_be_written(tmp_path: Path):
    path = tmp_path / "log"
    with path.open("ab") as file, locked(file, path):
        file.write(b"line\n")
    assert path.read_bytes() == b"line\n"


def test_a_thread_that_gets_no_signals_goes_on():
    async def work() -> str:
        with on_stop_signal(lambda: None):
            return "done"

    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(work())))
    thread.start()
    thread.join()
    assert results == ["done"]
