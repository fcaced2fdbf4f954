"""Counts errors in Agent-X's predictions, which hold steps and answer in one text that the model writes at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from agrotools.benchmarks.agent_x.published_errors import Keywords
from agrotools.benchmarks.agent_x.published_scorer import TOOLS
from agrotools.core import Record
from agrotools.plugin import RecordErrors
from agrotools.scoring.error_classes import IN_HEAD, OF_SCORES, Errors
from agrotools.scoring.errors_in_records import keywords
from agrotools.text.agent_x import raw_object, without_thinking
from agrotools.text.loose_json import is_list, is_object, is_text

OF_CALLS = ("format_error", "invalid_json", "invalid_arguments", "tool_error", "redundant_call")
"""Classes of calls that are really made."""
_STEP_KEYS = frozenset(("step", "task", "tool_used", "tool_output", "thought"))
_NOTHING = (None, "", "null")


def errors_of_agent_x(
    predictions: Sequence[Any],
    data: Mapping[str, Any] | None = None,
    keywords_of: Keywords = keywords,
) -> Errors:
    """Errors in a list of one-key objects. ``data``: the data set by id, which keywords and tools are taken from.

    Unlike the published notebook, a sample without a response is counted as that alone, one without gold for no
    keyword, and a step under ``tool`` and ``output`` is as good as one under ``tool_used`` and ``tool_output``.
    """
    found = Errors(total=len(predictions))
    found.skip(OF_CALLS, "no tool is run, and predictions hold no arguments")
    found.skip((IN_HEAD,), OF_SCORES)
    if data is None:
        found.skip(("no_answer_keyword", "no_step_keyword", "single_step_answer"), "needs the data set")
    for position, item in enumerate(predictions):
        pairs = list(item.items()) if is_object(item) else [(str(position), item)]
        for key, entry in pairs:
            _errors_of_entry(str(key), entry, _gold(data, key), found, keywords_of)
    return found


def add_made_up(record: Record, found: Errors) -> None:
    """Count the errors of a valid record whose model made up steps and answer in one reply.

    Query and file name, which Agent-X's predictions hold beside them, are not asked of a model here, nor missed. A
    reply without any JSON object is a thought; one that begins an object and cannot be read is in an invalid format.
    """
    sample = record.sample
    found.total += 1
    text = _last_reply(record)
    entry: Any = raw_object(text)
    if entry is None:
        body = without_thinking(text).strip()
        found.add("no_response" if not text.strip() else "invalid_format" if "{" in body else "only_thought", sample.id)
        return
    gold = {
        "reasoning_steps": sample.metadata.get("reasoning_steps", []),
        "final_answer": sample.metadata.get("final_answer", {}),
        "tool_metadata": dict.fromkeys(sample.toolset),
    }
    _errors_of_entry(sample.id, {"query": "", "filename": "", **entry}, gold, found, keywords)


def _last_reply(record: Record) -> str:
    trajectory = record.trajectory
    if trajectory is None:
        return ""
    replies = [step.reply for step in trajectory.steps if step.reply is not None]
    last = trajectory.halted_by or (replies[-1] if replies else None)
    return last.text if last is not None else ""


def _gold(data: Mapping[str, Any] | None, key: Any) -> Any:
    entry: Any = data.get(str(key)) if data is not None else None
    return entry[0] if is_list(entry) and entry else entry


def _errors_of_entry(key: str, entry: Any, gold: Any, found: Errors, keywords_of: Keywords) -> None:
    if not is_object(entry):
        found.add("invalid_format", key)
        return
    raw: Any = entry.get("reasoning_steps")
    steps: list[Any] = raw if is_list(raw) else []
    answer: Any = entry.get("final_answer")
    value: Any = answer.get("value") if is_object(answer) else answer
    answered = value not in _NOTHING
    found.steps += len(steps)
    if not steps and not answered:
        found.add("no_response", key)
        return
    if not steps:
        found.add("only_thought", key)
    faulty = _is_faulty(entry, raw, answer)
    found.add("invalid_format", key, int(faulty))
    found.add("answer_in_invalid_format", key, int(faulty and answered))
    _errors_of_steps(key, steps, _tools(gold), found)
    if is_object(gold):
        if not steps and _steps_of(gold):
            found.add("single_step_answer", key)
        _missed_keywords(key, entry, steps, gold, found, keywords_of)


def _is_faulty(entry: Any, steps: Any, answer: Any) -> bool:
    if not all(name in entry for name in ("query", "filename")) or not is_list(steps):
        return True
    if not is_object(answer) or "value" not in answer or "justification" not in answer:
        return True
    return not all(is_object(step) and _renamed(step) >= _STEP_KEYS for step in steps)


def _renamed(step: Any) -> set[str]:
    names = {"tool": "tool_used", "output": "tool_output"}
    return {names.get(str(name), str(name)) for name in step}


def _errors_of_steps(key: str, steps: list[Any], known: frozenset[str], found: Errors) -> None:
    before: str | None = None
    repeated = False
    for step in filter(is_object, steps):
        tool: Any = step.get("tool_used") or step.get("tool")
        output: Any = step.get("tool_output") or step.get("output")
        if is_list(tool):
            found.add("several_calls", key, int(len(tool) > 1))
        if not is_text(tool) or tool.strip() in _NOTHING:
            before = None
            continue
        names = [name.strip() for name in tool.split(",")]
        found.add("several_calls", key, int(len(names) > 1))
        found.add("wrong_tool_name", key, sum(name not in known for name in names))
        found.add("call_without_output", key, int(not is_list(output) and not is_object(output) and output in _NOTHING))
        repeated |= before == tool.strip().lower()
        before = tool.strip().lower()
    found.add("repeated_tool", key, int(repeated))


def _tools(gold: Any) -> frozenset[str]:
    """The tools that a sample offers, all of the benchmark where it does not say."""
    offered: Any = gold.get("tool_metadata") if is_object(gold) else None
    return frozenset(map(str, offered)) if is_object(offered) and offered else TOOLS


def _steps_of(gold: Any) -> list[Any]:
    steps: Any = gold.get("reasoning_steps")
    if is_list(steps) and len(steps) == 1 and is_list(steps[0]):
        steps = steps[0]
    return steps if is_list(steps) else []


def _missed_keywords(key: str, entry: Any, steps: list[Any], gold: Any, found: Errors, keywords_of: Keywords) -> None:
    if wanted := keywords_of(_answer_text(gold.get("final_answer"))):
        said = _answer_text(entry.get("final_answer")).lower()
        found.add_keyed("no_answer_keyword", key, not any(word.lower() in said for word in wanted))
    if steps and (wanted := keywords_of(_steps_text(_steps_of(gold)))):
        said = _steps_text(steps).lower()
        found.add_keyed("no_step_keyword", key, not any(word.lower() in said for word in wanted))


def _answer_text(answer: Any) -> str:
    return f"{answer.get('value', '')} {answer.get('justification', '')}" if is_object(answer) else str(answer or "")


def _steps_text(steps: list[Any]) -> str:
    fields = ("task", "tool", "tool_used", "output", "tool_output", "thought")
    return " ".join(str(step.get(name, "")) for step in steps if is_object(step) for name in fields)


SINGLE_REPLY = RecordErrors(
    add_made_up, dict.fromkeys(OF_CALLS, "no tool is run, and what was made up holds no arguments")
)
