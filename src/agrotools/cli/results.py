"""Scoring, judging and display of runs, for ``eval`` and ``score``."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from agrotools.cli.output import (
    allow_closed_pipe,
    command_line,
    count_text,
    print_json,
    stop_message,
    terminal_progress,
)

if TYPE_CHECKING:
    from agrotools.core import BudgetReached, Mode, Record, Score
    from agrotools.core.readings import Readings
    from agrotools.formats.benchmark import Benchmark
    from agrotools.models.endpoint import PricedModel
    from agrotools.report.settings import PaperTables, PaperTally
    from agrotools.runner.config import EvalConfig, JudgeConfig
    from agrotools.runner.evaluate import Evaluation
    from agrotools.runner.judging import JudgedRun
    from agrotools.runner.rescore import Rescored
    from agrotools.runner.yardsticks import Yardsticks
    from agrotools.scoring.contracts import TextComparisons
    from agrotools.scoring.judging.questions import Rubrics
    from agrotools.scoring.summary import ModeSummary, Summary


def check_judges(options: "JudgeConfig", benchmarks: Sequence[str]) -> "dict[str, Rubrics]":
    """Check the options before anything runs, and return the user's rubrics by benchmark."""
    from agrotools.core import UsageError

    judges = options.judge
    if not judges:
        return {}
    if len(set(judges)) < len(judges):
        raise UsageError(
            "the same judge is given twice",
            hint="judge_votes = N in the file of --config lets one judge grade several times",
        )
    from agrotools.scoring.judging.questions import labelled_questions, read_rubrics

    if options.judge_calibration:
        labelled_questions(options.judge_calibration)
    for spec in judges:
        _judge(spec, options)
    path = options.judge_rubrics
    return {name: read_rubrics(path, name) for name in dict.fromkeys(benchmarks)} if path else {}


def _judge(spec: str, options: "JudgeConfig") -> "PricedModel":
    from agrotools.models import Endpoint, WireSettings, priced_model

    wire = WireSettings(concurrency=options.judge_concurrency)
    where = (spec, options.judge_base_url, options.judge_api_key_env)
    endpoint = Endpoint(*where, wire, options.judge_price, options.judge_budget)
    return priced_model(endpoint, option="judge_price")


def ask_judges(runs: Sequence[Path], options: "JudgeConfig") -> bool:
    """Ask the judges about the answers of every run, reusing stored replies; return True if replies are missing."""
    from agrotools.runner.store import read_manifest

    judges = options.judge
    benchmarks = {run: read_manifest(run).benchmark for run in runs} if judges else {}
    rubrics = check_judges(options, [*benchmarks.values()])
    if not judges:
        return False
    from agrotools.runner.judging import judge_run
    from agrotools.scoring.judging.questions import labelled_questions

    labelled = labelled_questions(options.judge_calibration) if options.judge_calibration else {}
    missing = False
    for run in runs:
        for spec in judges:
            helper = _judge(spec, options)
            with stop_message("judgements are kept"):
                judged = judge_run(
                    run,
                    helper,
                    votes=options.judge_votes,
                    labelled=labelled,
                    rubrics=rubrics.get(benchmarks[run]),
                    progress=terminal_progress(),
                )
            missing |= _report_asking(run, judged, helper)
    return missing


def _report_asking(run: Path, judged: "JudgedRun", helper: "PricedModel") -> bool:
    """Print the outcome on standard error; return True if replies are missing."""
    if not (judged.replies or judged.known or judged.missing):
        typer.echo(f"{run}: no answers that a judge could grade", err=True)
        return False
    tokens = f"; {helper.model.stats.tokens_text}" if judged.replies else ""
    replies, missing = (count_text(n, "reply", "replies") for n in (judged.replies, judged.missing))
    lines = [f"{run}: {judged.judge} gave {replies}, {judged.known} known before{tokens}"]
    if judged.missing:
        lines.append(f"warning: {missing} missing; run the same command again to resume")
    if error := judged.error:
        lines.append(
            f"warning: {error.message}" + (f"\nhint: {error.advice}" if error.advice else "")
        )
    typer.echo("\n".join(lines), err=True)
    return judged.missing > 0


class Evaluated(NamedTuple):
    """First configuration of ``agrotools eval``, its benchmark, its runs, and the budgets that stopped runs early.

    ``typed``: arguments of the command as the user typed them.
    """

    config: "EvalConfig"
    benchmark: "Benchmark"
    runs: "Sequence[Evaluation]" = ()
    typed: Sequence[str] = ()

    @property
    def asked_modes(self) -> "Sequence[Mode]":
        """Modes that the user asked for; empty for all."""
        return () if self.config.run.mode == "all" else self.config.run.modes

    @property
    def stops(self) -> "list[BudgetReached]":
        return [each.stopped for each in self.runs if each.stopped]


