"""Gather the strangers: features of pictures of other things, from which packs learn what is none of their classes.

Makes src/agrotools_tools/data/strangers.*.

    python training/gather_strangers.py --pools ../shared/train --everyday DIR [--out DIR] [--encoder FILE]

Only features are stored, of pictures under CC BY or MIT and of drawings of this package; pools under share-alike
licences, or with no licence stated, give none. No picture of a benchmark is among them. ``--everyday``: the pool of
``pool_everyday.py``, of which the kinds are taken that ``other_things.toml`` lists as learnt. ``--encoder``: another
encoder than the one that ships (``nets/left_out.py``).
"""

import argparse
import io
import tomllib
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fit_strangeness import DRAWINGS, drawn_pixels, table_of
from nets.left_out import features_with
from numpy.typing import NDArray
from PIL import Image

from agrotools_tools.recognition.strangers import StrangerKind, write_strangers

LISTED = Path(__file__).with_name("other_things.toml")
TARGET = Path(__file__).parent.parent / "src/agrotools_tools/data"
EACH = 60
"""Pictures of a kind of photograph: the least that shows all classes of the leaves."""
EACH_DRAWN = 35
"""Drawings of a kind: they are more alike, and no user's picture looks like them."""
FIRST_SEED = 910_000
"""Seed of the first drawing; used nowhere else."""
_A = "ai-agriculture-circuits-and-systems"
_WEEDS = (
    "chinee apple", "lantana", "parkinsonia", "parthenium", "prickly acacia", "rubber vine",
    "siam weed", "snake weed",
)  # fmt: skip
_NO_WEED = ("negative", "no weed", "not a weed", "background", "soil")
PHOTOGRAPHS = {
    "apples on trees": (("apple", "apples"), f"{_A}/AppleBBCH81 and AppleBBCH76, CC BY 4.0"),
    "pears on trees": (("pear", "pears"), f"{_A}/Pear640, CC BY 4.0"),
    "cherries on trees": (("cherry", "cherries"), f"{_A}/CherryBBCH81 and CherryBBCH72, CC BY 4.0"),
    "tomatoes on plants": (("tomato", "tomatoes"), f"{_A}/tomato_plant, CC BY 4.0"),
    "leaves of bean": (("bean", "beans"), f"{_A}/bean_disease_uganda, CC BY 4.0"),
    "leaves of coffee": (("coffee",), "esgario/lara2018, MIT"),
    "leaves of black gram": (("black gram", "blackgram"), f"{_A}/blackgram, CC BY 4.0"),
    "leaves of chilli": (("chilli", "chili", "pepper"), f"{_A}/chilli_leaf, CC BY 4.0"),
    "leaves of citrus": (
        ("citrus", "orange", "lemon", "lime"),
        f"{_A}/citrus_leaves, CC BY 4.0",
    ),
    "weeds of rangeland": (_WEEDS, f"{_A}/deep_weeds, CC BY 4.0"),
    "rangeland without weeds": (_NO_WEED, f"{_A}/deep_weeds, CC BY 4.0"),
}
"""Words of a label that make a kind no stranger, and the source of the kind's pictures."""


def _with_plurals(*words: str) -> tuple[str, ...]:
    return tuple(form for word in words for form in (word, f"{word}s"))


_COCO = "photographs of Flickr in COCO 2017, CC BY 2.0"
_SHOPS = "marcusklasson/GroceryStoreDataset, MIT"
EVERYDAY = {
    "people": (("people", *_with_plurals("person", "human", "hand", "face")), _COCO),
    "animals": (
        (
            "livestock", "cattle", "sheep", "poultry",
            *_with_plurals("animal", "bird", "cat", "chicken", "cow", "dog", "goat", "horse", "pig"),
        ),
        _COCO,
    ),
    "vehicles and streets": (_with_plurals("vehicle", "street", "car", "tractor", "truck"), _COCO),
    "rooms and food": (("food", *_with_plurals("room", "kitchen")), _COCO),
    "fruit in shops": (
        (
            "mango", "mangoes", "peach", "peaches",
            *_with_plurals(
                "fruit", "apple", "avocado", "banana", "grapefruit", "kiwi", "lemon", "lime", "melon",
                "nectarine", "orange", "papaya", "passion fruit", "pear", "pineapple", "plum", "pomegranate",
                "satsuma",
            ),
        ),
        _SHOPS,
    ),
    "vegetables in shops": (
        (
            "asparagus", "garlic", "ginger", "potato", "potatoes", "tomato", "tomatoes",
            *_with_plurals(
                "vegetable", "aubergine", "beet", "cabbage", "carrot", "cucumber", "leek", "mushroom", "onion",
                "pepper", "zucchini",
            ),
        ),
        _SHOPS,
    ),
    "cartons in shops": (_with_plurals("carton", "package"), _SHOPS),
    "roads": (
        _with_plurals("road"),
        "udacity/CarND-LaneLines-P1, CarND-Advanced-Lane-Lines and CarND-Vehicle-Detection, MIT",
    ),
}  # fmt: skip
"""The same of everyday photographs. The words for fruit and vegetables are those of the shops' pictures."""


