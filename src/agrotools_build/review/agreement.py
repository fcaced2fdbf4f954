"""Reviewers' decisions, their journal, the resulting status of each sample, and the agreement between reviewers."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, pvariance
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, FiniteFloat, StringConstraints, model_validator

from agrotools.core import (
    BooleanSlot,
    ExactSlot,
    FrozenModel,
    ReferenceTrajectory,
    Sample,
    Slot,
    ToleranceSlot,
    UnresolvedRef,
)
from agrotools.loading.sample_checks import matches_slot
from agrotools.text.expressions import ExpressionError, evaluate_from
from agrotools_build.references import steps_in
from agrotools_build.review.line_journal import JournalLine, LineJournal

Verdict = Literal["accept", "reject", "edit", "withdraw"]
"""Verdict on a sample; ``withdraw`` cancels an earlier decision, so that the sample is undecided again."""

LONGEST_NAME = 60
"""Maximum length of a reviewer's name, characters."""
_LONGEST_REASON = 2000
Reviewer = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00-\x1f]+$"
    ),
]


class SlotEdit(FrozenModel):
    """Edit of a slot; None: unchanged. ``value``, as text: a number in the slot's unit, a name, or yes or no."""

    value: (
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
        | None
    ) = None
    label: (
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
        | None
    ) = None
    abs_tol: Annotated[FiniteFloat, Field(ge=0)] | None = None
    rel_tol: Annotated[FiniteFloat, Field(ge=0)] | None = None


class Edits(FrozenModel):
    """Proposed changes of a sample: the wording of the question, and labels and tolerances of slots by slot name."""

    query: (
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000)]
        | None
    ) = None
    slots: dict[str, SlotEdit] = {}


class Decision(JournalLine):
    """Decision of one reviewer on one sample.

    ``content`` identifies the reviewed version of the sample; a decision on another version does not count.
    """

    sample: Annotated[str, Field(max_length=120)]
    content: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    reviewer: Reviewer
    verdict: Verdict
    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=_LONGEST_REASON)] = (
        ""
    )
    checks: dict[str, Literal["holds", "fails"]] = {}
    """The five checks of the AgroTools paper (arXiv 2605.22366, section 4.1), in decisions that name them"""
    edits: Edits | None = None
    person: bool = True
    """False if a model made the decision"""
    at: str = ""
    """time of storage, UTC, ISO 8601"""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.verdict in ("reject", "edit") and not self.reason:
            raise ValueError("say why: a reason is needed")
        if (self.verdict == "edit") != (self.edits is not None):
            raise ValueError("changes belong to the verdict edit, and it needs some")
        return self


def effective_edits(sample: Sample, edits: Edits) -> Edits | None:
    """Return ``edits`` without what changes nothing, perhaps None; ValueError if they do not fit the sample."""
    slots = {slot.name: slot for slot in sample.answer}
    changed: dict[str, SlotEdit] = {}
    for name, edit in edits.slots.items():
        if name not in slots:
            raise ValueError(f"the sample has no slot {name!r}")
        changes = _slot_changes(slots[name], edit)
        if new := {
            field: value for field, value in changes.items() if getattr(slots[name], field) != value
        }:
            changed[name] = SlotEdit.model_validate(
                new | ({"value": edit_text(new["value"])} if "value" in new else {})
            )
    query = edits.query if edits.query != sample.query else None
    return Edits(query=query, slots=changed) if query is not None or changed else None


