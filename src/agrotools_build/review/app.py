"""The web application on a local server: pages, pictures and decisions by sample id and file name, never by path.

The server listens on the loopback address only, on a free port, until it is stopped.
"""

import hashlib
import os
import re
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agrotools.core import AgrotoolsError, Sample, SampleFile, UsageError
from agrotools.report.html import LOOK
from agrotools.report.layout import harmless, value_text
from agrotools_build.drafting.funnel import funnel_under_review
from agrotools_build.review.agreement import (
    Decision,
    ReviewJournal,
    SummaryPart,
    edit_text,
    effective_edits,
    review_parts,
    review_status,
    summary_of,
    valid_decisions,
)
from agrotools_build.review.correcting import drafted_by
from agrotools_build.review.correcting_routes import Correcting, read_body
from agrotools_build.review.material import Material
from agrotools_build.review.presenting import PictureRenderer, present, there

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    finalize=lambda value: harmless(value) if type(value) is str else value,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["value_text"] = value_text
_TEMPLATES.globals["edit_text"] = edit_text
_LARGEST_BODY = 64_000
_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
}
"""Media types of files served unchanged; other types are sent as ``application/octet-stream``."""
_SIZE = re.compile(r"(^|, )at \d+ x \d+ px$")
"""Original size in a picture description, which is removed because the page scales pictures."""


def render(name: str, **values: Any) -> str:
    """Render the template ``name``; values are escaped and stripped of control characters."""
    return _TEMPLATES.get_template(name).render(**values)


