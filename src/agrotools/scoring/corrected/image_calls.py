"""Tasks whose answer is an image: how near the calls that make it are to those of the gold.

The published rule keeps the last call of each tool only, so that a gold with two boxes scores below 1 against itself.
Here, of each tool the last calls that worked, as many as the gold has, are matched one to one where they are most alike
(arguments as text); the task scores the product. Earlier calls are taken for attempts that were given up.
"""

# scipy ships no type stubs.
# pyright: reportMissingTypeStubs=false

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from agrotools.scoring.corrected.arguments import Specs, as_text
from agrotools.scoring.corrected.messages import Message
from agrotools.scoring.figures import Similarity

_LEAST = 1e-9


class NeedsEmbedder(Exception):
    """The arguments of two calls differ, and nothing is there to say by how much."""


def image_score(
    steps: Sequence[Message],
    gold: Sequence[Message],
    image_tools: Collection[str],
    specs: Specs,
    similarity: Similarity | None,
) -> float | None:
    """0 to 1; None where the gold has no call that makes an image, so that nothing can be told.

    Raises:
        NeedsEmbedder: there is no similarity, and the calls are not the same.
    """
    wanted = _by_tool([step for step in gold if step.kind == "call" and step.name in image_tools])
    if not wanted:
        return None
    made = _by_tool([step for step in steps if step.kind == "call" and not step.failed and step.name in image_tools])
    if any(len(made.get(name, [])) < len(calls) for name, calls in wanted.items()):
        return 0.0
    score = 1.0
    for name, calls in wanted.items():
        first = [as_text(name, arguments, specs) for arguments in calls]
        second = [as_text(name, arguments, specs) for arguments in made[name][-len(calls) :]]
        score *= _matched(first, second, similarity)
    return score


def _by_tool(calls: Sequence[Message]) -> Mapping[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for call in calls:
        found.setdefault(call.name, []).append(call.arguments)
    return found


def _matched(gold: list[str], made: list[str], similarity: Similarity | None) -> float:
    """The largest product of similarities of a one-to-one matching of texts, as many here as there."""
    if sorted(gold) == sorted(made):
        return 1.0
    if similarity is None:
        raise NeedsEmbedder
    likeness = [
        [1.0 if one == other else min(1.0, max(0.0, float(similarity(one, other)))) for other in made] for one in gold
    ]
    if len(gold) == 1:
        return likeness[0][0]
    from scipy.optimize import linear_sum_assignment  # pyright: ignore[reportUnknownVariableType]

    costs = [[-math.log(max(value, _LEAST)) for value in row] for row in likeness]
    rows, columns = cast("tuple[list[int], list[int]]", linear_sum_assignment(costs))
    return math.prod(likeness[row][column] for row, column in zip(rows, columns, strict=True))
