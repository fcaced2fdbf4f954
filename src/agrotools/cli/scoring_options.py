"""Options that ``eval`` and ``score`` share: judges of open answers, and text metrics that need a model or a rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agrotools.cli.output import STOPPED

if TYPE_CHECKING:
    from agrotools.models.endpoint import PricedModel
    from agrotools.plugin import TextComparisons
    from agrotools.runner.judging import JudgedRun
    from agrotools.scoring.judging import Rubrics

SIMILARITY = "similarity"

Extra = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        help="Additional text metric: similarity (all-MiniLM-L6-v2, extra embed) or rouge-l-lexeval (extra zh).",
    ),
]
EmbedderName = Annotated[
    str | None,
    typer.Option("--embedder", help="Embedding model for --with similarity, e.g. all-mpnet-base-v2."),
]
EmbedderPath = Annotated[
    Path | None, typer.Option(help="Folder of the embedding model's files; nothing is downloaded.")
]
Unadjusted = Annotated[
    bool,
    typer.Option(
        "--unadjusted", help="Mark significant differences without adjusting p-values for the number of comparisons."
    ),
]


def comparing(extra: list[str] | None, embedder: str | None, embedder_path: Path | None) -> "TextComparisons":
    """Settings of the three options.

    Raises:
        UsageError: no such metric, or a package that it needs is not installed.
    """
    from agrotools.core import UsageError
    from agrotools.plugin import TextComparisons, plugins
    from agrotools.scoring.embedders import chosen_embedder

    extras = frozenset(extra or ())
    if extras - {SIMILARITY}:
        known = [SIMILARITY, *(name for plugin in plugins() for name in plugin.scoring.comparisons)]
        if unknown := sorted(extras.difference(known)):
            hint = f"known: {', '.join(dict.fromkeys(known))}"
            raise UsageError(f"--with {unknown[0]}: no such metric", hint=hint)
    needs_embedder = embedder or embedder_path or SIMILARITY in extras
    return TextComparisons(extras - {SIMILARITY}, chosen_embedder(embedder, embedder_path) if needs_embedder else None)


Judges = Annotated[
    list[str] | None,
    typer.Option("--judge", help="Model that grades open answers (repeatable); its replies are stored with the run."),
]
JudgeBaseUrl = Annotated[str | None, typer.Option(help="OpenAI-compatible endpoint of the judges.")]
JudgeApiKeyEnv = Annotated[
    str | None, typer.Option(help="Environment variable that holds their key.", show_default="OPENAI_API_KEY")
]
JudgeVotes = Annotated[int, typer.Option(min=1, max=25, help="Number of grades per judge and answer.")]
JudgeCalibration = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|shipped", help="Also let the judges grade answers with known grades, and report their agreement."
    ),
]
JudgeRubrics = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="TOML file with rubrics for the judges, instead of the built-in ones."),
]
JudgeBudget = Annotated[float | None, typer.Option(help="Maximum total cost of the judges of a run in USD.")]
JudgePrice = Annotated[str | None, typer.Option(help="Price of a judge, IN/OUT in USD per million tokens.")]
JudgeConcurrency = Annotated[
    int | None, typer.Option(min=1, help="Concurrent requests to a judge.", show_default="adapts to the endpoint")
]


@dataclass(frozen=True)
class JudgeOptions:
    """Command-line options of judges."""

    judges: tuple[str, ...] = ()
    base_url: str | None = None
    api_key_env: str | None = None
    votes: int = 1
    calibration: str | None = None
    rubrics: Path | None = None
    budget: float | None = None
    price: str | None = None
    concurrency: int | None = None


def check_judges(options: JudgeOptions, benchmarks: Sequence[str]) -> "dict[str, Rubrics]":
    """Check the options before anything is run or asked; returns the user's rubrics by benchmark.

    Raises:
        UsageError: a judge that cannot be set up, rubrics that cannot be read, or options for a judge that nobody asked
            for.
    """
    from agrotools.core import UsageError

    if not options.judges:
        if options != JudgeOptions():
            raise UsageError("options for a judge are given, and no judge", hint="add --judge MODEL")
        return {}
    if len(set(options.judges)) < len(options.judges):
        raise UsageError("the same judge is given twice", hint="--judge-votes N lets one judge grade several times")
    from agrotools.scoring.judging import labelled_questions, read_rubrics

    if options.calibration:
        labelled_questions(options.calibration)
    for spec in options.judges:
        _judge(spec, options)
    path = options.rubrics
    return {name: read_rubrics(path, name) for name in dict.fromkeys(benchmarks)} if path else {}


def _judge(spec: str, options: JudgeOptions) -> "PricedModel":
    from agrotools.models import Endpoint, WireSettings
    from agrotools.models.endpoint import priced_model

    wire = WireSettings(concurrency=options.concurrency)
    return priced_model(Endpoint(spec, options.base_url, options.api_key_env, wire, options.price), options.budget)


def ask_judges(runs: Sequence[Path], options: JudgeOptions) -> bool:
    """Ask the judges about every run; what they replied before is not asked again.

    Returns whether replies are missing.

    Raises:
        UsageError: as of :func:`check_judges`.
        RunStoreError: a run whose files cannot be read or written.
        typer.Exit: code 130, somebody asked to stop.
    """
    from agrotools.runner.store import read_manifest

    benchmarks = {run: read_manifest(run).benchmark for run in runs} if options.judges else {}
    rubrics = check_judges(options, [*benchmarks.values()])
    if not options.judges:
        return False
    import sys

    from agrotools.runner.judging import judge_run
    from agrotools.runner.progress import stage_progress
    from agrotools.scoring.judging import labelled_questions

    labelled = labelled_questions(options.calibration) if options.calibration else {}
    missing = False
    for spec in options.judges:
        for run in runs:
            helper = _judge(spec, options)
            try:
                progress = stage_progress(sys.stderr)
                judged = judge_run(
                    run,
                    helper,
                    votes=options.votes,
                    labelled=labelled,
                    rubrics=rubrics.get(benchmarks[run]),
                    progress=progress,
                )
            except KeyboardInterrupt:
                typer.echo("\nstopped: judgements are kept; run the same command again to resume", err=True)
                raise typer.Exit(STOPPED) from None
            missing |= _report_asking(run, judged, helper)
    return missing


def _report_asking(run: Path, judged: "JudgedRun", helper: "PricedModel") -> bool:
    """Print the outcome on standard error; returns True if replies are missing."""
    if not (judged.replies or judged.known or judged.missing):
        typer.echo(f"{run}: no answers that a judge could grade", err=True)
        return False
    stats = helper.model.stats
    spent = f", {stats.spent_usd:.4f} USD in all" if stats.spent_usd is not None else ""
    tokens = f"; {stats.input_tokens:,} tokens in, {stats.output_tokens:,} out{spent}" if judged.replies else ""
    typer.echo(
        f"{run}: {judged.judge} replied {judged.replies} times, {judged.known} replies were there{tokens}", err=True
    )
    if judged.missing:
        typer.echo(f"warning: {judged.missing} replies are missing; the same command asks for them again", err=True)
    if judged.without_images:
        typer.echo(
            f"warning: it was not shown the images of {judged.without_images} questions, only their names", err=True
        )
    if judged.error is not None:
        typer.echo(
            f"warning: {judged.error.message}" + (f"\nhint: {judged.error.hint}" if judged.error.hint else ""), err=True
        )
    return judged.missing > 0
