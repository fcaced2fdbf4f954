"""``agrotools score`` and ``merge``: score a finished run again, or a file of predictions; join the shards of a run."""

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.options import TextOptions
from agrotools.cli.output import (
    command_line,
    count_text,
    print_json,
    stop_message,
    terminal_progress,
    warn_of_hidden,
)
from agrotools.cli.reading import answered_options, new_readings, print_readings
from agrotools.exit_codes import FAULTS, STOPPED

if TYPE_CHECKING:
    from agrotools.core.readings import Readings
    from agrotools.foreign.prediction_columns import ColumnAnswers
    from agrotools.foreign.prediction_rows import RowCounts
    from agrotools.report.evaluation import RunScores
    from agrotools.runner.config import JudgeConfig
    from agrotools.scoring.classed_errors import ClassedErrors

_LISTED = 3
"""Maximum number of rows or samples that a warning names."""


def score(
    *,
    runs: list[Path] | None = None,
    details: bool = False,
    paper: bool = False,
    judge: list[str] | None = None,
    config: Path | None = None,
    errors: Path | None = None,
    unread: Path | None = None,
    texts: TextOptions,
    allow_invalid: bool = False,
    as_json: bool = False,
    predictions: Path | None = None,
    benchmark: str | None = None,
    model: str = "",
    out: Path | None = None,
    data: Path | None = None,
    option: list[str] | None = None,
    column: str = "",
    only: list[str] | None = None,
    repeated: str = "",
    decimal: str = "",
    replies: Path | None = None,
    yes: bool = False,
    format_: str | None = None,
    judgements: Path | None = None,
) -> None:
    """Score runs again, side by side, and print their table; offline unless --judge is given."""
    from agrotools.cli.results import print_scores, print_validity
    from agrotools.core import UsageError
    from agrotools.foreign.asked_again import write_messages
    from agrotools.report.evaluation import score as score_runs
    from agrotools.runner.config_file import ConfigFile, read_judges
    from agrotools.runner.rescore import check_distinct

    judging = read_judges(ConfigFile.read(config) if config else None, judge or [])
    runs = runs or []
    readings = None
    check_distinct(runs)
    if predictions is not None or benchmark is not None:
        if predictions is None or benchmark is None or runs or format_ or judgements:
            raise UsageError(
                "--benchmark and --predictions go together, without runs and --format",
                hint="agrotools score --benchmark NAME --predictions FILE",
            )
        chosen = _chosen(column, only or [], repeated, decimal)
        readings = new_readings(yes=yes)
        run = make_run(
            predictions,
            benchmark,
            data,
            option or [],
            model,
            out,
            chosen,
            readings,
            as_json,
            yes=yes,
            replies=replies,
        )
        runs = [run]
    elif model or out or option or column or only or repeated or decimal or replies or yes:
        raise UsageError(
            "--model, --out, --option, --column, --only, --repeated, --decimal, --replies and --yes go with "
            "--predictions",
            hint="--benchmark NAME --predictions FILE",
        )
    elif not runs:
        raise UsageError(
            "no run is given", hint="agrotools score RUN, or --benchmark NAME --predictions FILE"
        )
    if format_ is not None:
        _refuse_with_format(judging, details=details, paper=paper, errors=errors)
        score_predictions(runs, format_, data, judgements, texts, as_json=as_json)
        return
    if predictions is None and (data or judgements):
        raise UsageError(
            "--data and --judgements go with --format", hint="--format gta|thinkgeo|agentx"
        )
    if unread is not None:
        number = write_messages(runs, unread)
        messages = count_text(number, "closing message")
        typer.echo(f"{unread}: {messages}, one for each answer that is not read whole", err=as_json)
    compared = texts.comparisons()
    lacks_replies = _ask_judges(runs, judging)
    scores = score_runs(runs, compared, allow_invalid=allow_invalid, with_papers=paper)
    classed = _classed_errors(errors, scores) if errors is not None else ()
    print_scores(
        scores, details=details, as_json=as_json, paper=paper, readings=readings, classed=classed
    )
    validity = scores.validity(allow_invalid=allow_invalid)
    print_validity(validity)
    raise typer.Exit(validity.exit_code or int(lacks_replies))


def _classed_errors(file: Path, scores: "RunScores") -> "Sequence[ClassedErrors]":
    """Return the errors that a person classed, by run, and warn of rows that do not count as they are written."""
    warn_of_hidden([file])
    read = scores.classed_errors(file)
    for note in read.notes:
        typer.echo(f"warning: {file.name}: {note}", err=True)
    return read.of_runs


def _ask_judges(runs: Sequence[Path], judging: "JudgeConfig") -> bool:
    """Ask the judges about the answers of runs, and print what they gave; return True if replies are missing."""
    if not judging.judge:
        return False
    from agrotools.cli.results import print_judged
    from agrotools.runner.judging import ask_judges

    lacks_replies = False
    with stop_message("judgements are kept"):
        for judged in ask_judges(runs, judging, terminal_progress()):
            print_judged(judged)
            lacks_replies = lacks_replies or judged.missing > 0
    return lacks_replies


def _refuse_with_format(
    judging: "JudgeConfig", *, details: bool, paper: bool, errors: Path | None
) -> None:
    """Raise a UsageError if an option of runs is given for a file of predictions in a published format."""
    from agrotools.core import UsageError

    of_runs = {
        "--judge": judging.judge,
        "--details": details,
        "--paper": paper,
        "--errors": errors,
    }
    for name, value in of_runs.items():
        if value:
            raise UsageError(
                f"{name} is for runs, not for --format",
                hint="with --format, --embedder compares texts and --judgements FILE gives the replies of a judge",
            )


