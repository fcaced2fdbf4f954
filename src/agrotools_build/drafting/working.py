"""Work on drafts: requests to a model, the ledger of replies and outcomes, and the folder for the review.

The ledger (``drafts.jsonl``) is written a line at a time, so that a command that was killed goes on where it stopped.
The folder ``queue`` is written whole at the end of every command.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue, field_serializer

from agrotools.core import (
    AgrotoolsError,
    FrozenModel,
    InfrastructureError,
    RunStoreError,
    Sample,
    Usage,
    UsageError,
)
from agrotools.core.files import LineFile, read_lines, read_text, write_whole
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import Benchmark, BenchmarkHeader
from agrotools.formats.funnel import Funnel, stored_funnel
from agrotools.formats.writing import canary_of, check_replaceable, replace_folder
from agrotools.models import Completion, Model, ModelSettings, PricedModel
from agrotools.models.local_server import LocalServer
from agrotools.models.metered import KEPT, most_output_tokens
from agrotools.runner.asking import AT_ONCE, ask_each, open_models
from agrotools.runner.estimate import TYPICAL_OUTPUT_TOKENS, CostEstimate, request_size
from agrotools.runner.execute import interrupts
from agrotools.runner.store import RunLock
from agrotools_build.composing import StepRunner
from agrotools_build.drafting.checking import Checked
from agrotools_build.drafting.easy import easy_drafts
from agrotools_build.drafting.funnel import drafting_metadata
from agrotools_build.drafting.options import OptionDrafts
from agrotools_build.drafting.prompting import prompt_hash
from agrotools_build.drafting.questions import QuestionDrafts
from agrotools_build.drafting.reasons import Dropped
from agrotools_build.drafting.replies import LONGEST_REPLY
from agrotools_build.drafting.request import DraftRequest, Earlier, Kind, Progressed
from agrotools_build.drafting.wordings import WordingDrafts
from agrotools_build.export.folder import copy_artifacts, copy_files, write_benchmark
from agrotools_build.labels import labels_of_folder, write_labels
from agrotools_build.own_photos.proposal import name_of_benchmark
from agrotools_build.quality import Finding, write_findings

LEDGER_FILE, SPEND_FILE, QUEUE_FOLDER = "drafts.jsonl", "spend.jsonl", "queue"
SOURCE_FILE = "drafts_of.txt"
"""File of a folder of drafts with the path of the folder that was drafted from."""
LABELLED_FOLDER = "labelled"
"""Benchmark of the photographs and their table, which the drafts begin from."""
DOUBT = "doubt"
"""Check of the findings that name what is doubtful about a draft."""
_LEDGER_HINT = "remove that line to ask for this draft again"
_CACHE = "drafting"
_COUNTED = 8
"""Requests that are built to estimate the size of all."""
DRAFT_SETTINGS = ModelSettings(temperature=0.7, max_output_tokens=700)
"""Settings without options. At temperature 0, drafts on similar pictures are copies of each other; the limit is several
times the length of the examples in the prompt."""


class DraftRecord(FrozenModel):
    """A line of the ledger: a draft with the reply it was read from, and its outcome.

    ``asked``: hash of the request. ``reason``: why it was dropped, a key of
    :data:`~agrotools_build.drafting.reasons.REASONS`; empty of a draft that passed, which has ``sample``.
    """

    number: int
    kind: Kind
    asked: str
    model: str
    prompt: str
    date: str
    subject: str
    family: str
    reply: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    ran: bool = False
    reason: str = ""
    why: str = ""
    doubts: tuple[str, ...] = ()
    sample: Sample | None = None

    @field_serializer("sample", when_used="json")
    def _as_in_folders(self, sample: Sample | None) -> dict[str, Any] | None:
        """Return the sample as in the samples of a folder, where the place of an answer is ``from``."""
        return sample and sample.model_dump(mode="json", by_alias=True, exclude_none=True)

    @property
    def stages(self) -> tuple[str, ...]:
        """Stages of the funnel that the draft reached before the review."""
        if self.sample is not None:
            return "drafted", "run", "unique"
        return ("drafted", "run") if self.ran else ("drafted",)


@dataclass(frozen=True)
class DraftOptions:
    """What to draft: the kind, the most drafts, questions of people, and how the model is asked.

    ``is_built``: the folder was built of photographs and a table for these drafts.
    """

    kind: Kind = "question"
    most: int = 100
    seeds: tuple[str, ...] = ()
    is_built: bool = False
    shows_pictures: bool = True
    settings: ModelSettings = DRAFT_SETTINGS
    at_once: int = AT_ONCE


@dataclass
class Drafted:
    """Outcome of drafting: the folder for the review (None without any draft), and the funnel.

    ``asked`` are the drafts of this command, ``known`` those of earlier ones. ``cached``: requests of this command that
    had been answered before, for another folder or for one that was removed. ``error``: why others are missing.
    """

    queue: Path | None
    funnel: Funnel | None
    queued: int = 0
    doubted: int = 0
    asked: int = 0
    known: int = 0
    cached: int = 0
    missing: int = 0
    error: AgrotoolsError | None = None
    tokens: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    """US dollars spent by this command and earlier ones; None if no price is known."""
    examples: Mapping[str, str] = field(default_factory=dict[str, str])
    """A sentence on one draft of each reason."""


class Drafting:
    """Drafts from a benchmark folder, with all that they need. ``out``: folder of ledger and queue."""

    def __init__(self, benchmark: Benchmark, out: Path, options: DraftOptions, model: str) -> None:
        self.benchmark, self.out, self.options, self.model = benchmark, out, options, model
        self.earlier = Earlier()
        # Small files that calls make are kept beside the ledger: the folder drafted from is never changed.
        self.runner = StepRunner(
            benchmark.root,
            kept_in=out,
            toolset=benchmark.toolset or (),
            backends=benchmark.header.backends,
        )
        self.requests = self._requests()

    def _requests(self) -> list[DraftRequest]:
        match self.options.kind:
            case "question":
                return QuestionDrafts(
                    self.benchmark,
                    self.runner,
                    self.earlier,
                    seeds=self.options.seeds,
                    shows_pictures=self.options.shows_pictures,
                ).requests(self.options.most)
            case "wording":
                return WordingDrafts(self.benchmark, self.earlier).requests(self.options.most)
            case "distractors":
                return OptionDrafts(self.benchmark).requests(self.options.most)

    def asked(self, request: DraftRequest) -> str:
        """Return the hash of a request: the same one is never asked for twice, another one is."""
        said = (
            self.model,
            request.kind,
            prompt_hash(request.kind),
            self.benchmark.content_hash,
            request.number,
            request.subject,
        )
        return sha256(repr(said).encode()).hexdigest()[:16]

    def stored(self) -> list[DraftRecord]:
        """Return the records of earlier commands."""
        return read_lines(self.out / LEDGER_FILE, DraftRecord, _LEDGER_HINT)

    def divided(
        self, records: Sequence[DraftRecord]
    ) -> tuple[list[DraftRecord], list[DraftRequest]]:
        """Return those of the records that are of these drafts, and the requests without a record."""
        wanted = {self.asked(request): request for request in self.requests}
        ours = [record for record in records if record.asked in wanted]
        known = {record.asked for record in ours}
        return ours, [request for key, request in wanted.items() if key not in known]

    def learn_earlier(self, records: Sequence[DraftRecord]) -> None:
        """Take earlier drafts that passed as those that no draft may copy, and the questions of the folder.

        Those of a folder that was built of a table are no questions that anybody has asked.
        """
        if self.options.kind == "question" and not self.options.is_built:
            for sample in self.benchmark.samples:
                self.earlier.questions.add(sample)
        for record in records:
            if record.sample is not None:
                self.earlier.add(record.sample)

    async def judge(self, request: DraftRequest, reply: str) -> tuple[Checked | Dropped, bool]:
        """Return what the checks make of a reply, and whether its calls ran."""
        progressed = Progressed()
        if request.refused is not None:
            return request.refused, False
        try:
            made = await request.check(reply, progressed)
        except Dropped as why:
            return why, progressed.ran
        self.earlier.add(made.sample)
        return made, True


def check_folder_of(out: Path, source: Path) -> None:
    """Refuse a folder of drafts that holds something else, or the drafts of another folder than ``source``.

    A folder that was moved since is no other one.

    Raises:
        BenchmarkError: ``out`` holds something else.
        UsageError: it holds the drafts of another folder.
    """
    check_replaceable(out, SOURCE_FILE, "a folder of drafts")
    mark = out / SOURCE_FILE
    if not mark.is_file():
        return
    named = Path(read_text(mark).strip())
    if named.is_dir() and not named.samefile(source):
        raise UsageError(f"the drafts in {out} are of {named}", hint="give another --out")


def claim_folder(out: Path, source: Path) -> None:
    """Write into the folder of drafts which folder they are of.

    Raises:
        RunStoreError: it cannot be written.
    """
    with _working_in(out):
        write_whole(out / SOURCE_FILE, f"{source.resolve()}\n".encode())


@contextmanager
def _working_in(out: Path) -> Iterator[None]:
    """Make the folder of drafts; RunStoreError if it, or what the block writes, cannot be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise RunStoreError(
            f"cannot work in {out}: {error.strerror or error}", hint="choose another --out"
        ) from error


