"""``agrotools compare`` and ``gate``: differences of runs, and whether a new run is worse than an old one."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.output import command_line, print_json, stop_message, warn_of_hidden
from agrotools.exit_codes import FAULTS

if TYPE_CHECKING:
    from agrotools.formats.benchmark import Benchmark
    from agrotools.runner.config import EvalConfig
    from agrotools.runner.gating import GatedRuns
    from agrotools.scoring.gate import Gate
    from agrotools.scoring.table_scores import TableReading


def compare(
    runs: list[Path],
    flips: int = 2,
    details: bool = False,
    until_decided: bool = False,
    cluster: str = "",
    as_json: bool = False,
) -> None:
    """Compare runs, second minus first, paired by sample: overall, by task and by cause, and sample by sample.

    A positive number is in favour of the second run. Several runs are compared pair by pair. Nothing is written.
    Tables (CSV) have the columns model, sample and score.
    """
    import sys

    from agrotools.cli.reading import new_readings, print_readings
    from agrotools.report.comparison import comparison_data, comparison_tables
    from agrotools.report.correlations import correlations_of_pairs
    from agrotools.report.evaluation import ComparedRuns, compare_with_reasons
    from agrotools.report.terminal import print_parts
    from agrotools.runner.build import load_for_run
    from agrotools.runner.until_decided import config_of_run
    from agrotools.scoring.gate import compare_tables
    from agrotools.scoring.table_scores import TableReading, is_table

    tables = [run for run in runs if is_table(run)]
    _check_cluster(cluster, has_tables=bool(tables))
    if until_decided:
        configs = [config_of_run(run) for run in runs]
        with stop_message("finished samples are kept"):
            print_until_decided(configs, load_for_run(configs[0], sys.stderr), as_json=as_json)
        return
    warn_of_hidden(tables)
    readings = new_readings(yes=False)
    if tables:
        how = TableReading(cluster, readings)
        compared = ComparedRuns(compare_tables(*runs, how=how))
    else:
        compared = compare_with_reasons(runs, flips)
    print_readings(readings)
    for text in compared.warnings:
        typer.echo(f"warning: {text}", err=True)
    if as_json:
        read = readings.as_data() if tables else {}
        print_json([comparison_data(each) | read for each in compared.pairs])
        return
    for at, each in enumerate(compared.pairs):
        if at:
            typer.echo()
        print_parts(comparison_tables(each, flips=flips, details=details))
    print_parts(correlations_of_pairs(compared.pairs))


def print_until_decided(
    configs: "Sequence[EvalConfig]", benchmark: "Benchmark", *, as_json: bool, yes: bool = False
) -> None:
    """Run two configurations in turn until their difference is decided, and print the verdict."""
    import sys

    from agrotools.cli.planning import ask_before_spending, planned_run
    from agrotools.report.verdicts import block_text
    from agrotools.runner.until_decided import SequentialComparison, run_until_decided
    from agrotools.scoring.summary import orientation_text

    if not yes:
        for config in configs:
            expected = planned_run(config, benchmark).expected
            if expected:
                ask_before_spending(config)(expected)

    def print_look(each: SequentialComparison) -> None:
        typer.echo(f"block {each.look} of {each.looks}, {block_text(each)}", err=True)

    found = run_until_decided(configs, sys.stderr, benchmark, print_look)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    typer.echo(orientation_text(*found.models))
    typer.echo(f"{found.mode}, {block_text(found)}")
    typer.echo(
        f"The 95 % interval holds for all {found.looks} looks together; another command would test a second time."
    )
    typer.echo(f"runs: {found.runs[0]} {found.runs[1]}")


def gate(
    new: Path,
    against: Path | None = None,
    max_drop: float = 0.0,
    mode: str | None = None,
    save: Path | None = None,
    junit: Path | None = None,
    markdown: Path | None = None,
    cluster: str = "",
    allow_invalid: bool = False,
    as_json: bool = False,
) -> None:
    """Fail (exit code 1) if a run is worse than an older one by more than --max-drop points, with 95 % confidence.

    Both runs are paired by sample. If the true drop is exactly --max-drop, 5 % of the tests fail. Runs with fewer
    than 10 clusters in common cannot be tested (exit code 2).
    """
    from agrotools.cli.reading import new_readings, print_readings
    from agrotools.core import UsageError
    from agrotools.report.verdicts import gate_lines
    from agrotools.scoring.table_scores import TableReading

    # A report never overwrites a file of a run.
    _check_ending(junit, (".xml",))
    _check_ending(markdown, ("", ".md", ".markdown", ".txt"))
    _check_ending(save, (".zip",))
    if against is None:
        if save is None:
            raise UsageError(
                "there is no older version to test against",
                hint="--against OLD; for the first version: --save FILE.zip",
            )
        _save(new, save)
        return
    how = TableReading(cluster, new_readings(yes=False))
    tested = _tested(new, against, mode, max_drop / 100, how, allow_invalid=allow_invalid)
    print_readings(how.readings)
    result, task_types = tested.result, tested.task_types
    lines = gate_lines(result, tested.new, tested.old, task_types)
    if as_json:
        verdict = {"verdict": lines[0], "passed": result.passed}
        read = how.readings.as_data() if how.readings.taken else {}
        part = {"task_types": task_types.model_dump(mode="json")} if task_types else {}
        print_json(result.model_dump(mode="json") | verdict | part | read)
    else:
        typer.echo("\n".join(lines))
        if new.is_dir() and against.is_dir():
            comparing = command_line("compare", against, new)
            typer.echo(f"samples that changed, by task and by cause: {comparing}")
    if junit is not None:
        _write_junit(junit, result, lines)
    if markdown is not None:
        _append_markdown(markdown, lines)
    if not result.passed:
        raise typer.Exit(FAULTS)
    if save is not None:
        _save(new, save)


def _check_cluster(cluster: str, *, has_tables: bool) -> None:
    """Raise a UsageError if a column is named for runs, whose clusters are those of the benchmark."""
    from agrotools.core import UsageError

    if cluster and not has_tables:
        raise UsageError(
            "--cluster names a column of a table of scores; runs have the clusters of their benchmark",
            hint="leave out --cluster",
        )


def _tested(
    new: Path,
    against: Path,
    mode: str | None,
    max_drop: float,
    how: "TableReading",
    *,
    allow_invalid: bool,
) -> "GatedRuns":
    """Test the new version against the older one, both runs or tables."""
    from agrotools.core import UsageError
    from agrotools.runner.gating import GatedRuns, gate_runs
    from agrotools.runner.rescore import check_distinct
    from agrotools.runner.saved_run import is_saved_run
    from agrotools.scoring.gate import gate_tables
    from agrotools.scoring.table_scores import is_table

    is_of_tables = any(is_table(each) and not is_saved_run(each) for each in (new, against))
    _check_cluster(how.cluster, has_tables=is_of_tables)
    if is_of_tables:
        if mode is not None:
            raise UsageError("a table of scores has no modes", hint="leave out --mode")
        warn_of_hidden([path for path in (new, against) if path.is_file()])
        tested = gate_tables(new, against, max_drop, allow_invalid=allow_invalid, how=how)
        check_distinct([new, against])
        return GatedRuns(*tested)
    gated = gate_runs(new, against, mode, max_drop, allow_invalid=allow_invalid)
    for text in gated.warnings:
        typer.echo(f"warning: {text}", err=True)
    return gated


def _save(run: Path, file: Path) -> None:
    """Write what a later gate needs of a run, and say so on standard error."""
    from agrotools.core import UsageError
    from agrotools.runner.rescore import scored_run
    from agrotools.runner.saved_run import save_run

    if not run.is_dir():
        raise UsageError(f"--save keeps a run, and {run} is no run folder", hint="give the folder")
    scored_run(run)  # a file that no gate could read is not written
    save_run(run, file)
    size_mb = file.stat().st_size / 1e6
    later = command_line("gate", "NEW", "--against", file)
    typer.echo(f"{file}: {size_mb:.1f} MB; the next version: {later}", err=True)


def _check_ending(path: Path | None, endings: Sequence[str]) -> None:
    """Raise a UsageError if the name of a file has none of these endings; "" allows a name without one."""
    from agrotools.core import UsageError

    if path is not None and path.suffix.lower() not in endings:
        known = " or ".join(filter(None, endings))
        raise UsageError(f"{path}: the name has to end in {known}", hint="rename the file")


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


def _append_markdown(path: Path, lines: list[str]) -> None:
    """Append the result to a file as a heading with the verdict and a list."""
    from agrotools.report.text_tables import in_markdown

    verdict, *others = map(in_markdown, lines)
    text = [f"### agrotools gate: {verdict}", "", *(f"- {line}" for line in others), "", ""]
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(text))
