"""From the records of a run to its summary."""

from collections.abc import Sequence
from dataclasses import dataclass

from agrotools.core import MODES, Mode, Record, Sample, Score
from agrotools.scoring.chance import open_text_chance
from agrotools.scoring.counts import counted
from agrotools.scoring.outcome import outcome_scores
from agrotools.scoring.steps import step_scores
from agrotools.scoring.summary import Comparison, Invalid, Metric, ModeSummary, NoToolPart, Summary
from agrotools.scoring.units import Units, difference_of, is_invalid, metric_of, units_by_metric

MAX_INVALID_SHARE = 0.01
"""With more invalid records than this, a mode has no headline."""


_Part = tuple[list[Record], list[Sequence[Score]]]


@dataclass(frozen=True)
class MetricInfo:
    """What a metric id means to a reader."""

    label: str
    meaning: str
    lower_is_better: bool = False


METRICS: dict[str, MetricInfo] = {
    "agrotools.fas": MetricInfo("FAS", "Final Answer Score: mean over all slots of a sample"),
    "agrotools.css": MetricInfo("CSS", "Closed-Slot Score: labels, yes/no, sets, files and numbers"),
    "agrotools.ots": MetricInfo("OTS", "Open-Text Score: key facts stated"),
    "agrotools.plot": MetricInfo("Plot", "Plot Score: the data, kind and labels of the figure drawn"),
    "agrotools.st_acc": MetricInfo("STAcc", "predicted step type (call or answer) is right"),
    "agrotools.tool_acc": MetricInfo("ToolAcc", "right tool at steps that call one"),
    "agrotools.tool_acc_strict": MetricInfo("ToolAcc strict", "right tool in the written order"),
    "agrotools.arg_acc": MetricInfo("ArgAcc", "right tool and every argument agrees"),
    "agrotools.arg_acc_strict": MetricInfo("ArgAcc strict", "arguments equal those written, in the written order"),
    "agrotools.ear": MetricInfo("EAR", "answered where a call was due; lower is better", lower_is_better=True),
    "agrotools.summ_acc": MetricInfo("SummAcc", "final answer against what the shown observations imply"),
    "agrotools.summ_acc_truth": MetricInfo("SummAcc truth", "final answer against the ground truth"),
}


def score_record(record: Record) -> list[Score]:
    """All score rows of a record. An invalid record has none.

    Raises:
        RunStoreError: the record does not hold what its mode needs.
        BenchmarkError: the gold of the sample cannot be scored against.
    """
    if is_invalid(record):
        return []
    return step_scores(record) if record.mode == "step-by-step" else outcome_scores(record)


def summarise(
    records: Sequence[Record],
    scores: Sequence[Sequence[Score]] | None = None,
    *,
    benchmark: str = "",
    benchmark_version: str = "",
    synthetic: bool = False,
    model: str = "",
    protocol: str = "",
    privileged: bool = False,
    allow_invalid: bool = False,
) -> Summary:
    """The metrics of a run with intervals and counts.

    Args:
        records: one per sample, mode and epoch, in any order.
        scores: the rows of each record, parallel to ``records``; computed with :func:`score_record` if None.
        benchmark, benchmark_version, synthetic, model, protocol, privileged: what the summary says of itself.
        allow_invalid: let a mode have a headline with more than 1 % invalid records.
    """
    given = [score_record(record) for record in records] if scores is None else scores
    parts: dict[Mode, _Part] = {mode: _of_mode(records, given, mode) for mode in MODES}
    units: dict[Mode, dict[str, Units]] = {
        mode: units_by_metric(mode, *part) for mode, part in parts.items() if part[0]
    }
    return Summary(
        benchmark=benchmark,
        benchmark_version=benchmark_version,
        synthetic=synthetic,
        model=model,
        protocol=protocol,
        privileged=privileged,
        modes={mode: _mode_summary(*parts[mode], own, allow_invalid) for mode, own in units.items()},
        no_tool_part=_no_tool_part(records, units.get("no-tool"), units.get("end-to-end")),
    )


