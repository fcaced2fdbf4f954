"""Tokens and cost of external agents: reports over every route, tables, budget, and agents that report nothing."""

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import agrotools as at
from agrotools.core import BudgetReached, UsageError
from agrotools.models.metered import read_spend
from agrotools.report.parts import counts_table
from support.agent_server import agent_serving
from support.benchmark_folders import number_sample, write_folder
from support.shown import rendered

pytestmark = pytest.mark.process
EACH_USD = (3000 * 0.15 + 300 * 0.6) / 1e6
"""Two reports of gpt-4o-mini at its price in the table."""

AGENT = """
import asyncio

def solve(task):
    task.report_usage(input_tokens=1000, output_tokens=100, model="openai:gpt-4o-mini")
    value = task.tools.calculate(expression="1 + 1")["value"]
    task.report_usage(input_tokens=2000, output_tokens=200, cached_input_tokens=500, model="gpt-4o-mini-2024-07-18")
    return f"mean_yield: {value}"

async def solve_async(task):
    task.report_usage(input_tokens=1000, output_tokens=100, model="openai:gpt-4o-mini")
    value = (await task.tools.calculate(expression="1 + 1"))["value"]
    report = dict(input_tokens=2000, output_tokens=200, cached_input_tokens=500, model="gpt-4o-mini-2024-07-18")
    await asyncio.to_thread(task.report_usage, **report)
    return f"mean_yield: {value}"

def silent(task):
    return "mean_yield: 2"

def costs_half_a_dollar(task):
    task.report_usage(cost_usd=0.5)
    return "mean_yield: 2"

def costs_before_its_call(task):
    task.report_usage(cost_usd=5)
    task.tools.calculate(expression="1 + 1")
    return "mean_yield: 2"

def has_no_price(task):
    task.report_usage(input_tokens=10, output_tokens=1, model="of-my-own")
    return "mean_yield: 2"

def lies(task):
    task._send_usage({"cost_usd": -5})
    return "mean_yield: 2"
"""
PROGRAM = """
import asyncio, json, sys
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

async def main():
    server = json.load(open(sys.argv[1]))["mcpServers"]["agrotools"]
    async with httpx2.AsyncClient(headers=server["headers"], timeout=60) as http:  # the first call starts a worker
        async with Client(streamable_http_client(server["url"], http_client=http)) as client:
            assert "report_usage" not in [tool.name for tool in (await client.list_tools()).tools]
            first = {"input_tokens": 1000, "output_tokens": 100, "model": "openai:gpt-4o-mini"}
            assert not (await client.call_tool("report_usage", first)).is_error
            await client.call_tool("calculate", {"expression": "1 + 1"})
            second = {**first, "input_tokens": 2000, "output_tokens": 200, "cached_input_tokens": 500}
            await client.call_tool("report_usage", second)
            await client.call_tool("final_answer", {"text": "mean_yield: 2"})

asyncio.run(main())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(
        tmp_path / "bench", [number_sample(tmp_path / "bench", f"tiny-{n}", n) for n in (1, 2, 3)]
    )


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Current folder with the agents of this file."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "my_agent.py").write_text(AGENT)
    (code / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(code)
    return code


def reported_action(request: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = {
        "input_tokens": 1000,
        "output_tokens": 100,
        "model": "openai:gpt-4o-mini",
    }
    second = {**first, "input_tokens": 2000, "output_tokens": 200, "cached_input_tokens": 500}
    if "form_request" in request:
        return {"answer": "mean_yield: 2"}
    call = {"call": {"tool": "calculate", "arguments": {"expression": "1 + 1"}}, "usage": first}
    return {"answer": "mean_yield: 2", "usage": second} if request["steps"] else call


@pytest.fixture
def agent_server() -> Iterator[str]:
    with agent_serving(reported_action) as address:
        yield address


def evaluated(
    folder: Path, model: Any, out: Path, progress: io.StringIO | None = None, **options: Any
) -> at.Run:
    stream = progress or io.StringIO()
    return at.evaluate(
        folder, model, mode="end-to-end", out=out, progress=stream, concurrency=1, **options
    )


def local_agent(name: str) -> Callable[[at.Task], Any]:
    space: dict[str, Any] = {}
    exec(AGENT, space)
    return space[name]


def test_reports_over_every_route_are_the_same(
    folder: Path, tmp_path: Path, code: Path, agent_server: str
):
    routes = {
        "function": local_agent("solve"),
        "async process": "python:my_agent:solve_async",
        "server": agent_server,
        "program": f"mcp:{sys.executable} program.py {{config}}",
    }
    for route, model in routes.items():
        run = evaluated(folder, model, tmp_path / route, limit=2)
        for record in run.samples():
            assert record.invalid is None, route
            assert record.spending == pytest.approx((3000, 300, EACH_USD, 500)), route
        spend = read_spend(tmp_path / route / "spend.jsonl")
        assert spend == pytest.approx((4, 6000, 600, 2 * EACH_USD)), route


def test_tables_and_rows_show_what_an_agent_used(folder: Path, tmp_path: Path, code: Path):
    run = evaluated(folder, "python:my_agent:solve", tmp_path / "run", price="1/10")
    text = rendered([counts_table([at.score(run).summary])], 160)
    assert "3.0k" in text
    assert "300" in text
    assert "cost of the agent, by its reports: 0.018 USD, 0.006 USD per record" in text
    row = next(iter(run.rows()))
    assert (row["input_tokens"], row["output_tokens"], row["cost_usd"]) == (
        3000,
        300,
        pytest.approx(0.006),
    )


def test_what_an_agent_does_not_report_is_unknown_and_not_zero(
    folder: Path, tmp_path: Path, code: Path
):
    said = io.StringIO()
    run = evaluated(folder, "python:my_agent:silent", tmp_path / "run", said, budget=1)
    summary = at.score(run).summary
    spent = summary.modes["end-to-end"].counts.spent
    assert not {"input_tokens", "output_tokens", "cost_usd"} & set(spent)
    assert "the agent did not report its tokens" in rendered([counts_table([summary])], 160)
    row = next(iter(run.rows()))
    assert (row["input_tokens"], row["output_tokens"], row["cost_usd"]) == (None, None, None)
    assert "cannot limit an agent that reports nothing" in said.getvalue()
    assert said.getvalue().count("the agent reported no usage on tiny-") == 1
    assert not (tmp_path / "run" / "spend.jsonl").exists()
    cost_alone = evaluated(
        folder, "python:my_agent:costs_half_a_dollar", tmp_path / "cost", limit=1
    )
    assert cost_alone.samples()[0].spending == (None, None, 0.5, None)


def test_a_budget_stops_an_agent_and_more_resumes_it(folder: Path, tmp_path: Path, code: Path):
    model, out = "python:my_agent:costs_half_a_dollar", tmp_path / "run"
    stopped = evaluated(folder, model, out, budget=1)
    assert len(stopped) == 2
    assert "the agent has spent 1.0000 of 1 USD" in str(stopped.stopped)
    assert len(evaluated(folder, model, out, budget=1)) == 2
    whole = evaluated(folder, model, out, budget=2)
    assert (len(whole), whole.stopped) == (3, None)
    assert read_spend(out / "spend.jsonl").usd == 1.5
    with pytest.raises(BudgetReached, match=r"5\.0000 of 1 USD"):
        evaluated(folder, "python:my_agent:costs_before_its_call", tmp_path / "dear", budget=1)


def test_reports_that_cannot_be_counted(folder: Path, tmp_path: Path, code: Path):
    unpriced = evaluated(folder, "python:my_agent:has_no_price", tmp_path / "unpriced", limit=1)
    assert unpriced.samples()[0].spending == (10, 1, None, None)
    with pytest.raises(UsageError, match="the price of of-my-own is not known"):
        evaluated(folder, "python:my_agent:has_no_price", tmp_path / "limited", limit=1, budget=1)
    with pytest.raises(at.InvalidRunError, match="report of its usage is invalid: cost_usd"):
        evaluated(folder, "python:my_agent:lies", tmp_path / "lies", limit=1, budget=1)
