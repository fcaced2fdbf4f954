"""The web application: pages, pictures and decisions by sample id and file name; requests never contain paths.

:class:`Review` shows samples, :class:`Grading` the answers of runs, with the same requests.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from agrotools.build.review.agreement import (
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
from agrotools.build.review.grading import Sheet, all_graded, grades_by, grading_parts, shown_step, summarise_grades
from agrotools.build.review.material import Material
from agrotools.build.review.presenting import SIDES_PX, Pictures, Rendered, present
from agrotools.core import AgrotoolsError, ReferenceStep, Sample, SampleFile, Step, first_error
from agrotools.core.base import count_text
from agrotools.report.html.page import LOOK
from agrotools.report.html.pictures import Absent
from agrotools.report.judges import Grade
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


async def answer_error(_: Request, error: Exception) -> Response:
    """Return the reason of an error as JSON. After a failure of the disk, the page keeps the decision and retries."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code)
    if isinstance(error, OSError):
        return JSONResponse({"error": f"not stored: {error.strerror or error}"}, 507)
    return JSONResponse({"error": str(error)}, 500)


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
    """One review: its material, its journal, and the request handlers."""

    page = "page.html.j2"
    """Template of the page."""
    entries: type[Any] = Decision
    """Type of what is stored."""
    standing_of: Callable[[Sequence[Any]], str] = staticmethod(review_status)
    """Function that gives the standing of a sample after decisions."""

    def __init__(self, material: Material, journal: ReviewJournal[Any], reviewer: str = "") -> None:
        self.material, self.journal, self.reviewer = material, journal, reviewer
        self.pictures = Pictures(material)

    def application(self) -> Starlette:
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
        return Starlette(routes=routes, exception_handlers=handlers)

    # --- pages ------------------------------------------------------------------------------------------------------

    def front(self, _: Request) -> Response:
        return HTMLResponse(
            render(
                self.page,
                title=self.material.title,
                journal=str(self.journal.path),
                reviewer=self.reviewer,
                place=str(self.journal.path.resolve()),
                notes=self.material.notes,
                **self.page_values(),
            )
        )

    def page_values(self) -> dict[str, Any]:
        return {}

    async def index(self, request: Request) -> Response:
        """Return all samples for the list and the filters, and the status of the review."""
        return JSONResponse(await run_in_threadpool(self._index, request.query_params.get("reviewer", "")))

    def _index(self, reviewer: str) -> dict[str, Any]:
        self.journal.refresh()
        decisions = self.journal.decisions()
        by_sample = valid_decisions(decisions, self.material.contents)
        rows = [self._row(key, by_sample.get(key, []), reviewer) for key in self.material.facts]
        return {"samples": rows, "summary": [*self._summary(decisions, reviewer)]}

    def _summary(self, decisions: Sequence[Any], _reviewer: str) -> Iterable[SummaryPart]:
        contents = self.material.contents
        return review_parts(summary_of(list(contents), contents, decisions))

    def _row(self, key: str, made: Sequence[Any], reviewer: str) -> dict[str, Any]:
        """Return a row of the list, with the state of the sample after the decisions ``made``."""
        facts, mine = self.material.facts[key], _decision_of(made, reviewer)
        row = {"id": key, "content": facts.content, "task": facts.task_type, "source": facts.source}
        row |= {"query": facts.query, "flags": facts.flags, "mine": mine and mine.verdict, "reviewers": len(made)}
        # Other reviewers' decisions count only after one's own.
        return row | {"standing": self.standing_of(made) if mine else "undecided"}

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
        return JSONResponse(self._decisions_on(request.path_params["sample_id"], reviewer))

    def _decisions_on(self, sample_id: str, reviewer: str) -> dict[str, Any]:
        decisions = self._decided(sample_id)
        mine = _decision_of(decisions, reviewer)
        others = [each for each in decisions if each is not mine]
        # Other decisions are hidden until the reviewer has decided, to avoid influence.
        visible = [each.model_dump(mode="json") for each in others] if mine else []
        return {
            "mine": mine.model_dump(mode="json") if mine else None,
            "others": visible,
            "hidden": len(others) - len(visible),
        }

    def _decided(self, sample_id: str) -> Sequence[Any]:
        return valid_decisions(self.journal.decisions(), self.material.contents).get(sample_id, [])

    async def decide(self, request: Request) -> Response:
        """Store a decision; the response is sent after it has been written to disk."""
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise HTTPException(415, "send JSON")
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST_BODY:
                raise HTTPException(413, "that is too long")
        return JSONResponse(await run_in_threadpool(self._store_decision, body))

    def _store_decision(self, body: bytes) -> dict[str, Any]:
        try:
            entry = self.entries.model_validate_json(body)
            self._known(entry.sample)
            if entry.content != self.material.facts[entry.sample].content:
                raise HTTPException(409, "what was shown has changed: reload the page")
            entry = self._checked(entry)
        except ValidationError as error:
            raise HTTPException(422, first_error(error).removeprefix("the whole: ")) from error
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        self.journal.append(entry.model_copy(update={"at": datetime.now(UTC).isoformat(timespec="seconds")}))
        return {"saved": True, "row": self._row(entry.sample, self._decided(entry.sample), entry.reviewer)}

    def _checked(self, decision: Any) -> Any:
        """Return a decision as it is stored; ValueError if it does not fit its sample."""
        if decision.edits is None:
            return decision
        if (edits := effective_edits(self._known(decision.sample), decision.edits)) is None:
            raise ValueError("nothing is changed: edit the question or a slot, or accept it")
        return decision.model_copy(update={"edits": edits})

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
        return JSONResponse({"how": _SIZE.sub("", rendered.how), "colours": colours})

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

    def _sample(self, request: Request) -> Sample:
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


