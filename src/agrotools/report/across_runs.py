"""How step metrics go with outcomes over several runs: a table for each benchmark that enough of them are on."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agrotools.report.cells import DASH, new_table, stacked
from agrotools.report.values import harmless
from agrotools.scoring import METRICS, Summary
from agrotools.scoring.correlations import MIN_RUNS
from agrotools.scoring.statistics import MIN_CLUSTERS
from agrotools.scoring.summary import AcrossRuns, RunCorrelation

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

_VARIANTS = ("_strict", "_truth")
"""Metrics that stand beside another; they are in the data and not in the tables."""


def across_runs_tables(summaries: Sequence[Summary]) -> Iterator["RenderableType"]:
    """What :func:`agrotools.scoring.correlations.with_correlations` found; nothing with too few runs."""
    from rich.text import Text

    seen: list[AcrossRuns] = []
    for summary in summaries:
        found = summary.across_runs
        if found is None or found in seen:
            continue
        seen.append(found)
        told = [each for each in found.correlations if not each.step.endswith(_VARIANTS) and each.pearson is not None]
        for whose in dict.fromkeys(_whose(each) for each in told):
            yield _table(found, whose, [each for each in told if _whose(each) == whose])
        yield Text("\n".join(_lines(found, any(told))), style="dim")


def _whose(correlation: RunCorrelation) -> str:
    family = correlation.step.partition(".")[0]
    if family == "agrotools":
        return "our metrics"
    return f"{family}'s metrics, {'corrected' if correlation.step.endswith('_corrected') else 'as published'}"


def _table(found: AcrossRuns, whose: str, correlations: Sequence[RunCorrelation]) -> "Table":
    table = new_table(f"Steps with outcomes, {len(found.runs)} runs on {harmless(found.benchmark)},\n{whose}")
    table.add_column("", overflow="fold", min_width=14)
    outcomes = list(dict.fromkeys(each.outcome for each in correlations))
    for outcome in outcomes:
        table.add_column(_label(outcome), justify="right")
    for step in dict.fromkeys(each.step for each in correlations):
        own = {each.outcome: each for each in correlations if each.step == step}
        table.add_row(
            stacked([_label(step)], value_style=""), *(_cell(own.get(outcome), found) for outcome in outcomes)
        )
    return table


def _label(metric: str) -> str:
    if metric in METRICS:
        return METRICS[metric].label
    special = {"ans_i": "Ans_I", "ans_acc_imggen": "AnsAcc w/ ImgGen"}
    words = {
        "inst": "Inst",
        "tool": "Tool",
        "arg": "Arg",
        "summ": "Summ",
        "ans": "Ans",
        "acc": "Acc",
        "objective": " objective",
    }
    name = metric.partition(".")[2].removesuffix("_corrected")
    return special.get(name, "".join(words.get(part, part) for part in name.split("_")))


def _cell(correlation: RunCorrelation | None, found: AcrossRuns) -> "Text":
    if correlation is None or correlation.pearson is None:
        return stacked([DASH], value_style="dim")
    lines = [f"r {correlation.pearson:+.2f}"]
    if correlation.interval is not None:
        lines.append(f"{correlation.interval.lower:+.2f} to {correlation.interval.upper:+.2f}")
    if correlation.spearman is not None:
        lines.append(f"rho {correlation.spearman:+.2f}")
    if correlation.n != len(found.runs):
        lines.append(f"{correlation.n} runs")
    return stacked(lines)


def _lines(found: AcrossRuns, any_told: bool) -> Iterator[str]:
    if any_told:
        yield (
            f"r: Pearson's, rho: Spearman's, over runs, not samples. With {len(found.runs)} runs in which the two have "
            f"nothing to do with each other, r lies beyond ±{found.least_r:.3f} once in twenty times."
        )
    else:
        yield f"Over the {len(found.runs)} runs on {harmless(found.benchmark)} no step metric and outcome both vary."
    if any_told and len(found.runs) < MIN_CLUSTERS:
        yield f"No interval is given with fewer than {MIN_CLUSTERS} runs ({MIN_RUNS} are the least to be shown at all)."
    for reason, models in found.left_out.items():
        yield f"Left out ({reason}): {', '.join(map(harmless, models))}."
