"""MCP server of the tools of GTA or ThinkGeo: published names and arguments, on what agrotools does without a model.

python server.py --files FOLDER --tools gta          (or thinkgeo; in an environment with requirements.txt)

Six of the fourteen tools of each answer: Calculator, OCR, Solver, Plot, DrawBox and AddText. The others need a model or
a key; they are listed, because a model under evaluation must see the same fourteen, and refuse in words. Tools open
only files in FOLDER. A picture that a tool draws is in the content of its result.
"""

import argparse
import asyncio
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from agrotools.calling import get_tool
from agrotools.calling.contract import Tool
from agrotools.calling.result import encode_result, with_artifact_names
from agrotools.core import BENCHMARKS, Artifact, ToolError


def listed_tool(tool: Tool[..., Any]) -> types.Tool:
    """Return a tool as clients see it."""
    offered = tool.spec.offered()
    return types.Tool(
        name=offered["name"],
        description=offered["description"],
        input_schema=offered["parameters"],
    )


def path_in(folder: Path, name: str) -> Path:
    """Return the file of the folder that a call names, by an absolute path or by one relative to the folder.

    Raises:
        ToolError: ``file_not_found``: there is no such file, or it is outside the folder.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder) or not path.is_file():
        raise ToolError("file_not_found", f"the folder of this server has no file {name[:200]!r}")
    return path


def run_tool(tool: Tool[..., Any], given: Mapping[str, Any], folder: Path) -> types.CallToolResult:
    """Run a tool and return its result: the fields as structured content, then the picture that it drew, if any."""
    checked = tool.validate(dict(given))
    result = tool(**tool.prepare_arguments(checked, lambda name: path_in(folder, name)))
    encoded, artifacts = encode_result(result, tool.significant_digits)
    fields = with_artifact_names(encoded, [artifact.name for artifact in artifacts])
    assert isinstance(fields, dict)
    content: list[types.ContentBlock] = [types.TextContent(text=str(fields.get("text", "")))]
    for artifact in artifacts:
        content += picture_content(artifact, result.content(artifact))
    return types.CallToolResult(content=content, structured_content=fields)


def picture_content(artifact: Artifact, picture: bytes) -> list[types.ContentBlock]:
    """Return a picture as models are shown it, and as a file with the name that the result gives it."""
    data, media_type = b64encode(picture).decode(), artifact.media_type
    file = types.BlobResourceContents(
        uri=f"picture:///{artifact.name}", blob=data, mime_type=media_type
    )
    return [
        types.ImageContent(data=data, mime_type=media_type),
        types.EmbeddedResource(resource=file),
    ]


def refusal(error: ToolError) -> types.CallToolResult:
    """Return the result of a call that a tool refuses: what is wrong and, where the caller can mend it, how."""
    text = f"{error.message} ({error.hint})" if error.hint else error.message
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def tool_server(names: Sequence[str], folder: Path) -> Server[Any]:
    """Return the server of the named tools on the files of a folder."""
    tools = {name: get_tool(name) for name in names}

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[listed_tool(tool) for tool in tools.values()])

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            if params.name not in tools:
                raise ToolError("unknown_tool", f"there is no tool {params.name[:100]!r}")
            tool = tools[params.name]
            return await asyncio.to_thread(run_tool, tool, params.arguments or {}, folder)
        except ToolError as error:
            return refusal(error)

    return Server("published-tools", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve(server: Server[Any]) -> None:
    """Serve one client over standard input and output."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def main() -> None:
    parser = argparse.ArgumentParser(
        description="MCP server of the tools of GTA or ThinkGeo under their published names"
    )
    parser.add_argument("--files", type=Path, required=True, help="folder of the pictures")
    parser.add_argument("--tools", choices=("gta", "thinkgeo"), required=True)
    options = parser.parse_args()
    names = tuple(BENCHMARKS.get(options.tools).tools)
    asyncio.run(serve(tool_server(names, options.files.resolve())))


if __name__ == "__main__":
    main()