async def answer_error(_: Request, error: Exception) -> Response:
    """Return the reason of an error as JSON. After a failure of the disk, the page keeps the decision and retries."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code)
    if isinstance(error, OSError):
        return JSONResponse({"error": f"not stored: {error.strerror or error}"}, 507)
    return JSONResponse({"error": str(error)}, 500)


def funnel_parts(
    material: Material, decided: Mapping[str, Sequence[Decision]]
) -> Iterator[SummaryPart]:
    """Yield how far the drafts of a model came, by family; nothing if no model drafted what is under review.

    ``decided``: the decisions on the present version of each sample.
    """
    if material.benchmark is None:
        return
    funnel = funnel_under_review(material.benchmark, decided, material.corrected)
    if funnel is None:
        return
    rows = [[family, *map(str, counts.values())] for family, counts in funnel.rows.items()]
    yield {"text": "Questions drafted by a model:"}
    yield {"head": ["", *funnel.stages], "rows": rows}


class Review:
    """One review: its material, its journal, and the request handlers, which run in threads."""

    def __init__(self, material: Material, journal: ReviewJournal, reviewer: str = "") -> None:
        self.material, self.journal, self.reviewer = material, journal, reviewer
        self.pictures = PictureRenderer(material)
        self.correcting = Correcting(material, self.pictures)

    def application(self) -> Starlette:
        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            yield
            await self.correcting.close()

        routes = [
            *self.correcting.routes(),
            Route("/", self.front),
            Route("/index", self.index),
            Route("/sample/{sample_id}", self.sample_page),
            Route("/decisions/{sample_id}", self.sample_decisions),
            Route("/decisions", self.decide, methods=["POST"]),
            Route("/picture/{sample_id}/{name}", self.picture),
            Route("/about/{sample_id}/{name}", self.about),
            Route("/artifact/{sample_id}/{step:int}/{name}", self.artifact),
            Route("/original/{sample_id}/{name}", self.original),
            Route("/look.css", lambda _: FileResponse(LOOK)),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        ]
        handlers: Mapping[Any, Any] = dict.fromkeys(
            (HTTPException, AgrotoolsError, OSError), answer_error
        )
        return Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)

    # --- pages ------------------------------------------------------------------------------------------------------

    def front(self, _: Request) -> Response:
        path, about = (
            self.journal.path,
            {"title": self.material.title, "notes": self.material.notes},
        )
        place = {
            "journal": str(path),
            "place": str(path.resolve()),
            "reviewer": self.reviewer,
            "corrects": self.material.versions is not None,
        }
        return HTMLResponse(render("page.html.j2", **about, **place))

    def index(self, request: Request) -> Response:
        """Return all samples for the list and the filters, and the status of the review."""
        reviewer = request.query_params.get("reviewer", "")
        self.journal.refresh()
        self.material.update()
        decisions = self.journal.decisions()
        by_sample = valid_decisions(decisions, self.material.contents)
        rows = [self._row(key, by_sample.get(key, []), reviewer) for key in [*self.material.facts]]
        summary = [
            *review_parts(
                summary_of(self.material.contents, decisions, corrected=self.material.corrected)
            ),
            *funnel_parts(self.material, by_sample),
        ]
        return JSONResponse(
            {
                "samples": rows,
                "summary": summary,
                "unfinished": self.correcting.unfinished(reviewer),
            }
        )

    def _row(self, key: str, made: Sequence[Decision], reviewer: str) -> dict[str, Any]:
        """Return a row of the list, with the state of the sample after the decisions ``made``."""
        facts, mine = self.material.facts[key], _decision_of(made, reviewer)
        row = {"id": key, "content": facts.content, "task": facts.task_type, "source": facts.source}
        row |= {
            "query": facts.query,
            "flags": facts.flags,
            "mine": mine and mine.verdict,
            "reviewers": len(made),
            "changed": self._change(key),
        }
        # Other reviewers' decisions count only after one's own.
        return row | {"standing": review_status(made) if mine else "undecided"}

    def _change(self, key: str) -> str:
        """Return whether a reviewer corrected or wrote a sample; empty if nobody did."""
        history = self.material.history(key)
        if not history:
            return ""
        return "corrected" if history[0].of else "written"

    def sample_page(self, request: Request) -> Response:
        sample = self._sample(request)
        shown = present(self.material, self.pictures, sample)
        shown["made"] = drafted_by(sample, self.material.history(sample.id))
        shown["corrects"] = self.material.versions is not None and not sample.declared
        return HTMLResponse(render("sample.html.j2", shown=shown))

    # --- decisions --------------------------------------------------------------------------------------------------

    def sample_decisions(self, request: Request) -> Response:
        """Return the reviewer's own decision on a sample and, if there is one, those of others."""
        sample = self._sample(request)
        self.journal.refresh()
        decisions = self._decided(sample.id)
        reviewer = request.query_params.get("reviewer", "")
        mine = _decision_of(decisions, reviewer)
        earlier = self._on_earlier_content(sample.id)
        others = [each.model_dump(mode="json") for each in decisions if each is not mine]
        # Other decisions are hidden until the reviewer has decided, to avoid influence.
        if mine is None:
            own = [each for each in earlier if each["reviewer"] == reviewer]
            return JSONResponse({"mine": None, "others": [], "hidden": len(others), "earlier": own})
        found = {"mine": mine.model_dump(mode="json"), "others": others, "hidden": 0}
        return JSONResponse({**found, "earlier": earlier})

    def _on_earlier_content(self, sample_id: str) -> list[dict[str, Any]]:
        """Return the decisions on earlier contents of a sample, which no longer count."""
        content = self.material.facts[sample_id].content
        return [
            {"reviewer": each.reviewer, "verdict": each.verdict, "reason": each.reason}
            for each in self.journal.lines()
            if each.sample == sample_id and each.content != content and each.verdict != "withdraw"
        ]

    def _decided(self, sample_id: str) -> Sequence[Decision]:
        return valid_decisions(self.journal.decisions(), self.material.contents).get(sample_id, [])

    async def decide(self, request: Request) -> Response:
        """Store a decision; the response is sent after it has been written to disk."""
        decision = await read_body(request, Decision, _LARGEST_BODY)
        return JSONResponse(await run_in_threadpool(self._store_decision, decision))

    def _store_decision(self, decision: Decision) -> dict[str, Any]:
        sample = self._known(decision.sample)
        if decision.content != self.material.facts[sample.id].content:
            raise HTTPException(409, "what was shown has changed: reload the page")
        try:
            decision = _with_effective_edits(decision, sample)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        self.journal.append(
            decision.model_copy(update={"at": datetime.now(UTC).isoformat(timespec="seconds")})
        )
        return {
            "saved": True,
            "row": self._row(sample.id, self._decided(sample.id), decision.reviewer),
        }

    # --- files ------------------------------------------------------------------------------------------------------

    def picture(self, request: Request) -> Response:
        return self.pictures.response(request, self.pictures.of_file, self._file(request))

    def artifact(self, request: Request) -> Response:
        """Return an artifact of a step (counted from 1) as a picture."""
        sample = self._sample(request)
        steps = list(sample.reference.steps) if sample.reference else []
        number, name = request.path_params["step"], request.path_params["name"]
        observation = steps[number - 1].observation if 0 < number <= len(steps) else None
        for artifact in observation.artifacts if observation else ():
            if artifact.name == name:
                return self.pictures.response(request, self.pictures.of_artifact, artifact)
        raise HTTPException(404, "there is no such artifact")

    def about(self, request: Request) -> Response:
        """Return the differences between the displayed picture and its file, and the colours of mask values."""
        file = self._file(request)
        picture, meanings = there(self.pictures.of_file(file, "small")), file.classes or {}
        colours = [
            f"{colour} = {meanings.get(value, value)}" for value, colour in picture.colours.items()
        ]
        return JSONResponse({"how": _SIZE.sub("", picture.how), "colours": colours})

    def original(self, request: Request) -> Response:
        file = self._file(request)
        media_type = _TYPES.get(Path(file.name).suffix.lower(), "application/octet-stream")
        return FileResponse(
            there(self.pictures.path_of_file(file)), media_type=media_type, filename=file.name
        )

    def _sample(self, request: Request) -> Sample:
        return self._known(request.path_params["sample_id"])

    def _known(self, key: str) -> Sample:
        if (sample := self.material.sample(key)) is None:
            raise HTTPException(404, "there is no such sample")
        return sample

    def _file(self, request: Request) -> SampleFile:
        for file in self._sample(request).files:
            if file.name == request.path_params["name"]:
                return file
        raise HTTPException(404, "the sample has no such file")


