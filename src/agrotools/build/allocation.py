"""Composition of the published AgroTools benchmark (arXiv 2605.22366, section 3), scaled and allocated to templates."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from pydantic import JsonValue

from agrotools.core import FAMILY_OF_TASK_TYPE, AnswerType, BenchmarkError, Sample

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

_RANGE = ("agromind", "clcd", "deepnir", "deepweeds", "fpcd", "hi_cna", "papple", "plantseg", "weedsense")
_GIVEN = {"ip102": 21.34, "open_canopy": 10.20, "weedmap": 11.50}
SOURCE_PCTS: Mapping[str, float] = {**dict.fromkeys(_RANGE, (100 - sum(_GIVEN.values())) / len(_RANGE)), **_GIVEN}
"""Percent of the queries by data set. Those for which the paper gives only a range, 3.34 to 7.61, have equal shares."""


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


def published(queries: int = QUERIES) -> Marginals:
    """Return the published figures, scaled to ``queries`` by the largest-remainder method."""
    return Marginals(
        queries=queries,
        distinct_tools=apportioned(DISTINCT_TOOLS, queries),
        answer_types=apportioned(ANSWER_TYPES, queries),
        sources=apportioned(SOURCE_PCTS, queries),
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
_ABSENT, _FILE = 2 * _MISS, 0.1 * _MISS
"""Cost of a task type that no question has, and of missing the number of files by one."""
_SHORT = 20 * _MISS
"""Cost of a question that a source does not contribute; larger than what any question costs by its kind."""
_SECONDS = 60.0


@dataclass(frozen=True)
class Offer:
    """Properties shared by all questions of an offer; ``tools`` is the number of distinct tools."""

    template: str
    task_type: str
    source: str
    answer_type: AnswerType
    tools: int
    calls: int
    files: int


def allocate(
    available: Mapping[Offer, int], wanted: Marginals, most_of_a_template: Mapping[str, int]
) -> dict[Offer, int]:
    """Choose the number of questions of each offer by integer programming.

    No source contributes more than its share; each contributes as much of it as it can. Then the marginals are met as
    closely as possible, task types that have no question are avoided, and templates are used evenly.

    Args:
        available: maximum number of questions of each offer.
        most_of_a_template: number of wordings of each template, so that no question is worded the same way twice.

    Raises:
        BenchmarkError: no question is available, or no solution was found.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # takes longer than drawing a scene
    from scipy.sparse import block_diag, bmat

    offers = sorted(available, key=lambda each: (each.template, each.source, each.tools, each.calls, each.files))
    if not offers:
        raise BenchmarkError("no question can be asked", hint="give more pictures")
    per_template: Counter[str] = Counter()
    for offer in offers:
        per_template[offer.template] += available[offer]
    most = {template: min(total, most_of_a_template[template]) for template, total in sorted(per_template.items())}
    marginals = _marginals(offers, wanted)
    # Unknowns: count per offer; deviation per marginal, down and up; uses of each template, each costlier than the
    # last.
    count, soft, units = len(offers), len(marginals), sum(most.values())
    evenly = {template: 1 / _fair_share(template, offers, wanted) for template in most}
    uses = [(2 * rank + 1) * evenly[template] for template, number in most.items() for rank in range(number)]
    deviations = [price for marginal in marginals for price in (marginal.less, marginal.more or 0.0)]
    cost = np.concatenate([np.zeros(count), deviations, uses])
    contributions = np.array([marginal.contributions for marginal in marginals], float)
    membership = np.array([[offer.template == template for offer in offers] for template in most], float)
    matrix = bmat(
        [
            [contributions, np.kron(np.eye(soft), [1, -1]), None],
            [membership, None, block_diag([-np.ones((1, number)) for number in most.values()])],
        ],
        format="csc",
    )
    target = np.array([*(marginal.total for marginal in marginals), *[0] * len(most)], float)
    anything = float(wanted.calls + wanted.files + sum(available.values()))
    limits = [limit for each in marginals for limit in (anything, 0.0 if each.more is None else anything)]
    upper = np.concatenate([[available[offer] for offer in offers], limits, np.ones(units)])
    solved = milp(
        cost,
        integrality=np.concatenate([np.ones(count + 2 * soft), np.zeros(units)]),
        bounds=Bounds(cast(Any, np.zeros(len(cost))), cast(Any, upper)),
        constraints=LinearConstraint(cast(Any, matrix), cast(Any, target), cast(Any, target)),
        options={"time_limit": _SECONDS, "mip_rel_gap": 0.002, "presolve": False},
    )
    if solved.x is None:
        raise BenchmarkError(f"no allocation was found: {solved.message}", hint="ask for fewer questions")
    values = np.round(solved.x[:count]).astype(int)
    return {offer: int(number) for offer, number in zip(offers, values, strict=True) if number}


@dataclass(frozen=True)
class _Marginal:
    """Contribution of each offer to a total, and the cost of one less and one more; None: no more is possible."""

    contributions: list[int]
    total: int
    less: float = _MISS
    more: float | None = _MISS


def _marginals(offers: Sequence[Offer], wanted: Marginals) -> list[_Marginal]:
    def of(field: str, value: object) -> list[int]:
        return [int(getattr(offer, field) == value) for offer in offers]

    return [
        *(_Marginal(of("tools", value), total) for value, total in wanted.distinct_tools.items()),
        *(_Marginal(of("answer_type", value), total) for value, total in wanted.answer_types.items()),
        *(_Marginal(of("source", value), total, _SHORT, None) for value, total in wanted.sources.items()),
        *(_Marginal(of("task_type", value), 1, _ABSENT, 0.0) for value in sorted({each.task_type for each in offers})),
        _Marginal([offer.calls for offer in offers], wanted.calls),
        _Marginal([offer.files for offer in offers], wanted.files, _FILE, _FILE),
    ]


def composition(samples: Sequence[Sample], wanted: Marginals) -> dict[str, JsonValue]:
    """Return the number reached and the number wanted of each kind of sample, and the task types without any."""
    references = [sample.reference for sample in samples if sample.reference]
    tools = Counter(len(set(reference.tools)) for reference in references)
    answers = Counter(sample.answer_type for sample in samples)
    reached: dict[str, tuple[int, int]] = {
        "questions": (len(samples), wanted.queries),
        **{f"with {number} tools": (tools[number], total) for number, total in wanted.distinct_tools.items()},
        **{f"{answer} answers": (answers[answer], total) for answer, total in wanted.answer_types.items()},
        "calls": (sum(len(reference.steps) for reference in references), wanted.calls),
        "shown files": (sum(len(sample.files) for sample in samples), wanted.files),
    }
    absent = FAMILY_OF_TASK_TYPE.keys() - {sample.task_type for sample in samples}
    return {"reached": {name: [*pair] for name, pair in reached.items()}, "absent_task_types": [*sorted(absent)]}


def _fair_share(template: str, offers: Sequence[Offer], wanted: Marginals) -> float:
    """Return the number of uses of a template if its sources' questions were spread evenly over their templates."""
    sources = {offer.source for offer in offers if offer.template == template}
    siblings = {offer.template for offer in offers if offer.source in sources}
    return max(1.0, sum(wanted.sources.get(source, 0) for source in sources) / len(siblings))
