"""An agent that speaks MCP. It uses no model: it describes each picture and answers with the numbers in the results.

agrotools eval embedded --quick --limit 6 --mode end-to-end --model 'mcp:python mcp_agent.py'     (in this folder)

The agent needs the extra ``mcp``. It finds the address of the server in the environment. To use a model, let the model
choose ``numbers``.
"""

import asyncio
import os
import re
import sys

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client


async def solve(client: Client, prompt: str) -> None:
    """Call a tool on each picture named in the prompt, give an answer, and fill in the answer form."""
    numbers: list[str] = []
    for name in dict.fromkeys(re.findall(r"\S+\.(?:jpg|png|tif)", prompt)):
        reply = await client.call_tool("describe_region", {"image": name})
        if not reply.is_error:
            numbers += re.findall(r"\d+\.?\d*", str(reply.structured_content))
    asked = await client.call_tool("final_answer", {"text": " ".join(numbers)})
    form = (asked.structured_content or {}).get("form_request", "")
    names = re.findall(r"^(\w+): <", form, re.MULTILINE)
    lines = [f"{name}: {number}" for name, number in zip(names, numbers, strict=False)]
    await client.call_tool("final_answer", {"text": "\n".join(lines)})


async def main() -> None:
    """Read the question from standard input, and connect to the server."""
    headers = {"Authorization": f"Bearer {os.environ['AGROTOOLS_MCP_TOKEN']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        Client(streamable_http_client(os.environ["AGROTOOLS_MCP_URL"], http_client=http)) as client,
    ):
        await solve(client, sys.stdin.read())


if __name__ == "__main__":
    asyncio.run(main())
