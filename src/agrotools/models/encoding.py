"""Requests in the OpenAI chat-completions format, as data and as bytes.

Repeated parts (messages, and the settings around them) are serialised once.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from agrotools.core import ToolSpec
from agrotools.models.base import ImagePart, Message, ModelSettings, TextPart

_KEPT_FRAMES = 64
_HERE = b"\0"
"""Stands for the messages while what surrounds them is written: in JSON it stands nowhere else."""


class _Frame(NamedTuple):
    """Bytes before and after the messages. Objects that they depend on are stored too, so that nothing else can take
    over its identity."""

    before: bytes
    behind: bytes
    tools: tuple[ToolSpec, ...]
    settings: ModelSettings


def function_list(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Tools as the format's functions."""
    return [
        {
            "type": "function",
            "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters},
        }
        for spec in tools
    ]


def request_body(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    settings: ModelSettings,
    spelling: Mapping[str, str | None] = MappingProxyType({}),
    *,
    more_messages: Sequence[Any] = (),
) -> dict[str, Any]:
    """The JSON body of a request.

    Args:
        spelling: settings that the endpoint knows under another name than the format's, or (None) not at all.
        more_messages: in the format's form already.
    """
    body: dict[str, Any] = {"model": model, "messages": [*map(message_on_wire, messages), *more_messages]}
    if tools:
        body["tools"] = function_list(tools)
    for key, value in (
        ("temperature", settings.temperature),
        ("max_tokens", settings.max_output_tokens),
        ("top_p", settings.top_p),
        ("seed", settings.seed),
        ("stop", list(settings.stop) or None),
    ):
        if value is not None and (spelled := spelling.get(key, key)) is not None:
            body[spelled] = value
    if settings.top_logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": settings.top_logprobs}
    return body | settings.extra if settings.extra else body


def message_on_wire(message: Message) -> dict[str, Any]:
    """A message in the format's form."""
    # Plain text as one string: several servers accept lists of parts only for vision models.
    content = _parts(message) if any(isinstance(part, ImagePart) for part in message.content) else message.text
    wire: dict[str, Any] = {"role": message.role, "content": content}
    if message.tool_calls:
        wire["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _parts(message: Message) -> list[dict[str, Any]]:
    return [
        {"type": "image_url", "image_url": {"url": part.url}}
        if isinstance(part, ImagePart)
        else {"type": "text", "text": part.text}
        for part in message.content
    ]


def without_surrogates(value: Any) -> Any:
    """JSON data with a replacement character for each lone surrogate."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value


class RequestEncoder:
    """Writes the requests of one model.

    Args:
        model: its name as the endpoint knows it.
        spelling: settings that the endpoint knows under another name, or (None) not at all.
    """

    def __init__(self, model: str, spelling: Mapping[str, str | None]) -> None:
        self._model = model
        self._spelling = dict(spelling)
        self._frames: OrderedDict[tuple[int, ...], _Frame] = OrderedDict()

    def spelled(self, setting: str) -> str | None:
        """Name of ``setting`` at the endpoint; None if it has no such setting."""
        return self._spelling.get(setting, setting)

    def respell(self, setting: str, name: str) -> None:
        """Set the endpoint's name of ``setting`` to ``name``."""
        self._spelling[setting] = name
        self._frames.clear()

    def encode(self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings) -> bytes:
        """The body of a request, as JSON."""
        frame = self._frame(tools, settings)
        if not frame.behind:
            return frame.before  # the messages, too, are among the settings' extra fields
        together = [frame.before]
        for message in messages:
            together += message_json(message), b","
        if messages:
            together.pop()
        together.append(frame.behind)
        return b"".join(together)

    def _frame(self, tools: Sequence[ToolSpec], settings: ModelSettings) -> _Frame:
        key = (id(settings), *map(id, tools))
        known = self._frames.get(key)
        if known is None:
            here = orjson.Fragment(_HERE)
            body = request_body(self._model, (), tools, settings, self._spelling, more_messages=[here])
            before, _, behind = json_bytes(body).partition(_HERE)
            known = self._frames[key] = _Frame(before, behind, tuple(tools), settings)
            if len(self._frames) > _KEPT_FRAMES:
                self._frames.popitem(last=False)
        return known


def message_json(message: Message) -> bytes:
    """JSON of ``message`` in a request, cached with the message."""
    if message.written is not None:
        return message.written
    text = json_bytes(message_on_wire(message))
    object.__setattr__(message, "written", text)
    return text


def json_bytes(value: Any) -> bytes:
    """``value`` as a request holds it."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        # Text that is no Unicode (half a surrogate pair, out of a file or a model) cannot be sent as it is.
        return orjson.dumps(without_surrogates(value))


def request_text(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    settings: ModelSettings,
    image: Callable[[str], str] = lambda _url: "",
) -> bytes:
    """The JSON body of a request, UTF-8, with ``image(url)`` in place of each picture."""
    return _encoder(model).encode([with_images(message, image) for message in messages], tools, settings)


@lru_cache(maxsize=8)
def _encoder(model: str) -> RequestEncoder:
    # Messages without pictures have the same JSON here as in what is sent, and keep it.
    return RequestEncoder(model, {})


def with_images(message: Message, image: Callable[[str], str]) -> Message:
    """``message`` with ``image(url)`` in place of each picture."""
    if not any(isinstance(part, ImagePart) for part in message.content):
        return message
    content = (ImagePart(url=image(part.url)) if isinstance(part, ImagePart) else part for part in message.content)
    return replace(message, content=tuple(content))


def image_urls(messages: Iterable[Message]) -> list[str]:
    """The ``data:`` URLs of all pictures, in order."""
    return [part.url for message in messages for part in message.content if isinstance(part, ImagePart)]


def prompt_length(messages: Sequence[Message]) -> tuple[int, int]:
    """Characters and images of a prompt."""
    parts = [part for message in messages for part in message.content]
    texts = [len(part.text) for part in parts if isinstance(part, TextPart)]
    return sum(texts), len(parts) - len(texts)
