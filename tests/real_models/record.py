"""Writes tests/real_models/recorded.jsonl.gz from run folders: raw replies, and what they are parsed as today.

    python tests/real_models/record.py [RUN...] [--first-calls FILE...] [--append] [--out FILE] [--most N]

``--most`` bounds the samples of each run. A record that its own replies do not lead to is an error. ``--first-calls``
reads files of ``studies/first_calls.py --replies``. ``--append`` keeps the rows that are recorded.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from agrotools.loading import Benchmark, load_benchmark
from agrotools.runner.prompts import StoredPrompts
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from real_models.replies import (
    RECORDED,
    Row,
    differs,
    parse_row,
    read_rows,
    row_of,
    row_of_first_call,
    write_rows,
)


def rows_of_run(run: Path, most: int | None) -> list[Row]:
    """Return the rows of a run.

    Raises:
        ValueError: a record differs from what its replies are parsed as.
    """
    manifest, rows = read_manifest(run), list[Row]()
    name = Path(manifest.model).name.removesuffix(".gguf")
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


def rows_of_first_calls(file: Path, benchmarks: dict[str, Benchmark]) -> list[Row]:
    """Return a row for each reply of a file; ``benchmarks`` holds those that were loaded, by name."""
    rows: list[Row] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        asked = json.loads(line)
        name = asked["benchmark"]
        if name not in benchmarks:
            benchmarks[name] = load_benchmark(name)
        row = row_of_first_call(asked, benchmarks[name].sample(asked["sample"]))
        rows.append(row | {"outcome": asyncio.run(parse_row(row))})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="*")
    parser.add_argument("--first-calls", type=Path, nargs="*", default=[])
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--out", type=Path, default=RECORDED)
    parser.add_argument("--most", type=int)
    given = parser.parse_args()
    rows = read_rows(given.out) if given.append else []
    for run in given.runs:
        rows += rows_of_run(run, given.most)
    benchmarks: dict[str, Benchmark] = {}
    for file in given.first_calls:
        rows += rows_of_first_calls(file, benchmarks)
    write_rows(rows, given.out)
    print(f"{given.out}: {len(rows)} samples, {given.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
