"""Judging of a run's answers by models. Every reply is stored in the run folder, and no question is asked twice.

Of the files that a run created, a judge sees the contents of texts and images, and only the names of others.
"""

import asyncio
import re
import threading
import traceback
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from agrotools.agents.images import Preview, make_preview
from agrotools.core import AgrotoolsError, Artifact, InfrastructureError, RunStoreError, UsageError
from agrotools.core.errors import words_of
from agrotools.core.files import LineFile, artifact_path, remedy, write_whole
from agrotools.core.progress import Progress, no_progress
from agrotools.models import Completion, ContentPart, Message, Model, ModelSettings, TextPart
from agrotools.models.endpoint import PricedModel
from agrotools.models.metered import (
    KEPT,
    Budget,
    CachedModel,
    MeteredModel,
    ResponseCache,
    SpendLedger,
    response_cache_path,
)
from agrotools.runner.execute import interrupts
from agrotools.runner.records import iter_records
from agrotools.runner.rescore import JUDGEMENT_HINT, JUDGEMENTS_FILE, RUBRICS_PREFIX
from agrotools.runner.store import RunLock
from agrotools.scoring.judging.judgements import Judgement
from agrotools.scoring.judging.questions import (
    JudgeQuestion,
    Rubrics,
    has_rubrics,
    is_image,
    is_text,
    judge_questions,
)

SPEND_FILE = "judges-spend.jsonl"
_CACHE = "judging"
_AT_ONCE = 32
_SILENT_BEFORE_GIVING_UP = 3
_LONGEST_TEXT = 12_000
"""Maximum characters of a file shown to a judge; the rest is cut off, with a note."""
_LONGEST_TOGETHER = 60_000
_LONGEST_CHARACTER_BYTES = 4
_DIGITS = re.compile(r"[0-9a-f]+")

_TEMPERATURE_OF_SEVERAL_VOTES = 0.7
_REJECTED = "rejects the request"
"""Part of the error message of every endpoint that does not accept images."""


@dataclass(frozen=True)
class PendingQuestion:
    """A question to a judge, the number of its vote, and the sample whose answer it concerns."""

    question: JudgeQuestion
    vote: int
    sample_id: str = ""
    label: int | None = None


@dataclass
class JudgedRun:
    """Result of asking one judge. ``error``: reason why ``missing`` replies could not be obtained, if any."""

    judge: str
    replies: int = 0
    known: int = 0
    missing: int = 0
    without_images: int = 0
    """Replies to questions whose images the judge could not see."""
    error: AgrotoolsError | None = None


def _keep_rubrics(run: Path, rubrics: Rubrics | None) -> None:
    """Copy the user's rubrics into the run folder, so that it can be scored again on its own, and remove others.

    None stands for the built-in rubrics, which need no copy.
    """
    path = None
    try:
        if rubrics is not None:
            safe = "".join(
                letter if letter.isalnum() or letter in "._-" else "-" for letter in rubrics.name
            )[-80:]
            path = run / f"{RUBRICS_PREFIX}{safe}"
            if not (path.is_file() and path.read_bytes() == rubrics.content):
                write_whole(path, rubrics.content)
        for other in run.glob(f"{RUBRICS_PREFIX}*"):
            if other != path:
                other.unlink()
    except OSError as error:
        raise RunStoreError(
            f"cannot write to {run}: {error.strerror or error}", hint=remedy(error)
        ) from error


