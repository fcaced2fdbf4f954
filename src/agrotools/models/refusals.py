"""Interpretation of an endpoint's errors (results of the model, our limits, retryable faults, configuration errors),
and adaptations to an endpoint that refuses a part of a request, which from then on is left out or takes another form.

A wording counts only if it is the server's own: errors quote requests, and a question may mention context windows.
``tests/engine/models/vendor_replies`` holds replies of servers with their expected interpretation.
"""

import hashlib
import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import orjson

from agrotools.core import InfrastructureError
from agrotools.models.base import Completion, Message, ModelSettings, RequestEncoder

Verdict = Literal[
    "context",
    "token_limit",
    "length",
    "filtered",
    "retry",
    "unfit",
    "proxy",
    "credentials",
    "credit",
    "images",
    "tools",
    "not_found",
    "rejected",
]
"""``context``: prompt and reply together do not fit; ``token_limit``: the requested reply length exceeds the endpoint's
limit; ``unfit``: only this request is at fault, on any endpoint; ``proxy``: a proxy answers instead of the endpoint."""


@dataclass(frozen=True)
class Rejection:
    """An error reply: its interpretation and the server's message."""

    verdict: Verdict
    message: str
    status: int
    """HTTP status, or the status in the body of a success (sent by some gateways); 200 if the body has none."""
    room: int | None = None
    """Tokens available for the reply: for ``context`` next to this prompt, for ``token_limit`` in general."""
    context: int | None = None
    """Tokens available for prompt and reply together, if stated."""
    certain: bool = False
    """True if for ``context`` the prompt alone is too long, so no shorter reply would fit either."""


@dataclass(frozen=True)
class RequestParts:
    """Parts of a request that are needed to interpret its refusal."""

    messages: Sequence[Message] = ()
    tools: bool = False
    output_limit: int | None = None

    @property
    def images(self) -> bool:
        return any(message.has_images for message in self.messages)

    @cached_property
    def _text(self) -> str:
        return _plain(" ".join(message.text for message in self.messages))

    def contains(self, wording: str) -> bool:
        """True if the request itself contains the wording."""
        return _plain(wording) in self._text


NO_REQUEST = RequestParts()


class _Rule(NamedTuple):
    verdict: Verdict
    statuses: Collection[int]
    wording: re.Pattern[str]


class _Wordings(NamedTuple):
    before: tuple[_Rule, ...]
    after: tuple[_Rule, ...]
    most_output: tuple[re.Pattern[str], ...]
    room: tuple[re.Pattern[str], ...]
    prompt: re.Pattern[str]
    together: re.Pattern[str]
    client: re.Pattern[str]


@cache
def _wordings() -> _Wordings:
    data = tomllib.loads(
        files(__package__ or "").joinpath("refusals.toml").read_text(encoding="utf-8")
    )

    def any_of(wordings: Sequence[str]) -> re.Pattern[str]:
        return re.compile("|".join(wordings), re.IGNORECASE)

    def rule(entry: Mapping[str, Any]) -> _Rule:
        statuses = [*entry["statuses"], *(range(500, 600) if "5xx" in entry["statuses"] else ())]
        return _Rule(entry["verdict"], statuses, any_of(entry["wordings"]))

    too_long = data["too_long"]
    most, room = (
        tuple(any_of([each]) for each in too_long[name]) for name in ("most_output", "room")
    )
    return _Wordings(
        before=tuple(map(rule, data["before"])),
        after=tuple(map(rule, data["after"])),
        most_output=most,
        room=room,
        prompt=any_of(too_long["prompt"]),
        together=any_of(too_long["together"]),
        client=re.compile(
            data["client"]["before"] + f"(?i:{'|'.join(data['client']['wordings'])})"
        ),
    )


def failed_request(text: str) -> str:
    """Return the beginning of a text that is the error of a request, not a reply (``Error code: 429``); else empty."""
    found = _wordings().client.match(text[:2000])
    return " ".join(found[0].split()).strip("\"'([{<: ") if found else ""


_TOO_LONG_STATUSES = frozenset({200, 400, 413, 416, 422, *range(500, 600)})
_PAGE = re.compile(r"\s*(?:<!doctype|<html|<\?xml|<head|<h1|<body|<center)", re.IGNORECASE)


def read_error(status: int, body: bytes, request: RequestParts = NO_REQUEST) -> Rejection:
    """Interpret an error response.

    Args:
        status: HTTP status; 200 for an error in the body of a success that states no status.
        body: body of the response.
        request: the request, which a server may quote.
    """
    raw = body[:20_000].decode(errors="replace")
    message = error_message(raw).strip() or f"HTTP status {status}"
    # A web page does not come from a model server, whatever its text says.
    page = bool(_PAGE.match(raw))
    text = "" if page else re.sub(r"(?<=\d),(?=\d{3}\b)", "", raw)
    rejection = _by_wording(status, text, message, request)
    if rejection:
        return rejection
    if status in (408, 409, 424, 425, 429) or status >= 500:
        return Rejection("retry", f"HTTP status {status}: {message}", status)
    verdict = (
        "proxy" if page and status in _STATUSES_OF_PROXIES else _BY_STATUS.get(status, "rejected")
    )
    return Rejection(verdict, message, status)


