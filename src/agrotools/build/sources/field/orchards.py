"""Fruit on trees in tiles of orchard photographs, each fruit boxed by people."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agrotools.build.asking import Subject
from agrotools.build.sources.part import Originals, Part, named, pairs_of
from agrotools.build.sources.prepared import read_items
from agrotools.build.templates import Thing, load_templates
from agrotools.core import BenchmarkError, SampleFile
from agrotools.core.benchmark_header import SourceNote

SAMPLES = 16
_OWNER = "https://github.com/ai-agriculture-circuits-and-systems"
_LICENCE = "CC BY 4.0 (licence file of the repository)"
PLURAL = {"apple": "apples", "pear": "pears", "cherry": "cherries"}


def orchard(fruit: str, repository: str) -> Callable[[Path], Part]:
    """How the tiles of one repository become a part. The part raises BenchmarkError: the data set is incomplete."""

    def part(folder: Path) -> Part:
        originals = Originals()
        by_hash: dict[str, tuple[SampleFile, int]] = {}
        for item in read_items(folder, ("count",), ("image",)):
            if not isinstance(item["count"], int) or item["count"] < 0:
                raise BenchmarkError(f"{folder}: the count of {item.get('id')} is no whole number")
            file = originals.file(folder / item["image"], note=f"Part of a photograph of a tree with {PLURAL[fruit]}.")
            by_hash[str(file.sha256)] = (file, item["count"])
        subjects = fruit_subjects(f"orchard-{fruit}", fruit, PLURAL[fruit], by_hash, of="orchard")
        source = SourceNote(
            name=repository,
            licence=_LICENCE,
            url=f"{_OWNER}/{repository}",
            citation="Boxes by the authors of the data set, as packed by ai-agriculture-circuits-and-systems.",
            note="Questions, reference calls and tolerances are by agrotools; images and boxes are the authors'. Fruit"
            " of rows behind is not always boxed.",
        )
        return Part(f"orchard-{fruit}", source, subjects, load_templates("orchard"), SAMPLES, originals.files)

    return part


def fruit_subjects(
    name: str, fruit: str, plural: str, counted: Mapping[str, tuple[SampleFile, int]], *, of: str
) -> list[Subject]:
    """Pictures with the number of fruits in each, by hash, two by two. ``fruit`` is what the tool is asked to count."""
    return [_subject(name, number, (fruit, plural), pair, of) for number, pair in enumerate(pairs_of(counted))]


def _subject(name: str, number: int, fruit: tuple[str, str], pair: list[tuple[SampleFile, int]], of: str) -> Subject:
    one, many = fruit

    def shown(index: int, place: int) -> Thing:
        original, count = pair[index]
        file = named(original, "image", place)
        thought = f"I need to know how many {many} there are in {file.name}."
        arguments: dict[str, Any] = {"image": file.name, "target": one}
        words = {"fruit": one, "fruits": many}
        return Thing((file,), "count_objects", arguments, {"count": count}, file.name, thought, words)

    return Subject(f"{name}-{number}", len(pair), shown, {"pair": number, "fruit": one}, of=of)
