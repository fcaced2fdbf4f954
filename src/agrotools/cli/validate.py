"""``agrotools validate``: check a benchmark folder and its quality, and rerun its reference calls."""

from collections import Counter, defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agrotools.cli.output import allow_closed_pipe, count_text, print_json, terminal_progress

if TYPE_CHECKING:
    from pydantic import JsonValue

    from agrotools.benchmarks.rerunning import Difference, Rerun
    from agrotools.benchmarks.validate import Fault
    from agrotools.build.quality import Finding


def validate(
    folder: Annotated[Path | None, typer.Argument(help="Benchmark folder.", show_default=False)] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the format and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the errors as JSON.")] = False,
    quality: Annotated[
        bool,
        typer.Option(
            "--quality",
            help="Also look for near-duplicates, leaks and questions that can be guessed; writes quality.jsonl there.",
        ),
    ] = False,
    rerun: Annotated[
        bool,
        typer.Option(
            "--rerun", help="Also run every reference call again and list results that differ on this machine."
        ),
    ] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of processes that run tools, for --rerun.")] = 2,
    threads: Annotated[
        int, typer.Option(min=1, max=64, help="Threads of numeric libraries in each process, for --rerun.")
    ] = 1,
) -> None:
    """Check every file, hash, sample, tool, argument, reference and answer of a benchmark, and list all errors at once.

    Exit code 0: no errors (whatever --quality finds); 1: errors, or calls with other results; 2: no such folder.
    """
    import asyncio

    from agrotools.benchmarks import load_folder
    from agrotools.benchmarks.rerunning import rerun_references
    from agrotools.benchmarks.validate import canary_remarks, format_schema, validate_folder
    from agrotools.build.assist.screening import screen_folder

    if schema:
        print_json(format_schema())
        return
    if folder is None:
        raise typer.BadParameter("give a benchmark folder or --schema", param_hint="FOLDER")
    if not folder.is_dir():
        raise typer.BadParameter(f"{folder} is not a folder", param_hint="FOLDER")
    faults = validate_folder(folder)
    remarks = canary_remarks(folder)
    progress = terminal_progress()
    screened = again = None
    with _skip_if_faulty(faults, "Quality checks skipped"):
        screened = screen_folder(folder, read_text=True, progress=progress) if quality else None
    with _skip_if_faulty(faults, "Calls not rerun"):
        if rerun:
            calls = rerun_references(load_folder(folder), workers=workers, threads=threads, progress=progress)
            again = asyncio.run(calls)
    with allow_closed_pipe():
        if as_json:
            rows = [{"where": fault.where, **fault.model_dump(mode="json")} for fault in faults]
            checks = (
                {"findings": [each.model_dump() for each in screened.findings], "not_checked": screened.left_out}
                if screened
                else {}
            )
            checks |= rerun_as_json(again, threads) if again else {}
            print_json({"folder": str(folder), "faults": rows, "remarks": remarks, **checks})
        else:
            for fault in faults:
                typer.echo(f"{fault.where}\n  {fault.code}: {fault.message}\n  {fault.hint}")
            typer.echo(f"{folder}: {count_text(len(faults), 'error') if faults else 'no errors'}")
            for remark in remarks:
                typer.echo(f"remark: {remark}")
            if screened is not None:
                print_findings(folder, screened.findings, screened.left_out)
            if again is not None:
                print_rerun(again, threads)
    raise typer.Exit(1 if faults or (again is not None and again.differences) else 0)


@contextmanager
def _skip_if_faulty(faults: "list[Fault]", skipped: str) -> Generator[None]:
    """Leave the block with a message if a benchmark with faults cannot be loaded, or names unknown tools."""
    from agrotools.core import BenchmarkError, UsageError

    try:
        yield
    except (BenchmarkError, UsageError):
        if not faults:
            raise
        typer.echo(f"{skipped}: fix the errors above first", err=True)