_BY_STATUS: Mapping[int, Verdict] = {
    200: "retry",
    **dict.fromkeys((404, 405, 410, *range(300, 400)), "not_found"),
    **dict.fromkeys((401, 403), "credentials"),
    402: "credit",
    **dict.fromkeys((407, 511), "proxy"),
    **dict.fromkeys((413, 414), "unfit"),
    451: "filtered",
}
_STATUSES_OF_PROXIES = (400, 403, 451)
"""Statuses that, with a web page, come from a proxy."""


def _by_wording(status: int, text: str, message: str, request: RequestParts) -> Rejection | None:
    for rule in _wordings().before:
        if (rule.verdict == "images" and not request.images) or (
            rule.verdict == "tools" and not request.tools
        ):
            continue
        if status in rule.statuses and _first_unquoted(rule.wording, text, request):
            detail = f"HTTP status {status}: {message}" if rule.verdict == "retry" else message
            return Rejection(rule.verdict, detail, status)
    if status in _TOO_LONG_STATUSES and (too_long := _too_long(status, text, message, request)):
        return too_long
    for rule in _wordings().after:
        if status in rule.statuses and _first_unquoted(rule.wording, text, request):
            return Rejection(rule.verdict, message, status)
    return None


def _too_long(status: int, text: str, message: str, request: RequestParts) -> Rejection | None:
    for wording in _wordings().most_output:
        if match := _first_unquoted(wording, text, request):
            most = int(match[1]) - ("exclusive" in match[0]) if match[1].isdigit() else None
            return Rejection("token_limit", message, status, room=most)
    for wording in _wordings().room:
        if match := _first_unquoted(wording, text, request):
            room = _room(match.groupdict(), request.output_limit)
            certain = room is not None and room < 1
            return Rejection(
                "context",
                message,
                status,
                room=room,
                context=int(match["context"]),
                certain=certain,
            )
    certain = bool(_first_unquoted(_wordings().prompt, text, request))
    if certain or _first_unquoted(_wordings().together, text, request):
        return Rejection("context", message, status, certain=certain)
    return None


def _room(groups: dict[str, str | None], asked_for: int | None) -> int | None:
    """Return the tokens that the prompt leaves of the context, or None if the numbers do not determine it."""
    numbers = {name: int(text) for name, text in groups.items() if text}
    if "prompt" in numbers:
        return numbers["context"] - numbers["prompt"]
    output = numbers.get("output", asked_for)
    if output is None:
        return None
    room = numbers["context"] - numbers["total"] + output
    # Without its parts, a total does not necessarily include the reply.
    return room if room >= 1 or "output" in numbers else None


def _first_unquoted(
    wording: re.Pattern[str], text: str, request: RequestParts
) -> re.Match[str] | None:
    """Return the first match of the wording in ``text`` that is not a quotation of the request."""
    return next((match for match in wording.finditer(text) if not request.contains(match[0])), None)


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("\\", "").split())


def error_message(raw: str) -> str:
    """Return the human-readable part of an error body, in any of the formats that servers use."""
    try:
        data: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return re.sub(r"<[^>]{0,500}>", " ", raw)
    if isinstance(data, list) and data:
        data = data[0]
    if isinstance(data, dict) and isinstance(error := data.get("error"), dict):
        behind = error.get("metadata")
        if isinstance(behind, dict) and isinstance(behind.get("raw"), str):
            return f"{error.get('message')}: {behind['raw']}"
    for key in ("error", "base_resp", "message", "status_msg", "error_msg", "detail"):
        if isinstance(data, dict) and data.get(key):
            data = data[key]
    return data if isinstance(data, str) else raw


_LONGEST = 300


def one_line(text: str, secret: str = "") -> str:
    """Return ``text`` as one printable line of at most 300 characters, without the secret: some servers echo keys."""
    if secret:
        text = text.replace(secret, "***")
    line = " ".join(text[: 20 * _LONGEST].split())
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds from ``retry-after-ms`` or ``Retry-After`` (seconds or a date); None if absent."""
    for name, scale in (("Retry-After-Ms", 0.001), ("Retry-After", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            seconds = float(text) * scale
        except ValueError:
            try:
                date = parsedate_to_datetime(text)
                seconds = (date - datetime.now(UTC if date.tzinfo else None)).total_seconds()
            except (ValueError, OverflowError):
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


HINT = (
    "set --max-output-tokens to what the endpoint allows, or serve the model with a longer context"
)
_TRIES = 2
_ENOUGH = 512
"""Tokens that suffice for an answer: a reply that an endpoint cuts off later counts as the model's result."""
_MOST_OF_IT = 0.9
_PROBE = 1
"""Reply tokens of a request that only tests whether the prompt fits."""


