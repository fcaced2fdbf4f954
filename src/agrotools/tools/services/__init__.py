"""Requests of a tool in a worker to the process that started it: to a vision model, a network service, the sandbox.

Workers have no keys and start no processes. A tool whose back-end is outside of it states a :class:`Question` or a
:class:`ServiceRequest`; the parent process, which alone has keys, answers it and runs the call again with the reply,
from which the tool makes its result.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from agrotools.core import InfrastructureError, ToolError, UsageError
from agrotools.tools.workspace import outside_in_use

VLM = "vlm"
"""A vision model behind any OpenAI-compatible endpoint answers in place of a tool's own method."""
LEARNED = "learned:"
"""With the model's name behind it; what it does is in :mod:`agrotools.tools.learned`."""
NAME_A_MODEL = "name one with --vlm-model NAME and --vlm-base-url URL (vlm_model and vlm_base_url in a file)"
SERPER = "serper"
SEARXNG = "searxng"
IMAGES = "openai-images:"
"""With the name of the image model behind it."""
SANDBOX = "sandbox"
"""Not on the network, but requested in the same way, so that a worker leaves no processes behind."""
MOST_QUESTIONS = 2
"""The question, and one that tells what was wrong with the reply."""


@dataclass(frozen=True)
class Question:
    """A picture and what is to be said of it.

    ``jpeg``: the picture, as it is to be shown. ``schema``: JSON Schema of the reply. ``earlier``: a reply to the same
    question, and what was wrong with it. ``more``: further pictures, shown after the first.
    """

    text: str
    jpeg: bytes
    schema: dict[str, Any]
    max_output_tokens: int = 1024
    earlier: tuple[str, str] | None = None
    more: tuple[bytes, ...] = ()

    @property
    def pictures(self) -> tuple[bytes, ...]:
        """All pictures, in the order in which they are shown."""
        return (self.jpeg, *self.more)

    def message(self) -> dict[str, Any]:
        """All but the pictures, as JSON."""
        return {
            "text": self.text,
            "schema": self.schema,
            "max_output_tokens": self.max_output_tokens,
            "earlier": self.earlier,
        }

    @classmethod
    def of(cls, message: dict[str, Any], pictures: Sequence[bytes]) -> "Question":
        """The question that :meth:`message` made the message of."""
        earlier = message["earlier"]
        return cls(
            message["text"],
            pictures[0],
            message["schema"],
            message["max_output_tokens"],
            (earlier[0], earlier[1]) if earlier else None,
            tuple(pictures[1:]),
        )


class VisionModel(Protocol):
    """Vision model as a running tool sees it."""

    @property
    def name(self) -> str:
        """The model's name, as notes say it."""
        ...

    def ask(self, question: Question) -> str:
        """The model's reply, as it stands."""
        ...


class ParentRequest(Protocol):
    """Request of a worker to its parent: a question to a vision model, or a request to a network service."""

    @property
    def pictures(self) -> tuple[bytes, ...]:
        """Pictures that go with it."""
        ...

    def message(self) -> dict[str, Any]:
        """All but the pictures, as JSON."""
        ...


class AnswerNeeded(BaseException):
    """The tool cannot go on without the answer. Not an error: no tool may catch it."""

    def __init__(self, question: ParentRequest) -> None:
        super().__init__("an answer is needed")
        self.question = question


@dataclass
class ModelReplies:
    """The vision model of a worker: it knows the replies that came so far, and stops the call for the next one."""

    name: str
    replies: list[str]

    def ask(self, question: Question) -> str:
        """The next reply.

        Raises:
            AnswerNeeded: it is not there yet.
        """
        if self.replies:
            return self.replies.pop(0)
        raise AnswerNeeded(question)


@dataclass(frozen=True)
class ServiceRequest:
    """Request to a service. ``pictures``: PNG or JPEG, where it works on pictures."""

    service: str
    """the back-end as it was chosen, with its value: ``serper``, ``openai-images:NAME``"""
    body: dict[str, Any]
    pictures: tuple[bytes, ...] = ()

    def message(self) -> dict[str, Any]:
        """All but the pictures, as JSON."""
        return {"service": self.service, "body": self.body}

    @classmethod
    def of(cls, message: dict[str, Any], pictures: list[bytes]) -> "ServiceRequest":
        """The request that :meth:`message` made the message of."""
        return cls(message["service"], message["body"], tuple(pictures))


@dataclass
class ServiceReplies:
    """Replies to a worker's requests so far; the call stops for the next one."""

    replies: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, request: ServiceRequest) -> dict[str, Any]:
        """The next reply.

        Raises:
            AnswerNeeded: it is not there yet.
        """
        if self.replies:
            return self.replies.pop(0)
        raise AnswerNeeded(request)


def request_service(request: ServiceRequest) -> dict[str, Any]:
    """The reply of a service: from the process that started this worker, or asked for here where this is no worker.

    Raises:
        ToolError: ``backend_unavailable``, ``timeout``, ``limit`` or ``invalid_argument``, as the service's failure is.
    """
    injected = outside_in_use()
    if injected is not None:
        return injected.ask(request)

    try:
        return _run(answer(request))
    except (UsageError, InfrastructureError) as error:
        raise ToolError("backend_unavailable", error.message, hint=error.hint) from None


def _run(reply: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(reply)
    with ThreadPoolExecutor(1) as thread:  # in a notebook, whose loop is running
        return thread.submit(asyncio.run, reply).result()


def check_service(backend: str) -> None:
    """See that what a service needs is there before anything is asked.

    Raises:
        UsageError: no key or address, or one that cannot be.
    """
    from agrotools.tools.services.images import images_settings
    from agrotools.tools.services.search import search_settings

    if backend in (SERPER, SEARXNG):
        search_settings(backend)
    elif backend.startswith(IMAGES):
        images_settings()
    elif backend == SANDBOX:
        return  # whether there is one is said by the first call that needs it
    else:
        raise UsageError(f"{backend!r} is no service on the network")


async def answer(request: ServiceRequest) -> dict[str, Any]:
    """The reply of the service that a request is for, as JSON (pictures in base64).

    Raises:
        ToolError: what the request or the service's state is to blame for.
        InfrastructureError: no reply can be had.
        UsageError: no key or address, or one that the service refuses.
    """
    if request.service in (SERPER, SEARXNG):
        from agrotools.tools.services.search import search

        return await search(request.service, request.body["query"], request.body["k"])
    if request.service == SANDBOX:
        from agrotools.tools.general.code import answer_sandbox

        return await answer_sandbox(request.body)
    if request.service.startswith(IMAGES):
        from agrotools.tools.services.images import draw

        return await draw(request.service.removeprefix(IMAGES), request.body["prompt"], request.pictures)
    raise UsageError(f"{request.service!r} is no service on the network")
