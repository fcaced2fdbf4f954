"""Metered models: what is charged, and that no order of requests and replies exceeds a budget."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import BudgetReached, InfrastructureError, ToolSpec, Usage
from agrotools.models import (
    Completion,
    ImagePart,
    Message,
    ModelSettings,
    RequestedCall,
    TextPart,
    WireStats,
)
from agrotools.models.endpoint import ScriptedModel
from agrotools.models.metered import DEFAULT_OUTPUT_TOKENS, Budget, MeteredModel, bound_of, charged
from agrotools.models.prices import Price

PRICE = Price(input_usd_per_million=2, output_usd_per_million=8, source="test")
ASKED = [Message.of("user", "How many apples?")]
LIMITED = ModelSettings(max_output_tokens=1000)
SPEC = ToolSpec(
    name="f", category="c", version="1", description="d", parameters={}, agreement={}, defaults={}
)


class Purse:
    """A ledger in memory."""

    def __init__(self, spent_usd: float = 0.0) -> None:
        self.total_usd = spent_usd
        self.lines: list[tuple[int, int, float]] = []

    def add(self, input_tokens: int, output_tokens: int, usd: float) -> None:
        self.lines.append((input_tokens, output_tokens, usd))
        self.total_usd += usd


class Slow:
    """A model that takes its time and then uses what it is told to of what it may use."""

    def __init__(self, shares: Sequence[tuple[float, float, int]]) -> None:
        self.name = "slow"
        self.stats = WireStats()
        self.in_flight = 0
        self.most_in_flight = 0
        self._shares = iter(shares)

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        share_in, share_out, wait = next(self._shares)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            for _ in range(wait):
                await asyncio.sleep(0)
            if share_in < 0:
                raise InfrastructureError("no reply")
            bound = bound_of(self.name, messages, tools, settings, PRICE)
            usage = Usage(
                input_tokens=round(bound.input_tokens * share_in),
                output_tokens=round(bound.output_tokens * share_out),
            )
            return Completion(text="x", usage=usage)
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        return None


shares = st.tuples(st.floats(-0.2, 1), st.floats(0, 1), st.integers(0, 5))


@given(
    st.lists(shares, min_size=1, max_size=40),
    st.floats(0, 0.1),
    st.floats(0, 0.03),
    st.integers(1, 40),
    st.booleans(),
)
def test_no_budget_is_ever_exceeded(
    replies: list[tuple[float, float, int]],
    budget_usd: float,
    spent_usd: float,
    concurrency: int,
    stop_at_once: bool,
) -> None:
    purse = Purse(spent_usd)
    ended: list[str] = []

    async def run() -> None:
        model = MeteredModel(Slow(replies), PRICE, Budget(budget_usd, purse))
        queue = iter(range(len(replies)))

        async def work() -> None:
            for number in queue:
                asked = [Message.of("user", "a" * (number * 37 % 3000))]
                limit = ModelSettings(max_output_tokens=1 + number * 613 % 2500)
                try:
                    await model.generate(asked, (), limit)
                    ended.append("replied")
                except InfrastructureError:
                    ended.append("failed")
                except BudgetReached:
                    ended.append("stopped")
                    if stop_at_once:
                        return

        await asyncio.wait_for(asyncio.gather(*(work() for _ in range(concurrency))), 10)
        assert model.stats.waiting == 0
        assert model.stats.spent_usd == purse.total_usd

    asyncio.run(run())
    assert purse.total_usd <= max(budget_usd, spent_usd) + 1e-12
    assert purse.total_usd == pytest.approx(spent_usd + sum(usd for *_, usd in purse.lines))
    assert len(purse.lines) == ended.count("replied")
    assert stop_at_once or len(ended) == len(replies)


async def test_requests_wait_for_those_in_flight_before_the_budget_is_called_reached() -> None:
    one = PRICE.usd(*_tokens(bound_of("slow", ASKED, (), LIMITED, PRICE)))
    slow = Slow([(0.1, 0.1, 3)] * 20)
    purse = Purse()
    model = MeteredModel(slow, PRICE, Budget(one * 3.5, purse))
    replies = await asyncio.gather(*(model.generate(ASKED, (), LIMITED) for _ in range(20)))
    assert len(replies) == len(purse.lines) == 20
    assert slow.most_in_flight == 3
    assert purse.total_usd == pytest.approx(one * 2, rel=0.02)


async def test_what_a_reply_did_not_take_is_free_again_while_others_are_in_flight() -> None:
    one = PRICE.usd(*_tokens(bound_of("slow", ASKED, (), LIMITED, PRICE)))
    model = MeteredModel(
        Slow([(0.1, 0.1, 10_000), *[(0.01, 0.01, 1)] * 20]), PRICE, Budget(2.5 * one, Purse())
    )
    long = asyncio.create_task(model.generate(ASKED, (), LIMITED))
    await asyncio.sleep(0)
    await asyncio.gather(*(model.generate(ASKED, (), LIMITED) for _ in range(20)))
    assert not long.done()
    long.cancel()


def _tokens(bound: Usage) -> tuple[int, int]:
    return bound.input_tokens, bound.output_tokens


async def test_a_cancelled_or_failed_request_gives_its_reservation_back() -> None:
    one = PRICE.usd(*_tokens(bound_of("slow", ASKED, (), LIMITED, PRICE)))
    purse = Purse()
    model = MeteredModel(
        Slow([(0.5, 0.5, 10_000), (-1, 0, 0), (1, 1, 0)]), PRICE, Budget(one, purse)
    )
    first = asyncio.create_task(model.generate(ASKED, (), LIMITED))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(model.generate(ASKED, (), LIMITED))
    await asyncio.sleep(0)
    assert model.stats.waiting == 1
    first.cancel()
    with pytest.raises(InfrastructureError):
        await waiting
    await model.generate(ASKED, (), LIMITED)
    assert [usd for *_, usd in purse.lines] == [pytest.approx(one)]
    assert model.stats.waiting == 0
    with pytest.raises(BudgetReached):
        await model.generate(ASKED, (), LIMITED)


async def test_an_endpoint_that_counts_more_than_foreseen_is_believed_from_then_on() -> None:
    bound = bound_of("slow", ASKED, (), LIMITED, PRICE)
    once = PRICE.usd(100 * bound.input_tokens, 0)
    foreseen = PRICE.usd(bound.input_tokens, bound.output_tokens)
    assert foreseen < once / 2
    purse = Purse()
    model = MeteredModel(Slow([(100.0, 0.001, 0)] * 2), PRICE, Budget(once + 2 * foreseen, purse))
    await model.generate(ASKED, (), LIMITED)
    with pytest.raises(BudgetReached):
        await model.generate(ASKED, (), LIMITED)
    assert purse.total_usd == pytest.approx(once, rel=0.01)


async def test_without_a_budget_everything_is_counted_and_nothing_held_back() -> None:
    purse = Purse(5.0)
    model = MeteredModel(ScriptedModel(lambda *_: "x"), PRICE, Budget(None, purse))
    assert model.stats.spent_usd == 5.0
    await asyncio.gather(*(model.generate(ASKED, (), LIMITED) for _ in range(10)))
    assert len(purse.lines) == 10
    assert model.stats.spent_usd == purse.total_usd > 5.0
    await model.close()


BOUND = Usage(input_tokens=100, output_tokens=50)
CALL = (RequestedCall(name="f"),)


@pytest.mark.parametrize(
    ("completion", "paid"),
    [
        (Completion(text="x", usage=Usage(input_tokens=7, output_tokens=3)), (7, 3)),
        (Completion(text="x"), (100, 50)),
        (Completion(text="x", usage=Usage(input_tokens=7)), (7, 50)),
        (Completion(tool_calls=CALL, usage=Usage(output_tokens=3)), (100, 3)),
        (Completion(text="x", usage=Usage(input_tokens=700, output_tokens=300)), (700, 300)),
        (Completion(finish_reason="length", text="x"), (100, 50)),
        (
            Completion(
                finish_reason="length", text="x", usage=Usage(input_tokens=7, output_tokens=50)
            ),
            (7, 50),
        ),
        (Completion(finish_reason="filtered"), (100, 0)),
        (Completion(finish_reason="filtered", usage=Usage(input_tokens=7)), (7, 0)),
        (Completion(finish_reason="context"), (0, 0)),
        (Completion(text="x", usage=Usage(input_tokens=7, output_tokens=3), cached=True), (0, 0)),
    ],
)
def test_what_a_reply_is_charged_for(completion: Completion, paid: tuple[int, int]) -> None:
    usage = charged(completion, BOUND)
    assert (usage.input_tokens, usage.output_tokens) == paid


def test_the_bound_counts_every_byte_every_picture_and_every_reply_asked_for() -> None:
    def most(
        messages: Sequence[Message],
        settings: ModelSettings = LIMITED,
        tools: Sequence[ToolSpec] = (),
    ) -> Usage:
        return bound_of("m", messages, tools, settings, PRICE)

    plain = most(ASKED).input_tokens
    assert most([Message.of("user", "How many apples?" + "1" * 500)]).input_tokens == plain + 500
    assert most([Message.of("user", "How many apples?" + "草" * 100)]).input_tokens == plain + 300
    picture = ImagePart(url="data:image/jpeg;base64," + "A" * 100_000)
    shown = most(
        [Message(role="user", content=(TextPart(text="a"), picture, picture))]
    ).input_tokens
    assert 2 * PRICE.image_tokens[1] < shown < 2 * PRICE.image_tokens[1] + 1000
    assert most(ASKED, tools=[SPEC]).input_tokens > plain + 1000
    assert most(ASKED).output_tokens == 1000
    assert most(ASKED, ModelSettings(max_output_tokens=None)).output_tokens == DEFAULT_OUTPUT_TOKENS
