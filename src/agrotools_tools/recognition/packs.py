"""Packs: recognisers that users train on their own pictures (:mod:`agrotools_tools.recognition.pack_training`).

A pack is a folder: ``pack.json`` describes its classes and accuracy, and ``weights.npz`` holds plain arrays, checked
against a hash. A pack in the user's packs folder is referred to by name, a pack elsewhere by path (any value that
contains a slash).

A pack that is missing, damaged, or trained on other nets raises a ``ToolError`` of the kind ``backend_unavailable``.
"""

import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from shutil import rmtree
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from agrotools.core import FrozenModel, ToolError, UsageError
from agrotools.core.files import cache_dir
from agrotools_tools.recognition import NetName
from agrotools_tools.recognition.backbone import BackboneInfo, load_backbone
from agrotools_tools.recognition.encoder import shipped_encoder
from agrotools_tools.recognition.net import (
    SHIPPED,
    FeatureDistribution,
    Floats,
    Judgement,
    shipped_net,
)
from agrotools_tools.recognition.pack_features import PackFeatures
from agrotools_tools.vision.nets import (
    Arrays,
    DescriptionPart,
    checked_arrays,
    pack_arrays,
    read_description,
    unusable_weights,
)
from agrotools_tools.vision.strangeness import TRAITS_VERSION

DESCRIPTION, WEIGHTS = "pack.json", "weights.npz"
FORMAT = 3
"""Number of the form of packs; 3: the shipped encoder is in every pack, and other things are told by it alone."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_AGAIN = "train the pack again: agrotools tools packs train --images DIR --out PACK"


class ClassFigures(FrozenModel):
    """Out-of-fold metrics of one class."""

    n: int
    precision: FiniteFloat
    recall: FiniteFloat
    f1: FiniteFloat


class StrangerFigures(FrozenModel):
    """How often pictures of other things get a name.

    Each shipped kind is left out of training when its pictures are judged; of kinds of the user, the pictures that are
    judged. ``named``: mean over shipped kinds. ``by_kind``: of each. ``not_strange``: kinds that the pack's own
    pictures show by their labels or by what the user said, and which were therefore neither learnt nor judged as
    strangers. ``nearest``: kind whose pictures are most like the pack's own. ``look_alikes``: share of the pictures
    that get a name of each kind of the user; empty if the user gave none: not tested against look-alikes.
    """

    pictures: int
    named: FiniteFloat
    by_kind: dict[str, FiniteFloat]
    not_strange: tuple[str, ...]
    nearest: str
    look_alikes: dict[str, FiniteFloat]


class CurvePoint(FrozenModel):
    """Out-of-fold accuracy with at most ``pictures`` of each class to learn from."""

    pictures: int
    accuracy: FiniteFloat


class PackFigures(FrozenModel):
    """Cross-validated metrics of a pack (out of fold, split by group) on its own collection of pictures.

    ``accuracy_95`` (Wilson 1927) counts groups, not pictures. ``majority`` is the accuracy of always predicting the
    largest class. ``named``: share of the pictures that get a name; ``right_of_named``: share of those whose name is
    right, None if none gets one. ``left_out``: for each class, the share of its pictures that get a name (a wrong one)
    if the class is left out of training; empty with two classes. ``curve``: how accuracy grows with pictures.
    """

    pictures: int
    groups: int
    folds: int
    accuracy: FiniteFloat
    accuracy_95: tuple[FiniteFloat, FiniteFloat]
    majority: FiniteFloat
    macro_f1: FiniteFloat
    named: FiniteFloat
    right_of_named: FiniteFloat | None
    strangers: StrangerFigures
    left_out: dict[str, FiniteFloat]
    curve: tuple[CurvePoint, ...]
    by_class: dict[str, ClassFigures]


class PackInfo(FrozenModel):
    """Description of a pack."""

    format: Literal[3] = FORMAT
    name: str
    classes: Annotated[tuple[str, ...], Field(min_length=2)]
    encoder: str
    """Hash of the weights of the shipped encoder, which the pack uses."""
    rests_on: str
    """Pictures that the weights of the encoder were learnt from, with their licence."""
    hand_features: int
    nets: dict[NetName, str]
    """Shipped nets whose embeddings the pack uses, with the hashes of their weights."""
    regularisation: FiniteFloat
    temperature: Annotated[FiniteFloat, Field(gt=0)]
    threshold: FiniteFloat
    """Smallest familiarity (:meth:`NameHead.familiarity`) of a picture for which the pack gives an answer."""
    most_stranger: FiniteFloat
    """Largest log odds of a stranger (:meth:`StrangerHead.odds`) with which the pack gives an answer."""
    most_look_alike: FiniteFloat | None = None
    """The same of a look-alike; None if the user gave none."""
    shows: tuple[str, ...] = ()
    """What the pictures show, as the user or else the labels say it: names of crops or things, or ``any`` for no crop
    in particular. Empty if nothing says it."""
    backbone: BackboneInfo | None = None
    """Encoder of the user whose embeddings the pack uses beside those of the nets; None if there is none."""
    figures: PackFigures
    licence_note: str
    weights_sha256: str


@dataclass(frozen=True, eq=False)
class NameHead:
    """Linear classifier of a pack and its distribution of training features.

    ``mean``, ``scale``: (features,); ``weights``: (features, classes); ``bias``: (classes,); all float32. ``familiar``:
    of the first features, those of the shipped encoder.
    """

    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    familiar: FeatureDistribution

    def standardised(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        return (features - self.mean) / self.scale

    def logits(self, features: NDArray[np.float32]) -> Floats:
        """Return logits, float64 (n, classes), of unstandardised features (n, features)."""
        return (self.standardised(features) @ self.weights + self.bias).astype(np.float64)

    def familiarity(self, features: NDArray[np.float32]) -> Floats:
        """Return the similarity to the training pictures, float64 (n,), at most 0."""
        width = self.familiar.centres.shape[1]
        return self.familiar.score(self.standardised(features)[:, :width])


@dataclass(frozen=True, eq=False)
class StrangerHead:
    """Linear classifier that tells pictures of other things.

    ``weights``: of the first features of a picture. Shipped strangers are told by those of the shipped encoder,
    look-alikes that the user gave by all.
    """

    weights: NDArray[np.float32]
    bias: float

    def odds(self, features: NDArray[np.float32]) -> Floats:
        """Return the log odds that a picture shows none of the pack's classes, float64 (n,)."""
        shared = features[:, : len(self.weights)].astype(np.float64)
        return shared @ self.weights.astype(np.float64) + self.bias


