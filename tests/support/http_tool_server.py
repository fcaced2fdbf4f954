"""A tool server of the SDK for tests, over streamable HTTP on this machine: the tools of ``tool_server.py``, and
some that have state by session, take content, or are answered by a proxy in front of it.

As a script it prints its address, and writes a line for every request to the file of its argument: method, session,
status.
With ``TOKEN`` in its environment, it refuses requests without that bearer token.
"""

import base64
import os
import socket
import sys
from pathlib import Path
from typing import Annotated, Any

import orjson
import uvicorn
from mcp.server.mcpserver import Context
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from tool_server import server

_words: dict[str, list[str]] = {}


@server.tool()
def remember(word: str, ctx: Context) -> dict:
    """Keep a word, and give all words of this session."""
    said = _words.setdefault((ctx.headers or {}).get("mcp-session-id", ""), [])
    said.append(word)
    return {"words": said}


@server.tool()
def size(image: Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})]) -> dict:
    """Size of a picture that comes by content."""
    return {"bytes": len(base64.b64decode(image))}


@server.tool()
def answer(status: int, content_type: str = "text/plain") -> dict:
    """Never called: the proxy answers with the status."""
    return {}


class Proxy:
    """What stands in front of the server: it checks the token, fails when it is told to, and keeps a log."""

    def __init__(self, app: Any, log: Path) -> None:
        self._app, self._log = app, log
        token = os.environ.get("TOKEN", "")
        self._wanted = f"Bearer {token}" if token else ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        body = await request.body()
        instead = self._instead(request, body)

        async def send_logged(message: Any) -> None:
            if message["type"] == "http.response.start":
                session = request.headers.get("mcp-session-id", "")
                with self._log.open("a") as log:
                    log.write(f"{request.method} {session or '-'} {message['status']}\n")
            await send(message)

        async def receive_again() -> Any:
            if sent:
                return await receive()
            sent.append(True)
            return {"type": "http.request", "body": body, "more_body": False}

        sent: list[bool] = []
        await (instead or self._app)(scope, receive_again, send_logged)

    def _instead(self, request: Request, body: bytes) -> Response | None:
        if self._wanted and request.headers.get("authorization") != self._wanted:
            return Response("no", 401)
        asked = orjson.loads(body) if body else {}
        about = asked.get("params") or {}
        if about.get("name") != "answer":
            return None
        given = about["arguments"]
        return Response("<p>no", given["status"], media_type=given.get("content_type"))


def main() -> None:
    """Serve until the process is ended."""
    app = Proxy(
        server.streamable_http_app(json_response="JSON_REPLIES" in os.environ), Path(sys.argv[1])
    )
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])


if __name__ == "__main__":
    main()
