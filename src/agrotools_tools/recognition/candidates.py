"""Recognisers (a shipped net, a pack or a vision model) and candidates of the recognition tools."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.result import ResultPart
from agrotools.calling.services import VLM
from agrotools.calling.workspace import save_artifact
from agrotools.core import ToolError
from agrotools.core.files import cached_files, sha256_of_file
from agrotools.knowledge.entries import KnowledgeEntry
from agrotools.vision import Box
from agrotools.vision.formats import clipped_region
from agrotools.vision.reading import RgbImage, crop_pixels, read_image
from agrotools_tools.recognition import (
    NAMED_FROM,
    NOT_TESTED_AGAINST_LOOK_ALIKES,
    NetName,
)
from agrotools_tools.recognition.pack_subjects import is_negative, shown_by_labels

if TYPE_CHECKING:
    from agrotools_tools.recognition.net import Judgement

CandidateKind = Literal["pest", "disease", "weed", "crop", "healthy", "other"]
_OVERLAY_PX = 512
PACK = "pack:"
PESTS = "pests"
pest_pack_files = partial(cached_files, "packs", PESTS, suffixes=(".json", ".npz"))
"""Function that returns the files of the pack that names pests where no back-end is chosen."""
BACKENDS = ("offline", PACK, VLM)
BY_NET = "named by the net"
NOT_CALIBRATED = "not_calibrated"
"""Flag of candidates whose scores are withheld."""
LEAST_SUBJECTS = 40
"""Minimum number of independent subjects to calibrate an interval or a probability on."""
_EVEN = 1.0
_LEAST_DETAIL_PX = 64
_DISPUTED = 0.5


def backend_files(backend: str) -> tuple[Path, ...]:
    """Return the files of a back-end ``pack:NAME``."""
    from agrotools_tools.recognition.packs import pack_files

    return pack_files(backend.removeprefix(PACK))


@dataclass(frozen=True, eq=False)
class ImagePart:
    """Picture, uint8 (rows, columns, 3), and the part ``box`` of it to recognise, in pixels of the file.

    ``size``: width and height in the file. A picture that was decoded smaller is to be recognised as a whole.
    """

    picture: RgbImage
    box: Box
    size: tuple[int, int]
    name: str
    flags: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        return self.box == (0, 0, *self.size)

    @property
    def part(self) -> NDArray[np.uint8]:
        return crop_pixels(self.picture.pixels, self.in_picture(self.box))

    def in_picture(self, box: Box) -> Box:
        """Return a box, in pixels of the file, in those of the picture as it was decoded."""
        across, down = self.picture.width / self.size[0], self.picture.height / self.size[1]
        x0, y0, x1, y1 = box
        return round(x0 * across), round(y0 * down), round(x1 * across), round(y1 * down)

    def in_file(self, box: Box) -> Box:
        """Return a box, in pixels of :attr:`part`, in those of the file."""
        part = self.in_picture(self.box)
        across, down = self.size[0] / self.picture.width, self.size[1] / self.picture.height
        x0, y0, x1, y1 = box
        left, top = part[:2]
        return (
            round((x0 + left) * across),
            round((y0 + top) * down),
            round((x1 + left) * across),
            round((y1 + top) * down),
        )


def read_image_part(
    image: Path, region: Box | None, name: str, *, may_reduce: bool = True
) -> ImagePart:
    """Read a picture for recognition; ToolError ``nothing_found`` if the part has only one colour.

    A whole picture is decoded no larger than the nets need it, if it ``may_reduce``.
    """
    from agrotools_tools.recognition.net import LEAST_SIDE_PX

    least_px = LEAST_SIDE_PX if region is None and may_reduce else None
    picture = read_image(image, shown_as=name, least_px=least_px)
    size = picture.full_size or (picture.width, picture.height)
    box, clipped = clipped_region(region, *size, name)
    part = ImagePart(picture, box, size, name, ()).part
    if (
        float(part[:: 1 + part.shape[0] // 256, :: 1 + part.shape[1] // 256].std(axis=(0, 1)).max())
        < _EVEN
    ):
        raise ToolError(
            "nothing_found",
            f"{name} shows one colour only there",
            argument="image",
            hint="use a picture of a plant",
        )
    flags = [*picture.flags, *clipped]
    if picture.is_grey:
        flags.append("grey_picture")
    if min(part.shape[:2]) < _LEAST_DETAIL_PX:
        flags.append("low_resolution")
    return ImagePart(picture, box, size, name, tuple(flags))


@dataclass(frozen=True, eq=False)
class Recogniser:
    """Recogniser of a tool: a shipped net or a pack.

    ``is_shipped``: True if it is a shipped net, whose labels the knowledge base maps to entries. ``crops``: labels of
    each crop, empty if the recogniser does not distinguish crops; labels of no crop are never candidates.
    ``uncalibrated``: crops whose scores are not to be given, and why. ``shows``: what a pack's pictures show, as its
    maker or else its labels say it; empty if nothing says it.
    """

    name: str
    labels: tuple[str, ...]
    crops: dict[str, tuple[str, ...]]
    is_shipped: bool
    judge: "Callable[[NDArray[np.uint8]], Judgement]"
    notes: tuple[str, ...]
    flags: tuple[str, ...] = ()
    uncalibrated: Mapping[str, str] = field(default_factory=dict)
    shows: tuple[str, ...] = ()


def recogniser_for(backend: str | None, shipped: NetName, image: Path | None) -> Recogniser:
    """Return the pack named by a back-end, or the shipped net. ``image``: what is to be recognised, if anything is."""
    from agrotools.knowledge.kb_names import kb_names
    from agrotools_tools.recognition.net import shipped_net
    from agrotools_tools.recognition.packs import load_pack

    if backend is not None and backend.startswith(PACK):
        pack = load_pack(backend.removeprefix(PACK))
        figures = pack.info.figures
        low, high = figures.accuracy_95
        untested = "" if figures.strangers.look_alikes else f"; {NOT_TESTED_AGAINST_LOOK_ALIKES}"
        notes = (
            f"named by the pack {pack.info.name}: accuracy {figures.accuracy:.2f} ({low:.2f} to {high:.2f}) on "
            f"{figures.pictures} pictures of its own collection, out of fold; it named {figures.strangers.named:.3f} "
            f"of pictures of other things{untested}",
        )
        has_seen = image is not None and pack.has_seen(sha256_of_file(image))
        flags = ("seen_in_training",) if has_seen else ()
        return Recogniser(
            f"pack {pack.info.name}",
            pack.info.classes,
            {},
            False,
            pack.judge,
            notes,
            flags,
            shows=pack.info.shows or shown_by_labels(pack.info.classes, kb_names()),
        )
    net = shipped_net(shipped)
    info = net.info
    count = sum(map(len, info.crops.values())) or len(info.classes)
    away = info.figures.get("days left out")
    warning = f"; on days and places not learnt it names {away['top1']:.2f} right" if away else ""
    flags = ("ranking_only",) if away else ()  # whether the day was learnt, no picture tells
    notes = (f"{BY_NET} {info.name}, which knows {count} classes{warning}",)
    return Recogniser(
        f"net {info.name}",
        info.classes,
        info.crops,
        True,
        net.judge,
        notes,
        flags,
        info.uncalibrated,
    )


class Candidate(ResultPart):
    """One thing that the picture may show."""

    label: str
    """what the recogniser calls it"""
    common_name: str | None
    """English name; null where the knowledge base has no entry"""
    scientific_name: str | None
    """scientific name; null where there is none or it is not known"""
    kind: CandidateKind
    """what it is; healthy: a leaf without symptoms; other: none of these, or not in the knowledge base"""
    kb_id: str | None
    """id for lookup_agronomy; null where the knowledge base has no entry"""
    score: float | None
    """calibrated probability, 0 to 1 (of the candidates allowed); null where it is not calibrated"""


def candidates_of(
    ranked: Sequence[tuple[str, float]],
    entry_of: Callable[[str], KnowledgeEntry | None],
    top_k: int,
) -> tuple[Candidate, ...]:
    """Return the first ``top_k`` ranked labels as candidates, with the names from their knowledge base entries."""
    return tuple(_candidate(label, entry_of(label), score) for label, score in ranked[:top_k])


def _candidate(label: str, entry: KnowledgeEntry | None, score: float) -> Candidate:
    from agrotools.knowledge.kb_names import healthy_crop

    kind, common_name, kb_id = "other", None, None
    if healthy_crop(label) is not None and not is_negative(label):
        crop = entry.names.en if entry and entry.kind == "crop" else None
        kind, common_name, entry = (
            "healthy",
            f"healthy {crop} leaf" if crop else "healthy leaf",
            None,
        )
    elif entry:
        kind, common_name, kb_id = (
            "other" if entry.kind == "method" else entry.kind,
            entry.names.en,
            entry.id,
        )
    sci = entry.names.sci if entry else None
    return Candidate(
        label=label,
        common_name=common_name,
        scientific_name=sci,
        kind=kind,
        kb_id=kb_id,
        score=score,
    )


def display_name(candidate: Candidate) -> str:
    """Return the common name of a candidate, or its label if it has none."""
    return candidate.common_name or candidate.label.replace("_", " ")


def identifier(candidate: Candidate) -> str:
    """Return the id of a candidate's entry, or its label if it has none."""
    return candidate.kb_id or candidate.label


