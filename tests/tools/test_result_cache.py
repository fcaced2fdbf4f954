"""The result cache: found again when nothing changed, never when something did, and never in the way."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import hostile_tools
import pytest
import pytest_asyncio

from agrotools.core import SampleFile, ToolCall
from agrotools.tools import cache as cache_module
from agrotools.tools.cache import ResultCache, code_hash
from agrotools.tools.contract import tool
from agrotools.tools.execution import ToolExecutor, ToolOutcome
from agrotools.tools.workspace import Workspace

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
        return ToolExecutor(workers=1, cache=self.cache, timeout_s=self.timeout_s, find_tool=find_tool)

    async def call(self, name: str = "look", workspace: Workspace | None = None, **arguments: Any) -> ToolOutcome:
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
    assert (first.cached, second.cached) == (False, True)
    assert second.observation == first.observation
    assert (workspace.artifacts / "figure.png").read_bytes() == b"drawn from pixels"
    await bench.call()
    assert (await bench.call(artifact_name="figure.png")).cached


@pytest.mark.parametrize("change", ["pixels", "metadata", "arguments", "code", "library", "version", "back-end"])
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
    assert not (await bench.call(**arguments)).cached


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
    assert (first.cached, second.cached) == (False, True)
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
    artifact = next(path for path in (bench.cache.folder / "artifacts").rglob("*") if path.is_file())
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
    assert not again.cached
    assert runs(again) == 2
    assert (await bench.call()).cached


async def test_a_cache_that_cannot_be_written_costs_nothing_but_time(bench):
    bench.cache.folder.write_bytes(b"a file where the folder should be")
    assert [runs(await bench.call()) for _ in range(2)] == [1, 2]


async def test_equal_calls_at_the_same_time_run_once(bench):
    outcomes = await asyncio.gather(*(bench.call() for _ in range(8)))
    assert {runs(outcome) for outcome in outcomes} == {1}
    assert sum(not outcome.cached for outcome in outcomes) == 1


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
