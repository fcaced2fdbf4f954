"""Measure linear heads on the encoder beside what ships: figures of docs/packs-tried.md and docs/accuracy.md.

    python training/measure_heads.py {leaves,weeds} --pools ../shared/train --kept DIR --published FILE
    python training/measure_heads.py pests --pools ../shared/train --data DIR --features FILE

Needs the group ``train-nets`` and the extra ``train``.

- ``leaves``: names of leaves on the validation pictures of the pool, from which neither the head nor the net learnt.
- ``weeds``: names of weeds on the capture days, and on the pictures of a random split, that ``train_weed_net.py``
  leaves out.
- Both are with the published encoder, because the one that ships learnt from these leaves and weeds.
- ``pests``: names and other things by the share of photographs that a pack of pests keeps (``KEEP`` of
  ``pest_photos.py``), with photographs left out.
"""

import argparse
import csv
import lzma
import tomllib
import zipfile
from pathlib import Path

import numpy as np
from finetune_backbone import interval_by_group
from measure_look_alikes import LISTED, other_things
from measure_packs import few_of_each
from measure_pests import Features
from nets import pool
from nets.inner import EMBEDDING, encoded
from nets.overlap import pool_rows
from numpy.typing import NDArray
from train_leaf_net import CROPS
from train_weed_net import split_rows

from agrotools_tools.recognition import NAMED_FROM
from agrotools_tools.recognition.net import fit_temperature, probabilities, threshold_for_share
from agrotools_tools.recognition.pack_checks import KEEP_OF_STRANGERS, folds_of, names_out_of_fold
from agrotools_tools.recognition.pack_features import shipped_features
from agrotools_tools.recognition.pack_heads import TrainingData, fit_names, fit_strangers
from agrotools_tools.recognition.strangers import strangers_for
from agrotools_tools.shipped import shipped_file

STRENGTHS = (1.0, 10.0, 100.0)
"""Inverse penalty strengths: those that packs try."""
STRENGTH = 10.0
"""Strength of the heads of pests, held."""
KEEPS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
Chosen = NDArray[np.bool_]


def measure_head(
    what: str, rows: list[pool.Row], numbers: NDArray[np.float32], learnt: Chosen, judged: Chosen
) -> None:
    """Print how many names of a head are right, for each strength of its penalty."""
    names = tuple(sorted({row.label for row in rows}))
    classes = np.array([names.index(row.label) for row in rows])
    groups = np.array([row.group for row in rows])
    data = TrainingData(numbers, (numbers.shape[1],), classes, tuple(groups), names, ())
    for strength in STRENGTHS:
        head = fit_names(data, np.flatnonzero(learnt), strength)
        right = head.logits(numbers[judged]).argmax(axis=1) == classes[judged]
        low, high = interval_by_group(right.astype(np.float32), groups[judged])
        print(
            f"{what}, strength {strength:g}: right {right.mean():.3f} ({low:.3f} to {high:.3f}, by group) of "
            f"{len(right)} in {len(np.unique(groups[judged]))} groups; learnt {learnt.sum()}",
            flush=True,
        )


def measure_leaves(pools: Path, kept: Path, published: Path) -> None:
    rows, numbers = _encoded_rows(pools / "leaf_disease", kept, published)
    learnt = np.array([row.part == "train" for row in rows])
    is_named = np.array([row.fields["crop"] in CROPS for row in rows])
    measure_head("leaves", rows, numbers, learnt, ~learnt & is_named)


def measure_weeds(pools: Path, kept: Path, published: Path) -> None:
    rows, numbers = _encoded_rows(pools / "weeds", kept, published)
    for kind, reported in (("days", "calibrate"), ("random", "report")):
        uses = np.array(split_rows(rows, kind)[0])
        measure_head(f"weeds, {kind}", rows, numbers, uses == "learn", uses == reported)


def _encoded_rows(
    folder: Path, kept: Path, published: Path
) -> tuple[list[pool.Row], NDArray[np.float32]]:
    rows = pool.read_rows(folder)
    numbers = encoded(folder, [row.image for row in rows], [EMBEDDING], kept, file=published)[0]
    return rows, np.asarray(numbers, np.float32)


