"""Requests as bytes. What is sent again and again, messages and tools, is serialised once."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from agrotools.core import ToolSpec
from agrotools.models.base import Message, ModelSettings
from agrotools.models.chat_format import function_list, message_on_wire, request_body, without_surrogates

KEPT_BYTES = 32 * 2**20
_KEPT_TOOLSETS = 64
_SHORT = 500
"""Characters."""


class _Written(NamedTuple):
    """A message and its JSON. It is held beside it, so that no other can take over its identity."""

    message: Message
    fragment: orjson.Fragment
    length: int


class RequestEncoder:
    """Writes the requests of one model.

    Args:
        model: its name as the endpoint knows it.
        spelling: settings that the endpoint knows under another name, or (None) not at all.
    """

    def __init__(self, model: str, spelling: Mapping[str, str | None]) -> None:
        self._model = model
        self.spelling = dict(spelling)
        self._messages: OrderedDict[int, _Written] = OrderedDict()
        self._kept_bytes = 0
        self._toolsets: OrderedDict[tuple[int, ...], tuple[tuple[ToolSpec, ...], orjson.Fragment]] = OrderedDict()

    def encode(self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings) -> bytes:
        """The body of a request, as JSON."""
        request = (self._model, messages, tools, settings, self.spelling)
        try:
            return orjson.dumps(request_body(*request, message=self._message, functions=self._functions))
        except orjson.JSONEncodeError:
            # Text that is no Unicode (half a surrogate pair, out of a file or a model) cannot be sent as it is.
            return orjson.dumps(without_surrogates(request_body(*request)))

    def _message(self, message: Message) -> orjson.Fragment | dict[str, Any]:
        """A message as JSON: agents send the same objects, pictures in them, again with every turn."""
        known = self._messages.get(id(message))
        if known is not None:
            self._messages.move_to_end(id(message))
            return known.fragment
        wire = message_on_wire(message)
        if len(wire["content"]) < _SHORT and isinstance(wire["content"], str):
            return wire  # sooner written than found again
        text = orjson.dumps(wire)
        self._messages[id(message)] = _Written(message, fragment := orjson.Fragment(text), len(text))
        self._kept_bytes += len(text)
        while self._kept_bytes > KEPT_BYTES:
            _, oldest = self._messages.popitem(last=False)
            self._kept_bytes -= oldest.length
        return fragment

    def _functions(self, tools: Sequence[ToolSpec]) -> orjson.Fragment:
        key = tuple(map(id, tools))
        known = self._toolsets.get(key)
        if known is None:
            # The specifications are kept beside their bytes, so that no other can take over their identity.
            known = tuple(tools), orjson.Fragment(orjson.dumps(function_list(tools)))
            self._toolsets[key] = known
            if len(self._toolsets) > _KEPT_TOOLSETS:
                self._toolsets.popitem(last=False)
        return known[1]