@dataclass(frozen=True, eq=False)
class PackHead:
    """The heads of a pack. ``look_alikes``: None if the user gave none."""

    names: NameHead
    strangers: StrangerHead
    look_alikes: StrangerHead | None = None

    def is_strange(
        self, features: NDArray[np.float32], most_stranger: float, most_look_alike: float | None
    ) -> NDArray[np.bool_]:
        """Return which pictures, by features (n, features), show another thing; the limits are those of a pack."""
        found = self.strangers.odds(features) > most_stranger
        if self.look_alikes is not None and most_look_alike is not None:
            found |= self.look_alikes.odds(features) > most_look_alike
        return found


@dataclass(frozen=True, eq=False)
class Pack:
    """Loaded pack.

    ``seen``: uint8 (pictures, 32), SHA-256 hashes of the training files.
    """

    info: PackInfo
    head: PackHead
    features: PackFeatures
    seen: NDArray[np.uint8]

    def judge(self, pixels: NDArray[np.uint8]) -> Judgement:
        """Classify one picture, uint8 (rows, columns, 3)."""
        features = np.concatenate(self.features.blocks_of(pixels))[None]
        names, info = self.head.names, self.info
        if features.shape[1] != len(names.mean):
            raise unusable_weights(f"the pack {info.name}", "expects other features", _AGAIN)
        is_strange = self.head.is_strange(features, info.most_stranger, info.most_look_alike)
        return Judgement(
            info.classes,
            names.logits(features)[0],
            info.temperature,
            score=float(names.familiarity(features)[0]),
            threshold=info.threshold,
            is_strange=bool(is_strange[0]),
        )

    def has_seen(self, sha256: str) -> bool:
        """True if a file with this hash was among the training pictures."""
        digest = np.frombuffer(bytes.fromhex(sha256), np.uint8)
        return bool((self.seen == digest).all(axis=1).any())


