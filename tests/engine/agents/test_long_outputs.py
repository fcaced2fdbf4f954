"""Replies of any length: read in time that grows with their length, beside the event loop, and kept in part."""

import asyncio
import importlib.util
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agrotools.agents.llm import LLMAgent
from agrotools.agents.long_replies import (
    LONG_TEXT,
    MOST_KEPT,
    kept_call,
    kept_text,
    parse_in_thread,
)
from agrotools.agents.modes import run_end_to_end
from agrotools.calling.execution import ToolOutcome
from agrotools.core import Observation, SampleView, ToolCall, ToolSpec
from agrotools.models import Completion, Message, ModelSettings
from agrotools.models.base import WireStats
from support.small_sample import small_sample, view_of

ROOT = Path(__file__).parents[3]


def _benchmark() -> Any:
    spec = importlib.util.spec_from_file_location(
        "output_parsing", ROOT / "performance" / "output_parsing.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


READING = _benchmark()
UNITS = (" ", "\n", " \n", "*", "_", "{", "[", '"', "\\", "1", "remove the leaves ", "*_# ")
FRAMES = (("1", "x"), ("score:", "x"), ("```json\n", "\n```"))
LIMIT_S = 2.0
"""Seconds of the processor for a text that takes less than a tenth of one; its square takes many."""


class TooLongError(BaseException):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("reader", READING.READERS)
def test_a_long_reply_of_one_thing_is_read_at_once(reader: str) -> None:
    def stop(*_: object) -> None:
        raise TooLongError

    read = READING.READERS[reader]
    texts = [head + unit * (20_000 // len(unit)) + tail for unit in UNITS for head, tail in FRAMES]
    before = signal.signal(signal.SIGPROF, stop)
    try:
        for text in texts:
            signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
            read(text)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def test_who_stops_a_run_does_not_wait_for_a_text_that_is_being_read() -> None:
    ended = threading.Event()

    async def main() -> None:
        reading = asyncio.create_task(parse_in_thread(lambda: ended.wait(30), LONG_TEXT + 1))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(main())
    assert not ended.is_set(), "the loop was closed while the text was still being read"
    ended.set()


@pytest.mark.parametrize("letter", ["字", "\ud800"])
def test_of_a_long_text_beginning_and_end_are_kept_and_what_is_missing_is_said(letter: str) -> None:
    text = f"begin {letter * 1_500_000} Final Answer: 3"
    kept = kept_text(text)
    assert len(kept.encode("utf-8", "replace")) < MOST_KEPT + 200
    assert kept.startswith("begin ")
    assert kept.endswith("Final Answer: 3")
    left_out = int(kept.split("[... ")[1].split(" characters left out")[0])
    assert left_out + len(kept) - len(
        f"\n[... {left_out} characters left out of the record ...]\n"
    ) == len(text)
    short = text[: MOST_KEPT // 4]
    assert kept_text(short) == short if letter != "\ud800" else "\ud800" not in kept_text(short)


@pytest.mark.parametrize(
    "arguments",
    [
        {"expression": "1+" * 2_000_000, "image": "a.png"},
        {"numbers": [1.5] * 1_000_000},
        {f"a{number}": "x" * 100 for number in range(50_000)},
    ],
)
def test_long_arguments_are_kept_in_part(arguments: dict[str, Any]) -> None:
    kept = kept_call(ToolCall(tool="calculate", arguments=arguments))
    assert len(kept.model_dump_json()) < MOST_KEPT + 1_000
    assert "left out of the record" in kept.model_dump_json()
    small = ToolCall(tool="calculate", arguments={"expression": "1+1"})
    assert kept_call(small) is small


class Parrot:
    """A model that says the same every time."""

    name = "parrot"
    stats = WireStats()

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        return Completion(text=self.replies.pop(0), thought="so " * 500_000)

    async def close(self) -> None:
        pass


LONG_CALL = 'Action: calculate\nAction Input: {"expression": "' + "1+" * 1_000_000 + '1"}'
LONG_ANSWER = "blah " * 300_000 + "\nFinal Answer: " + "three " * 300_000 + "or 4"


def _view(folder: Path) -> SampleView:
    return view_of(small_sample(folder), folder)


def test_a_record_of_long_replies_stays_small_and_the_tool_gets_all_of_its_arguments(
    tmp_path: Path,
) -> None:
    given: list[int] = []

    async def call_tool(call: ToolCall) -> ToolOutcome:
        given.append(len(str(call.arguments["expression"])))
        return ToolOutcome(Observation(result={"value": 1}), 0.0)

    agent = LLMAgent(Parrot(LONG_CALL, LONG_ANSWER, "rows: 4"), mode="end-to-end")
    trajectory = asyncio.run(run_end_to_end(agent, _view(tmp_path), call_tool))
    assert given == [2_000_001]
    assert len(trajectory.model_dump_json()) < 7 * (MOST_KEPT + 1_000)
    assert trajectory.termination == "answered"
    answer = trajectory.answer
    assert answer.startswith("three three")
    assert answer.endswith("or 4\n\nrows: 4")
    assert trajectory.steps[1].reply.text.endswith("or 4")
