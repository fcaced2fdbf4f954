"""Measure the tools against ground truth: accuracy with intervals, time per call, peak memory.

    python studies/measure_accuracy.py --data DIR [--tool NAME] [--folder NAME] [--out docs/accuracy.md] [--json]

DIR holds a folder per source, each with its images and a truth.json. Each study runs in its own process on one core; a
study that fails is reported as a row. Exit code 1 if a study failed or nothing was measured, 2 for a usage error.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from accuracy.studies import TIME_LIMIT_S, Plan, Planned, Row, plan, run
from accuracy.table import curves, format_table, markdown
from agrotools.core import UsageError
from agrotools.core.base import count_text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the sources; default: drawn scenes only")
    parser.add_argument("--tool", action="append", default=[], help="only this tool (repeatable)")
    parser.add_argument("--folder", action="append", default=[], help="only this folder (repeatable)")
    parser.add_argument("--out", type=Path, help="write the figures as a Markdown document")
    parser.add_argument("--overlays", type=Path, help="write the overlays of the tools to this folder")
    parser.add_argument("--cross-domain", type=Path, help="table of training/cross_domain.py, for a section of --out")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT_S, help="time limit per study, seconds")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    given = parser.parse_args(arguments)
    try:
        chosen = plan(given.data, given.tool, given.folder)
    except UsageError as error:
        parser.error(f"{error.message}; {error.hint}" if error.hint else error.message)
    if given.out is not None and not given.out.absolute().parent.is_dir():
        parser.error(f"{given.out.parent} is not a folder")
    strangers = given.cross_domain.read_text(encoding="utf-8") if given.cross_domain else ""
    _print_left_out(chosen, given.data)
    rows: list[Row] = []

    def ended(study: Planned, fresh: list[Row], seconds: float) -> None:
        rows.extend(fresh)
        failed = fresh[0].error
        outcome = f"{count_text(len(fresh), 'figure')}, {count_text(fresh[0].calls, 'call')}"
        outcome = f"not measured: {failed}" if failed else outcome
        place = f"[{chosen.studies.index(study) + 1}/{len(chosen.studies)}]"
        print(f"{place} {study.tool} on {study.folder}: {outcome} ({seconds:.0f} s)", file=sys.stderr)

    stopped = False
    try:
        run(chosen.studies, time_limit_s=given.time_limit, ended=ended, overlays=given.overlays)
    except KeyboardInterrupt:
        stopped = True
    if given.json:
        print(json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False))
    elif rows:
        print("\n".join(format_table(rows)))
    if stopped:
        print(f"stopped: {count_text(len(rows), 'figure')} measured so far", file=sys.stderr)
        return 130
    if given.out is not None:
        _write_page(given.out, rows, _command(given), chosen.absent, strangers)
    if all(row.error is not None for row in rows):
        print("error: nothing could be measured", file=sys.stderr)
    return int(not rows or any(row.error is not None for row in rows))


def _print_left_out(chosen: Plan, data: Path | None) -> None:
    if chosen.absent:
        where = "no --data given" if data is None else f"not in {data}"
        print(f"left out, {where}: {', '.join(chosen.absent)}", file=sys.stderr)
    if chosen.ignored:
        ignored, layouts = ", ".join(chosen.ignored), ", ".join(chosen.layouts)
        print(f"ignored, as no study uses a folder of that name: {ignored}; known: {layouts}", file=sys.stderr)
    if chosen.drawn_left_out:
        left_out = count_text(chosen.drawn_left_out, "study", "studies")
        print(f"left out, as the data is not ours: {left_out} on drawn scenes (--folder names them)", file=sys.stderr)


def _write_page(out: Path, rows: Sequence[Row], command: str, absent: Sequence[str], strangers: str) -> None:
    """Write the document, and the drawn curves to the folder ``images`` beside it."""
    if drawn := curves(rows):
        (out.parent / "images").mkdir(exist_ok=True)
    for name, content in drawn.items():
        (out.parent / "images" / name).write_bytes(content)
    out.write_text(markdown(rows, command, absent, strangers=strangers, pictures="images"), encoding="utf-8")
    print(f"wrote {out}", file=sys.stderr)


def _command(given: argparse.Namespace) -> str:
    """Return the command that repeats the measurement, without local paths."""
    words = ["python studies/measure_accuracy.py"]
    words += ["--data DIR"] * bool(given.data) + ["--cross-domain FILE"] * bool(given.cross_domain)
    return " ".join(
        [*words, *(f"--tool {name}" for name in given.tool), *(f"--folder {name}" for name in given.folder)]
    )


if __name__ == "__main__":
    sys.exit(main())