def packs_folder() -> Path:
    return cache_dir("packs")


def pack_path(name_or_path: str) -> Path:
    """Return the folder of a pack given by name or path (with a slash), whether or not it exists; UsageError if it
    is neither."""
    if os.sep in name_or_path:
        return Path(name_or_path).expanduser()
    if not _NAME.fullmatch(name_or_path):
        why = f"{name_or_path!r} is not a valid pack name"
        raise UsageError(why, hint="letters, digits, _ . and -; or a path with a slash in it")
    return packs_folder() / name_or_path


def pack_files(name_or_path: str) -> tuple[Path, ...]:
    """Return description and weights of a pack; ToolError ``backend_unavailable`` if there is no such pack."""
    try:
        folder = pack_path(name_or_path)
    except UsageError as error:
        raise ToolError("backend_unavailable", error.message, setup=error.hint) from error
    if not (folder / DESCRIPTION).is_file():
        known = [info.name for info in list_packs()[0]]
        there = f"packs here: {', '.join(known)}" if known else "there are none here yet"
        setup = f"{there}; train one: agrotools tools packs train --images DIR --out {name_or_path}"
        raise ToolError("backend_unavailable", f"there is no pack {name_or_path}", setup=setup)
    return folder / DESCRIPTION, folder / WEIGHTS


def list_packs() -> tuple[list[PackInfo], list[str]]:
    """Return the packs in the user's packs folder, sorted by name, and the faults of unusable ones."""
    packs: list[PackInfo] = []
    faults: list[str] = []
    folder = packs_folder()
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir() and not path.name.startswith("."):
            try:
                packs.append(read_pack(path).info.model_copy(update={"name": path.name}))
            except ToolError as error:
                faults.append(error.message)
    return packs, faults


def load_pack(name_or_path: str) -> Pack:
    """Load a pack by name or path."""
    return read_pack(pack_files(name_or_path)[0].parent)


def read_pack(folder: Path) -> Pack:
    """Load the pack in a folder; it is cached until one of its files changes."""
    try:
        stamps = [(folder / name).stat() for name in (DESCRIPTION, WEIGHTS)]
    except OSError as error:
        raise unusable_weights(
            f"the pack {folder.name}", f"cannot be read: {error.strerror}", _AGAIN
        ) from error
    return _load(str(folder), tuple((one.st_mtime_ns, one.st_size) for one in stamps))


@lru_cache(maxsize=4)
def _load(folder: str, stamps: tuple[tuple[int, int], ...]) -> Pack:  # noqa: ARG001 - the stamps are part of the key
    path = Path(folder)
    what = f"the pack {path.name}"
    _refuse_other_format(path, what)
    info = read_description(path / DESCRIPTION, PackInfo, what=what, hint=_AGAIN)
    if info.hand_features != TRAITS_VERSION:
        raise unusable_weights(what, "was trained for other features", _AGAIN)
    encoder = shipped_encoder()
    nets = tuple(shipped_net(name) for name in SHIPPED if name in info.nets)
    other = [net.info.name for net in nets if net.info.sha256 != info.nets[net.info.name]]  # pyright: ignore[reportArgumentType]
    if encoder.info.sha256 != info.encoder:
        other.insert(0, encoder.info.name)
    if other:
        raise unusable_weights(
            what, f"was trained on another net than is shipped now ({', '.join(other)})", _AGAIN
        )
    arrays = checked_arrays(
        path / WEIGHTS, info.weights_sha256, what=f"the weights of {what}", hint=_AGAIN
    )
    seen = np.asarray(arrays.get("seen", ()), np.uint8)
    seen = seen if seen.ndim == 2 and seen.shape[1] == 32 else np.zeros((0, 32), np.uint8)
    backbone = None if info.backbone is None else load_backbone(info.backbone, what)
    head = _head_of(arrays, len(info.classes), what)
    return Pack(info, head, PackFeatures(encoder, nets, backbone), seen)


