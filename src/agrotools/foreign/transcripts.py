"""Records made of transcripts of other programs: messages of a chat become steps, with the results of tools as given.

A row has ``messages``, the whole conversation about a sample (mode end-to-end), or ``steps``, one message of the
assistant for each reference call and one for the answer (mode step-by-step). Messages have the form of OpenAI's chat
completions. No tool is run.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, takewhile
from typing import Any

import orjson
from pydantic import ValidationError

from agrotools.agents.llm import raw_reply
from agrotools.agents.long_replies import kept_action
from agrotools.agents.markups import Schemas
from agrotools.agents.modes import run_end_to_end, with_shown_observations
from agrotools.agents.parsing import parse_output
from agrotools.calling import tool_specs
from agrotools.core import (
    Action,
    Answer,
    CallTools,
    ErrorInfo,
    Halt,
    Mode,
    Observation,
    Record,
    Reply,
    Sample,
    SampleView,
    Step,
    ToolCall,
    ToolOutcome,
    Trajectory,
    Unparseable,
)
from agrotools.core.form_item import asked_items
from agrotools.foreign.batch_output import error_text
from agrotools.loading import Benchmark
from agrotools.models.base import Completion
from agrotools.models.chat_format import MalformedReply, content_text, read_reply, read_usage
from agrotools.models.refusals import failed_request
from agrotools.text.answer_reader import as_form, is_complete
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools.text.loose_json import NotJson, loads

Fields = Mapping[str, Any]
MODES_OF_KEYS: Mapping[str, Mode] = {"messages": "end-to-end", "steps": "step-by-step"}
"""Modes by the key of a row that holds the transcript."""
_OBSERVATION = re.compile(r"<observation>\s*(.*?)\s*</observation>", re.DOTALL)
_OURS = {"tool", "result", "error", "artifacts"}
"""Keys of an observation as our prompts show it."""


def read_transcript(benchmark: Benchmark, sample: Sample, mode: Mode, row: Fields) -> Record:
    """Return the record of a transcript, which is invalid, with the reason, if the transcript cannot be read."""
    key = next(key for key, each in MODES_OF_KEYS.items() if each == mode)
    try:
        messages = row[key]
        if not is_list(messages) or not messages or not all(map(is_object, messages)):
            raise MalformedReply(f"{key} is not a list of messages")
        replies = (Reply(usage=read_usage(row["usage"])),) if row.get("usage") else ()
        schemas = {
            spec.name: spec.parameters
            for spec in tool_specs(sample.toolset, sample.toolset, sample.declared)
        }
        if mode == "step-by-step":
            actions = _actions(sample, messages, schemas)
            return Record(
                sample=with_shown_observations(sample),
                mode=mode,
                actions=actions,
                agent_replies=replies,
            )
        trajectory = asyncio.run(
            _trajectory(sample, benchmark.view(sample, mode), messages, schemas)
        )
        return Record(sample=sample, mode=mode, trajectory=trajectory, agent_replies=replies)
    except (MalformedReply, orjson.JSONEncodeError) as fault:
        return Record(sample=sample, mode=mode, invalid=f"the transcript cannot be read: {fault}")


def in_form(sample: Sample, text: str) -> str:
    """Return ``text`` as a form if it is nothing but the only value that is asked for."""
    items = asked_items(sample.answer)
    if any(item.free_text for item in items):
        return text
    form = as_form(text, items)
    return form if is_complete(form, items) else text


def _actions(sample: Sample, messages: Sequence[Fields], schemas: Schemas) -> tuple[Action, ...]:
    n = len(sample.reference.steps) + 1 if sample.reference else 0
    if len(messages) != n:
        raise MalformedReply(
            f"{len(messages)} steps, not {n}: one for each reference call, and one for the answer"
        )
    *calls, last = (_action(message, schemas) for message in messages)
    if isinstance(last, Answer):
        last = last.model_copy(update={"text": in_form(sample, last.text)})
    return tuple(map(kept_action, (*calls, last)))


async def _trajectory(
    sample: Sample, view: SampleView, messages: Sequence[Fields], schemas: Schemas
) -> Trajectory:
    """Return the steps of a conversation. Texts at its end are one answer; an earlier one is the thought of a call."""
    actions: list[Action] = []
    said: list[Answer] = []  # texts since the last call
    observations: dict[str | None, Observation] = {}
    for at, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        action = _action(message, schemas)
        if isinstance(action, Answer):
            said.append(action)
            continue
        if isinstance(action, CallTools):
            results = _observations(action.calls, messages, at)
            action = _with_own_ids(action, len(observations))
            for call, observation in zip(action.calls, results, strict=True):
                observations[call.id] = observation
            thoughts = [*(each.text for each in said), action.thought]
            thought = "\n".join(text for text in thoughts if text)
            action = action.model_copy(update={"thought": thought})
            said = []
        actions.append(action)
    if said:
        actions.append(_answer_of(said, sample))
    if not actions:
        raise MalformedReply("it has no message of the assistant")

    async def call_tool(call: ToolCall) -> ToolOutcome:
        return ToolOutcome(observations[call.id])

    # The last turn is the end of a transcript without an answer.
    most_turns = len(actions) + 1
    return await run_end_to_end(
        _Transcript(actions), view, call_tool, most_turns, unparseable_limit=None
    )


def _with_own_ids(action: CallTools, n_before: int) -> CallTools:
    """Return calls with ids that no other call of the conversation has. ``n_before``: number of calls before them."""
    calls = tuple(
        call.model_copy(update={"id": f"call{number:05d}"})
        for number, call in enumerate(action.calls, start=n_before)
    )
    return action.model_copy(update={"calls": calls})


def _answer_of(said: Sequence[Answer], sample: Sample) -> Answer:
    """Return the texts at the end of a conversation as one answer; MalformedReply if the last one is an error."""
    if error := failed_request(said[-1].text):
        raise MalformedReply(f"it ends with an error in place of a reply, {error}")
    text = "\n\n".join(each.text for each in said)
    later_replies = tuple(each.reply for each in said[1:] if each.reply)
    return said[0].model_copy(update={"text": in_form(sample, text), "form_replies": later_replies})


class _Transcript:
    def __init__(self, actions: Sequence[Action]) -> None:
        ending = "unparseable" if isinstance(actions[-1], Unparseable) else "max_steps"
        end = Halt(termination=ending, reason="the transcript ends without an answer")
        self._actions = chain(actions, (end,))

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:  # noqa: ARG002
        return next(self._actions)


def _action(message: Fields, schemas: Schemas) -> Action:
    if message.get("error") and not message.get("tool_calls"):
        error = error_text(message["error"])
        raise MalformedReply(f"it has an error in place of a reply, {error}")
    choice = {"message": {**message, "role": "assistant"}, "finish_reason": "stop"}
    completion = read_reply(orjson.dumps({"choices": [choice]}))
    assert isinstance(completion, Completion)  # the body holds no error
    text, calls, reply = completion.text, completion.tool_calls, raw_reply(completion)
    return parse_output(text, calls, protocol="tool-calling", tools=schemas, reply=reply)


def _observations(
    calls: Sequence[ToolCall], messages: Sequence[Fields], at: int
) -> Iterator[Observation]:
    """Yield the result of each call of the message ``at``: by its id, else in order.

    Results of calls that were written as text may be in the messages of the user.
    """
    later = (messages[place] for place in range(at + 1, len(messages)))
    block = [*takewhile(lambda message: message.get("role") != "assistant", later)]
    told = [
        (each.get("tool_call_id"), each.get("content"))
        for each in block
        if each.get("role") == "tool"
    ]
    if not told:
        texts = [content_text(each.get("content")) for each in block]
        told = [(None, each) for each in _OBSERVATION.findall("\n".join(texts)) or texts]
    known = {call.id for call in calls if call.id}
    by_id = {identifier: content for identifier, content in told if identifier in known}
    in_order = (content for identifier, content in told if identifier not in known)
    for call in calls:
        yield _observation(by_id[call.id] if call.id in by_id else next(in_order, None))


def _observation(content: Any) -> Observation:
    """Return the result of a call: an object, or a text; None: there is none."""
    if content is None:
        return Observation(
            error=ErrorInfo(kind="tool_failed", message="the transcript has no result of this call")
        )
    value: Any = content
    if not is_object(value):
        text = content_text(content)
        inner = _OBSERVATION.search(text)
        with suppress(NotJson):
            value = loads(inner[1] if inner else text)
        value = value if is_object(value) else {"text": text}
    error: Any = value.get("error")
    if error and (is_text(error) or is_object(error)):
        try:
            return Observation(error=ErrorInfo.model_validate(error))
        except ValidationError:
            return Observation(error=ErrorInfo(kind="tool_failed", message=str(error)[:2000]))
    result = value.get("result")
    return Observation(result=result if is_object(result) and value.keys() <= _OURS else value)
