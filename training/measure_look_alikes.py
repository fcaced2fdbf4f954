"""Measure packs on the look-alikes and the other things of ``other_things.toml``, with groups left out.

Table of docs/packs.md, "How well packs do".

    python training/measure_look_alikes.py --pools ../shared/train --data DIR --features FILE [--encoders DIR]
        [--packs NAME ...]

Each pack learns at most 100 pictures, and three tenths of its groups are held out. It learns once without pictures of
its look-alikes, and once with 20 of them as ``--other`` gives them; groups of these are not tested. The last two
figures of a line, named and names right, are of the same pack with a least probability, which is fitted so that 95 % of
the names are right out of fold. The encoder that ships learnt from the leaves of all crops: with ``--encoders``, packs
of leaves are measured with encoders that learnt nothing of them (``nets/left_out.py``). Features of pictures are stored
in ``FILE`` and computed only once (about a tenth of a second of processor time each).
"""

import argparse
import csv
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fit_strangeness import table_of
from measure_packs import NOT_STRANGE, few_of_each, photographs_of
from measure_pests import Features, answers_of
from nets.left_out import Sight, folder_of
from numpy.typing import NDArray

from agrotools.core import UsageError
from agrotools_tools.recognition.labelled_pictures import LabelledImage, hold_out
from agrotools_tools.recognition.net import probabilities
from agrotools_tools.recognition.pack_checks import check_pack, folds_of, names_out_of_fold
from agrotools_tools.recognition.pack_features import shipped_features
from agrotools_tools.recognition.pack_heads import TrainingData, fit_head
from agrotools_tools.recognition.packs import PackHead
from agrotools_tools.recognition.strangers import Strangers, shown_kinds, stranger_kinds

LISTED = Path(__file__).with_name("other_things.toml")
MOST_LEARNT = 100
"""Pictures that a pack learns: about what a user brings."""
GIVEN = 20
"""Pictures of look-alikes that the user gives."""
HELD = 0.3
RIGHT = 0.95
"""Share of names that a least probability is fitted for."""
KEPT = 0.5
"""Share of own pictures that a least probability leaves a name at least."""
EVERY = 7
"""One picture in so many is taken of fields of peanut, which are much alike."""
POOL_OF = {"caterpillars": "pests", "beetles and crickets": "pests", "rangeland weeds": "weeds"}
"""Pools of packs that are not of leaves."""
Rows = NDArray[np.float32]


class Pool:
    """Pictures of a pool that no net that names learnt from, few of each label, and their features."""

    def __init__(self, folder: Path, features: Features) -> None:
        rows = table_of(folder)
        if folder.name in ("leaf_disease", "weeds"):
            rows = [row for row in rows if row["split"] != "train"]
        self.rows = few_of_each(rows)
        with zipfile.ZipFile(folder / "images.zip") as archive:
            self.features = features.of(archive.read(row["image"]) for row in self.rows)

    def of(self, labels: Sequence[str]) -> list[int]:
        """Return the places of the pictures with these labels."""
        return [place for place, row in enumerate(self.rows) if row["label"] in labels]


class Trained(NamedTuple):
    """Pack without a file. ``limits``: temperature, least familiarity, largest odds of a stranger."""

    info: Any
    head: PackHead


def least_probability(data: TrainingData, pack: Trained) -> float:
    """Return the probability from which on ``RIGHT`` of the names are right out of fold, at most that which leaves
    ``KEPT`` of the pictures a name."""
    logits, _ = names_out_of_fold(data, folds_of(data), pack.info.regularisation)
    shares = probabilities(logits, pack.info.temperature)
    sure, is_right = shares.max(axis=1), shares.argmax(axis=1) == data.classes
    tried = np.sort(sure)[: int((1 - KEPT) * len(sure))]
    enough = [least for least in tried if is_right[sure >= least].mean() >= RIGHT]
    return float(min(enough, default=tried[-1]))


def trained(data: TrainingData, strangers: Strangers) -> Trained:
    checked = check_pack(data, strangers)
    head = fit_head(data, np.arange(len(data.classes)), strangers, checked.regularisation)
    return Trained(_Named(data.names, checked), head)


class _Named:
    """Stand-in for the description of a pack: its classes, and its settings."""

    def __init__(self, classes: tuple[str, ...], checked: Any) -> None:
        self.classes, self.temperature = classes, checked.temperature
        self.threshold, self.most_stranger = checked.threshold, checked.most_stranger
        self.most_look_alike = checked.most_look_alike
        self.regularisation = checked.regularisation


class Drawn(NamedTuple):
    """Pictures that a pack learns and is tested on. ``held``: places of the own pictures that are held out. ``given``,
    ``left``: places of the look-alikes that it learns from, and of those that are tested."""

    data: TrainingData
    held: list[int]
    held_labels: list[str]
    given: list[int]
    left: list[int]