def _limited(settings: ModelSettings, tokens: int) -> ModelSettings:
    return settings.model_copy(update={"max_output_tokens": tokens})


class ReplyRoom:
    """Settings of one request, whose reply limit (``most``: that of the endpoint) shrinks after refusals."""

    def __init__(self, settings: ModelSettings, most: int | None = None) -> None:
        limit = settings.max_output_tokens
        self.settings = _limited(settings, most) if most and limit and limit > most else settings
        self._requested = settings
        self._tries = 0
        self._probes = False

    def narrows(self, refusal: Rejection) -> bool:
        """Shrink the reply limit and return True; return False if the prompt itself is too long.

        The numbers in a refusal are used at most twice. After that, or without numbers, a reply of one token tests
        whether the prompt fits at all.
        """
        if refusal.certain or self._probes:
            return False
        limit = self.settings.max_output_tokens
        room = refusal.room
        if (
            room is not None
            and room >= 1
            and (limit is None or room < limit)
            and self._tries < _TRIES
        ):
            self._tries += 1
        elif refusal.verdict == "context" and limit is not None and limit > _PROBE:
            room = _PROBE
            self._probes = True
        else:
            return False
        self.settings = _limited(self._requested, room)
        return True

    def checked(self, completion: Completion, base_url: str) -> Completion:
        """Return the reply, with a note if its token limit is not the requested one.

        Raises:
            InfrastructureError: the endpoint cut the reply off far below the requested limit; or the reply only tested
                whether the prompt fits, and it does.
        """
        if completion.finish_reason != "length" and not self._probes:
            return completion
        requested, limit = self._requested.max_output_tokens, self.settings.max_output_tokens
        if self._probes:
            raise InfrastructureError(
                f"{base_url} takes the prompt, but not with a reply of {requested} tokens, "
                "and does not say how many fit",
                hint=HINT,
                problem="token_limit",
            )
        received = completion.usage.output_tokens
        if 0 < received < _ENOUGH and (requested is None or received < _MOST_OF_IT * requested):
            raise InfrastructureError(
                f"{base_url} stopped the reply at {received} tokens of {requested or 'as many as it likes'}",
                hint="the endpoint has a limit of its own, or its context is full: serve the model with a longer one",
                problem="token_limit",
            )
        if limit == requested:
            return completion
        detail = f"the reply reached its token limit, {limit}: the endpoint allows no more"
        return completion.model_copy(update={"detail": detail})


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
        self,
        refusal: Rejection,
        request: RequestParts,
        settings: ModelSettings,
        before: frozenset[str],
    ) -> str | None:
        """Return the name of the adaptation with which the request can be sent again; None if there is none.

        ``before``: adaptations that the refused request was sent with.
        """
        if refusal.verdict != "rejected" and not (
            refusal.verdict == "retry" and refusal.status >= 500
        ):
            return None
        possible = self._possible(request, settings) - before
        named = [
            (place, name)
            for name in possible
            if (place := _place(refusal, name, request)) is not None
        ]
        if not named:
            return None
        _, name = min(
            named
        )  # an error may list the fields that it knows after the one that it refuses
        if name not in self.active:
            self.active[name] = _NOTES.get(
                name, f"{name} is left out of the messages, because the endpoint refuses it"
            )
            if name in ("max_tokens", "temperature"):
                self._encoder.spell(name, "max_completion_tokens" if name == "max_tokens" else None)
            else:
                self._encoder.adapt = self.adapt
        return name

    def _possible(self, request: RequestParts, settings: ModelSettings) -> set[str]:
        names: list[str] = []
        if settings.temperature is not None:
            names.append("temperature")
        if "max_tokens" in (self._encoder.spelled("max_tokens"), *self.active):
            names.append("max_tokens")
        for message in request.messages:
            names += {"system": ("system",), "tool": ("ids", "name")}.get(message.role, ())
            if message.received:
                parts = (message.received, *_calls(message.received))
                names += [name for part in parts for name in part if name not in _FORMAT]
                if not isinstance(message.received.get("content", ""), str):
                    names.append("content")
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
                kept = [
                    {key: value for key, value in entry.items() if key not in self.active}
                    for entry in listed
                ]
                received["tool_calls"] = [
                    {**entry, "id": call.id} for entry, call in zip(kept, calls, strict=True)
                ]
        return replace(
            message, name=name, tool_call_id=call_id, tool_calls=calls, received=received
        )


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
