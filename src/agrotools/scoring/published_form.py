"""Records in the form of the files that published scorers read."""

from collections.abc import Sequence
from typing import Any

from agrotools.core import Observation, Record, Sample, UsageError
from agrotools.text.agent_x import Prediction, read_prediction
from agrotools.text.loose_json import dumps
from agrotools.tools import get_tool


def in_file_order(records: Sequence[Record]) -> list[Record]:
    """The records in the order of the published file."""

    def position(record: Record) -> tuple[int, str]:
        given = record.sample.metadata.get("position")
        return (given if isinstance(given, int) else 1 << 30, record.sample.id)

    return sorted(records, key=position)


def returned_content(observation: Observation | None) -> dict[str, Any]:
    """The result of a call as prediction files hold it: its type (image or text) and its content."""
    result = (observation.result if observation is not None else None) or {}
    kind = "image" if "image" in result else "text"
    content = result.get(kind) if result else ""
    return {"type": kind, "content": content if isinstance(content, str) else dumps(dict(result))}


def agent_x_prediction(record: Record) -> dict[str, Any]:
    """The record as the object that Agent-X keeps of a prediction: steps with what the tools returned, and the answer.

    Agent-X has a model make the outputs up, and so has a run in the protocol agent-x, whose reply is told as it is; of
    any other run they are what the tools gave.
    """
    sample = record.sample
    if record.mode == "no-tool" and (made_up := _made_up(record)):
        return {
            "query": sample.query,
            "filename": str(sample.metadata.get("file_path", "")),
            "reasoning_steps": [*made_up.steps],
            "final_answer": {"value": made_up.value, "justification": made_up.justification},
        }
    steps: list[dict[str, Any]] = []
    for number, step in enumerate(record.trajectory.calls if record.trajectory else (), start=1):
        assert step.call is not None
        failed = step.observation is None or step.observation.error is not None
        returned = "" if failed else returned_content(step.observation)["content"]
        steps.append(
            {
                "step": number,
                "task": step.thought,
                "tool_used": step.call.tool,
                "tool_output": returned,
                "thought": step.thought,
            }
        )
    answer = record.trajectory.answer if record.trajectory else None
    return {
        "query": sample.query,
        "filename": str(sample.metadata.get("file_path", "")),
        "reasoning_steps": steps or "",
        "final_answer": {"value": answer or "", "justification": ""},
    }


def _made_up(record: Record) -> Prediction | None:
    steps = record.trajectory.steps if record.trajectory else ()
    if not steps or steps[-1].kind != "answer" or steps[-1].reply is None:
        return None
    read = read_prediction(steps[-1].reply.text)
    return None if isinstance(read, str) else read


def agent_x_gold(sample: Sample) -> dict[str, Any]:
    """The sample as Agent-X publishes it."""
    return {
        "query": sample.query,
        "query_type": sample.metadata.get("query_type", ""),
        "reasoning_steps": sample.metadata.get("reasoning_steps", []),
        "final_answer": sample.metadata.get("final_answer", {}),
        "tool_metadata": {name: _described(name) for name in sample.toolset},
    }


def _described(name: str) -> dict[str, str]:
    try:
        return {"name": name, "description": get_tool(name).spec.description}
    except UsageError:
        return {"name": name}
