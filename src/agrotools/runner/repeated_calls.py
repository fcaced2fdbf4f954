"""Results of calls that a run did not make, but with which its lost points are split: ``repeated_calls.jsonl``.

To know what a wrong argument cost, the call is made with the right one, and the calls behind it with what it returns.
``agrotools attribute`` makes them and appends them here; scoring reads them. A call is known by its sample, its epoch
(files that the run made are among its inputs) and its arguments, so the file is never out of date.
"""

from collections.abc import Container, Iterable
from pathlib import Path

import orjson
from pydantic import JsonValue

from agrotools.calling import get_tool
from agrotools.core import FrozenModel, Observation, Record, ToolCall, ToolError
from agrotools.core.files import read_lines
from agrotools.scoring.counterfactual import FindResult

REPEATED_CALLS_FILE = "repeated_calls.jsonl"


ARITHMETIC = "calculate"
"""Tool whose result follows from its arguments alone, in microseconds: its calls are not kept, but calculated."""


class RepeatedCall(FrozenModel):
    """Result of a call on the files of a sample; None if only a service, a model or a tool server of the run could give
    it."""

    sample: str
    epoch: int = 0
    tool: str
    arguments: dict[str, JsonValue]
    observation: Observation | None = None


class RepeatedCalls:
    """Results of repeated calls, found by record and call."""

    def __init__(self, calls: Iterable[RepeatedCall] = ()) -> None:
        self._results: dict[tuple[str, int, bytes], Observation | None] = {}
        for each in calls:
            self.add(each)

    def add(self, repeated: RepeatedCall) -> None:
        """Add a result; a later one of the same call replaces it."""
        call = ToolCall(tool=repeated.tool, arguments=repeated.arguments)
        self._results[repeated.sample, repeated.epoch, _content(call)] = repeated.observation

    def of(self, record: Record) -> FindResult:
        """Return what finds results of calls on the files of a record."""
        sample, epoch = record.sample.id, record.epoch

        def find_result(call: ToolCall) -> Observation | None:
            if call.tool == ARITHMETIC:
                return calculated(call)
            return self._results.get((sample, epoch, _content(call)))

        return find_result

    def knows(self, record: Record, call: ToolCall) -> bool:
        """Return True if a call was repeated, with or without a result."""
        return (record.sample.id, record.epoch, _content(call)) in self._results


def read_repeated_calls(run: Path, served: Container[str] = ()) -> RepeatedCalls:
    """Return the repeated calls of a run, if any; RunStoreError if a line cannot be read.

    ``served``: tools that ran on a server. Their calls without a result are left out, because it may give one now.
    """
    hint = "remove that line, and run agrotools attribute again"
    calls = read_lines(run / REPEATED_CALLS_FILE, RepeatedCall, hint)
    return RepeatedCalls(each for each in calls if each.observation or each.tool not in served)


def calculated(call: ToolCall) -> Observation:
    """Return the result of a call of the tool ``calculate``."""
    tool = get_tool(ARITHMETIC)
    try:
        result = tool(**tool.validate(call.arguments))
    except ToolError as error:
        return Observation(error=error.info)
    return Observation(result=result.model_dump(mode="json"))


def _content(call: ToolCall) -> bytes:
    """Return a call as bytes that are equal for equal calls."""
    return orjson.dumps([call.tool, call.arguments], option=orjson.OPT_SORT_KEYS)