def _decision_of(made: Sequence[Any], reviewer: str) -> Any:
    return next((each for each in made if each.reviewer == reviewer), None)


_LATER = "Agreement, and the results of the runs, are shown once you have graded all."


class Grading(Review):
    """Blind grading of the answers of ``sheet``."""

    page, entries, standing_of = "grade.html.j2", Grade, staticmethod(lambda _: "")

    def __init__(self, sheet: Sheet, journal: ReviewJournal[Grade], reviewer: str = "") -> None:
        super().__init__(sheet.material, journal, reviewer)
        self.sheet = sheet

    def page_values(self) -> dict[str, Any]:
        return {"rubrics": self.sheet.scheme.rubric}

    def _summary(self, decisions: Sequence[Any], reviewer: str) -> Iterable[SummaryPart]:
        n_graded = grades_by(self.sheet, decisions).get(reviewer, 0)
        if n_graded == len(self.sheet.items):
            return grading_parts(self.sheet, summarise_grades(self.sheet, decisions))
        # The agreement with others would show how they graded.
        graded = f"You graded {n_graded} of {count_text(len(self.sheet.items), 'answer')}."
        return [{"text": graded}, {"text": _LATER}]

    def _row(self, key: str, made: Sequence[Any], reviewer: str) -> dict[str, Any]:
        row = super()._row(key, [each for each in made if each.reviewer == reviewer], reviewer)
        return row | {"label": self.sheet.items[key].label}

    def _render_sample(self, key: str) -> str:
        item = self.sheet.items[key]
        sample = item.record.sample
        trajectory = item.record.trajectory
        shown = present(self.material, sample, *self._files_of(sample), key=item.key)
        shown |= {
            "label": item.label,
            "rubrics": [each.id for each in self.sheet.scheme.rubrics_of(item)],
            "text": self.sheet.masked((trajectory.answer if trajectory else None) or ""),
            "taken": [shown_step(self.sheet, number, step) for number, step in enumerate(item.calls, 1)],
        }
        return render("answer.html.j2", shown=shown)

    def _decisions_on(self, sample_id: str, reviewer: str) -> dict[str, Any]:
        item, is_done = self.sheet.items[sample_id], all_graded(self.sheet, self.journal.decisions())
        sources = [self.sheet.names()[at] for at, _ in item.runs] if is_done else []
        return {**super()._decisions_on(sample_id, reviewer), "others": [], "hidden": 0, "sources": sources}

    def _checked(self, decision: Any) -> Any:
        if complaint := self.sheet.scheme.complaint(self.sheet.items[decision.sample], decision):
            raise ValueError(complaint)
        return decision

    def _steps(self, key: str) -> Sequence[ReferenceStep | Step]:
        return self.sheet.items[key].calls
