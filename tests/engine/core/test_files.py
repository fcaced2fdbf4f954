"""Files that outlive process and machine: whole or not at all; journals that only grow and never wait for a disk."""

import errno
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from agrotools.core import RunStoreError
from agrotools.core.files import (
    Journal,
    copy_whole,
    fold_of,
    pairs_by_hash,
    read_text,
    write_new,
    write_whole,
)
from agrotools.runner.store import RunStore
from support.runs import manifest, record


def broken_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_number: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])  # as on Windows
def test_a_text_is_read_without_its_byte_order_mark(encoding: str, tmp_path: Path):
    (tmp_path / "run.toml").write_bytes("name = 'Größe'\r\n".encode(encoding))
    assert read_text(tmp_path / "run.toml") == "name = 'Größe'\r\n"


def until(condition, timeout_s: float = 10.0) -> None:
    ends = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.002)


def test_lines_are_there_at_once_and_synced_by_a_thread_of_their_own(tmp_path: Path, monkeypatch):
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda _number: synced.append(threading.get_ident()))
    journal = Journal(tmp_path / "lines", sync_every_s=0.02)
    assert synced == []
    journal.append(b"one\n")
    assert (tmp_path / "lines").read_bytes() == b"one\n"
    until(lambda: len(synced) == 1)
    journal.append(b"two\n")
    until(lambda: len(synced) == 2)
    time.sleep(0.1)
    assert len(synced) == 2, "nothing new, nothing to sync"
    assert threading.get_ident() not in synced
    journal.append(b"three\n")
    journal.close()
    assert len(synced) == 3
    assert threading.active_count() == 1 or not any(
        each.name == "sync lines" for each in threading.enumerate()
    )


def test_a_disk_that_refuses_to_sync_is_told_with_the_next_line_and_at_the_end(
    tmp_path: Path, monkeypatch
):
    journal = Journal(tmp_path / "lines", sync_every_s=0.01)
    with monkeypatch.context() as patch:
        broken_disk(patch)
        journal.append(b"one\n")
        until(lambda: not journal._syncing.is_alive())
    with pytest.raises(OSError, match="Input/output error"):
        journal.append(b"two\n")
    with pytest.raises(OSError, match="Input/output error"):
        journal.close()
    assert (tmp_path / "lines").read_bytes() == b"one\n"


def test_a_run_whose_last_records_cannot_be_synced_says_so_when_it_is_closed(
    tmp_path: Path, monkeypatch
):
    store = RunStore(tmp_path, manifest())
    store.append(record("s1"))
    with monkeypatch.context() as patch:
        broken_disk(patch)
        with pytest.raises(RunStoreError, match="Input/output error"):
            store.close()
    RunStore(tmp_path, manifest()).close()


def test_an_error_of_the_run_is_not_hidden_by_that_of_its_end(tmp_path: Path, monkeypatch):
    def run(error: Exception) -> None:
        with RunStore(tmp_path, manifest()) as store:
            store.append(record("s1"))
            broken_disk(patch)
            raise error

    with monkeypatch.context() as patch, pytest.raises(RunStoreError, match="told before"):
        run(RunStoreError("told before"))
    with monkeypatch.context() as patch, pytest.raises(RunStoreError, match="Input/output error"):
        run(ValueError("another"))


def test_a_full_device_takes_no_line(tmp_path: Path):
    journal = Journal(Path("/dev/full"))
    for _ in range(2):
        with pytest.raises(OSError, match=r"No space left|Invalid argument"):
            journal.append(b"line\n")
    journal.close()


@pytest.mark.parametrize(
    "interrupt", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
def test_a_line_that_breaks_off_is_taken_back_before_the_next(
    tmp_path: Path, monkeypatch, interrupt: BaseException
):
    journal = Journal(tmp_path / "lines")
    journal.append(b"first\n")
    write = os.write
    parts: list[int] = []

    def in_parts(number: int, content: bytes) -> int:
        parts.append(number)
        if len(parts) == 2:
            raise interrupt
        return write(number, content[:3])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", in_parts)
        with pytest.raises(type(interrupt)):
            journal.append(b"second\n")
    journal.append(b"third\n")
    journal.close()
    assert (tmp_path / "lines").read_bytes() == b"first\nthird\n"


def test_a_file_is_replaced_whole_or_stays(tmp_path: Path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, b"older")
    write_whole(path, b"old")
    assert not write_new(path, b"new")
    (tmp_path / "source").write_bytes(b"new")
    with monkeypatch.context() as patch:
        broken_disk(patch)
        with pytest.raises(OSError, match="Input/output"):
            write_whole(path, b"new")
        with pytest.raises(OSError, match="Input/output"):
            copy_whole(tmp_path / "source", path)
    assert path.read_bytes() == b"old"
    copy_whole(tmp_path / "source", path)
    assert path.read_bytes() == b"new"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "source"]


def test_a_whole_file_is_synced_before_it_takes_its_name_and_so_is_the_name(
    tmp_path: Path, monkeypatch
):
    seen: list[tuple[str, bool]] = []

    def note(number: int) -> None:
        seen.append((Path(f"/proc/self/fd/{number}").readlink().name, (tmp_path / "file").exists()))

    monkeypatch.setattr(os, "fsync", note)
    write_whole(tmp_path / "file", b"content")
    (first, there_before), (second, there_after) = seen
    assert first.startswith(".file.")
    assert (there_before, second, there_after) == (False, tmp_path.name, True)


def test_files_are_replaced_where_hard_links_are_missing_and_links_stay(tmp_path, monkeypatch):
    def no_links(*_args):
        raise PermissionError("not supported")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    assert write_new(tmp_path / "file", b"x")
    assert (tmp_path / "file").read_bytes() == b"x"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="no regular file"):
        write_whole(tmp_path / "pipe", b"content")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", b"content")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"content"


def test_pairs_follow_the_rank_of_the_hash_and_an_odd_one_stays_alone() -> None:
    assert pairs_by_hash(["d", "b", "a", "c", "f", "e"]) == [["a", "b"], ["c", "d"], ["e", "f"]]
    assert fold_of(["d", "b", "a", "c", "f", "e"]) == {
        "a": 0,
        "b": 0,
        "c": 1,
        "d": 1,
        "e": 0,
        "f": 0,
    }
    assert pairs_by_hash(["b", "c", "a"]) == [["a", "b"], ["c"]]
    assert pairs_by_hash([]) == []
