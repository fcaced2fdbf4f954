"""Published scoring of GTA-2 (GTA-Workflow, arXiv 2604.15715): scores of tasks from their trees of sub-tasks.

Reimplemented from the behaviour of opencompass/opencompass/datasets/gta_bench_v2.py (github.com/open-compass/GTA,
commit 8dd011fa277d3cb83f713acbcd0d24ec9968328c, Apache-2.0). A judge grades every leaf from 0 to 10. Unexpected
behaviour is kept: a leaf whose reply holds no number scores 0, the first number of a reply that is not a JSON object is
used without its sign, and a node whose weights sum to 0 scores 0.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from agrotools.benchmarks._dialogs.scores import differences_of_run
from agrotools.benchmarks.gta2.load import GTA2_TOOLS
from agrotools.benchmarks.gta2.plugin import PAPER_RUN
from agrotools.plugin import PublishedRun, Scoring
from agrotools.scoring.predictions import published
from agrotools.scoring.summary import PublishedFigures

MOST = 10
"""Maximum grade."""
_NUMBER = re.compile(r"\d+(\.\d+)?")

Leaf = Callable[[Mapping[str, Any]], float]
"""Function that returns the grade of a leaf, 0 to 10."""


def read_score(reply: str) -> float:
    """Return the grade in a judge's reply, 0 to 10.

    It is the ``score`` of a JSON object (0 if the key is missing), clipped to the range; otherwise the first number in
    the reply without its sign; otherwise 0.
    """
    try:
        data: Any = json.loads(reply)
        return float(max(0, min(MOST, float(data.get("score", 0)))))
    except Exception:
        # After any error the reply is searched instead.
        match = _NUMBER.search(reply)
    return min(float(MOST), float(match.group())) if match else 0.0


def root_score(tree: Any, leaf: Leaf) -> float:
    """Return the score of a task, 0 to 10, from its tree in the published form: a list of nodes, or one node.

    ``leaf`` is called for every node without sub-tasks, in written order; an empty tree is one such node.

    Raises:
        PublishedScorerStops: the published scorer raises an exception for such a tree.
    """
    with published("the tree of sub-tasks"):
        return _score(_root(tree), leaf)


def _root(tree: Any) -> Mapping[str, Any]:
    if isinstance(tree, list):
        return {"id": "root", "sub_tasks": tree}
    if isinstance(tree, dict):
        return cast("dict[str, Any]", tree) if "sub_tasks" in tree else {"id": "root", "sub_tasks": [tree]}
    raise ValueError("a tree of sub-tasks is a list or an object")


def _score(node: Mapping[str, Any], leaf: Leaf) -> float:
    children: Any = node.get("sub_tasks", [])
    if not children:
        return leaf(node)
    total: Any = 0
    weights: Any = 0
    for child in children:
        weight: Any = child.get("weight", 1)
        total += _score(child, leaf) * weight
        weights += weight
    return total / weights if weights else 0


def _published(run: PublishedRun) -> PublishedFigures:
    here = sum(tool in run.manifest.toolset for tool in GTA2_TOOLS)
    remarks = (
        f"{here} of its {len(GTA2_TOOLS)} tools offered",
        "a judge with our prompt, shown texts and images of the files instead of the files",
    )
    return PublishedFigures(family="gta-2", differs=(*remarks, *differences_of_run(run.manifest, run.mode, PAPER_RUN)))


SCORING = Scoring(published=_published)