def draft(
    drafting: Drafting,
    open_helper: Callable[[], PricedModel],
    server: LocalServer | None = None,
    *,
    note: Callable[[str], None] = lambda _line: None,
    progress: Progress = no_progress,
) -> Drafted:
    """Ask for the drafts that the ledger lacks, check them, and write the folder for the review.

    ``open_helper``: returns the model. ``server``: runs meanwhile, and ``note`` gets the lines on its start.

    Raises:
        UsageError: there is nothing to draft from.
        RunStoreError: ``out`` cannot be written, or another process uses it.
        KeyboardInterrupt: the command was stopped; drafts so far are kept in the ledger.
    """
    if not drafting.requests:
        raise UsageError(
            f"{drafting.benchmark.root} has nothing to draft from",
            hint="questions need pictures, --only distractors needs questions whose answer is a name",
        )
    out = drafting.out
    with _working_in(out):
        lock = RunLock(out)
    try:
        with LineFile(out / LEDGER_FILE, DraftRecord, _LEDGER_HINT) as ledger:
            records, pending = drafting.divided(ledger.records)
            drafting.learn_earlier(records)
            done = Drafted(None, None, known=len(records))

            async def work() -> None:
                helper = open_helper()
                await _ask(drafting, pending, helper, ledger, records, done, progress)

            try:
                if pending:
                    asyncio.run(server.run(out, work, note, None) if server else work())
            finally:
                # Also of a command that is stopped: what passed so far can be reviewed.
                done.missing = len(pending) - done.asked
                _write_queue(drafting, records, done)
    finally:
        lock.close()
    return done


