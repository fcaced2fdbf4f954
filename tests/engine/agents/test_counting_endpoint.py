"""Endpoint that counts an agent's requests: streamed and not, in both formats; budget, keys and records."""

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

import agrotools as at
from agrotools.agents.counting_endpoint import CountingEndpoint
from agrotools.agents.usage import SampleUsage, UsageMeter
from agrotools.core import BudgetReached, EndpointRefusal, UsageError
from agrotools.models import Endpoint
from agrotools.models.metered import read_spend
from agrotools.runner.prompts import StoredPrompts
from support.benchmark_folders import number_sample, write_folder
from support.openai_server import PICTURE, Body, error, serving

pytestmark = pytest.mark.process
KEY = "sk-real-key-of-the-user-0123456789"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}

AGENT = """
import glob, json, os, urllib.error, urllib.request
from types import SimpleNamespace

KEY = os.environ.get("OPENAI_API_KEY", "")  # as clients that are opened when a module is imported
IMAGE = {"type": "image_url", "image_url": {"url": "PICTURE"}}

def ask(path, key=KEY, url=None, **body):
    head = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
    address = (url or os.environ["OPENAI_BASE_URL"]) + path
    with urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), head)) as reply:
        return reply.read().decode()

def solve(task):
    content = [{"type": "text", "text": "How many?"}, IMAGE]
    messages = [{"role": "system", "content": "Count."}, {"role": "user", "content": content}]
    first = json.loads(ask("/chat/completions", model="expensive", messages=messages, max_tokens=50))
    messages += [first["choices"][0]["message"], {"role": "user", "content": "Sure?"}]
    tool = {"type": "function", "function": {"name": "count", "description": "Count.", "parameters": {}}}
    more = dict(stream=True, max_tokens=50, tools=[tool])
    second = ask("/chat/completions", key=task.endpoint.key, messages=messages, **more)
    assert "call_1" in second and "[DONE]" in second and "prompt_tokens" not in second, second
    asked = ask("/chat/completions", messages=messages, stream=True, stream_options={"include_usage": True})
    assert "prompt_tokens" in asked
    third = json.loads(ask("/responses", input="And now?", instructions="Be brief.", max_output_tokens=50))
    fourth = ask("/responses", input=[{"role": "user", "content": "Again?"}], stream=True, max_output_tokens=50)
    assert "response.completed" in fourth
    assert os.environ["OPENAI_MODEL"] == task.endpoint.model
    task.report_usage(input_tokens=10**9)
    places = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            places.append(open(path, "rb").read())
        except OSError:  # of another user, or ended meanwhile
            pass
    seen = [KEY, task.endpoint.key, *os.environ.values(), first, second, third, fourth, places]
    return json.dumps({"leaked": "real-key" in repr(seen), "model": task.endpoint.model})

def once(task):
    try:
        ask("/chat/completions", messages=[{"role": "user", "content": "How many?"}], max_tokens=50)
        return "mean_yield: 2"
    except urllib.error.HTTPError as error:
        return f"mean_yield: {error.code} {error.read().decode()} {error.headers['x-should-retry']}"

def cheat(task):
    def one(extra):
        try:
            ask("/chat/completions", messages=[{"role": "user", "content": "How many?"}], **extra)
            return "sent"
        except urllib.error.HTTPError as error:
            return str(error.code)
    tricks = [{"max_tokens": 50, "models": ["dear"], "service_tier": "priority"}, {"max_tokens": 50.0},
              {"n": "5", "max_tokens": 1}, {"max_tokens": True}, {"background": True}, {"max_output_tokens": 1}]
    return "mean_yield: " + " ".join(map(one, tricks))

def odd(task):
    messages = [[{"type": "image_url", "image_url": {"url": {"a": 1}}}], [5], [None]]
    texts = []
    for content in messages:
        try:
            ask("/chat/completions", messages=[{"role": "user", "content": content}], max_tokens=50)
        except urllib.error.HTTPError as error:
            texts.append(f"{error.code} {json.loads(error.read())['error']['message']}")
    return "mean_yield: " + " ".join(texts)

def leaves(task):
    import socket, time
    host, port = task.endpoint.url.split("//")[1].split("/")[0].split(":")
    body = json.dumps({"messages": [{"role": "user", "content": "How many?"}], "max_tokens": 50}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\\r\\nHost: {host}:{port}\\r\\nAuthorization: Bearer {KEY}\\r\\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + f"Content-Length: {len(body)}\\r\\n\\r\\n".encode() + body)
        time.sleep(0.3)
    return "mean_yield: 2"

def both(task):
    messages = [{"role": "user", "content": "How many?"}]
    return "mean_yield: " + "".join(ask("/chat/completions", messages=messages, stream=each) for each in (False, True))

def here(task):
    return json.loads(ask("/chat/completions", task.endpoint.key, task.endpoint.url,
                          messages=[{"role": "user", "content": "How many?"}]))["choices"][0]["message"]["content"]
""".replace("PICTURE", PICTURE)


