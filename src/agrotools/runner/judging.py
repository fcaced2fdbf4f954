"""Asks judges about the answers of a run. Every reply is kept in the run's folder, and none is asked for twice."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.core import AgrotoolsError, InfrastructureError, RunStoreError, UsageError
from agrotools.core.files import LineFile, read_lines, write_whole
from agrotools.core.progress import Progress, no_progress
from agrotools.runner.pace import interrupts
from agrotools.runner.records import iter_records
from agrotools.runner.store import RunLock
from agrotools.scoring.judging import (
    JudgedRows,
    Judgement,
    JudgeQuestion,
    Rubrics,
    has_rubrics,
    judge_questions,
    read_rubrics,
    shipped_rubrics,
)

if TYPE_CHECKING:
    from agrotools.models import Completion, Model, ModelSettings
    from agrotools.runner.auxiliary_model import Helper

JUDGEMENTS_FILE = "judgements.jsonl"
SPEND_FILE = "judges-spend.jsonl"
CACHE = "judging"
_RUBRICS = "judge-rubrics-"
"""What the name of the user's rubrics begins with in a run's folder."""

_HINT = "remove that line; the judge is then asked about it again"
_TEMPERATURE_OF_SEVERAL_VOTES = 0.7
_REJECTED = "rejects the request"
"""What the error of an endpoint says that takes no images, whichever its own words are."""


@dataclass(frozen=True)
class Wanted:
    """A question to be put to a judge for the ``vote``-th time, and whose answer it is about."""

    question: JudgeQuestion
    vote: int
    sample_id: str = ""
    label: int | None = None


@dataclass
class JudgedRun:
    """How asking one judge went. ``error`` is why ``missing`` replies could not be had, if any could not."""

    judge: str
    asked: int = 0
    held: int = 0
    missing: int = 0
    without_images: int = 0
    """Replies to questions whose images the judge could not be shown."""
    error: AgrotoolsError | None = None


def read_judgements(run: Path) -> list[Judgement]:
    """What judges replied about the answers of ``run``; none where nobody asked any.

    Raises:
        RunStoreError: the file cannot be read, or a line in it is no judgement.
    """
    return read_lines(run / JUDGEMENTS_FILE, Judgement, _HINT)


def judged_rows(run: Path) -> JudgedRows:
    """The rows that the judges of ``run`` give its records: on Agent-X by the rubrics that lie in its folder.

    Raises:
        RunStoreError: judgements or rubrics cannot be read.
    """
    return JudgedRows(read_judgements(run), _rubrics_of(run))


def _rubrics_of(run: Path) -> Rubrics | None:
    """The user's rubrics that the run was last judged by; None: those that ship."""
    for path in sorted(run.glob(f"{_RUBRICS}*")):
        try:
            return read_rubrics(path, path.name.removeprefix(_RUBRICS))
        except UsageError as error:
            raise RunStoreError(error.message, hint="remove it, or judge again: --judge-rubrics FILE") from error
    return None


def _keep_rubrics(run: Path, rubrics: Rubrics) -> None:
    """Put the user's rubrics into the run's folder, so that it can be scored again from that alone; ours need not lie
    there, and take the place of others all the same."""
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in rubrics.name)[-80:]
    path = run / f"{_RUBRICS}{safe}" if rubrics.digest else None
    try:
        if path is not None and not (path.is_file() and path.read_bytes() == rubrics.content):
            write_whole(path, rubrics.content)
        for other in run.glob(f"{_RUBRICS}*"):
            if other != path:
                other.unlink()
    except OSError as error:
        raise RunStoreError(f"cannot write to {run}: {error.strerror or error}", hint="free some space") from error


