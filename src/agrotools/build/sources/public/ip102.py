"""IP102 (Wu et al. 2019): insect pests of eight crops, one class a picture, and boxes on some; the test splits of both.

A class may hold eggs, larvae, pupae and adults alike. What is asked beyond the name (order, family, damage, what to do)
is answered by the knowledge base, as the tools answer it.
"""

import hashlib
import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import JsonValue

from agrotools.build.references import PlannedCall, ref
from agrotools.build.sources.part import Originals, Part, first_few, named
from agrotools.build.sources.public.ip102_boxes import Box, Boxed, read_boxed
from agrotools.build.sources.public.ip102_classes import CLASSES, Pest, pair_words, pests, rng_of, words_of
from agrotools.build.sources.public.ip102_subjects import (
    DIAGNOSE,
    NOTE,
    Photo,
    diagnosis_of,
    photo_of,
    photo_subjects,
    readable,
)
from agrotools.build.sources.public.reading import find_root, spread
from agrotools.build.templates import Thing, load_templates
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile
from agrotools.formats.benchmark import SourceNote
from agrotools.vision.reading import RgbImage

EXTRACT = "extract_marked_region"
COUNT = "count_objects"
_LEAST_SHARE, _MOST_SHARE = 0.004, 0.5
"""Of a picture, that a box must take for an outline around it to say something."""
_STROKE = 0.006
"""Width of the outline, of the longer side."""
_RED = (255, 0, 0)
_LEAST_GAP_PX = 2
_PICTURES_COUNTED = 3


@dataclass(frozen=True)
class _Outlined:
    file: SampleFile
    pest: Pest
    outer: Box
    inner: Box


def boxed_subjects(boxed: Sequence[Boxed], originals: Originals, dropped: Counter[str], most: int) -> list[Subject]:
    """At most so many subjects, of outlines and of counts in turn; a picture is in one of them alone."""
    marked: list[Subject] = []
    counted: list[tuple[SampleFile, Boxed]] = []
    for one in boxed:
        if len(marked) + len(counted) // _PICTURES_COUNTED >= most:
            break
        picture = readable(one.path, dropped)
        if picture is None:
            continue
        if (picture.width, picture.height) != one.size:
            dropped["boxed, of another size than its annotation says"] += 1
        elif len(counted) < _PICTURES_COUNTED * (len(marked) + 1) and (len(one.boxes) > 1 or len(counted) % 3 == 2):
            counted.append((originals.file(one.path, note=NOTE), one))
        elif (outlined := _outlined(one, picture, originals)) is not None:
            marked.append(_marked_subject(len(marked), outlined))
        else:
            dropped["boxed, with no box that an outline fits around"] += 1
    groups = [counted[at : at + _PICTURES_COUNTED] for at in range(0, len(counted), _PICTURES_COUNTED)]
    return [*marked, *(_count_subject(number, group) for number, group in enumerate(groups))]


def _outlined(one: Boxed, picture: RgbImage, originals: Originals) -> _Outlined | None:
    """The picture with a red outline around the first box that has room for it; None where none has."""
    stroke = max(3, round(_STROKE * max(picture.width, picture.height)))
    for box in one.boxes:
        x0, y0, x1, y1 = box
        share = (x1 - x0) * (y1 - y0) / (picture.width * picture.height)
        gap = max(_LEAST_GAP_PX, stroke)
        inner = (x0 - gap, y0 - gap, x1 + gap, y1 + gap)
        outer = (inner[0] - stroke, inner[1] - stroke, inner[2] + stroke, inner[3] + stroke)
        fits = min(outer[:2]) >= 1 and outer[2] < picture.width and outer[3] < picture.height
        if fits and _LEAST_SHARE <= share <= _MOST_SHARE:
            file = originals.made(_drawn(picture, outer, inner), ".jpg", note=f"{NOTE} An outline was drawn on it.")
            return _Outlined(file, one.pest, outer, inner)
    return None


def _drawn(picture: RgbImage, outer: Box, inner: Box) -> bytes:
    from PIL import Image

    pixels = picture.pixels.copy()
    inside = pixels[inner[1] : inner[3], inner[0] : inner[2]].copy()
    pixels[outer[1] : outer[3], outer[0] : outer[2]] = _RED
    pixels[inner[1] : inner[3], inner[0] : inner[2]] = inside
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "JPEG", quality=95, subsampling=0)
    return buffer.getvalue()


def _marked_subject(number: int, one: _Outlined) -> Subject:
    rng = rng_of("pest_marked", str(one.file.sha256))
    words = pair_words([one.pest], rng) | words_of(one.pest, rng)

    def shown(_: int, place: int) -> Thing:
        file = named(one.file, "image", place)
        region: dict[str, JsonValue] = {
            "index": 1, "box": [*one.outer], "inner_box": [*one.inner], "color": "red", "shape": "box",
        }  # fmt: skip
        marked = PlannedCall(
            EXTRACT,
            {"image": file.name, "mark_color": "red"},
            {"regions": [region], "selected": 1, "crop_box": [*one.inner]},
            thought=f"I need to know where in {file.name} the red outline is.",
        )
        return Thing(
            (file,),
            DIAGNOSE,
            {"image": file.name, "kind": "pest", "region": ref(0, "regions[0].inner_box")},
            diagnosis_of(one.pest),
            file.name,
            "I need to know which pest is inside the outline.",
            words,
            before=(marked,),
        )

    return Subject(f"ip102-marked-{number}", 1, shown, {"crop": one.pest.crop}, of="pest_marked")


def _count_subject(number: int, group: Sequence[tuple[SampleFile, Boxed]]) -> Subject:
    def shown(index: int, place: int) -> Thing:
        original, one = group[index]
        file = named(original, "image", place)
        kind = "mite" if one.pest.entry.taxonomy.order == "Trombidiformes" else "insect"
        thought = f"I need to know how many pests there are in {file.name}."
        words = {"bar": f"photo {place}", "bar_zh": f"照片{place}"}
        return Thing(
            (file,), COUNT, {"image": file.name, "target": kind}, {"count": len(one.boxes)}, file.name, thought, words
        )

    return Subject(f"ip102-count-{number}", len(group), shown, {"pictures": len(group)}, of="pest_count")


def boxed_wanted(samples: int) -> int:
    """Pictures of the detection part that so many samples take."""
    return max(24, math.ceil(1.5 * samples))


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
                f"{path}, line {number} is not a picture with a label from 0 to {len(CLASSES) - 1}: "
                f"{line.strip()[:60]}",
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
