"""Parts that adapters read: their things and the files that these show."""

from pathlib import Path

from agrotools.build.sources.part import Part
from agrotools.build.templates import Thing


def things_of(part: Part, *kinds: str) -> list[Thing]:
    """Every thing of the subjects of these kinds, or of all, as the first of a sample."""
    subjects = [subject for subject in part.subjects if subject.of in kinds or not kinds]
    return [subject.shown(index, 1) for subject in subjects for index in range(subject.things)]


def things_by_file(part: Part, *kinds: str) -> dict[Path, Thing]:
    """These things by the file that their first file is."""
    return {original_of(part, thing): thing for thing in things_of(part, *kinds)}


def original_of(part: Part, thing: Thing) -> Path:
    """The file that the first file of a thing is."""
    return part.files[thing.files[0].path]
