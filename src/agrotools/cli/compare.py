"""``agrotools compare`` and ``gate``: differences of runs, and whether a new run is worse than an old one."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from agrotools.cli.output import (
    FAULTS,
    command_line,
    count_text,
    print_json,
    stop_message,
    warn_of_hidden,
)

if TYPE_CHECKING:
    from agrotools.core import Mode
    from agrotools.formats.benchmark import Benchmark
    from agrotools.runner.config import EvalConfig
    from agrotools.runner.manifest import Manifest
    from agrotools.scoring.gate import Gate


def compare(
    runs: list[Path],
    flips: int = 2,
    details: bool = False,
    until_decided: bool = False,
    as_json: bool = False,
) -> None:
    """Compare runs, second minus first, paired by sample: overall, by task and by cause, and sample by sample.

    A positive number is in favour of the second run. Several runs are compared pair by pair. Nothing is written.
    Tables (CSV) have the columns model, sample and score.
    """
    import sys
    from itertools import combinations

    from agrotools.report.comparison import comparison_data, comparison_tables, with_reasons
    from agrotools.report.html import incomparable
    from agrotools.report.terminal import print_parts
    from agrotools.runner.build import load_for_run
    from agrotools.runner.rescore import compare_runs, stopped_early
    from agrotools.runner.store import read_manifest
    from agrotools.runner.until_decided import config_of_run
    from agrotools.scoring.gate import compare_tables, is_table

    if until_decided:
        configs = [config_of_run(run) for run in runs]
        with stop_message("finished samples are kept"):
            print_until_decided(configs, load_for_run(configs[0], sys.stderr), as_json=as_json)
        return
    tables = [run for run in runs if is_table(run)]
    folders = [] if tables else runs
    warn_of_hidden(tables)
    for early in dict.fromkeys(filter(None, map(stopped_early, folders))):
        typer.echo(f"warning: {early}", err=True)
    compared = compare_runs(runs) if folders else compare_tables(*runs)
    for difference in incomparable([read_manifest(run) for run in folders]):
        typer.echo(f"warning: the runs differ in more than the model: {difference}", err=True)
    if folders:
        compared = [
            with_reasons(each, pair, flips)
            for each, pair in zip(compared, combinations(runs, 2), strict=True)
        ]
    if as_json:
        print_json([comparison_data(each) for each in compared])
        return
    for at, each in enumerate(compared):
        if at:
            typer.echo()
        print_parts(comparison_tables(each, flips=flips, details=details))


def print_until_decided(
    configs: "Sequence[EvalConfig]", benchmark: "Benchmark", *, as_json: bool, yes: bool = False
) -> None:
    """Run two configurations in turn until their difference is decided, and print the verdict."""
    import sys

    from agrotools.cli.planning import ask_before_spending, planned_run
    from agrotools.report.comparison import missing_text
    from agrotools.report.layout import interval_text, percent, points
    from agrotools.runner.until_decided import SequentialComparison, run_until_decided
    from agrotools.scoring.metrics import METRICS
    from agrotools.scoring.summary import orientation_text

    def text(each: SequentialComparison) -> str:
        found, metric = each.difference, METRICS[each.metric]
        interval = f" ({interval_text(found.interval, points)})" if found.interval else ""
        verdict = "no difference shown" if each.look == each.looks else "not decided yet"
        if each.missing and not each.decided:
            verdict = f"no verdict, because {missing_text(each.missing, each.models)}"
        elif each.decided:
            verdict = f"{each.models[(found.value > 0) != metric.lower_is_better]} is better"
        means = f"{percent(each.means[1])} minus {percent(each.means[0])}"
        n = f"{found.n:,} of {each.planned:,} samples in {found.n_clusters:,} clusters"
        n += f", {count_text(each.invalid, 'sample')} with invalid records" * bool(each.invalid)
        return f"{metric.label}: {means} = {points(found.value)}{interval}, {n}: {verdict}"

    for each in () if yes else configs:
        if expected := planned_run(each, benchmark).expected:
            ask_before_spending(each)(expected)

    def said(each: SequentialComparison) -> None:
        typer.echo(f"block {each.look} of {each.looks}, {text(each)}", err=True)

    found = run_until_decided(configs, sys.stderr, benchmark, said)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    typer.echo(
        f"{orientation_text(*found.models)}\n{found.mode}, {text(found)}\n"
        f"The 95 % interval holds for all {found.looks} looks together; those of other commands do not.\n"
        f"runs: {found.runs[0]} {found.runs[1]}"
    )


def gate(
    new: Path,
    against: Path,
    max_drop: float = 0.0,
    mode: str | None = None,
    junit: Path | None = None,
    markdown: Path | None = None,
    allow_invalid: bool = False,
    as_json: bool = False,
) -> None:
    """Fail (exit code 1) if a run is worse than an older one by more than --max-drop points, with 95 % confidence.

    Both runs are paired by sample. If the true drop is exactly --max-drop, 5 % of the tests fail. Runs with fewer
    than 10 clusters in common cannot be tested (exit code 2).
    """
    from agrotools.core import UsageError
    from agrotools.report.text_tables import in_markdown
    from agrotools.runner.rescore import check_distinct, scored_run, stopped_early
    from agrotools.runner.store import read_manifest
    from agrotools.scoring.gate import gate as tested
    from agrotools.scoring.gate import gate_tables, is_table

    for path, ends in (
        (junit, (".xml",)),
        (markdown, ("", ".md", ".markdown", ".txt")),
    ):  # never a file of a run
        if path is not None and path.suffix.lower() not in ends:
            known = " or ".join(filter(None, ends))
            raise UsageError(f"{path}: the name has to end in {known}", hint="rename the file")
    if is_table(new) or is_table(against):
        if mode is not None:
            raise UsageError("a table of scores has no modes", hint="leave out --mode")
        warn_of_hidden([path for path in (new, against) if path.is_file()])
        result, *models = gate_tables(new, against, max_drop / 100, allow_invalid=allow_invalid)
    else:
        manifests = [read_manifest(new), read_manifest(against)]
        if refused := _differences(manifests, compare_modes=mode is None):
            raise UsageError(
                f"these runs cannot be compared: {refused[0]}", hint="run NEW as OLD was run"
            )
        for early in dict.fromkeys(filter(None, map(stopped_early, (new, against)))):
            typer.echo(f"warning: {early}", err=True)
        chosen = _mode(manifests, mode)
        result = tested(
            scored_run(new),
            scored_run(against),
            chosen,
            max_drop / 100,
            allow_invalid=allow_invalid,
        )
        models = [manifest.model for manifest in manifests]
    check_distinct([new, against])
    lines = _lines(result, *models)
    if as_json:
        print_json({**result.model_dump(mode="json"), "passed": result.passed})
    else:
        more = [
            f"samples that changed, by task and by cause: {command_line('compare', against, new)}"
        ]
        typer.echo("\n".join(lines if result.mode == "table" else lines + more))
    if junit is not None:
        _write_junit(junit, result, lines)
    if markdown is not None:
        with markdown.open("a", encoding="utf-8") as file:
            head, *rest = map(in_markdown, lines)
            file.write(
                "\n".join(
                    [f"### agrotools gate: {head}", "", *(f"- {each}" for each in rest), "", ""]
                )
            )
    if not result.passed:
        raise typer.Exit(FAULTS)


def _differences(manifests: "Sequence[Manifest]", *, compare_modes: bool) -> list[str]:
    """Return the differences that make a test of two runs meaningless."""
    from agrotools.runner.rescore import benchmark_differences

    found = benchmark_differences(manifests)
    fields = {
        "scoring": "scoring versions",
        "quick": "parts of the benchmark",
        "degrade": "degradations",
    }
    fields |= {"faults": "faults in tool calls", "shard": "shards"}
    for field, words in fields.items():
        values = [getattr(each, field) for each in manifests]
        if values[0] != values[1]:
            nothing = "none" if field in ("degrade", "faults") else "whole"
            named = ("quick part" if each is True else each or nothing for each in values)
            found.append(f"different {words}: {' / '.join(map(str, named))}")
    modes = [", ".join(sorted(each.modes)) for each in manifests]
    both = all("end-to-end" in each.modes for each in manifests)
    if compare_modes and modes[0] != modes[1] and not both:
        found.append(f"different modes: {' / '.join(modes)} (--mode chooses one that both have)")
    return found


def _mode(manifests: "Sequence[Manifest]", mode: str | None) -> "Mode":
    from agrotools.core import UsageError
    from agrotools.runner.ladder import headline_mode

    common = cast(
        "tuple[Mode, ...]", tuple(each for each in manifests[0].modes if each in manifests[1].modes)
    )
    if mode not in (None, *common):
        raise UsageError(
            f"mode {mode} is not in both runs", hint=f"both have: {', '.join(common) or 'none'}"
        )
    return headline_mode(common) if mode is None else cast("Mode", mode)


def _lines(result: "Gate", new: str, old: str) -> list[str]:
    """Return the result as text: the verdict first."""
    from agrotools.report.layout import harmless, percent
    from agrotools.scoring.gate import BEYOND, held_by
    from agrotools.scoring.metrics import METRICS

    bound, allowed = result.bound, f"{100 * result.max_drop:g} points"
    unit = "step" if result.mode == "step-by-step" else "sample"
    verdict = f"PASS: no drop of more than {allowed} is shown"
    if result.fault:
        verdict = f"FAIL: {result.fault} (--allow-invalid tests the others)"
    elif not result.passed:
        verdict = f"FAIL: the score dropped by more than {allowed}"
    lines = [
        verdict,
        f"{result.mode}, {METRICS[result.metric].label}: {percent(result.new)} (new, {harmless(new)}), "
        f"{percent(result.old)} (old, {harmless(old)})",
        f"new minus old {100 * result.difference:+.1f} points: drop {100 * bound.drop:.1f}, one-sided 95 % lower bound "
        f"{100 * bound.lower:.1f}; {count_text(bound.n, unit)} in {count_text(bound.n_clusters, 'cluster')}",
    ]
    drops = [
        f"{100 * (result.max_drop + beyond):g} points: {100 * power:.0f} %"
        for beyond, power in zip(BEYOND, result.power, strict=True)
        if power is not None and result.max_drop + beyond <= 1
    ]
    if drops:
        lines.append(f"probability of failing at a true drop of {', of '.join(drops)}")
    elif any(result.power):
        lines.append("a larger drop than the allowed one is not possible")
    else:
        alike = "all samples changed alike" if bound.drop else "no sample changed"
        lines.append(
            f"{alike}, so the spread of changes, and with it the probability of finding a drop, is not known"
        )
    if result.drops is not None:
        lower, upper = 100 * result.drops.lower, 100 * result.drops.upper
        lines.append(
            f"with the missing scores, the drop is {lower:.1f} to {upper:.1f} points; a verdict is given only if it is "
            "the same at both ends"
        )
    for n, where in ((result.lost, "old"), (result.added, "new")):
        if n:
            held = held_by(result.mode)
            lines.append(
                f"not compared: {count_text(n, 'sample')} with a {held} only in the {where} version"
            )
    return lines


def _write_junit(path: Path, result: "Gate", lines: list[str]) -> None:
    """Write the result as a JUnit test suite with one test case."""
    from xml.etree import ElementTree

    suite = ElementTree.Element(
        "testsuite", name="agrotools gate", tests="1", failures=str(int(not result.passed))
    )
    case = ElementTree.SubElement(
        suite, "testcase", classname="agrotools.gate", name=f"{result.mode} {result.metric}"
    )
    if not result.passed:
        ElementTree.SubElement(case, "failure", message=lines[0]).text = "\n".join(lines)
    ElementTree.SubElement(case, "system-out").text = "\n".join(lines)
    path.write_bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
