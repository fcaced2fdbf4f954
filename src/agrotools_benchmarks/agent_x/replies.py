"""Predictions in the form of Agent-X: an object with ``reasoning_steps`` and ``final_answer``, written in one reply.

The keys are those of its prediction files (Ashraf et al. 2025, arXiv 2505.24876). The spellings ``tool`` or
``tool_used`` and ``output`` or ``tool_output`` are kept as written.
"""

import re
from typing import Any, NamedTuple

from pydantic import JsonValue

from agrotools.calling import get_tool
from agrotools.core import Record, Sample, UsageError
from agrotools.core.texts import without_surrogates
from agrotools.loading.facts import listed_tools
from agrotools.text.loose_json import dumps, parsed_values
from agrotools_benchmarks._dialogs.record_dialogues import returned_content

STEPS, ANSWER = "reasoning_steps", "final_answer"
_THINKING = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


class Prediction(NamedTuple):
    """Prediction of a model: its steps as written, and its answer."""

    steps: list[dict[str, JsonValue]]
    value: str
    justification: str


def read_prediction(text: str) -> Prediction | str:
    """Parse the prediction in a reply, or return the reason why there is none.

    The prediction is JSON or a Python literal, in a code fence or within prose. Of several objects, the last one with
    both keys is used.
    """
    objects = _objects(text)
    whole = [value for value in objects if STEPS in value and ANSWER in value]
    if not whole:
        missing = [key for key in (STEPS, ANSWER) if not any(key in value for value in objects)]
        return (
            f"it has no {' and no '.join(missing or (STEPS, ANSWER))}"
            if objects
            else "it is no JSON object"
        )
    steps = _steps(whole[-1][STEPS])
    if steps is None:
        return f"its {STEPS} are no list of objects"
    answer = whole[-1][ANSWER]
    if isinstance(answer, dict):
        return Prediction(steps, _text(answer.get("value")), _text(answer.get("justification")))
    return Prediction(steps, _text(answer), "")


def raw_object(text: str) -> dict[str, JsonValue] | None:
    """Return the object that :func:`read_prediction` parses, unchanged, or the last one with only one of its keys, or
    None."""
    objects = _objects(text)
    whole = [value for value in objects if STEPS in value and ANSWER in value]
    parts = [value for value in objects if STEPS in value or ANSWER in value]
    return (whole or parts or [None])[-1]


def without_thinking(text: str) -> str:
    """Return a reply without a leading thinking block."""
    return _THINKING.sub("", without_surrogates(text))


def _objects(text: str) -> list[dict[str, JsonValue]]:
    """Return the objects in a reply in their order, JSON or Python literals."""
    values = reversed([*parsed_values(without_thinking(text))])
    return [each for value in values for each in _inner(value) if isinstance(each, dict)]


def _inner(value: JsonValue) -> list[JsonValue]:
    """Unwrap the list, or the object with the sample's key, that some models write around the object."""
    if isinstance(value, list):
        return [inner for item in value for inner in _inner(item)]
    if isinstance(value, dict) and len(value) == 1 and STEPS not in value and ANSWER not in value:
        return [*value.values()]
    return [value]


def _steps(value: JsonValue) -> list[dict[str, JsonValue]] | None:
    """Return the steps, unwrapped from an additional list or from an object that numbers them; None for another
    form."""
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if isinstance(value, dict):
        value = [*value.values()]
    if not isinstance(value, list):
        return None
    steps = [step for step in value if isinstance(step, dict)]
    return steps if len(steps) == len(value) else None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else "" if value is None else dumps(value)


def prediction_of(record: Record) -> dict[str, Any]:
    """Return the record as a prediction of Agent-X: steps with tool outputs, and the answer.

    In Agent-X a model invents the outputs. In the protocol agent-x it does so too, and the prediction in its reply is
    used; for any other run the outputs are those of the tools.
    """
    steps: Any
    if record.mode == "no-tool" and (made_up := _prediction_in_reply(record)):
        steps, value, justification = made_up
    else:
        answer = record.trajectory.answer_text if record.trajectory else None
        steps, value, justification = _executed_steps(record) or "", answer or "", ""
    return {
        "query": record.sample.query,
        "filename": str(record.sample.metadata.get("file_path", "")),
        "reasoning_steps": steps,
        "final_answer": {"value": value, "justification": justification},
    }


def _executed_steps(record: Record) -> list[dict[str, JsonValue]]:
    steps: list[dict[str, JsonValue]] = []
    for number, step in enumerate(record.trajectory.calls if record.trajectory else (), start=1):
        assert step.call is not None
        failed = step.observation is None or step.observation.error is not None
        returned = "" if failed else returned_content(step.observation)["content"]
        names = {"step": number, "task": step.thought, "tool_used": step.call.tool}
        steps.append({**names, "tool_output": returned, "thought": step.thought})
    return steps


def _prediction_in_reply(record: Record) -> Prediction | None:
    steps = record.trajectory.steps if record.trajectory else ()
    if not steps or steps[-1].kind != "answer" or steps[-1].reply is None:
        return None
    read = read_prediction(steps[-1].reply.text)
    return None if isinstance(read, str) else read


def gold_of(sample: Sample) -> dict[str, Any]:
    """Return the sample in the published form of Agent-X."""
    return {
        "query": sample.query,
        "query_type": sample.metadata.get("query_type", ""),
        "reasoning_steps": sample.metadata.get("reasoning_steps", []),
        "final_answer": sample.metadata.get("final_answer", {}),
        "tool_metadata": {name: _tool_entry(name) for name in listed_tools(sample)},
    }


def _tool_entry(name: str) -> dict[str, str]:
    try:
        return {"name": name, "description": get_tool(name).spec.description}
    except UsageError:
        return {"name": name}
