"""Running model-written code for the tools that take some: in the sandbox, started where the worker was started."""

import base64
from dataclasses import dataclass
from typing import Any

from agrotools.core import ToolError
from agrotools.tools.outside import SANDBOX
from agrotools.tools.outside.request import Request, asked_outside

LONGEST_CODE = 20_000


@dataclass(frozen=True)
class Ran:
    """What code came to: the value that its function returned, as text, and the pictures that it drew."""

    value: str | None
    pictures: tuple[bytes, ...]
    fault: str
    """what the code itself did wrong, in a line; empty where it ran"""


def run_in_sandbox(code: str, *, argument: str) -> Ran:
    """Run code and call its ``solution()``.

    Raises:
        ToolError: ``backend_unavailable`` (no sandbox on this machine), ``timeout`` and ``limit`` (what it may use is
            used up), ``invalid_argument`` (what it tried is denied), ``tool_failed`` (the sandbox was lost).
    """
    reply = asked_outside(Request(SANDBOX, {"code": code}))
    said = str(reply["message"])
    match str(reply["termination"]):
        case "ok" | "error":
            pictures = tuple(base64.b64decode(picture) for picture in reply["pictures"])
            return Ran(reply["value"], pictures, said if reply["termination"] == "error" else "")
        case "wall_timeout" | "cpu_limit":
            raise ToolError("timeout", f"the code took too long: {said}", argument=argument, hint="do less")
        case "memory" | "output_cap" | "artifact_cap":
            raise ToolError("limit", f"the code used too much: {said}", argument=argument, hint="make less of it")
        case "denied":
            raise ToolError(
                "invalid_argument",
                f"the code tried what the sandbox denies: {said}",
                argument=argument,
                hint="it can reach no network, no other program and no file but its own",
            )
        case _:
            raise ToolError("tool_failed", f"the sandbox was lost: {said}", hint="try again; see agrotools doctor")


async def answer_sandbox(body: dict[str, Any]) -> dict[str, Any]:
    """The reply to a request of :func:`run_in_sandbox`, where worker processes are started.

    Raises:
        ToolError: ``backend_unavailable``.
    """
    import asyncio

    try:
        from agrotools.sandbox import SandboxUnavailable, run_code
    except ImportError as error:
        raise _unavailable(str(error)) from None
    try:
        result = await asyncio.to_thread(run_code, body["code"], call="solution")
    except SandboxUnavailable as error:
        raise _unavailable(error.message) from None
    return {
        "value": result.value,
        "pictures": [base64.b64encode(artifact.content).decode() for artifact in result.artifacts],
        "termination": result.termination,
        "message": result.message,
    }


def _unavailable(why: str) -> ToolError:
    return ToolError(
        "backend_unavailable", f"code cannot be run here: {why}", hint="agrotools doctor says what the sandbox needs"
    )
