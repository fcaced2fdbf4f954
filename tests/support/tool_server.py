"""A tool server of the SDK for tests, over standard input and output, whose tools also die, hang, flood and refuse.

As a script it serves one client; ``TOOL_SERVER_NAME`` in its environment replaces its name.
"""

import os
import sys
import time

from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer(os.environ.get("TOOL_SERVER_NAME", "field-tools"), version="3")
_areas: dict[str, float] = {}


@server.tool()
def segment(image_path: str, threshold: int = 7) -> dict:
    """Segment a picture, and remember its area under the id of a session."""
    if threshold > 255:
        raise ToolError("threshold must be at most 255")
    with open(image_path, "rb") as file:  # noqa: PTH123
        size = len(file.read())
    session = f"session-{len(_areas) + 1}"
    _areas[session] = float(size)
    warnings = [{"code": "small"}] if size < 100 else []
    return {"session_id": session, "sessions": len(_areas), "warnings": warnings}


@server.tool()
def measure(session_id: str) -> dict:
    """Measure the area of a session that segment opened, in square millimetres."""
    return {"traits": {"area": {"value": _areas[session_id], "unit": "mm2"}}, "path": __file__}


@server.tool()
def cover(image_path: str) -> dict[str, float]:
    """Half of every picture is plants."""
    return {"cover": 0.5 if image_path else 0.0}


@server.tool()
def picture() -> Image:
    """Return a picture."""
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


@server.tool()
def die() -> str:
    """End the process."""
    print("out of field", file=sys.stderr, flush=True)
    os._exit(9)


@server.tool()
def hang() -> str:
    """Answer after an hour."""
    time.sleep(3600)
    return ""


@server.tool()
def flood() -> str:
    """Give a text that is too long."""
    return "x" * (17 * 2**20)


@server.tool()
def write(output_path: str) -> dict:
    """Write a file."""
    with open(output_path, "w") as file:  # noqa: PTH123
        file.write("mask")
    return {"saved": output_path}


if __name__ == "__main__":
    server.run()
