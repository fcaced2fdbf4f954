"""Writes tests/real_models/recorded.jsonl.gz from run folders: raw replies, and what they are parsed as today.

    python tests/real_models/record.py RUN... [--out FILE] [--most N]

``--most`` bounds the samples of each run. A record that its own replies do not lead to is an error.
"""

import argparse
import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agrotools.runner.prompts import StoredPrompts
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from real_models.replies import RECORDED, Row, differs, parse_row, row_of, write_rows


def rows_of_run(run: Path, most: int | None) -> list[Row]:
    """Return the rows of a run.

    Raises:
        ValueError: a record differs from what its replies are parsed as.
    """
    manifest, rows = read_manifest(run), list[Row]()
    name = Path(manifest.model).stem
    for record in iter_records(run):
        sent = StoredPrompts(run).of(record.key)
        bare = bool(sent) and [message["role"] for message in sent[0].messages] == ["user"]
        row = row_of(record, manifest.protocol, model=name, benchmark=manifest.benchmark, bare=bare)
        if row is None or len(rows) == most:
            continue
        try:
            row["outcome"] = asyncio.run(parse_row(row))
        except IndexError:  # parsing has changed since, and the sample would have gone on
            print(f"{run}, {record.sample.id}: left out, its replies are read otherwise today")
            continue
        if fault := differs(record, row["outcome"]):
            raise ValueError(f"{run}, {record.sample.id}: {fault}")
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=RECORDED)
    parser.add_argument("--most", type=int)
    given = parser.parse_args()
    rows = [row for run in given.runs for row in rows_of_run(run, given.most)]
    write_rows(rows, given.out)
    print(f"{given.out}: {len(rows)} samples, {given.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
