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
from agrotools.tools.workspace import replies_in_use

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
class ServiceRequest:
    """Request to a service. ``pictures``: PNG or JPEG, where it works on pictures."""

    service: str
    """the back-end as it was chosen, with its value: ``serper``, ``openai-images:NAME``, ``vlm``"""
    body: dict[str, Any]
    pictures: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Question:
    """Pictures and what is to be said of them.

    ``pictures``: JPEG, in the order in which they are shown. ``schema``: JSON Schema of the reply. ``earlier``: a reply
    to the same question, and what was wrong with it.
    """

    text: str
    pictures: tuple[bytes, ...]
    schema: dict[str, Any]
    max_output_tokens: int = 1024
    earlier: Sequence[str] | None = None

    def request(self) -> ServiceRequest:
        """The question as a request; ``Question(**body, pictures=pictures)`` of it is equal to this one."""
        body = {name: value for name, value in vars(self).items() if name != "pictures"}
        return ServiceRequest(VLM, body, self.pictures)


class VisionModel(Protocol):
    """Vision model as a running tool sees it."""

    @property
    def name(self) -> str:
        """The model's name, as notes say it."""
        ...

    def ask(self, question: Question) -> str:
        """The model's reply, as it stands."""
        ...


class AnswerNeeded(BaseException):
    """The tool cannot go on without the answer. Not an error: no tool may catch it."""

    def __init__(self, request: ServiceRequest) -> None:
        super().__init__("an answer is needed")
        self.request = request


@dataclass
class Replies:
    """Replies to a worker's requests so far, and the name of the vision model if that is what answers them."""

    replies: list[Any] = field(default_factory=list)
    name: str = ""

    def send(self, request: ServiceRequest) -> Any:
        """The next reply.

        Raises:
            AnswerNeeded: it is not there yet.
        """
        if self.replies:
            return self.replies.pop(0)
        raise AnswerNeeded(request)

    def ask(self, question: Question) -> str:
        """The vision model's next reply; see :meth:`send`."""
        return self.send(question.request())


def request_service(request: ServiceRequest) -> dict[str, Any]:
    """The reply of a service: from the process that started this worker, or asked for here where this is no worker.

    Raises:
        ToolError: ``backend_unavailable``, ``timeout``, ``limit`` or ``invalid_argument``, as the service's failure is.
    """
    replies = replies_in_use()
    if replies is not None:
        return replies.send(request)
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
    """Check that what a service needs is there before anything is asked.

    Raises:
        UsageError: no key or address, or one that cannot be.
    """
    from agrotools.tools.services.web import images_endpoint, search_endpoint

    if backend in (SERPER, SEARXNG):
        search_endpoint(backend)
    elif backend.startswith(IMAGES):
        images_endpoint()
    elif backend != SANDBOX:  # whether there is a sandbox is said by the first call that needs it
        raise UsageError(f"{backend!r} is no service on the network")


async def answer(request: ServiceRequest) -> dict[str, Any]:
    """The reply of the service that a request is for, as JSON (pictures in base64).

    Raises:
        ToolError: what the request or the service's state is to blame for.
        InfrastructureError: no reply can be had.
        UsageError: no key or address, or one that the service refuses.
    """
    if request.service in (SERPER, SEARXNG):
        from agrotools.tools.services.web import search

        return await search(request.service, request.body["query"], request.body["k"])
    if request.service == SANDBOX:
        from agrotools.tools.general.code import answer_sandbox

        return await answer_sandbox(request.body)
    if request.service.startswith(IMAGES):
        from agrotools.tools.services.web import draw

        return await draw(request.service.removeprefix(IMAGES), request.body["prompt"], request.pictures)
    raise UsageError(f"{request.service!r} is no service on the network")
