"""Services on the network against real servers on this machine: requests, and secrets that stay secret."""

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agrotools.calling.execution import ToolExecutor
from agrotools.calling.services.web import draw, images_endpoint, read_serper, search
from agrotools.calling.workspace import Workspace, artifacts_in
from agrotools.core import InfrastructureError, SampleFile, ToolCall, ToolError, UsageError
from agrotools.models import WireSettings
from agrotools.models.endpoint import checked_url
from agrotools_tools.general.large_models import generate_image, numbered_text, search_web

pytestmark = pytest.mark.process

KEY = "planted-key-1f2e3d4c5b6a"
QUICK = WireSettings(timeout_s=1.0, attempts=3, first_wait_s=0.01, retry_wall_s=2.0)
FOUND = {
    "answerBox": {"answer": "4 t/ha"},
    "knowledgeGraph": {
        "title": "Rye",
        "type": "Crop",
        "description": "A cereal.",
        "attributes": {"Family": "Poaceae"},
    },
    "organic": [
        {
            "title": f"Page {number}",
            "link": f"https://e.org/{number}",
            "snippet": f"about\nrye {number}",
        }
        for number in range(1, 15)
    ],
}
PAINTER = "openai-images:painter-1"
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


@asynccontextmanager
async def _serper(handler: Handler, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A server that the back-end serper asks, with the key."""
    async with _server(handler) as address:
        monkeypatch.setenv("SERPER_API_KEY", KEY)
        monkeypatch.setenv("AGROTOOLS_SEARCH_URL", address)
        yield address


def _environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SERPER_API_KEY", "AGROTOOLS_SEARCH_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PAINTER_KEY", KEY)
    monkeypatch.setenv("AGROTOOLS_IMAGES_KEY_ENV", "PAINTER_KEY")


async def test_serper_is_asked_with_the_key_in_a_header(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.headers.get("X-API-KEY"), await request.json()))
        return web.json_response(FOUND)

    async with _serper(answer, monkeypatch):
        found = await search("rye yield", 3, QUICK)
    assert seen == [(KEY, {"q": "rye yield", "num": 3})]
    assert found["answer"] == "4 t/ha"
    assert [hit["title"] for hit in found["results"]] == ["Page 1", "Page 2", "Page 3"]
    assert found["results"][0]["snippet"] == "about rye 1"
    text = numbered_text(found)
    assert text.startswith(
        "1 - Answer box: 4 t/ha\n\n2 - Rye knowledge graph: Crop A cereal. (Family: Poaceae)\n\n"
        "3 - Page 1: about rye 1\n\n"
    )


async def test_a_server_that_asks_to_wait_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[float] = []

    async def answer(_request: web.Request) -> web.Response:
        times.append(asyncio.get_running_loop().time())
        if len(times) == 1:
            return web.json_response(
                {"message": "slow down"}, status=429, headers={"Retry-After": "0.4"}
            )
        return web.json_response(FOUND)

    async with _serper(answer, monkeypatch):
        await search("rye", 3, QUICK)
    assert 0.4 <= times[1] - times[0] < 2


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (401, {"message": f"bad key {KEY}"}, UsageError, "refuses the request"),
        (302, {}, UsageError, "not at that address"),
        (400, {"error": {"message": f"bad query, key {KEY}"}}, ToolError, "refuses this request"),
        (500, {"message": f"oops {KEY}"}, InfrastructureError, "after 3 attempts"),
        (200, {"results": 3}, None, ""),
        (200, "no json", InfrastructureError, "unknown form"),
    ],
)
async def test_what_goes_wrong_is_typed_and_holds_no_key(monkeypatch, status, body, error, words):
    async def answer(_request: web.Request) -> web.Response:
        headers = {"Location": "http://127.0.0.1:1/elsewhere"} if status == 302 else None
        if isinstance(body, str):
            return web.Response(text=body)
        return web.json_response(body, status=status, headers=headers)

    async with _serper(answer, monkeypatch):
        if error is None:
            assert (await search("rye", 3, QUICK))["results"] == []
            return
        with pytest.raises(error, match=words) as caught:
            await search("rye", 3, QUICK)
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value)


async def test_a_silent_and_a_dead_server_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(_request: web.Request) -> web.Response:
        await asyncio.sleep(1)
        return web.Response()

    patience = WireSettings(timeout_s=0.2, attempts=2, first_wait_s=0.01, retry_wall_s=1.0)
    async with _serper(answer, monkeypatch):
        with pytest.raises(InfrastructureError, match=r"no complete reply within 0\.2 s"):
            await search("rye", 3, patience)
    with pytest.raises(InfrastructureError, match="after 2 attempts"):
        await search("rye", 3, patience)


@pytest.mark.parametrize(
    "url", ["", "ftp://a.org", "http://", "http://u:p@a.org", "http://a.org/?key=1", "a.org"]
)
def test_addresses_that_are_none_or_hold_a_secret(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_url(url, "AGROTOOLS_SEARCH_URL")
    assert "u:p" not in str(caught.value)


def test_without_a_key_nothing_is_asked(tmp_path: Path) -> None:
    with (
        artifacts_in(tmp_path, backend="serper"),
        pytest.raises(ToolError, match="SERPER_API_KEY") as caught,
    ):
        search_web(query="rye")
    assert caught.value.kind == "backend_unavailable"
    with pytest.raises(UsageError, match="SERPER_API_KEY"):
        ToolExecutor(backends={"GoogleSearch": "serper"})
    with pytest.raises(ToolError, match="not done offline") as caught:
        search_web(query="rye")
    assert "SERPER_API_KEY" in str(caught.value.setup)


async def test_workers_search_without_having_the_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keys: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        keys.append(request.headers.get("X-API-KEY"))
        return web.json_response(FOUND)

    backends = {"GoogleSearch": "serper"}
    async with _serper(answer, monkeypatch), ToolExecutor(workers=1, backends=backends) as executor:
        call = ToolCall(tool="GoogleSearch", arguments={"query": "rye yield", "k": 2})
        outcome = await executor.run(call, Workspace((), tmp_path), ["GoogleSearch"])
        environments = [_environment_of(pid) for pid in executor.worker_pids]
    assert outcome.observation.result is not None, outcome.observation.error
    assert outcome.observation.result["text"].startswith("1 - Answer box: 4 t/ha\n\n")
    assert keys == [KEY]
    assert environments
    assert all(KEY.encode() not in environment for environment in environments)


async def test_a_service_that_fails_in_a_run_is_no_fault_of_the_model(monkeypatch, tmp_path):
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"message": "closed"}, status=503, headers={"Retry-After": "900"})

    async with (
        _serper(answer, monkeypatch),
        ToolExecutor(workers=1, backends={"search_web": "serper"}) as executor,
    ):
        call = ToolCall(tool="search_web", arguments={"query": "rye"})
        with pytest.raises(InfrastructureError, match="asks to wait 900 s"):
            await executor.run(call, Workspace((), tmp_path), ["search_web"])


@given(st.lists(st.tuples(st.text(max_size=80), st.text(max_size=300)), max_size=20))
def test_the_published_text_is_numbered_and_bounded(hits: list[tuple[str, str]]) -> None:
    found = read_serper(
        {
            "organic": [
                {"title": title, "link": "https://e", "snippet": snippet} for title, snippet in hits
            ]
        },
        20,
    )
    text = numbered_text(found)
    assert len(text) <= 1503
    assert text.startswith("1 - ") if hits else text == "No good Google Search Result was found"
    if len(text) < 1500:
        assert text.count("\n\n") == len(hits)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["organic", "answerBox", "knowledgeGraph", "title", "attributes"]), inner),
)  # fmt: skip


@given(json_values)
def test_replies_of_any_form_give_the_plain_form_or_one_of_the_expected_errors(reply: Any) -> None:
    with suppress(TypeError, AttributeError, KeyError):
        found = read_serper(json.loads(json.dumps(reply)), 5)
        assert set(found) == {"answer", "knowledge", "results"}
        numbered_text(found)


def _png(colour: tuple[int, int, int] = (200, 30, 30), size: tuple[int, int] = (64, 48)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


async def test_pictures_are_made_and_changed_in_workers_without_keys(monkeypatch, tmp_path):
    seen: list[tuple[str, Any, dict[str, Any]]] = []

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("/edits"):
            form = await request.post()
            uploaded = form["image"]
            body = {
                "prompt": form["prompt"],
                "model": form["model"],
                "size": Image.open(uploaded.file).size,
            }
        else:
            body = await request.json()
        seen.append((request.path, request.headers.get("Authorization"), body))
        item = {"b64_json": base64.b64encode(_png()).decode(), "revised_prompt": "a red barn"}
        return web.json_response({"data": [item]})

    Image.new("RGB", (30, 20), "green").save(tmp_path / "image_1.png")
    files = (SampleFile(name="image_1.png", path=str(tmp_path / "image_1.png"), kind="image"),)
    workspace = Workspace(files, tmp_path / "made")
    names = ["TextToImage", "ImageStylization"]
    async with _server(answer) as address:
        monkeypatch.setenv("AGROTOOLS_IMAGES_URL", f"{address}/v1")
        async with ToolExecutor(workers=1, backends=dict.fromkeys(names, PAINTER)) as executor:
            made = await executor.run(
                ToolCall(tool=names[0], arguments={"keywords": "barn, red"}), workspace, names
            )
            changed = await executor.run(
                ToolCall(
                    tool=names[1], arguments={"image": "image_1.png", "instruction": "make it red"}
                ),
                workspace,
                names,
            )
    for outcome, name in ((made, "generated.png"), (changed, "stylized.png")):
        assert outcome.observation.result is not None, outcome.observation.error
        assert outcome.observation.result["image"] == name
        with Image.open(tmp_path / "made" / name) as picture:
            assert picture.size == (64, 48)
    as_data = {"response_format": "b64_json"}
    assert seen == [
        (
            "/v1/images/generations",
            f"Bearer {KEY}",
            {"model": "painter-1", "prompt": "barn, red", "n": 1, **as_data},
        ),
        (
            "/v1/images/edits",
            f"Bearer {KEY}",
            {"model": "painter-1", "prompt": "make it red", "size": (30, 20)},
        ),
    ]


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ({"b64_json": "%%%"}, InfrastructureError),
        ({"b64_json": "é"}, InfrastructureError),
        ({}, InfrastructureError),
        ({"url": "https://e.org/a.png"}, InfrastructureError),
        ({"b64_json": base64.b64encode(b"GIF89a no picture").decode()}, ToolError),
    ],
)
def test_what_is_no_picture_is_a_typed_error(monkeypatch, tmp_path, item, error):
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"data": [item]})

    async def ask() -> None:
        async with _server(answer) as address:
            monkeypatch.setenv("AGROTOOLS_IMAGES_URL", f"{address}/v1")
            with artifacts_in(tmp_path, backend=PAINTER):
                await asyncio.to_thread(generate_image, prompt="barn")

    with pytest.raises(ToolError) as caught:
        asyncio.run(ask())
    assert caught.value.kind == ("tool_failed" if error is ToolError else "backend_unavailable")
    assert KEY not in str(caught.value)


async def test_a_refused_text_is_the_callers_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": f"not allowed {KEY}"}}, status=400)

    async with _server(answer) as address:
        monkeypatch.setenv("AGROTOOLS_IMAGES_URL", f"{address}/v1")
        with pytest.raises(ToolError, match="not allowed") as caught:
            await draw("painter-1", "barn", (), QUICK)
    assert caught.value.kind == "invalid_argument"
    assert KEY not in str(caught.value)


def test_the_key_of_a_vendor_goes_to_no_other_server_unasked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AGROTOOLS_IMAGES_KEY_ENV")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AGROTOOLS_IMAGES_URL", "http://127.0.0.1:8000/v1")
    assert images_endpoint().key == ""
    monkeypatch.delenv("AGROTOOLS_IMAGES_URL")
    assert images_endpoint().key == KEY
    assert KEY not in repr(images_endpoint())
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        ToolExecutor(backends={"generate_image": PAINTER})