def sse(*events: Any) -> web.Response:
    texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
    body = "".join(f"data: {text}\n\n" for text in texts).encode()
    return web.Response(body=body, content_type="text/event-stream")


def answer(body: Body) -> web.Response:
    """Reply of the model: 7 in words of its own, a call if the reply is streamed."""
    text = [message["content"] for message in body["messages"]][-1]
    if text == "Again?" or (isinstance(text, list) and text[0]["text"] == "Again?"):
        output = [
            {"type": "message", "content": [{"type": "output_text", "text": "streamed seven"}]}
        ]
        usage = {"input_tokens": 1000, "output_tokens": 500}
        whole = {"object": "response", "status": "completed", "output": output, "usage": usage}
        return sse(
            {"type": "response.created", "response": {}},
            {"type": "response.completed", "response": whole},
        )
    if not body.get("stream"):
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": "seven"},
            "finish_reason": "stop",
        }
        return web.json_response({"choices": [choice], "usage": USAGE})
    assert body["stream_options"] == {"include_usage": True}
    function = {"name": "count", "arguments": '{"what": '}
    chunks = [
        {"choices": [{"delta": {"role": "assistant", "content": "I "}}]},
        {"choices": [{"delta": {"content": "count."}}]},
        {
            "choices": [
                {"delta": {"tool_calls": [{"index": 0, "id": "call_1", "function": function}]}}
            ]
        },
        {
            "choices": [
                {"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '"trees"}'}}]}}
            ]
        },
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": USAGE},
    ]
    return sse(*chunks, "[DONE]")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Benchmark of three samples; the agents are in the current folder, and the key is in the environment."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "my_agent.py").write_text(AGENT)
    (code / "program.py").write_text(
        "import my_agent\nfrom types import SimpleNamespace\nprint(my_agent.once(None))\n"
    )
    monkeypatch.chdir(code)
    monkeypatch.setenv("USERS_KEY", KEY)
    return write_folder(
        tmp_path / "bench", [number_sample(tmp_path / "bench", f"tiny-{n}", n) for n in (1, 2, 3)]
    )


def evaluated(folder: Path, model: Any, out: Path, base_url: str, **options: Any) -> at.Run:
    given = {
        "agent_model": "counted",
        "agent_base_url": base_url,
        "agent_api_key_env": "USERS_KEY",
        **options,
    }
    stream = io.StringIO()
    return at.evaluate(
        folder, model, mode="end-to-end", out=out, progress=stream, concurrency=1, **given
    )


def test_a_sealed_agent_asks_in_both_formats_and_never_sees_the_key(folder: Path, tmp_path: Path):
    with serving(answer) as upstream:
        run = evaluated(
            folder,
            "python:my_agent:solve",
            tmp_path / "run",
            upstream.base_url,
            limit=2,
            price="1/10",
        )
    for record in run.samples():
        assert record.invalid is None
        found = json.loads(record.trajectory.steps[-1].text)
        assert found["model"] == "counted"
        if run.manifest.sealed:  # an agent that is not isolated may read our environment
            assert found["leaked"] is False
        texts = [reply.text for reply in record.agent_replies or ()]
        assert [texts[0], texts[3], texts[4]] == ["seven", "seven", "streamed seven"]
        assert "I count." in texts[1]
        assert "trees" in texts[1]
        assert [reply.finish_reason for reply in record.agent_replies or ()][:2] == [
            "stop",
            "tool_calls",
        ]
        assert record.spending[:3] == pytest.approx((5000, 2500, (5000 + 25_000) / 1e6))
        requests = StoredPrompts(run.path).of(record.key) or []
        assert [len(request.messages) for request in requests] == [2, 4, 4, 2, 1]
        assert requests[0].messages[1]["content"][0] == {"type": "text", "text": "How many?"}
        assert requests[1].tools[0]["function"]["name"] == "count"
        assert (requests[3].messages[0]["role"], requests[1].shared) == ("system", 2)
    assert {headers["Authorization"] for headers in upstream.headers} == {f"Bearer {KEY}"}
    assert {request["model"] for request in upstream.requests} == {"counted"}
    assert read_spend(run.path / "spend.jsonl").replies == 10
    assert run.manifest.settings == {"agent_model": "counted"}
    assert not [
        path for path in run.path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ]


def test_the_budget_is_enforced_before_it_is_spent(folder: Path, tmp_path: Path):
    model, options = (
        f"mcp:{sys.executable} program.py",
        {"agent_path": [str(folder.parent / "code")]},
    )
    with serving(answer) as upstream:
        stopped = evaluated(
            folder,
            model,
            tmp_path / "run",
            upstream.base_url,
            budget=5,
            price="1000/1000",
            **options,
        )
        assert len(stopped) == len(upstream.requests) == 2
        assert "3.0000 of 5 USD are spent" in str(stopped.stopped)
        whole = evaluated(
            folder,
            model,
            tmp_path / "run",
            upstream.base_url,
            budget=20,
            price="1000/1000",
            **options,
        )
    texts = [record.trajectory and record.trajectory.steps[-1].text for record in whole.samples()]
    assert texts == ["mean_yield: 2"] * 3
    assert read_spend(whole.path / "spend.jsonl").usd == 4.5


def test_limits_that_have_no_effect_do_not_lower_the_reserve(folder: Path, tmp_path: Path):
    """Of six requests one is within the budget: the others are malformed, or name a limit that means nothing."""
    options = {"price": "1000/1000", "budget": 5, "limit": 1}
    with (
        serving(answer) as upstream,
        pytest.raises(BudgetReached, match="the next request might cost 3"),
    ):
        evaluated(folder, "python:my_agent:cheat", tmp_path / "run", upstream.base_url, **options)
    assert [set(request) for request in upstream.requests] == [{"model", "messages", "max_tokens"}]


def test_a_reply_that_costs_more_than_reserved_ends_the_run(folder: Path, tmp_path: Path):
    def dear(_body: Body) -> web.Response:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": "seven"},
            "finish_reason": "stop",
        }
        return web.json_response(
            {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 90_000}}
        )

    with serving(dear) as upstream, pytest.raises(BudgetReached, match="known: 90\\.0090 of 5"):
        evaluated(
            folder,
            "python:my_agent:once",
            tmp_path / "run",
            upstream.base_url,
            price="1000/1000",
            budget=5,
        )
    assert len(upstream.requests) == 1


