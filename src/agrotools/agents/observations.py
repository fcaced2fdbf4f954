"""Observations as a model reads them: compact JSON between tags, of bounded length."""

from typing import Any

from agrotools.agents.prompts import fill
from agrotools.core import Step
from agrotools.text.loose_json import dumps

OBSERVATION_LIMIT = 12_000
"""Characters of one observation at most; long lists and texts in it are shortened first, and say so."""

_ITEMS_KEPT = (400, 200, 100, 50, 20, 10, 5)


def observation_data(step: Step) -> str:
    """What the step's call returned, as JSON that cannot close the tags around it."""
    content: dict[str, Any] = {"tool": step.call.tool if step.call else ""}
    observation = step.observation
    if observation is None:
        content["error"] = {"kind": "backend_unavailable", "message": "the tool returned nothing"}
    elif observation.error is not None:
        error = observation.error.model_dump(mode="json", exclude_none=True)
        content["error"] = {key: value for key, value in error.items() if value not in ([], "")}
    else:
        content["result"] = observation.result
    if observation is not None and observation.artifacts:
        content["artifacts"] = [{"name": item.name, "kind": item.kind} for item in observation.artifacts]
    return _bounded(content).replace("</", "<\\/")


def observation_text(step: Step) -> str:
    """The observation of a call, marked as data."""
    return fill("observation", data=observation_data(step))


def _bounded(content: Any) -> str:
    text = dumps(content)
    for kept in _ITEMS_KEPT:
        if len(text) <= OBSERVATION_LIMIT:
            return text
        text = dumps(_shortened(content, kept))
    if len(text) > OBSERVATION_LIMIT:
        text = f"{text[:OBSERVATION_LIMIT]} [cut: {len(text) - OBSERVATION_LIMIT} more characters]"
    return text


def _shortened(value: Any, kept: int) -> Any:
    """``value`` with at most ``kept`` items of each list and ``20 * kept`` characters of each text."""
    if isinstance(value, str) and len(value) > 20 * kept:
        return f"{value[: 20 * kept]} [cut: {len(value) - 20 * kept} more characters]"
    if isinstance(value, list):
        items = [_shortened(item, kept) for item in value[:kept]]
        return [*items, f"[cut: {len(value) - kept} more items]"] if len(value) > kept else items
    if isinstance(value, dict):
        return {key: _shortened(item, kept) for key, item in value.items()}
    return value
