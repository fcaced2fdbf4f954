"""Counts of the funnel of a drafted folder: of the drafts up to the review, and of the review."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue

from agrotools.formats.benchmark import Benchmark
from agrotools.formats.funnel import DRAFTS_KEY, STAGES, Funnel, stored_funnel
from agrotools_build.review.agreement import ReviewJournal, review_status, valid_decisions

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
    families: Mapping[str, str], contents: Mapping[str, str], journal: Path
) -> dict[str, dict[str, int]]:
    """Return how many samples of each family were reviewed, corrected and accepted, by a journal of decisions.

    ``families``: by sample; ``contents``: the present version of each, on which a decision counts.
    """
    counts: dict[str, Counter[str]] = {}
    if not journal.is_file():
        return {}
    decided = valid_decisions(ReviewJournal(journal).decisions(), contents)
    corrected = _corrected(journal)
    for sample_id, decisions in decided.items():
        family = families.get(sample_id)
        status = review_status(decisions)
        if family is None or status == "undecided":
            continue
        of_family = counts.setdefault(family, Counter())
        of_family["reviewed"] += 1
        of_family["corrected"] += sample_id in corrected or status == "edited"
        of_family["accepted"] += status in ("accepted", "edited")
    return {family: dict(of_family) for family, of_family in counts.items()}


def funnel_under_review(
    benchmark: Benchmark, contents: Mapping[str, str], journal: Path
) -> Funnel | None:
    """Return the funnel of a folder with the decisions of a journal; None if no model drafted the folder.

    ``contents``: as of :func:`reviewed_by_family`.
    """
    metadata = benchmark.header.metadata
    if DRAFTS_KEY not in metadata:
        return None
    families = {sample.id: sample.family for sample in benchmark.samples}
    return stored_funnel(metadata, reviewed_by_family(families, contents, journal))


def _corrected(journal: Path) -> set[str]:
    """Return the samples of which the review page stored a version that somebody changed."""
    versions = journal.with_name(f"{journal.stem}.written") / "versions.jsonl"
    lines: list[Any] = []
    if versions.is_file():
        lines = [orjson.loads(line) for line in versions.read_bytes().splitlines() if line.strip()]
    return {line["sample"]["id"] for line in lines if line.get("of")}