def test_a_request_that_is_not_in_the_form_is_refused_before_it_is_sent(
    folder: Path, tmp_path: Path
):
    with serving(answer) as upstream:
        run = evaluated(folder, "python:my_agent:odd", tmp_path / "run", upstream.base_url, limit=1)
    trajectory = run.samples()[0].trajectory
    assert (
        "400 the request cannot be read: the address of an image must be a text"
        in trajectory.steps[-1].text
    )
    assert trajectory.steps[-1].text.count("400 the request cannot be read") == 3
    assert "Error" not in trajectory.steps[-1].text
    assert not upstream.requests


@pytest.mark.parametrize(("patience_s", "spending"), [(10.0, (1000, 500)), (0.1, (2196, 50))])
def test_a_request_counts_although_the_agent_does_not_wait_for_its_reply(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    patience_s: float,
    spending: tuple[int, int],
):
    monkeypatch.setattr("agrotools.agents.counting_endpoint._LAST_REPLIES_S", patience_s)
    options = {"limit": 1, "price": "1/1", "budget": 1}
    with serving(answer, latency_s=1.0) as upstream:
        run = evaluated(
            folder, "python:my_agent:leaves", tmp_path / "run", upstream.base_url, **options
        )
    (record,) = run.samples()
    assert record.spending[:2] == pytest.approx(spending, rel=0.05)
    assert read_spend(run.path / "spend.jsonl").usd == pytest.approx(sum(spending) / 1e6, rel=0.05)