def compare(
    first: Sequence[Record],
    second: Sequence[Record],
    *,
    first_scores: Sequence[Sequence[Score]] | None = None,
    second_scores: Sequence[Sequence[Score]] | None = None,
    names: tuple[str, str] = ("", ""),
) -> Comparison:
    """Differences of two runs, first minus second, paired on the samples (steps) that both have valid records of."""
    first_given = [score_record(record) for record in first] if first_scores is None else first_scores
    second_given = [score_record(record) for record in second] if second_scores is None else second_scores
    modes: dict[Mode, dict[str, Metric]] = {}
    unpaired: dict[Mode, int] = {}
    for mode in MODES:
        own, other = _of_mode(first, first_given, mode), _of_mode(second, second_given, mode)
        if not own[0] or not other[0]:
            continue
        modes[mode] = _differences(units_by_metric(mode, *own), units_by_metric(mode, *other))
        unpaired[mode] = len(_valid_ids(own[0]) ^ _valid_ids(other[0]))
    return Comparison(first=names[0], second=names[1], modes=modes, unpaired=unpaired)


def _of_mode(records: Sequence[Record], scores: Sequence[Sequence[Score]], mode: Mode) -> _Part:
    pairs = [(record, rows) for record, rows in zip(records, scores, strict=True) if record.mode == mode]
    return [record for record, _ in pairs], [rows for _, rows in pairs]


def _valid_ids(records: Sequence[Record]) -> set[str]:
    return {record.sample.id for record in records if not is_invalid(record)}


def _mode_summary(
    records: Sequence[Record], scores: Sequence[Sequence[Score]], units: dict[str, Units], allow_invalid: bool
) -> ModeSummary:
    valid = [(record, rows) for record, rows in zip(records, scores, strict=True) if not is_invalid(record)]
    kept, kept_scores = [record for record, _ in valid], [rows for _, rows in valid]
    lost = _invalid(records)
    samples = {record.sample.id: record.sample for record in records}
    return ModeSummary(
        n_records=len(records),
        n_samples=len(samples),
        n_clusters=len({sample.cluster or sample.id for sample in samples.values()}),
        epochs=max(record.epoch for record in records) + 1,
        invalid=lost,
        headline=allow_invalid or lost.share <= MAX_INVALID_SHARE,
        metrics=_metrics(units),
        ots_chance=open_text_chance([record for record in kept if record.trajectory]),
        counts=counted(kept, kept_scores),
    )


def _invalid(records: Sequence[Record]) -> Invalid:
    lost = [record for record in records if is_invalid(record)]
    reasons: dict[str, int] = {}
    for record in lost:
        reason = record.invalid or (record.trajectory.reason if record.trajectory else "") or "infrastructure"
        reasons[reason] = reasons.get(reason, 0) + 1
    return Invalid(n=len(lost), share=len(lost) / len(records), reasons=reasons)


def _metrics(units: dict[str, Units]) -> dict[str, Metric]:
    metrics = {name: metric_of(own) for name, own in units.items()}
    return {name: metric for name, metric in metrics.items() if metric is not None}


def _differences(first: dict[str, Units], second: dict[str, Units]) -> dict[str, Metric]:
    metrics = {name: difference_of(own, second[name]) for name, own in first.items() if name in second}
    return {name: metric for name, metric in metrics.items() if metric is not None}


def _no_tool_part(
    records: Sequence[Record], no_tool: dict[str, Units] | None, end_to_end: dict[str, Units] | None
) -> NoToolPart | None:
    if no_tool is None and end_to_end is None:
        return None
    samples: dict[str, Sample] = {record.sample.id: record.sample for record in records}
    eligible = {
        metric: {key: unit for key, unit in units.items() if unit.sample.no_tool_eligible}
        for metric, units in (end_to_end or {}).items()
    }
    return NoToolPart(
        n_excluded=sum(not sample.no_tool_eligible for sample in samples.values()),
        metrics=_metrics(eligible),
        gain=_differences(eligible, no_tool or {}),
    )
