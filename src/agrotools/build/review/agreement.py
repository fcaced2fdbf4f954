"""What a review has come to: where each sample stands, and how far reviewers agree."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

from agrotools.build.review.decisions import CHECKS, Decision
from agrotools.core import FrozenModel

Standing = Literal["undecided", "accepted", "rejected", "edited", "disputed"]
STANDINGS: tuple[Standing, ...] = ("undecided", "accepted", "rejected", "edited", "disputed")
_STANDING_OF: dict[str, Standing] = {"accept": "accepted", "reject": "rejected", "edit": "edited"}


class Agreement(FrozenModel):
    """How far two reviewers agree on the samples that both decided: accept, reject or edit."""

    reviewers: tuple[str, str]
    n: int
    agreed: int
    kappa: float | None = None
    """Cohen's kappa, -1 to 1; None where it is undefined, and ``why`` says why."""
    why: str = ""


class ReviewSummary(FrozenModel):
    """The state of a review, as ``--summary --json`` prints it."""

    samples: int
    standings: dict[Standing, int]
    reviewers: dict[str, dict[str, int]]
    """Verdicts by reviewer."""
    agreements: tuple[Agreement, ...]
    disputed: tuple[str, ...]
    failed_checks: dict[str, int]
    """By check, on how many samples a reviewer says that it fails."""
    outdated: int
    """Decisions on a sample that has changed since; they do not count."""
    unknown: int
    """Decisions on samples that are not there; they do not count."""
    notes: tuple[str, ...] = ()


def standing_of(decisions: Sequence[Decision]) -> Standing:
    """Where a sample stands, given the decisions on it: disputed where verdicts differ, or edits do."""
    if not decisions:
        return "undecided"
    first = decisions[0]
    if any((other.verdict, other.edits) != (first.verdict, first.edits) for other in decisions[1:]):
        return "disputed"
    return _STANDING_OF[first.verdict]


def counted(decisions: Iterable[Decision], contents: Mapping[str, str]) -> dict[str, list[Decision]]:
    """The decisions that count, by sample: those on the sample as it is now."""
    found: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        if contents.get(decision.sample) == decision.content:
            found[decision.sample].append(decision)
    return found


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> tuple[float | None, str]:
    """Cohen's kappa (1960) of two raters' categories, or None and why there is none.

    Observed agreement beyond what two raters with these shares of each category would have by chance.
    """
    n = len(pairs)
    if n == 0:
        return None, "no sample was decided by both"
    first, second = (Counter(category) for category in zip(*pairs, strict=True))
    observed = sum(a == b for a, b in pairs) / n
    by_chance = sum(first[category] * second[category] for category in first) / (n * n)
    if by_chance >= 1:
        return None, "both gave one and the same verdict every time: chance alone would agree as often"
    return (observed - by_chance) / (1 - by_chance), ""


def agreements_of(by_sample: Mapping[str, Sequence[Decision]]) -> tuple[Agreement, ...]:
    """The agreement of every two reviewers."""
    verdicts: dict[str, dict[str, str]] = defaultdict(dict)
    for sample, decisions in by_sample.items():
        for decision in decisions:
            verdicts[decision.reviewer][sample] = decision.verdict
    found: list[Agreement] = []
    for first, second in combinations(sorted(verdicts), 2):
        both = [
            (verdict, verdicts[second][sample])
            for sample, verdict in verdicts[first].items()
            if sample in verdicts[second]
        ]
        kappa, why = cohens_kappa(both)
        agreed = sum(a == b for a, b in both)
        found.append(Agreement(reviewers=(first, second), n=len(both), agreed=agreed, kappa=kappa, why=why))
    return tuple(found)


def summary_of(
    ids: Collection[str], contents: Mapping[str, str], decisions: Sequence[Decision], notes: Sequence[str] = ()
) -> ReviewSummary:
    """The state of a review of samples ``ids``; ``contents`` as in :func:`counted`."""
    by_sample = counted(decisions, contents)
    standings = {sample: standing_of(by_sample.get(sample, [])) for sample in ids}
    reviewers: dict[str, Counter[str]] = defaultdict(Counter)
    failed: dict[str, set[str]] = {name: set() for name in CHECKS}
    for made in by_sample.values():
        for decision in made:
            reviewers[decision.reviewer][decision.verdict] += 1
            for name, state in decision.checks.items():
                if state == "fails":
                    failed[name].add(decision.sample)
    known = sum(map(len, by_sample.values()))
    unknown = sum(decision.sample not in contents for decision in decisions)
    return ReviewSummary(
        samples=len(ids),
        standings={name: sum(each == name for each in standings.values()) for name in STANDINGS},
        reviewers={name: dict(counts) for name, counts in sorted(reviewers.items())},
        agreements=agreements_of(by_sample),
        disputed=tuple(sample for sample, standing in standings.items() if standing == "disputed"),
        failed_checks={name: len(samples) for name, samples in failed.items() if samples},
        outdated=len(decisions) - known - unknown,
        unknown=unknown,
        notes=tuple(notes),
    )
