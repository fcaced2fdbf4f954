"""Prepare data sets for the benchmark ``field`` from snapshots of public repositories.

Part of ``pack_field.py``: the pictures that it reads.

    python training/prepare_field.py SNAPSHOTS DATA [DATASET ...]

``SNAPSHOTS`` has a git directory for each repository, ``OWNER+NAME/repo`` or ``OWNER/NAME``. Each data set becomes a
folder of ``DATA``: its chosen pictures as the repository has them, and ``truth.json``, which ``pack_field.py`` reads.
Nothing of it may be committed. Without names, all data sets whose snapshot is there are prepared.
"""

import argparse
import shutil
from pathlib import Path

from field_sources import READERS
from field_sources.snapshot import Prepared, Snapshot, find_snapshot


def prepare(name: str, snapshots: Path, data: Path) -> str:
    """Prepare one data set, and return a line on what was done."""
    reader = READERS[name]
    git_dir = find_snapshot(snapshots, reader.repo)
    if git_dir is None:
        return f"{name}: left out, no snapshot of {reader.repo}"
    folder = data / name
    shutil.rmtree(folder, ignore_errors=True)
    prepared = Prepared(folder, Snapshot(git_dir, reader.repo, reader.commit))
    reader.read(prepared)
    prepared.write()
    clusters = len({item["cluster"] for item in prepared.items})
    return f"{name}: {len(prepared.items)} items, {clusters} clusters, {prepared.size_mb:.1f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("snapshots", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*", metavar="DATASET", help=", ".join(READERS))
    arguments = parser.parse_args()
    for name in arguments.names or READERS:
        print(prepare(name, arguments.snapshots, arguments.data), flush=True)


if __name__ == "__main__":
    main()
