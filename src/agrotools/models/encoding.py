"""Requests as bytes. What is sent again and again, images and tools, is serialised once."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence

import orjson

from agrotools.core import ToolSpec
from agrotools.models.base import Message, ModelSettings
from agrotools.models.chat_format import function_list, request_body, without_surrogates

KEPT_IMAGE_BYTES = 32 * 2**20
_KEPT_TOOLSETS = 64


class RequestEncoder:
    """Writes the requests of one model.

    Args:
        model: its name as the endpoint knows it.
        spelling: settings that the endpoint knows under another name, or (None) not at all.
    """

    def __init__(self, model: str, spelling: Mapping[str, str | None]) -> None:
        self._model = model
        self.spelling = dict(spelling)
        self._images: OrderedDict[str, orjson.Fragment] = OrderedDict()
        self._image_bytes = 0
        self._toolsets: OrderedDict[tuple[int, ...], tuple[tuple[ToolSpec, ...], orjson.Fragment]] = OrderedDict()

    def encode(self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings) -> bytes:
        """The body of a request, as JSON."""
        request = (self._model, messages, tools, settings, self.spelling)
        try:
            return orjson.dumps(request_body(*request, image_url=self._image_url, functions=self._functions))
        except orjson.JSONEncodeError:
            # Text that is no Unicode (half a surrogate pair, out of a file or a model) cannot be sent as it is.
            return orjson.dumps(without_surrogates(request_body(*request)))

    def _image_url(self, url: str) -> orjson.Fragment:
        # A string keeps its hash and is compared with itself by identity: the same object is found again at no cost.
        known = self._images.get(url)
        if known is not None:
            self._images.move_to_end(url)
            return known
        fragment = orjson.Fragment(orjson.dumps(url))
        self._images[url] = fragment
        self._image_bytes += len(url)
        while self._image_bytes > KEPT_IMAGE_BYTES:
            oldest, _ = self._images.popitem(last=False)
            self._image_bytes -= len(oldest)
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
