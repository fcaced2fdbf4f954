"""Photos of one scene, each set a cluster: augmented copies of one photo, and photos that are nearly the same."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agrotools.core.texts import count_text
from agrotools_build.own_photos.plan import listed
from agrotools_build.quality import PictureFeatures, near_pairs

_OF_ROBOFLOW = re.compile(r"(?P<photo>.+)_(?P<ending>\w{3,4})\.rf\.\w+(?:\.\w+)?")
"""Name that Roboflow gives each copy of a photo that it exports: ``IMG_1_jpg.rf.HASH.jpg`` of ``IMG_1.jpg``."""

_SAME_PHOTO = 0.95
"""Least correlation of copies. Mirrored, resized, brighter and darker copies of photographs have 0.964 or more; of
210 photographs of nine collections, none has more than 0.942 with another, as leaves on white paper have."""


def sets_of_copies(
    photos: Iterable[Path],
    sources: Mapping[Path, str],
    features: Mapping[Path, PictureFeatures],
) -> list[list[Path]]:
    """Return the sets of two or more photos that are of one scene, each in the order of the names.

    Args:
        photos: all photos.
        sources: name of the photo that a photo is a copy of, where annotations give it.
        features: what the photos look like; none of a photo of one colour.
    """
    ordered = sorted(photos)
    set_of = {photo: [photo] for photo in ordered}

    def join(first: Path, second: Path) -> None:
        one, other = set_of[first], set_of[second]
        if one is not other:
            one += other
            set_of.update(dict.fromkeys(other, one))

    first_of: dict[str, Path] = {}
    for photo in ordered:
        if source := sources.get(photo) or name_before_export(photo.name):
            join(first_of.setdefault(source, photo), photo)
    by_name: dict[str, list[Path]] = {}
    for photo in ordered:
        by_name.setdefault(photo.name, []).append(photo)
    for source, copy in first_of.items():
        originals = by_name.get(source, [])
        # Photos of one name in two folders may be two photos.
        if len(originals) == 1:
            join(copy, originals[0])
    seen = [photo for photo in ordered if photo in features]
    for first, second, correlation in near_pairs([features[photo] for photo in seen]):
        if correlation >= _SAME_PHOTO:
            join(seen[first], seen[second])
    distinct = {id(members): members for members in set_of.values()}
    return [sorted(members) for members in distinct.values() if len(members) > 1]


def name_before_export(name: str) -> str:
    """Return the name or path that a photo had before Roboflow exported a copy of it; empty for other names."""
    found = _OF_ROBOFLOW.fullmatch(name)
    return f"{found['photo']}.{found['ending']}" if found else ""


def copies_text(copies: Sequence[Sequence[Path]], *, are_together: bool) -> str:
    """Return the line that says which photos are copies, and how that is changed; empty if none are."""
    if not copies:
        return ""
    number = sum(map(len, copies))
    sets = [" and ".join(photo.name for photo in members[:2]) for members in copies]
    taken = "each set is one cluster" if are_together else "each photo is a cluster of its own"
    other = "apart" if are_together else "one-cluster"
    changed = "makes each photo a cluster" if are_together else "makes each set one cluster"
    return (
        f"{number} photos are augmented copies of one photo or nearly the same, in {count_text(len(copies), 'set')} "
        f"({listed(sets)}); {taken}; --set copies={other} {changed}"
    )
