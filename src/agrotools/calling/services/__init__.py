"""Requests from a tool in a worker to its parent process, for a vision model, a network service or the sandbox.

Workers have no keys and start no processes. A tool with an external back-end issues a :class:`Question` or a
:class:`ServiceRequest`. The parent process, which alone has keys, answers it and runs the call again with the reply,
from which the tool builds its result.
"""

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from agrotools.calling.workspace import replies_in_use
from agrotools.core import InfrastructureError, ToolError, UsageError

T = TypeVar("T")

VLM = "vlm"
"""Back-end that uses a vision model behind an OpenAI-compatible endpoint instead of the tool's own method."""
NAME_A_MODEL = (
    "name one: vlm_model and vlm_base_url in the configuration file of eval, or --vlm-model NAME and "
    "--vlm-base-url URL of tools run"
)
SERPER = "serper"
IMAGES = "openai-images:"
"""Back-end prefix, followed by the name of the image model."""
SANDBOX = "sandbox"
"""Back-end that is not on the network but requested in the same way, so that workers leave no processes behind."""
MOST_QUESTIONS = 2
"""Maximum number of questions per call: the question, and one that explains what was wrong with the reply."""


@dataclass(frozen=True)
class ServiceRequest:
    """Request to a service. ``pictures``: PNG or JPEG, for services that work on pictures."""

    service: str
    """selected back-end, including its value: ``serper``, ``openai-images:NAME``, ``vlm``"""
    body: dict[str, Any]
    pictures: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Question:
    """Question about pictures for a vision model.

    ``pictures``: JPEG, in the order in which they are shown. ``schema``: JSON Schema of the reply. ``earlier``: the
    previous reply to the same question and the fault in it.
    """

    text: str
    pictures: tuple[bytes, ...]
    schema: dict[str, Any]
    max_output_tokens: int = 1024
    earlier: Sequence[str] | None = None

    def request(self) -> ServiceRequest:
        """Return the question as a request, from which ``Question(**body, pictures=pictures)`` restores it."""
        body = {name: value for name, value in vars(self).items() if name != "pictures"}
        return ServiceRequest(VLM, body, self.pictures)


class VisionModel(Protocol):
    """Vision model as seen by a running tool."""

    @property
    def name(self) -> str:
        """Name of the model as shown in notes."""
        ...

    def ask(self, question: Question) -> str:
        """Return the model's unparsed reply."""
        ...


class AnswerNeeded(BaseException):
    """Signal that the tool cannot continue without an answer. It is not an error, and no tool may catch it."""

    def __init__(self, request: ServiceRequest) -> None:
        super().__init__("an answer is needed")
        self.request = request


@dataclass
class Replies:
    """Replies to a worker's requests so far, and the name of the vision model, empty for other services."""

    replies: list[Any] = field(default_factory=list)
    name: str = ""

    def send(self, request: ServiceRequest) -> Any:
        """Return the next reply; AnswerNeeded if there is no reply to this request yet."""
        if self.replies:
            return self.replies.pop(0)
        raise AnswerNeeded(request)

    def ask(self, question: Question) -> str:
        """Return the next reply of the vision model; see :meth:`send`."""
        return self.send(question.request())


def request_service(request: ServiceRequest) -> dict[str, Any]:
    """Return the reply of a service, requested by the parent process or, outside of workers, by this process;
    ToolError of the kind of the failure."""
    replies = replies_in_use()
    if replies is not None:
        return replies.send(request)
    try:
        return run_now(answer(request))
    except (UsageError, InfrastructureError) as error:
        raise ToolError("backend_unavailable", error.message, setup=error.hint) from None


def run_now(reply: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also in a notebook, whose event loop is running."""
    import asyncio  # not at the top: workers, which never come here, start sooner
    from concurrent.futures import ThreadPoolExecutor

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(reply)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, reply).result()


def check_service(backend: str) -> None:
    """Check the key and address of a service before it is used; UsageError if one is missing or malformed."""
    from agrotools.calling.services.web import images_endpoint, search_endpoint

    if backend == SERPER:
        search_endpoint()
    elif backend.startswith(IMAGES):
        images_endpoint()
    elif backend != SANDBOX:  # the first call that needs the sandbox reports if it is missing
        raise UsageError(f"{backend!r} is not a network service")


async def answer(request: ServiceRequest) -> dict[str, Any]:
    """Send a request to its service and return the reply as JSON (pictures in base64). ToolError: the service
    refuses the request, or its reply is too long; InfrastructureError: no reply; UsageError: key or address."""
    if request.service == SERPER:
        from agrotools.calling.services.web import search

        return await search(request.body["query"], request.body["k"])
    if request.service == SANDBOX:
        return await answer_sandbox(request.body)
    if request.service.startswith(IMAGES):
        from agrotools.calling.services.web import draw

        return await draw(
            request.service.removeprefix(IMAGES), request.body["prompt"], request.pictures
        )
    raise UsageError(f"{request.service!r} is not a network service")


async def answer_sandbox(body: dict[str, Any]) -> dict[str, Any]:
    """Answer a request to run code, in a process that may start sandboxes; ToolError ``backend_unavailable``."""
    import asyncio
    import base64

    from agrotools.sandbox.result import SandboxUnavailable
    from agrotools.sandbox.running import run_code

    try:
        result = await asyncio.to_thread(run_code, body["code"], call="solution")
    except SandboxUnavailable as error:
        raise ToolError(
            "backend_unavailable",
            f"code cannot be run here: {error.message}",
            setup="agrotools doctor says what the sandbox needs",
        ) from None
    return {
        "value": result.value,
        "pictures": [base64.b64encode(artifact.content).decode() for artifact in result.artifacts],
        "termination": result.termination,
        "message": result.message,
    }
