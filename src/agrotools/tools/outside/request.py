"""One request of a tool to a service on the network, and the way to its reply."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from agrotools.core import InfrastructureError, ToolError, UsageError
from agrotools.tools.vlm.question import AnswerNeeded
from agrotools.tools.workspace import outside_in_use


@dataclass(frozen=True)
class Request:
    """What a service is asked. ``pictures``: PNG or JPEG, where it works on pictures."""

    service: str
    """the back-end as it was chosen, with its value: ``serper``, ``openai-images:NAME``"""
    body: dict[str, Any]
    pictures: tuple[bytes, ...] = ()

    def message(self) -> dict[str, Any]:
        """All but the pictures, as JSON."""
        return {"service": self.service, "body": self.body}

    @classmethod
    def of(cls, message: dict[str, Any], pictures: list[bytes]) -> "Request":
        """The request that :meth:`message` made the message of."""
        return cls(message["service"], message["body"], tuple(pictures))


@dataclass
class OutsideReplies:
    """What answers a worker's requests: the replies that came so far; it stops the call for the next one."""

    replies: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, request: Request) -> dict[str, Any]:
        """The next reply.

        Raises:
            AnswerNeeded: it is not there yet.
        """
        if self.replies:
            return self.replies.pop(0)
        raise AnswerNeeded(request)


def asked_outside(request: Request) -> dict[str, Any]:
    """The reply of a service: from the process that started this worker, or asked for here where this is no worker.

    Raises:
        ToolError: ``backend_unavailable``, ``timeout``, ``limit`` or ``invalid_argument``, as the service's failure is.
    """
    given = outside_in_use()
    if given is not None:
        return given.ask(request)
    from agrotools.tools.outside.services import answer

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
