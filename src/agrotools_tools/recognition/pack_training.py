"""Training of packs from labelled pictures: a linear head on embeddings, and heads that know other things.

They are calibrated by cross-validation (:mod:`agrotools_tools.recognition.pack_checks`). Training needs scikit-learn
(extra ``train``) for the logistic regressions; the resulting pack needs only NumPy.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError, UsageError
from agrotools.core.files import sha256_of_file
from agrotools.core.lazy import import_of_extra
from agrotools.core.texts import counted_names
from agrotools.knowledge.kb_names import kb_names
from agrotools.vision.reading import read_image
from agrotools_tools.recognition.backbone import Backbone
from agrotools_tools.recognition.labelled_pictures import LabelledImage, check_classes
from agrotools_tools.recognition.net import LEAST_SIDE_PX
from agrotools_tools.recognition.pack_checks import KEEP, Checked, check_pack
from agrotools_tools.recognition.pack_features import PackFeatures, shipped_features
from agrotools_tools.recognition.pack_heads import TrainingData, fit_head
from agrotools_tools.recognition.pack_subjects import ANY, is_known_crop, shown_by_labels
from agrotools_tools.recognition.packs import (
    PackHead,
    PackInfo,
    refuse_existing_name,
    save_pack,
)
from agrotools_tools.recognition.strangers import (
    Strangers,
    is_of_crop,
    shown_kinds,
    stranger_kinds,
    strangers_for,
)
from agrotools_tools.vision.strangeness import TRAITS_VERSION

Progress = Callable[[str], None]

_EVERY = 50
"""Pictures between two lines of progress, more with many pictures."""
_MOST_LINES = 20
_SHOWN = 5
"""Faults that a message lists."""


def train_pack(
    pictures: Sequence[LabelledImage],
    out: Path,
    *,
    licence_note: str = "",
    shows: Sequence[str] = (),
    backbone: Backbone | None = None,
    others: Sequence[LabelledImage] = (),
    skip_unreadable: bool = False,
    keep: float = KEEP,
    progress: Progress = lambda _: None,
) -> PackInfo:
    """Train a recogniser on ``pictures`` and write it atomically to the folder ``out``.

    Args:
        pictures: labelled pictures, at least 4 of a class.
        out: folder to write; must not exist.
        licence_note: terms of the pictures; default: theirs, unnamed.
        shows: what the pictures show: names of crops or things, or ``any`` for no crop in particular. Default: the
            crops that the labels name; if they name none, a call that names a crop gets a flag. Shipped strangers of
            that kind are not learnt as strangers.
        backbone: encoder of the user, whose embeddings are learnt from beside those of the shipped nets.
        others: the user's own pictures of other things, such as neighbours of the crop, labelled by their kind. They
            are learnt beside the shipped strangers, and tested.
        skip_unreadable: leave out pictures that cannot be read instead of raising.
        keep: out-of-fold share of the pictures that are familiar enough for a name.
        progress: called with lines of progress.

    Raises:
        UsageError: ``out`` exists or cannot be written, pictures are unreadable or have two labels, a class has too few
            pictures, or scikit-learn is missing.
    """
    import_of_extra("sklearn", "train", "training needs scikit-learn")
    from threadpoolctl import threadpool_limits

    refuse_existing_name(out)
    check_classes(list(pictures))
    features = shipped_features(backbone)
    data = _training_data(_look_at(pictures, features, skip_unreadable, progress))
    shows = tuple(shows) or shown_by_labels(data.names, kb_names())
    not_strange = shown_kinds(stranger_kinds(), data.names, shows)
    strangers = strangers_for(features, without=not_strange)
    if warning := _warning_of_unknown_crop(shows, not_strange):
        progress(warning)
    progress(_stranger_line(strangers, not_strange))
    strangers = strangers.widened(0 if backbone is None else backbone.info.width)
    if others:
        seen = _look_at(others, features, skip_unreadable, progress)
        _refuse_own_among(seen, data)
        strangers = strangers.with_own(seen.rows, [one.label for one in seen.pictures])
    progress(f"training on {len(data.classes)} pictures of {len(data.names)} classes")
    with threadpool_limits(1):  # matrices are small, and sums do not depend on the machine
        checked, head = _train(data, strangers, keep)
    info = PackInfo(
        name=out.name,
        classes=data.names,
        encoder=features.encoder.info.sha256,
        rests_on=f"{features.encoder.info.learnt_from}: {features.encoder.info.source}",
        hand_features=TRAITS_VERSION,
        nets=features.net_hashes,
        regularisation=checked.regularisation,
        temperature=checked.temperature,
        threshold=checked.threshold,
        most_stranger=checked.most_stranger,
        most_look_alike=checked.most_look_alike,
        shows=shows,
        backbone=None if backbone is None else backbone.info,
        figures=checked.figures,
        licence_note=licence_note
        or "learnt from your own pictures; their terms hold for the pack too",
        weights_sha256="",
    )
    return save_pack(out, info, head, sorted(set(data.digests)))


def _warning_of_unknown_crop(shows: Sequence[str], not_strange: Sequence[str]) -> str | None:
    """Return a warning if the knowledge base does not know a crop: it may be a name of one that ships as a stranger."""
    kinds, names = stranger_kinds(), kb_names()
    unknown = [
        name
        for name in shows
        if name != ANY and not is_known_crop(name, names) and not shown_kinds(kinds, (), (name,))
    ]
    crops = [kind.words[0] for kind in kinds if is_of_crop(kind) and kind.name not in not_strange]
    if not unknown or not crops:
        return None
    return (
        f"warning: the knowledge base has no crop {' or '.join(unknown)}, so it is taken as a new one, and pictures of "
        f"{', '.join(crops)} count as other things\n  if your crop is one of these, train again with its name in this "
        f"list, e.g. --shows {crops[0]}"
    )


def _stranger_line(strangers: Strangers, not_strange: Sequence[str]) -> str:
    """Return a line on what counts as none of the classes, so that a user can say that it does not."""
    kinds = [strangers.names[number] for number in np.unique(strangers.kinds)]
    line = f"{len(strangers)} pictures of other things teach the pack what is none of your classes"
    if not_strange:
        line += f"; {', '.join(not_strange)} are not among them, as your pictures show these"
        return line
    return (
        f"{line}: {', '.join(kinds)}. If yours show one of these, train again with --shows and the "
        "name of the thing, e.g. --shows coffee"
    )


def _train(data: TrainingData, strangers: Strangers, keep: float) -> tuple[Checked, PackHead]:
    checked = check_pack(data, strangers, keep)
    everything = np.arange(len(data.classes))
    return checked, fit_head(data, everything, strangers, checked.regularisation)


class _Seen(NamedTuple):
    """Pictures that were read, with their features (n, features), the widths of the blocks, and hashes of the files."""

    pictures: list[LabelledImage]
    rows: NDArray[np.float32]
    blocks: tuple[int, ...]
    digests: list[str]


def _look_at(
    pictures: Sequence[LabelledImage], features: PackFeatures, skip: bool, progress: Progress
) -> _Seen:
    """Return the features of the pictures; identical ones get the same group. UsageError: a picture has two labels,
    none can be read, or, without ``skip``, some cannot."""
    rows: list[NDArray[np.float32]] = []
    used: list[LabelledImage] = []
    digests: list[str] = []
    blocks: tuple[int, ...] = ()
    faults: list[str] = []
    first: dict[str, LabelledImage] = {}
    every = max(_EVERY, len(pictures) // _MOST_LINES)
    for number, one in enumerate(pictures, start=1):
        try:
            picture = read_image(one.path, shown_as=one.path.name, least_px=LEAST_SIDE_PX)
            digest = sha256_of_file(one.path)
        except (ToolError, OSError) as error:
            faults.append(
                error.message
                if isinstance(error, ToolError)
                else f"{one.path.name}: {error.strerror}"
            )
            continue
        twin = first.setdefault(digest, one)
        if twin.label != one.label:
            why = f"{twin.path} and {one.path} are the same picture with two labels ({twin.label}, {one.label})"
            raise UsageError(why, hint="keep the right one")
        parts = features.blocks_of(picture.pixels)
        blocks = tuple(len(part) for part in parts)
        rows.append(np.concatenate(parts))
        used.append(
            replace(one, group=twin.group)
        )  # identical pictures must not be on both sides of a split
        digests.append(digest)
        if number % every == 0 or number == len(pictures):
            progress(f"looked at {number} of {len(pictures)} pictures")
    if faults and not skip:
        listed = counted_names(faults, _SHOWN, "; ")
        why = f"{len(faults)} of {len(pictures)} pictures cannot be read: {listed}"
        raise UsageError(why, hint="fix or remove them, or leave them out with --skip-unreadable")
    if not used:
        raise UsageError("none of the pictures can be read")
    if faults:
        progress(f"left out {len(faults)} pictures that cannot be read")
    return _Seen(used, np.stack(rows), blocks, digests)


def _training_data(seen: _Seen) -> TrainingData:
    check_classes(seen.pictures)
    names = tuple(sorted({one.label for one in seen.pictures}))
    classes = np.array([names.index(one.label) for one in seen.pictures], np.int64)
    groups = tuple(one.group for one in seen.pictures)
    return TrainingData(seen.rows, seen.blocks, classes, groups, names, tuple(seen.digests))


def _refuse_own_among(others: _Seen, data: TrainingData) -> None:
    """Raise a UsageError if a picture of another thing is one of the pack's own."""
    own = set(data.digests)
    for one, digest in zip(others.pictures, others.digests, strict=True):
        if digest in own:
            why = f"{one.path} is one of your labelled pictures, too"
            raise UsageError(why, hint="take it out of --other, or out of the labelled pictures")
