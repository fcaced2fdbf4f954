"""Strangers: pictures of other things, from which a pack learns what is none of its classes.

``data/strangers.npz`` holds the features of these pictures (never the pictures) and ``data/strangers.json`` their
kinds; ``training/gather_strangers.py`` writes both. To learn from pictures of other things is *outlier exposure*
(Hendrycks, Mazeika and Dietterich 2019, ICLR).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from agrotools_tools.recognition import NetName
from agrotools_tools.recognition.pack_features import PackFeatures
from agrotools_tools.shipped import shipped_file
from agrotools_tools.vision.nets import (
    checked_arrays,
    pack_arrays,
    read_description,
    unusable_weights,
)
from agrotools_tools.vision.strangeness import TRAITS_VERSION

DESCRIPTION, FEATURES = "strangers.json", "strangers.npz"
_AGAIN = "install agrotools again"


class StrangerKind(BaseModel):
    """One kind of strangers: "leaves of coffee".

    ``words``: a label of a pack that contains one of these shows this kind, so the kind is no stranger to the pack.
    ``source``: where the pictures are from, with their licence; empty for drawings of this package. ``everyday``: the
    pictures look like no farm, so they are easy to tell from a pack's own.
    """

    name: str
    words: tuple[str, ...] = ()
    source: str = ""
    everyday: bool = False
    pictures: int


class StrangersInfo(BaseModel):
    """Description of the strangers: script, encoder, nets and features they are of, and their kinds, in the file's
    order. ``encoder``: hash of the weights of the shipped encoder."""

    recipe: str
    encoder: str
    hand_features: int
    nets: dict[NetName, str]
    kinds: tuple[StrangerKind, ...]
    sha256: str


@dataclass(frozen=True, eq=False)
class Strangers:
    """Features of strangers, float32 (n, features), and the number of the kind of each, (n,).

    ``first_of_user``: number of the first kind that the user gave, None if there is none. ``missing``: number of the
    last features that shipped strangers lack, those of a user's encoder; they are 0. ``everyday``: numbers of the kinds
    of everyday photographs.
    """

    features: NDArray[np.float32]
    kinds: NDArray[np.int64]
    names: tuple[str, ...]
    first_of_user: int | None = None
    missing: int = 0
    everyday: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.kinds)

    def chosen(self, rows: NDArray[np.bool_]) -> "Strangers":
        return replace(self, features=self.features[rows], kinds=self.kinds[rows])

    @property
    def is_of_user(self) -> NDArray[np.bool_]:
        """Which strangers the user gave, bool (n,)."""
        if self.first_of_user is None:
            return np.zeros(len(self), np.bool_)
        return self.kinds >= self.first_of_user

    @property
    def is_everyday(self) -> NDArray[np.bool_]:
        """Which strangers are everyday photographs that ship, bool (n,)."""
        return np.isin(self.kinds, sorted(self.everyday))

    @property
    def shipped(self) -> "Strangers":
        return self.chosen(~self.is_of_user)

    @property
    def of_user(self) -> "Strangers":
        return self.chosen(self.is_of_user)

    def with_own(self, features: NDArray[np.float32], kinds: Sequence[str]) -> "Strangers":
        """Return these strangers and those of the user: features (n, features), and the name of the kind of each."""
        called = [f"{kind} (yours)" if kind in self.names else kind for kind in kinds]
        names = tuple(sorted(set(called)))
        numbers = [len(self.names) + names.index(kind) for kind in called]
        return replace(
            self,
            features=np.concatenate([self.features, features]),
            kinds=np.concatenate([self.kinds, np.array(numbers, np.int64)]),
            names=(*self.names, *names),
            first_of_user=len(self.names),
        )

    def widened(self, missing: int) -> "Strangers":
        """Return these shipped strangers with ``missing`` more features of 0."""
        features = np.pad(self.features, ((0, 0), (0, missing)))
        return replace(self, features=features, missing=missing)


def shown_kinds(
    kinds: Sequence[StrangerKind], labels: Sequence[str], shows: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the names of the kinds that a pack's pictures show: a label, or one of the names that the user gives in
    ``shows``, contains one of their words. Of words within each other ("apple" in "chinee apple") the longer counts.
    A crop counts under all names that the knowledge base has for it, in any language."""
    from agrotools.knowledge.kb_names import kb_names
    from agrotools_tools.recognition.pack_subjects import crop_names

    names = kb_names()
    shown: set[str] = set()
    for label in (*labels, *shows):
        said = _spaced(label)
        for crop in map(_spaced, crop_names(label, names)):
            # Said already, it adds nothing, nor may "apple" count in "chinee apple".
            said += "" if crop in said else crop
        found = [
            (word, kind.name) for kind in kinds for word in kind.words if _spaced(word) in said
        ]
        shown |= {
            name
            for word, name in found
            if not any(_spaced(word) in _spaced(other) for other, _ in found if other != word)
        }
    return tuple(kind.name for kind in kinds if kind.name in shown)


