"""What the published AgroTools benchmark (arXiv 2605.22366, section 3) holds of each kind, and its scaling."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from agrotools.core import AnswerType

K = TypeVar("K")

QUERIES = 539
CALLS = 1_447
FILES = 1_097
DISTINCT_TOOLS = {1: 59, 2: 412, 3: 49, 4: 19}
ANSWER_TYPES: dict[AnswerType, int] = {"tolerance": 177, "exact": 154, "plot": 139, "open_text": 69}
"""``plot``: all that is asked about a chart. The paper also tells of 52 figures as outputs; here each of 139 has the
figure itself among its answers, so that nobody is right without drawing it."""

IP102_PCT, WEEDMAP_PCT, OPEN_CANOPY_PCT = 21.34, 11.50, 10.20
"""Shares of the queries that the paper tells; the other nine data sets have 3.34 to 7.61 % each."""
_OTHERS = (
    "agromind", "clcd", "deepnir", "deepweeds", "fpcd", "hi_cna", "papple", "plantseg", "weedsense",
)  # fmt: skip
_REST_PCT = (100 - IP102_PCT - WEEDMAP_PCT - OPEN_CANOPY_PCT) / len(_OTHERS)
SOURCE_PCTS: Mapping[str, float] = {
    **dict.fromkeys(_OTHERS, _REST_PCT),
    "ip102": IP102_PCT,
    "open_canopy": OPEN_CANOPY_PCT,
    "weedmap": WEEDMAP_PCT,
}
"""By data set, in percent of the queries; where the paper gives only a range, even parts of the rest."""


@dataclass(frozen=True)
class Marginals:
    """How many of ``queries`` use so many distinct tools, are of an answer type, come from a source; over all of them,
    ``calls`` of tools and ``files`` shown."""

    queries: int
    distinct_tools: Mapping[int, int]
    answer_types: Mapping[AnswerType, int]
    sources: Mapping[str, int]
    calls: int
    files: int


def published(queries: int = QUERIES, sources: Collection[str] = frozenset(SOURCE_PCTS)) -> Marginals:
    """The published figures of these ``sources``, scaled to so many queries; parts are rounded so that they add up
    (largest remainder)."""
    return Marginals(
        queries=queries,
        distinct_tools=apportioned(DISTINCT_TOOLS, queries),
        answer_types=apportioned(ANSWER_TYPES, queries),
        sources=apportioned({name: share for name, share in SOURCE_PCTS.items() if name in sources}, queries),
        calls=round(CALLS * queries / QUERIES),
        files=round(FILES * queries / QUERIES),
    )


def apportioned(shares: Mapping[K, float], total: int) -> dict[K, int]:
    """Whole numbers in these proportions that add up to ``total``."""
    whole = sum(shares.values())
    exact = {key: share * total / whole for key, share in shares.items()}
    parts = {key: int(value) for key, value in exact.items()}
    by_remainder = sorted(exact, key=lambda key: parts[key] - exact[key])
    for key in by_remainder[: total - sum(parts.values())]:
        parts[key] += 1
    return parts
