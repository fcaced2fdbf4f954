"""deepNIR (Sa et al. 2022): photographs of eleven crops, each fruit boxed by people; the test split of these boxes."""

from collections import Counter
from pathlib import Path

from agrotools.build.sources.boxes import count_yolo_boxes
from agrotools.build.sources.field.fruit import fruit_subjects
from agrotools.build.sources.part import DataSet, Part, adapter, first_few
from agrotools.build.sources.reading import SUFFIXES, by_stem, find_root, photo_file, spread
from agrotools.core import BenchmarkError

PLURAL = {
    "apple": "apples", "avocado": "avocados", "blueberry": "blueberries", "capsicum": "sweet peppers",
    "cherry": "cherries", "kiwi": "kiwis", "mango": "mangoes", "orange": "oranges", "rockmelon": "rockmelons",
    "strawberry": "strawberries", "wheat": "wheat heads",
}  # fmt: skip
"""By folder; what is counted in its pictures."""
_SEED = 11


@adapter("deepnir")
def read(data: DataSet) -> Part:
    """Numbers of fruits in pictures, as many of each kind."""
    root = find_root(data.folder, [f"{fruit}/test/{kind}" for fruit in PLURAL for kind in ("images", "labels")])
    pictures = [(fruit, *picture) for fruit in PLURAL for picture in _counted(root / fruit / "test")]
    if not pictures:
        raise BenchmarkError(f"{root} has no picture in its test part")
    some = spread(pictures, lambda picture: picture[0], data.wanted, _SEED)
    subjects = [
        subject
        for fruit in PLURAL
        for subject in fruit_subjects(
            f"deepnir-{fruit}",
            "wheat head" if fruit == "wheat" else fruit,
            PLURAL[fruit],
            [(photo_file(path, data), count) for of, path, count in some if of == fruit],
            of="fruit_photo",
        )
    ]
    counts = Counter(fruit for fruit, _, _ in pictures)
    return data.part(subjects, ["fruit_photo"], {"deepnir_test_pictures": {**counts}})


def _counted(place: Path) -> list[tuple[Path, int]]:
    """Every picture of one fruit's test part with the number of its boxes; without a file of labels it has none."""
    images, labels = by_stem(place / "images", SUFFIXES), by_stem(place / "labels", (".txt",))
    astray = sorted(labels.keys() - images.keys())
    if astray:
        raise BenchmarkError(f"{place / 'images'} lacks the pictures of labels {first_few(astray)}")
    return [(path, count_yolo_boxes(labels[stem]) if stem in labels else 0) for stem, path in images.items()]