def measure_pests(pools: Path, data_folder: Path, features: Features) -> None:
    """Print, for each share of photographs that is familiar enough, what gets a name and how much of it is right."""
    listed = lzma.decompress(shipped_file("pests.csv.xz").read_bytes()).decode().splitlines()
    facts = {row["source"]: row for row in csv.DictReader(listed)}
    rows = few_of_each([dict(row) for row in pool_rows(pools / "pests")])
    taken = {row["image"]: facts.get(row["source"].partition(":")[2]) for row in rows}
    of_row = {image: fact for image, fact in taken.items() if fact}
    with zipfile.ZipFile(pools / "pests/images.zip") as archive:
        own = features.of(archive.read(image) for image in of_row)
    maker = shipped_features()
    widths = (maker.encoder.info.width, *(net.info.outputs["embedding"] for net in maker.nets))
    names = tuple(sorted({fact["label"] for fact in of_row.values()}))
    data = TrainingData(
        own,
        (*widths, own.shape[1] - sum(widths)),
        np.array([names.index(fact["label"]) for fact in of_row.values()]),
        tuple(fact["group"] for fact in of_row.values()),
        names,
        (),
    )
    listed_others = tomllib.loads(LISTED.read_text(encoding="utf-8"))
    others = features.of(other_things(listed_others, "beetles and crickets", pools, data_folder))
    folds, strangers = folds_of(data), strangers_for(maker)
    logits, familiarity = names_out_of_fold(data, folds, STRENGTH)
    odds = np.zeros(len(own))
    for learnt, held in folds:
        odds[held] = fit_strangers(data, learnt, strangers).odds(own[held])
    every = np.arange(len(own))
    of_all, other_odds = (
        fit_names(data, every, STRENGTH),
        fit_strangers(data, every, strangers).odds(others),
    )
    most = -threshold_for_share(-odds, KEEP_OF_STRANGERS)
    temperature = fit_temperature(logits, data.classes)
    sure = probabilities(logits, temperature).max(axis=1) >= NAMED_FROM
    sure_of_others = probabilities(of_all.logits(others), temperature).max(axis=1) >= NAMED_FROM
    right = logits.argmax(axis=1) == data.classes
    groups = np.array(data.groups)
    low, high = interval_by_group(right.astype(np.float32), groups)
    print(
        f"pests: right {right.mean():.3f} ({low:.3f} to {high:.3f}, by photograph) of {len(own)} in "
        f"{len(np.unique(groups))} photographs; by label "
        + ", ".join(
            f"{name} {right[data.classes == number].mean():.2f}"
            for number, name in enumerate(names)
        )
    )
    for keep in KEEPS:
        least = threshold_for_share(familiarity, keep)
        named = sure & (familiarity >= least) & (odds <= most)
        other_named = sure_of_others & (of_all.familiarity(others) >= least) & (other_odds <= most)
        low, high = interval_by_group(right[named].astype(np.float32), groups[named])
        print(
            f"keep {keep:.2f}: named {named.mean():.3f}, right {right[named].mean():.3f} ({low:.3f} to {high:.3f}, "
            f"by photograph); other things named {other_named.sum()} of {len(others)}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("leaves", "weeds", "pests"))
    parser.add_argument("--pools", type=Path, required=True)
    parser.add_argument("--kept", type=Path, help="folder for what the encoder makes of pictures")
    parser.add_argument("--published", type=Path, help="the encoder of build_backbone.py --out")
    parser.add_argument("--data", type=Path, help="folder of pictures of other things")
    parser.add_argument("--features", type=Path, help="file for features of packs")
    options = parser.parse_args()
    if options.what == "pests":
        if not options.data or not options.features:
            parser.error("pests needs --data and --features")
        measure_pests(options.pools, options.data, Features(options.features))
        return
    if not options.kept or not options.published:
        parser.error(f"{options.what} needs --kept and --published")
    measure = measure_leaves if options.what == "leaves" else measure_weeds
    measure(options.pools, options.kept, options.published)


if __name__ == "__main__":
    main()
