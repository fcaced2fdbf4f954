"""``agrotools gate``: fail if a new run is worse than an old one by more than an allowed drop."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from agrotools.cli.output import FAULTS, command_line, count_text, print_json

if TYPE_CHECKING:
    from agrotools.core import Mode
    from agrotools.runner.manifest import Manifest
    from agrotools.scoring.gate import Gate


def gate(
    new: Annotated[Path, typer.Argument(help="Run folder of the new version, or a table of scores.")],
    against: Annotated[Path, typer.Option(help="The old version: run, table, or a model in NEW.", metavar="OLD")],
    max_drop: Annotated[float, typer.Option(min=0, max=100, help="Allowed drop of the mean score, in points.")] = 0.0,
    mode: Annotated[
        str | None, typer.Option(help="Mode to test.", show_default="end-to-end if both runs have it")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="JUnit file to write.", metavar="FILE")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Markdown file to append to, e.g. $GITHUB_STEP_SUMMARY.", metavar="FILE")
    ] = None,
    allow_invalid: Annotated[
        bool, typer.Option("--allow-invalid", help="Test even if more than 1 % of the samples of OLD are lost in NEW.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
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

    for path, ends in ((junit, (".xml",)), (markdown, ("", ".md", ".markdown", ".txt"))):  # never a file of a run
        if path is not None and path.suffix.lower() not in ends:
            raise UsageError(
                f"{path}: the name has to end in {' or '.join(filter(None, ends))}", hint="rename the file"
            )
    if is_table(new) or is_table(against):
        if mode is not None:
            raise UsageError("a table of scores has no modes", hint="leave out --mode")
        result, *models = gate_tables(new, against, max_drop / 100, allow_invalid=allow_invalid)
    else:
        manifests = [read_manifest(new), read_manifest(against)]
        if refused := _differences(manifests, compare_modes=mode is None):
            raise UsageError(f"these runs cannot be compared: {refused[0]}", hint="run NEW as OLD was run")
        for early in dict.fromkeys(filter(None, map(stopped_early, (new, against)))):
            typer.echo(f"warning: {early}", err=True)
        chosen = _mode(manifests, mode)
        result = tested(scored_run(new), scored_run(against), chosen, max_drop / 100, allow_invalid=allow_invalid)
        models = [manifest.model for manifest in manifests]
    check_distinct([new, against])
    lines = _lines(result, *models)
    if as_json:
        print_json({**result.model_dump(mode="json"), "passed": result.passed})
    else:
        more = [f"samples that changed, by task and by cause: {command_line('compare', new, against)}"]
        typer.echo("\n".join(lines if result.mode == "table" else lines + more))
    if junit is not None:
        _write_junit(junit, result, lines)
    if markdown is not None:
        with markdown.open("a", encoding="utf-8") as file:
            head, *rest = map(in_markdown, lines)
            file.write("\n".join([f"### agrotools gate: {head}", "", *(f"- {each}" for each in rest), "", ""]))
    if not result.passed:
        raise typer.Exit(FAULTS)


def _differences(manifests: "Sequence[Manifest]", *, compare_modes: bool) -> list[str]:
    """Return the differences that make a test of two runs meaningless."""
    from agrotools.runner.rescore import benchmark_differences

    found = benchmark_differences(manifests)
    fields = {"scoring": "scoring versions", "quick": "parts of the benchmark", "degrade": "degradations"}
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

    common = cast("tuple[Mode, ...]", tuple(each for each in manifests[0].modes if each in manifests[1].modes))
    if mode is None:
        return headline_mode(common)
    if mode in common:
        return cast("Mode", mode)
    raise UsageError(f"mode {mode} is not in both runs", hint=f"both have: {', '.join(common) or 'none'}")


def _lines(result: "Gate", new: str, old: str) -> list[str]:
    """Return the result as text: the verdict first."""
    from agrotools.report.layout import harmless, percent
    from agrotools.scoring import METRICS
    from agrotools.scoring.gate import BEYOND, held_by

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
        f"drop {100 * bound.drop:.1f} points, one-sided 95 % lower bound {100 * bound.lower:.1f}; "
        f"{count_text(bound.n, unit)} in {count_text(bound.n_clusters, 'cluster')}",
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
        lines.append(f"{alike}, so the spread of changes, and with it the probability of finding a drop, is not known")
    for n, where in ((result.lost, "old"), (result.added, "new")):
        if n:
            held = held_by(result.mode)
            lines.append(f"not compared: {count_text(n, 'sample')} with a {held} only in the {where} version")
    return lines


def _write_junit(path: Path, result: "Gate", lines: list[str]) -> None:
    """Write the result as a JUnit test suite with one test case."""
    from xml.etree import ElementTree

    suite = ElementTree.Element("testsuite", name="agrotools gate", tests="1", failures=str(int(not result.passed)))
    case = ElementTree.SubElement(suite, "testcase", classname="agrotools.gate", name=f"{result.mode} {result.metric}")
    if not result.passed:
        ElementTree.SubElement(case, "failure", message=lines[0]).text = "\n".join(lines)
    ElementTree.SubElement(case, "system-out").text = "\n".join(lines)
    path.write_bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
