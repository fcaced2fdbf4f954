"""Measure the pack of pests: new photographs, look-alikes, the test pictures, and pictures of other things.

    python training/measure_pests.py --data ../shared/data --pools ../shared/train --features features.npz

Needs the pack (``agrotools benchmarks get pests``, ``agrotools tools packs train pests``) and the extra ``train``.
Writes Markdown tables. "Named" is what the tool names: a picture that is not refused, with a best candidate of 0.5 or
more. Pictures of other things come from every folder and pool but those of pests; kinds of which pictures were looked
at when the share kept was chosen are apart from the others. What the nets see in a picture is stored in --features by
its hash.
"""

import argparse
import csv
import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import skimage
from numpy.typing import NDArray
from PIL import Image, ImageOps
from scipy.stats import binomtest

from agrotools.loading.benchmarks import data_folder
from agrotools_tools.recognition import NAMED_FROM
from agrotools_tools.recognition import pack_training as training
from agrotools_tools.recognition.candidates import PESTS
from agrotools_tools.recognition.net import SHIPPED, picture_features, probabilities, shipped_net
from agrotools_tools.recognition.packs import Pack, load_pack
from agrotools_tools.recognition.pest_photos import FACTS, LIST

MOST = 400
"""Pictures of a folder or pool."""
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
POOLS = {
    "weeds": "images.zip",
    "fruit_boxes": "images.zip",
    "leaf_disease": "images.zip",
} | dict.fromkeys(("leaf_lesion_masks", "vegetation_masks"), "images_masks.zip")
CHOSEN_ON = (
    "weeds fruit_boxes leaf_disease leaf_lesion_masks deepweeds orchard_apples orchard_pears orchard_cherries "
    "rgbd_apples bean_leaf_class coffee_leaf_class coffee_lesions"
).split()
"""Weeds of rangeland, fruit trees, and leaves of five crops."""
LEFT_OUT = ("mask", "vegetation/", "label", "ip102", "_trimmed", "IP003000336")
"""Parts of the names of masks, pictures of pests (a moth among those of ag_vqa) and second copies."""
Read = Callable[[], bytes]


def other_pictures(data: Path, pools: Path) -> Iterator[tuple[str, Read]]:
    """Yield folder or pool, and reader, of pictures that show no pest."""
    for folder in (*sorted(data.iterdir()), Path(skimage.__file__).parent / "data"):
        if folder.is_dir() and folder.name != "jute_pests":
            paths = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES]
            names = {path: path.relative_to(folder.parent).as_posix() for path in paths}
            paths = [path for path in paths if not any(part in names[path] for part in LEFT_OUT)]
            for place in sorted(np.random.default_rng(0).permutation(len(paths))[:MOST]):
                yield (
                    ("scikit-image" if folder.name == "data" else folder.name),
                    paths[place].read_bytes,
                )
    for pool, name in POOLS.items():
        archive = zipfile.ZipFile(pools / pool / name)
        members = [
            each
            for each in sorted(archive.namelist())
            if each.endswith(SUFFIXES) and "mask" not in each
        ]
        for place in sorted(np.random.default_rng(0).permutation(len(members))[:MOST]):
            yield pool, lambda archive=archive, member=members[place]: archive.read(member)


