"""Counts of the funnel of a drafted folder: of the drafts up to the review, and of the review."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from pydantic import JsonValue

from agrotools.core import Sample
from agrotools.formats.benchmark import Benchmark
from agrotools.formats.funnel import DRAFTS_KEY, STAGES, Funnel, stored_funnel
from agrotools_build.review.agreement import Decision, review_status

_BEFORE_REVIEW = STAGES[:3]


def drafting_metadata(
    family_and_stages: Iterable[tuple[str, Sequence[str]]], dropped: Mapping[str, int]
) -> dict[str, JsonValue]:
    """Return the metadata of drafts: of each its family and the stages that it reached; and the reasons of others."""
    counts: dict[str, Counter[str]] = {}
    for family, stages in family_and_stages:
        counts.setdefault(family, Counter()).update(stages)
    by_family: dict[str, JsonValue] = {
        family: {stage: of_family[stage] for stage in _BEFORE_REVIEW}
        for family, of_family in sorted(counts.items())
    }
    most_first = sorted(dropped.items(), key=lambda item: (-item[1], item[0]))
    return {DRAFTS_KEY: {"by_family": by_family, "dropped": dict(most_first)}}


def reviewed_by_family(
    samples: Iterable[Sample], decided: Mapping[str, Sequence[Decision]], corrected: Collection[str]
) -> dict[str, dict[str, int]]:
    """Return how many samples of each family were reviewed, corrected and accepted.

    ``decided``: the decisions on the present version of each sample; ``corrected``: samples that somebody changed. One
    that was rejected after its correction does not count as corrected: it is not in the benchmark.
    """
    counts: dict[str, Counter[str]] = {}
    for sample in samples:
        status = review_status(decided.get(sample.id, []))
        if status == "undecided":
            continue
        of_family = counts.setdefault(sample.family, Counter())
        of_family["reviewed"] += 1
        is_changed = sample.id in corrected or status == "edited"
        of_family["corrected"] += is_changed and status != "rejected"
        of_family["accepted"] += status in ("accepted", "edited")
    return {family: dict(of_family) for family, of_family in counts.items()}


def funnel_under_review(
    benchmark: Benchmark, decided: Mapping[str, Sequence[Decision]], corrected: Collection[str]
) -> Funnel | None:
    """Return the funnel of a folder with the decisions so far; None if no model drafted the folder.

    ``decided``, ``corrected``: as of :func:`reviewed_by_family`.
    """
    metadata = benchmark.header.metadata
    if DRAFTS_KEY not in metadata:
        return None
    return stored_funnel(metadata, reviewed_by_family(benchmark.samples, decided, corrected))