def judge_run(
    run: Path,
    helper: PricedModel,
    *,
    votes: int = 1,
    labelled: Mapping[JudgeQuestion, int] | None = None,
    rubrics: Rubrics | None = None,
    progress: Progress = no_progress,
) -> JudgedRun:
    """Ask the judge of ``helper`` about every answer of ``run`` that it has not graded ``votes`` times.

    Each reply is stored immediately. The temperature is 0 for a single vote and 0.7 for several.

    Args:
        labelled: further questions, with the correct grades of their answers.
        rubrics: the user's rubrics, of which the run stores a copy; None for the built-in ones.

    Raises:
        RunStoreError: not a run, its files cannot be read or written, or another process uses it.
        KeyboardInterrupt: the judging was interrupted; replies received so far are kept.
    """
    result = JudgedRun(helper.name)
    try:
        lock = RunLock(run)
    except OSError as error:
        raise RunStoreError(
            f"cannot work in {run}: {error.strerror or error}", hint="give a run folder"
        ) from error
    try:
        _keep_rubrics(run, rubrics)
        with LineFile(run / JUDGEMENTS_FILE, Judgement, JUDGEMENT_HINT) as file:
            known_replies = {
                (each.asked, each.vote) for each in file.records if each.judge == helper.name
            }
            pending: list[PendingQuestion] = []
            for each in _all_questions(run, votes, labelled or {}, rubrics):
                if (each.question.asked, each.vote) in known_replies:
                    result.known += 1
                else:
                    known_replies.add((each.question.asked, each.vote))
                    pending.append(each)
            if pending:
                temperature = 0.0 if votes == 1 else _TEMPERATURE_OF_SEVERAL_VOTES
                asyncio.run(
                    _ask(
                        pending,
                        helper,
                        temperature,
                        run / SPEND_FILE,
                        file,
                        result,
                        rubrics,
                        progress,
                    )
                )
    finally:
        lock.close()
    return result


def _all_questions(
    run: Path, votes: int, labelled: Mapping[JudgeQuestion, int], rubrics: Rubrics | None
) -> Iterator[PendingQuestion]:
    for question, label in labelled.items():
        yield from (PendingQuestion(question, vote, label=label) for vote in range(votes))
    for record in iter_records(run):
        for question in judge_questions(record, rubrics):
            yield from (PendingQuestion(question, vote, record.sample.id) for vote in range(votes))


async def _ask(
    pending: Sequence[PendingQuestion],
    helper: PricedModel,
    temperature: float,
    ledger: Path,
    file: LineFile[Judgement],
    result: JudgedRun,
    rubrics: Rubrics | None,
    progress: Progress,
) -> None:
    stopping = threading.Event()
    with _open_models(helper, ledger) as model_of, interrupts(stopping.set):
        models: dict[int, Model] = {}

        async def one(each: PendingQuestion) -> None:
            model = models.setdefault(each.vote, model_of(each.vote))
            question = each.question
            settings = ModelSettings(
                temperature=temperature, max_output_tokens=question.longest_reply
            )
            completion, unseen = await _reply(model, question, ledger.parent, settings)
            if completion.finish_reason not in KEPT:
                return  # No usable reply: the question stays open for a later call.
            file.add(
                Judgement(
                    **{name: getattr(question, name) for name in ("metric", "prompt", "asked")},
                    **{name: getattr(each, name) for name in ("vote", "sample_id", "label")},
                    judge=helper.name,
                    rubrics=rubrics.digest if rubrics and has_rubrics(question.metric) else "",
                    reply=completion.text,
                    finish_reason=completion.finish_reason,
                    unseen=unseen,
                )
            )
            result.replies += 1
            result.without_images += bool(unseen)
            progress(f"answers graded by {helper.name}", result.replies, len(pending))

        try:
            result.error = await _ask_each(pending, one, helper.model, stopping.is_set)
        finally:
            await helper.model.close()
    result.missing = len(pending) - result.replies
    if stopping.is_set():
        raise KeyboardInterrupt


@contextmanager
def _open_models(helper: PricedModel, ledger: Path) -> Generator[Callable[[int], Model]]:
    """Yield a function from the number of the vote to the model of ``helper``, paid from its budget; spending is
    written to ``ledger``, and replies are cached per vote, so that an interrupted command never pays twice."""
    with ExitStack() as stack:
        model = helper.model
        if helper.price is not None and not helper.price.is_free:
            budget = Budget(helper.budget_usd, stack.enter_context(SpendLedger(ledger)))
            model = MeteredModel(model, helper.price, budget)
        # A script costs nothing, and its content may change under the same name, so it is not cached.
        if helper.base_url:
            replies = stack.enter_context(ResponseCache(response_cache_path(_CACHE)))
            yield lambda vote: CachedModel(model, replies, vote)
        else:
            yield lambda _vote: model


