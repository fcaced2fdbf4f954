"""A headless Chromium for tests, driven over its DevTools websocket.

    async with browser() as chromium:
        page = await chromium.open(path.as_uri())
        assert await page.evaluate("document.title") == "..."
        assert page.errors == [] and page.requests == [path.as_uri()]

``find_browser()`` is None where there is none; tests then skip with :data:`NO_BROWSER`.
"""

import asyncio
import base64
import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

NO_BROWSER = "no Chromium here (apt-get install chromium, or name one with AGROTOOLS_TEST_BROWSER)"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_START_S = 60.0
_STEP_S = 60.0
_LEFT = (
    "navigated or closed", "context was destroyed", "Cannot find context", "Cannot find default execution context",
    "Promise was collected",
)  # fmt: skip


def find_browser() -> str | None:
    """The Chromium to use: the one named by ``AGROTOOLS_TEST_BROWSER``, else the first that is installed."""
    named = os.environ.get("AGROTOOLS_TEST_BROWSER")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, _NAMES)), None)


class PageLeftError(AssertionError):
    """The page was left for another one before its answer."""


@dataclass
class Page:
    """A tab. ``errors`` are exceptions, console errors and violations of the content policy; ``blocked`` the addresses
    that it was not let ask for."""

    chromium: "Chromium"
    session: str
    errors: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)
    _asked: dict[str, str] = field(default_factory=dict)
    dialogs: list[str] = field(default_factory=list)
    loaded: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def requests(self) -> list[str]:
        """The addresses it asked for (``data:`` addresses are none)."""
        return list(self._asked.values())

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        return await self.chromium.send(method, params, self.session)

    async def goto(self, url: str) -> None:
        """Go to ``url`` and wait until it has loaded."""
        self.loaded.clear()
        reply = await self.send("Page.navigate", url=url)
        if "loaderId" not in reply:
            return  # to another place in the same page, which does not load again
        async with asyncio.timeout(_STEP_S):
            await self.loaded.wait()

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression (a promise is awaited)."""
        reply = await self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in reply:
            raise AssertionError(
                reply["exceptionDetails"].get("exception", reply["exceptionDetails"])
            )
        return reply["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Wait until an expression is true, and return its value; a page that is loaded meanwhile is asked again."""
        poll = (
            f"const look = () => {{ const found = document.body && ({expression});"
            " found ? done(found) : setTimeout(look, 20); }; look();"
        )
        async with asyncio.timeout(_STEP_S):
            while True:
                with contextlib.suppress(PageLeftError):
                    return await self.evaluate(f"new Promise((done) => {{ {poll} }})")

    async def click(self, selector: str) -> None:
        """Click with the mouse in the middle of the first element that ``selector`` finds, once there is one."""
        frames = (
            "await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        found = f"const e = document.querySelector({selector!r}); if (!e) return null"
        place = None
        async with asyncio.timeout(_STEP_S):
            while place is None:
                await self.until(f"document.querySelector({selector!r}) !== null")
                with contextlib.suppress(PageLeftError):
                    place = await self.evaluate(
                        f"(async () => {{ {found}; e.scrollIntoView({{block: 'center'}}); {frames};"
                        " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
                    )
        for kind in ("mousePressed", "mouseReleased"):
            await self.send(
                "Input.dispatchMouseEvent",
                type=kind,
                x=place[0],
                y=place[1],
                button="left",
                clickCount=1,
            )

    async def type(self, text: str) -> None:
        """Press the keys of ``text``, one by one."""
        for letter in text:
            await self.send("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
            await self.send("Input.dispatchKeyEvent", type="keyUp", key=letter)

    async def resize(self, width: int, height: int) -> None:
        """Give the page another size, in pixels."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def prefer(self, scheme: str) -> None:
        """``light`` or ``dark``."""
        await self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    async def screenshot(self, *, whole: bool = False) -> bytes:
        """What is seen, or the whole page, as PNG."""
        reply = await self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(reply["data"])

    def heard(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.errors.append(" ".join(str(each.get("value", each)) for each in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif (
            method == "Audits.issueAdded"
            and "contentSecurityPolicyIssueDetails" in params["issue"]["details"]
        ):
            self.errors.append(str(params["issue"]))
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith("data:"):
                self._asked[params["requestId"]] = url
        elif method == "Network.loadingFailed" and "blockedReason" in params:
            self.blocked.append(self._asked.pop(params["requestId"], "data:"))
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])
        elif method == "Page.loadEventFired":
            self.loaded.set()


class Chromium:
    """A running browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self, url: str = "about:blank", *, width: int = 1280, height: int = 900) -> Page:
        """A new tab at ``url``, loaded."""
        target = await self.send("Target.createTarget", {"url": "about:blank"})
        attached = await self.send(
            "Target.attachToTarget", {"targetId": target["targetId"], "flatten": True}
        )
        page = self._pages[attached["sessionId"]] = Page(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            await page.send(f"{domain}.enable")
        await page.resize(width, height)
        if url != "about:blank":
            await page.goto(url)
        return page

    async def send(
        self, method: str, params: dict[str, Any], session: str | None = None
    ) -> dict[str, Any]:
        """Send a DevTools command and wait for what it returns."""
        number = next(self._ids)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": params}
        await self._socket.send_json(message | ({"sessionId": session} if session else {}))
        async with asyncio.timeout(_STEP_S):
            return await waiting

    async def listen(self) -> None:
        """Hand out what the browser says until it ends."""
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                continue
            data = message.json()
            if "id" in data:
                waiting = self._waiting.pop(data["id"])
                if waiting.done():
                    continue
                if "error" in data:
                    left = any(words in data["error"]["message"] for words in _LEFT)
                    waiting.set_exception(
                        (PageLeftError if left else AssertionError)(data["error"])
                    )
                else:
                    waiting.set_result(data["result"])
            elif page := self._pages.get(data.get("sessionId", "")):
                page.heard(data["method"], data["params"])
                if data["method"] == "Page.javascriptDialogOpening":
                    task = asyncio.create_task(
                        page.send("Page.handleJavaScriptDialog", accept=True)
                    )
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)


@asynccontextmanager
async def browser() -> AsyncIterator[Chromium]:
    """A headless Chromium with a fresh profile, gone when the block ends."""
    program = find_browser()
    assert program is not None, NO_BROWSER
    profile = Path(tempfile.mkdtemp(prefix="agrotools-browser-"))
    quiet = (
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    )
    process = await asyncio.create_subprocess_exec(
        program,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        *quiet,
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    listening: list[asyncio.Task[Any]] = []
    try:
        address = await _address(process)
        listening.append(asyncio.create_task(_drained(process)))
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(address, max_msg_size=0) as socket,
        ):
            chromium = Chromium(socket)
            listening.append(asyncio.create_task(chromium.listen()))
            yield chromium
            with contextlib.suppress(Exception):
                await chromium.send("Browser.close", {})
    finally:
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(10):
                await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()
        shutil.rmtree(profile, ignore_errors=True)


async def _address(process: asyncio.subprocess.Process) -> str:
    """The websocket of a browser that is starting, as it says itself."""
    assert process.stderr is not None
    async with asyncio.timeout(_START_S):
        async for line in process.stderr:
            _, found, address = line.decode(errors="replace").partition("DevTools listening on ")
            if found:
                return address.strip()
    raise AssertionError("the browser ended while it started")


async def _drained(process: asyncio.subprocess.Process) -> None:
    """Read what the browser says, so that it never waits for a reader."""
    while await process.stderr.read(1 << 16):
        pass
