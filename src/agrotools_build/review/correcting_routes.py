"""Requests of the editor: tools, pictures of the folder, unfinished work, trial runs, and versions that are saved."""

import asyncio
import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from pydantic import Field, JsonValue, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agrotools.agents.images import PREVIEWED_KINDS
from agrotools.calling import get_tool
from agrotools.core import (
    FAMILY_OF_TASK_TYPE,
    Artifact,
    FrozenModel,
    ReferenceStep,
    Sample,
    SampleFile,
    first_error,
)
from agrotools.formats.benchmark import FILES_FOLDER, Benchmark
from agrotools.loading.sample_checks import tool_or_none
from agrotools_build.composing import CannotCompose, StepRunner
from agrotools_build.labels import read_labels
from agrotools_build.review.agreement import Reviewer
from agrotools_build.review.correcting import (
    UNCHANGED,
    Written,
    corrected_sample,
    new_sample,
    part_states,
    run_steps,
    unstated_numbers,
    written_of,
)
from agrotools_build.review.folder_labels import FolderLabels, KnownLabels, known_labels
from agrotools_build.review.material import Material
from agrotools_build.review.presenting import PictureRenderer, Rendered
from agrotools_build.review.unfinished import NEW, Unfinished, UnfinishedWork
from agrotools_build.review.versions import FROM_NOTHING, Version, Versions
from agrotools_build.sources.part import Originals, named

_LARGEST_BODY = 256_000
_MOST_ARTIFACTS = 500
"""Most files of trial runs whose pictures the page may ask for; older ones are made again by a run."""
NO_SAMPLE = ""
"""Id in place of a sample for files of the folder that no sample has."""
_MOST_UNUSED = 5000
"""Most pictures without a sample that are offered; each is read once for its hash and size."""
_SHOWN = re.compile(r"\.(jpe?g|png|tiff?|webp|bmp)$", re.IGNORECASE)
_CANNOT_WRITE = "this is not a benchmark folder: corrections and new questions need one"
Body = TypeVar("Body", bound=FrozenModel)


class Trial(FrozenModel):
    """Trial run of what the page holds."""

    key: str
    written: Written


class Saving(FrozenModel):
    """Work that becomes a version. ``of``: content that it began with; empty for a new question."""

    id: Annotated[str, Field(pattern=r"^[0-9a-f-]{8,64}$")]
    key: str
    of: str = ""
    by: Reviewer
    written: Written
    seen: tuple[str, ...] = ()
    """Warnings that the page has shown; with another one, nothing is saved yet."""