@dataclass(frozen=True)
class RunScores:
    """Scores of runs side by side, with all that they are shown with.

    ``yardsticks``: floor, planner and ceiling in the mode that the screen at the end of ``eval`` headlines.
    ``page_yardsticks``: the same in the mode that the page headlines.
    """

    runs: Sequence[Path]
    scored: "Sequence[Rescored]"
    papers: "Sequence[PaperTables]" = ()
    yardsticks: "Yardsticks | None" = None
    page_yardsticks: "Yardsticks | None" = None

    @property
    def summaries(self) -> "list[Summary]":
        return [each.summary for each in self.scored]

    @property
    def parts(self) -> "list[ModeSummary]":
        """Summaries of all modes of all runs."""
        return [part for summary in self.summaries for part in summary.modes.values()]

    @property
    def are_silent(self) -> bool:
        """True if no sample of any run got a reply: there is nothing to show."""
        return bool(self.parts) and all(part.invalid.n == part.n_records for part in self.parts)

    @property
    def first_model(self) -> int:
        """Number of the first run that is not of a baseline; 0 if all are."""
        return self.first_model_in(None)

    def first_model_in(self, mode: "Mode | None") -> int:
        """Return the number of the first run in ``mode`` that is not of a baseline, else of the first one in it.

        Args:
            mode: a mode; None for any.
        """
        places = [
            at for at, summary in enumerate(self.summaries) if mode is None or mode in summary.modes
        ]
        models = [at for at in places if not self.summaries[at].model.startswith("baseline:")]
        return next(iter([*models, *places]), 0)


def score(
    runs: Sequence[Path],
    comparisons: "TextComparisons",
    *,
    allow_invalid: bool,
    paper: bool = False,
    evaluated: Evaluated | None = None,
) -> RunScores:
    """Score runs and write each ``scores.json``.

    Args:
        runs: run folders.
        comparisons: additional text comparisons.
        allow_invalid: report scores even if many samples are invalid or were lost.
        paper: also fill the tables of the benchmark's paper.
        evaluated: set by ``eval``, which also shows floor and ceiling.
    """
    from agrotools.report.settings import PaperTally

    beside_papers = PaperTally(runs if paper or evaluated else [])
    scored = _score_with_progress(
        runs,
        comparisons,
        beside_papers,
        allow_invalid=allow_invalid,
        with_progress=evaluated is not None,
    )
    scores = RunScores(runs, scored)
    if scores.are_silent:
        return scores
    summaries = dict(zip(runs, scores.summaries, strict=True))
    scores = replace(scores, papers=beside_papers.tables(summaries))
    if evaluated:
        scores = _with_yardsticks(scores, evaluated)
    return scores


def exit_code(scores: RunScores, *, allow_invalid: bool) -> int:
    """Return the exit code of scores, and print the error behind it.

    0; 1 if samples are invalid or missing; 3 if no sample got a reply, or if more than half of the samples of a mode
    ended without an answer that can be scored, unless ``allow_invalid``.
    """
    if scores.are_silent:
        reason = next(iter(scores.parts[0].invalid.reasons))
        typer.echo(f"error: no sample got a reply: {reason}", err=True)
        return 3
    if not allow_invalid and _lost_most(scores.runs, scores.summaries):
        return 3
    has_invalid = any(part.invalid.n or not part.headline for part in scores.parts)
    has_missing = any(each.missing for each in scores.summaries)
    return int(has_invalid or has_missing)


def present(
    scores: RunScores,
    *,
    details: bool,
    as_json: bool,
    paper: bool = False,
    readings: "Readings | None" = None,
) -> None:
    """Print the tables of runs, or their scores as JSON, after ``score`` and ``merge``.

    Args:
        details: also print scores by task and answer type, and statistics.
        as_json: print the scores as JSON.
        paper: print the tables of the benchmark's paper, with its published figures.
        readings: how a file of predictions was read, which the JSON says, too.
    """
    from agrotools.report.html import incomparable
    from agrotools.runner.store import read_manifest

    if as_json:
        how = {"readings": readings.as_data()} if readings else {}
        _print_json(scores, [how] * len(scores.summaries))
    elif not scores.are_silent:
        with allow_closed_pipe():
            _print_tables(scores.runs, scores.scored, details=details)
    for difference in incomparable([read_manifest(run) for run in scores.runs]):
        typer.echo(f"warning: these runs are not comparable: {difference}", err=True)
    if not scores.are_silent:
        _print_papers(scores.runs, scores.papers, paper=paper, as_json=as_json)


