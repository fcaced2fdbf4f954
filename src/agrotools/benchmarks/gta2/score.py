"""Scoring of tasks by their trees of sub-tasks exactly as in GTA-2 (GTA-Workflow, arXiv 2604.15715).

Written anew from the behaviour of opencompass/opencompass/datasets/gta_bench_v2.py (github.com/open-compass/GTA, commit
8dd011fa277d3cb83f713acbcd0d24ec9968328c, Apache-2.0). A judge grades every leaf from 0 to 10. What one would not expect
is kept: a leaf whose reply holds no number scores 0, a number is read from any reply that is no JSON object and loses
its sign there, and a node whose weights come to 0 scores 0.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from agrotools.benchmarks._dialogs.scores import differences_of_run
from agrotools.benchmarks.gta2.load import GTA2_TOOLS
from agrotools.benchmarks.gta2.plugin import PAPER_RUN
from agrotools.plugin import PublishedRun, Scoring
from agrotools.scoring.predictions import published
from agrotools.scoring.summary import PublishedFigures

MOST = 10
"""The best grade."""
_NUMBER = re.compile(r"\d+(\.\d+)?")

Leaf = Callable[[Mapping[str, Any]], float]
"""The grade of a leaf, 0 to 10."""


def read_score(reply: str) -> float:
    """The grade in a judge's reply: ``score`` of a JSON object, held between 0 and 10; else the first number in it (at
    most 10, its sign is not read); else 0. An object without ``score`` has 0."""
    try:
        data: Any = json.loads(reply)
        return float(max(0, min(MOST, float(data.get("score", 0)))))
    except Exception:
        # Whatever is wrong with it, the reply is searched instead.
        match = _NUMBER.search(reply)
    return min(float(MOST), float(match.group())) if match else 0.0


def root_score(tree: Any, leaf: Leaf) -> float:
    """The score of a task, 0 to 10, from its tree as it is published: a list of nodes, or one node.

    ``leaf`` is asked for every node without sub-tasks, in written order; a tree without nodes is one such node.

    Raises:
        PublishedScorerStops: the published scorer ends with an exception at such a tree.
    """
    with published("the tree of sub-tasks"):
        return _score(_root(tree), leaf)


def gpt_score(roots: Sequence[float]) -> float:
    """The score of a benchmark: the plain mean of its tasks' scores; 0 where there is none."""
    return sum(roots) / len(roots) if roots else 0.0


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
        "a judge asked in words of ours, and shown texts and images of files, not the files",
    )
    return PublishedFigures(family="gta-2", differs=(*remarks, *differences_of_run(run.manifest, run.mode, PAPER_RUN)))


SCORING = Scoring(published=_published)
