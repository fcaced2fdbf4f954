"""Diagnosis of a leaf (disease, pest damage or healthy) by a shipped net, a user's pack or a vision model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agrotools.calling.arguments import ReferenceCall
from agrotools.calling.contract import Agree, ImageFile, Region, ToolResult, tool
from agrotools.calling.result import ResultPart
from agrotools.calling.services import VLM
from agrotools.calling.workspace import backend_in_use, shown_name
from agrotools.core import Arguments, Artifact, ToolError
from agrotools.knowledge.entries import Kind, KnowledgeEntry, kb_files
from agrotools.vision import Box
from agrotools_tools.recognition import shipped_files
from agrotools_tools.recognition.candidates import (
    BACKENDS,
    BY_NET,
    NOT_CALIBRATED,
    PACK,
    PESTS,
    Candidate,
    ImagePart,
    Recogniser,
    backend_files,
    best_of,
    choose_by_vision_model,
    identifier,
    name_by_recogniser,
    naming_fields,
    pest_pack_files,
    read_image_part,
    recogniser_for,
)
from agrotools_tools.recognition.pack_subjects import crops_in_label, crops_shown
from agrotools_tools.vision import STRANGENESS_FILES

if TYPE_CHECKING:
    from agrotools.knowledge.kb_names import KbNames
    from agrotools_tools.lesions.measure import Leaf

ProblemKind = Literal["pest", "disease", "auto"]
HEALTHY = "healthy leaf"
_TRAIN = (
    "train one on labelled photos: agrotools tools packs train --images DIR --out NAME, "
    "then use the back-end pack:NAME"
)
_KINDS: dict[ProblemKind, tuple[Kind, ...]] = {
    "pest": ("pest",),
    "disease": ("disease",),
    "auto": ("disease", "pest"),
}


LesionShape = Literal["none", "spots", "streaks", "blotches", "diffuse"]
_ANALYSIS_PX = 256
_VIEW_PX = 140
_LEAST_PX = 6
_NONE_PCT, _DIFFUSE_PCT = 1.0, 50.0
_LARGE_SHARE = 0.05
_LONG = 0.94
_LEAST_COLOUR = 0.15


class Evidence(ResultPart):
    """Symptoms of a leaf by colour rules, whatever the cause."""

    symptom_colours: tuple[str, ...]
    """colours of the tissue that has lost its green, most frequent first"""
    lesion_pct: float | None
    """share of the leaf that has lost its green, percent, rough; null where no leaf is found"""
    lesion_shape: LesionShape | None
    """spots: small and round; streaks: long; blotches: large; diffuse: over half of the leaf"""

    def describe(self) -> str:
        """Return the evidence as a clause without a full stop, empty if no leaf was found."""
        if self.lesion_pct is None:
            return ""
        if self.lesion_shape == "none":
            return "hardly any of the leaf has lost its green"
        colours = f", {' and '.join(self.symptom_colours)}" if self.symptom_colours else ""
        return (
            f"{self.lesion_pct:.0f} % of the leaf has lost its green ({self.lesion_shape}{colours})"
        )


NOTHING = Evidence(symptom_colours=(), lesion_pct=None, lesion_shape=None)


class Diagnosis(ToolResult):
    candidates: tuple[Candidate, ...]
    """what it may be, best first"""
    best: str | None
    """kb_id of the best candidate (its label where the knowledge base has no entry); null where abstained"""
    abstained: bool
    """true: no candidate is more likely right than wrong, so none is named"""
    evidence: Evidence
    """what is seen on the leaf, whatever the cause"""
    box: tuple[int, int, int, int] | None
    """bounds of the leaf [x0, y0, x1, y1], pixels of the original image; null where none is found"""
    overlay: Artifact
    """the picture with the leaf and the candidates"""


def _unusable(backend: str | None) -> dict[str, tuple[str, ...]]:
    """Pests have no shipped net: without a pack, the tool's own back-end names none."""
    has_pests = backend not in (None, "offline") or bool(pest_pack_files())
    return {"kind": () if has_pests else ("pest",)}


