"""IP102 (Wu et al. 2019): insect pests of eight crops, one class a picture, and boxes on some; the test splits of both.

A class may hold eggs, larvae, pupae and adults alike. What is asked beyond the name (order, family, damage, what to do)
is answered by the knowledge base, as the tools answer it.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agrotools.build.sources.part import Originals, Part
from agrotools.build.sources.public.ip102_boxed import boxed_subjects, boxed_wanted
from agrotools.build.sources.public.ip102_boxes import read_boxed
from agrotools.build.sources.public.ip102_classes import CLASSES, pests
from agrotools.build.sources.public.ip102_subjects import Photo, photo_of, photo_subjects
from agrotools.build.sources.public.layout import find_root, spread
from agrotools.build.sources.wording import first_few
from agrotools.build.templates import load_templates
from agrotools.core import BenchmarkError
from agrotools.core.benchmark_header import SourceNote

GET_IT = (
    "get IP102_v1.1 by the links in github.com/xpwu95/IP102 and unpack its archives (ip102_v1.1.tar; of the detection"
    " part JPEGImages.tar and Annotations.tar), so that images/ and test.txt lie side by side, and VOC2007 holds"
    " JPEGImages, Annotations and ImageSets"
)
SOURCE = SourceNote(
    name="IP102",
    licence="free for academic usage; for other purposes ask its authors (as its README says)",
    url="https://github.com/xpwu95/IP102",
    citation="Wu, X. et al.: IP102: A Large-Scale Benchmark Dataset for Insect Pest Recognition. CVPR 2019, 8787-8796.",
    note="Questions and reference calls are by agrotools, what is said of a pest by its knowledge base; images, classes"
    " and boxes are the authors'. Red outlines in some pictures are drawn by agrotools around a box. Test splits.",
)
TEMPLATES = ("pest", "pest_group", "pest_advice", "pest_marked", "pest_count")
REPEATED = ("40410.jpg", "40432.jpg", "65553.jpg", "66152.jpg")
"""Pictures that are in the train and the test split at once."""
_SEED = 12
_PICTURES_A_SAMPLE = 2


def read(folder: Path, scratch: Path, samples: int) -> Part:
    """Raises BenchmarkError: the data set is incomplete, or not as its authors describe it."""
    dropped: Counter[str] = Counter()
    root = find_root(folder, ("images", "test.txt"), get_it=GET_IT)
    listed = _listed(root, "test", dropped)
    known = [(name, label) for name, label in listed if label in pests()]
    dropped["of a class that cannot be told"] += len(listed) - len(known)
    fresh = [(name, label) for name, label in known if name not in REPEATED]
    dropped["also in the train split"] += len(known) - len(fresh)
    _refuse_missing(root, fresh)
    trained = _by_size(root)
    originals = Originals(scratch)
    photos: list[Photo] = []
    seen: set[str] = set()
    for name, label in spread(fresh, lambda one: one[1], len(fresh), _SEED):
        if len(photos) >= _PICTURES_A_SAMPLE * samples:
            break
        path = root / "images" / name
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest in seen or any(_digest(other) == digest for other in trained.get(path.stat().st_size, ())):
            dropped["repeated"] += 1
        elif (photo := photo_of(path, pests()[label], originals, dropped)) is not None:
            seen.add(digest)
            photos.append(photo)
    if not photos:
        raise BenchmarkError(f"no test picture of {root} can be used", hint=GET_IT)
    boxed, reading = read_boxed(folder, dropped, get_it=GET_IT)
    some = spread(boxed, lambda one: (len(one.boxes) > 1, one.pest.label), boxed_wanted(samples), _SEED)
    subjects = [*photo_subjects(photos, samples), *boxed_subjects(some, originals, dropped, samples)]
    return Part(
        "ip102",
        SOURCE,
        subjects,
        [template for file in TEMPLATES for template in load_templates(file)],
        samples,
        originals.files,
        metadata={
            "ip102": {"test_pictures": len(listed), "boxed_test_pictures": len(boxed), "class_numbers": reading},
        },
        dropped=dropped,
    )


def _listed(root: Path, split: str, dropped: Counter[str]) -> list[tuple[str, int]]:
    """Names and labels of a split.

    Raises:
        BenchmarkError: it cannot be read, or a line is no name with a label from 0 to 101.
    """
    path = root / f"{split}.txt"
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}", hint=GET_IT) from error
    found: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        parts = line.rsplit(maxsplit=1)
        if not parts:
            continue
        if len(parts) != 2 or not parts[1].isdecimal() or int(parts[1]) >= len(CLASSES):
            raise BenchmarkError(
                f"{path}, line {number} is no picture with a label from 0 to {len(CLASSES) - 1}: {line.strip()[:60]}",
                hint=GET_IT,
            )
        name, label = Path(parts[0].replace("\\", "/")).name, int(parts[1])
        if found.setdefault(name, label) != label:
            dropped["of two classes"] += 1
    return list(found.items())


def _refuse_missing(root: Path, listed: Sequence[tuple[str, int]]) -> None:
    there = {path.name for path in (root / "images").iterdir()}
    missing = [name for name, _ in listed if name not in there]
    if missing:
        raise BenchmarkError(f"{root / 'images'} lacks {first_few(missing)}", hint=GET_IT)


def _by_size(root: Path) -> dict[int, list[Path]]:
    """Pictures of the other splits by size in bytes: only those of equal size can be the same file."""
    found: dict[int, list[Path]] = {}
    for split in ("train", "val"):
        if not (root / f"{split}.txt").is_file():
            continue
        for name, _ in _listed(root, split, Counter()):
            path = root / "images" / name
            if path.is_file():
                found.setdefault(path.stat().st_size, []).append(path)
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
