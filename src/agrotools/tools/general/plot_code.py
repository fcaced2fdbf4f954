"""A figure drawn by code that a model wrote."""

import io
from typing import Annotated

from pydantic import Field

from agrotools.core import Artifact, ToolError
from agrotools.tools.contract import Agree, ToolResult, tool
from agrotools.tools.general.sandboxed import LONGEST_CODE, run_in_sandbox
from agrotools.tools.outside import SANDBOX
from agrotools.tools.workspace import save_artifact


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
        raise ToolError("invalid_argument", f"the code failed: {ran.fault}", argument="code", hint="mend that line")
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