class Features:
    """Features of pictures by the hash of their files, in a file."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, dict[str, NDArray[np.float32]]()
        if path.is_file():
            with np.load(path) as stored:
                self.rows = dict(zip(stored["names"].tolist(), stored["rows"], strict=True))

    def of(self, contents: Iterable[bytes]) -> NDArray[np.float32]:
        nets = [shipped_net(name) for name in SHIPPED]
        names: list[str] = []
        for content in contents:
            names.append(name := hashlib.sha256(content).hexdigest())
            if name not in self.rows:
                pixels = np.asarray(
                    ImageOps.exif_transpose(Image.open(BytesIO(content))).convert("RGB")
                )
                self.rows[name] = np.concatenate(picture_features(pixels, nets))
        np.savez(self.path, names=np.array([*self.rows]), rows=np.stack([*self.rows.values()]))
        return np.stack([self.rows[name] for name in names])


def answers_of(pack: Pack, features: NDArray[np.float32]) -> tuple[list[str], NDArray[np.bool_]]:
    """Return the likeliest labels, and whether they are named."""
    shares = probabilities(pack.head.logits(features), pack.info.temperature)
    is_known = pack.head.familiarity(features) >= pack.info.threshold
    return [pack.info.classes[place] for place in shares.argmax(axis=1)], is_known & (
        shares.max(axis=1) >= NAMED_FROM
    )


def share(right: int, count: int) -> str:
    low, high = binomtest(right, count).proportion_ci(method="exact")
    return f"{right} of {count}: {right / count:.4f} ({low:.4f} to {high:.4f})"


def cross_validated(pools: Path, strength: float, features: Features) -> None:
    """Print shares right out of fold, by photograph and by the pool's groups of look-alikes."""
    folder = data_folder() / PESTS
    rows = [*csv.DictReader((folder / LIST).read_text(encoding="utf-8").splitlines())]
    pool = csv.DictReader((pools / "pests/labels.csv").read_text(encoding="utf-8").splitlines())
    look_alikes = {row["source"].partition(":")[2]: row["group"] for row in pool}
    names = tuple(sorted({row["label"] for row in rows}))
    classes = np.array([names.index(row["label"]) for row in rows])
    seen = features.of((folder / row["image"]).read_bytes() for row in rows)
    widths = (*(shipped_net(name).info.outputs["embedding"] for name in SHIPPED),)
    by = {
        "photographs": [row["group"] for row in rows],
        "look-alikes": [look_alikes[row["source"]] for row in rows],
    }
    for name, groups in by.items():
        data = training._Data(
            seen, (*widths, seen.shape[1] - sum(widths)), classes, tuple(groups), names, ()
        )
        logits = training._out_of_fold(data, training._folds(data), strength)
        right = logits.argmax(axis=1) == classes
        each = ", ".join(
            f"{label} {right[classes == number].mean():.2f}" for number, label in enumerate(names)
        )
        print(
            f"{name} apart: right {right.mean():.3f} of {len(right)} in {len(set(groups))} groups; {each}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pools", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    options = parser.parse_args()
    pack, features = load_pack(PESTS), Features(options.features)
    tests = json.loads((options.data / "jute_pests/truth.json").read_text())
    seen = features.of((options.data / "jute_pests" / one["image"]).read_bytes() for one in tests)
    labels, named = answers_of(pack, seen)
    truths = [FACTS["classes"].get(one["label"]) for one in tests]
    right = np.array([truth == label for truth, label in zip(truths, labels, strict=True)])
    known = np.array([truth is not None for truth in truths])
    print(f"test pictures, likeliest right: {share(int(right[known].sum()), int(known.sum()))}")
    print(
        f"named {int(named[known].sum())}, right {int((named & right).sum())}; of dropped classes {named[~known].sum()}"
    )
    others = [*other_pictures(options.data, options.pools)]
    folders = np.array([name for name, _ in others])
    _, named = answers_of(pack, features.of(read() for _, read in others))
    for name in dict.fromkeys(folders.tolist()):
        print(
            f"| {name} | {share(int(named[folders == name].sum()), int((folders == name).sum()))} |"
        )
    is_chosen_on = np.isin(folders, CHOSEN_ON)
    for words, some in (
        ("chosen on", is_chosen_on),
        ("other kinds", ~is_chosen_on),
        ("all", np.ones_like(named)),
    ):
        print(f"| {words} | {share(int(named[some].sum()), int(some.sum()))} |", flush=True)
    cross_validated(options.pools, pack.info.regularisation, features)


if __name__ == "__main__":
    main()
