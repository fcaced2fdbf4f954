"""The result cache stays within its bounds, whoever writes to it and whatever the disk says."""

import os
import resource
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from agrotools.tools.cache import DEFAULT_LIMIT_MB, ResultCache, Sweeper, limit_from_environment
from agrotools.tools.result import Reply

HOUR_S = 3600


def key(number: int) -> str:
    return f"{number:064x}"


def reply(number: int, size: int = 0) -> Reply:
    return {"result": {"value": number, "padding": "x" * size}, "artifacts": []}, []


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def age(cache: ResultCache, number: int, hours: float) -> Path:
    (path,) = (cache.folder / "results").rglob(f"{key(number)}.json")
    os.utime(path, (time.time() - hours * HOUR_S,) * 2)
    return path


def test_what_was_used_least_recently_goes_first_by_the_hour(tmp_path):
    cache = ResultCache(tmp_path, limit_mb=1)
    for number in range(8):
        cache.put(key(number), reply(number, 100_000))
        age(cache, number, hours=100 - number)
    assert cache.get(key(0)) is not None  # used just now, though it is the oldest
    for number in range(8, 12):
        cache.put(key(number), reply(number, 100_000))
    kept = {number for number in range(12) if cache.get(key(number))}
    assert {0, 8, 9, 10, 11} <= kept
    assert not {1, 2} & kept
    assert size_of(tmp_path) <= 1.1e6
    cache = ResultCache(tmp_path)
    cache.put(key(1), reply(1))
    path = age(cache, 1, hours=0.5)
    before = path.stat().st_mtime
    cache.get(key(1))
    assert path.stat().st_mtime == before
    age(cache, 1, hours=2)
    cache.get(key(1))
    assert time.time() - path.stat().st_mtime < 60


def test_a_small_write_sweeps_what_others_left_if_nobody_did_for_a_day(tmp_path):
    large = tmp_path / "results" / "aa"
    large.mkdir(parents=True)
    for number in range(20):
        (large / f"{number}.json").write_bytes(bytes(100_000))
    ResultCache(tmp_path, limit_mb=1).put(key(1), reply(1))
    assert size_of(tmp_path) <= 1e6
    for number in range(20):
        (large / f"{number}.json").write_bytes(bytes(100_000))
    ResultCache(tmp_path, limit_mb=1).put(key(2), reply(2))
    assert size_of(tmp_path) > 1.9e6  # swept a moment ago
    os.utime(tmp_path / ".swept", (time.time() - 25 * HOUR_S,) * 2)
    ResultCache(tmp_path, limit_mb=1).put(key(3), reply(3))
    assert size_of(tmp_path) <= 1e6


def test_a_sweep_leaves_the_field_to_one_that_is_under_way(tmp_path):
    (tmp_path / "file").write_bytes(bytes(2_000_000))
    sweeper = Sweeper(tmp_path, limit_mb=1)
    with FileLock(tmp_path / ".sweeping"):
        assert sweeper.sweep() == 0
    assert sweeper.sweep() == 2_000_000


def test_many_processes_share_a_small_cache(tmp_path):
    """Each finds either what it wrote or nothing, and together they stay within the bounds."""
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from agrotools.tools.cache import ResultCache

        cache = ResultCache(Path(sys.argv[1]), limit_mb=0.3)
        for number in range(300):
            key = f"{number % 60:064x}"
            cache.put(key, ({"result": {"value": number % 60, "padding": "x" * 10_000}, "artifacts": []}, []))
            found = cache.get(f"{(number * 7) % 60:064x}")
            assert found is None or found[0]["result"]["value"] == (number * 7) % 60
    """)
    workers = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(3)]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    assert 0 < size_of(tmp_path) < 0.4e6


@pytest.fixture
def no_room() -> Iterator[None]:
    """No file may grow beyond 100 bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_costs_the_entry_alone(tmp_path, no_room):
    cache = ResultCache(tmp_path)
    cache.put(key(1), reply(1, 1000))
    assert cache.get(key(1)) is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(("text", "limit"), [("", DEFAULT_LIMIT_MB), ("200", 200.0), ("0", 0.0), (" 1.5 ", 1.5)])
def test_the_limit_comes_from_the_environment(monkeypatch, text, limit):
    monkeypatch.setenv("AGROTOOLS_CACHE_MB", text)
    assert limit_from_environment() == limit
