"""Adaptations to an endpoint that refuses a part of a request, which from then on is left out or takes another form."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agrotools.models.base import Message, ModelSettings, RequestEncoder
from agrotools.models.refusals import Rejection, RequestParts

_NO = r"(?:unsupported|not (?:support|allowed|permitted)|deprecated|only|must be|invalid|unknown|cannot)"
_WORDINGS = {
    "max_tokens": r"max_completion_tokens",
    "temperature": rf"{_NO}[^\n]{{0,40}}\btemperature\b|\btemperature\b[^\n]{{0,60}}{_NO}",
    "system": r"system (?:role|message|prompt|instruction)s?\b[^\n]{0,20}not (?:supported|enabled)"
    r"|not support (?:the )?(?:system|developer) (?:role|message|prompt|instruction)|conversation roles must alternate"
    r"|developer instruction is not enabled|only user and assistant roles are supported",
    "ids": r"tool[ _]call[ _]ids?\b[^\n]{0,80}(?:must be|should be|alphanumeric|length)",
}
_NOTES = {
    "max_tokens": "the token limit is sent as max_completion_tokens, because max_tokens is refused",
    "temperature": "no temperature is sent, because the endpoint refuses it: the model samples at one of its own",
    "system": "the instructions are sent in the first message of the user, because no system message is taken",
    "ids": "calls are sent back with other ids, because the endpoint refuses those that it gave them",
}
_REFUSED = re.compile(
    r"unsupported|not (?:supported|permitted|allowed|recogni[sz]ed)|extra_forbidden|unknown|unrecogni[sz]ed|unexpected"
    r"|additional propert|(?:valid|a) string|invalid (?:field|key|propert|parameter|argument|input)",
    re.IGNORECASE,
)
_DEMANDED = re.compile(r"passed back|\bmissing\b|\brequired\b", re.IGNORECASE)
"""Wording of an endpoint that names a field because it lacks it."""
_FORMAT = frozenset(("role", "content", "tool_calls", "id", "type", "function"))
"""Fields that a message or a call cannot do without."""


class Adaptations:
    """Adaptations to one endpoint. ``active``: what the user is told about each; that of a field has its name."""

    def __init__(self, encoder: RequestEncoder) -> None:
        self._encoder = encoder
        self.active: dict[str, str] = {}

    def adopt(
        self, refusal: Rejection, request: RequestParts, settings: ModelSettings, before: frozenset[str]
    ) -> str | None:
        """Return the name of the adaptation with which the request can be sent again; None if there is none.

        ``before``: adaptations that the refused request was sent with.
        """
        if refusal.verdict != "rejected" and not (refusal.verdict == "retry" and refusal.status >= 500):
            return None
        possible = self._possible(request, settings) - before
        named = [(place, name) for name in possible if (place := _place(refusal, name, request)) is not None]
        if not named:
            return None
        _, name = min(named)  # an error may list the fields that it knows after the one that it refuses
        if name not in self.active:
            self.active[name] = _NOTES.get(name, f"{name} is left out of the messages, because the endpoint refuses it")
            if name in ("max_tokens", "temperature"):
                self._encoder.spell(name, "max_completion_tokens" if name == "max_tokens" else None)
            else:
                self._encoder.adapt = self.adapt
        return name

    def _possible(self, request: RequestParts, settings: ModelSettings) -> set[str]:
        """Return the adaptations that would change the request."""
        names = ["temperature"] * (settings.temperature is not None)
        names += ["max_tokens"] * ("max_tokens" in (self._encoder.spelled("max_tokens"), *self.active))
        for message in request.messages:
            names += {"system": ("system",), "tool": ("ids", "name")}.get(message.role, ())
            if message.received:
                parts = (message.received, *_calls(message.received))
                names += [name for part in parts for name in part if name not in _FORMAT]
                names += ["content"] * (not isinstance(message.received.get("content", ""), str))
        return set(names)

    def adapt(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages as this endpoint takes them."""
        adapted: list[Message] = []
        for message in map(self._adapted, messages):
            if "system" in self.active and adapted and adapted[-1].role == message.role == "user":
                adapted[-1] = replace(adapted[-1], content=(*adapted[-1].content, *message.content))
            else:
                adapted.append(message)
        return adapted

    def _adapted(self, message: Message) -> Message:
        if message.role == "system" and "system" in self.active:
            return Message.of("user", f"{message.text}\n")
        name, call_id = None if "name" in self.active else message.name, message.tool_call_id
        calls, received = message.tool_calls, message.received
        if "ids" in self.active:
            call_id = call_id and _short(call_id)
            calls = tuple(call.model_copy(update={"id": _short(call.id)}) for call in calls)
        if received is not None:
            received = {key: value for key, value in received.items() if key not in self.active}
            if calls and (listed := _calls(received)):
                kept = [{key: value for key, value in entry.items() if key not in self.active} for entry in listed]
                received["tool_calls"] = [{**entry, "id": call.id} for entry, call in zip(kept, calls, strict=True)]
        return replace(message, name=name, tool_call_id=call_id, tool_calls=calls, received=received)


def _short(call_id: str) -> str:
    """Return an id of nine letters and digits, which the strictest templates demand."""
    return hashlib.sha256(call_id.encode()).hexdigest()[:9]


def _calls(fields: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    return fields.get("tool_calls") or ()


def _place(refusal: Rejection, name: str, request: RequestParts) -> int | None:
    """Return where the refusal is about the part of the request with that name; None if it is about another."""
    text = refusal.message
    if wording := _WORDINGS.get(name):
        found = re.finditer(wording, text, re.IGNORECASE)
        return next((match.start() for match in found if not request.contains(match[0])), None)
    named = re.search(rf"""\W{re.escape(name)}['"`\]\\]""", text)
    return named.start() if named and _REFUSED.search(text) and not _DEMANDED.search(text) else None
