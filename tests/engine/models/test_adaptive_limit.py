"""How many requests are let through: permits are never lost, and the limit finds what a server bears."""

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.models.limits import AdaptiveLimit
from support.virtual_time import run_virtually

Latency = Callable[[int], float]
"""From requests in flight to the seconds that one takes."""


def queue(capacity: int, service_s: float = 1.0) -> Latency:
    """A server with ``capacity`` workers: more requests wait, and no more are done."""
    return lambda in_flight: service_s * max(1.0, in_flight / capacity)


async def load(
    limit: AdaptiveLimit,
    latency: Latency,
    seconds: float,
    *,
    refuses_above: int | None = None,
    workers: int = 200,
) -> tuple[list[int], int]:
    """Requests as fast as the limit allows; the limit as it was each second, and how many were refused."""
    loop = asyncio.get_running_loop()
    luck = random.Random(4)
    in_flight = refused = 0
    end = loop.time() + seconds

    async def worker() -> None:
        nonlocal in_flight, refused
        while loop.time() < end:
            await limit.acquire()
            began = loop.time()
            in_flight += 1
            try:
                if refuses_above is not None and in_flight > refuses_above:
                    refused += 1
                    await asyncio.sleep(0.05)
                    limit.overloaded(loop.time() - began)
                else:
                    await asyncio.sleep(latency(in_flight) * luck.uniform(0.8, 1.25))
                    limit.replied(loop.time() - began)
            finally:
                in_flight -= 1
                limit.release()

    history: list[int] = []

    async def watch() -> None:
        while loop.time() < end:
            history.append(limit.current)
            await asyncio.sleep(1.0)

    await asyncio.gather(watch(), *(worker() for _ in range(workers)))
    return history, refused


def simulate(
    latency: Latency, seconds: float = 60, *, start: int = 8, ceiling: int = 128, **options: int
):
    async def run() -> tuple[list[int], int]:
        limit = AdaptiveLimit(start, ceiling, clock=asyncio.get_running_loop().time)
        return await load(limit, latency, seconds, **options)

    return run_virtually(run())


def test_the_limit_doubles_each_round_while_latency_stays() -> None:
    history, _ = simulate(lambda _: 1.0, 8)
    assert history[0] == 8
    assert history[-1] == 128
    assert [limit for limit in dict.fromkeys(history) if limit < 128] == [8, 16, 32, 64]


@pytest.mark.parametrize("capacity", [4, 48])
def test_a_queue_ends_the_rise_without_a_refusal(capacity: int) -> None:
    history, _ = simulate(queue(capacity), 200)
    late = history[100:]
    assert capacity * 0.6 <= sum(late) / len(late) <= max(8, capacity) * 3


def test_refusals_bring_the_limit_down_and_silence_brings_it_back() -> None:
    history, refused = simulate(lambda _: 1.0, 120, refuses_above=40)
    late = history[40:]
    assert 20 <= sum(late) / len(late) <= 44
    assert refused < 400  # of some 4,000 requests

    async def recover() -> int:
        limit = AdaptiveLimit(clock=asyncio.get_running_loop().time)
        await load(limit, lambda _: 1.0, 20, refuses_above=20)
        low = limit.current
        assert low <= 24
        await load(limit, lambda _: 1.0, 60)
        return limit.current

    assert run_virtually(recover()) == 128


def test_a_chosen_limit_is_kept_whatever_the_latency_and_is_never_exceeded() -> None:
    history, _ = simulate(queue(4), 30, start=64, ceiling=64)
    assert set(history) == {64}
    history, _ = simulate(lambda _: 1.0, 100, start=64, ceiling=64, refuses_above=30)
    assert max(history) == 64
    assert sum(history[20:]) / len(history[20:]) < 36


def test_a_round_trip_of_refusals_is_answered_once() -> None:
    now = 0.0
    limit = AdaptiveLimit(64, 64, clock=lambda: now)
    now = 10.0
    for _ in range(64):
        limit.overloaded(latency_s=1.0)
    assert limit.current == 32
    now = 10.5
    limit.overloaded(latency_s=1.0)
    assert limit.current == 32
    now = 12.0
    limit.overloaded(latency_s=1.0)
    assert limit.current == 16
    for _ in range(20):
        now += 2.0
        limit.overloaded(latency_s=1.0)
    assert limit.current == 1


Event = st.tuples(
    st.sampled_from(["ask", "cancel", "finish", "replied", "overloaded", "turn"]),
    st.integers(0, 30),
)


@given(st.lists(Event, max_size=80), st.integers(1, 6), st.integers(0, 6))
def test_no_permit_is_lost_or_doubled_whoever_gives_up_when(
    events: list[tuple[str, int]], start: int, more: int
) -> None:
    async def play() -> None:
        limit = AdaptiveLimit(start, start + more)
        finish: dict[int, asyncio.Event] = {}
        tasks: list[asyncio.Task[None]] = []
        inside = 0

        async def request(number: int) -> None:
            nonlocal inside
            await limit.acquire()
            inside += 1
            try:
                await finish[number].wait()
            finally:
                inside -= 1
                limit.release()

        for event, number in events:
            before = limit.in_use
            if event == "ask":
                finish[len(tasks)] = asyncio.Event()
                tasks.append(asyncio.create_task(request(len(tasks))))
            elif event == "turn":
                await asyncio.sleep(0)
            elif event == "replied":
                limit.replied(0.001 * number)
            elif event == "overloaded":
                limit.overloaded()
            elif tasks and event == "cancel":
                tasks[number % len(tasks)].cancel()
            elif tasks and event == "finish":
                finish[number % len(tasks)].set()
            assert limit.in_use <= max(limit.current, before)
            assert 1 <= limit.current <= limit.ceiling
        for _ in range(3):
            await asyncio.sleep(0)
        waiting = sum(not task.done() for task in tasks) - inside
        assert inside == limit.in_use
        # Whoever can go has gone.
        assert waiting == 0 or inside >= limit.current
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert limit.in_use == inside == 0
        assert all(limit.try_acquire() for _ in range(limit.current))
        assert not limit.try_acquire()

    asyncio.run(play())


def test_no_more_are_let_through_while_replies_take_half_of_the_time_out() -> None:
    async def run(timeout_s: float) -> int:
        limit = AdaptiveLimit(32, 32, clock=asyncio.get_running_loop().time, timeout_s=timeout_s)
        limit.overloaded(most=4)
        await load(limit, queue(1, 0.5), 200)
        return limit.current

    assert run_virtually(run(5.0)) <= 7
    assert run_virtually(run(1e9)) == 32
