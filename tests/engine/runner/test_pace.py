"""How many samples are in flight: as many as the endpoint bears, and none is forgotten."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from agrotools.models import WireStats
from agrotools.runner.execute import Pace


async def test_a_growing_limit_lets_more_in_and_a_falling_one_lets_nobody_in() -> None:
    stats = WireStats(limit=2)
    pace = Pace(10, stats)
    entered: list[int] = []

    async def sample(number: int) -> None:
        await pace.acquire()
        entered.append(number)

    tasks = [asyncio.create_task(sample(number)) for number in range(6)]
    await asyncio.sleep(0)
    assert entered == [0, 1]
    stats.limit = 4
    pace.admit()
    await asyncio.sleep(0)
    assert entered == [0, 1, 2, 3]
    stats.limit = 1
    pace.release()
    pace.release()
    await asyncio.sleep(0)
    assert entered == [0, 1, 2, 3]
    pace.open()
    await asyncio.gather(*tasks)
    assert entered == [0, 1, 2, 3, 4, 5]


async def test_a_sample_that_waits_for_a_tool_makes_room_for_another() -> None:
    pace = Pace(10, WireStats(limit=1))
    await pace.acquire()
    waiting = asyncio.create_task(pace.acquire())
    await asyncio.sleep(0)
    assert not waiting.done()
    pace.tool_begins()
    await asyncio.wait_for(waiting, 5)
    pace.tool_ends()
    assert pace.in_use == 2
    assert pace.allowed == 1


async def test_samples_that_wait_between_attempts_make_room_but_not_without_end() -> None:
    stats = WireStats(limit=1)
    pace = Pace(100, stats)
    await pace.acquire()
    waiting = asyncio.create_task(pace.acquire())
    stats.retry_waits = 1
    pace.admit()
    await asyncio.wait_for(waiting, 5)
    stats.retry_waits = 1000
    assert pace.allowed == 9
    stats.limit = 50
    assert pace.allowed == 100
    stats.retry_waits = 0
    assert pace.allowed == 50


@given(st.lists(st.sampled_from(["enter", "leave", "up", "down", "tool", "back"]), max_size=60))
def test_everybody_enters_in_the_end(events: list[str]) -> None:
    async def play() -> None:
        stats = WireStats(limit=1)
        pace = Pace(8, stats)
        tasks: list[asyncio.Task[None]] = []
        tools = 0
        for event in events:
            before = pace.in_use
            if event == "enter":
                tasks.append(asyncio.create_task(pace.acquire()))
            elif event == "leave" and pace.in_use:
                pace.release()
            elif event == "up":
                stats.limit += 1
                pace.admit()
            elif event == "down":
                stats.limit = max(1, stats.limit - 1)
            elif event == "tool" and tools < pace.in_use:
                tools += 1
                pace.tool_begins()
            elif event == "back" and tools:
                tools -= 1
                pace.tool_ends()
            await asyncio.sleep(0)
            assert pace.in_use <= max(before, pace.allowed)
        for _ in range(len(tasks)):
            if pace.in_use:
                pace.release()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert all(task.done() for task in tasks)

    asyncio.run(play())
