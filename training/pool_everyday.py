"""Put photographs of everyday things into a pool, from which strangers are gathered and on which packs are tested.

Makes OUT/images.zip and OUT/labels.csv; ``other_things.toml`` says which kinds are learnt and which only tested.

    python training/pool_everyday.py --clones DIR --out DIR

CLONES holds copies of the repositories of :data:`COMMITS`, as OWNER/NAME. Pictures are shrunk to the size of the other
pools. A kind has at most :data:`EACH` pictures, drawn at random with a fixed seed. Licences as stated: ``SOURCES.md``;
kinds without an open licence are only tested.
"""

import argparse
import csv
import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from PIL import Image, ImageOps

COMMITS = {
    "Azure-Samples/cognitive-services-sample-data-files": "65af3b93cab5f45c76594f3265210646d4b3809e",
    "Smalleaves123/CrackCV": "66b19abb5d28d764d39f1d5a0b678fb793bbbed9",
    "Obmutescence/COCO-MINI": "644f29e7c1d2eefd9c4412d39bc5b0ee6fd0afd4",
    "congduytran12/Trash-Classification-": "00212f2c18dcdb9045c74481eaae5baaf72537df",
    "emanhamed/Houses-dataset": "5e148219500558089cf5cf121b626b17fdde9b92",
    "emrecandir9/custom-gesture-dataset": "921f6b96145a55756feb3939774236b729f55a03",
    "lightly-ai/coco128_yolo": "6d6f7a059ea63efffdbe48aca2d52c04d4c510e9",
    "lizhogn/tiny_coco_dataset": "68523ddd6c27f9ba5d2f0caf7f6fe95cc2c99311",
    "marcusklasson/GroceryStoreDataset": "fc80ba90f803d79d0383df52c5a4ac5de99ff6fc",
    "martinwestin/flower_classification": "c169e7e4038bc0e0e2fe80090b6dc8919539816f",
    "udacity/CarND-Advanced-Lane-Lines": "91b080357290da37f533e2d0832f601c3e770d51",
    "udacity/CarND-LaneLines-P1": "ce5681be7ef8140560c0e464ef2da611e40b4fc9",
    "udacity/CarND-Vehicle-Detection": "66d678b186f4e70bbb283b52e1ae36d4187f2ff9",
}
EACH = 60
"""Pictures of a kind at most, as ``gather_strangers.py`` takes of every kind of photograph."""
LONGEST = 320
"""Longest side of a picture in the pool, pixels: more than the input of any net that packs rest on."""
QUALITY = 90
SEED = 4
EVERY_FRAME = 15
"""One frame in so many is taken of a film of a road: half a second lies between two."""
CC_BY = 4
"""Number of the licence CC BY 2.0 in the files of COCO."""
_AZURE = "Azure-Samples/cognitive-services-sample-data-files"
_FORKS = f"{_AZURE}/CustomVision/ObjectDetection/Images"
_GESTURES = "emrecandir9/custom-gesture-dataset/dataset/photos"
_SHOPS = "marcusklasson/GroceryStoreDataset/dataset/train"
_WASTE = "congduytran12/Trash-Classification-/dataset-resized"
_HOUSES = "emanhamed/Houses-dataset/Houses Dataset"
PATHS = {
    "forks and scissors": (f"{_FORKS}/fork/*", f"{_FORKS}/scissors/*"),
    "people in one room": (f"{_GESTURES}/body/*/*", f"{_GESTURES}/hand/*/*"),
    "glass on a board": (f"{_WASTE}/glass/*",),
    "paper on a board": (f"{_WASTE}/cardboard/*", f"{_WASTE}/paper/*"),
    "metal and plastic on a board": (f"{_WASTE}/metal/*", f"{_WASTE}/plastic/*"),
    "fruit in shops": (f"{_SHOPS}/Fruit/**/*",),
    "vegetables in shops": (f"{_SHOPS}/Vegetables/**/*",),
    "cartons in shops": (f"{_SHOPS}/Packages/**/*",),
    "bathrooms": (f"{_HOUSES}/*_bathroom",),
    "bedrooms": (f"{_HOUSES}/*_bedroom",),
    "kitchens": (f"{_HOUSES}/*_kitchen",),
    "house fronts": (f"{_HOUSES}/*_frontal",),
    "flowers": ("martinwestin/flower_classification/flowers/*/*",),
    "brick walls": ("Smalleaves123/CrackCV/dataset/*/*",),
    "faces": (f"{_AZURE}/Face/images/*",),
}
"""Kinds that are files of some folders, all JPEG."""
ROADS = "roads"
ROAD_FOLDERS = (
    "udacity/CarND-Advanced-Lane-Lines/test_images",
    "udacity/CarND-LaneLines-P1/test_images",
    "udacity/CarND-Vehicle-Detection/test_images",
)
ROAD_FILMS = (
    "udacity/CarND-LaneLines-P1/test_videos/solidWhiteRight.mp4",
    "udacity/CarND-Vehicle-Detection/test_video.mp4",
)
_MINI, _TINY = "Obmutescence/COCO-MINI", "lizhogn/tiny_coco_dataset/tiny_coco"
_LIGHTLY = "lightly-ai/coco128_yolo"
COCO = (
    (f"{_MINI}/train2017", f"{_MINI}/annotations/instances_train2017.json"),
    (f"{_MINI}/val2017", f"{_MINI}/annotations/instances_val2017.json"),
    (f"{_TINY}/train2017", f"{_TINY}/annotations/instances_train2017.json"),
    (f"{_TINY}/val2017", f"{_TINY}/annotations/instances_val2017.json"),
    (f"{_LIGHTLY}/images/val2017", f"{_LIGHTLY}/panoptic_segmentation/annotations/panoptic_val2017.json"),
)  # fmt: skip
"""Parts of COCO 2017: pictures, and the file with their licences and with what they show. The folder train2017 of
``lightly-ai/coco128_yolo`` is left out: packs were tried and shipped without its 14 photographs."""
COCO_KINDS = {
    "person": "people",
    "animal": "animals",
    "vehicle": "vehicles and streets",
    "outdoor": "vehicles and streets",
}
"""Kind of a picture of COCO by the supercategory that covers most of it; all others are :data:`ROOMS`."""
ROOMS = "rooms and food"


