"""Published scoring of GTA-2 (GTA-Workflow, arXiv 2604.15715), and questions to judges about its tasks.

Scores of tasks follow from their trees of sub-tasks. Reimplemented from the behaviour of
opencompass/opencompass/datasets/gta_bench_v2.py (github.com/open-compass/GTA, commit
8dd011fa277d3cb83f713acbcd0d24ec9968328c, Apache-2.0). A judge grades every leaf from 0 to 10. Unexpected behaviour is
kept: a leaf whose reply holds no number scores 0, the first number of a reply that is not a JSON object is used without
its sign, and a node whose weights sum to 0 scores 0.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from agrotools.core import Artifact, Record, Slot, Trajectory
from agrotools.core.files import read_table
from agrotools.report.contracts import Reporting
from agrotools.report.settings import Setting
from agrotools.scoring.contracts import PublishedRun, Scoring
from agrotools.scoring.judging.contracts import JudgedMetric, Judging
from agrotools.scoring.judging.questions import (
    JudgeQuestion,
    is_image,
    is_text,
    mark_of,
    prompt_hash,
    read_score,
)
from agrotools.scoring.predictions import published
from agrotools.scoring.summary import Metric, PublishedFigures, Summary
from agrotools_benchmarks._dialogs.scores import differences_of_run
from agrotools_benchmarks.gta2.load import GTA2_TOOLS
from agrotools_benchmarks.gta2.plugin import PAPER_RUN, SubTasksSlot, is_tree

MOST = 10
"""Maximum grade."""
_NUMBER = re.compile(r"\d+(\.\d+)?")

Leaf = Callable[[Mapping[str, Any]], float]
"""Function that returns the grade of a leaf, 0 to 10."""


def published_grade(reply: str) -> float:
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
        return (
            cast("dict[str, Any]", tree)
            if "sub_tasks" in tree
            else {"id": "root", "sub_tasks": [tree]}
        )
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
    return PublishedFigures(
        family="gta-2", differs=(*remarks, *differences_of_run(run.manifest, run.mode, PAPER_RUN))
    )


SCORING = Scoring(published=_published)


GPT_SCORE = "gta2.gpt_score"
SCORE_CORRECTED = "gta2.score_corrected"

_PROMPT = Path(__file__).with_name("judge.toml")
_LONGEST_ANSWER = 20_000
_PLACEHOLDER = re.compile(r"\{(mark|task|answer|files|requirement)\}")


def sub_task_questions(record: Record) -> list[JudgeQuestion]:
    """Return a question for each leaf of each tree of ``record``; empty if the run gave neither an answer nor a file.

    Each question occurs for two metrics: with GTA-2's parser (a reply without a number scores 0), and with one that
    gives an unreadable reply no grade.
    """
    trees = [slot for slot in record.sample.answer if isinstance(slot, SubTasksSlot)]
    trajectory = record.trajectory
    if (
        not trees
        or trajectory is None
        or record.invalid is not None
        or trajectory.termination == "infrastructure"
    ):
        return []
    answer, artifacts = (trajectory.answer_text or "").strip(), artifacts_of(trajectory)
    if not answer and not artifacts:
        return []
    if len(answer) > _LONGEST_ANSWER:
        answer = f"{answer[:_LONGEST_ANSWER]} [...]"
    words = read_table(_PROMPT)
    prompt = prompt_hash(words["system"] + words["user"])
    files = "\n".join(f"{each.name} ({_how_shown(each)})" for each in artifacts)
    questions: list[JudgeQuestion] = []
    for tree_name, leaf in [(tree.name, leaf) for tree in trees for leaf in tree.leaves]:
        values = {
            "task": record.sample.query,
            "answer": answer or words["no_answer"],
            "files": files or words["no_files"],
            "requirement": leaf.requirements.strip() or words["no_requirement"],
        }
        mark = values["mark"] = mark_of(
            (*values.values(), leaf.id, *(each.sha256 or "" for each in artifacts))
        )
        system, user = (
            _PLACEHOLDER.sub(lambda match, values=values: values[match[1]], words[part]).strip()
            for part in ("system", "user")
        )
        corrected = partial(read_score, most=MOST, shown=user)
        for metric, read in ((GPT_SCORE, published_grade), (SCORE_CORRECTED, corrected)):
            name = f"{tree_name} {leaf.id}"
            question = JudgeQuestion(
                metric, name, system, user, prompt, MOST, read, attachments=artifacts, mark=mark
            )
            questions.append(question)
    return questions


def artifacts_of(trajectory: Trajectory) -> tuple[Artifact, ...]:
    """Return the files that the run's tools created; of several files with the same name the last one."""
    observed = (step.observation for step in trajectory.steps if step.observation is not None)
    return tuple(
        {each.name: each for observation in observed for each in observation.artifacts}.values()
    )


def tree_values(slots: Sequence[Slot], grades: Sequence[float]) -> list[float]:
    """Return the score of each tree from ``grades`` (of all leaves in written order), on the scale of the grades."""
    remaining = iter(grades)
    trees = [slot.model_dump()["sub_tasks"] for slot in slots if isinstance(slot, SubTasksSlot)]
    # Rounding may raise a mean of ones slightly above one.
    return [min(max(grades), root_score([*tree], lambda _: next(remaining))) for tree in trees]


def _how_shown(artifact: Artifact) -> str:
    if is_text(artifact):
        return f"{artifact.media_type}, its text follows below"
    return (
        f"{artifact.media_type}, shown below"
        if is_image(artifact)
        else f"{artifact.media_type}, only named"
    )


JUDGING = Judging(
    metrics={
        GPT_SCORE: JudgedMetric(is_tree, of_slots=tree_values),
        SCORE_CORRECTED: JudgedMetric(is_tree, replies_of=GPT_SCORE, of_slots=tree_values),
    },
    questions=lambda record, _: sub_task_questions(record),
)


def _judged_metrics(summary: Summary) -> Mapping[str, Metric] | None:
    """Return the metrics of a run for which a judge was asked."""
    metrics = summary.modes["end-to-end"].metrics if "end-to-end" in summary.modes else {}
    return metrics if GPT_SCORE in metrics else None


_TITLE = "GTA-2 (end-to-end), by a judge, in words of ours"
_SETTING = Setting(
    _TITLE, "end-to-end", (GPT_SCORE, SCORE_CORRECTED), _judged_metrics, marks_differences=True
)
REPORTING = Reporting(settings=(_SETTING,))
