"""Cache, meter and ledger in front of a real endpoint: what is asked there, and what is paid."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from agrotools.core import BudgetReached
from agrotools.models import Completion, Message, ModelSettings
from agrotools.models.metered import (
    Budget,
    CachedModel,
    MeteredModel,
    ResponseCache,
    SpendLedger,
    read_spend,
)
from agrotools.models.openai_compatible import OpenAICompatibleModel
from agrotools.models.prices import Price
from support.openai_server import Body, Endpoint, serve

pytestmark = pytest.mark.process

PRICE = Price(input_usd_per_million=2, output_usd_per_million=8, source="test")
EACH = 100 * 2e-6 + 20 * 8e-6


def _reply(_body: Body) -> web.Response:
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    choice = {"message": {"role": "assistant", "content": "8.9 %"}, "finish_reason": "stop"}
    return web.json_response({"choices": [choice], "usage": usage})


async def _run(
    endpoint: Endpoint, folder: Path, *, questions: int, epochs: int = 1, budget_usd: float = 1.0
) -> list[Completion | BaseException]:
    wire = OpenAICompatibleModel("m", base_url=endpoint.base_url)
    with SpendLedger(folder / "spend.jsonl") as ledger, ResponseCache(folder / "c.sqlite") as cache:
        paid = MeteredModel(wire, PRICE, Budget(budget_usd, ledger))
        asked = [
            CachedModel(paid, cache, epoch).generate(
                [Message.of("user", f"question {number}")], (), ModelSettings(max_output_tokens=100)
            )
            for epoch in range(epochs)
            for number in range(questions)
        ]
        replies = await asyncio.gather(*asked, return_exceptions=True)
        assert cache.fault is None
        assert wire.stats.spent_usd == ledger.total_usd
        assert wire.stats.cached == sum(
            isinstance(reply, Completion) and reply.cached for reply in replies
        )
    await paid.close()
    return replies


async def test_a_second_run_asks_and_pays_nothing_again(tmp_path: Path) -> None:
    async with serve(_reply) as endpoint:
        first = await _run(endpoint, tmp_path, questions=20, epochs=2)
        assert len(endpoint.requests) == 40
        assert read_spend(tmp_path / "spend.jsonl").usd == pytest.approx(40 * EACH)
        again = await _run(endpoint, tmp_path, questions=30, epochs=2)
        assert len(endpoint.requests) == 60
        assert read_spend(tmp_path / "spend.jsonl").usd == pytest.approx(60 * EACH)
    assert all(isinstance(reply, Completion) and not reply.cached for reply in first)
    assert {reply.usage.input_tokens for reply in again if isinstance(reply, Completion)} == {100}


async def test_a_run_ends_below_its_budget_and_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    async with serve(_reply, latency_s=0.01) as endpoint:
        stopped = await _run(endpoint, tmp_path, questions=60, budget_usd=30 * EACH)
        spent = read_spend(tmp_path / "spend.jsonl")
        assert any(isinstance(reply, BudgetReached) for reply in stopped)
        assert 20 * EACH < spent.usd <= 30 * EACH
        assert spent.replies == len(endpoint.requests)
        finished = await _run(endpoint, tmp_path, questions=60, budget_usd=100 * EACH)
        assert all(isinstance(reply, Completion) for reply in finished)
        assert len(endpoint.requests) == 60
        assert read_spend(tmp_path / "spend.jsonl").usd == pytest.approx(60 * EACH)
