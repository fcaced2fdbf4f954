"""Identification of weed species in a picture by a shipped net, a user's pack or a vision model."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import Field

from agrotools.calling.arguments import ReferenceCall, normalise_set
from agrotools.calling.contract import Agree, ImageFile, Region, ToolResult, tool
from agrotools.calling.services import VLM
from agrotools.calling.workspace import backend_in_use, shown_name
from agrotools.core import Arguments, Artifact, ToolError
from agrotools.knowledge.entries import Kind, KnowledgeEntry, kb_files
from agrotools_tools.recognition.candidates import (
    BACKENDS,
    Candidate,
    ImagePart,
    Recogniser,
    backend_files,
    best_of,
    choose_by_vision_model,
    display_name,
    identifier,
    name_by_recogniser,
    naming_fields,
    read_image_part,
    recogniser_for,
)
from agrotools_tools.recognition.pack_subjects import is_negative
from agrotools_tools.vision import STRANGENESS_FILES

if TYPE_CHECKING:
    from agrotools.knowledge.kb_names import KbNames

GrowthForm = Literal["grass", "broadleaf", "sedge", "shrub", "tree", "vine", "unknown"]
_KINDS: tuple[Kind, ...] = ("weed", "crop")
_TRAIN = "train a pack: agrotools tools packs train --images DIR --out NAME, then use the back-end pack:NAME"


class WeedIdentity(ToolResult):
    candidates: tuple[Candidate, ...]
    """what it may be, best first; the label negative means: none of the weeds it knows"""
    best: str | None
    """kb_id of the best candidate (its label where the knowledge base has no entry); null where abstained"""
    species: str | None
    """scientific name of the best candidate"""
    common_name: str | None
    """English name of the best candidate"""
    kb_id: str | None
    """id of the best candidate for lookup_agronomy"""
    growth_form: GrowthForm
    """of the best candidate, as the knowledge base has it"""
    is_weed: bool | None
    """false: none of the weeds it knows; null where abstained or not known"""
    abstained: bool
    """true: no candidate is more likely right than wrong, so none is named"""
    overlay: Artifact
    """the picture with the candidates"""


def _resolve(call: Arguments, _known: ReferenceCall) -> Arguments:
    """Normalise the candidate weeds, which may be in any order and given by any of their names."""
    from agrotools.knowledge.kb_names import shipped_names

    candidates, names = call["candidates"], shipped_names()
    if not isinstance(candidates, list):
        return call
    return {**call, "candidates": normalise_set([_key(str(name), names) for name in candidates])}


def _key(name: str, names: "KbNames") -> str:
    from agrotools.knowledge.words import folded

    entry = names.of_shipped(folded(name).replace(" ", "_"))
    return entry.id if entry else names.key_of_name(name, _KINDS)


def _nameable(backend: str | None, arguments: Arguments) -> dict[str, str] | None:
    """Return what ``best`` may be, each with the label of the recogniser; None for a vision model, which may say any
    name."""
    from agrotools.knowledge.kb_names import kb_names

    if backend == VLM:
        return None
    try:
        recogniser = recogniser_for(backend, "weeds", None)
        entry_of = _entries(recogniser, kb_names())
        given = cast("list[str] | None", arguments.get("candidates"))
        allowed, _, _ = _allowed(recogniser, given, entry_of)
    except ToolError:
        return {}
    named: dict[str, str] = {}
    for label in recogniser.labels if allowed is None else allowed:
        entry = entry_of(label)
        named[entry.id if entry else label] = label
    return named


@tool(
    category="recognition",
    version="7",
    resolves=_resolve,
    backends=BACKENDS,
    data_files=("nets/weeds.json", "nets/weeds.onnx", *STRANGENESS_FILES, kb_files),
    backend_files=backend_files,
    expert=("top_k",),
    example={"image": "image"},
    nameable=_nameable,
)
def identify_weed(
    image: ImageFile,
    region: Region | None = None,
    candidates: Annotated[
        list[Annotated[str, Field(min_length=2, max_length=120)]] | None,
        Agree("choice"),
        Field(min_length=1, max_length=100, description="names to choose among"),
    ] = None,
    top_k: Annotated[int, Agree("presentation"), Field(ge=1, le=10)] = 3,
) -> WeedIdentity:
    """Name the weed in a photo of one plant.

    It knows chinee apple, lantana, parkinsonia, parthenium, prickly acacia, rubber vine, siam weed, snake weed, and
    negative (none of them). Returns best (null if unsure), and candidates with score and kb_id.

    Raises:
        ToolError: ``low_confidence`` (unlike all that is known; carries candidates), ``backend_unavailable`` (none of
            the candidates asked for is known; a pack or net that is missing or damaged), ``nothing_found`` (one colour
            only), ``region_empty``, and those of a file that cannot be read.

    Sources: a residual network trained from scratch (He et al. 2016) on DeepWeeds (Olsen et al. 2019), its card in
        ``data/nets/weeds.md``; temperature (Guo et al. 2017).
    """
    from agrotools.knowledge.kb_names import kb_names

    backend, names = backend_in_use(), kb_names()
    looked = read_image_part(image, region, shown_name(image), may_reduce=backend != VLM)
    if backend == VLM:
        entries = names_to_choose(candidates, names)
        entry_of, titles = entries.get, list(entries)
        ranking, notes, flags = choose_by_vision_model(looked, "weed", titles, entry_of, top_k)
    else:
        ranking, entry_of, notes, flags = _by_recogniser(
            backend, image, looked, candidates, names, top_k
        )
    best = best_of(ranking)
    entry = entry_of(best.label) if best else None
    is_weed = None
    if best is not None and (is_negative(best.label) or best.kind in ("crop", "weed")):
        is_weed = best.kind == "weed" and not is_negative(best.label)
    title = display_name(best) if best else ""
    return WeedIdentity(
        best=identifier(best) if best else None,
        species=best.scientific_name if best else None,
        common_name=best.common_name if best else None,
        kb_id=best.kb_id if best else None,
        growth_form=(entry.taxonomy.growth_form if entry else None) or "unknown",
        is_weed=is_weed,
        **naming_fields(
            looked, ranking, best, looked.box, notes, flags, file="weed.jpg", title=title
        ),
    )


_EntryOf = Callable[[str], KnowledgeEntry | None]
_Identification = tuple[tuple[Candidate, ...], _EntryOf, tuple[str, ...], tuple[str, ...]]


def _by_recogniser(
    backend: str | None,
    image: ImageFile,
    looked: ImagePart,
    candidates: Sequence[str] | None,
    names: "KbNames",
    top_k: int,
) -> _Identification:
    recogniser = recogniser_for(backend, "weeds", image)
    entry_of = _entries(recogniser, names)
    allowed, notes, strange = _allowed(recogniser, candidates, entry_of)
    hint = "take one plant from above, or give its region"
    ranking, flags = name_by_recogniser(
        recogniser,
        looked,
        allowed,
        entry_of,
        top_k,
        narrowed_by="candidates",
        more="",
        hint=hint,
        setup=f"for other plants, {_TRAIN}",
    )
    if not recogniser.is_shipped and _knows_problems_only(recogniser.labels, names):
        notes = (
            *notes,
            f"classes of the {recogniser.name} are diseases or pests, not weeds: diagnose_pest_disease",
        )
        strange = (*strange, "not_of_weeds")
    return ranking, entry_of, (*recogniser.notes, *notes), (*flags, *strange)


def _entries(recogniser: Recogniser, names: "KbNames") -> _EntryOf:
    """Return the function that finds the entry of a label of a recogniser."""

    def entry_of(label: str) -> KnowledgeEntry | None:
        return names.of_shipped(label) if recogniser.is_shipped else names.of_name(label, _KINDS)

    return entry_of


def _knows_problems_only(labels: Sequence[str], names: "KbNames") -> bool:
    """Return True if labels are names of diseases, pests or healthy leaves, and none is one of a weed or a crop."""
    from agrotools.knowledge.kb_names import healthy_crop

    has_healthy = any(
        healthy_crop(label) is not None and not is_negative(label) for label in labels
    )
    kinds = {
        entry.kind
        for label in labels
        if healthy_crop(label) is None
        for entry in names.all_of_name(label)
    }
    return (bool(kinds) or has_healthy) and kinds <= {"disease", "pest"}


def _allowed(
    recogniser: Recogniser, candidates: Sequence[str] | None, entry_of: _EntryOf
) -> tuple[tuple[str, ...] | None, tuple[str, ...], tuple[str, ...]]:
    """Return the labels of the caller's candidates (None for all), and notes and flags about unknown names."""
    from agrotools.knowledge.words import folded

    if candidates is None:
        return None, (), ()
    label_of: dict[str, str] = {}
    for label in recogniser.labels:
        entry = entry_of(label)
        for name in (label, *((*entry.names.all(), entry.id, entry.slug) if entry else ())):
            label_of.setdefault(folded(name), label)
    unknown = [name for name in candidates if folded(name) not in label_of]
    allowed = tuple(
        dict.fromkeys(label_of[folded(name)] for name in candidates if folded(name) in label_of)
    )
    if not allowed:
        why = f"the {recogniser.name} knows none of these: {', '.join(unknown[:8])}"
        hint = f"it knows {', '.join(recogniser.labels[:20])}"
        raise ToolError(
            "backend_unavailable",
            why,
            argument="candidates",
            hint=hint,
            setup=f"for other species, {_TRAIN}",
            candidates=recogniser.labels[:20],
        )
    if not unknown:
        return allowed, (), ()
    note = f"not known to the {recogniser.name} and therefore never named: {', '.join(unknown[:8])}"
    return allowed, (note,), ("candidates_unknown",)


def names_to_choose(
    candidates: Sequence[str] | None, names: "KbNames"
) -> dict[str, KnowledgeEntry | None]:
    """Return the names that a vision model chooses from, each with its entry; ToolError ``backend_unavailable`` if
    there are none."""
    if candidates is not None:
        return {name: names.of_name(name, _KINDS) for name in dict.fromkeys(candidates)}
    if not (weeds := names.of_kinds(("weed",))):
        raise ToolError(
            "backend_unavailable",
            "the knowledge base names no weeds to choose from",
            hint="give candidates",
        )
    return {entry.title: entry for entry in weeds}
