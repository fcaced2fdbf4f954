"""The part of a prompt that servers and providers cache: the same bytes for all samples of a benchmark."""

import asyncio
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from agrotools.agents.llm import LLMAgent
from agrotools.core import PROTOCOLS, Mode, Protocol
from agrotools.formats.benchmark import Benchmark
from agrotools.loading.pack import Pack, read_pack
from agrotools.models.base import function_list, message_on_wire
from agrotools.models.endpoint import ScriptedModel
from agrotools.runner.plan import with_offered_tools


@pytest.fixture(scope="module")
def pack() -> Pack:
    return read_pack("embedded")


@pytest.fixture(scope="module")
def benchmark(pack: Pack) -> Benchmark:
    return Benchmark(pack.header, Path(), pack.samples, "")


def openings(benchmark: Benchmark, protocol: Protocol, mode: Mode) -> set[tuple[str, bytes]]:
    """The system messages and the tools of the requests about all samples."""

    async def ask() -> set[tuple[str, bytes]]:
        found: set[tuple[str, bytes]] = set()
        for sample in benchmark.samples:
            agent = LLMAgent(ScriptedModel([]), mode, protocol, images=False)
            view = benchmark.view(sample, mode).model_copy(update={"files": ()})
            messages, tools = await agent.request_for(view, ())
            assert [message.role for message in messages] == ["system", "user"]
            assert sample.query in messages[1].text
            found.add((message_on_wire(messages[0])["content"], orjson.dumps(function_list(tools))))
        return found

    return asyncio.run(ask())


@pytest.mark.parametrize("mode", ["step-by-step", "end-to-end"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_with_all_tools_every_sample_has_the_same_instructions_and_tools(
    benchmark: Benchmark, protocol: Protocol, mode: Mode
) -> None:
    assert len(benchmark.samples) > 400
    assert len(openings(benchmark, protocol, mode)) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_with_the_needed_tools_the_text_before_the_list_is_the_same(
    benchmark: Benchmark, protocol: Protocol
) -> None:
    ((whole, _),) = openings(
        replace(benchmark, samples=benchmark.samples[:1]), protocol, "end-to-end"
    )
    before, listed, _ = whole.partition(f"\n\n{benchmark.toolset[0]}: ")
    needed = openings(with_offered_tools(benchmark, "needed", protocol), protocol, "end-to-end")
    systems = {system for system, _ in needed}
    assert all(system.startswith(before) for system in systems)
    assert bool(listed) is (len(systems) > 1) is (protocol == "react")
    assert len(needed) > 1
