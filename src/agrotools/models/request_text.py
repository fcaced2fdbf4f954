"""A request as the text that stands for it: what keys and bounds are made from."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from agrotools.core import ToolSpec
from agrotools.models.base import ImagePart, Message, ModelSettings
from agrotools.models.encoding import RequestEncoder


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