async def _ask(
    drafting: Drafting,
    pending: Sequence[DraftRequest],
    helper: PricedModel,
    ledger: LineFile[DraftRecord],
    records: list[DraftRecord],
    done: Drafted,
    progress: Progress,
) -> None:
    """Ask for each pending draft, check it, and write it into the ledger before the next one is judged."""
    stopping = threading.Event()
    judging = asyncio.Lock()
    options = drafting.options
    with (
        open_models(
            helper, drafting.out / SPEND_FILE, _CACHE, reserves_seen=True, kept="drafts"
        ) as model_of,
        interrupts(stopping.set),
    ):
        async with drafting.runner:

            async def one(request: DraftRequest) -> None:
                completion = await _completion(request, model_of, options.settings)
                reply = completion.text
                # One at a time: a draft must not copy one that is checked meanwhile.
                async with judging:
                    outcome, ran = await drafting.judge(request, reply)
                record = DraftRecord(
                    number=request.number,
                    kind=request.kind,
                    asked=drafting.asked(request),
                    model=drafting.model,
                    prompt=prompt_hash(request.kind),
                    date=datetime.now(UTC).date().isoformat(),
                    subject=request.subject,
                    family=request.family,
                    reply=reply[:LONGEST_REPLY],
                    finish_reason=completion.finish_reason,
                    usage=completion.usage,
                    seconds=completion.seconds,
                    ran=ran,
                )
                record = record.model_copy(update=_outcome_fields(outcome, record))
                ledger.add(record)
                records.append(record)
                done.asked += 1
                progress("drafts", done.asked, len(pending))

            try:
                done.error = await ask_each(
                    pending, one, helper.model, stopping.is_set, options.at_once
                )
            finally:
                await helper.model.close()
    stats = helper.model.stats
    done.tokens = stats.tokens_text if done.asked else ""
    done.input_tokens, done.output_tokens = stats.input_tokens, stats.output_tokens
    done.usd = stats.spent_usd
    done.cached = stats.cached
    if stopping.is_set():
        raise KeyboardInterrupt


async def _completion(
    request: DraftRequest, model_of: Callable[[int], Model], settings: ModelSettings
) -> Completion:
    """Return the reply to a request; an empty one to a request that is refused before any model is asked.

    Raises:
        InfrastructureError: the model gave no reply.
    """
    if request.refused is not None:
        return Completion(text="", finish_reason="stop")
    completion = await model_of(request.number).generate(request.messages(), (), settings)
    if completion.finish_reason not in KEPT:
        # It may come from a server that is started otherwise, so the draft stays open.
        why = completion.detail or f"the model ended with {completion.finish_reason}"
        raise InfrastructureError(why, hint="a larger context (-c) may hold the prompt")
    return completion


def _outcome_fields(outcome: Checked | Dropped, record: DraftRecord) -> dict[str, object]:
    if isinstance(outcome, Dropped):
        return {"reason": outcome.reason, "why": outcome.why}
    said: dict[str, JsonValue] = {
        "kind": record.kind,
        "model": record.model,
        "prompt": record.prompt,
        "date": record.date,
        "doubts": list(outcome.doubts),
    }
    metadata = {**outcome.sample.metadata, "draft": said}
    sample = outcome.sample.model_copy(update={"metadata": metadata})
    return {"sample": sample, "doubts": outcome.doubts}


