"""deepNIR (Sa et al. 2022): photographs of eleven crops, each fruit boxed by people; the test split of these boxes."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agrotools.build.sources.field.fruit import fruit_subjects
from agrotools.build.sources.part import Originals, Part, first_few
from agrotools.build.sources.public.reading import SUFFIXES, find_root, spread, upright_size
from agrotools.build.templates import load_templates
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile
from agrotools.formats.benchmark import SourceNote

GET_IT = (
    "get yolov5.zip from Zenodo record 6324489 (or Kaggle enddl22/deepnir-11fruits), so that every fruit has its"
    " folders FRUIT/test/images and FRUIT/test/labels"
)
SOURCE = SourceNote(
    name="deepNIR fruit boxes",
    licence="CC BY 4.0 (Zenodo record 6324489)",
    url="https://zenodo.org/records/6324489",
    citation="Sa, I. et al.: deepNIR: Datasets for Generating Synthetic NIR Images and Improved Fruit Detection System"
    " Using Deep Learning Techniques. Sensors 22(13), 4721, 2022.",
    note="Questions, reference calls and tolerances are by agrotools; images and boxes are the authors'. Test split."
    " Some of its pictures come from the web and from other data sets, whose terms may differ.",
)
PLURAL = {
    "apple": "apples", "avocado": "avocados", "blueberry": "blueberries", "capsicum": "sweet peppers",
    "cherry": "cherries", "kiwi": "kiwis", "mango": "mangoes", "orange": "oranges", "rockmelon": "rockmelons",
    "strawberry": "strawberries", "wheat": "wheat heads",
}  # fmt: skip
"""By folder; what is counted in its pictures."""
_SEED = 11
_PICTURES_A_SAMPLE = 2
_LARGEST_LABELS = 5_000_000
_ROUNDING = 1e-3
"""By how much a box may reach beyond where a picture can have it, from digits cut off."""


def read(folder: Path, scratch: Path, samples: int) -> Part:  # noqa: ARG001 - nothing is made from these pictures
    """Raises BenchmarkError: the data set is incomplete, or not as its authors describe it."""
    root = find_root(
        folder, [f"{fruit}/test/{kind}" for fruit in PLURAL for kind in ("images", "labels")], get_it=GET_IT
    )
    pictures = [(fruit, *picture) for fruit in PLURAL for picture in _counted(root / fruit / "test")]
    if not pictures:
        raise BenchmarkError(f"{root} has no picture in its test part", hint=GET_IT)
    some = spread(pictures, lambda picture: picture[0], _PICTURES_A_SAMPLE * samples, _SEED)
    originals = Originals()
    return Part(
        "deepnir",
        SOURCE,
        [subject for fruit in PLURAL for subject in _subjects(fruit, some, originals)],
        load_templates("fruit_photo"),
        samples,
        originals.files,
        metadata={"deepnir_test_pictures": {**Counter(fruit for fruit, _, _ in pictures)}},
    )


def _counted(place: Path) -> list[tuple[Path, int]]:
    """Every picture of one fruit's test part with the number of its boxes."""
    images = _files_in(place / "images", SUFFIXES)
    labels = _files_in(place / "labels", (".txt",))
    astray = sorted(labels.keys() - images.keys())
    if astray:
        raise BenchmarkError(f"{place / 'images'} lacks the pictures of labels {first_few(astray)}", hint=GET_IT)
    return [(path, _boxes(labels[stem]) if stem in labels else 0) for stem, path in images.items()]


def _files_in(folder: Path, suffixes: Sequence[str]) -> dict[str, Path]:
    """Files by name without suffix; none where the folder is absent."""
    if not folder.is_dir():
        return {}
    there = (path for path in sorted(folder.iterdir()) if not path.name.startswith("."))
    return {path.stem: path for path in there if path.suffix.lower() in suffixes}


def _boxes(path: Path) -> int:
    """Number of boxes in a label file, a box written twice counted once."""
    try:
        if path.stat().st_size > _LARGEST_LABELS:
            raise BenchmarkError(f"{path} is too large for the labels of a picture", hint=GET_IT)
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}", hint=GET_IT) from error
    boxes: set[tuple[float, ...]] = set()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            boxes.add(_box(line, path, number))
    return len(boxes)


def _box(line: str, path: Path, number: int) -> tuple[float, ...]:
    try:
        kind, *numbers = line.split()
        centre_x, centre_y, width, height = box = tuple(map(float, numbers))
    except ValueError as error:
        raise BenchmarkError(
            f"{path}, line {number} is not a box (class, centre x, centre y, width, height)", hint=GET_IT
        ) from error
    if kind != "0":
        raise BenchmarkError(f"{path}, line {number} is of class {kind[:20]}, and all are of class 0", hint=GET_IT)
    inside = all(-_ROUNDING <= value <= 1 + _ROUNDING for value in box)
    if not inside or min(width, height) <= 0:
        raise BenchmarkError(f"{path}, line {number} has a box that no picture holds: {line.strip()[:80]}", hint=GET_IT)
    return centre_x, centre_y, width, height


def _subjects(fruit: str, some: Sequence[tuple[str, Path, int]], originals: Originals) -> list[Subject]:
    by_hash: dict[str, tuple[SampleFile, int]] = {}
    for _, path, count in (picture for picture in some if picture[0] == fruit):
        upright_size(path, get_it=GET_IT)
        file = originals.file(path)
        by_hash[str(file.sha256)] = (file, count)
    one = "wheat head" if fruit == "wheat" else fruit
    return fruit_subjects(f"deepnir-{fruit}", one, PLURAL[fruit], by_hash, of="fruit_photo")