def _resolve(call: Arguments, known: ReferenceCall) -> Arguments:
    """Normalise the crop name, and treat ``auto`` as ``disease`` for the shipped net, where both give the same."""
    from agrotools.knowledge.kb_names import shipped_names
    from agrotools_tools.recognition.net import read_info

    names, by_net = (
        shipped_names(),
        any(str(note).startswith(BY_NET) for note in known.list_field("notes")),
    )
    if isinstance(crop := call["crop"], str):
        crops = read_info(shipped_files("leaves")[0]).crops
        call = {**call, "crop": _name_of_crop(crops, crop, names) or names.key_of_crop(crop)}
    return {**call, "kind": "disease"} if call["kind"] == "auto" and by_net else call


def _nameable(backend: str | None, arguments: Arguments) -> dict[str, str] | None:
    """Return what ``best`` may be, each with the label of the recogniser; None for a vision model, which may say any
    name of the knowledge base."""
    from agrotools.knowledge.kb_names import healthy_label, kb_names

    if backend == VLM:
        return None
    kind = cast(ProblemKind, arguments.get("kind") or "auto")
    crop = cast("str | None", arguments.get("crop"))
    names = kb_names()
    try:
        recogniser = recogniser_for(_recognising(backend, kind), "leaves", None)
        entry_of = _entries(recogniser, kind, crop, names)
        allowed, _ = _allowed(recogniser, crop, names, entry_of, "")
    except ToolError:
        return {}
    named: dict[str, str] = {}
    for label in recogniser.labels if allowed is None else allowed:
        entry = entry_of(label)
        named[healthy_label(label, crop) or (entry.id if entry else label)] = label
    return named


@tool(
    category="recognition",
    version="8",
    resolves=_resolve,
    backends=BACKENDS,
    data_files=(
        "nets/leaves.json",
        "nets/leaves.onnx",
        *STRANGENESS_FILES,
        kb_files,
        pest_pack_files,
    ),
    backend_files=backend_files,
    expert=("top_k",),
    example={"image": "image", "kind": "disease"},
    unusable=_unusable,
    nameable=_nameable,
)
def diagnose_pest_disease(
    image: ImageFile,
    kind: ProblemKind = "auto",
    crop: Annotated[str | None, Agree("text"), Field(min_length=2, max_length=60)] = None,
    region: Region | None = None,
    top_k: Annotated[int, Agree("presentation"), Field(ge=1, le=10)] = 3,
) -> Diagnosis:
    """Name the disease, pest damage or health of one leaf in a photo.

    Crops: bean, chilli, citrus, coffee; others are refused. Returns best (null if unsure), and candidates
    with score and kb_id.

    Raises:
        ToolError: ``low_confidence`` (unlike all that is known; carries candidates), ``backend_unavailable`` (no model
            for this crop or for pests; a pack or net that is missing or damaged), ``nothing_found`` (one colour only),
            ``region_empty``, and those of a file that cannot be read.

    Sources: a residual network trained from scratch (He et al. 2016), its card in ``data/nets/leaves.md``; temperature
        (Guo et al. 2017); evidence by colour rules (:mod:`agrotools_tools.lesions.measure`).
    """
    from agrotools.knowledge.kb_names import healthy_label, kb_names

    backend, names = backend_in_use(), kb_names()
    looked = read_image_part(image, region, shown_name(image), may_reduce=backend != VLM)
    evidence, box = (NOTHING, None) if kind == "pest" else symptoms_of(looked.part)
    box = None if box is None else looked.in_file(box)
    if backend == VLM:
        entries = names_to_choose(kind, crop, names)
        what = f"{' or '.join(_KINDS[kind])}{f' of {crop}' if crop else ''}"
        candidates, notes, flags = choose_by_vision_model(
            looked, what, list(entries), entries.get, top_k
        )
        notes = (*notes, f"chosen from {len(entries)} names of the knowledge base")
    else:
        candidates, notes, flags = _by_recogniser(
            backend, image, looked, kind, crop, names, top_k, evidence
        )
    best = best_of(candidates)
    if kind == "disease" and best is not None and best.kind == "pest":
        notes = (*notes, "the best candidate is damage by a pest")
    if kind == "pest" and best is not None and best.kind in ("disease", "healthy"):
        notes = (*notes, "the best candidate is no pest")
    return Diagnosis(
        best=(healthy_label(best.label, crop) or identifier(best)) if best else None,
        evidence=evidence,
        box=box,
        **naming_fields(
            looked, candidates, best, box, notes, flags, file="diagnosis.jpg", title="diagnosis"
        ),
    )


