"""The result cache: found again when nothing changed, never when something did, and never in the way."""

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import hostile_tools
import pytest
import pytest_asyncio
from filelock import FileLock

from agrotools.calling import cache as cache_module
from agrotools.calling.cache import (
    DEFAULT_LIMIT_MB,
    ResultCache,
    Sweeper,
    code_hash,
    limit_from_environment,
)
from agrotools.calling.contract import tool
from agrotools.calling.execution import ToolExecutor, ToolOutcome
from agrotools.calling.result import Reply
from agrotools.calling.workspace import Workspace
from agrotools.core import SampleFile, ToolCall

TOOLSET = tuple(hostile_tools.BY_NAME)


class Bench:
    """An executor with a cache, a file, and a new artifacts folder for each call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = ResultCache(folder / "cache")
        self.image = folder / "image_1.jpg"
        self.image.write_bytes(b"pixels")
        self.info: dict[str, Any] = {"gsd_m": 0.05}
        self.calls = 0
        self.timeout_s = 20.0

    def workspace(self) -> Workspace:
        self.calls += 1
        file = SampleFile(name="image_1.jpg", path=str(self.image), kind="image", **self.info)
        return Workspace((file,), self.folder / f"artifacts_{self.calls}")

    @cached_property
    def executor(self) -> ToolExecutor:
        find_tool = hostile_tools.BY_NAME.__getitem__
        return ToolExecutor(
            workers=1, cache=self.cache, timeout_s=self.timeout_s, find_tool=find_tool
        )

    async def call(
        self, name: str = "look", workspace: Workspace | None = None, **arguments: Any
    ) -> ToolOutcome:
        if name == "look":
            arguments = {"image": "image_1.jpg", **arguments}
        call = ToolCall(tool=name, arguments=arguments)
        return await self.executor.run(call, workspace or self.workspace(), TOOLSET)

    def entries(self) -> list[Path]:
        return sorted((self.cache.folder / "results").rglob("*.json"))


@pytest_asyncio.fixture
async def bench(tmp_path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    async with bench.executor:
        pass


def runs(outcome: ToolOutcome) -> Any:
    assert outcome.observation.result is not None, outcome.observation.error
    return outcome.observation.result["runs"]


async def test_equal_calls_are_found_also_with_defaults_written_out(bench):
    first = await bench.call()
    workspace = bench.workspace()
    second = await bench.call(workspace=workspace)
    assert (first.source, second.source) == ("tool", "cache")
    assert second.observation == first.observation
    assert (workspace.artifacts / "figure.png").read_bytes() == b"drawn from pixels"
    await bench.call()
    assert (await bench.call(artifact_name="figure.png")).source == "cache"


@pytest.mark.parametrize(
    "change", ["pixels", "metadata", "arguments", "code", "library", "version", "back-end"]
)
async def test_whatever_can_change_the_result_is_in_the_key(bench, monkeypatch, change):
    await bench.call()
    arguments = {}
    if change == "pixels":
        bench.image.write_bytes(b"pixelz")
    elif change == "metadata":
        bench.info["gsd_m"] = 0.1
    elif change == "arguments":
        arguments["artifact_name"] = "other.png"
    elif change == "code":
        monkeypatch.setattr(cache_module, "code_hash", lambda _: "other")
    elif change == "library":
        monkeypatch.setattr(cache_module, "library_versions", lambda: {"numpy": "0"})
    elif change == "version":
        monkeypatch.setattr(hostile_tools.look, "version", "2")
    else:
        monkeypatch.setattr(hostile_tools.look, "backends", ("other",))
    assert (await bench.call(**arguments)).source == "tool"


def test_data_files_of_a_tool_are_in_the_key(tmp_path):
    head = tmp_path / "head.npz"

    def keyed() -> str:
        return ResultCache(tmp_path / "cache").key(with_head, "offline", {}, {}, {})

    @tool(category="general", data_files=lambda: [head])
    def with_head() -> hostile_tools.Empty:
        """Use a trained head."""
        return hostile_tools.Empty()

    without = keyed()
    head.write_bytes(b"weights")
    trained = keyed()
    head.write_bytes(b"better weights")
    assert len({without, trained, keyed()}) == 3


async def test_typed_errors_are_kept(bench):
    first = await bench.call("fail", how="tool_error")
    second = await bench.call("fail", how="tool_error")
    assert (first.source, second.source) == ("tool", "cache")
    assert second.observation == first.observation


@pytest.mark.parametrize("how", ["exception", "abort", "big_result", "sleep"])
async def test_accidents_are_not_kept(bench, how):
    bench.timeout_s = 0.2 if how == "sleep" else bench.timeout_s
    outcome = await bench.call("hang" if how == "sleep" else "fail", how=how)
    assert (outcome.observation.error.kind == "timeout") is (how == "sleep")
    assert bench.entries() == []


async def test_a_tool_that_is_not_cacheable_always_runs(bench, monkeypatch):
    monkeypatch.setattr(hostile_tools.look, "cacheable", False)
    assert [runs(await bench.call()) for _ in range(2)] == [1, 2]
    assert bench.entries() == []


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "not an entry": lambda _content: b"\x00garbage",
    "one digit": lambda content: content.replace(b'"size_bytes":6', b'"size_bytes":7'),
    "cut off": lambda content: content[:-10],
    "empty": lambda _content: b"",
}


def spoil(bench: Bench, how: str) -> None:
    artifact = next(
        path for path in (bench.cache.folder / "artifacts").rglob("*") if path.is_file()
    )
    if how in SPOILT:
        path = bench.entries()[0]
        path.write_bytes(SPOILT[how](path.read_bytes()))
    elif how == "another artifact":
        artifact.write_bytes(b"else")
    else:
        artifact.unlink()


@pytest.mark.parametrize("how", [*SPOILT, "another artifact", "no artifact"])
async def test_a_spoilt_entry_is_ignored_and_written_again(bench, how):
    await bench.call()
    spoil(bench, how)
    again = await bench.call()
    assert again.source == "tool"
    assert runs(again) == 2
    assert (await bench.call()).source == "cache"


async def test_a_cache_that_cannot_be_written_costs_nothing_but_time(bench):
    bench.cache.folder.write_bytes(b"a file where the folder should be")
    assert [runs(await bench.call()) for _ in range(2)] == [1, 2]


async def test_equal_calls_at_the_same_time_run_once(bench):
    outcomes = await asyncio.gather(*(bench.call() for _ in range(8)))
    assert {runs(outcome) for outcome in outcomes} == {1}
    assert sum(outcome.source == "tool" for outcome in outcomes) == 1


async def test_a_cancelled_call_does_not_block_its_equals(bench):
    first = asyncio.create_task(bench.call("echo", value=1, wait_s=0.3))
    await asyncio.sleep(0.1)
    second = asyncio.create_task(bench.call("echo", value=1, wait_s=0.3))
    await asyncio.sleep(0.05)
    first.cancel()
    assert (await second).observation.ok


async def test_a_file_that_cannot_be_hashed_is_a_typed_error(bench, monkeypatch):
    def vanish(*_args: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(ResultCache, "file_hash", vanish)
    outcome = await bench.call()
    assert outcome.observation.error.kind == "unreadable_file"


class TestCodeHash:
    def test_it_follows_the_source_of_a_plug_in(self, tmp_path, monkeypatch):
        (tmp_path / "plugin_for_hash").mkdir()
        (tmp_path / "plugin_for_hash" / "__init__.py").write_text("")
        helper = tmp_path / "plugin_for_hash" / "helper.py"
        helper.write_text("A = 1")
        monkeypatch.syspath_prepend(str(tmp_path))
        before = code_hash.__wrapped__("plugin_for_hash.tools")
        helper.write_text("A = 2")
        assert code_hash.__wrapped__("plugin_for_hash.tools") != before


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


@pytest.mark.process
def test_many_processes_share_a_small_cache(tmp_path):
    """Each finds either what it wrote or nothing, and together they stay within the bounds."""
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from agrotools.calling.cache import ResultCache

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


@contextmanager
def no_room() -> Iterator[None]:
    """No file may grow beyond 100 bytes, as on a full disk; not even that of the test's output."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_costs_the_entry_alone(tmp_path):
    cache = ResultCache(tmp_path)
    with no_room():
        cache.put(key(1), reply(1, 1000))
    assert cache.get(key(1)) is None
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("text", "limit"), [("", DEFAULT_LIMIT_MB), ("200", 200.0), ("0", 0.0), (" 1.5 ", 1.5)]
)
def test_the_limit_comes_from_the_environment(monkeypatch, text, limit):
    monkeypatch.setenv("AGROTOOLS_CACHE_MB", text)
    assert limit_from_environment() == limit