def _spaced(name: str) -> str:
    from agrotools.knowledge.words import folded

    return f" {folded(name.replace('_', ' '))} "


def is_of_crop(kind: StrangerKind) -> bool:
    """Return True if a kind shows one crop, as it grows: its first word is the name of the crop."""
    from agrotools.knowledge.kb_names import kb_names
    from agrotools_tools.recognition.pack_subjects import is_known_crop

    return not kind.everyday and bool(kind.words) and is_known_crop(kind.words[0], kb_names())


def strangers_for(
    features: PackFeatures, without: Sequence[str] = (), folder: Path | None = None
) -> Strangers:
    """Return the strangers of all kinds but those ``without``: those that ship, or those of another ``folder``.

    ToolError ``backend_unavailable``: the file is missing, damaged, or of other nets than are installed.
    """
    folder = shipped_file(".") if folder is None else folder
    info, strangers = _read(folder / DESCRIPTION, folder / FEATURES)
    is_same = info.encoder == features.encoder.info.sha256 and info.nets == features.net_hashes
    if not is_same or info.hand_features != TRAITS_VERSION:
        raise unusable_weights("the pictures of strangers", "are of other nets", _AGAIN)
    left = [number for number, name in enumerate(strangers.names) if name not in without]
    return strangers.chosen(np.isin(strangers.kinds, left))


def stranger_kinds() -> tuple[StrangerKind, ...]:
    """Return the kinds of strangers that ship."""
    return _read(shipped_file(DESCRIPTION), shipped_file(FEATURES))[0].kinds


def write_strangers(
    folder: Path,
    kinds: Sequence[StrangerKind],
    pictures: Mapping[str, Sequence[NDArray[np.uint8]]],
    features: PackFeatures,
    recipe: str,
) -> StrangersInfo:
    """Describe the pictures of each kind by the features of packs, and write the two files of the strangers."""
    rows: list[NDArray[np.float32]] = []
    numbers: list[int] = []
    for number, kind in enumerate(kinds):
        for pixels in pictures[kind.name]:
            rows.append(np.concatenate(features.blocks_of(pixels)))
            numbers.append(number)
    # Half precision: the features differ by far more between pictures than it rounds.
    halved = np.stack(rows).astype(np.float16)
    content, sha256 = pack_arrays({"features": halved, "kinds": np.array(numbers, np.int16)})
    info = StrangersInfo(
        recipe=recipe,
        encoder=features.encoder.info.sha256,
        hand_features=TRAITS_VERSION,
        nets=features.net_hashes,
        kinds=tuple(
            kind.model_copy(update={"pictures": len(pictures[kind.name])}) for kind in kinds
        ),
        sha256=sha256,
    )
    (folder / FEATURES).write_bytes(content)
    (folder / DESCRIPTION).write_text(info.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return info


@cache
def _read(description: Path, features: Path) -> tuple[StrangersInfo, Strangers]:
    what = "the pictures of strangers"
    info = read_description(description, StrangersInfo, what=what, hint=_AGAIN)
    arrays = checked_arrays(features, info.sha256, what=what, hint=_AGAIN)
    try:
        rows = np.asarray(arrays["features"], np.float32)
        numbers = np.asarray(arrays["kinds"], np.int64)
    except KeyError as error:
        raise unusable_weights(what, "lack some of their features", _AGAIN) from error
    names = tuple(kind.name for kind in info.kinds)
    everyday = frozenset(number for number, kind in enumerate(info.kinds) if kind.everyday)
    return info, Strangers(rows, numbers, names, everyday=everyday)
