"""Scores and comparisons of runs with all that they are shown with: yardsticks, tables of papers, warnings, the page.

Run folders come in; values go out, which the command prints and :mod:`agrotools.api` returns. Nothing is printed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from agrotools.core import Mode, Record, Score
from agrotools.core.files import sha256_of_json
from agrotools.core.progress import Progress, no_progress
from agrotools.core.texts import command_line
from agrotools.formats.benchmark import Benchmark
from agrotools.report.comparison import with_reasons
from agrotools.report.html.page import ReportResult, build_report
from agrotools.report.html.runs import incomparable, stored_yardsticks
from agrotools.report.layout import Part, run_names
from agrotools.report.screen import headline
from agrotools.report.settings import PaperTables, PaperTally
from agrotools.report.tables import tables
from agrotools.runner.repeated_calls import REPEATED_CALLS_FILE
from agrotools.runner.rescore import Rescored, compare_runs, score_runs, warnings_of_looks
from agrotools.runner.store import read_manifest
from agrotools.runner.yardsticks import Yardsticks, headline_mode, with_constant, yardsticks_of
from agrotools.scoring.classed_errors import ClassedRun, ReadErrors, read_classed_errors
from agrotools.scoring.contracts import NO_COMPARISONS, TextComparisons
from agrotools.scoring.summary import RunComparison, Summary
from agrotools.scoring.validity import Validity, are_silent, check_validity


@dataclass(frozen=True)
class RunScores:
    """Scores of runs side by side, with all that they are shown with.

    ``papers``: filled tables of the benchmarks' papers.
    ``yardsticks``: floor, planner and ceiling in the mode that the screen at the end of ``eval`` headlines.
    ``page_yardsticks``: the same in the mode that the page headlines.
    """

    runs: Sequence[Path]
    scored: Sequence[Rescored]
    papers: Sequence[PaperTables] = ()
    yardsticks: Yardsticks = field(default_factory=Yardsticks)
    page_yardsticks: Yardsticks = field(default_factory=Yardsticks)

    @property
    def summaries(self) -> list[Summary]:
        return [each.summary for each in self.scored]

    @property
    def are_silent(self) -> bool:
        """True if no sample of any run got a reply: there is nothing to show."""
        return are_silent(self.summaries)

    @property
    def differences(self) -> list[str]:
        """Differences of the runs that make their scores incomparable; empty if there are none."""
        return incomparable([read_manifest(run) for run in self.runs])

    @property
    def first_model(self) -> int:
        """Number of the first run that is not of a baseline; 0 if all are."""
        return self.first_model_in(None)

    def first_model_in(self, mode: Mode | None) -> int:
        """Return the number of the first run in ``mode`` that is not of a baseline, else of the first one in it.

        Args:
            mode: a mode; None for any.
        """
        places = [
            at for at, summary in enumerate(self.summaries) if mode is None or mode in summary.modes
        ]
        models = [at for at in places if not self.summaries[at].model.startswith("baseline:")]
        return next(iter([*models, *places]), 0)

    def tables(self, *, details: bool = False) -> list[Part]:
        """Return the tables of the runs; ``details``: also scores by task and answer type, and statistics."""
        return tables(self.summaries, details=details)

    def classed_errors(self, file: Path) -> ReadErrors:
        """Return the errors of the runs that a person classed in a table.

        Raises:
            AgrotoolsError: the table cannot be read, or is not about these runs.
        """
        models = Counter(summary.model for summary in self.summaries)
        classed: list[ClassedRun] = []
        for run, name, each in zip(self.runs, run_names(self.summaries), self.scored, strict=True):
            names = {name, run.name, str(run)}
            # The model alone does not name one of its runs.
            if models[each.summary.model] == 1:
                names.add(each.summary.model)
            assert each.tally is not None  # the run was scored here
            classed.append(ClassedRun(name, frozenset(names), each.tally))
        return read_classed_errors(file, classed)

    def validity(self, *, allow_invalid: bool = False) -> Validity:
        """Return whether the scores may stand, with the exit code of the command that shows them."""
        names = [str(run) for run in self.runs]
        return check_validity(self.summaries, names, allow_invalid=allow_invalid)


def score(
    runs: Sequence[Path],
    comparisons: TextComparisons = NO_COMPARISONS,
    *,
    allow_invalid: bool = False,
    with_papers: bool = False,
    progress: Progress = no_progress,
) -> RunScores:
    """Score runs and write each ``scores.json``.

    Args:
        runs: run folders.
        comparisons: additional text comparisons.
        allow_invalid: report scores even if many samples are invalid or were lost.
        with_papers: also fill the tables of the papers of the benchmarks.
        progress: callback for the records scored.
    """
    papers = PaperTally(runs if with_papers else [])
    n_scored = 0
    n_records = sum(sum(read_manifest(run).planned.values()) for run in runs)

    def on_scored(run: Path, record: Record, rows: list[Score]) -> None:
        nonlocal n_scored
        papers.add(run, record, rows)
        n_scored += 1
        progress("scores", n_scored, max(n_records, n_scored))

    scored = score_runs(
        runs, allow_invalid=allow_invalid, comparisons=comparisons, on_scored=on_scored
    )
    scores = RunScores(runs, scored)
    if scores.are_silent:
        return scores
    summaries = dict(zip(runs, scores.summaries, strict=True))
    return replace(scores, papers=papers.tables(summaries))


def with_yardsticks(
    scores: RunScores,
    benchmark: Benchmark | None = None,
    data_root: Path | None = None,
    *,
    modes: Sequence[Mode] = (),
    progress: Progress = no_progress,
) -> RunScores:
    """Return scores with floor, planner and ceiling for the screen and for the page.

    The screen headlines one of ``modes``. The page is of all modes that the runs have, also from earlier commands, so
    that it may headline another one.

    Args:
        scores: scores of runs; they are returned unchanged if no sample got a reply.
        benchmark: benchmark of the runs; None to load it as their manifests say.
        data_root: folder of its files.
        modes: modes that the user asked for; empty for all.
        progress: callback for the baselines run.
    """
    if scores.are_silent:
        return scores
    on_screen = headline(scores.summaries, modes)
    on_page = headline(scores.summaries)
    screen_mode = on_screen[0].mode if on_screen else None
    page_mode = on_page[0].mode if on_page else None
    yardsticks = _yardsticks(scores, benchmark, data_root, screen_mode, progress)
    page_yardsticks = yardsticks
    if page_mode != screen_mode:
        page_yardsticks = _yardsticks(scores, benchmark, data_root, page_mode, progress)
    return replace(scores, yardsticks=yardsticks, page_yardsticks=page_yardsticks)


def _yardsticks(
    scores: RunScores,
    benchmark: Benchmark | None,
    data_root: Path | None,
    mode: Mode | None,
    progress: Progress,
) -> Yardsticks:
    """Return floor, planner and ceiling of the first model in ``mode``; None: its headline mode."""
    at = scores.first_model_in(mode)
    run, scored = scores.runs[at], scores.scored[at]
    mode = mode or headline_mode((*scored.summary.modes,))
    if benchmark is None:
        yardsticks = stored_yardsticks(run, mode, data_root, progress)
    else:
        yardsticks = yardsticks_of(run, benchmark, data_root, progress, mode)
    return with_constant(yardsticks, scored, mode)


def write_page(
    scores: RunScores,
    comparisons: TextComparisons = NO_COMPARISONS,
    *,
    allow_invalid: bool = False,
    progress: Progress = no_progress,
) -> ReportResult:
    """Write the page of all runs to the folder of the first.

    Raises:
        RunStoreError: the page cannot be written.
    """
    return build_report(
        scores.runs,
        _page_path(scores.runs),
        summaries=scores.summaries,
        tallies=[each.tally for each in scores.scored if each.tally is not None],
        papers=scores.papers,
        yardsticks=scores.page_yardsticks,
        allow_invalid=allow_invalid,
        comparisons=comparisons,
        progress=progress,
    )


def _page_path(runs: Sequence[Path]) -> Path:
    """Return the place of a page: in the folder of the first run, under another name if the page is of several runs.

    So a later evaluation of the first model alone does not replace the page of all of them.
    """
    folder = runs[0]
    if len(runs) == 1:
        return folder / "report.html"
    which = sha256_of_json([run.name for run in runs])[:6]
    return folder / f"report-{len(runs)}-runs-{which}.html"


class ComparedRuns(NamedTuple):
    """Comparisons of all pairs of runs; ``warnings``: what speaks against them, and what else differs."""

    pairs: Sequence[RunComparison]
    warnings: Sequence[str] = ()


def _warnings_of_causes(runs: Sequence[Path]) -> list[str]:
    """Return what it means for the causes if ``agrotools attribute`` made further calls for some of the runs alone."""
    attributed = [run for run in runs if (run / REPEATED_CALLS_FILE).is_file()]
    others = [run for run in runs if run not in attributed]
    if not attributed or not others:
        return []
    commands = ", ".join(command_line("attribute", run) for run in others)
    return [
        f"causes are not comparable yet: agrotools attribute made further calls for {attributed[0].name}, but not for "
        f"{others[0].name}. Run {commands}"
    ]


def compare_with_reasons(runs: Sequence[Path], flips: int = 2) -> ComparedRuns:
    """Compare every pair of runs as :func:`agrotools.runner.rescore.compare_runs` does, sample by sample.

    ``flips``: number of samples that went up, and of those that went down, with the reason for the lower score.
    """
    compared = compare_runs(runs)
    pairs = [
        with_reasons(each, pair, flips)
        for each, pair in zip(compared, combinations(runs, 2), strict=True)
    ]
    warnings = [*warnings_of_looks(runs), *_warnings_of_causes(runs)]
    for difference in incomparable([read_manifest(run) for run in runs]):
        warnings.append(f"the runs differ in more than the model: {difference}")
    return ComparedRuns(pairs, warnings)