_Named = tuple[tuple[Candidate, ...], tuple[str, ...], tuple[str, ...]]


def _by_recogniser(
    backend: str | None,
    image: ImageFile,
    looked: ImagePart,
    kind: ProblemKind,
    crop: str | None,
    names: "KbNames",
    top_k: int,
    evidence: Evidence,
) -> _Named:
    words = evidence.describe()
    recogniser = recogniser_for(_recognising(backend, kind), "leaves", image)
    entry_of = _entries(recogniser, kind, crop, names)
    allowed, notes = _allowed(recogniser, crop, names, entry_of, words)
    subject = "pest" if kind == "pest" else "leaf"
    hint = f"take one {subject} that fills the picture, or its region"
    more = f"; seen: {words}" if words else ""
    candidates, flags = name_by_recogniser(
        recogniser,
        looked,
        allowed,
        entry_of,
        top_k,
        narrowed_by="crop",
        more=more,
        hint=hint,
        setup=f"for others, {_TRAIN}",
    )
    if crop is None and _knows_leaves(recogniser, entry_of):
        flags = (*flags, "crop_not_given")
    if crop is not None and not _is_checked(recogniser, names, entry_of):
        flags = (*flags, "crop_not_checked")
    if not recogniser.is_shipped and _knows_weeds_only(recogniser.labels, names):
        notes = (
            *notes,
            f"classes of the {recogniser.name} are weeds, not diseases or pests: identify_weed",
        )
        flags = (*flags, "not_of_diseases_or_pests")
    crop = next(
        (name for name, labels in recogniser.crops.items() if candidates[0].label in labels), ""
    )
    if why := recogniser.uncalibrated.get(crop):
        notes, flags = (*notes, f"No score for {crop}: {why}."), (*flags, NOT_CALIBRATED)
    return candidates, (*recogniser.notes, *notes), flags


def _recognising(backend: str | None, kind: ProblemKind) -> str | None:
    """Return the back-end that recognises the kind; ToolError ``backend_unavailable`` if there is none for pests."""
    if kind != "pest" or backend not in (None, "offline"):
        return backend
    if not pest_pack_files():
        raise ToolError(
            "backend_unavailable",
            'no pest recogniser is here; damage on leaves of coffee and chilli is named with kind "auto"',
            argument="kind",
            setup="make one: agrotools benchmarks get pests, then agrotools tools packs train pests "
            "(none ships, because no licence is stated for the pictures that it learns from)",
        )
    return PACK + PESTS


def _entries(
    recogniser: Recogniser, kind: ProblemKind, crop: str | None, names: "KbNames"
) -> Callable[[str], KnowledgeEntry | None]:
    """Return the function that finds the entry of a label of a recogniser."""
    if recogniser.is_shipped:
        return names.of_shipped
    return entries_of_labels(recogniser.labels, kind, crop, names).entries.get


