"""AgroMind (Li et al. 2025): questions with answers on agricultural pictures of many sources; those that are counts.

Its own questions are not asked. A count that one of its answers gives is truth for a tool that counts: oil palms from
above, fruit on trees, maize tassels, young plants. All else that it asks has no answer that a chain of tools gives, or
is about pictures of a data set with an adapter of its own; it is left out, and told by reason. It has no split.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson

from agrotools.build.sources.field.fruit import fruit_subjects
from agrotools.build.sources.part import Originals, Part, first_few, named
from agrotools.build.sources.public.reading import find_root, spread, upright_size
from agrotools.build.templates import Thing, load_templates
from agrotools.build.templates.thing import Subject
from agrotools.core import BenchmarkError, SampleFile
from agrotools.core.files import pairs_by_hash
from agrotools.formats.benchmark import SourceNote

GET_IT = (
    "get QA_Pairs from github.com/rssysu/AgroMind and the pictures from huggingface.co/datasets/AgroMind/AgroMind, so"
    " that the folders QA_Pairs (or json) and images lie side by side"
)
SOURCE = SourceNote(
    name="AgroMind",
    licence="CC BY-SA 4.0 (badge of its README; a mirror says CC BY-NC 4.0); pictures keep the terms of their sources",
    url="https://github.com/rssysu/AgroMind",
    citation="Li, Q. et al.: Can Large Multimodal Models Understand Agricultural Scenes? Benchmarking with AgroMind."
    " arXiv 2505.12207, 2025.",
    note="Questions and reference calls are by agrotools; pictures and counts are the authors', from their questions"
    " that ask how many there are.",
)
PLURAL = {
    "almond": "almonds", "apple": "apples", "mango": "mangoes", "maize tassel": "maize tassels",
    "plant": "young plants",
}  # fmt: skip
"""By what the tool is asked to count."""
PALM = "oil palm"
GSD_M = 0.08
"""Of the pictures of oil palms, as questions about their crowns say."""
_TARGETS = {
    "CO_3_2_2": r"How many (mango|apple|almond)s are there",
    "CO_3_2_3": r"How many (tassel)s are there",
    "CO_3_2_4": r"How many (oil palm) trees are there",
    "CO_3_2_6": r"How many different (plant) individuals are",
    "CO_3_2_7": r"How many (oil palm) trees are there",
}
"""Files of questions that count, and what they count."""
_SAID = {"tassel": "maize tassel"}
_OWN_ADAPTER = {"Pest": "about pictures of IP102, which is a source of its own"}
_IN_A_BOX = ("VPR_4_1_1", "VPR_4_1_2", "GSR_2_3_1", "GSR_2_3_2", "VPR_4_1_4")
_NAMED_DISEASES = ("PDD_2_2_1", "PDD_2_2_2", "VPR_4_1_3")
_BOXED = "about a thing whose place is drawn and not told"
_DISEASES = "about diseases in words that no one crop's disease is known by"
_OTHER = "with an answer that no tool measures"
_NAME = re.compile(r"[A-Z]{2,3}_\d_\d_\d")
_LARGEST_JSON = 50_000_000
_MOST_COUNTED = 100_000
_PALMS_IN_SUBJECT = 3
_PICTURES_A_SAMPLE = 2
_SEED = 7


@dataclass(frozen=True)
class _Counted:
    """A picture with the number of things of a kind in it."""

    path: Path
    target: str
    count: int


def read(folder: Path, scratch: Path, samples: int) -> Part:  # noqa: ARG001 - nothing is made from these pictures
    """Raises BenchmarkError: the data set is incomplete, or not as its authors describe it."""
    root, questions = _root(folder)
    dropped: Counter[str] = Counter()
    counted = _counted(root, _items(questions), dropped)
    if not counted:
        raise BenchmarkError(f"{questions} has no question that counts: {', '.join(_TARGETS)}", hint=GET_IT)
    missing = [one.path for one in counted if not one.path.is_file()]
    if missing:
        raise BenchmarkError(f"{root} lacks {first_few([path.relative_to(root) for path in missing])}", hint=GET_IT)
    palms = [one for one in counted if one.target == PALM]
    others = [one for one in counted if one.target != PALM]
    wanted = _PICTURES_A_SAMPLE * samples
    some = spread(others, lambda one: one.target, wanted - min(len(palms), wanted // 2), _SEED)
    originals = Originals()
    subjects = [
        *_palm_subjects(spread(palms, lambda one: one.count // 10, wanted - len(some), _SEED), originals),
        *(subject for target in PLURAL for subject in _subjects(target, some, originals)),
    ]
    templates = (*load_templates("palm"), *load_templates("fruit_photo"))
    return Part(
        "agromind",
        SOURCE,
        subjects,
        templates,
        samples,
        originals.files,
        metadata={"agromind_counted_pictures": {**Counter(one.target for one in counted)}},
        dropped=dropped,
    )


def _root(folder: Path) -> tuple[Path, Path]:
    """Paths of pictures and questions."""
    for name in ("QA_Pairs", "json"):
        with suppress(BenchmarkError):
            root = find_root(folder, (name, "images"), get_it=GET_IT)
            return root, root / name
    raise BenchmarkError(f"{folder} has no QA_Pairs and images", hint=GET_IT)


def _items(questions: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every question with the name of its file.

    Raises:
        BenchmarkError: a file is no list of questions.
    """
    for path in sorted(questions.rglob("*.json")):
        if not _NAME.fullmatch(path.stem) or path.name.startswith("."):
            continue
        try:
            if path.stat().st_size > _LARGEST_JSON:
                raise BenchmarkError(f"{path} is too large for questions", hint=GET_IT)
            found = orjson.loads(path.read_bytes())
        except (OSError, orjson.JSONDecodeError) as error:
            raise BenchmarkError(f"{path} cannot be read: {error}", hint=GET_IT) from error
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in cast("list[Any]", found)):
            raise BenchmarkError(f"{path} is not a list of questions", hint=GET_IT)
        for item in cast("list[dict[str, Any]]", found):
            yield path.stem, item


