"""Measure the tools against ground truth: accuracy with intervals, time per call, peak memory.

Makes studies/results/measured.csv, from which ``write_accuracy.py`` writes docs/accuracy.md.

    python studies/measure_accuracy.py --data DIR [--tool NAME] [--folder NAME] [--out FILE.csv] [--json]

DIR holds a folder per source, each with its images and a truth.json. Each study runs in its own process on one core; a
study that fails is reported as a row. Exit code 1 if a study failed or nothing was measured, 2 for a usage error. After
``--out studies/results/measured.csv``, ``studies/write_accuracy.py`` writes the accuracy page and the certificates.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from accuracy.studies import TIME_LIMIT_S, Plan, Planned, Row, plan, run
from accuracy.table import format_table, write_csv
from agrotools.core import UsageError
from agrotools.core.texts import count_text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--data", type=Path, help="folder of the sources; default: drawn scenes only"
    )
    parser.add_argument("--tool", action="append", default=[], help="only this tool (repeatable)")
    parser.add_argument(
        "--folder", action="append", default=[], help="only this folder (repeatable)"
    )
    parser.add_argument(
        "--out", type=Path, help="write the figures to this CSV file; its other rows stay"
    )
    parser.add_argument(
        "--overlays", type=Path, help="write the overlays of the tools to this folder"
    )
    parser.add_argument(
        "--time-limit", type=float, default=TIME_LIMIT_S, help="time limit per study, seconds"
    )
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    given = parser.parse_args(arguments)
    try:
        chosen = plan(given.data, given.tool, given.folder)
    except UsageError as error:
        parser.error(f"{error.message}; {error.hint}" if error.hint else error.message)
    if given.out is not None and not given.out.absolute().parent.is_dir():
        parser.error(f"{given.out.parent} is not a folder")
    _print_left_out(chosen, given.data)
    rows: list[Row] = []

    def ended(study: Planned, fresh: list[Row], seconds: float) -> None:
        rows.extend(fresh)
        failed = fresh[0].error
        outcome = f"{count_text(len(fresh), 'figure')}, {count_text(fresh[0].calls, 'call')}"
        outcome = f"not measured: {failed}" if failed else outcome
        place = f"[{chosen.studies.index(study) + 1}/{len(chosen.studies)}]"
        print(
            f"{place} {study.tool} on {study.folder}: {outcome} ({seconds:.0f} s)", file=sys.stderr
        )

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
        write_csv(given.out, rows, datetime.now(UTC).date().isoformat())
        print(f"wrote {given.out}", file=sys.stderr)
    if all(row.error is not None for row in rows):
        print("error: nothing could be measured", file=sys.stderr)
    return int(not rows or any(row.error is not None for row in rows))


def _print_left_out(chosen: Plan, data: Path | None) -> None:
    if chosen.absent:
        where = "no --data given" if data is None else f"not in {data}"
        print(f"left out, {where}: {', '.join(chosen.absent)}", file=sys.stderr)
    if chosen.ignored:
        ignored, layouts = ", ".join(chosen.ignored), ", ".join(chosen.layouts)
        print(
            f"ignored, as no study uses a folder of that name: {ignored}; known: {layouts}",
            file=sys.stderr,
        )
    if chosen.drawn_left_out:
        left_out = count_text(chosen.drawn_left_out, "study", "studies")
        print(
            f"left out, as the data is not ours: {left_out} on drawn scenes (--folder names them)",
            file=sys.stderr,
        )


if __name__ == "__main__":
    sys.exit(main())
