"""Making and changing pictures with an images endpoint on this machine."""

import base64
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from PIL import Image

from agrotools.core import InfrastructureError, SampleFile, ToolCall, ToolError, UsageError
from agrotools.tools.execution import ToolExecutor
from agrotools.tools.general.generation import generate_image
from agrotools.tools.services.http import Patience
from agrotools.tools.services.images import draw, images_settings
from agrotools.tools.workspace import Workspace, artifacts_in

KEY = "planted-key-9a8b7c6d5e4f"
QUICK = Patience(timeout_s=2.0, attempts=2, first_wait_s=0.01, waits_s=1.0)
BACKEND = "openai-images:painter-1"


def _png(colour: tuple[int, int, int] = (200, 30, 30), size: tuple[int, int] = (64, 48)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


@asynccontextmanager
async def _server(handler: Callable[[web.Request], Any]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAINTER_KEY", KEY)
    monkeypatch.setenv("AGROTOOLS_IMAGES_KEY_ENV", "PAINTER_KEY")


def _reply(**item: Any) -> web.Response:
    return web.json_response({"data": [item]})


async def test_pictures_are_made_and_changed_in_workers_without_keys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[tuple[str, Any, dict[str, Any]]] = []

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("/edits"):
            form = await request.post()
            uploaded = form["image"]
            assert isinstance(uploaded, web.FileField)
            body = {"prompt": form["prompt"], "model": form["model"], "size": Image.open(uploaded.file).size}
        else:
            body = await request.json()
        seen.append((request.path, request.headers.get("Authorization"), body))
        return _reply(b64_json=base64.b64encode(_png()).decode(), revised_prompt="a red barn")

    Image.new("RGB", (30, 20), "green").save(tmp_path / "image_1.png")
    files = (SampleFile(name="image_1.png", path=str(tmp_path / "image_1.png"), kind="image"),)
    workspace = Workspace(files, tmp_path / "made")
    names = ["TextToImage", "ImageStylization"]
    async with _server(answer) as address:
        monkeypatch.setenv("AGROTOOLS_IMAGES_URL", address)
        async with ToolExecutor(workers=1, backends=dict.fromkeys(names, BACKEND)) as executor:
            made = await executor.run(ToolCall(tool=names[0], arguments={"keywords": "barn, red"}), workspace, names)
            changed = await executor.run(
                ToolCall(tool=names[1], arguments={"image": "image_1.png", "instruction": "make it red"}),
                workspace,
                names,
            )
    for outcome, name in ((made, "generated.png"), (changed, "stylized.png")):
        assert outcome.observation.result is not None, outcome.observation.error
        assert outcome.observation.result["image"] == name
        with Image.open(tmp_path / "made" / name) as picture:
            assert picture.size == (64, 48)
    assert seen == [
        ("/v1/images/generations", f"Bearer {KEY}", {"model": "painter-1", "prompt": "barn, red", "n": 1}),
        ("/v1/images/edits", f"Bearer {KEY}", {"model": "painter-1", "prompt": "make it red", "size": (30, 20)}),
    ]


async def test_a_picture_at_an_address_is_fetched_from_the_endpoint_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append((request.path, request.headers.get("Authorization")))
        if request.path == "/v1/files/a.png":
            return web.Response(body=_png())
        return _reply(url=str(request.url.with_path("/v1/files/a.png")))

    async with _server(answer) as address:
        monkeypatch.setenv("AGROTOOLS_IMAGES_URL", address)
        made = await draw("painter-1", "barn", (), QUICK)
    assert base64.b64decode(made["picture"]) == _png()
    assert asked == [("/v1/images/generations", f"Bearer {KEY}"), ("/v1/files/a.png", None)]


@pytest.mark.parametrize(
    "elsewhere",
    [
        "http://127.0.0.1:9/a.png",
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "http://localhost:9/a",
        "http://[::1",
        "http://127。0。0。1:9/a.png",
    ],
)
async def test_a_picture_inside_the_network_is_not_fetched(monkeypatch: pytest.MonkeyPatch, elsewhere: str) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return _reply(url=elsewhere)

    async with _server(answer) as address:
        monkeypatch.setenv("AGROTOOLS_IMAGES_URL", address)
        with pytest.raises((InfrastructureError, UsageError)):
            await draw("painter-1", "barn", (), QUICK)


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ({"b64_json": "%%%"}, InfrastructureError),
        ({"b64_json": "é"}, InfrastructureError),
        ({}, InfrastructureError),
        ({"url": 3}, InfrastructureError),
        ({"b64_json": base64.b64encode(b"GIF89a no picture").decode()}, ToolError),
    ],
)
def test_what_is_no_picture_is_a_typed_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, item: dict[str, Any], error: type[Exception]
) -> None:
    import asyncio

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"data": [item]})

    async def ask() -> None:
        async with _server(answer) as address:
            monkeypatch.setenv("AGROTOOLS_IMAGES_URL", address)
            with artifacts_in(tmp_path, backend=BACKEND):
                await asyncio.to_thread(generate_image, prompt="barn")

    with pytest.raises(ToolError) as caught:
        asyncio.run(ask())
    assert caught.value.kind == ("tool_failed" if error is ToolError else "backend_unavailable")
    assert KEY not in str(caught.value)


async def test_a_refused_text_is_the_callers_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": f"not allowed {KEY}"}}, status=400)

    async with _server(answer) as address:
        monkeypatch.setenv("AGROTOOLS_IMAGES_URL", address)
        with pytest.raises(ToolError, match="not allowed") as caught:
            await draw("painter-1", "barn", (), QUICK)
    assert caught.value.kind == "invalid_argument"
    assert KEY not in str(caught.value)


def test_the_key_of_a_vendor_goes_to_no_other_server_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGROTOOLS_IMAGES_KEY_ENV")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AGROTOOLS_IMAGES_URL", "http://127.0.0.1:8000/v1")
    assert images_settings().key == ""
    monkeypatch.delenv("AGROTOOLS_IMAGES_URL")
    assert images_settings().key == KEY
    assert KEY not in repr(images_settings())
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="OPENAI_API_KEY holds no API key"):
        ToolExecutor(backends={"generate_image": BACKEND})