def present_evaluation(
    scores: RunScores,
    evaluated: Evaluated,
    comparisons: "TextComparisons",
    *,
    details: bool,
    as_json: bool,
    allow_invalid: bool,
) -> bool:
    """Write the page of all runs to the first run's folder, and print the screen at the end of ``eval``.

    The tables precede the screen if ``details``; ``as_json`` prints the scores alone.

    Returns:
        True if the page was written, or if there is nothing to show.
    """
    if as_json:
        _print_json(scores, [{"reused_answers": each.n_reused} for each in evaluated.runs])
    if scores.are_silent:
        return True
    if details and not as_json:
        with allow_closed_pipe():
            _print_tables(scores.runs, scores.scored, details=details)
    page = _write_page(scores, comparisons, allow_invalid=allow_invalid)
    if as_json:
        typer.echo(f"the report, with samples, pictures and steps: {page}", err=True)
        for reason in evaluated.stops:
            typer.echo(f"stopped: {reason.message}\nhint: {reason.hint}", err=True)
    else:
        _print_screen(scores, evaluated, page)
    return page is not None


def _print_json(scores: RunScores, how: "Sequence[dict[str, Any]]") -> None:
    """Print the scores of each run, with ``how`` each run came about."""
    data = [
        summary.model_dump(mode="json") | more
        for summary, more in zip(scores.summaries, how, strict=True)
    ]
    with allow_closed_pipe():
        print_json(data)


def _score_with_progress(
    runs: Sequence[Path],
    comparisons: "TextComparisons",
    beside_papers: "PaperTally",
    *,
    allow_invalid: bool,
    with_progress: bool,
) -> "list[Rescored]":
    from agrotools.runner.rescore import score_runs
    from agrotools.runner.store import read_manifest

    progress = terminal_progress()
    n_scored = 0
    n_records = (
        sum(sum(read_manifest(run).planned.values()) for run in runs) if with_progress else 0
    )

    def on_scored(run: Path, record: "Record", rows: "list[Score]") -> None:
        nonlocal n_scored
        beside_papers.add(run, record, rows)
        n_scored += 1
        if with_progress:
            progress("scores", n_scored, max(n_records, n_scored))

    return score_runs(
        runs, allow_invalid=allow_invalid, comparisons=comparisons, on_scored=on_scored
    )


def _with_yardsticks(scores: RunScores, evaluated: Evaluated) -> RunScores:
    """Return scores with floor, planner and ceiling for the screen and for the page.

    The screen headlines a mode that the user asked for. The page is of all modes that the runs have, also from earlier
    commands, so that it may headline another one.
    """
    from agrotools.report.screen import headline

    on_screen = headline(scores.summaries, evaluated.asked_modes)
    on_page = headline(scores.summaries)
    screen_mode = on_screen[0].mode if on_screen else None
    page_mode = on_page[0].mode if on_page else None
    yardsticks = _yardsticks(scores, evaluated, screen_mode)
    page_yardsticks = yardsticks
    if page_mode != screen_mode:
        page_yardsticks = _yardsticks(scores, evaluated, page_mode)
    return replace(scores, yardsticks=yardsticks, page_yardsticks=page_yardsticks)


def _yardsticks(scores: RunScores, evaluated: Evaluated, mode: "Mode | None") -> "Yardsticks":
    """Return floor, planner and ceiling of the first model in ``mode``."""
    from agrotools.runner.yardsticks import headline_mode, with_constant, yardsticks_of

    at = scores.first_model_in(mode)
    run, scored = scores.runs[at], scores.scored[at]
    data_root = evaluated.config.benchmark.data_root
    yardsticks = yardsticks_of(run, evaluated.benchmark, data_root, terminal_progress(), mode)
    return with_constant(yardsticks, scored, mode or headline_mode((*scored.summary.modes,)))


def _write_page(
    scores: RunScores, comparisons: "TextComparisons", *, allow_invalid: bool
) -> Path | None:
    """Write the page of all runs to the folder of the first; None, with an error, if it cannot be written."""
    from agrotools.core import RunStoreError
    from agrotools.report.html import build_report

    yardsticks = scores.page_yardsticks.scored if scores.page_yardsticks else {}
    try:
        return build_report(
            scores.runs,
            _page_path(scores.runs),
            summaries=scores.summaries,
            tallies=[each.tally for each in scores.scored if each.tally is not None],
            papers=scores.papers,
            yardsticks={name: each.summary for name, each in yardsticks.items()},
            allow_invalid=allow_invalid,
            comparisons=comparisons,
            progress=terminal_progress(),
        ).path
    except RunStoreError as error:
        typer.echo(f"no report: {error}", err=True)
        return None


def _page_path(runs: Sequence[Path]) -> Path:
    """Return the place of a page: in the folder of the first run, under another name if the page is of several runs.

    So a later evaluation of the first model alone does not replace the page of all of them.
    """
    from agrotools.core.files import sha256_of_json

    folder = runs[0]
    if len(runs) == 1:
        return folder / "report.html"
    which = sha256_of_json([run.name for run in runs])[:6]
    return folder / f"report-{len(runs)}-runs-{which}.html"


