"""Model-written code run in the sandbox: figures, and the request for a run from a worker."""

import base64
import io
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from agrotools.core import Artifact, ToolError
from agrotools.tools.contract import Agree, ToolResult, tool
from agrotools.tools.services import SANDBOX, ServiceRequest, request_service
from agrotools.tools.workspace import save_artifact

LONGEST_CODE = 20_000


@dataclass(frozen=True)
class CodeRun:
    """Result of code: the returned value as text, and the pictures that it drew."""

    value: str | None
    pictures: tuple[bytes, ...]
    fault: str
    """what the code itself did wrong, in a line; empty where it ran"""


def run_in_sandbox(code: str, *, argument: str) -> CodeRun:
    """Run code and call its ``solution()``.

    Raises:
        ToolError: ``backend_unavailable`` (no sandbox on this machine), ``timeout`` and ``limit`` (what it may use is
            used up), ``invalid_argument`` (what it tried is denied), ``tool_failed`` (the sandbox was lost).
    """
    reply = request_service(ServiceRequest(SANDBOX, {"code": code}))
    message = str(reply["message"])
    match str(reply["termination"]):
        case "ok" | "error":
            pictures = tuple(base64.b64decode(picture) for picture in reply["pictures"])
            return CodeRun(reply["value"], pictures, message if reply["termination"] == "error" else "")
        case "wall_timeout" | "cpu_limit":
            raise ToolError("timeout", f"the code took too long: {message}", argument=argument, hint="do less")
        case "memory" | "output_cap" | "artifact_cap":
            raise ToolError("limit", f"the code used too much: {message}", argument=argument, hint="make less of it")
        case "denied":
            raise ToolError(
                "invalid_argument",
                f"the code tried what the sandbox denies: {message}",
                argument=argument,
                hint="it can reach no network, no other program and no file but its own",
            )
        case _:
            raise ToolError("tool_failed", f"the sandbox was lost: {message}", hint="try again; see agrotools doctor")


async def answer_sandbox(body: dict[str, Any]) -> dict[str, Any]:
    """The reply to a request of :func:`run_in_sandbox`, where worker processes are started.

    Raises:
        ToolError: ``backend_unavailable``.
    """
    import asyncio

    try:
        from agrotools.sandbox.result import SandboxUnavailable
        from agrotools.sandbox.running import run_code
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


class CodeFigure(ToolResult):
    image: Artifact
    """the figure"""
    width_px: int
    height_px: int


@tool(category="general", version="1", backends=(SANDBOX,), cacheable=False)
def plot_code(
    code: Annotated[
        str,
        Agree("text"),
        Field(
            min_length=1, max_length=LONGEST_CODE, description="Python that defines solution(), which returns a figure"
        ),
    ],
) -> CodeFigure:
    """Draw a figure by Python code with matplotlib, bare or in a Markdown fence.

    The code defines a function solution() without arguments that returns the figure. It runs in a sandbox: no network,
    no other files, a few seconds. The tool plot draws from values alone and needs no code.

    Raises:
        ToolError: ``invalid_argument`` (the code fails, or makes no figure), ``timeout``, ``limit``,
            ``backend_unavailable`` (no sandbox on this machine).
    """
    ran = run_in_sandbox(code, argument="code")
    if ran.fault:
        raise ToolError("invalid_argument", f"the code failed: {ran.fault}", argument="code", hint="fix that line")
    if not ran.pictures:
        raise ToolError(
            "invalid_argument", "the code made no figure", argument="code", hint="solution() must return the figure"
        )
    from PIL import Image

    picture = Image.open(io.BytesIO(ran.pictures[0]), formats=["PNG", "JPEG"])  # the sandbox has encoded it anew
    return CodeFigure(
        image=save_artifact("figure.png", "plot", ran.pictures[0]),
        width_px=picture.width,
        height_px=picture.height,
        notes=() if len(ran.pictures) == 1 else (f"the first of {len(ran.pictures)} pictures that the code made",),
        flags=("drawn_by_code",),
    )