def judge_run(
    run: Path,
    helper: "Helper",
    *,
    votes: int = 1,
    labelled: Mapping[JudgeQuestion, int] | None = None,
    rubrics: Rubrics | None = None,
    progress: Progress = no_progress,
) -> JudgedRun:
    """Ask the judge of ``helper`` about every answer of ``run`` that it has not graded ``votes`` times, and about
    ``labelled`` answers (with their right grades) likewise. Each reply is written as it comes. ``rubrics``: those of
    Agent-X's criteria, of which the run keeps a copy; None: ours.

    Temperature 0 for a single vote, 0.7 where several are asked for.

    Raises:
        RunStoreError: no run, its files cannot be read or written, or another process works on it.
        KeyboardInterrupt: somebody asked to stop; what has been replied is kept.
    """
    done = JudgedRun(helper.spec)
    try:
        lock = RunLock(run)
    except OSError as error:
        raise RunStoreError(f"cannot work in {run}: {error.strerror or error}", hint="give a run folder") from error
    rubrics = rubrics or shipped_rubrics()
    try:
        _keep_rubrics(run, rubrics)
        with LineFile(run / JUDGEMENTS_FILE, Judgement, _HINT) as file:
            held = {(each.asked, each.vote) for each in file.held if each.judge == helper.spec}
            wanted: list[Wanted] = []
            for each in _all_wanted(run, votes, labelled or {}, rubrics):
                if (each.question.asked, each.vote) in held:
                    done.held += 1
                else:
                    held.add((each.question.asked, each.vote))
                    wanted.append(each)
            if wanted:
                temperature = 0.0 if votes == 1 else _TEMPERATURE_OF_SEVERAL_VOTES
                asyncio.run(_ask(wanted, helper, temperature, run / SPEND_FILE, file, done, rubrics, progress))
    finally:
        lock.close()
    return done


def _all_wanted(run: Path, votes: int, labelled: Mapping[JudgeQuestion, int], rubrics: Rubrics) -> Iterator[Wanted]:
    for question, label in labelled.items():
        yield from (Wanted(question, vote, label=label) for vote in range(votes))
    for record in iter_records(run):
        for question in judge_questions(record, rubrics):
            yield from (Wanted(question, vote, record.sample.id) for vote in range(votes))


async def _ask(
    wanted: Sequence[Wanted],
    helper: "Helper",
    temperature: float,
    ledger: Path,
    file: LineFile[Judgement],
    done: JudgedRun,
    rubrics: Rubrics,
    progress: Progress,
) -> None:
    from agrotools.models import Model, ModelSettings
    from agrotools.models.response_cache import KEPT
    from agrotools.runner.auxiliary_model import Asked, ask_each, ready_for_repeats

    stopping = False

    def interrupted() -> None:
        nonlocal stopping
        stopping = True

    with ready_for_repeats(helper, ledger, CACHE) as repeat, interrupts(interrupted):
        models: dict[int, Model] = {}

        async def one(each: Wanted) -> None:
            model = models.setdefault(each.vote, repeat(each.vote))
            question = each.question
            settings = ModelSettings(temperature=temperature, max_output_tokens=question.longest_reply)
            completion, unseen = await _reply(model, question, ledger.parent, settings)
            if completion.finish_reason not in KEPT:
                return  # Nothing was replied: to be asked again another time.
            file.add(
                Judgement(
                    metric=question.metric,
                    judge=helper.spec,
                    rubrics=rubrics.digest if has_rubrics(question.metric) else "",
                    prompt=question.prompt,
                    asked=question.asked,
                    vote=each.vote,
                    sample_id=each.sample_id,
                    label=each.label,
                    reply=completion.text,
                    finish_reason=completion.finish_reason,
                    unseen=unseen,
                )
            )
            done.asked += 1
            done.without_images += bool(unseen)
            progress(f"answers graded by {helper.spec}", done.asked, len(wanted))

        try:
            state: Asked = await ask_each(wanted, one, helper.model, stopped=lambda: stopping)
        finally:
            await helper.model.close()
    done.missing = len(wanted) - done.asked
    done.error = state.error
    if stopping:
        raise KeyboardInterrupt


async def _reply(
    model: "Model", question: JudgeQuestion, run: Path, settings: "ModelSettings"
) -> "tuple[Completion, tuple[str, ...]]":
    """What the judge replies, and the images that it was not shown: it is asked without them where it takes none."""
    from agrotools.runner.attachments import put_question

    put = await asyncio.to_thread(put_question, question, run)
    try:
        return await model.generate(put.messages, (), settings), put.unseen
    except (UsageError, InfrastructureError) as error:
        blind = await asyncio.to_thread(put_question, question, run, images=False)
        if blind.unseen == put.unseen or _REJECTED not in error.message:
            raise
    return await model.generate(blind.messages, (), settings), blind.unseen
