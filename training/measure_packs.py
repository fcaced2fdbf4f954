"""Measure packs on pictures of other things and on their own, from sources that neither nets nor strangers learnt from.

Part of ``measure_look_alikes.py`` and of ``measure_pests.py``.

    python training/measure_packs.py --pools ../shared/train --data DIR [DIR ...] [--keep SHARE]

For each collection: train on seven tenths of its groups, name the other three tenths, and name pictures of all other
sources. The pictures of leaves and weeds are those that the shipped nets did not learn from, but the encoder knows
them, so their figures are too good; ``measure_look_alikes.py --encoders`` avoids that. Collections of ``DIR``
are folders with ``truth.json``. Prints, and with ``--json FILE`` writes: the shares of own pictures that are not
refused and that get a name, how many of the names are right, the share of other pictures that get one, and what the
pack's own certificate says of both.
"""

import argparse
import io
import json
import shutil
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fit_strangeness import table_of
from PIL import Image

from agrotools.vision.reading import read_image
from agrotools_tools.recognition import NAMED_FROM
from agrotools_tools.recognition.labelled_pictures import LabelledImage, hold_out
from agrotools_tools.recognition.net import wilson
from agrotools_tools.recognition.pack_checks import KEEP
from agrotools_tools.recognition.pack_training import train_pack
from agrotools_tools.recognition.packs import Pack, read_pack

MOST_OF_CLASS = 60
"""Pictures of a class at most: about what a user brings."""
MOST_STRANGERS = 60
"""Pictures of another source at most."""
HELD = 0.3
LEAF_CROPS = ("bean", "blackgram", "chilli", "citrus", "coffee")
COLLECTIONS = {"mango_leaves": "mango", "rice_pests": "rice"}
"""Collections of DIR that have labels, with what their pictures show."""
NOT_STRANGE = {
    "bean": ("bean_leaf_class",),
    "coffee": ("coffee_leaf_class", "coffee_lesions"),
    "weeds": ("deepweeds",),
    "jute pests": ("jute_pests",),
    "mango_leaves": ("mango_leaves",),
    "rice_pests": ("rice_pests",),
}
"""Sources whose pictures show what a pack is trained on."""
LEARNT_FROM = {
    "bean_leaf_class", "coffee_leaf_class", "coffee_lesions", "deepweeds", "orchard_apples",
    "orchard_cherries", "orchard_pears",
}  # fmt: skip
"""Sources of which nets or strangers learnt other pictures: they are no strangers from elsewhere."""
NO_PHOTOGRAPHS = {
    "agri_text", "ag_vqa", "agrieval", "gta_entries", "gta_samples", "ocr_text", "sources_real",
    "s2_ndvi", "multiband", "chm", "sinop_season", "soybean_heights", "forest_heights",
    "stand_metrics", "amazon_bands",
}  # fmt: skip


class Row(NamedTuple):
    pack: str
    learnt: int
    held: int
    accepted: int
    """Held pictures that are not refused as strange; those without a name among them are unsure between classes."""
    named: int
    right: int
    strangers: int
    strangers_named: int
    certificate_named: float
    certificate_strangers: float
    by_source: dict[str, float]


def leaves_and_weeds(pools: Path, folder: Path) -> dict[str, list[LabelledImage]]:
    """Unpack labelled pictures of the pools that no net learnt from, and those of jute pests."""
    found: dict[str, list[LabelledImage]] = defaultdict(list)
    for pool in ("leaf_disease", "weeds", "pests"):
        rows = table_of(pools / pool)
        if pool != "pests":  # of which no net learnt
            rows = [row for row in rows if row["split"] != "train"]
        with zipfile.ZipFile(pools / pool / "images.zip") as archive:
            for row in few_of_each(rows):
                name = {"leaf_disease": row.get("crop", ""), "pests": "jute pests"}.get(pool, pool)
                path = folder / pool / row["image"]
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(archive.read(row["image"]))
                found[name].append(LabelledImage(path, row["label"], row["group"]))
    return found


