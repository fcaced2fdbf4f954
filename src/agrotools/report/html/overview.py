"""Data of the page's overview: runs with their scores and tasks, baselines beside them, and differences of pairs.

Opened runs, yardsticks and their differences come in; the head of the page goes out, as JSON data.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from agrotools.calling.result import certificate
from agrotools.core import Mode
from agrotools.core.installed import scope_of
from agrotools.core.texts import amount_text, benchmark_title, prompt_tokens_text
from agrotools.formats.tool_check import PHOTO_COLUMNS
from agrotools.models.metered import read_spend
from agrotools.report.comparison import difference_rows, more_samples
from agrotools.report.html.data import Data
from agrotools.report.html.runs import PageRun, incomparable, run_facts
from agrotools.report.layout import PRIVILEGED_NOTE, Paragraph, Part, harmless, run_names
from agrotools.report.parts import higher_parts
from agrotools.report.screen import headline, stranger_sentences
from agrotools.report.settings import Measure
from agrotools.report.tables import scoring_lines, warning_lines
from agrotools.report.verdicts import verdict_text
from agrotools.runner.rescore import content_of
from agrotools.runner.yardsticks import roles_of
from agrotools.scoring.attribution import CAUSES
from agrotools.scoring.metrics import FAS, FAS_FLOORS, METRICS
from agrotools.scoring.statistics import Estimate
from agrotools.scoring.summary import RunComparison, RunDifference, Summary, tokens_of

TERMS = {
    "floor": "score without looking: guessed from the question alone (baseline:guess), or the best constant answers "
    "(baseline:constant), whichever is higher in all",
    "colours": "score of guessing from the question, and refusing by the mean colours of the files (baseline:colours)",
    "ceiling": "score of the reference calls with the real tools (baseline:oracle), where the answer follows from them",
    "planner": "score of the steps copied from the most similar other question (baseline:planner)",
    "±": "half the width of the 95 % interval over clusters of samples that share files",
    "privileged": "sees reference solutions; a yardstick, not a result",
    "a yardstick, not a model": "uses your right answers, to show what is possible",
    "twin": "one of two samples with the same question, of which only one can be answered; "
    "a refusal gains a point on one and loses a point on the other",
}


class PageWords(NamedTuple):
    """Words of a page that depend on its reader. ``final_score``: name of the score of final answers.

    ``replaced``: words of the tables, which all surfaces share, with those of the page.
    """

    yardstick: str
    final_score: str
    replaced: tuple[tuple[str, str], ...] = ()

    def label(self, metric: str) -> str:
        """Return the name of a metric."""
        return self.final_score if metric == FAS else METRICS[metric].label

    def text(self, text: str) -> str:
        """Return a text of a table in the words of the page."""
        for word, of_page in self.replaced:
            text = re.sub(rf"\b{re.escape(word)}", of_page, text)
        return text

    def part(self, part: Part) -> Part:
        """Return a table or a paragraph in the words of the page."""
        if isinstance(part, Paragraph):
            return part._replace(text=self.text(part.text))
        columns = [
            column._replace(heading=self._lines(column.heading), group=self.text(column.group))
            for column in part.columns
        ]
        rows = [
            row._replace(
                cells=tuple(cell._replace(lines=self._lines(cell.lines)) for cell in row.cells)
            )
            for row in part.rows
        ]
        notes = [self.text(note) for note in part.notes]
        return replace(part, title=self.text(part.title), columns=columns, rows=rows, notes=notes)

    def _lines(self, lines: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(self.text, lines))


USUAL_WORDS = PageWords("privileged", METRICS[FAS].label)
_YARDSTICK = "a yardstick, not a model"
GROWERS_WORDS = PageWords(
    _YARDSTICK,
    "score",
    (
        (PRIVILEGED_NOTE, f"{_YARDSTICK}: {TERMS[_YARDSTICK]}."),
        ("privileged", _YARDSTICK),
        ("FAS = Final Answer Score:", "score ="),
        ("Final Answer Score: ", ""),
        ("FAS", "score"),
    ),
)
"""Words for the page of a benchmark of own photos, which people read who know plants, not metrics."""


def words_for(summaries: Sequence[Summary]) -> PageWords:
    """Return the words for the readers of a page."""
    return GROWERS_WORDS if is_of_own_photos(summaries) else USUAL_WORDS


def is_of_own_photos(summaries: Sequence[Summary]) -> bool:
    """True if the benchmark was built from photos and a table of the user, with which its tools were compared."""
    return any(summary.tool_checks for summary in summaries)


def head_data(
    runs: Sequence[PageRun],
    yardsticks: Mapping[str, Summary],
    differences: Sequence[RunDifference],
    comparisons: Mapping[tuple[int, int], RunComparison],
) -> Data:
    """Return everything that the overview shows; ``yardsticks`` are summaries of baselines on the same samples."""
    summaries = [run.summary for run in runs]
    measure = headline(summaries)
    words = words_for(summaries)
    mode = measure[0].mode if measure else "end-to-end"
    shown = [*summaries, *yardsticks.values()]
    role_by_place = roles_of(shown, mode)
    roles, roles_beside = role_by_place[: len(runs)], role_by_place[len(runs) :]
    names = run_names(summaries)
    known = {(each.model, role) for each, role in zip(summaries, roles, strict=True)}
    return {
        "title": benchmark_title(summaries[0].benchmark, summaries[0].benchmark_version),
        "synthetic": summaries[0].synthetic,
        "scope": scope_of(summaries[0].benchmark),
        "own_photos": words is GROWERS_WORDS,
        "yardstick": words.yardstick,
        "measure": _measure_data(measure, words) if measure else None,
        "runs": [
            _run_data(run, name, role, measure)
            for run, name, role in zip(runs, names, roles, strict=True)
        ],
        "references": _yardsticks_data(
            [*zip(yardsticks.values(), roles_beside, strict=True)], known, measure
        )
        if measure
        else [],
        "other_floor": _other_floor(summaries, mode),
        "checks": _checks_data(summaries),
        "photo_columns": PHOTO_COLUMNS,
        "strangers": _strangers_data(summaries, names),
        "pairs": list(_pairs(runs, names, differences, comparisons, words)),
        "differences": incomparable([run.manifest for run in runs]),
        "notes": [
            *warning_lines(summaries),
            *scoring_lines(summaries),
            *(note for run in runs for note in run.records.notes),
        ],
        "parts": {part: cause._asdict() for part, cause in CAUSES.items()},
        "terms": TERMS | _metric_terms(summaries, words),
    }


def _yardsticks_data(
    yardsticks: Sequence[tuple[Summary, str]], known: Container[tuple[str, str]], measure: Measure
) -> list[Data]:
    """Return the scores of baselines beside the runs, given with their roles.

    ``known``: model and role of each run, which is not repeated.
    """
    shown: list[Data] = []
    for summary, role in yardsticks:
        estimate = _headline_of(summary, measure)
        if estimate is None or (summary.model, role) in known:
            continue
        shown.append(
            {
                "name": summary.model,
                "role": role,
                "score": estimate_data(estimate),
                "tasks": _tasks_of(summary, measure),
            }
        )
    return shown


def _metric_terms(summaries: Sequence[Summary], words: PageWords) -> dict[str, str]:
    """Return the meanings of all metrics that the runs have, by their names."""
    shown = set[str]()
    for summary in summaries:
        for part in summary.modes.values():
            shown.update(part.metrics)
    return {
        words.text(words.label(metric)): words.text(METRICS[metric].meaning)
        for metric in sorted(shown)
    }


def _checks_data(summaries: Sequence[Summary]) -> list[Data]:
    """Return how the tools agree with the table of own photos: a sentence, counts by label, a row for each photo."""
    checks = dict.fromkeys(check for summary in summaries for check in summary.tool_checks)
    return [
        {
            "text": harmless(check.sentence()),
            "labels": [
                [harmless(each.label), each.right, each.otherwise, each.not_named]
                for each in check.labels
            ],
            "photos": [[*map(harmless, row)] for row in check.photo_rows()],
        }
        for check in checks
    ]


def _strangers_data(summaries: Sequence[Summary], names: Sequence[str]) -> list[str]:
    """Return how often each run named something on pictures of something else."""
    return [
        harmless(f"{name}, {mode}: {sentence[0].lower()}{sentence[1:]}")
        for name, summary in zip(names, summaries, strict=True)
        for mode, part in summary.modes.items()
        for sentence in stranger_sentences(part)
    ]


def estimate_data(estimate: Estimate) -> list[float | int | None]:
    """Return value, interval and number of units of an estimate."""
    interval = estimate.interval
    limits = (interval.lower, interval.upper) if interval else (None, None)
    return [estimate.value, *limits, estimate.n]


def _measure_data(measure: Measure, words: PageWords) -> Data:
    info = METRICS[measure[1]]
    return {
        "mode": measure[0].mode,
        "label": words.label(measure[1]),
        "meaning": words.text(info.meaning),
        "out_of": info.out_of,
    }


def _headline_of(summary: Summary, measure: Measure) -> Estimate | None:
    part = summary.modes.get(measure[0].mode)
    metric = (measure[0].of(summary) or {}).get(measure[1])
    return metric.overall if metric and part and part.headline else None


def _tasks_of(summary: Summary, measure: Measure) -> Data:
    metric = (measure[0].of(summary) or {}).get(measure[1])
    if metric is None:
        return {}
    return {task: estimate_data(each) for task, each in metric.by_task_type.items()}


def _other_floor(summaries: Sequence[Summary], mode: Mode) -> Data | None:
    """Return the other floor of the first model, of the tasks in which it is higher; None without any."""
    models = [each for each in summaries if not each.model.startswith("baseline:")]
    part = (models or summaries)[0].modes.get(mode)
    if part is None or not part.floor:
        return None
    for name in FAS_FLOORS:
        higher = higher_parts(part, name) if name != part.floor else None
        if higher and higher.by_task_type:
            tasks = {task: estimate_data(each) for task, each in higher.by_task_type.items()}
            return {"name": name, "tasks": tasks}
    return None


def _run_data(run: PageRun, name: str, role: str, measure: Measure | None) -> Data:
    summary = run.summary
    parts = summary.modes.values()
    spend = read_spend(run.folder / "spend.jsonl")
    tokens_in, cached, tokens_out = tokens_of(parts)
    main_mode = summary.modes.get(measure[0].mode) if measure else None
    seconds = main_mode.counts.spent.get("seconds") if main_mode else None
    return {
        **run_facts(run.name, run.folder, run.manifest, summary),
        "label": harmless(name),
        "role": "baseline" if run.manifest.faults and role != "model" else role,
        **_score_data(summary, measure),
        "usd": spend.usd if spend.replies else None,
        "tokens": tokens_in + tokens_out,
        "token_parts": f"{prompt_tokens_text(tokens_in, cached)}, {amount_text(tokens_out)} out",
        "seconds": seconds.per_record if seconds else 0,
        "records": sum(part.n_records for part in parts),
        "invalid": sum(part.invalid.n for part in parts),
        "missing": sum(summary.missing.values()),
        "lost": {
            mode: part.lost.model_dump(mode="json", exclude={"tasks"})
            for mode, part in summary.modes.items()
            if part.lost is not None
        },
        "certificates": {
            tool: accuracy_sentence(tool, backend.partition(":")[0])
            for tool, backend in run.manifest.toolset.items()
        },
    }


_WRITTEN = frozenset({"lookup_agronomy"})
"""Tools that are tested on written questions, where the others are tested on drawn pictures."""


def accuracy_sentence(tool: str, version: str) -> str:
    """Return on what a tool was tested, as one sentence; all figures are in ``agrotools tools``."""
    found = certificate(tool, version)
    if "why" in found:
        return f"{found['why'][0].upper()}{found['why'][1:]}."
    made_kind = "written questions" if tool in _WRITTEN else "drawn pictures"
    made = f"{found['made']:,} {made_kind}"
    subjects = f"photographs of {found['subjects']:,} subjects"
    if not found["subjects"]:
        tested_on = f"{made}, no photographs"
    elif not found["made"]:
        tested_on = subjects
    else:
        tested_on = f"{subjects} and {made}"
    other = found["version"]
    versions = "" if other == version else f" in version {other} (this is version {version})"
    return f"Tested{versions} on {tested_on}."


def _score_data(summary: Summary, measure: Measure | None) -> Data:
    """Return the headline of a run and its tasks; if it is withheld, the reason, and the limits of what is possible."""
    metric = (measure[0].of(summary) or {}).get(measure[1]) if measure else None
    if measure is None or metric is None:
        return {"score": None, "withheld": "", "possible": None, "tasks": {}}
    estimate = _headline_of(summary, measure)
    bounds = metric.bounds
    return {
        "score": estimate_data(estimate) if estimate else None,
        "withheld": "" if estimate else summary.modes[measure[0].mode].withheld,
        "possible": [bounds.lower, bounds.upper] if bounds else None,
        "tasks": _tasks_of(summary, measure) if estimate else {},
    }


def _pairs(
    runs: Sequence[PageRun],
    names: Sequence[str],
    differences: Sequence[RunDifference],
    comparisons: Mapping[tuple[int, int], RunComparison],
    words: PageWords,
) -> Iterator[Data]:
    for each in differences:
        first, second = runs[each.first], runs[each.second]
        same = not each.difference.value and content_of(first.folder) == content_of(second.folder)
        verdict = verdict_text(
            each.difference,
            (names[each.first], names[each.second]),
            same=same,
            missing=each.missing,
        )
        yield {
            "first": each.first,
            "second": each.second,
            "mode": each.mode,
            "label": words.label(each.metric),
            "difference": estimate_data(each.difference),
            "p": each.difference.p_adjusted,
            "differs": each.differs(),
            "detectable": each.difference.detectable,
            "verdict": words.text(verdict),
            "more": None if each.missing else more_samples(each.difference),
            "rows": _pair_rows(each, comparisons.get((each.first, each.second))),
        }


def _pair_rows(difference: RunDifference, comparison: RunComparison | None) -> list[list[Any]]:
    """Return the differences of two runs by task and by cause; empty for runs that are not compared in parts."""
    if comparison is None or difference.mode not in comparison.modes:
        return []
    return [
        [kind, name, estimate_data(row), row.differs() and difference.missing is None]
        for kind, name, row in difference_rows(comparison, difference.mode)
        if kind != "metric"
    ]