def _allowed(
    recogniser: Recogniser,
    crop: str | None,
    names: "KbNames",
    entry_of: Callable[[str], KnowledgeEntry | None],
    words: str,
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the labels that are possible on ``crop`` (None for all), and notes."""
    if crop is None:
        note = "the crop was not given: a leaf of an unknown crop may be taken for one of these"
        return None, (note,) if _knows_leaves(recogniser, entry_of) else ()
    if recogniser.crops:
        if (known_as := _name_of_crop(recogniser.crops, crop, names)) is None:
            raise _unknown_crop(crop, f"the {recogniser.name}", tuple(recogniser.crops), words)
        return recogniser.crops[known_as], (f"candidates are those of {crop}",)
    shown = crops_shown(recogniser.shows, names)
    if shown and names.key_of_crop(crop) not in map(names.key_of_crop, shown):
        raise _unknown_crop(crop, f"the {recogniser.name}", shown, words)
    able = [label for label in recogniser.labels if _may_be_on(label, crop, shown or (), names)]
    entries = {label: entry_of(label) for label in able}
    narrowed = tuple(able) if len(able) < len(recogniser.labels) else None
    if shown:
        return narrowed, (f"the {recogniser.name} is of {', '.join(shown)}",)
    if all(entry is None for entry in entries.values()):
        note = f"whether the {recogniser.name} knows {crop} cannot be told from its labels"
        return narrowed, (note,)
    crop_classes = tuple(
        label for label, entry in entries.items() if entry is None or names.is_on(entry, crop)
    )
    if not any(entries[label] for label in crop_classes):
        known = sorted({name for entry in entries.values() if entry for name in entry.crops})
        raise _unknown_crop(crop, f"the {recogniser.name}", tuple(known), words)
    return crop_classes, (
        f"candidates are those of {crop}, and labels that are not in the knowledge base",
    )


def _may_be_on(label: str, crop: str, shown: Sequence[str], names: "KbNames") -> bool:
    """Return False for a label that names another crop that the pack shows: ``potato_healthy`` on tomato.

    A word of another crop means something else, as in ``orange rust``.
    """
    keys = {names.key_of_crop(name) for name in shown}
    named = {names.key_of_crop(name) for name in crops_in_label(label, names)} & keys
    return not named or names.key_of_crop(crop) in named


def _is_checked(
    recogniser: Recogniser,
    names: "KbNames",
    entry_of: Callable[[str], KnowledgeEntry | None],
) -> bool:
    """Return True if a recogniser knows its crops, or is of pests of which the knowledge base knows the crops."""
    if recogniser.crops:
        return True
    shown = crops_shown(recogniser.shows, names)
    if shown is None:
        return False
    is_of_pests = any(map(entry_of, recogniser.labels)) and not _knows_leaves(recogniser, entry_of)
    return bool(shown) or is_of_pests


def _knows_weeds_only(labels: Sequence[str], names: "KbNames") -> bool:
    """Return True if labels are names of weeds, and none is one of a disease or a pest."""
    kinds = {entry.kind for label in labels for entry in names.all_of_name(label)}
    return "weed" in kinds and kinds <= {"weed", "crop"}


def _knows_leaves(recogniser: Recogniser, entry_of: Callable[[str], KnowledgeEntry | None]) -> bool:
    """Return True for the shipped net, and for a pack with a disease or a healthy leaf among its labels."""
    from agrotools.knowledge.kb_names import healthy_crop

    if recogniser.is_shipped:
        return True
    return any(
        healthy_crop(label) is not None
        or ((entry := entry_of(label)) is not None and entry.kind == "disease")
        for label in recogniser.labels
    )


def _name_of_crop(crops: Iterable[str], crop: str, names: "KbNames") -> str | None:
    """Return the name that a recogniser uses for a crop, or None if it does not know the crop."""
    from agrotools.knowledge.kb_names import crop_forms

    forms = crop_forms(names.entries, crop)
    return next((name for name in crops if name.replace("_", "").replace(" ", "") in forms), None)


class LabelEntries(NamedTuple):
    """Entries of labels that belong together.

    ``crop`` is the single crop that has all labels, if it is given or follows from them. ``unclear`` maps the labels
    that the knowledge base has, but not on one crop with the others, to the crops that have them.
    """

    entries: dict[str, KnowledgeEntry | None]
    crop: str | None = None
    unclear: Mapping[str, tuple[str, ...]] = {}


def entries_of_labels(
    labels: Sequence[str], kind: ProblemKind, crop: str | None, names: "KbNames"
) -> LabelEntries:
    """Return the entries of the labels of a pack or a table, all on one crop: ``crop``, or the one that has them all.

    Two or more labels tell their crop if no other has them all and the shipped net knows them all there. Labels that
    name their crop ("bean rust") or are scientific names need no common one, and pests are the same on every crop. No
    entry of another crop is taken: labels without a common crop have none.
    """
    from agrotools.knowledge.kb_names import SHIPPED_LABELS, healthy_crop

    def resolved(on: str | None) -> dict[str, KnowledgeEntry | None]:
        return {label: entry_of_label(label, kind, on, names) for label in labels}

    plain = resolved(crop)
    crops_of = {label: on for label in labels if (on := _crops_of_label(label, kind, names))}
    unclear = {label: tuple(sorted(on)) for label, on in crops_of.items()}
    if crop is not None:
        is_known = any(names.is_on(entry, crop) for entry in names.of_kinds(("disease",)))
        return LabelEntries(
            plain,
            crop,
            {label: on for label, on in unclear.items() if is_known and not plain[label]},
        )
    healthy = {names.key_of_crop(on) for label in labels if (on := healthy_crop(label))}
    common = set[str].intersection(*crops_of.values()) if len(crops_of) > 1 else set[str]()
    ways = {on: resolved(on) for on in sorted(common) if healthy <= {names.key_of_crop(on)}}
    if len(ways) == 1:
        on, way = next(iter(ways.items()))
        if all(
            entry and SHIPPED_LABELS in entry.names.datasets for entry in map(way.get, crops_of)
        ):
            return LabelEntries({label: way[label] or plain[label] for label in labels}, on)
    if all(_names_crop(label, plain[label]) for label in crops_of):
        named = {on for label in crops_of if (entry := plain[label]) for on in entry.crops}
        return LabelEntries(plain, named.pop() if len(named) == 1 else None)
    return LabelEntries(plain | dict.fromkeys(crops_of), unclear=unclear)


def _crops_of_label(label: str, kind: ProblemKind, names: "KbNames") -> set[str]:
    """Return the crops on which a label means something of the kind; a pest alone only if it is asked for."""
    from agrotools.knowledge.kb_names import healthy_crop

    meant = names.meant_by(label) if healthy_crop(label) is None else []
    kinds = {entry.kind for entry in meant}
    if (
        "pest" not in kinds
        if kind == "pest"
        else "disease" in kinds or ("pest" in kinds and kind == "disease")
    ):
        crops = {on for entry in meant for on in entry.crops}
        return {on for on in crops if entry_of_label(label, kind, on, names)}
    return set()


def _names_crop(label: str, entry: KnowledgeEntry | None) -> bool:
    """Return True if a label tells its crop, or needs none because it is a scientific name or an id."""
    from agrotools.knowledge.foreign import english_names
    from agrotools.knowledge.words import folded

    if entry is None or label == entry.id or folded(label) == folded(entry.names.sci or ""):
        return entry is not None
    spelt = [f" {folded(name)} " for name in (label, *english_names(label))]
    return any(f" {folded(on)} " in name for on in entry.crops for name in spelt)


def entry_of_label(
    label: str, kind: ProblemKind, crop: str | None, names: "KbNames"
) -> KnowledgeEntry | None:
    """Return the entry of a label of a pack: of the kind asked for, else of a disease or pest, else of a crop."""
    kinds_in_order: tuple[tuple[Kind, ...], ...] = (_KINDS[kind], _KINDS["auto"], ("crop",))
    return next(
        (entry for kinds in kinds_in_order if (entry := names.of_name(label, kinds, crop))), None
    )


def _unknown_crop(crop: str, who: str, known: tuple[str, ...], words: str) -> ToolError:
    seen = f"; seen: {words}" if words else ""
    return ToolError(
        "backend_unavailable",
        f"{who} knows no leaves of {crop}, but of {', '.join(known) or 'none that the knowledge base names'}{seen}",
        argument="crop",
        setup=_TRAIN,
        candidates=known,
    )


def names_to_choose(
    kind: ProblemKind, crop: str | None, names: "KbNames"
) -> dict[str, KnowledgeEntry | None]:
    """Return the names that a vision model chooses from, each with its entry; a healthy leaf has none. ToolError
    ``backend_unavailable`` if there are none for ``crop``."""
    from agrotools_tools.vision_questions import MOST_NAMES

    entries: dict[str, KnowledgeEntry | None] = {
        entry.title: entry for entry in names.of_kinds(_KINDS[kind], crop)
    }
    if not entries:
        why = f"the knowledge base names no {' or '.join(_KINDS[kind])} of {crop} to choose from"
        raise ToolError(
            "backend_unavailable",
            why,
            argument="crop",
            hint="leave crop out",
            setup="add entries: agrotools tools kb add",
        )
    healthy = {} if kind == "pest" else {HEALTHY: None}
    return dict(list(entries.items())[: MOST_NAMES - len(healthy)]) | healthy


def symptoms_of(pixels: NDArray[np.uint8]) -> tuple[Evidence, Box | None]:
    """Return the symptoms of the leaf in a picture, uint8 (rows, columns, 3), and its bounds (None without a leaf).

    The picture is analysed at a small size, so the numbers are approximate.
    """
    from agrotools_tools.lesions.measure import leaf_in_field, leaf_on_board, shrink_image

    small = shrink_image(pixels, _ANALYSIS_PX)
    try:
        leaf = leaf_on_board(small) or leaf_in_field(small)
    except ToolError:
        return NOTHING, None
    factor = pixels.shape[1] / small.shape[1]
    x0, y0, x1, y1 = (round(edge * factor) for edge in leaf.box)
    return _evidence(small, leaf), (x0, y0, min(x1, pixels.shape[1]), min(y1, pixels.shape[0]))


def _evidence(small: NDArray[np.uint8], leaf: "Leaf") -> Evidence:
    import cv2

    from agrotools_tools.lesions.measure import (
        MOST_SHIFT,
        MOST_SHIFT_IN_FIELD,
        healthy_colour,
        leaf_view,
        lesion_level,
    )
    from agrotools_tools.vision.colours import dominant_colours

    view = leaf_view(small, leaf.mask, leaf.box, _VIEW_PX)
    most = MOST_SHIFT_IN_FIELD if "field_background" in leaf.flags else MOST_SHIFT
    lesion = np.zeros(view.mask.shape, np.uint8)
    lesion[view.mask] = lesion_level(view, healthy_colour(view), most) >= 1
    count, found, stats, _ = cv2.connectedComponentsWithStats(lesion, connectivity=8)
    labels, areas = np.asarray(found), np.asarray(stats, np.int64)[:, cv2.CC_STAT_AREA]
    large_parts = np.flatnonzero(areas[1:] >= _LEAST_PX) + 1
    lesion = np.isin(labels, large_parts)
    pct = 100 * float(lesion.sum() / max(1, int(view.mask.sum())))
    if pct < _NONE_PCT or count < 2:
        return Evidence(symptom_colours=(), lesion_pct=pct, lesion_shape="none")
    pixels = (
        np.asarray(cv2.cvtColor(view.lab, cv2.COLOR_LAB2RGB) * 255)
        .clip(0, 255)
        .astype(np.uint8)[lesion]
    )
    colours = tuple(one.name for one in dominant_colours(pixels, 3) if one.share >= _LEAST_COLOUR)
    # the median patch by area: half of the diseased area is in it or in smaller patches
    order = large_parts[np.argsort(areas[large_parts])]
    total = np.cumsum(areas[order])
    middle = labels == order[int(np.searchsorted(total, total[-1] / 2))]
    shape = "diffuse" if pct > _DIFFUSE_PCT else _shape(middle, int(np.count_nonzero(view.mask)))
    return Evidence(symptom_colours=colours, lesion_pct=pct, lesion_shape=shape)


def _shape(patch: NDArray[np.bool_], leaf_px: int) -> LesionShape:
    rows, columns = np.nonzero(patch)
    spread = np.cov(np.stack([columns, rows]).astype(np.float64)) + np.eye(2) / 12
    low, high = np.linalg.eigvalsh(spread)
    if np.sqrt(max(0.0, 1 - low / high)) > _LONG:
        return "streaks"
    return "blotches" if len(rows) > _LARGE_SHARE * leaf_px else "spots"