def _decision_of(made: Sequence[Decision], reviewer: str) -> Decision | None:
    return next((each for each in made if each.reviewer == reviewer), None)


def _with_effective_edits(decision: Decision, sample: Sample) -> Decision:
    """Return a decision as it is stored; ValueError if it does not fit its sample."""
    if decision.edits is None:
        return decision
    if (edits := effective_edits(sample, decision.edits)) is None:
        raise ValueError("nothing is changed: edit the question or a slot, or accept it")
    return decision.model_copy(update={"edits": edits})


# --- server ---------------------------------------------------------------------------------------------------------

ADDRESS = "127.0.0.1"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_FIRST_PORT, _PORTS = 20_000, 12_000


class Guard:
    """Middleware: requests name this host and begin with the secret path, writes come from the page itself.

    Neither other machines nor other pages in the browser know the path. Every response has protective headers.
    """

    def __init__(self, app: ASGIApp, port: int, secret: str) -> None:
        self._app = app
        self._hosts = frozenset({f"{ADDRESS}:{port}", f"localhost:{port}"})
        self._root = f"/{secret}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return  # websockets are not supported

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if refusal := self._refusal(scope["method"], scope["path"], Headers(scope=scope)):
            await PlainTextResponse(refusal, status_code=403)(scope, receive, protected)
            return
        await self._app(
            {**scope, "path": scope["path"].removeprefix(self._root)}, receive, protected
        )

    def _refusal(self, method: str, path: str, headers: Headers) -> str | None:
        """Return the reason to refuse a request, or None if it is allowed."""
        host, root = headers.get("host", ""), f"{self._root}/".encode()
        if host not in self._hosts or not secrets.compare_digest(path.encode()[: len(root)], root):
            return "open the address that agrotools printed"
        from_page = headers.get("origin") == f"http://{host}" and headers.get("sec-fetch-site") in (
            None,
            "same-origin",
        )
        allowed = method in ("GET", "HEAD") or from_page
        return None if allowed else "wrong origin: decisions are made on the page itself"


def bound_socket(folder: Path, port: int | None) -> socket.socket:
    """Listen on ``127.0.0.1``, by default on a port made from the folder, as browsers keep unfinished work by port.

    Raises UsageError if ``port`` is not available.
    """
    if port is not None:
        try:
            return _bound(port)
        except (OSError, OverflowError) as error:
            why = error if isinstance(error, OverflowError) else os.strerror(error.errno or 0)
            hint = "choose another --port, or leave it out"
            raise UsageError(f"port {port} cannot be used: {why}", hint=hint) from error
    start = int.from_bytes(hashlib.sha256(str(folder.resolve()).encode()).digest()[:4], "big")
    with suppress(OSError):
        return _bound(_FIRST_PORT + start % _PORTS)
    return _bound(0)


def _bound(port: int) -> socket.socket:
    number = socket.create_server((ADDRESS, port), backlog=128).detach()
    # With an explicit protocol, asyncio disables Nagle's algorithm, which would delay each response by 40 ms.
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=number)


def serve_review(page: Review, port: int | None, *, started: Callable[[str], None]) -> None:
    """Serve a page until interrupted; ``started`` gets its address.

    UsageError if ``port`` is taken, BenchmarkError if nothing can be stored.
    """
    import uvicorn

    page.journal.open_for_writing()
    place = bound_socket(page.journal.path, port)
    number, secret = place.getsockname()[1], secrets.token_urlsafe(18)
    config = uvicorn.Config(
        Guard(page.application(), number, secret),
        log_level="warning",
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    started(f"http://{ADDRESS}:{number}/{secret}/")
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run([place])
