"""A server of a folder on this machine, with ranges, that fails as it is told to."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

Fault = int | str
"""A status (``403``), ``"cut"`` (half of the content), ``"other"`` (other content), ``"pointer"`` (of Git LFS),
``"endless"`` (zeros without end), ``"slow"`` (a byte at a time)."""
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


class FileServer:
    """``faults``: what the next requests of a path meet, in order; the last one of ``always`` stays."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.always: dict[str, Fault] = {}
        self.links: dict[str, str] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.url = ""

    def fault_of(self, path: str) -> Fault | None:
        waiting = self.faults[path]
        return waiting.pop(0) if waiting else self.always.get(path, self.always.get("*"))


@contextmanager
def serving(root: Path) -> Iterator[FileServer]:
    """Serve the folder ``root`` while the block runs."""
    served = FileServer(root)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path).lstrip("/")
            served.requests.append((path, self.headers.get("Range")))
            fault, file = served.fault_of(path), root / path
            if isinstance(fault, int) or not file.is_file():
                self.send_response(fault if isinstance(fault, int) else 404)
                if fault == 429:
                    self.send_header("Retry-After", "0.01")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if fault in ("endless", "slow"):
                self.send_response(200)
                self.end_headers()
                with suppress(OSError):
                    while True:
                        self.wfile.write(bytes(2**16) if fault == "endless" else b"0")
                        time.sleep(0.02 if fault == "slow" else 0)
                return
            content = file.read_bytes()
            content = {"other": content[::-1] + b"!", "pointer": POINTER}.get(fault or "", content)
            start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
            if start >= len(content) > 0:
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            if path in served.links:
                self.send_header("Link", f'<{served.links[path]}>; rel="next"')
            self.end_headers()
            content = content[start:]
            self.wfile.write(content[: len(content) // 2] if fault == "cut" else content)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