def edit_text(value: Any) -> str:
    """Return a value of a slot as the text of a :class:`SlotEdit`."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _slot_changes(slot: Slot, edit: SlotEdit) -> dict[str, Any]:
    """Return the fields of a slot that an edit gives, with the value in the type of the slot."""
    changes: dict[str, Any] = edit.model_dump(exclude_none=True)
    if slot.type != "tolerance" and changes.keys() & {"abs_tol", "rel_tol"}:
        raise ValueError(f"slot {slot.name!r} has no tolerance")
    if edit.value is None:
        return changes
    if isinstance(slot, BooleanSlot):
        if edit.value.lower() not in ("yes", "no"):
            raise ValueError(f"slot {slot.name!r}: write yes or no")
        return changes | {"value": edit.value.lower() == "yes"}
    if isinstance(slot, ToleranceSlot) or (
        isinstance(slot, ExactSlot) and not isinstance(slot.value, str)
    ):
        try:
            number = float(edit.value.replace(",", "."))
        except ValueError:
            raise ValueError(f"slot {slot.name!r}: {edit.value!r} is not a number") from None
        if not math.isfinite(number):
            raise ValueError(f"slot {slot.name!r}: write a finite number")
        is_whole = isinstance(slot, ExactSlot) and number.is_integer()
        return changes | {"value": int(number) if is_whole else number}
    if not isinstance(slot, ExactSlot):
        raise ValueError(f"the answer of slot {slot.name!r} cannot be edited: reject the sample")
    if slot.choices and edit.value not in slot.choices:
        raise ValueError(f"slot {slot.name!r}: write one of {', '.join(slot.choices)}")
    return changes


def apply_edits(sample: Sample, edits: Edits) -> Sample:
    """Return ``sample`` with ``edits``; ValueError if it is not valid.

    The true result that an edited value contradicts is not known any more.
    """
    effective_edits(sample, edits)
    answer: list[Slot] = []
    untrue: set[int] = set()
    for slot in sample.answer:
        changes = _slot_changes(slot, edits.slots[slot.name]) if slot.name in edits.slots else {}
        edited = slot.model_copy(update=changes)
        if "value" in changes and not _follows(edited, sample.reference):
            untrue |= steps_in(edited.from_ or "")
        answer.append(edited)
    update: dict[str, Any] = {"query": edits.query or sample.query, "answer": tuple(answer)}
    if sample.reference is not None and untrue:
        steps = tuple(
            step.model_copy(update={"truth": None}) if number in untrue else step
            for number, step in enumerate(sample.reference.steps)
        )
        update["reference"] = sample.reference.model_copy(update={"steps": steps})
    changed = sample.model_copy(update=update)
    return Sample.model_validate_json(changed.model_dump_json(by_alias=True))


def _follows(slot: Slot, reference: ReferenceTrajectory | None) -> bool:
    """Return True if the true results of the calls give the value of a slot."""
    if not slot.from_ or reference is None:
        return False
    truths = [None if step.truth is None else dict(step.truth) for step in reference.steps]
    try:
        return matches_slot(slot, evaluate_from(slot.from_, truths))
    except (UnresolvedRef, ExpressionError):
        return False


Status = Literal["undecided", "accepted", "rejected", "edited", "disputed"]
_STATUS_BY_VERDICT: dict[str, Status] = {
    "accept": "accepted",
    "reject": "rejected",
    "edit": "edited",
}


class Agreement(FrozenModel):
    """Agreement of two reviewers on the verdict of samples that both decided."""

    reviewers: tuple[str, str]
    n: int
    agreed: int
    kappa: float | None = None
    """Cohen's kappa, -1 to 1; None if undefined, with the reason in ``why``"""
    why: str = ""

    @property
    def described(self) -> str:
        kappa = (
            f"Cohen's kappa {self.kappa:.2f}"
            if self.kappa is not None
            else f"kappa is undefined: {self.why}"
        )
        return f"{' and '.join(self.reviewers)}: {kappa} (n = {self.n}, {self.agreed} alike)"


class ReviewSummary(FrozenModel):
    """Status of a review, as printed by ``--summary --json``."""

    samples: int
    standings: dict[Status, int]
    reviewers: dict[str, dict[str, int]]
    """verdict counts by reviewer"""
    agreements: tuple[Agreement, ...]
    disputed: tuple[str, ...]
    outdated: int
    """number of decisions on samples that have changed since; they do not count"""
    unknown: int
    """number of decisions on samples that do not exist; they do not count"""
    corrected: int = 0
    """number of samples whose question or trace a reviewer corrected on the page, whatever was decided on them"""
    notes: tuple[str, ...] = ()


def review_status(decisions: Sequence[Decision]) -> Status:
    """Return the status of a sample: disputed if verdicts or edits differ."""
    if not decisions:
        return "undecided"
    first = decisions[0]
    if any((other.verdict, other.edits) != (first.verdict, first.edits) for other in decisions[1:]):
        return "disputed"
    return _STATUS_BY_VERDICT[first.verdict]


def valid_decisions(
    decisions: Iterable[Decision], contents: Mapping[str, str]
) -> dict[str, list[Decision]]:
    """Return the valid decisions by sample: those on its current version. ``contents``: version by sample id."""
    by_sample: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        if contents.get(decision.sample) == decision.content:
            by_sample[decision.sample].append(decision)
    return by_sample


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> tuple[float | None, str]:
    """Return Cohen's kappa (1960) of two raters' categories, the agreement beyond chance, or None and the reason."""
    n = len(pairs)
    if n == 0:
        return None, "no sample was decided by both"
    first, second = (Counter(category) for category in zip(*pairs, strict=True))
    observed = sum(a == b for a, b in pairs) / n
    by_chance = sum(first[category] * second[category] for category in first) / (n * n)
    if by_chance >= 1:
        return (
            None,
            "both gave one and the same verdict every time: chance alone would agree as often",
        )
    return (observed - by_chance) / (1 - by_chance), ""


