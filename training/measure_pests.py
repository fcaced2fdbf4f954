"""Measure the pack of pests: new photographs, look-alikes, the test pictures, and pictures of other things.

Figures of docs/accuracy.md, "diagnose_pest_disease", of the pack of pests.

    python training/measure_pests.py --data ../shared/data [DIR ...] --pools ../shared/train --features features.npz

Needs the pack (``agrotools benchmarks get pests``, ``agrotools tools packs train pests``) and the extra ``train``.
"Named" is what the tool names: a picture that is not refused, with a best candidate of 0.5 or more. Pictures of other
things come from the folders of which nothing here learnt, as in ``measure_packs.py``. What the nets see in a picture is
stored in --features by its hash.
"""

import argparse
import csv
import hashlib
import json
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
from measure_packs import LEARNT_FROM, NO_PHOTOGRAPHS, photographs_of
from numpy.typing import NDArray
from PIL import Image, ImageOps
from scipy.stats import binomtest

from agrotools.loading.benchmarks import data_folder
from agrotools_tools.recognition import NAMED_FROM
from agrotools_tools.recognition.candidates import PESTS
from agrotools_tools.recognition.net import probabilities, shrunk_once
from agrotools_tools.recognition.pack_checks import folds_of, names_out_of_fold
from agrotools_tools.recognition.pack_features import PackFeatures, shipped_features
from agrotools_tools.recognition.pack_heads import TrainingData
from agrotools_tools.recognition.packs import Pack, load_pack
from agrotools_tools.recognition.pest_photos import FACTS, LIST


def other_pictures(roots: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield folder and content of photographs of other things, from sources of which nothing here learnt."""
    for root in roots:
        for path in sorted(root.glob("*/truth.json")):
            name = path.parent.name
            if name not in LEARNT_FROM | NO_PHOTOGRAPHS | {"jute_pests"}:
                for photograph in photographs_of(path.parent):
                    yield name, photograph.read_bytes()


class Features:
    """Features of pictures by the hash of their files, in a file.

    ``maker``: with another encoder than the one that ships. ``known``: features with the one that ships, of which those
    of the nets are taken.
    """

    def __init__(
        self, path: Path, maker: PackFeatures | None = None, known: "Features | None" = None
    ) -> None:
        self.path, self.rows = path, dict[str, NDArray[np.float32]]()
        self.maker, self.known = maker or shipped_features(), known
        if path.is_file():
            with np.load(path) as stored:
                self.rows = dict(zip(stored["names"].tolist(), stored["rows"], strict=True))

    def of(self, contents: Iterable[bytes]) -> NDArray[np.float32]:
        names: list[str] = []
        for content in contents:
            names.append(name := hashlib.sha256(content).hexdigest())
            if name not in self.rows:
                self.rows[name] = self._seen(content, name)
        np.savez(self.path, names=np.array([*self.rows]), rows=np.stack([*self.rows.values()]))
        return np.stack([self.rows[name] for name in names])

    def _seen(self, content: bytes, name: str) -> NDArray[np.float32]:
        with Image.open(BytesIO(content)) as picture:
            pixels = np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))
        if self.known is None or name not in self.known.rows:
            return np.concatenate(self.maker.blocks_of(pixels))
        encoder = self.maker.encoder
        own = encoder.embedding(shrunk_once(pixels))
        return np.concatenate([own, self.known.rows[name][encoder.info.width :]])


def answers_of(pack: Pack, features: NDArray[np.float32]) -> tuple[list[str], NDArray[np.bool_]]:
    """Return the likeliest labels, and whether they are named."""
    names, info = pack.head.names, pack.info
    shares = probabilities(names.logits(features), info.temperature)
    is_known = names.familiarity(features) >= info.threshold
    is_known &= ~pack.head.is_strange(features, info.most_stranger, info.most_look_alike)
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
    maker = shipped_features()
    widths = (maker.encoder.info.width, *(net.info.outputs["embedding"] for net in maker.nets))
    by = {
        "photographs": [row["group"] for row in rows],
        "look-alikes": [look_alikes[row["source"]] for row in rows],
    }
    for name, groups in by.items():
        data = TrainingData(
            seen, (*widths, seen.shape[1] - sum(widths)), classes, tuple(groups), names, ()
        )
        logits = names_out_of_fold(data, folds_of(data), strength)[0]
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
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--pools", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True)
    options = parser.parse_args()
    pack, features = load_pack(PESTS), Features(options.features)
    tests = json.loads((options.data[0] / "jute_pests/truth.json").read_text())
    seen = features.of(
        (options.data[0] / "jute_pests" / one["image"]).read_bytes() for one in tests
    )
    labels, named = answers_of(pack, seen)
    truths = [FACTS["classes"].get(one["label"]) for one in tests]
    right = np.array([truth == label for truth, label in zip(truths, labels, strict=True)])
    known = np.array([truth is not None for truth in truths])
    print(f"test pictures, likeliest right: {share(int(right[known].sum()), int(known.sum()))}")
    print(
        f"named {int(named[known].sum())}, right {int((named & right).sum())}; of dropped classes {named[~known].sum()}"
    )
    others = [*other_pictures(options.data)]
    folders = np.array([name for name, _ in others])
    _, named = answers_of(pack, features.of(content for _, content in others))
    for name in dict.fromkeys(folders.tolist()):
        some = named[folders == name]
        print(f"| {name} | {share(int(some.sum()), len(some))} |")
    print(f"| all other things | {share(int(named.sum()), len(named))} |", flush=True)
    cross_validated(options.pools, pack.info.regularisation, features)


if __name__ == "__main__":
    main()