async def _ask_each(
    pending: Sequence[PendingQuestion],
    ask: Callable[[PendingQuestion], Awaitable[object]],
    model: Model,
    stopped: Callable[[], bool],
) -> AgrotoolsError | None:
    """Await ``ask`` for each question, many concurrently; return why some have no reply, or None.

    No further question is asked if the model is unreachable (several in a row without a reply, and no other replies
    meanwhile), the budget is spent, the model is configured wrongly, or ``stopped`` returns True.
    """
    queue = iter(pending)
    silent = 0
    gone = False
    reason: AgrotoolsError | None = None

    async def work() -> None:
        nonlocal silent, gone, reason
        while not gone and not stopped() and (item := next(queue, None)) is not None:
            replies = model.stats.replies + model.stats.cached
            try:
                await ask(item)
                silent = 0
            except InfrastructureError as error:
                reason = error
                silent = 0 if model.stats.replies + model.stats.cached > replies else silent + 1
                gone = gone or silent >= _SILENT_BEFORE_GIVING_UP
            except RunStoreError:
                raise  # A full disk is not the model's fault.
            except AgrotoolsError as error:
                reason, gone = reason if gone else error, True
            except Exception as error:
                # An internal error on one item must not cost the others.
                at = traceback.extract_tb(error.__traceback__)[-1]
                fault = f"internal error, {type(error).__name__}: {words_of(error)} ({at.name}, line {at.lineno})"
                reason = reason or InfrastructureError(fault, hint="please report it")

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(work())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return reason


async def _reply(
    model: Model, question: JudgeQuestion, run: Path, settings: ModelSettings
) -> tuple[Completion, tuple[str, ...]]:
    """Return the judge's reply and the images it did not see: a judge that rejects images is asked without them."""
    request = await asyncio.to_thread(judge_request, question, run)
    try:
        return await model.generate(request.messages, (), settings), request.unseen
    except (UsageError, InfrastructureError) as error:
        blind = await asyncio.to_thread(judge_request, question, run, images=False)
        if blind.unseen == request.unseen or _REJECTED not in error.message:
            raise
    return await model.generate(blind.messages, (), settings), blind.unseen


class JudgeRequest(NamedTuple):
    """Messages to a judge. ``unseen``: names of images that are not included."""

    messages: list[Message]
    unseen: tuple[str, ...] = ()


def judge_request(question: JudgeQuestion, run: Path, *, images: bool = True) -> JudgeRequest:
    """Return ``question`` as messages, with the contents of its attachments; ``images=False`` leaves out images."""
    system = Message.of("system", question.system)
    if not question.attachments:
        return JudgeRequest([system, Message.of("user", question.user)])
    parts: list[ContentPart] = [TextPart(text=question.user)]
    unseen: list[str] = []
    room = _LONGEST_TOGETHER
    for each in question.attachments:
        path = _path_of(run, each)
        if is_text(each):
            most = min(room, _LONGEST_TEXT)
            text = _text(path, most)
            room -= min(len(text or ""), most)
            parts.append(
                TextPart(
                    text=_file_note(
                        each, "cannot be read" if text is None else "", text, question.mark
                    )
                )
            )
        elif is_image(each):
            preview = (
                make_preview(path, each.name, "image", None)
                if images and path is not None
                else None
            )
            if isinstance(preview, Preview):
                parts += [TextPart(text=f"{each.name}:"), preview.image]
            else:
                unseen.append(each.name)
                parts.append(TextPart(text=_file_note(each, "cannot be shown")))
    return JudgeRequest([system, Message(role="user", content=tuple(parts))], tuple(unseen))


def _path_of(run: Path, artifact: Artifact) -> Path | None:
    """Return the path of an artifact in the run; None for an invalid hash or a link (runs may be untrusted)."""
    if artifact.sha256 is None or not _DIGITS.fullmatch(artifact.sha256):
        return None
    path = artifact_path(run, artifact.sha256, PurePosixPath(artifact.name).suffix)
    return None if path.is_symlink() else path


def _text(path: Path | None, most: int) -> str | None:
    """Return the beginning of a text file, or None if it cannot be read."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            read = file.read(_LONGEST_CHARACTER_BYTES * most + 1)
    except OSError:
        return None
    text = read.decode("utf-8", errors="replace")
    return text if len(text) <= most else f"{text[:most]} [cut off here]"


def _file_note(artifact: Artifact, lacking: str, text: str | None = None, mark: str = "") -> str:
    return f"{artifact.name} {lacking}." if lacking else f"{artifact.name}:\n{mark}\n{text}\n{mark}"
