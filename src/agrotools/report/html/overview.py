"""Data of the overview: score, cost and time of each run, its tasks, differences and lost points."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agrotools.core.base import amount_text, benchmark_title, prompt_tokens_text
from agrotools.models.metered import read_spend
from agrotools.report.comparison import difference_rows, more_samples, verdict_text
from agrotools.report.html.runs import FACETS, Run, incomparable, run_facts
from agrotools.report.layout import harmless, run_names
from agrotools.report.parts import joint_text
from agrotools.report.screen import headline
from agrotools.report.settings import Setting
from agrotools.report.tables import scoring_lines, warning_lines
from agrotools.runner.ladder import role_of
from agrotools.runner.rescore import content_of
from agrotools.scoring import METRICS, Comparison, Estimate, RunAggregator, Summary
from agrotools.scoring.attribution import MEANINGS, Attribution, read_attribution
from agrotools.scoring.comparisons import points_lost
from agrotools.scoring.metrics import FAS
from agrotools.scoring.summary import RunDifference, tokens_of
from agrotools.tools.result import certificate

Data = dict[str, Any]
Measure = tuple[Setting, str]
"""Setting and metric that runs are judged by."""
TERMS = {
    "floor": "score of guessing from the question alone (baseline:guess)",
    "ceiling": "score of the reference calls with the real tools (baseline:oracle), where the answer follows from them",
    "planner": "score of the steps copied from the most similar other question (baseline:planner)",
    "±": "half the width of the 95 % interval over clusters of samples that share files",
    "privileged": "sees reference solutions; a yardstick, not a result",
    "twin": "answerable and unanswerable sample with one question: a refusal gains on one and loses on the other",
    "joint": "parts whose points are known only as a sum: the next action of the model is unknown",
}


def head_data(
    runs: Sequence[Run],
    references: Mapping[str, Summary],
    differences: Sequence[RunDifference],
    comparisons: Mapping[tuple[int, int], Comparison],
) -> Data:
    """Return everything that the overview shows; ``references`` are summaries of baselines on the same samples."""
    summaries = [run.summary for run in runs]
    measure = headline(summaries)
    shown = {metric for summary in summaries for part in summary.modes.values() for metric in part.metrics}
    roles = _roles(summaries, measure)
    beside = [
        (summary.model, role, summary)
        for summary, role in zip(references.values(), _roles([*references.values()], measure), strict=True)
        if (summary.model, role) not in {(each.model, of_run) for each, of_run in zip(summaries, roles, strict=True)}
    ]
    names = run_names(summaries)
    return {
        "title": benchmark_title(summaries[0].benchmark, summaries[0].benchmark_version),
        "synthetic": summaries[0].synthetic,
        "measure": _measure_data(measure) if measure else None,
        "runs": [_run_data(*each, measure) for each in zip(runs, names, roles, strict=True)],
        "references": [
            {"name": name, "role": role, "score": estimate_data(estimate), "tasks": tasks}
            for name, role, summary in beside
            if measure and (estimate := _headline_of(summary, measure))
            for tasks in [_tasks_of(summary, measure)]
        ],
        "pairs": list(_pairs(runs, names, differences, comparisons)),
        "differences": incomparable([run.manifest for run in runs]),
        "notes": [
            *warning_lines(summaries),
            *scoring_lines(summaries),
            *(note for run in runs for note in run.records.notes),
        ],
        "facets": FACETS,
        "parts": MEANINGS,
        "terms": TERMS | {METRICS[metric].label: METRICS[metric].meaning for metric in sorted(shown)},
    }


def lost_points(runs: Sequence[Run], tallies: Sequence[RunAggregator]) -> list[Data]:
    """Return of each run and mode the number ``n`` of samples with a FAS, and the points of 100 lost by ``parts``."""
    return [
        {
            mode: {"n": part.metrics[FAS].overall.n, "parts": {k: 100 * v for k, v in points_lost(tally, mode).items()}}
            for mode, part in run.summary.modes.items()
            if FAS in part.metrics
        }
        for run, tally in zip(runs, tallies, strict=False)
    ]


def estimate_data(estimate: Estimate) -> list[float | int | None]:
    """Return value, interval and number of units of an estimate."""
    interval = estimate.interval
    limits = (interval.lower, interval.upper) if interval else (None, None)
    return [estimate.value, *limits, estimate.n]


def _measure_data(measure: Measure) -> Data:
    info = METRICS[measure[1]]
    return {"mode": measure[0].mode, "label": info.label, "meaning": info.meaning, "out_of": info.out_of}


def _headline_of(summary: Summary, measure: Measure) -> Estimate | None:
    part = summary.modes.get(measure[0].mode)
    metric = (measure[0].of(summary) or {}).get(measure[1])
    return metric.overall if metric and part and part.headline else None


def _tasks_of(summary: Summary, measure: Measure) -> Data:
    metric = (measure[0].of(summary) or {}).get(measure[1])
    return {task: estimate_data(each) for task, each in metric.by_task_type.items()} if metric else {}


def _roles(summaries: Sequence[Summary], measure: Measure | None) -> list[str]:
    return [role_of(each, measure[0].mode if measure else "end-to-end") for each in summaries]


def _run_data(run: Run, name: str, role: str, measure: Measure | None) -> Data:
    summary, parts = run.summary, run.summary.modes.values()
    estimate = _headline_of(summary, measure) if measure else None
    metric = (measure[0].of(summary) or {}).get(measure[1]) if measure else None
    spend = read_spend(run.folder / "spend.jsonl")
    tokens_in, cached, tokens_out = tokens_of(parts)
    (attribution, outdated), toolset = read_attribution(run.folder), run.manifest.toolset.items()
    return {
        **run_facts(run.name, run.folder, run.manifest, summary),
        "label": harmless(name),
        "role": "baseline" if run.manifest.faults and role != "model" else role,
        "score": estimate_data(estimate) if estimate else None,
        "withheld": summary.modes[measure[0].mode].withheld if measure and metric and estimate is None else "",
        "possible": [metric.bounds.lower, metric.bounds.upper] if metric and metric.bounds else None,
        "tasks": _tasks_of(summary, measure) if measure and estimate else {},
        "usd": spend.usd if spend.replies else None,
        "tokens": tokens_in + tokens_out,
        "token_parts": f"{prompt_tokens_text(tokens_in, cached)}, {amount_text(tokens_out)} out",
        "seconds": sum(part.counts.spent["seconds"].total for part in parts if "seconds" in part.counts.spent),
        "records": sum(part.n_records for part in parts),
        "invalid": sum(part.invalid.n for part in parts),
        "missing": sum(summary.missing.values()),
        "attribution": attribution_data(attribution),
        "outdated": outdated,
        "certificates": {tool: certificate(tool, of.partition(":")[0])["text"] for tool, of in toolset},
    }


def attribution_data(attribution: Attribution | None) -> Data | None:
    """Return the points that the run lost, as split by ``agrotools attribute``."""
    if attribution is None:
        return None
    samples = {f"{each.id}/{each.epoch}": each.parts for each in attribution.samples}
    joint = [joint_text(each) for each in attribution.joint]
    return attribution.model_dump(mode="json", include={"run"}) | {"joint": joint, "samples": samples}


def _pairs(
    runs: Sequence[Run],
    names: Sequence[str],
    differences: Sequence[RunDifference],
    comparisons: Mapping[tuple[int, int], Comparison],
) -> Iterator[Data]:
    for each in differences:
        compared = comparisons.get((each.first, each.second))
        same = not each.difference.value and content_of(runs[each.first].folder) == content_of(runs[each.second].folder)
        rows = difference_rows(compared, each.mode) if compared and each.mode in compared.modes else ()
        yield {
            "first": each.first,
            "second": each.second,
            "mode": each.mode,
            "label": METRICS[each.metric].label,
            "difference": estimate_data(each.difference),
            "p": each.difference.p_adjusted,
            "differs": each.difference.differs(),
            "detectable": each.difference.detectable,
            "verdict": verdict_text(each.difference, (names[each.first], names[each.second]), same=same),
            "more": more_samples(each.difference),
            "rows": [[kind, name, estimate_data(row), row.differs()] for kind, name, row in rows if kind != "metric"],
        }
