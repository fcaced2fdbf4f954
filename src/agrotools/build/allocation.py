"""Composition of the published AgroTools benchmark (arXiv 2605.22366, section 3), scaled and allocated to templates."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np

from agrotools.core import AnswerType, BenchmarkError

K = TypeVar("K")

QUERIES = 539
CALLS = 1_447
FILES = 1_097
DISTINCT_TOOLS = {1: 59, 2: 412, 3: 49, 4: 19}
ANSWER_TYPES: dict[AnswerType, int] = {"tolerance": 177, "exact": 154, "plot": 139, "open_text": 69}
"""Queries by answer type.

``plot`` covers all questions about a chart: the paper also reports 52 figures as outputs, but here each of the 139 has
the figure itself among its answers, so that no answer is right without drawing it.
"""

IP102_PCT, WEEDMAP_PCT, OPEN_CANOPY_PCT = 21.34, 11.50, 10.20
"""Shares of the queries that the paper gives, in percent; the other nine data sets have 3.34 to 7.61 % each."""
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
"""Percent of the queries by data set. Data sets for which the paper gives only a range share the rest equally."""


@dataclass(frozen=True)
class Marginals:
    """Marginal counts of a benchmark of ``queries`` questions.

    The questions are counted by number of distinct tools, answer type and source; ``calls`` and ``files`` are totals
    over all questions.
    """

    queries: int
    distinct_tools: Mapping[int, int]
    answer_types: Mapping[AnswerType, int]
    sources: Mapping[str, int]
    calls: int
    files: int


def published(queries: int = QUERIES, sources: Collection[str] = frozenset(SOURCE_PCTS)) -> Marginals:
    """Return the published figures of these ``sources``, scaled to ``queries`` by the largest-remainder method."""
    return Marginals(
        queries=queries,
        distinct_tools=apportioned(DISTINCT_TOOLS, queries),
        answer_types=apportioned(ANSWER_TYPES, queries),
        sources=apportioned({name: share for name, share in SOURCE_PCTS.items() if name in sources}, queries),
        calls=round(CALLS * queries / QUERIES),
        files=round(FILES * queries / QUERIES),
    )


def apportioned(shares: Mapping[K, float], total: int) -> dict[K, int]:
    """Return whole numbers in these proportions that add up to ``total`` (largest-remainder method)."""
    whole = sum(shares.values())
    exact = {key: share * total / whole for key, share in shares.items()}
    parts = {key: int(value) for key, value in exact.items()}
    by_remainder = sorted(exact, key=lambda key: parts[key] - exact[key])
    for key in by_remainder[: total - sum(parts.values())]:
        parts[key] += 1
    return parts


_MISS = 10_000.0
"""Cost of missing a marginal by one; larger than the total cost of an uneven spread."""
_SECONDS = 60.0


@dataclass(frozen=True)
class Offer:
    """Properties shared by all questions of an offer; ``tools`` is the number of distinct tools."""

    template: str
    source: str
    answer_type: AnswerType
    tools: int
    calls: int
    files: int


@dataclass(frozen=True)
class Allocation:
    """Number of questions per offer; ``missed`` holds the deviation for each marginal that cannot be met."""

    counts: Mapping[Offer, int]
    missed: Mapping[str, int] = field(default_factory=dict)


def allocate(available: Mapping[Offer, int], wanted: Marginals, most_of_a_template: Mapping[str, int]) -> Allocation:
    """Choose the number of questions of each offer by integer programming.

    Args:
        available: maximum number of questions of each offer.
        most_of_a_template: number of wordings of each template, so that no question is worded the same way twice.

    Raises:
        BenchmarkError: too few questions are available, or no solution was found.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # takes longer than drawing a scene
    from scipy.sparse import block_diag, bmat

    offers = sorted(available, key=lambda each: (each.template, each.source, each.tools, each.calls, each.files))
    marginals = _marginals(offers, wanted)
    per_template: Counter[str] = Counter()
    for offer in offers:
        per_template[offer.template] += available[offer]
    most = {template: min(total, most_of_a_template[template]) for template, total in sorted(per_template.items())}
    if sum(most.values()) < wanted.queries:
        why = f"only {sum(most.values())} questions can be asked, not {wanted.queries}"
        raise BenchmarkError(why, hint="ask for fewer, or give more scenes or pictures")
    # Unknowns: count per offer; deviation per marginal, up and down; uses of each template, each costlier than the
    # last.
    count, soft, units = len(offers), len(marginals), sum(most.values())
    evenly = {template: 1 / _fair_share(template, offers, wanted) for template in most}
    uses = [(2 * rank + 1) * evenly[template] for template, number in most.items() for rank in range(number)]
    cost = np.concatenate([np.zeros(count), np.full(2 * soft, _MISS), uses])
    contributions = np.array([each for each, _ in marginals.values()], float)
    membership = np.array([[offer.template == template for offer in offers] for template in most], float)
    matrix = bmat(
        [
            [contributions, np.kron(np.eye(soft), [1, -1]), None],
            [np.ones((1, count)), None, None],
            [membership, None, block_diag([-np.ones((1, number)) for number in most.values()])],
        ],
        format="csc",
    )
    target = np.array([*(total for _, total in marginals.values()), wanted.queries, *[0] * len(most)], float)
    upper = np.concatenate(
        [[available[offer] for offer in offers], np.full(2 * soft, wanted.calls + wanted.files), np.ones(units)]
    )
    solved = milp(
        cost,
        integrality=np.concatenate([np.ones(count + 2 * soft), np.zeros(units)]),
        bounds=Bounds(cast(Any, np.zeros(len(cost))), cast(Any, upper)),
        constraints=LinearConstraint(cast(Any, matrix), cast(Any, target), cast(Any, target)),
        options={"time_limit": _SECONDS, "mip_rel_gap": 0.002, "presolve": False},
    )
    if solved.x is None:
        raise BenchmarkError(f"no allocation was found: {solved.message}", hint="ask for fewer questions")
    values = np.round(solved.x).astype(int)
    misses = values[count : count + 2 * soft].reshape(soft, 2)
    missed = {name: int(more - less) for name, (less, more) in zip(marginals, misses, strict=True) if less != more}
    return Allocation({offer: int(n) for offer, n in zip(offers, values[:count], strict=True) if n}, missed)


def _marginals(offers: Sequence[Offer], wanted: Marginals) -> dict[str, tuple[list[int], int]]:
    """Return the marginals by name: the contribution of each offer, and the wanted total."""
    counted: tuple[tuple[str, str, Mapping[Any, int]], ...] = (
        ("{} distinct tools", "tools", wanted.distinct_tools),
        ("answer type {}", "answer_type", wanted.answer_types),
        ("source {}", "source", wanted.sources),
    )
    return {
        **{
            name.format(value): ([int(getattr(offer, field) == value) for offer in offers], total)
            for name, field, totals in counted
            for value, total in totals.items()
        },
        "calls": ([offer.calls for offer in offers], wanted.calls),
        "files": ([offer.files for offer in offers], wanted.files),
    }


def _fair_share(template: str, offers: Sequence[Offer], wanted: Marginals) -> float:
    """Return the number of uses of a template if its sources' questions were spread evenly over their templates."""
    sources = {offer.source for offer in offers if offer.template == template}
    siblings = {offer.template for offer in offers if offer.source in sources}
    return max(1.0, sum(wanted.sources.get(source, 0) for source in sources) / len(siblings))