def _counted(root: Path, items: Iterator[tuple[str, Mapping[str, Any]]], dropped: Counter[str]) -> list[_Counted]:
    """Pictures that an answer counts something in, each once; what else is asked is counted in ``dropped``."""
    found: dict[str, _Counted | None] = {}
    for of, item in items:
        place = str(item.get("image_path", "")).removeprefix("./").replace("\\", "/")
        top = place.partition("/")[0]
        if of not in _TARGETS or top in _OWN_ADAPTER:
            dropped[_OWN_ADAPTER.get(top) or _reason(of)] += 1
            continue
        target = re.search(_TARGETS[of], str(item.get("question", "")))
        count = _answer(item)
        if not place or ".." in Path(place).parts or Path(place).is_absolute() or target is None or count is None:
            dropped["incomplete"] += 1
            continue
        one = _Counted(root / "images" / place, _SAID.get(target[1], target[1]), count)
        if place not in found:
            found[place] = one
            continue
        dropped["repeated"] += 1
        if found[place] != one:
            found[place] = None
    dropped["with two answers for one picture"] += sum(one is None for one in found.values())
    return [one for one in found.values() if one is not None]


def _reason(of: str) -> str:
    if of in _NAMED_DISEASES:
        return _DISEASES
    return _BOXED if of in _IN_A_BOX else _OTHER


def _answer(item: Mapping[str, Any]) -> int | None:
    """The number that an answer is, or that the option has which it names."""
    answer, options = item.get("answer"), item.get("options")
    if isinstance(options, dict):
        answer = cast("dict[str, Any]", options).get(str(answer))
    text = str(answer).strip()
    return int(text) if text.isascii() and text.isdecimal() and int(text) <= _MOST_COUNTED else None


def _subjects(target: str, some: Sequence[_Counted], originals: Originals) -> list[Subject]:
    by_hash: dict[str, tuple[SampleFile, int]] = {}
    for one in (one for one in some if one.target == target):
        upright_size(one.path, get_it=GET_IT)
        file = originals.file(one.path)
        by_hash[str(file.sha256)] = (file, one.count)
    name = f"agromind-{target.replace(' ', '-')}"
    return fruit_subjects(name, target, PLURAL[target], by_hash, of="fruit_photo")


def _palm_subjects(palms: Sequence[_Counted], originals: Originals) -> list[Subject]:
    """Three by three; the last may be fewer."""
    by_hash: dict[str, tuple[SampleFile, int]] = {}
    for one in palms:
        upright_size(one.path, get_it=GET_IT)
        note = f"Oil palms seen straight from above, {GSD_M} m a pixel."
        file = originals.file(one.path, gsd_m=GSD_M, note=note)
        by_hash[str(file.sha256)] = (file, one.count)
    pairs = pairs_by_hash(by_hash)
    members = [by_hash[key] for pair in pairs for key in pair]
    groups = [members[at : at + _PALMS_IN_SUBJECT] for at in range(0, len(members), _PALMS_IN_SUBJECT)]
    return [_palm_subject(number, group) for number, group in enumerate(groups)]


def _palm_subject(number: int, group: Sequence[tuple[SampleFile, int]]) -> Subject:
    def shown(index: int, place: int) -> Thing:
        original, count = group[index]
        file = named(original, "image", place)
        area_ha = (file.width_px or 0) * (file.height_px or 0) * GSD_M**2 / 10_000
        truth = {"count": count, "density_per_ha": round(count / area_ha, 4), "gsd_m": GSD_M}
        thought = f"I need to know how many oil palms there are in {file.name}."
        arguments: dict[str, Any] = {"image": file.name, "target": PALM}
        return Thing((file,), "count_objects", arguments, truth, file.name, thought)

    return Subject(f"agromind-palms-{number}", len(group), shown, {"group": number}, of="palm_photo")