def photographs(pools: Path) -> dict[str, list[NDArray[np.uint8]]]:
    """Return pictures of each kind of photograph: classes and groups in turn, by a fixed draw."""
    gathered: dict[str, list[NDArray[np.uint8]]] = {}
    for pool in ("fruit_boxes", "leaf_disease", "weeds"):
        rows = defaultdict(list)
        for row in table_of(pools / pool):
            rows[_kind_of(pool, row)].append(row)
        with zipfile.ZipFile(pools / pool / "images.zip") as archive:
            for kind in sorted(rows):
                chosen = _in_turn(rows[kind])[:EACH]
                gathered[kind] = [_pixels(archive.read(row["image"])) for row in chosen]
    return gathered


def everyday_photographs(pool: Path) -> dict[str, list[NDArray[np.uint8]]]:
    """Return the everyday photographs that packs learn from, by kind."""
    learnt = tomllib.loads(LISTED.read_text(encoding="utf-8"))["everyday"]["learnt"]
    gathered: dict[str, list[NDArray[np.uint8]]] = {kind: [] for kind in learnt}
    with zipfile.ZipFile(pool / "images.zip") as archive:
        for row in table_of(pool):
            if row["label"] in gathered:
                gathered[row["label"]].append(_pixels(archive.read(row["image"])))
    return gathered


def drawings() -> dict[str, list[NDArray[np.uint8]]]:
    """Return drawings of each kind, of all four difficulties."""
    return {
        kind: [
            drawn_pixels(kind, seed, seed % 4)
            for seed in range(FIRST_SEED, FIRST_SEED + EACH_DRAWN)
        ]
        for kind in DRAWINGS
    }


def _kind_of(pool: str, row: dict[str, Any]) -> str:
    if pool == "weeds":
        return "rangeland without weeds" if row["label"] == "negative" else "weeds of rangeland"
    if pool == "leaf_disease":
        crop = "black gram" if row["crop"] == "blackgram" else row["crop"]
        return f"leaves of {crop}"
    # A tile without a label shows the fruit of its source, which is in the name of the source's folder.
    source = str(row["source"]).lower()
    fruit = next(one for one in ("apple", "pear", "cherry", "tomato") if one in source)
    return {
        "apple": "apples on trees",
        "pear": "pears on trees",
        "cherry": "cherries on trees",
        "tomato": "tomatoes on plants",
    }[fruit]


def _in_turn(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows so that labels take turns, and groups within them."""
    draw = np.random.default_rng(3)
    of_label: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    seen: dict[tuple[str, str], int] = defaultdict(int)
    for place in draw.permutation(len(rows)):
        row = rows[int(place)]
        key = (str(row.get("label")), str(row["group"]))
        of_label[key[0]].append((seen[key], row))
        seen[key] += 1
    queues = [_of_turn(of_label[label]) for label in sorted(of_label)]
    chosen: list[dict[str, Any]] = []
    while queues:
        for queue in [*queues]:
            row = next(queue, None)
            if row is None:
                queues.remove(queue)
            else:
                chosen.append(row)
    return chosen


def _of_turn(rows: list[tuple[int, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    return iter([row for _, row in sorted(rows, key=lambda one: one[0])])


def _pixels(content: bytes) -> NDArray[np.uint8]:
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture.convert("RGB"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pools", type=Path, required=True)
    parser.add_argument("--everyday", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=TARGET)
    parser.add_argument("--encoder", type=Path)
    arguments = parser.parse_args()
    pictures = photographs(arguments.pools) | drawings() | everyday_photographs(arguments.everyday)
    kinds = [
        StrangerKind(name=name, words=words, source=source, pictures=0)
        for name, (words, source) in PHOTOGRAPHS.items()
    ]
    kinds += [StrangerKind(name=name, pictures=0) for name in DRAWINGS]
    kinds += [
        StrangerKind(name=name, words=words, source=source, everyday=True, pictures=0)
        for name, (words, source) in EVERYDAY.items()
    ]
    recipe = "training/gather_strangers.py"
    maker = features_with(arguments.encoder)
    info = write_strangers(arguments.out, kinds, pictures, maker, recipe)
    total = sum(kind.pictures for kind in info.kinds)
    size = (arguments.out / "strangers.npz").stat().st_size
    print(f"{total} pictures of {len(info.kinds)} kinds, {size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
