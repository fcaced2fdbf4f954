"""Judging of GTA-2 tasks with a tree of sub-tasks: questions, scores from the grades, and a table."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from agrotools.benchmarks.gta2 import score as published_scorer
from agrotools.benchmarks.gta2.plugin import SubTasksSlot, is_tree
from agrotools.benchmarks.gta2.score import MOST
from agrotools.core import Artifact, Record, Slot, Trajectory
from agrotools.core.files import read_table
from agrotools.plugin import JudgedMetric, Judging, Reporting
from agrotools.report.settings import Setting
from agrotools.scoring import Metric, Summary
from agrotools.scoring.judging.questions import JudgeQuestion, is_image, is_text, mark_of, prompt_hash, read_score

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
    if not trees or trajectory is None or record.invalid is not None or trajectory.termination == "infrastructure":
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
        mark = values["mark"] = mark_of((*values.values(), leaf.id, *(each.sha256 or "" for each in artifacts)))
        system, user = (
            _PLACEHOLDER.sub(lambda match, values=values: values[match[1]], words[part]).strip()
            for part in ("system", "user")
        )
        corrected = partial(read_score, most=MOST, shown=user)
        for metric, read in ((GPT_SCORE, published_scorer.read_score), (SCORE_CORRECTED, corrected)):
            name = f"{tree_name} {leaf.id}"
            question = JudgeQuestion(metric, name, system, user, prompt, MOST, read, attachments=artifacts, mark=mark)
            questions.append(question)
    return questions


def artifacts_of(trajectory: Trajectory) -> tuple[Artifact, ...]:
    """Return the files that the run's tools created; of several files with the same name the last one."""
    observed = (step.observation for step in trajectory.steps if step.observation is not None)
    return tuple({each.name: each for observation in observed for each in observation.artifacts}.values())


def tree_values(slots: Sequence[Slot], grades: Sequence[float]) -> list[float]:
    """Return the score of each tree from ``grades`` (of all leaves in written order), on the scale of the grades."""
    remaining = iter(grades)
    trees = [slot.model_dump()["sub_tasks"] for slot in slots if isinstance(slot, SubTasksSlot)]
    # Rounding may raise a mean of ones slightly above one.
    return [min(max(grades), published_scorer.root_score([*tree], lambda _: next(remaining))) for tree in trees]


def _how_shown(artifact: Artifact) -> str:
    if is_text(artifact):
        return f"{artifact.media_type}, its text follows below"
    return f"{artifact.media_type}, shown below" if is_image(artifact) else f"{artifact.media_type}, only named"


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
_SETTING = Setting(_TITLE, "end-to-end", (GPT_SCORE, SCORE_CORRECTED), _judged_metrics, marks_differences=True)
REPORTING = Reporting(settings=(_SETTING,))
