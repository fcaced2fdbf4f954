"""What a tool call costs beside the tool itself: start of a worker, round trip, cached call.

python benchmarks/tool_calls.py
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from agrotools.core import SampleFile, ToolCall
from agrotools.tools import AGROTOOLS, get_tool
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor, ToolOutcome
from agrotools.tools.workspace import Workspace, artifacts_in

CALCULATE = ToolCall(tool="calculate", arguments={"expression": "(a - b) / a * 100", "variables": {"a": 3, "b": 1}})
PLOT = ToolCall(
    tool="plot",
    arguments={"kind": "bar", "series": [{"name": "weeds", "x": ["a", "b", "c"], "y": [3, 1, 2]}], "title": "Weeds"},
)

CALLERS, CALLS_EACH = 64, 40


def numbered(number: int) -> ToolCall:
    variables = {"a": 3 + number, "b": 1}
    return ToolCall(tool="calculate", arguments={"expression": "(a - b) * 100", "variables": variables})


async def timed(call: Callable[[], Awaitable[ToolOutcome]], times: int) -> tuple[float, float, float]:
    """Medians of the wall time, of the time of the tool itself, and of the difference of the two, milliseconds."""
    walls: list[float] = []
    inside: list[float] = []
    for _ in range(times):
        started = time.perf_counter()
        outcome = await call()
        walls.append(1000 * (time.perf_counter() - started))
        inside.append(1000 * outcome.seconds)
        assert outcome.observation.ok, outcome
    rest = [wall - tool for wall, tool in zip(walls, inside, strict=True)]
    return statistics.median(walls), statistics.median(inside), statistics.median(rest)


async def main() -> None:
    get_tool("calculate"), get_tool("plot")
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "image_1.jpg"
        image.write_bytes(bytes(4 * 2**20))
        file = SampleFile(name="image_1.jpg", path=str(image), kind="image")
        workspace = Workspace((file,), Path(folder) / "artifacts")

        async def run(executor: ToolExecutor, call: ToolCall) -> ToolOutcome:
            return await executor.run(call, workspace, AGROTOOLS)

        starts: list[float] = []
        for _ in range(5):
            async with ToolExecutor(workers=1) as executor:
                started = time.perf_counter()
                await run(executor, CALCULATE)
                starts.append(time.perf_counter() - started)
        print(f"first calculate call, worker start included: {1000 * statistics.median(starts):.0f} ms")

        async with ToolExecutor(workers=1) as executor:
            for call, times in ((CALCULATE, 1000), (PLOT, 15)):
                await run(executor, call)
                wall, inside, rest = await timed(lambda call=call: run(executor, call), times)
                print(f"{call.tool}: {wall:.2f} ms, of which the tool {inside:.2f} ms, the rest {rest:.2f} ms")

        async with ToolExecutor(workers=1, cache=ResultCache(Path(folder) / "cache")) as executor:
            await run(executor, PLOT)
            wall, _, _ = await timed(lambda: run(executor, PLOT), 300)
            print(f"plot, cached: {wall:.2f} ms")

        for cache in (None, ResultCache(Path(folder) / "other")):
            async with ToolExecutor(workers=2, cache=cache) as executor:
                await asyncio.gather(*(run(executor, numbered(-n)) for n in range(4)))

                async def several(executor: ToolExecutor, start: int) -> None:
                    for number in range(start, start + CALLS_EACH):
                        outcome = await run(executor, numbered(number))
                        assert outcome.observation.ok, outcome

                wall, cpu = time.perf_counter(), time.process_time()
                await asyncio.gather(*(several(executor, 1 + CALLS_EACH * k) for k in range(CALLERS)))
                calls = CALLERS * CALLS_EACH
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                print(
                    f"{calls} different calculate calls by {CALLERS} callers, 2 workers, "
                    f"{'with' if cache else 'without'} cache: {calls / wall:.0f} calls/s, "
                    f"CPU of this process {1000 * cpu / calls:.2f} ms a call"
                )

        with artifacts_in(folder):
            started = time.perf_counter()
            for _ in range(1000):
                get_tool("calculate")(**CALCULATE.arguments)
            print(f"calculate as plain Python: {time.perf_counter() - started:.2f} ms")


if __name__ == "__main__":
    asyncio.run(main())