def drawn(entry: dict[str, Any], pool: Pool, number: int = 0) -> Drawn:
    """Draw the pictures of a pack, always the same with the same ``number`` of the draw."""
    own = [
        LabelledImage(Path(str(place)), pool.rows[place]["label"], pool.rows[place]["group"])
        for place in pool.of(entry["own"])
    ]
    draw = np.random.default_rng(5 + number)
    if number:
        # Which groups are held out depends on the order of their names.
        names = sorted({one.group for one in own})
        order = dict(zip(names, draw.permutation(len(names)), strict=True))
        own = [replace(one, group=f"{order[one.group]:05}") for one in own]
    learnt, held = hold_out(own, HELD)
    learnt = [learnt[int(place)] for place in draw.permutation(len(learnt))[:MOST_LEARNT]]
    names = tuple(sorted({one.label for one in learnt}))
    maker = shipped_features()
    widths = [maker.encoder.info.width, *(net.info.outputs["embedding"] for net in maker.nets)]
    data = TrainingData(
        pool.features[[int(str(one.path)) for one in learnt]],
        (*widths, pool.features.shape[1] - sum(widths)),
        np.array([names.index(one.label) for one in learnt]),
        tuple(one.group for one in learnt),
        names,
        (),
    )
    look_alikes = pool.of(entry["other"])
    given = [look_alikes[int(place)] for place in draw.permutation(len(look_alikes))[:GIVEN]]
    known_groups = {pool.rows[place]["group"] for place in given}
    left = [
        place
        for place in look_alikes
        if place not in given and pool.rows[place]["group"] not in known_groups
    ]
    places = [int(str(one.path)) for one in held]
    return Drawn(data, places, [one.label for one in held], given, left)


class Measured:
    """Pictures and strangers as the encoder of each pack sees them. ``file``: features with the one that ships."""

    def __init__(self, pools: Path, file: Path, encoders: Path | None) -> None:
        self.pools, self.encoders = pools, encoders
        self.shipped = Features(file)
        self._sights: dict[Path | None, tuple[Sight, Features]] = {}
        self._pools: dict[tuple[str, Path | None], Pool] = {}

    def sight(self, entry: dict[str, Any]) -> tuple[Sight, Features]:
        """Return what a pack sees with, and features by it."""
        is_of_leaves = entry["pack"] not in POOL_OF
        folder = folder_of(self.encoders, entry, is_of_leaves=is_of_leaves)
        if folder not in self._sights:
            sight, features = Sight(folder), self.shipped
            if folder is not None:
                features = Features(folder / "features.npz", sight.maker, self.shipped)
            self._sights[folder] = sight, features
        return self._sights[folder]

    def pool(self, entry: dict[str, Any]) -> Pool:
        sight, features = self.sight(entry)
        key = POOL_OF.get(entry["pack"], "leaf_disease"), sight.folder
        if key not in self._pools:
            self._pools[key] = Pool(self.pools / key[0], features)
        return self._pools[key]


def measure(entry: dict[str, Any], pool: Pool, others: Rows, sight: Sight, number: int) -> None:
    """Print the figures of one pack."""
    data, held, held_labels, given, left = drawn(entry, pool, number)
    shown = shown_kinds(stranger_kinds(), entry["own"])
    shipped = sight.strangers((*shown, *entry["hides"]))
    with_given = shipped.with_own(pool.features[given], ["look-alikes"] * len(given))
    own_features = pool.features[held]
    for what, strangers in (("alone", shipped), (f"with {GIVEN} look-alikes", with_given)):
        pack: Any = trained(data, strangers)
        labels, named = answers_of(pack, own_features)
        right = np.array(labels) == np.array(held_labels)
        _, other_named = answers_of(pack, others)
        look = answers_of(pack, pool.features[left])[1].sum() if left else 0
        of_names = right[named].mean() if named.any() else np.nan
        shares = probabilities(pack.head.names.logits(own_features), pack.info.temperature)
        surely = named & (shares.max(axis=1) >= least_probability(data, pack))
        of_sure = right[surely].mean() if surely.any() else np.nan
        print(
            f"| {entry['pack']} {what} | {len(data.classes)}, {len(held)} | {named.mean():.2f} | {of_names:.2f} | "
            f"{other_named.sum()} of {len(others)} | {look} of {len(left)} | "
            f"{surely.mean():.2f} | {of_sure:.2f} |",
            flush=True,
        )


def other_things(listed: dict[str, Any], pack: str, pools: Path, data: Path) -> list[bytes]:
    """Return the files of the tested other things of a pack."""
    contents: list[bytes] = []
    if POOL_OF.get(pack) != "pests":
        with zipfile.ZipFile(pools / "pests/images.zip") as archive:
            with (pools / "pests/labels.csv").open(encoding="utf-8", newline="") as file:
                rows = few_of_each(list(csv.DictReader(file)))
            contents += [archive.read(row["image"]) for row in rows]
    with zipfile.ZipFile(pools / "vegetation_masks/images_masks.zip") as archive:
        contents += [archive.read(n) for n in archive.namelist() if n.endswith(".jpg")][::EVERY]
    own = NOT_STRANGE.get(pack, ()) or (("jute_pests",) if POOL_OF.get(pack) == "pests" else ())
    for name in listed["tested"]["data"]:
        if name not in own:
            contents += [path.read_bytes() for path in photographs_of(data / name)]
    return contents


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pools", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--packs", nargs="*", default=[])
    parser.add_argument("--encoders", type=Path)
    parser.add_argument("--draw", type=int, default=0, help="number of the draw of pictures")
    arguments = parser.parse_args()
    listed = tomllib.loads(LISTED.read_text(encoding="utf-8"))
    measured = Measured(arguments.pools, arguments.features, arguments.encoders)
    for entry in listed["look_alikes"]:
        name = entry["pack"]
        if arguments.packs and name not in arguments.packs:
            continue
        sight, features = measured.sight(entry)
        pool = measured.pool(entry)
        others = features.of(other_things(listed, name, arguments.pools, arguments.data))
        try:
            measure(entry, pool, others, sight, arguments.draw)
        except UsageError as error:  # a class of one group: none can be held out
            print(f"| {name} | not measured: {error.message} |")


if __name__ == "__main__":
    main()