def few_of_each(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    draw, count = np.random.default_rng(11), defaultdict(int)
    chosen: list[dict[str, Any]] = []
    for place in draw.permutation(len(rows)):
        row = rows[int(place)]
        count[row["label"]] += 1
        if count[row["label"]] <= MOST_OF_CLASS:
            chosen.append(row)
    return chosen


def collection(folder: Path) -> list[LabelledImage]:
    items = json.loads((folder / "truth.json").read_text())
    return [
        LabelledImage(folder / item["image"], item["label"], item["cluster"])
        for item in items
        if item.get("label")
    ]


def photographs_of(folder: Path) -> list[Path]:
    """Return some photographs of a source, whatever its task."""
    items = json.loads((folder / "truth.json").read_text())
    paths = {folder / item[key] for item in items for key in ("image", "before") if item.get(key)}
    order = np.random.default_rng(2).permutation(len(paths))
    return [sorted(paths)[int(place)] for place in order[:MOST_STRANGERS]]


def measure(
    name: str,
    pictures: list[LabelledImage],
    strangers: Mapping[str, list[Path]],
    work: Path,
    keep: float,
) -> Row:
    learnt, held = hold_out(_enough(pictures), HELD)
    shows = [COLLECTIONS.get(name, name)]
    out = work / "packs" / name
    shutil.rmtree(out, ignore_errors=True)
    info = train_pack(learnt, out, keep=keep, shows=shows)
    pack = read_pack(out)
    judged = [_judge(pack, one.path) for one in held]
    named = [(found, one.label) for (_, found), one in zip(judged, held, strict=True)]
    others = {
        source: [_judge(pack, path)[1] is not None for path in paths]
        for source, paths in strangers.items()
        if source not in NOT_STRANGE.get(name, ())
    }
    every = [one for some in others.values() for one in some]
    return Row(
        name,
        len(learnt),
        len(held),
        sum(is_known for is_known, _ in judged),
        sum(found is not None for found, _ in named),
        sum(found == label for found, label in named),
        len(every),
        sum(every),
        info.figures.named,
        info.figures.strangers.named,
        {source: float(np.mean(some)) for source, some in others.items() if any(some)},
    )


def _enough(pictures: list[LabelledImage]) -> list[LabelledImage]:
    """Leave out classes of fewer than six pictures or three groups."""
    groups: dict[str, list[str]] = defaultdict(list)
    for one in pictures:
        groups[one.label].append(one.group)
    return [
        one for one in pictures if len(groups[one.label]) >= 6 and len({*groups[one.label]}) >= 3
    ]


def _judge(pack: Pack, path: Path) -> tuple[bool, str | None]:
    """Return whether a picture is not refused as strange, and the name that it gets, if any."""
    if path.suffix == ".webp":
        with Image.open(io.BytesIO(path.read_bytes())) as picture:
            pixels = np.asarray(picture.convert("RGB"))
    else:
        pixels = read_image(path, shown_as=path.name).pixels
    judged = pack.judge(pixels)
    shares = judged.probabilities()
    if not judged.is_known or shares.max() < NAMED_FROM:
        return judged.is_known, None
    return True, judged.classes[int(shares.argmax())]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pools", type=Path, required=True)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--keep", type=float, default=KEEP)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folders = {
        path.parent.name: path.parent
        for root in arguments.data
        for path in sorted(root.glob("*/truth.json"))
        if path.parent.name not in NO_PHOTOGRAPHS
    }
    strangers = {
        name: photographs_of(folder) for name, folder in folders.items() if name not in LEARNT_FROM
    }
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        packs = leaves_and_weeds(arguments.pools, work)
        packs |= {name: collection(folders[name]) for name in COLLECTIONS if name in folders}
        rows = [
            measure(name, pictures, strangers, work, arguments.keep)
            for name, pictures in sorted(packs.items())
            if name in (*LEAF_CROPS, "weeds", "jute pests", *COLLECTIONS)
        ]
    for row in rows:
        low, high = wilson(row.strangers_named, row.strangers)
        print(
            f"{row.pack}: learnt {row.learnt}, held {row.held}: accepted {row.accepted / row.held:.2f}, "
            f"named {row.named / row.held:.2f}, "
            f"of these right {row.right / max(1, row.named):.2f}; strangers named "
            f"{row.strangers_named} of {row.strangers} ({100 * low:.1f} to {100 * high:.1f} %); "
            f"certificate: named {row.certificate_named:.2f}, strangers "
            f"{row.certificate_strangers:.3f}; {row.by_source}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
