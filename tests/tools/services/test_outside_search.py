"""Searching the web against real servers on this machine: what is asked, what is kept, and what is never told."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from agrotools.benchmarks._dialogs.tools import GoogleSearch
from agrotools.core import InfrastructureError, ToolCall, ToolError, UsageError
from agrotools.tools.execution import ToolExecutor
from agrotools.tools.general.search_web import numbered_text, search_web
from agrotools.tools.services import http
from agrotools.tools.services.http import Patience, is_public
from agrotools.tools.services.search import read_searxng, read_serper, record_search, search
from agrotools.tools.workspace import Workspace, artifacts_in

KEY = "planted-key-1f2e3d4c5b6a"
QUICK = Patience(timeout_s=1.0, attempts=3, first_wait_s=0.01, waits_s=2.0)
FOUND = {
    "answerBox": {"answer": "4 t/ha"},
    "knowledgeGraph": {"title": "Rye", "type": "Crop", "description": "A cereal.", "attributes": {"Family": "Poaceae"}},
    "organic": [
        {"title": f"Page {number}", "link": f"https://e.org/{number}", "snippet": f"about\nrye {number}"}
        for number in range(1, 15)
    ],
}
Handler = Callable[[web.Request], Any]


@asynccontextmanager
async def _server(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SERPER_API_KEY", "AGROTOOLS_SEARCH_URL", "AGROTOOLS_SEARCH_RECORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGROTOOLS_SEARCH_ALLOW_PRIVATE", "1")


async def test_serper_is_asked_with_the_key_in_a_header(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.headers.get("X-API-KEY"), await request.json()))
        return web.json_response(FOUND)

    async with _server(answer) as address:
        monkeypatch.setenv("SERPER_API_KEY", KEY)
        monkeypatch.setenv("AGROTOOLS_SEARCH_URL", f"{address}/search")
        found = await search("serper", "rye yield", 3, QUICK)
    assert seen == [(KEY, {"q": "rye yield", "num": 3})]
    assert found["answer"] == "4 t/ha"
    assert [hit["title"] for hit in found["results"]] == ["Page 1", "Page 2", "Page 3"]
    assert found["results"][0]["snippet"] == "about rye 1"
    text = numbered_text(found)
    assert text.startswith(
        "1 - Answer box: 4 t/ha\n\n2 - Rye knowledge graph: Crop A cereal. (Family: Poaceae)\n\n"
        "3 - Page 1: about rye 1\n\n"
    )


async def test_searxng_is_asked_for_json(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.path_qs)
        return web.json_response({"results": [{"title": "A", "url": "https://a", "content": "text"}], "answers": []})

    async with _server(answer) as address:
        monkeypatch.setenv("AGROTOOLS_SEARCH_URL", address)
        found = await search("searxng", "rye & oats", 5, QUICK)
    assert seen == ["/search?q=rye+%26+oats&format=json"]
    assert found == {
        "answer": None,
        "knowledge": None,
        "results": [{"title": "A", "url": "https://a", "snippet": "text"}],
    }


async def test_a_server_that_asks_to_wait_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[float] = []

    async def answer(_request: web.Request) -> web.Response:
        times.append(asyncio.get_running_loop().time())
        if len(times) == 1:
            return web.json_response({"message": "slow down"}, status=429, headers={"Retry-After": "0.4"})
        return web.json_response(FOUND)

    async with _server(answer) as address:
        monkeypatch.setenv("SERPER_API_KEY", KEY)
        monkeypatch.setenv("AGROTOOLS_SEARCH_URL", address)
        await search("serper", "rye", 3, QUICK)
    assert 0.4 <= times[1] - times[0] < 2


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (401, {"message": f"bad key {KEY}"}, UsageError, "refuses the request"),
        (403, {"message": "no"}, UsageError, "refuses the request"),
        (404, {}, UsageError, "not at that address"),
        (302, {}, UsageError, "not at that address"),
        (400, {"error": {"message": f"bad query, key {KEY}"}}, ToolError, "refuses this request"),
        (500, {"message": f"oops {KEY}"}, InfrastructureError, "after 3 attempts"),
        (200, {"results": 3}, None, ""),
        (200, "no json", InfrastructureError, "no form that is known"),
    ],
)
async def test_what_goes_wrong_is_typed_and_holds_no_key(
    monkeypatch: pytest.MonkeyPatch, status: int, body: Any, error: type[Exception] | None, words: str
) -> None:
    async def answer(_request: web.Request) -> web.Response:
        headers = {"Location": "http://127.0.0.1:1/elsewhere"} if status == 302 else None
        if isinstance(body, str):
            return web.Response(text=body)
        return web.json_response(body, status=status, headers=headers)

    async with _server(answer) as address:
        monkeypatch.setenv("SERPER_API_KEY", KEY)
        monkeypatch.setenv("AGROTOOLS_SEARCH_URL", address)
        if error is None:
            assert (await search("serper", "rye", 3, QUICK))["results"] == []
            return
        with pytest.raises(error, match=words) as caught:
            await search("serper", "rye", 3, QUICK)
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value)


async def test_a_silent_and_a_dead_server_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(_request: web.Request) -> web.Response:
        await asyncio.sleep(1)
        return web.Response()

    monkeypatch.setenv("SERPER_API_KEY", KEY)
    patience = Patience(timeout_s=0.2, attempts=2, first_wait_s=0.01, waits_s=1.0)
    async with _server(answer) as address:
        monkeypatch.setenv("AGROTOOLS_SEARCH_URL", address)
        with pytest.raises(InfrastructureError, match=r"no reply within 0\.2 s"):
            await search("serper", "rye", 3, patience)
    with pytest.raises(InfrastructureError, match="after 2 attempts"):
        await search("serper", "rye", 3, patience)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::1]",
        "10.1.2.3",
        "169.254.169.254",
        "192.168.0.1",
        "[::ffff:10.0.0.1]",
        "１２７.0.0.1",
        "127。0。0。1",
    ],
)
async def test_private_addresses_are_refused_unless_allowed(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.delenv("AGROTOOLS_SEARCH_ALLOW_PRIVATE")
    monkeypatch.setenv("AGROTOOLS_SEARCH_URL", f"http://{host}:9/search")
    with pytest.raises(UsageError, match="private") as caught:
        await search("searxng", "rye", 3, QUICK)
    assert "AGROTOOLS_SEARCH_ALLOW_PRIVATE=1" in str(caught.value)


async def test_a_name_that_leads_to_a_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({"results": []})

    monkeypatch.delenv("AGROTOOLS_SEARCH_ALLOW_PRIVATE")
    async with _server(answer) as address:
        monkeypatch.setenv("AGROTOOLS_SEARCH_URL", address.replace("127.0.0.1", "localhost"))
        with pytest.raises(UsageError, match="private network"):
            await search("searxng", "rye", 3, QUICK)
    assert asked == []


@pytest.mark.parametrize(
    ("address", "public"),
    [("8.8.8.8", True), ("2001:4860:4860::8888", True), ("127.0.0.1", False), ("0.0.0.0", False), ("100.64.0.1", False),
     ("224.0.0.1", False), ("fe80::1%eth0", False), ("::ffff:127.0.0.1", False), ("64:ff9b::7f00:1", False),
     ("2002:7f00:1::", False), ("::ffff:8.8.8.8", True), ("fc00::1", False), ("nonsense", False),
     ("fec0::1", False), ("192.0.0.192", False), ("168.63.129.16", False), ("64:ff9b::808:808", True)],
)  # fmt: skip
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize("url", ["", "ftp://a.org", "http://", "http://u:p@a.org", "http://a.org/?key=1", "a.org"])
def test_addresses_that_are_none_or_hold_a_secret(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        http.checked_url(url, "AGROTOOLS_SEARCH_URL", private=True)
    assert "u:p" not in str(caught.value)


def test_without_key_or_address_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for backend, variable in (("serper", "SERPER_API_KEY"), ("searxng", "AGROTOOLS_SEARCH_URL")):
        with artifacts_in(tmp_path, backend=backend), pytest.raises(ToolError, match=variable) as caught:
            search_web(query="rye")
        assert caught.value.kind == "backend_unavailable"
        with pytest.raises(UsageError, match=variable):
            ToolExecutor(backends={"GoogleSearch": backend})
    with pytest.raises(ToolError, match="not done offline") as caught:
        search_web(query="rye")
    assert "SERPER_API_KEY" in str(caught.value.hint)


async def test_workers_search_without_having_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        keys.append(request.headers.get("X-API-KEY"))
        return web.json_response(FOUND)

    async with _server(answer) as address:
        monkeypatch.setenv("SERPER_API_KEY", KEY)
        monkeypatch.setenv("AGROTOOLS_SEARCH_URL", address)
        async with ToolExecutor(workers=1, backends={"GoogleSearch": "serper"}) as executor:
            call = ToolCall(tool="GoogleSearch", arguments={"query": "rye yield", "k": 2})
            outcome = await executor.run(call, Workspace((), tmp_path), ["GoogleSearch"])
            environments = [_environment_of(pid) for pid in executor.worker_pids]
    assert outcome.observation.result is not None, outcome.observation.error
    assert outcome.observation.result["text"].startswith("1 - Answer box: 4 t/ha\n\n")
    assert keys == [KEY]
    assert environments
    assert all(KEY.encode() not in environment for environment in environments)


async def test_a_service_that_fails_in_a_run_is_no_fault_of_the_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"message": "closed"}, status=503, headers={"Retry-After": "900"})

    async with _server(answer) as address:
        monkeypatch.setenv("SERPER_API_KEY", KEY)
        monkeypatch.setenv("AGROTOOLS_SEARCH_URL", address)
        async with ToolExecutor(workers=1, backends={"search_web": "serper"}) as executor:
            call = ToolCall(tool="search_web", arguments={"query": "rye"})
            with pytest.raises(InfrastructureError, match="asks to wait 900 s"):
                await executor.run(call, Workspace((), tmp_path), ["search_web"])


async def test_what_was_found_is_recorded_and_replayed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response(FOUND)

    folder = tmp_path / "searches"
    async with _server(answer) as address:
        monkeypatch.setenv("SERPER_API_KEY", KEY)
        monkeypatch.setenv("AGROTOOLS_SEARCH_URL", address)
        monkeypatch.setenv("AGROTOOLS_SEARCH_RECORD", str(folder))
        first = await search("serper", "Rye  yield", 5, QUICK)
        await search("serper", "oats", 5, QUICK)
    monkeypatch.delenv("SERPER_API_KEY")
    file = folder / "searches.jsonl"
    assert KEY not in file.read_text()
    with artifacts_in(tmp_path, backend=f"recorded:{folder}"):
        again = search_web(query="rye YIELD", k=5)
        fewer = search_web(query="rye yield", k=2)
        with pytest.raises(ToolError, match="not among the recorded") as caught:
            search_web(query="barley")
        assert caught.value.kind == "nothing_found"
        assert GoogleSearch(query="rye yield", k=5).text == numbered_text(first)
    assert again.text == numbered_text(first)
    assert [hit.title for hit in fewer.results] == ["Page 1", "Page 2"]
    with file.open("a") as stream:
        stream.write('{"query": "torn')
    with artifacts_in(tmp_path, backend=f"recorded:{file}"):
        assert search_web(query="rye yield", k=5) == again
    file.write_text("no json\n" + file.read_text())
    with artifacts_in(tmp_path, backend=f"recorded:{folder}"), pytest.raises(ToolError, match="cannot be read"):
        search_web(query="rye yield", k=5)


@pytest.mark.parametrize(
    "entry",
    [{"results": "abc"}, {"results": [{"title": "t"}]}, {"results": [3]}, {"results": [], "answer": [1]},
     {"results": [], "knowledge": "k"}, {"results": [], "k": float("inf")}, {"results": {}}],
)  # fmt: skip
def test_damaged_records_are_a_typed_error(tmp_path: Path, entry: dict[str, Any]) -> None:
    tmp_path.joinpath("searches.jsonl").write_text(json.dumps({"query": "rye", "k": 3, **entry}) + "\n")
    with artifacts_in(tmp_path, backend=f"recorded:{tmp_path}"), pytest.raises(ToolError, match="cannot be read"):
        search_web(query="rye")


async def test_workers_find_recorded_searches_by_a_relative_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record_search(tmp_path / "searches", "serper", "rye", 10, read_serper(FOUND, 10))
    monkeypatch.chdir(tmp_path)
    async with ToolExecutor(workers=1, backends={"WebSearch": "recorded:searches"}) as executor:
        call = ToolCall(tool="WebSearch", arguments={"query": "Rye"})
        outcome = await executor.run(call, Workspace((), tmp_path), ["WebSearch"])
    assert outcome.observation.result is not None, outcome.observation.error
    assert outcome.observation.result["text"].startswith("1 - Answer box: 4 t/ha")


@given(st.lists(st.tuples(st.text(max_size=80), st.text(max_size=300)), max_size=20))
def test_the_published_text_is_numbered_and_bounded(hits: list[tuple[str, str]]) -> None:
    found = read_serper(
        {"organic": [{"title": title, "link": "https://e", "snippet": snippet} for title, snippet in hits]}, 20
    )
    text = numbered_text(found)
    assert len(text) <= 1503
    assert text.startswith("1 - ") if hits else text == "No good Google Search Result was found"
    if len(text) < 1500:
        assert text.count("\n\n") == len(hits)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["organic", "results", "answerBox", "knowledgeGraph", "answers", "infoboxes", "title", "attributes"]), inner),
)  # fmt: skip


@given(json_values)
def test_replies_of_any_form_give_the_plain_form_or_one_of_the_expected_errors(reply: Any) -> None:
    for read in (read_serper, read_searxng):
        try:
            found = read(json.loads(json.dumps(reply)), 5)
        except (TypeError, AttributeError, KeyError):
            continue
        assert set(found) == {"answer", "knowledge", "results"}
        numbered_text(found)