def best_of(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the first candidate if it is more likely right than wrong, else None."""
    return candidates[0] if candidates and (candidates[0].score or 0.0) >= NAMED_FROM else None


def name_by_recogniser(
    recogniser: Recogniser,
    looked: ImagePart,
    allowed: Sequence[str] | None,
    entry_of: Callable[[str], KnowledgeEntry | None],
    top_k: int,
    *,
    narrowed_by: str,
    more: str,
    hint: str,
    setup: str,
) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    """Return the candidates of a recogniser, among the ``allowed`` labels if given, and flags.

    If these have a total probability below 0.5, the flag ``contradicts_`` plus ``narrowed_by`` (the restricting
    argument) is set. ToolError ``low_confidence``: the picture is unlike those that the recogniser knows; ``more``,
    ``hint`` and ``setup`` are parts of the message.
    """
    judgement, flags = recogniser.judge(looked.part), recogniser.flags
    mask = None
    if allowed is not None:
        mask = np.array([label in allowed for label in recogniser.labels], np.bool_)
        if float(judgement.probabilities()[mask].sum()) < _DISPUTED:
            flags = (*flags, f"contradicts_{narrowed_by}")
    shares = judgement.probabilities(mask)
    named = (
        allowed
        or [label for own in recogniser.crops.values() for label in own]
        or recogniser.labels
    )
    ranked = [
        (recogniser.labels[place], float(shares[place]))
        for place in np.argsort(-shares, kind="stable")
    ]
    candidates = candidates_of([one for one in ranked if one[0] in named], entry_of, top_k)
    if not judgement.is_known:
        raise unknown_names(looked, recogniser.name, candidates, more, hint, setup)
    return candidates, flags


def unknown_names(
    looked: ImagePart,
    by: str,
    candidates: Sequence[Candidate],
    more: str,
    hint: str,
    setup: str | None = None,
) -> ToolError:
    """Return the error for a picture that is unlike the pictures a recogniser knows."""
    near = (
        f"; nearest would be {', '.join(display_name(one) for one in candidates)}"
        if candidates
        else ""
    )
    return ToolError(
        "low_confidence",
        f"{looked.name} is unlike the pictures that the {by} knows, so nothing is named{near}{more}",
        argument="image",
        hint=hint,
        setup=setup,
        candidates=tuple(identifier(one) for one in candidates),
    )


def choose_by_vision_model(
    looked: ImagePart,
    what: str,
    names: Sequence[str],
    entry_of: Callable[[str], KnowledgeEntry | None],
    top_k: int,
) -> tuple[tuple[Candidate, ...], tuple[str, ...], tuple[str, ...]]:
    """Return candidates of a vision model behind an endpoint, with notes and flags.

    ``what``: kind of thing to name, as in "disease of bean". ToolError ``low_confidence``: the model names nothing.
    """
    from agrotools_tools.vision_questions import choose_name

    answer = choose_name(looked.picture.pixels, looked.box, what, names, top_k=top_k)
    candidates = candidates_of(answer.candidates, entry_of, top_k)
    if not candidates:
        hint = "try another region, or another back-end"
        raise unknown_names(looked, f"back-end {VLM}", candidates, "", hint)
    return candidates, answer.notes, answer.flags


def naming_fields(
    looked: ImagePart,
    candidates: Sequence[Candidate],
    best: Candidate | None,
    box: Box | None,
    notes: Sequence[str],
    flags: Sequence[str],
    *,
    file: str,
    title: str,
) -> dict[str, Any]:
    """Return the fields that the results of both tools have; scores that are not calibrated are withheld, and the flag
    ``uncertain`` says so as it does where nothing is named. The overlay ``file`` shows the analysed part, the object in
    it (``box``) and the candidates."""
    from agrotools.vision.overlay import BLUISH_GREEN, ORANGE, Mark, box_points, draw_marks

    is_withheld = NOT_CALIBRATED in flags
    if is_withheld:
        candidates = [one.model_copy(update={"score": None}) for one in candidates]
    # A name without a score says nothing about how likely it is, so it is a doubt like no name at all.
    doubts = ("uncertain",) if best is None or is_withheld else ()
    pixels = looked.picture.pixels
    colour = BLUISH_GREEN if best else ORANGE
    marks = [Mark(colour, box_points(looked.in_picture(box)))] if box else []
    legend = [
        (
            BLUISH_GREEN if best and not rank else ORANGE,
            f"{display_name(one)}{_format_score(one.score)}",
        )
        for rank, one in enumerate(candidates)
    ]
    picture = draw_marks(
        pixels,
        marks,
        legend=legend,
        region=None if looked.is_whole else looked.box,
        title=title if best else "not sure",
        zoom=_OVERLAY_PX / max(pixels.shape),
    )
    return {
        "candidates": tuple(candidates),
        "abstained": best is None,
        "overlay": save_artifact(file, "overlay", picture),
        "notes": (*looked.picture.notes, *notes),
        "flags": tuple(dict.fromkeys((*looked.flags, *flags, *doubts))),
    }


def _format_score(score: float | None) -> str:
    if score is None:
        return ""
    return (
        f" {score:.2f}" if score >= 0.005 else " <0.01"
    )  # never "0.00", because a listed candidate is possible