async def read_body(request: Request, kind: type[Body], largest: int) -> Body:
    """Return the JSON of a request; HTTPException 413, 415 or 422 if it is too long, no JSON, or not of this kind."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "send JSON")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > largest:
            raise HTTPException(413, "that is too long")
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise HTTPException(422, first_error(error).removeprefix("the whole: ")) from error


class Correcting:
    """The editor of a review: its request handlers and its tool workers, which start with the first run."""

    def __init__(self, material: Material, pictures: PictureRenderer) -> None:
        self.material, self.pictures = material, pictures
        self._stack = AsyncExitStack()
        self._starting = asyncio.Lock()
        self._saving = asyncio.Lock()
        self._runner: StepRunner | None = None
        self._made: dict[tuple[str, str], Artifact] = {}
        self._unused: dict[str, SampleFile] = {}
        self._labels: FolderLabels | None = None
        if material.versions is not None:
            self.work = UnfinishedWork(material.versions.folder)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/editor", self.about),
            Route("/editor/work/{key}", self.begin),
            Route("/editor/work", self.keep, methods=["POST"]),
            Route("/editor/run", self.run, methods=["POST"]),
            Route("/editor/save", self.save, methods=["POST"]),
            Route("/editor/made/{sha256}/{name}", self.made),
            Route("/editor/file/{number:int}", self.unused_picture),
        ]

    async def close(self) -> None:
        """End the tool workers."""
        await self._stack.aclose()

    def unfinished(self, reviewer: str) -> list[dict[str, str]]:
        """Return the unfinished work of a reviewer, for the list."""
        if self.material.versions is None:
            return []
        return [
            {"key": work.key, "query": str((work.state or {}).get("query", ""))}
            for work in self.work.of(reviewer)
            if work.key.startswith(NEW) or work.key in self.material.facts
        ]

    # --- what there is to choose from ---------------------------------------------------------------------------

    def about(self, _: Request) -> Response:
        """Return the tools, task types and pictures that a question may use."""
        self._versions()
        return JSONResponse(
            {
                "tools": [*self._tools()],
                "task_types": [*FAMILY_OF_TASK_TYPE],
                "files": [*self._files()],
            }
        )

    def _tools(self) -> Iterator[dict[str, Any]]:
        for name in self._toolset():
            spec = get_tool(name).spec
            yield {
                "name": name,
                "description": spec.description,
                "parameters": spec.parameters,
                "agreement": spec.agreement,
                "expert": spec.expert,
            }

    def _toolset(self) -> list[str]:
        """Return the tools of the benchmark that are installed here."""
        header = self._benchmark.header
        declared = {tool.name for tool in header.declared}
        return [
            name
            for name in header.toolset
            if name not in declared and tool_or_none(name) is not None
        ]

    def _files(self) -> Iterator[dict[str, Any]]:
        """Yield each file of the folder once, by a sample that has it."""
        seen: set[str] = set()
        for sample_id in [*self.material.facts]:
            sample = self.material.sample(sample_id)
            for file in sample.files if sample else ():
                if file.path not in seen:
                    seen.add(file.path)
                    yield self._shown_file(sample_id, file)
        self._unused = unused_pictures(self._benchmark.root, seen)
        for number, (path, file) in enumerate(self._unused.items()):
            facts = self._shown_file(NO_SAMPLE, file)
            yield {**facts, "name": path, "as": file.name, "src": f"editor/file/{number}"}

    def unused_picture(self, request: Request) -> Response:
        """Return a picture of the folder that no sample has, by its place in the list."""
        pictures, number = [*self._unused.values()], request.path_params["number"]
        if number >= len(pictures):
            raise HTTPException(404, "there is no such picture: reload the page")
        return self.pictures.response(request, self.pictures.of_file, pictures[number])

    def _list_unused(self) -> dict[str, SampleFile]:
        """Return the pictures that no sample has; listed again after a start, before the page asks for them."""
        for _ in self._files():
            pass
        return self._unused

    def _shown_file(self, sample_id: str, file: SampleFile) -> dict[str, Any]:
        """Return the facts of a file that the page needs to show it and to draw on it."""
        is_picture = file.kind in PREVIEWED_KINDS
        width, height = file.width_px, file.height_px
        if is_picture and not (width and height):
            rendered = self.pictures.of_file(file, "small")
            if isinstance(rendered, Rendered):
                width, height = rendered.width_px, rendered.height_px
        facts = {"sample": sample_id, "name": file.name, "as": file.name, "kind": file.kind}
        place = f"picture/{sample_id}/{quote(file.name)}"
        return {**facts, "src": place, "width": width, "height": height, "shown": is_picture}

    # --- unfinished work ----------------------------------------------------------------------------------------

    def begin(self, request: Request) -> Response:
        """Return a sample as the editor holds it, and the unfinished work of the reviewer on it."""
        self._versions()
        key, reviewer = request.path_params["key"], request.query_params.get("reviewer", "")
        base = self._base(key)
        work = self.work.get(reviewer, key)
        content = self.material.facts[key].content if base else FROM_NOTHING
        steps = base.reference.steps if base and base.reference else ()
        return JSONResponse(
            {
                "of": content,
                "written": written_of(base) if base else None,
                "work": work and work.model_dump(mode="json"),
                "results": [self._shown_step(step) for step in steps],
                "stands": [slot.name for slot in base.answer] if base else [],
                "files": [self._shown_file(key, file) for file in base.files] if base else [],
            }
        )

    async def keep(self, request: Request) -> Response:
        """Store unfinished work, or forget it; answered once it is on disk."""
        self._versions()
        work = await read_body(request, Unfinished, _LARGEST_BODY)
        return JSONResponse({"kept": await run_in_threadpool(self.work.keep, work)})

    # --- runs ---------------------------------------------------------------------------------------------------

    async def run(self, request: Request) -> Response:
        """Make the calls of the page and return their results, and what the parts of the answer become."""
        self._versions()
        trial = await read_body(request, Trial, _LARGEST_BODY)
        base, files = self._base(trial.key), self._files_of(trial.key, trial.written)
        try:
            steps = await run_steps(trial.written, files, await self._started(), base)
        except CannotCompose as error:
            raise _refused(error) from error
        labels = await run_in_threadpool(self._labels_of, steps, files, base)
        states = part_states(trial.written, steps, files, base, labels)
        return JSONResponse(
            {
                "steps": [self._shown_step(step) for step in steps],
                "warnings": unstated_numbers(trial.written, files, base),
                "parts": [state.model_dump(mode="json") for state in states],
            }
        )

    def _labels_of(
        self, steps: list[ReferenceStep], files: tuple[SampleFile, ...], base: Sample | None
    ) -> KnownLabels:
        """Return what the labels of the folder, as it was built, say of the results of steps."""
        if self._labels is None:
            benchmark = self._benchmark
            self._labels = FolderLabels(benchmark.samples, read_labels(benchmark.root))
        return known_labels(steps, files, self._labels, base)

    async def _started(self) -> StepRunner:
        async with self._starting:
            if self._runner is None:
                benchmark = self._benchmark
                runner = StepRunner(
                    benchmark.root,
                    toolset=self._toolset(),
                    backends=benchmark.header.backends,
                )
                self._runner = await self._stack.enter_async_context(runner)
            return self._runner

    def _shown_step(self, step: ReferenceStep) -> dict[str, Any]:
        """Return the observation of a step for the page: result, values with their paths, error, files."""
        observation = step.observation
        if observation is None:
            return {"result": {}, "artifacts": [], "notes": [], "error": None, "labels": {}}
        result = observation.result or {}
        for artifact in observation.artifacts:
            if artifact.sha256 is not None:
                self._made[artifact.sha256, artifact.name] = artifact
        while len(self._made) > _MOST_ARTIFACTS:
            self._made.pop(next(iter(self._made)))
        return {
            "result": {name: result[name] for name in result if name not in ("notes", "flags")},
            "notes": _texts(result, "notes") + _texts(result, "flags"),
            "error": observation.error
            and {"message": observation.error.message, "hint": observation.error.hint or ""},
            "artifacts": [
                {"name": each.name, "kind": each.kind, "sha256": each.sha256}
                for each in observation.artifacts
            ],
            "labels": _other_by_labels(step),
        }

    def made(self, request: Request) -> Response:
        """Return a file of a trial run as a picture."""
        key = (request.path_params["sha256"], request.path_params["name"])
        if key not in self._made:
            raise HTTPException(404, "not kept: run the step again")
        return self.pictures.response(request, self.pictures.of_artifact, self._made[key])

    # --- saving -------------------------------------------------------------------------------------------------

    async def save(self, request: Request) -> Response:
        """Make the calls again and store what they give as a version; answered once it is on disk."""
        versions = self._versions()
        saving = await read_body(request, Saving, _LARGEST_BODY)
        base = self._base(saving.key)
        sample_id = base.id if base else _new_id(saving.key)
        files = self._files_of(saving.key, saving.written)
        async with self._saving:
            await run_in_threadpool(self.material.update)
            if self._is_stored(saving, sample_id):
                return JSONResponse({"saved": sample_id})
            self._check_current(saving, sample_id)
            if base is not None and saving.written == Written.model_validate(written_of(base)):
                raise _refused(UNCHANGED)
            warnings = unstated_numbers(saving.written, files, base)
            if not set(warnings) <= set(saving.seen):
                return JSONResponse({"saved": None, "warnings": warnings})
            runner = await self._started()
            try:
                steps = await run_steps(saving.written, files, runner, base)
                labels = await run_in_threadpool(self._labels_of, steps, files, base)
                if base is None:
                    sample = new_sample(
                        sample_id, saving.written, files, steps, runner, saving.by, labels
                    )
                else:
                    twin = self.material.sample(base.twin) if base.twin else None
                    sample = corrected_sample(
                        base, saving.written, steps, runner.root, saving.by, twin, labels
                    )
            except CannotCompose as error:
                raise _refused(error) from error
            version = Version(
                id=saving.id,
                sample=sample.model_dump(mode="json", by_alias=True),
                of=saving.of,
                by=saving.by,
                at=datetime.now(UTC).isoformat(timespec="seconds"),
            )
            await run_in_threadpool(self._store, versions, version, saving)
        return JSONResponse({"saved": sample_id})

    def _store(self, versions: Versions, version: Version, saving: Saving) -> None:
        versions.append(version)
        self.work.drop(saving.by, saving.key)
        self.material.update()

    def _is_stored(self, saving: Saving, sample_id: str) -> bool:
        return any(saving.id == version.id for version in self.material.history(sample_id))

    def _check_current(self, saving: Saving, sample_id: str) -> None:
        """Refuse to replace what somebody else saved meanwhile."""
        facts = self.material.facts.get(sample_id)
        if (facts.content if facts else FROM_NOTHING) != saving.of:
            history = self.material.history(sample_id)
            who = history[-1].by if history else "somebody"
            raise HTTPException(
                409,
                f"{who} changed this sample meanwhile: reload to see it. Your work is kept until you discard it",
            )

    # --- what requests name -------------------------------------------------------------------------------------

    def _versions(self) -> Versions:
        if self.material.versions is None:
            raise HTTPException(409, _CANNOT_WRITE)
        return self.material.versions

    @property
    def _benchmark(self) -> Benchmark:
        benchmark = self.material.benchmark
        assert benchmark is not None  # it has versions
        return benchmark

    def _base(self, key: str) -> Sample | None:
        """Return the sample under a key; None for the key of a new question."""
        sample = self.material.sample(key)
        if sample is None and not key.startswith(NEW):
            raise HTTPException(404, "there is no such sample")
        if sample is not None and sample.declared:
            raise HTTPException(
                409, "its tools are declared by the benchmark and cannot be run on this page"
            )
        return sample

    def _files_of(self, key: str, written: Written) -> tuple[SampleFile, ...]:
        if base := self._base(key):
            return base.files
        files: dict[str, SampleFile] = {}
        for chosen in written.files:
            sample = self.material.sample(chosen.sample)
            by_name = {file.name: file for file in sample.files} if sample else {}
            if chosen.sample == NO_SAMPLE:
                by_name = self._unused or self._list_unused()
            if chosen.name not in by_name or chosen.as_ in files:
                raise HTTPException(
                    422, f"{chosen.as_}: there is no such file, or it is there twice"
                )
            files[chosen.as_] = by_name[chosen.name].model_copy(update={"name": chosen.as_})
        return tuple(files.values())


def unused_pictures(root: Path, used: Collection[str]) -> dict[str, SampleFile]:
    """Return the pictures in ``files/`` of a benchmark folder that no sample has, by path.

    Their names in a sample reveal nothing: ``image_1.jpg``.
    """
    found: dict[str, SampleFile] = {}
    originals = Originals()
    for path in sorted((root / FILES_FOLDER).rglob("*")):
        relative = path.relative_to(root).as_posix()
        is_picture = _SHOWN.search(path.name) and path.is_file() and not path.is_symlink()
        if not is_picture or relative in used or len(found) == _MOST_UNUSED:
            continue
        file = named(originals.file(path), "image", 1)
        if file.width_px is not None:  # else it is broken, or no picture
            found[relative] = file.model_copy(update={"path": relative})
    return found


def _new_id(key: str) -> str:
    """Return the id of a new question, the same whenever its key is sent again."""
    return f"written-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def _refused(error: CannotCompose) -> HTTPException:
    said = f"{error.message} ({error.hint})" if error.hint else error.message
    return HTTPException(422, said)


def _texts(result: Mapping[str, JsonValue], name: str) -> list[str]:
    """Return the texts in a field of a result: some tools give a list, others one text."""
    texts = result.get(name)
    if isinstance(texts, str):
        return [texts] if texts else []
    return [str(text) for text in texts] if isinstance(texts, list) else []


def _other_by_labels(step: ReferenceStep) -> dict[str, JsonValue]:
    """Return the fields of a result for which labels say something else than the tool."""
    truth = step.truth or {}
    result = (step.observation and step.observation.result) or {}
    return {name: value for name, value in truth.items() if result.get(name) != value}
