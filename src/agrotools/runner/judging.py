"""Judging of a run's answers by models. Every reply is stored in the run folder, and no question is asked twice.

Nothing is printed: whoever asks gets a :class:`JudgedRun` of each judge.
"""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agrotools.core import AgrotoolsError, RunStoreError, UsageError
from agrotools.core.files import LineFile, remedy, write_whole
from agrotools.core.progress import Progress, no_progress
from agrotools.models import (
    Endpoint,
    Message,
    Model,
    ModelSettings,
    PricedModel,
    WireSettings,
    priced_model,
)
from agrotools.models.metered import (
    KEPT,
)
from agrotools.runner.asking import ask_each, open_models
from agrotools.runner.config import JudgeConfig
from agrotools.runner.execute import interrupts
from agrotools.runner.records import iter_records
from agrotools.runner.rescore import (
    JUDGEMENT_HINT,
    JUDGEMENTS_FILE,
    JUDGES_SPEND_FILE,
    RUBRICS_PREFIX,
)
from agrotools.runner.store import RunLock, read_manifest
from agrotools.scoring.judging.judgements import Judgement
from agrotools.scoring.judging.questions import (
    JudgeQuestion,
    Rubrics,
    has_rubrics,
    judge_questions,
    labelled_questions,
    read_rubrics,
)

_CACHE = "judging"
_TEMPERATURE_OF_SEVERAL_VOTES = 0.7


@dataclass(frozen=True)
class PendingQuestion:
    """A question to a judge, the number of its vote, and the sample whose answer it concerns."""

    question: JudgeQuestion
    vote: int
    sample_id: str = ""
    label: int | None = None


@dataclass
class JudgedRun:
    """Result of asking one judge about a run.

    ``replies``: replies obtained now; ``known``: those stored before; ``tokens``: what the replies cost, in words.
    ``error``: reason why ``missing`` replies could not be obtained, if any.
    """

    run: Path
    judge: str
    replies: int = 0
    known: int = 0
    missing: int = 0
    error: AgrotoolsError | None = None
    tokens: str = ""


def check_judges(options: JudgeConfig, benchmarks: Sequence[str]) -> dict[str, Rubrics]:
    """Check the judges and their options before anything runs, and return the user's rubrics by benchmark.

    Raises:
        UsageError: a judge is given twice or cannot be used, or a file of the options cannot be read.
    """
    if not options.judge:
        return {}
    if len(set(options.judge)) < len(options.judge):
        raise UsageError(
            "the same judge is given twice",
            hint="judge_votes = N in the file of --config lets one judge grade several times",
        )
    if options.judge_calibration:
        labelled_questions(options.judge_calibration)
    for spec in options.judge:
        _open_judge(spec, options)
    path = options.judge_rubrics
    if path is None:
        return {}
    return {name: read_rubrics(path, name) for name in dict.fromkeys(benchmarks)}


def _open_judge(spec: str, options: JudgeConfig) -> PricedModel:
    endpoint = Endpoint(
        spec,
        options.judge_base_url,
        options.judge_api_key_env,
        WireSettings(concurrency=options.judge_concurrency),
        options.judge_price,
        options.judge_budget,
    )
    return priced_model(endpoint, option="judge_price")


def ask_judges(
    runs: Sequence[Path], options: JudgeConfig, progress: Progress = no_progress
) -> Iterator[JudgedRun]:
    """Ask all judges about the answers of every run, reusing stored replies, and yield what each of them gave.

    Raises:
        UsageError: see :func:`check_judges`.
        RunStoreError, KeyboardInterrupt: see :func:`judge_run`.
    """
    if not options.judge:
        return
    benchmarks = {run: read_manifest(run).benchmark for run in runs}
    rubrics = check_judges(options, [*benchmarks.values()])
    labelled: Mapping[JudgeQuestion, int] = {}
    if options.judge_calibration:
        labelled = labelled_questions(options.judge_calibration)
    for run, benchmark in benchmarks.items():
        for spec in options.judge:
            yield judge_run(
                run,
                _open_judge(spec, options),
                votes=options.judge_votes,
                labelled=labelled,
                rubrics=rubrics.get(benchmark),
                progress=progress,
            )


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
    result = JudgedRun(run, helper.name)
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
                        run / JUDGES_SPEND_FILE,
                        file,
                        result,
                        rubrics,
                        progress,
                    )
                )
    finally:
        lock.close()
    if result.replies:
        result.tokens = helper.model.stats.tokens_text
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
    with open_models(helper, ledger, _CACHE) as model_of, interrupts(stopping.set):
        models: dict[int, Model] = {}

        async def one(each: PendingQuestion) -> None:
            model = models.setdefault(each.vote, model_of(each.vote))
            question = each.question
            settings = ModelSettings(
                temperature=temperature, max_output_tokens=question.longest_reply
            )
            messages = [
                Message.of("system", question.system),
                Message.of("user", question.user),
            ]
            completion = await model.generate(messages, (), settings)
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
                )
            )
            result.replies += 1
            progress(f"answers graded by {helper.name}", result.replies, len(pending))

        try:
            result.error = await ask_each(pending, one, helper.model, stopping.is_set)
        finally:
            await helper.model.close()
    result.missing = len(pending) - result.replies
    if stopping.is_set():
        raise KeyboardInterrupt