def test_a_key_that_the_server_repeats_reaches_neither_agent_nor_run(folder: Path, tmp_path: Path):
    def repeat(body: Body) -> web.Response:
        text = f"bad key Bearer {KEY}"
        if not body.get("stream"):
            return web.json_response({"error": {"message": text}})
        parts = [{"choices": [{"delta": {"content": part}}]} for part in (text, KEY[:9], KEY[9:])]
        return sse(*parts, {"choices": [], "usage": USAGE}, "[DONE]")

    with serving(repeat) as upstream:
        run = evaluated(
            folder, "python:my_agent:both", tmp_path / "run", upstream.base_url, limit=1
        )
    (record,) = run.samples()
    assert record.trajectory.steps[-1].text.count("bad key Bearer [key]") == 2
    assert not [
        path for path in run.path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ]


def test_a_refused_key_ends_the_run(folder: Path, tmp_path: Path):
    with (
        serving(lambda _body: error(401, f"Incorrect API key provided: {KEY}")) as upstream,
        pytest.raises(EndpointRefusal, match="refuses the key of --agent-model") as caught,
    ):
        evaluated(folder, "python:my_agent:once", tmp_path / "run", upstream.base_url)
    assert KEY not in str(caught.value)


def test_options_that_do_not_fit_are_refused(folder: Path, tmp_path: Path):
    for model, options, message in [
        ("baseline:guess", {}, "--agent-model is for agents"),
        ("python:my_agent:once", {"agent_model": "scripted:x"}, "has no endpoint"),
        ("python:my_agent:once", {"agent_model": None}, "need --agent-model"),
        (
            "python:my_agent:once",
            {"agent_base_url": "https://api.example.com/v1", "budget": 1},
            "price of counted",
        ),
    ]:
        with pytest.raises(UsageError, match=message):
            evaluated(folder, model, tmp_path / "never", "http://127.0.0.1:9/v1", **options)


def test_requests_without_a_running_sample_or_of_another_host_are_refused(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("USERS_KEY", KEY)

    async def main(base_url: str) -> None:
        endpoint = CountingEndpoint(Endpoint("counted", base_url, "USERS_KEY"))
        meter = UsageMeter(endpoint=endpoint)
        first, second = SampleUsage(meter), SampleUsage(meter)
        task: dict[str, Any] = {}
        other: dict[str, Any] = {}
        await first.begin(task)
        await second.begin(other)
        url = f"{task['endpoint']['url']}/chat/completions"
        good = {"messages": [{"role": "user", "content": "How many?"}]}

        async def status(key: str, data: Any = good, **headers: str) -> tuple[int, str]:
            head = {"Authorization": f"Bearer {key}", **headers}
            async with (
                aiohttp.ClientSession() as client,
                client.post(url, json=data, headers=head) as reply,
            ):
                text = await reply.text()
                assert KEY not in text
                return reply.status, text

        key = task["endpoint"]["key"]
        assert (await status(key))[0] == 200
        assert (await status(key, Host="evil.example"))[0] == 403
        assert (await status("wrong"))[0] == 401
        assert (await status(key, [1]))[0] == 400
        assert (await status(key, {"messages": [{"role": "user", "content": "fail"}]}))[0] == 503
        assert len(first.replies) == 1
        absurd = {
            "messages": [{"role": "user", "content": "no usage"}],
            "max_tokens": 2**62,
            "n": 2**62,
        }
        assert (await status(key, absurd))[0] == 200
        assert first.replies[1].usage.output_tokens == 10**12
        first.end()
        ended = await status(key)
        assert (ended[0], json.loads(ended[1])["error"]["code"]) == (429, "sample_ended")
        assert (
            await status(
                other["endpoint"]["key"], {"messages": [{"role": "user", "content": "no usage"}]}
            )
        )[0] == 200
        (uncounted,) = second.replies
        assert uncounted.usage.input_tokens > 2000  # the most that it can have used
        await meter.close()

    def respond(body: Body) -> web.Response:
        text = body["messages"][-1]["content"]
        if text == "fail":
            return error(503, f"overloaded, {KEY}")
        if text == "no usage":
            return web.json_response(
                {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}
            )
        return answer(body)

    with serving(respond) as upstream:
        asyncio.run(main(upstream.base_url))
