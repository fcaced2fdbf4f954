"""Trajectories on GTA and ThinkGeo from other programs, and failures that only the text of a tool's result tells.

Two forms are read beside prediction files. An object of entries of the data set in which ``dialogs`` is the agent's
own dialogue, with ``pred_answer`` and the entry's ``gt_answer`` (as TRACE writes them), has answers, but no gold calls.
A list of single steps with ``tool_name`` and ``gold_tool`` has no gold arguments.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from agrotools.benchmarks._dialogs.published_scorer import Dialogue
from agrotools.text.loose_json import is_list, is_object, is_text

NO_GOLD = "needs gold dialogues, which these trajectories do not have (--data)"


class Trajectories(NamedTuple):
    """Trajectories of one file."""

    samples: tuple[Dialogue, ...]
    mode: Literal["step-by-step", "end-to-end"]
    has_answers: bool
    metrics: tuple[str, ...]
    """Names of the metrics that can be computed without gold dialogues."""
    score_name: str
    scores: Mapping[str, float]
    """Score of the first metric that the file has in its field ``score_name``, by sample."""


def read_trajectories(content: Any) -> Trajectories | None:
    """Return the trajectories in the JSON value of a file; None if it is of another form."""
    parts = list(content.values()) if is_object(content) else content if is_list(content) else []
    if not parts or not all(map(is_object, parts)):
        return None
    if is_object(content) and all("pred_answer" in entry and is_list(entry.get("dialogs")) for entry in parts):
        entries = sorted(content.items(), key=lambda item: (len(item[0]), item[0]))
        samples = tuple(_of_entry(key, entry) for key, entry in entries)
        scores = {key: entry.get("answer_match_score_gta") for key, entry in entries}
        known = {key: float(score) for key, score in scores.items() if isinstance(score, int | float)}
        metrics = ("ans_acc", "ans_acc_objective")
        return Trajectories(samples, "end-to-end", True, metrics, "answer_match_score_gta", known)
    if is_list(content) and all({"tool_name", "gold_tool"} <= set(step) for step in parts):
        steps = tuple(
            Dialogue(str(at), [_call(step["gold_tool"], {})], [_call(step["tool_name"], step.get("tool_arguments"))])
            for at, step in enumerate(parts)
        )
        labels = {str(at): float(step["label"]) for at, step in enumerate(parts) if isinstance(step.get("label"), int)}
        return Trajectories(steps, "step-by-step", False, ("tool_acc",), "label", labels)
    return None


def _of_entry(key: str, entry: Mapping[str, Any]) -> Dialogue:
    messages = [message for message in entry["dialogs"] if not (is_object(message) and message.get("role") == "user")]
    return Dialogue(key, [[]], [messages or [{"role": "assistant", "content": ""}]], entry.get("gt_answer"))


def _call(name: Any, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments if is_object(arguments) or is_text(arguments) else {}}
    return {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}


_NO_TOOL = re.compile(
    r"^\W*(?:failed to load tool|(?:there is )?no (?:such )?tool\b|unknown tool|"
    r"tool\b.{0,80}\b(?:does not exist|not found))|\bis not a (?:valid|known|registered) tool",
    re.IGNORECASE,
)
_LISTED = re.compile(r"failed to load tool (\S+) because it's not in \[(.*?)\]", re.IGNORECASE | re.DOTALL)
_ARGUMENTS = re.compile(
    r"missing \d+ required (?:positional|keyword-only) argument|got an unexpected keyword argument|"
    r"got multiple values for (?:keyword )?argument|takes (?:from )?\d+ .{0,20}positional arguments? but|"
    r"^\W*(?:(?:unknown|invalid|missing required) (?:tool )?arguments?\b|(?:input )?validation error|"
    r"\d+ validation errors? for)",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"^\W*(?:tool \S+ execution error|this tool is not available|error\b\s*[:(]|error (?:in|while|executing)|"
    r"traceback \(most|an error (?:has )?occurred|(?:[\w.]*[a-z])?(?:Error|Exception)\b\]?\s*[:(])",
    re.IGNORECASE,
)
_LONGEST = 2000


def failure_of(text: str) -> str | None:
    """Return the error class of a tool's result that tells a failure in words; None for any other result.

    A tool that a "Failed to load tool" message itself lists exists and is not available: that is an error of the tool.
    """
    text = text[:_LONGEST]
    if _NO_TOOL.search(text):
        listed = _LISTED.search(text)
        exists = listed is not None and listed[1] in [name.strip() for name in listed[2].split(",")]
        return "tool_error" if exists else "wrong_tool_name"
    if _ARGUMENTS.search(text):
        return "invalid_arguments"
    return "tool_error" if _FAILURE.search(text) else None


def failure_after(messages: Sequence[Any], index: int) -> str | None:
    """Return the error class of the call at ``index`` if the result after it is the text of a failure."""
    following: Any = messages[index + 1] if index + 1 < len(messages) else None
    if not is_object(following) or following.get("role") != "tool":
        return None
    content: Any = following.get("content")
    text: Any = content.get("content") if is_object(content) else content
    return failure_of(text) if is_text(text) else None