def _print_screen(scores: RunScores, evaluated: Evaluated, page: Path | None) -> None:
    from agrotools.cli.planning import next_commands
    from agrotools.loading.benchmarks import INCOMPLETE
    from agrotools.report.screen import Screen, print_screen
    from agrotools.runner.build import benchmark_notes
    from agrotools.runner.yardsticks import Yardsticks

    runs, at = scores.runs, scores.first_model
    yardsticks = scores.yardsticks or Yardsticks()
    stops = [f"stopped by --budget: {each.message}" for each in evaluated.stops]
    stops += _beyond_limit(scores, evaluated)
    stops += [note for note in benchmark_notes(evaluated.benchmark) if note.startswith(INCOMPLETE)]
    commands = next_commands(scores.summaries[at], runs, evaluated)
    # The screen holds this list itself: its verdict, which names one of the commands, is calculated once.
    shown = Screen(scores.scored, yardsticks, stops, commands, page, evaluated.asked_modes)
    if verdict := shown.verdict:
        comparing = command_line("compare", runs[verdict.first], runs[verdict.second])
        commands.insert(len(commands) if evaluated.stops else 0, comparing)
    if worst := scores.scored[at].telling_sample(evaluated.asked_modes):
        other_modes = scores.summaries[at].modes.keys() - {*evaluated.asked_modes}
        has_unasked = bool(evaluated.asked_modes and other_modes)
        in_mode = ["--mode", worst.mode] if has_unasked else []
        commands.append(command_line("explain", runs[at], worst.sample, *in_mode))
    if scores.papers:
        commands.append(command_line("score", runs[at], "--paper"))
    with allow_closed_pipe():
        print_screen(shown)


def _beyond_limit(scores: RunScores, evaluated: Evaluated) -> list[str]:
    """Return that a run holds more answers than ``--limit`` asks for, from an earlier command; none if it does not."""
    limit = evaluated.config.benchmark.limit
    if limit is None:
        return []
    parts = [part for each in scores.summaries for part in each.modes.values()]
    most = max((part.n_samples for part in parts), default=0)
    if most <= limit:
        return []
    return [
        f"The run holds {most} answers from an earlier command; the score is of all, not of {limit} (--limit)."
    ]


def _print_tables(runs: Sequence[Path], rescored: "Sequence[Rescored]", *, details: bool) -> None:
    from agrotools.report.tables import tables
    from agrotools.report.terminal import print_parts

    print_parts(tables([each.summary for each in rescored], details=details))
    if not details:
        typer.echo(f"by task and answer type: {command_line('score', *runs, '--details')}")
    if len(runs) > 1:
        typer.echo(f"differences by task, by cause and by sample: {command_line('compare', *runs)}")
    if worst := rescored[0].telling_sample():
        command = command_line("explain", runs[0], worst.sample)
        typer.echo(f"one sample, from question to score: {command}")


def _print_papers(
    runs: Sequence[Path], papers: "Sequence[PaperTables]", *, paper: bool, as_json: bool
) -> None:
    """Print the tables of the papers, or the command that prints them."""
    from agrotools.plugin.installed import plugins
    from agrotools.report.terminal import print_parts
    from agrotools.runner.store import read_manifest

    known = [plugin.name for plugin in plugins() if plugin.paper.figures is not None]
    if paper and not papers:
        names = ", ".join(known)
        typer.echo(
            f"--paper: none of these runs is of a benchmark whose paper's tables are known ({names})",
            err=True,
        )
    elif paper and not as_json:
        with allow_closed_pipe():
            print_parts(part for _, tables in papers for part in tables)
    elif not as_json and any(read_manifest(run).benchmark in known for run in runs):
        with allow_closed_pipe():
            typer.echo(
                f"compare with the figures of the paper: {command_line('score', *runs, '--paper')}"
            )


def _lost_most(runs: Sequence[Path], summaries: "Sequence[Summary]") -> bool:
    """Return True, with an error, if more than half of the samples of a mode ended without an answer to score."""
    from agrotools.scoring.event_counts import mostly_lost

    modes = [
        (run, *each)
        for run, summary in zip(runs, summaries, strict=True)
        for each in summary.modes.items()
    ]
    names = ", ".join(f"{run} ({mode})" for run, mode, part in modes if mostly_lost(part))
    if names:
        typer.echo(
            f"error: more than half of the samples ended without an answer that could be scored: {names}\n"
            'hint: the lines above the tables ("warnings" in JSON) say why; --allow-invalid lets them stand',
            err=True,
        )
    return bool(names)