class _Format(DescriptionPart):
    format: int = FORMAT


def _refuse_other_format(folder: Path, what: str) -> None:
    found = read_description(folder / DESCRIPTION, _Format, what=what, hint=_AGAIN).format
    if found != FORMAT:
        when = "an earlier" if found < FORMAT else "a later"
        why = f"was trained by {when} version of agrotools (its format is {found}, not {FORMAT})"
        raise unusable_weights(what, why, _AGAIN)


def _head_of(arrays: Arrays, classes: int, what: str) -> PackHead:
    columns = ("mean", "scale", "weights", "bias", "centres", "directions", "spread")
    try:
        mean, scale, weights, bias, centres, directions, spread = (
            np.asarray(arrays[name], np.float32) for name in columns
        )
        rest = float(arrays["rest"])
        stranger_weights = np.asarray(arrays["stranger_weights"], np.float32)
        stranger_bias = float(arrays["stranger_bias"])
        look_alikes = None
        if "look_alike_weights" in arrays:
            look_alike_weights = np.asarray(arrays["look_alike_weights"], np.float32)
            look_alikes = StrangerHead(look_alike_weights, float(arrays["look_alike_bias"]))
    except (KeyError, ValueError, TypeError) as error:
        raise unusable_weights(what, "lacks some of its weights", _AGAIN) from error
    widths = {stranger_weights.size, centres.shape[-1]}
    if weights.shape != (*mean.shape, classes) or len(widths) > 1 or max(widths) > mean.size:
        raise unusable_weights(what, "has weights that do not fit together", _AGAIN)
    if look_alikes is not None and look_alikes.weights.shape != mean.shape:
        raise unusable_weights(what, "has weights that do not fit together", _AGAIN)
    familiar = FeatureDistribution(centres, directions, spread, rest)
    names = NameHead(mean, scale, weights, bias, familiar)
    return PackHead(names, StrangerHead(stranger_weights, stranger_bias), look_alikes)


def refuse_existing_name(folder: Path) -> None:
    """Raise a UsageError, before training, if a folder exists or its parent is not writable."""
    if folder.exists():
        raise UsageError(
            f"{folder} exists already", hint="name another pack with --out, or remove that one"
        )
    above = next(parent for parent in folder.absolute().parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise UsageError(f"nothing can be written in {above}", hint="name another place with --out")


def save_pack(
    folder: Path, info: PackInfo, head: PackHead, training_hashes: Sequence[str]
) -> PackInfo:
    """Write a pack atomically, return its info with ``weights_sha256``; UsageError if it cannot be written."""
    arrays = {**vars(head.names), **vars(head.names.familiar)}
    del arrays["familiar"]
    arrays["stranger_weights"] = head.strangers.weights
    arrays["stranger_bias"] = head.strangers.bias
    if head.look_alikes is not None:
        arrays["look_alike_weights"] = head.look_alikes.weights
        arrays["look_alike_bias"] = head.look_alikes.bias
    arrays["seen"] = np.frombuffer(
        bytes.fromhex("".join(sorted(training_hashes))), np.uint8
    ).reshape(-1, 32)
    content, sha256 = pack_arrays({name: np.asarray(values) for name, values in arrays.items()})
    saved = info.model_copy(update={"weights_sha256": sha256})
    temporary: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        (temporary / WEIGHTS).write_bytes(content)
        (temporary / DESCRIPTION).write_text(
            saved.model_dump_json(indent=1) + "\n", encoding="utf-8"
        )
        temporary.chmod(0o755)
        temporary.rename(folder)
    except OSError as error:
        raise UsageError(
            f"cannot write {folder}: {error.strerror or error}", hint="name another place"
        ) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                rmtree(temporary)
    return saved
