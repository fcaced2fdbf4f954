"""Measure packs that learnt from everyday photographs as other things, against packs that did not.

    python training/measure_everyday.py --pools ../shared/train --data DIR --everyday DIR --features FILE
        [--encoders DIR] [--first]

Packs, the kinds that are learnt and those that are only tested, and the rule: ``other_things.toml``. With ``--first``
everyday photographs count for the limit of the test for strangers, as in the first trial. ``--encoders``: as in
``measure_look_alikes.py``. The pool of everyday
photographs: ``pool_everyday.py``. Pictures of packs are drawn as in ``measure_look_alikes.py``, groups left
out. Two lines a pack, without and with the everyday kinds: own held pictures that get a name, and how many of the names
are right; pictures of the kinds tested before, and of the everyday kinds that nobody learnt, that get a name;
look-alikes that get a name. The last two lines are of all packs.
"""

import argparse
import csv
import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure_look_alikes import (
    LISTED,
    Drawn,
    Measured,
    Pool,
    Rows,
    drawn,
    other_things,
    trained,
)
from measure_pests import Features, answers_of

from agrotools.core import UsageError
from agrotools_tools.recognition.strangers import Strangers, shown_kinds, stranger_kinds


class Counts(NamedTuple):
    """How many pictures get a name, or a right one, and of how many."""

    named: int
    right: int
    held: int
    before: int
    of_before: int
    everyday: int
    of_everyday: int
    look_alikes: int
    of_look_alikes: int

    @property
    def others_named(self) -> float:
        """Share of the pictures of all tested kinds that get a name, those tested before and the everyday ones."""
        return (self.before + self.everyday) / (self.of_before + self.of_everyday)

    def line(self, what: str) -> str:
        return (
            f"| {what} | {self.named} of {self.held} | {self.right} of {self.named} | "
            f"{self.before} of {self.of_before} | {self.everyday} of {self.of_everyday} | "
            f"{self.look_alikes} of {self.of_look_alikes} |"
        )


def everyday_features(folder: Path, features: Features) -> dict[str, Rows]:
    """Return the features of the everyday photographs of each kind."""
    rows = [*csv.DictReader((folder / "labels.csv").open(encoding="utf-8", newline=""))]
    with zipfile.ZipFile(folder / "images.zip") as archive:
        found = features.of(archive.read(row["image"]) for row in rows)
    labels = np.array([row["label"] for row in rows])
    return {kind: found[labels == kind] for kind in dict.fromkeys(labels.tolist())}


def with_kinds(strangers: Strangers, kinds: dict[str, Rows], *, count: bool) -> Strangers:
    """Return strangers with everyday kinds, as if these shipped as well. ``count``: they count for the limit."""
    added = range(len(strangers.names), len(strangers.names) + len(kinds))
    numbers = [
        np.full(len(rows), number) for number, rows in zip(added, kinds.values(), strict=True)
    ]
    return replace(
        strangers,
        features=np.concatenate([strangers.features, *kinds.values()]),
        kinds=np.concatenate([strangers.kinds, *numbers]),
        names=(*strangers.names, *kinds),
        everyday=frozenset() if count else frozenset(added),
    )


def counted(pictures: Drawn, pool: Pool, strangers: Strangers, before: Rows, new: Rows) -> Counts:
    """Train a pack with these strangers, and count what it names."""
    pack: Any = trained(pictures.data, strangers)
    labels, named = answers_of(pack, pool.features[pictures.held])
    right = named & (np.array(labels) == np.array(pictures.held_labels))

    def of(rows: Rows) -> int:
        return int(answers_of(pack, rows)[1].sum()) if len(rows) else 0

    left = pool.features[pictures.left]
    return Counts(
        int(named.sum()),
        int(right.sum()),
        len(named),
        of(before),
        len(before),
        of(new),
        len(new),
        of(left),
        len(left),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pools", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--everyday", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--encoders", type=Path)
    parser.add_argument("--first", action="store_true", help="the first trial")
    arguments = parser.parse_args()
    listed = tomllib.loads(LISTED.read_text(encoding="utf-8"))
    measured = Measured(arguments.pools, arguments.features, arguments.encoders)
    tested = listed["everyday" if arguments.first else "everyday_again"]["tested"]
    found: dict[str, list[Counts]] = {"without": [], "with everyday kinds": []}
    for entry in listed["look_alikes"]:
        sight, features = measured.sight(entry)
        pool = measured.pool(entry)
        everyday = everyday_features(arguments.everyday, features)
        learnt = {kind: everyday[kind] for kind in listed["everyday"]["learnt"]}
        new = np.concatenate([everyday[kind] for kind in tested])
        before = features.of(other_things(listed, entry["pack"], arguments.pools, arguments.data))
        try:
            pictures = drawn(entry, pool)
        except UsageError as error:  # a class of one group: none can be held out
            print(f"| {entry['pack']} | not measured: {error.message} |")
            continue
        shown = shown_kinds(stranger_kinds(), entry["own"])
        base = sight.strangers((*shown, *entry["hides"], *learnt))
        more = with_kinds(base, learnt, count=arguments.first)
        for what, strangers in zip(found, (base, more), strict=True):
            counts = counted(pictures, pool, strangers, before, new)
            found[what].append(counts)
            print(counts.line(f"{entry['pack']}, {what}"), flush=True)
    for what, packs in found.items():
        sums = Counts(*(int(one) for one in np.sum(packs, axis=0)))
        both = float(np.mean([one.others_named for one in packs]))
        alone = float(np.mean([one.everyday / one.of_everyday for one in packs]))
        print(
            f"{sums.line(f'all, {what}')} mean of the packs, named of all tested kinds: {both:.4f}, "
            f"of the everyday ones: {alone:.4f}"
        )


if __name__ == "__main__":
    main()
