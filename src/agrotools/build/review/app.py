"""The web application: pages, pictures and decisions by sample id and file name; requests never contain paths."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from agrotools.build.review.agreement import (
    CHECKS,
    Decision,
    ReviewJournal,
    ReviewSummary,
    edit_text,
    effective_edits,
    review_status,
    summary_of,
    valid_decisions,
)
from agrotools.build.review.material import Material
from agrotools.build.review.presenting import SIDES_PX, Pictures, Rendered, present
from agrotools.build.review.server import Doorkeeper, Guard
from agrotools.core import AgrotoolsError, ReferenceStep, Sample, SampleFile, Step, first_error
from agrotools.report.html.page import LOOK
from agrotools.report.html.pictures import Absent
from agrotools.report.layout import harmless, value_text

if TYPE_CHECKING:
    from jinja2 import Environment


def render(name: str, **values: Any) -> str:
    """Render the template ``name``; values are escaped and stripped of control characters."""
    return _templates().get_template(name).render(**values)


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=lambda value: harmless(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["value_text"] = value_text
    environment.globals["edit_text"] = edit_text
    return environment


def row_state(made: list[Decision], reviewer: str) -> dict[str, Any]:
    """Return the state of a sample for the list; other reviewers' decisions count only after one's own."""
    mine = next((each for each in made if each.reviewer == reviewer), None)
    standing = review_status(made) if mine else "undecided"
    return {"mine": mine.verdict if mine else None, "standing": standing, "reviewers": len(made)}


def summary_parts(summary: ReviewSummary) -> list[dict[str, Any]]:
    """Return a summary as paragraphs and tables for the page."""
    verdicts = ("accept", "edit", "reject")
    parts: list[dict[str, Any]] = [
        {"text": " · ".join(f"{name} {n}" for name, n in summary.standings.items())},
        {
            "head": ["reviewer", *verdicts],
            "rows": [[name, *(str(n.get(v, 0)) for v in verdicts)] for name, n in summary.reviewers.items()],
        },
    ]
    parts += [{"text": pair.described} for pair in summary.agreements]
    if not summary.agreements:
        parts.append({"text": "Agreement needs two reviewers who decided the same samples."})
    if summary.outdated:
        text = f"{summary.outdated} decisions are on samples that have changed since; they do not count."
        parts.append({"text": text})
    return parts


def picture_size(request: Request) -> str:
    """Return the requested picture size, a key of :data:`SIDES_PX`."""
    size = request.query_params.get("size", "small")
    if size not in SIDES_PX:
        raise HTTPException(404, "there is no such size")
    return size


def picture_answer(rendered: Rendered | Absent) -> Response:
    """Return the response with a picture; HTTPException 404 with the reason if there is none."""
    if isinstance(rendered, Absent):
        raise HTTPException(404, rendered.reason)
    return Response(
        rendered.content, media_type=rendered.media_type, headers={"Cache-Control": "private, max-age=3600"}
    )


def json_answer(content: object, status_code: int = 200) -> Response:
    """Return ``content`` as a JSON response."""
    return Response(orjson.dumps(content), status_code=status_code, media_type="application/json")


async def answer_error(_: Request, error: Exception) -> Response:
    """Return the reason of an error as JSON. After a failure of the disk, the page keeps the decision and retries."""
    if isinstance(error, HTTPException):
        return json_answer({"error": error.detail}, error.status_code)
    if isinstance(error, OSError):
        return json_answer({"error": f"not stored: {error.strerror or error}"}, 507)
    return json_answer({"error": str(error)}, 500)


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


class Review:
    """One review: its material, its journal, and the request handlers; all but the front page need a session."""

    page = "page.html.j2"
    """Template of the page."""

    def __init__(
        self, material: Material, journal: ReviewJournal[Any], doorkeeper: Doorkeeper, reviewer: str = ""
    ) -> None:
        self.material, self.journal, self.doorkeeper, self.reviewer = material, journal, doorkeeper, reviewer
        self.pictures = Pictures(material)

    def application(self) -> ASGIApp:
        routes = [
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
        handlers: Mapping[Any, Any] = dict.fromkeys((HTTPException, AgrotoolsError, OSError), answer_error)
        return Guard(Starlette(routes=routes, exception_handlers=handlers), self.doorkeeper)

    # --- pages ------------------------------------------------------------------------------------------------------

    async def front(self, request: Request) -> Response:
        """Serve the page; with a token, exchange it for a session first (possible once)."""
        known = self.doorkeeper.has_session(request.cookies)
        token = request.query_params.get("token")
        if token is not None and not known and request.method == "GET":
            session = self.doorkeeper.exchange(token)
            if session is None:
                return HTMLResponse(render("door.html.j2", state="used"), status_code=403)
            # Not a redirect: a strict cookie would not be sent if the URL was opened from another site.
            response = HTMLResponse(render("door.html.j2", state="open"))
            response.set_cookie(self.doorkeeper.cookie, session, path="/", httponly=True, samesite="strict")
            return response
        if not known:
            return HTMLResponse(render("door.html.j2", state="closed"), status_code=401)
        if token is not None:
            return HTMLResponse(render("door.html.j2", state="open"))
        return HTMLResponse(
            render(
                self.page,
                title=self.material.title,
                journal=str(self.journal.path),
                reviewer=self.reviewer,
                place=str(self.journal.path.resolve()),
                notes=[*self.material.notes, *self.journal.notes],
                **self.page_values(),
            )
        )

    def page_values(self) -> dict[str, Any]:
        return {"checks": CHECKS}

    async def index(self, request: Request) -> Response:
        """Return all samples for the list and the filters, and the status of the review."""
        self._check_session(request)
        return json_answer(await run_in_threadpool(self._index, request.query_params.get("reviewer", "")))

    def _index(self, reviewer: str) -> dict[str, Any]:
        self.journal.refresh()
        decisions = self.journal.decisions()
        by_sample = valid_decisions(decisions, self.material.contents)
        rows = []
        for sample_id, facts in self.material.facts.items():
            row = {"id": sample_id, "content": facts.content, "task": facts.task_type, "source": facts.source}
            row |= {"query": facts.query, "flags": facts.flags}
            rows.append(row | row_state(by_sample.get(sample_id, []), reviewer))
        summary = summary_of(list(self.material.facts), self.material.contents, decisions, self.journal.notes)
        return {"csrf": self.doorkeeper.csrf, "samples": rows, "summary": summary_parts(summary)}

    async def sample_page(self, request: Request) -> Response:
        self._sample(request)
        return HTMLResponse(await run_in_threadpool(self._render_sample, request.path_params["sample_id"]))

    def _render_sample(self, key: str) -> str:
        sample = self._known(key)
        return render("sample.html.j2", shown=present(self.material, sample, *self._files_of(sample)))

    def _files_of(self, sample: Sample) -> tuple[dict[str, Path | Absent], dict[str, tuple[int, int]]]:
        """Return the paths of the tables of a sample, and the sizes of pictures whose size it does not state."""
        tables = [file for file in sample.files if file.kind == "table"]
        places = {file.name: self.pictures.path_of_file(file) for file in tables}
        sizes: dict[str, tuple[int, int]] = {}
        for file in sample.files:
            if not (file.width_px and file.height_px):
                rendered = self.pictures.of_file(file, "small")
                if isinstance(rendered, Rendered):
                    sizes[file.name] = (rendered.width_px, rendered.height_px)
        return places, sizes

    # --- decisions --------------------------------------------------------------------------------------------------

    async def sample_decisions(self, request: Request) -> Response:
        """Return the reviewer's own decision on a sample and, if there is one, those of others."""
        self._sample(request)
        reviewer = request.query_params.get("reviewer", "")
        await run_in_threadpool(self.journal.refresh)
        return json_answer(self._decisions_on(request.path_params["sample_id"], reviewer))

    def _decisions_on(self, sample_id: str, reviewer: str) -> dict[str, Any]:
        decisions = valid_decisions(self.journal.decisions(), self.material.contents).get(sample_id, [])
        mine = next((each for each in decisions if each.reviewer == reviewer), None)
        others = [each for each in decisions if each.reviewer != reviewer]
        # Other decisions are hidden until the reviewer has decided, to avoid influence.
        visible = [each.model_dump(mode="json") for each in others] if mine else []
        return {
            "mine": mine.model_dump(mode="json") if mine else None,
            "others": visible,
            "hidden": len(others) - len(visible),
        }

    async def decide(self, request: Request) -> Response:
        """Store a decision; the response is sent after it has been written to disk."""
        self._check_session(request)
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise HTTPException(415, "send JSON")
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST_BODY:
                raise HTTPException(413, "that is too long")
        return json_answer(await run_in_threadpool(self._store_decision, body))

    def _store_decision(self, body: bytes) -> dict[str, Any]:
        try:
            decision = Decision.model_validate_json(body)
            sample = self._known(decision.sample)
            if decision.content != self.material.facts[sample.id].content:
                raise HTTPException(409, "the sample is not the one that was shown: reload the page")
            changes: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
            if decision.edits is not None:
                changes["edits"] = effective_edits(sample, decision.edits)
                if changes["edits"] is None:
                    raise ValueError("nothing is changed: edit the question or a slot, or accept it")
        except ValidationError as error:
            message = first_error(error).removeprefix("the whole: ")
            raise HTTPException(422, message) from error
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        self.journal.append(decision.model_copy(update=changes))
        decisions = valid_decisions(self.journal.decisions(), self.material.contents).get(sample.id, [])
        return {"saved": True, "row": {"id": sample.id, **row_state(decisions, decision.reviewer)}}

    # --- files ------------------------------------------------------------------------------------------------------

    async def picture(self, request: Request) -> Response:
        file = self._file(request)
        return picture_answer(await run_in_threadpool(self.pictures.of_file, file, picture_size(request)))

    async def about(self, request: Request) -> Response:
        """Return the differences between the displayed picture and its file, and the colours of mask values."""
        file = self._file(request)
        rendered = await run_in_threadpool(self.pictures.of_file, file, "small")
        if isinstance(rendered, Absent):
            raise HTTPException(404, rendered.reason)
        meanings = file.classes or {}
        colours = [f"{colour} = {meanings.get(value, value)}" for value, colour in rendered.colours.items()]
        return json_answer({"how": _SIZE.sub("", rendered.how), "colours": colours})

    async def artifact(self, request: Request) -> Response:
        """Return an artifact of a step (counted from 1) as a picture."""
        self._sample(request)
        steps = self._steps(request.path_params["sample_id"])
        number, name = request.path_params["step"], request.path_params["name"]
        observation = steps[number - 1].observation if 0 < number <= len(steps) else None
        for artifact in observation.artifacts if observation else ():
            if artifact.name == name:
                return picture_answer(
                    await run_in_threadpool(self.pictures.of_artifact, artifact, picture_size(request))
                )
        raise HTTPException(404, "there is no such artifact")

    def _steps(self, key: str) -> Sequence[ReferenceStep | Step]:
        sample = self._known(key)
        return sample.reference.steps if sample.reference else ()

    async def original(self, request: Request) -> Response:
        file = self._file(request)
        path = await run_in_threadpool(self.pictures.path_of_file, file)
        if isinstance(path, Absent):
            raise HTTPException(404, path.reason)
        media_type = _TYPES.get(Path(file.name).suffix.lower(), "application/octet-stream")
        return FileResponse(path, media_type=media_type, filename=file.name)

    # --- request parameters -----------------------------------------------------------------------------------------

    def _check_session(self, request: Request) -> None:
        if not self.doorkeeper.has_session(request.cookies):
            raise HTTPException(401, "open the address that agrotools review printed")

    def _sample(self, request: Request) -> Sample:
        self._check_session(request)
        return self._known(request.path_params["sample_id"])

    def _known(self, key: str) -> Sample:
        if (sample := self.material.sample(key)) is None:
            raise HTTPException(404, "there is no such sample")
        return sample

    def _file(self, request: Request) -> SampleFile:
        sample = self._sample(request)
        for file in sample.files:
            if file.name == request.path_params["name"]:
                return file
        raise HTTPException(404, "the sample has no such file")