def weighted_kappa(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return Cohen's kappa with quadratic weights, which is Lin's concordance (1989); None if all values are equal."""
    if not pairs:
        return None
    first, second = zip(*pairs, strict=True)
    by_chance = pvariance(first) + pvariance(second) + (fmean(first) - fmean(second)) ** 2
    return 1 - fmean((a - b) ** 2 for a, b in pairs) / by_chance if by_chance > 0 else None


def agreements_of(by_sample: Mapping[str, Sequence[Decision]]) -> Iterator[Agreement]:
    """Yield the agreement of every pair of reviewers."""
    verdicts = [
        {each.reviewer: each.verdict for each in decisions} for decisions in by_sample.values()
    ]
    for first, second in combinations(sorted(set().union(*verdicts)), 2):
        both = [(of[first], of[second]) for of in verdicts if {first, second} <= of.keys()]
        kappa, why = cohens_kappa(both)
        agreed = sum(a == b for a, b in both)
        yield Agreement(reviewers=(first, second), n=len(both), agreed=agreed, kappa=kappa, why=why)


def summary_of(
    contents: Mapping[str, str],
    decisions: Sequence[Decision],
    notes: Sequence[str] = (),
    corrected: Collection[str] = (),
) -> ReviewSummary:
    """Summarise a review; ``contents`` as in :func:`valid_decisions`, ``corrected``: samples corrected on the page."""
    by_sample = valid_decisions(decisions, contents)
    standings = {sample: review_status(by_sample.get(sample, [])) for sample in contents}
    reviewers: dict[str, Counter[str]] = defaultdict(Counter)
    for each in by_sample.values():
        for decision in each:
            reviewers[decision.reviewer][decision.verdict] += 1
    known = sum(map(len, by_sample.values()))
    unknown = sum(decision.sample not in contents for decision in decisions)
    return ReviewSummary(
        samples=len(contents),
        standings={
            name: sum(each == name for each in standings.values()) for name in get_args(Status)
        },
        reviewers={name: dict(counts) for name, counts in sorted(reviewers.items())},
        agreements=tuple(agreements_of(by_sample)),
        disputed=tuple(sample for sample, standing in standings.items() if standing == "disputed"),
        outdated=len(decisions) - known - unknown,
        unknown=unknown,
        corrected=len(corrected),
        notes=tuple(notes),
    )


SummaryPart = dict[str, Any]
"""Paragraph (``text``) or table (``head``, ``rows``) of a summary, for the page and the terminal."""


def review_parts(summary: ReviewSummary) -> Iterator[SummaryPart]:
    """Yield the summary of a review as paragraphs and tables."""
    verdicts = ("accept", "edit", "reject")
    yield {"text": " · ".join(f"{name} {n}" for name, n in summary.standings.items())}
    if summary.corrected:
        yield {"text": f"corrected on the page: {summary.corrected}"}
    counts = [
        [name, *(str(n.get(v, 0)) for v in verdicts)] for name, n in summary.reviewers.items()
    ]
    yield {"head": ["reviewer", *verdicts], "rows": counts}
    yield from ({"text": pair.described} for pair in summary.agreements)
    if not summary.agreements:
        yield {"text": "Agreement needs two reviewers who decided the same samples."}
    if summary.disputed:
        yield {"text": f"disputed: {', '.join(summary.disputed)}"}
    if summary.outdated or summary.unknown:
        changed = f"{summary.outdated} decisions on samples that changed since"
        yield {"text": f"not counted: {changed}, {summary.unknown} on unknown samples"}


REVIEW_FILE = "review.jsonl"


class ReviewJournal(LineJournal[Decision]):
    """Decisions in a file, made by the first write; RunStoreError if it cannot be read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Decision)

    def decisions(self) -> list[Decision]:
        """Return the latest decision of each reviewer on each sample, in order, without withdrawn ones."""
        latest: dict[tuple[str, str], Decision] = {}
        for decision in self.lines():
            key = decision.reviewer, decision.sample
            latest.pop(key, None)  # so that the order is that of the latest decisions
            latest[key] = decision
        return [decision for decision in latest.values() if decision.verdict != "withdraw"]