_EXAMPLES = 2


def print_findings(
    folder: Path, findings: "Sequence[Finding]", left_out: Sequence[str], *, brief: bool = False
) -> None:
    """Print the number of samples flagged by each check, with examples unless ``brief``, and skipped checks."""
    from agrotools.build.quality import CHECKS
    from agrotools.build.quality.checking import BLIND_CHECK, SEVERITIES
    from agrotools.formats.benchmark import QUALITY_FILE

    blind = {finding.id for finding in findings if finding.check == BLIND_CHECK}
    unlike_chance = {each.id for each in findings if each.check == BLIND_CHECK and each.severity == "warning"}
    others = {(each.id, each.severity, each.check) for each in findings if each.check != BLIND_CHECK}
    flagged = Counter((severity, check) for _, severity, check in others)
    if blind:
        flagged["warning" if unlike_chance else "info", BLIND_CHECK] = len(blind)
    summary = f"{count_text(len(findings), 'finding')} in {folder / QUALITY_FILE}" if findings else "no findings"
    typer.echo(f"quality: {summary}")
    for key in sorted(flagged, key=lambda key: (SEVERITIES.index(key[0]), -flagged[key], key[1])):
        severity, check = key
        meaning = CHECKS.get(check, "")
        if check == BLIND_CHECK:
            meaning += f", in {len(unlike_chance)} of them where guessing rarely does"
        typer.echo(f"  {severity}: {check}, {count_text(flagged[key], 'sample')}: {meaning}")
        if brief:
            continue
        for finding in [each for each in findings if (each.severity, each.check) == key][:_EXAMPLES]:
            typer.echo(f"    {finding.id}: {finding.message}")
    for what in left_out:
        typer.echo(f"  not checked: {what}")


_EXAMPLES = 3
_LONGEST = 80


def print_rerun(rerun: "Rerun", threads: int) -> None:
    """Print the number of calls, and the differences by tool and field, with examples."""
    from agrotools.benchmarks.rerunning import kind_of_place

    by_kind: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    for difference in rerun.differences:
        by_kind[difference.tool, kind_of_place(difference.where)].append(difference)
    typer.echo(
        f"rerun: {count_text(rerun.calls, 'call')} of {count_text(rerun.samples, 'sample')},"
        f" {count_text(threads, 'thread')} each, {_python()}: "
        f"{count_text(len(rerun.differences), 'value')} other than recorded"
    )
    if rerun.not_recorded:
        typer.echo(f"  not run, for nothing is recorded: {count_text(rerun.not_recorded, 'call')}")
    if rerun.artifacts:
        typer.echo(f"  files that tools made: {rerun.same_bytes} of {rerun.artifacts} have the recorded bytes")
    for (tool, place), differences in sorted(by_kind.items(), key=lambda item: (-len(item[1]), item[0])):
        samples = len({difference.sample for difference in differences})
        typer.echo(f"  {tool}: {place}, {count_text(len(differences), 'value')} in {count_text(samples, 'sample')}")
        for each in differences[:_EXAMPLES]:
            typer.echo(
                f"    {each.sample}, step {each.step}, {each.where}: {_short(each.recorded)} -> {_short(each.now)}"
            )


def rerun_as_json(rerun: "Rerun", threads: int) -> "dict[str, JsonValue]":
    """Return the rerun as JSON data with every difference."""
    return {
        "rerun": {
            "samples": rerun.samples,
            "calls": rerun.calls,
            "not_recorded": rerun.not_recorded,
            "threads": threads,
            "python": _python().removeprefix("Python "),
            "artifacts": rerun.artifacts,
            "artifacts_same_bytes": rerun.same_bytes,
            "differences": [difference.model_dump(mode="json") for difference in rerun.differences],
        }
    }


def _python() -> str:
    from platform import python_version

    return f"Python {python_version()}"


def _short(value: "JsonValue") -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
