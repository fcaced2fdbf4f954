"""Requests and tokens a minute, in virtual time."""

import asyncio
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.models import ImagePart, Message, ModelSettings, TextPart
from agrotools.models.limits import RateLimit, TokenEstimate
from support.virtual_time import run_virtually


async def sent(limit: RateLimit, requests: int, tokens: int = 0) -> list[float]:
    """When each of ``requests``, all wanted at once, was let go."""
    loop = asyncio.get_running_loop()
    times: list[tuple[int, float]] = []

    async def request(number: int) -> None:
        await limit.admit(tokens)
        times.append((number, loop.time()))

    await asyncio.gather(*(request(number) for number in range(requests)))
    assert [number for number, _ in times] == list(range(requests)), "first come, first served"
    return [time for _, time in times]


def most_in_a_minute(times: list[float]) -> int:
    ordered = sorted(times)
    return max(
        bisect_left(ordered, start + 60 - 1e-6) - index for index, start in enumerate(ordered)
    )


@pytest.mark.parametrize("rpm", [1, 7, 500])
def test_no_minute_has_more_requests_than_allowed_and_none_is_wasted(rpm: int) -> None:
    times = run_virtually(sent(RateLimit(rpm=rpm), 3 * rpm + 1))
    assert most_in_a_minute(times) <= rpm
    assert times[-1] <= 60 * 3 * 1.05


def test_a_request_larger_than_the_limit_goes_and_the_next_waits_for_its_debt() -> None:
    times = run_virtually(sent(RateLimit(tpm=6_000), 3, tokens=12_000))
    assert times[0] == 0
    assert times[1] - times[0] == pytest.approx(120, rel=0.02)
    assert times[2] - times[1] == pytest.approx(120, rel=0.02)


def test_an_estimate_is_settled_by_what_was_used() -> None:
    async def run() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        limit = RateLimit(tpm=6_000)
        await limit.admit(5_000)
        waiting = asyncio.create_task(limit.admit(100))
        await asyncio.sleep(1)
        limit.settle(5_000, 100)
        await waiting
        cheap = loop.time()
        limit.settle(100, 5_000)
        await limit.admit(100)
        return cheap, loop.time() - cheap

    cheap, dear = run_virtually(run())
    assert cheap <= 2
    assert dear > 40


def test_a_pause_holds_everybody_back_and_then_ends() -> None:
    async def run() -> list[float]:
        limit = RateLimit()
        assert limit.try_admit()
        limit.pause(30)
        limit.pause(5)
        assert not limit.try_admit()
        times = await sent(limit, 5)
        assert limit.try_admit()
        return times

    assert run_virtually(run()) == [pytest.approx(30)] * 5


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 100), st.booleans()), min_size=1, max_size=25
    )
)
def test_who_gives_up_takes_nothing_and_holds_nobody_back(
    requests: list[tuple[int, int, bool]],
) -> None:
    """Requests arrive after ``arrival`` seconds; some give up after ``patience`` tenths of a second."""

    async def run() -> None:
        limit = RateLimit(rpm=60, tpm=60_000)
        loop = asyncio.get_running_loop()
        gone: list[float] = []

        async def request(arrival: int, patience: int, gives_up: bool) -> None:
            await asyncio.sleep(arrival)
            try:
                async with asyncio.timeout(patience / 10 if gives_up else None):
                    await limit.admit(100)
                gone.append(loop.time())
            except TimeoutError:
                pass

        await asyncio.gather(*(request(*item) for item in requests))
        assert len(gone) >= sum(not gives_up for _, _, gives_up in requests)
        # One a second: the last leaves at most that long after the last arrival.
        assert max(gone, default=0) <= 21 + len(gone)
        assert most_in_a_minute(gone) <= 60 if gone else True

    run_virtually(run())


def test_estimates_learn_what_requests_cost() -> None:
    estimate = TokenEstimate()
    messages = [
        Message(
            role="user",
            content=(
                TextPart(text="x" * 3500),
                ImagePart(url="data:image/png;base64," + "A" * 10**6),
            ),
        )
    ]
    settings = ModelSettings(max_output_tokens=1000)
    first = estimate.of(messages, (), settings)
    assert first == 3000
    for _ in range(40):
        estimate.learn(estimate.of(messages, (), settings), 1500)
    assert estimate.of(messages, (), settings) == pytest.approx(1500, rel=0.01)
    assert estimate.of([], (), ModelSettings(max_output_tokens=None)) > 0
