"""The ReAct protocol that GTA and ThinkGeo publish: lagent 0.2.4's, with the words that OpenCompass puts around it.

Step-by-step: what the reference did is told without its thoughts, what tools returned as bare text, and with the last
step the model is asked to sum up. End-to-end: the model's own replies, and after each ``Response:``; with the last turn
it is told to answer. Messages are those that their agent sends, in number, role and wording.
"""

import json
from collections.abc import Mapping, Sequence

from agrotools.agents.observations import observation_data
from agrotools.agents.prompts import fill, render
from agrotools.core import Observation, Step
from agrotools.core.refs import renamed
from agrotools.models import Message
from agrotools.text.lagent import ACTION, ACTION_INPUT, RESPONSE, DeclaredTool, described, received


def system_message(tools: Sequence[DeclaredTool]) -> Message:
    """The tools, and how they are called."""
    names = str([tool.name for tool in tools])
    return Message.of("system", render("lagent/system", tool_description=described(tools), action_names=names))


def files_text(paths: Sequence[str]) -> str:
    """Where the files are."""
    return fill("lagent/files", paths=", ".join(f"`{path}`" for path in paths))


def shown_history(steps: Sequence[Step], paths: Mapping[str, str]) -> list[Message]:
    """Reference calls with what they returned, as step-by-step tells them; of a call that returned nothing, nothing.

    ``paths``: by name of each file.
    """
    messages: list[Message] = []
    for step in steps:
        if step.call is None:
            continue
        messages.append(Message.of("assistant", _called(step, paths)))
        if step.observation is not None and not step.observation.empty:
            messages.append(Message.of("system", result_text(step)))
    return messages


def own_history(steps: Sequence[Step], paths: Mapping[str, str]) -> list[Message]:
    """What a model said so far, and what came of it, as end-to-end tells it."""
    messages: list[Message] = []
    for step in steps:
        said = received(step.reply.text) if step.reply else _called(step, paths) if step.call else step.text
        came = result_text(step) if step.call else step.reason
        messages += [Message.of("assistant", said), Message.of("system", f"{RESPONSE}{came}\n")]
    return messages


def result_text(step: Step) -> str:
    """What the call of a step returned: text, an image's name as a link, or what went wrong."""
    observation = step.observation or Observation()
    if observation.error is not None:
        error = observation.error
        return f"{error.message} ({error.hint})" if error.hint else error.message
    result = observation.result or {}
    if isinstance(text := result.get("text"), str):
        return text
    if isinstance(image := result.get("image"), str):
        return f"[image]({image})"
    return observation_data(step)


def _called(step: Step, paths: Mapping[str, str]) -> str:
    assert step.call is not None
    arguments = json.dumps(renamed(step.call.arguments, paths))
    return f"{ACTION}{step.call.tool}\n{ACTION_INPUT}{arguments}"
