"""Server of an agent: one action for each request."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def agent_serving(
    reply: Callable[[dict[str, Any]], dict[str, Any]],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Serve an agent on a free port, and yield its address. ``reply``: action of the agent, from a request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps(
                reply(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            ).encode()
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/agent"
    finally:
        server.shutdown()
        server.server_close()
