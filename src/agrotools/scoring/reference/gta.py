"""GTA's scorer (arXiv 2407.08713), to the letter: metrics of both modes, and of GTA-2's workflows.

Ported from its behaviour (github.com/open-compass/GTA, Apache-2.0, as of 2026: a category without a gold call has F1
0, where earlier versions divided by zero). GTA-2 is scored by a judge at the leaves of a tree of requirements.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agrotools.scoring.figures import Scores, Similarity
from agrotools.scoring.reference import gta_family
from agrotools.scoring.reference.gta_family import Dialogue, Rules
from agrotools.scoring.reference.stops import published

RULES = Rules(
    name="gta",
    categories={
        "p_f1": ("OCR", "ImageDescription", "RegionAttributeDescription", "TextToBbox"),
        "o_f1": ("DrawBox", "AddText", "GoogleSearch"),
        "l_f1": ("Calculator", "Solver", "Plot", "MathOCR", "CountGivenObject"),
        "c_f1": ("TextToImage", "ImageStylization"),
    },
    image_tools=("DrawBox", "AddText", "Plot", "TextToImage", "ImageStylization"),
    image_metric="ans_acc_imggen",
    recall=lambda hits, gold: hits / gold if gold else 0.0,
    guards_answers=True,
)


def score_steps(samples: Sequence[Dialogue], similarity: Similarity | None = None) -> Scores:
    """See :func:`gta_family.score_steps`."""
    return gta_family.score_steps(samples, RULES, similarity)


def score_end(samples: Sequence[Dialogue], similarity: Similarity | None = None) -> Scores:
    """See :func:`gta_family.score_end`."""
    return gta_family.score_end(samples, RULES, similarity)


def leaf_score(reply: str) -> float:
    """The score that GTA-2 reads in a judge's reply, 0 to 10: of a JSON object, else the first number in the text.

    A negative number outside of JSON loses its sign; no number is 0.
    """
    try:
        return max(0, min(10, float(json.loads(reply).get("score", 0))))
    except Exception:  # the original goes on after any failure
        number = re.search(r"\d+(\.\d+)?", reply)
        return min(10.0, float(number.group())) if number else 0.0


def tree_score(tree: Any, judge_leaf: Callable[[Mapping[str, Any]], str]) -> float:
    """The score of a GTA-2 task, 0 to 10: leaves as the judge says, inner nodes the weighted mean of their sub-tasks.

    ``tree``: the ``sub_tasks`` of the data set, a list or one node. ``judge_leaf`` is given a leaf and returns the
    judge's reply. A node without ``weight`` weighs 1; weights that add up to 0 give 0.

    Raises:
        PublishedScorerStops: the tree is of another form.
    """
    with published("the tree of requirements"):
        if isinstance(tree, list):
            return _node({"sub_tasks": tree}, judge_leaf)
        if not isinstance(tree, dict):
            raise ValueError("it is neither a list nor an object")
        return _node(tree if "sub_tasks" in tree else {"sub_tasks": [tree]}, judge_leaf)


def _node(node: Any, judge_leaf: Callable[[Mapping[str, Any]], str]) -> float:
    children = node.get("sub_tasks", [])
    if not children:
        return leaf_score(judge_leaf(node))
    total = weights = 0
    for child in children:
        weight = child.get("weight", 1)
        total += _node(child, judge_leaf) * weight
        weights += weight
    return total / weights if weights else 0


def workflow_score(scores: Sequence[float]) -> float:
    """``gpt_score``: the mean of the tasks' scores, on the scale of 0 to 10; 0 without any."""
    return sum(scores) / len(scores) if scores else 0.0