class Photograph(NamedTuple):
    """A photograph for the pool. ``source``: path of the file that it is from; ``group``: as in the other pools."""

    kind: str
    source: str
    group: str
    picture: Image.Image


def of_folders(clones: Path) -> Iterator[Photograph]:
    """Yield photographs of the kinds of :data:`PATHS`: of each path the same number, drawn at random."""
    for kind, patterns in PATHS.items():
        draw = np.random.default_rng(SEED)
        for pattern in patterns:
            paths = sorted(clones.glob(f"{pattern}.jpg"))
            for place in draw.permutation(len(paths))[: EACH // len(patterns)]:
                yield _photograph(kind, clones, paths[int(place)])


def of_roads(clones: Path) -> Iterator[Photograph]:
    """Yield photographs of roads from a car: single ones, and frames of two films."""
    for folder in ROAD_FOLDERS:
        for path in sorted((clones / folder).glob("*.jpg")):
            yield _photograph(ROADS, clones, path)
    for film in ROAD_FILMS:
        frames = cv2.VideoCapture(str(clones / film))
        number, (is_read, frame) = 0, frames.read()
        while is_read:
            if number % EVERY_FRAME == 0:
                picture = Image.fromarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB))
                yield Photograph(ROADS, f"{film}#{number}", film, picture)
            number, (is_read, frame) = number + 1, frames.read()


def of_coco(clones: Path) -> Iterator[Photograph]:
    """Yield the photographs of COCO under CC BY, each once."""
    seen: set[str] = set()
    for folder, annotations in COCO:
        described = json.loads((clones / annotations).read_text(encoding="utf-8"))
        kinds = _kinds_of_coco(described)
        for image in described["images"]:
            name, path = image["file_name"], clones / folder / image["file_name"]
            if image["license"] == CC_BY and name not in seen and path.is_file():
                seen.add(name)
                yield _photograph(kinds.get(image["id"], ROOMS), clones, path)


def _kinds_of_coco(described: dict[str, Any]) -> dict[int, str]:
    """Return the kind of each picture by its number."""
    above = {
        one["id"]: one["supercategory"] for one in described["categories"] if one.get("isthing", 1)
    }
    areas: dict[int, Counter[str]] = {}
    for annotation in described["annotations"]:
        of_picture = areas.setdefault(annotation["image_id"], Counter())
        for part in annotation.get("segments_info", [annotation]):
            if part["category_id"] in above:
                of_picture[above[part["category_id"]]] += part["area"]
    return {
        number: COCO_KINDS.get(found.most_common(1)[0][0], ROOMS)
        for number, found in areas.items()
        if found
    }


def _photograph(kind: str, clones: Path, path: Path) -> Photograph:
    source = path.relative_to(clones).as_posix()
    return Photograph(kind, source, source, Image.open(path))


def _shrunk(picture: Image.Image) -> bytes:
    upright = ImageOps.exif_transpose(picture).convert("RGB")
    upright.thumbnail((LONGEST, LONGEST))
    content = io.BytesIO()
    upright.save(content, "JPEG", quality=QUALITY)
    return content.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clones", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    rows: list[tuple[str, str, str, str]] = []
    with zipfile.ZipFile(arguments.out / "images.zip", "w") as archive:
        for read in (of_folders, of_roads, of_coco):
            for kind, source, group, picture in read(arguments.clones):
                if counts[kind] == EACH:
                    continue
                name = f"{kind.replace(' ', '_')}_{counts[kind]:02d}.jpg"
                archive.writestr(name, _shrunk(picture))
                rows.append((name, kind, source, group))
                counts[kind] += 1
    with (arguments.out / "labels.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("image", "label", "source", "group"), *rows])
    for kind, count in counts.items():
        print(f"{kind}: {count}")


if __name__ == "__main__":
    main()
