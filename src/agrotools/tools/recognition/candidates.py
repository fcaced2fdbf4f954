"""Candidates of the recognising tools, and the picture to check them by."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from agrotools.core import Artifact, ToolError
from agrotools.knowledge.entry import Entry
from agrotools.tools.vlm import VLM
from agrotools.tools.workspace import save_artifact
from agrotools.vision import Box

if TYPE_CHECKING:
    from agrotools.tools.recognition.recognisers import ImagePart

CandidateKind = Literal["pest", "disease", "weed", "crop", "healthy", "other"]
_NO_WEED = ("negative", "none", "no weed", "not a weed", "background", "soil", "other")
_OVERLAY_PX = 512


class Candidate(BaseModel):
    """One thing that the picture may show."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

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
    score: float
    """calibrated probability, 0 to 1 (of the candidates allowed)"""


def is_negative(label: str) -> bool:
    """True if a label means that no weed is there."""
    from agrotools.knowledge.words import folded

    return folded(label) in _NO_WEED


def candidate_of(label: str, entry: Entry | None, score: float) -> Candidate:
    """A candidate with the names that its entry gives."""
    from agrotools.knowledge.words import folded

    healthy = folded(label).split()[-1:] == ["healthy"] or folded(label).startswith("healthy ")
    if healthy:
        crop = entry.names.en if entry and entry.kind == "crop" else None
        named = f"healthy {crop} leaf" if crop else "healthy leaf"
        return Candidate(label=label, common_name=named, scientific_name=None, kind="healthy", kb_id=None, score=score)
    if entry is None:
        return Candidate(label=label, common_name=None, scientific_name=None, kind="other", kb_id=None, score=score)
    kind = "other" if entry.kind == "method" else entry.kind
    return Candidate(
        label=label,
        common_name=entry.names.en,
        scientific_name=entry.names.sci,
        kind=kind,
        kb_id=entry.id,
        score=score,
    )


def display_name(candidate: Candidate) -> str:
    """Common name of a candidate, else its label."""
    return candidate.common_name or candidate.label.replace("_", " ")


def identifier(candidate: Candidate) -> str:
    """The id of its entry; its label where there is none."""
    return candidate.kb_id or candidate.label


def best_of(candidates: Sequence[Candidate]) -> Candidate | None:
    """The first, where it is more likely right than wrong."""
    from agrotools.tools.recognition.recognisers import NAMED_FROM

    return candidates[0] if candidates and candidates[0].score >= NAMED_FROM else None


def unknown_names(looked: "ImagePart", by: str, candidates: Sequence[Candidate], more: str, hint: str) -> ToolError:
    """The error for a picture that is like nothing the recogniser knows."""
    near = f"; nearest would be {', '.join(display_name(one) for one in candidates)}" if candidates else ""
    return ToolError(
        "low_confidence",
        f"{looked.name} is unlike the pictures that the {by} knows, so nothing is named{near}{more}",
        argument="image",
        hint=hint,
        candidates=tuple(identifier(one) for one in candidates),
    )


def choose_by_larger_model(
    backend: str,
    looked: "ImagePart",
    what: str,
    names: Sequence[str],
    entry_of: Callable[[str], Entry | None],
    top_k: int,
) -> tuple[tuple[Candidate, ...], tuple[str, ...], tuple[str, ...]]:
    """Candidates by an open model or by a vision model behind an endpoint; notes and flags.

    Args:
        what: what is to be named: "weed", "disease of bean".
        names: all that may be said; the first 400 are asked about.

    Raises:
        ToolError: ``low_confidence`` where it names nothing; as the back-end.
    """
    from agrotools.tools.learned import name_learned
    from agrotools.tools.vlm.tasks import MOST_NAMES, choose_name

    pixels, box, choice = looked.picture.pixels, looked.box, names[:MOST_NAMES]
    said = (
        choose_name(pixels, box, what, choice, top_k=top_k)
        if backend == VLM
        else name_learned(backend, pixels, box, choice, top_k=top_k)
    )
    candidates = candidates_of(said.candidates, entry_of, top_k)
    if not candidates:
        raise unknown_names(looked, f"back-end {backend}", (), "", "try another region, or another back-end")
    return candidates, said.notes, said.flags


def draw_candidates(
    name: str, looked: "ImagePart", candidates: Sequence[Candidate], box: Box | None, title: str
) -> Artifact:
    """A small picture with the part that was looked at, what was found in it (``box``), and the candidates."""
    from agrotools.tools.lesions.leaf import shrink_image
    from agrotools.vision.overlay import BLUISH_GREEN, ORANGE, Mark, draw_marks

    pixels = looked.picture.pixels
    small = shrink_image(pixels, _OVERLAY_PX)
    factor = small.shape[1] / pixels.shape[1]

    def scaled(bounds: Box) -> Box:
        x0, y0, x1, y1 = (round(edge * factor) for edge in bounds)
        return x0, y0, max(x1, x0 + 1), max(y1, y0 + 1)

    whole = looked.box == (0, 0, looked.picture.width, looked.picture.height)
    best = best_of(candidates)
    marks = [Mark(BLUISH_GREEN if best else ORANGE, box=scaled(box))] if box else []
    legend = [(BLUISH_GREEN if best and not rank else ORANGE, f"{display_name(one)} {_format_score(one.score)}")
              for rank, one in enumerate(candidates)]  # fmt: skip
    picture = draw_marks(small, marks, legend=legend, region=None if whole else scaled(looked.box), title=title)
    return save_artifact(name, "overlay", picture)


def _format_score(score: float) -> str:
    return f"{score:.2f}" if score >= 0.005 else "<0.01"  # a candidate is listed because it is possible


def candidates_of(
    ranked: Sequence[tuple[str, float]], entry_of: Callable[[str], Entry | None], top_k: int
) -> tuple[Candidate, ...]:
    """The first ``top_k`` of labels with scores."""
    return tuple(candidate_of(label, entry_of(label), score) for label, score in ranked[:top_k])
