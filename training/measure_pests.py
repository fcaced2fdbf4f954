"""Measure the pack of pests: new photographs, look-alikes, the test pictures, and pictures of other things.

    python training/measure_pests.py --data ../shared/data --pools ../shared/train

Needs the pack (``agrotools data get pests``, ``agrotools packs train pests``) and the extra ``train``. Writes Markdown
tables. "Named" is what the tool names: a picture that is not refused, with a best candidate of 0.5 or more. Pictures of
other things come from every folder and pool but those of pests; kinds of which pictures were looked at when the share
kept was chosen are apart from the others.
"""

import argparse
import csv
import json
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import skimage
from numpy.typing import NDArray
from PIL import Image, ImageOps
from scipy.stats import binomtest

from agrotools.benchmarks.loading import data_folder
from agrotools.benchmarks.pests import FACTS, LIST
from agrotools.tools.recognition import pack_training as training
from agrotools.tools.recognition.candidates import NAMED_FROM, PESTS
from agrotools.tools.recognition.labelled_pictures import read_labelled
from agrotools.tools.recognition.packs import Pack, load_pack

MOST = 400
"""Pictures of a folder or pool."""
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
POOLS = {"weeds": "images.zip", "fruit_boxes": "images.zip", "leaf_disease": "images.zip"} | dict.fromkeys(
    ("leaf_lesion_masks", "vegetation_masks"), "images_masks.zip"
)
CHOSEN_ON = (
    "weeds fruit_boxes leaf_disease leaf_lesion_masks deepweeds orchard_apples orchard_pears orchard_cherries "
    "rgbd_apples bean_leaf_class coffee_leaf_class coffee_lesions"
).split()
"""Weeds of rangeland, fruit trees, and leaves of five crops."""
LEFT_OUT = ("mask", "vegetation/", "label", "ip102", "_trimmed", "0_image_4.jpg")
"""Parts of the names of masks, pictures of pests (a moth among those of ag_vqa) and second copies."""
Read = Callable[[], bytes]


def other_pictures(data: Path, pools: Path) -> Iterator[tuple[str, Read]]:
    """Yield folder or pool, and reader, of pictures that show no pest."""
    draw = np.random.default_rng(0)
    for folder in (*sorted(data.iterdir()), Path(skimage.__file__).parent / "data"):
        if folder.is_dir() and folder.name != "jute_pests":
            paths = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES]
            names = {path: path.relative_to(folder.parent).as_posix() for path in paths}
            paths = [path for path in paths if not any(part in names[path] for part in LEFT_OUT)]
            for place in sorted(draw.permutation(len(paths))[:MOST]):
                yield ("scikit-image" if folder.name == "data" else folder.name), paths[place].read_bytes
    for pool, name in POOLS.items():
        archive = zipfile.ZipFile(pools / pool / name)
        members = [each for each in sorted(archive.namelist()) if each.endswith(SUFFIXES) and "mask" not in each]
        for place in sorted(draw.permutation(len(members))[:MOST]):
            yield pool, lambda archive=archive, member=members[place]: archive.read(member)


def answer_of(pack: Pack, content: bytes) -> tuple[str, bool]:
    """Return the likeliest label, and whether it is named."""
    pixels = np.asarray(ImageOps.exif_transpose(Image.open(BytesIO(content))).convert("RGB"))
    judgement = pack.judge(pixels)
    shares = judgement.probabilities()
    return judgement.classes[int(shares.argmax())], judgement.is_known and float(shares.max()) >= NAMED_FROM


def share(right: int, count: int) -> str:
    low, high = binomtest(right, count).proportion_ci(method="exact")
    return f"{right} of {count}: {right / count:.4f} ({low:.4f} to {high:.4f})"


def cross_validated(pools: Path, strength: float) -> None:
    """Print shares right out of fold, by photograph and by the pool's groups of look-alikes."""
    folder = data_folder() / PESTS
    nets = [training.shipped_net(name) for name in training.SHIPPED]
    data = training._extract_features(read_labelled(folder, folder / LIST), nets, False, print)
    with (folder / LIST).open(encoding="utf-8") as listed, (pools / "pests/labels.csv").open(encoding="utf-8") as rows:
        pool = {row["source"].partition(":")[2]: row for row in csv.DictReader(rows)}
        likes = [pool[row["source"]]["group"] for row in csv.DictReader(listed)]
    for name, groups in (("photographs", data.groups), ("look-alikes", tuple(likes))):
        grouped = training.replace(data, groups=groups)
        logits = training._out_of_fold(grouped, training._folds(grouped), strength)
        right = logits.argmax(axis=1) == data.classes
        weights = np.array([1 / Counter(groups)[group] for group in set(groups)])
        print(f"| {name} apart | {len(right)} in {len(weights)} | {right.mean():.3f} |")
        by_class: dict[str, NDArray[np.bool_]] = {
            label: right[data.classes == number] for number, label in enumerate(data.names)
        }
        print("|  | by class | " + ", ".join(f"{label} {some.mean():.2f}" for label, some in by_class.items()) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pools", type=Path, required=True)
    options = parser.parse_args()
    pack = load_pack(PESTS)
    tests = json.loads((options.data / "jute_pests/truth.json").read_text())
    answers = [
        (
            FACTS["classes"].get(one["label"]),
            *answer_of(pack, (options.data / "jute_pests" / one["image"]).read_bytes()),
        )
        for one in tests
    ]
    known = [(truth == label, named) for truth, label, named in answers if truth]
    print(f"test pictures, likeliest right: {share(sum(right for right, _ in known), len(known))}")
    print(f"named: {sum(named for _, named in known)}, right {sum(right and named for right, named in known)}; ")
    print(f"of dropped classes named: {sum(named for truth, _, named in answers if not truth)}")
    counts: dict[str, list[bool]] = defaultdict(list)
    for name, read in other_pictures(options.data, options.pools):
        counts[name].append(answer_of(pack, read())[1])
    print("| other pictures | named |\n|---|---|")
    for name, some in counts.items():
        print(f"| {name} | {share(sum(some), len(some))} |")
    for words, wanted in (("kinds chosen on", True), ("other kinds", False), ("all", None)):
        some = [each for name, row in counts.items() if wanted in (None, name in CHOSEN_ON) for each in row]
        print(f"| {words} | {share(sum(some), len(some))} |", flush=True)
    cross_validated(options.pools, pack.info.regularisation)


if __name__ == "__main__":
    main()