class _Passed(NamedTuple):
    """A draft that passed the checks of its own, and the sample that it became."""

    record: DraftRecord
    sample: Sample


def _write_queue(drafting: Drafting, records: Sequence[DraftRecord], done: Drafted) -> None:
    """Write the drafts that passed as a benchmark folder, the doubted ones first, and fill the outcome."""
    in_order = sorted(records, key=lambda record: record.number)
    passed = [_Passed(record, record.sample) for record in in_order if record.sample is not None]
    easy: set[str] = set()
    if drafting.options.kind == "question":
        easy = {*easy_drafts([draft.sample for draft in passed])}
    metadata = _funnel_metadata(in_order, easy)
    done.funnel = stored_funnel(metadata)
    done.examples = {record.reason: record.why for record in reversed(in_order) if record.reason}
    kept = [draft for draft in passed if draft.sample.id not in easy]
    done.queued = len(kept)
    done.doubted = sum(bool(draft.record.doubts) for draft in kept)
    if kept:
        done.queue = drafting.out / QUEUE_FOLDER
        kept.sort(key=lambda draft: (-len(draft.record.doubts), draft.record.number))
        _write_folder(drafting, kept, metadata, done.queue)


def _funnel_metadata(in_order: Sequence[DraftRecord], easy: Set[str]) -> dict[str, JsonValue]:
    """Return the metadata on all drafts. ``easy``: ids of those left out as a constant answers their kind too often."""
    reasons = Counter(record.reason for record in in_order if record.reason)
    if easy:
        reasons["constant_baseline"] = len(easy)
    stages: list[tuple[str, tuple[str, ...]]] = []
    for record in in_order:
        sample = record.sample
        if sample is None:
            stages.append((record.family, record.stages))
        elif sample.id in easy:
            # Its calls ran, but it is not unique enough.
            stages.append((sample.family, record.stages[:2]))
        else:
            stages.append((sample.family, record.stages))
    return drafting_metadata(stages, reasons)


def _write_folder(
    drafting: Drafting, kept: Sequence[_Passed], metadata: Mapping[str, JsonValue], queue: Path
) -> None:
    """Write the folder for the review, completely or not at all."""
    samples = [draft.sample for draft in kept]
    doubts = [
        Finding(id=draft.sample.id, check=DOUBT, severity="info", message=doubt)
        for draft in kept
        for doubt in draft.record.doubts
    ]
    with replace_folder(queue) as folder:
        copy_files(drafting.benchmark.root, samples, folder)
        copy_artifacts(drafting.out, samples, folder)
        write_findings(folder, doubts)
        # A reviewer who changes a draft, or writes a question, is told what people noted.
        if labels := labels_of_folder(drafting.benchmark):
            write_labels(folder, labels)
        write_benchmark(folder, _header(drafting, metadata), samples)


def _header(drafting: Drafting, metadata: Mapping[str, JsonValue]) -> BenchmarkHeader:
    """Return the header of the folder for the review: the terms and sources of the folder that was drafted from."""
    header = drafting.benchmark.header
    name = name_of_benchmark(drafting.out.resolve().name)
    kept = {key: value for key, value in header.metadata.items() if key == "rai"}
    return header.model_copy(
        update={
            "name": name,
            "version": "1",
            "description": f"Questions drafted by {drafting.model}, to be reviewed by people.",
            "quick": (),
            "canary": canary_of(name, "1"),
            "metadata": {**kept, **metadata},
        }
    )


def expected_cost(
    drafting: Drafting, pending: Sequence[DraftRequest], helper: PricedModel
) -> CostEstimate:
    """Return what the requests may cost: low with replies of typical length, high with all at their token limit."""
    settings, price = drafting.options.settings, helper.price
    pending = [request for request in pending if request.refused is None]
    sizes = [
        request_size(helper.name, request.messages(), (), settings, price)[1]
        for request in pending[:_COUNTED]
    ]
    input_tokens = round(sum(sizes) / len(sizes) * len(pending)) if sizes else 0
    most = most_output_tokens(settings)
    typical = min(TYPICAL_OUTPUT_TOKENS, most)
    low, high = (
        price.usd(input_tokens, tokens * len(pending)) if price else None
        for tokens in (typical, most)
    )
    return CostEstimate(
        model=helper.name,
        requests=len(pending),
        input_tokens=input_tokens,
        output_tokens=(typical * len(pending), most * len(pending)),
        usd_low=low,
        usd_high=high,
        price=price,
    )