def _chosen(column: str, only: Sequence[str], repeated: str, decimal: str) -> "ColumnAnswers":
    """Return the answers to questions on a file of predictions that the options give."""
    from agrotools.core import UsageError
    from agrotools.foreign.prediction_columns import ColumnAnswers

    values: dict[str, str] = {}
    for each in only:
        name, mark, value = each.partition("=")
        if not mark or not name:
            raise UsageError(f"--only {each} names no value", hint="--only COLUMN=VALUE")
        values[name] = value
    return ColumnAnswers(column, values, repeated, decimal)


def make_run(
    file: Path,
    benchmark: str,
    data: Path | None,
    options: Sequence[str],
    model: str,
    out: Path | None,
    chosen: "ColumnAnswers",
    readings: "Readings",
    as_json: bool,
    *,
    yes: bool,
    replies: Path | None = None,
) -> Path:
    """Make a run of a file of predictions, print what was matched, and return its folder."""
    from agrotools.core import UndecidedError
    from agrotools.core.readings import Readings
    from agrotools.foreign.asked_again import NO_REPLIES, read_replies
    from agrotools.foreign.predictions import import_predictions
    from agrotools.loading.benchmarks import Loading, load_as
    from agrotools.runner.config_file import benchmark_options

    settings = benchmark_options(options)
    of_files = new_readings(yes=yes)
    # Answers are scored from records alone, so no picture is drawn here; the page draws those that it shows.
    loading = Loading(
        data, settings, progress=terminal_progress(), files_later=True, readings=of_files
    )
    try:
        loaded = load_as(benchmark, loading)
    except UndecidedError:
        # The proposed readings are good enough to find the questions on the predictions, too; nothing is scored.
        readings.questions += of_files.questions
        loaded = load_as(benchmark, loading._replace(readings=Readings(accept=True)))
    settings |= answered_options(of_files)
    run, counts = import_predictions(
        file.expanduser(),
        loaded,
        benchmark,
        settings,
        model=model,
        out=out,
        chosen=chosen,
        readings=readings,
        replies=read_replies(replies) if replies is not None else NO_REPLIES,
    )
    print_readings(of_files)
    print_readings(readings)
    _print_matches(file, run, counts, as_json=as_json)
    return run


def _print_matches(file: Path, run: Path, counts: "RowCounts", *, as_json: bool) -> None:
    """Print how many rows were matched with samples, and a warning for each kind of row that was not."""
    matched = ", ".join(f"{number} by {column}" for column, number in counts.by.items())
    rows = count_text(counts.rows, "row")
    typer.echo(f"{file.name}: {rows}, {matched}; run folder {run}", err=as_json)
    if counts.hidden:
        typer.echo(f"warning: {file.name}: {counts.hidden}", err=True)
    for kind, entries in counts.problems.items():
        which = "such as" if len(entries) > _LISTED else "namely"
        named = ", ".join(entries[:_LISTED])
        typer.echo(f"warning: {kind}: {len(entries)}, {which} {named}", err=True)


def score_predictions(
    files: Sequence[Path],
    format_: str,
    data: Path | None,
    judgements: Path | None,
    texts: TextOptions,
    *,
    as_json: bool,
) -> None:
    """Score one prediction file as published and corrected, and print both columns."""
    from agrotools.core import UsageError
    from agrotools.report.predictions import as_data, compared_tables
    from agrotools.report.terminal import print_parts
    from agrotools.scoring.embedders import open_embedder
    from agrotools.scoring.predictions import compare_file, prediction_format

    form = prediction_format(format_)
    if len(files) != 1:
        raise UsageError("--format scores one prediction file", hint="give its path alone")
    embedder = texts.embedder or texts.embedder_path
    options = {"embedder": embedder, "data": data, "judgements": judgements}
    for option, value in options.items():
        if value and option in form.refused:
            message, hint = form.refused[option]
            raise UsageError(message, hint=hint)
    chosen = None
    if "embedder" not in form.refused:
        # Without the option, all-MiniLM-L6-v2 is taken, which may not be installed.
        with nullcontext() if embedder else suppress(UsageError):
            chosen = open_embedder(texts.embedder, texts.embedder_path)
    compared = compare_file(format_, files[0], data=data, judgements=judgements, embedder=chosen)
    if as_json:
        print_json(as_data(compared))
    else:
        print_parts(compared_tables(compared, files[0].name))


def merge(runs: list[Path], out: Path, allow_missing: bool = False, as_json: bool = False) -> None:
    """Merge the shards of a run (agrotools eval --shard) into the run folder that it would have without shards.

    An interrupted merge leaves nothing, or a run that agrotools score completes. The shards are not changed.
    """
    from agrotools.cli.results import print_scores, print_validity
    from agrotools.report.evaluation import score as score_runs
    from agrotools.runner.shards import merge_runs

    with stop_message("nothing is written", "to start anew"):
        merged = merge_runs(runs, out, allow_missing=allow_missing, progress=terminal_progress())
    for note in (*merged.gaps, *merged.notes):
        typer.echo(f"warning: {note}", err=True)
    if merged.gaps:
        typer.echo(
            f"hint: the agrotools eval command of a shard with --out {out}, without --shard, runs the rest",
            err=True,
        )
    typer.echo(
        f"{out}: {count_text(merged.records, 'record')} of {count_text(merged.shards, 'shard')}",
        err=as_json,
    )
    try:
        scores = score_runs([out])
        print_scores(scores, details=False, as_json=as_json)
        validity = scores.validity()
        print_validity(validity)
        code = validity.exit_code
    except KeyboardInterrupt:
        scoring = command_line("score", out)
        typer.echo(
            f"\nstopped: all shards are merged, but not scored; {scoring} scores the run", err=True
        )
        code = STOPPED
    raise typer.Exit(code or (FAULTS if merged.gaps else 0))
