"""Local server of the page: the list of runs in a folder, and the page of one or several of them, live.

It listens on 127.0.0.1 only, answers only requests that name this host, and only below a secret path, so that neither
other machines nor other pages in the browser can read it. Files are never served: only pages built from runs.
"""

import secrets
import tempfile
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import orjson

from agrotools.core import AgrotoolsError, UsageError
from agrotools.report.html.page import build_report, content_hash, page_style
from agrotools.report.html.result_tables import templates
from agrotools.report.run_list import list_runs
from agrotools.runner.records import RECORDS_FILE
from agrotools.runner.rescore import SCORES_FILE
from agrotools.scoring.attribution import ATTRIBUTION_FILE

HOST = "127.0.0.1"
_LONGEST_SIDE_PX = 1000
_PICTURE_BYTES = _DETAIL_BYTES = 500_000_000


class Viewer:
    """Pages of the runs in ``folder``, built when they are asked for and again when a run has changed."""

    def __init__(self, folder: Path, data_root: Path | None = None) -> None:
        self.folder, self._data_root = folder, data_root
        self._pages: dict[tuple[Path, ...], tuple[str, bytes]] = {}
        self._pictures: dict[object, object] = {}
        self._building = threading.Lock()

    def run_list(self) -> str:
        """Return the page with the list of runs."""
        page = templates().get_template("runs.html.j2")
        style = page_style()
        entries = list(list_runs(self.folder))
        return page.render(style=style, style_hash=content_hash(style), folder=self.folder.resolve(), runs=entries)

    def paths(self, names: Sequence[str]) -> tuple[Path, ...]:
        """Return the folders of runs by name; a UsageError for names that are not in the list."""
        known = {entry.name: entry.path for entry in list_runs(self.folder)}
        if not names or any(name not in known for name in names):
            raise UsageError("there is no such run", hint="go back to the list of runs")
        return tuple(known[name] for name in names)

    def page(self, names: Sequence[str]) -> bytes:
        """Return the page of the runs ``names``."""
        paths = self.paths(names)
        with self._building:
            stamp = self.stamp(paths)
            if self._pages.get(paths, ("", b""))[0] != stamp:
                with tempfile.TemporaryDirectory(prefix="agrotools-view-") as place:
                    out = Path(place) / "report.html"
                    live = {"state": f"state?{urlencode({'run': names}, doseq=True)}", "stamp": stamp}
                    build_report(
                        paths,
                        out,
                        data_root=self._data_root,
                        allow_invalid=True,
                        picture_bytes=_PICTURE_BYTES,
                        detail_bytes=_DETAIL_BYTES,
                        longest_px=_LONGEST_SIDE_PX,
                        picture_cache=self._pictures,
                        live=live,
                    )
                    self._pages[paths] = (stamp, out.read_bytes())
            return self._pages[paths][1]

    @staticmethod
    def stamp(paths: Sequence[Path]) -> str:
        """Return a text that changes whenever one of the runs does."""
        files = [run / name for run in paths for name in (RECORDS_FILE, SCORES_FILE, ATTRIBUTION_FILE)]
        return " ".join(str(file.stat().st_mtime_ns) if file.exists() else "-" for file in files)


def serve_pages(viewer: Viewer, port: int | None, started: Callable[[str], None]) -> None:
    """Serve until interrupted. ``started`` gets the address.

    Raises:
        UsageError: ``port`` is not available.
    """
    secret = secrets.token_urlsafe(18)

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "agrotools", ""

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            names = parse_qs(address.query).get("run", [])
            hosts = {f"{name}:{server.server_port}" for name in (HOST, "localhost")}
            if self.headers.get("Host") not in hosts or not address.path.startswith(f"/{secret}/"):
                self._send(403, b"open the address that agrotools view printed", "text/plain")
                return
            try:
                self._answer(address.path.removeprefix(f"/{secret}/"), names)
            except (AgrotoolsError, OSError) as error:
                text = f"{error}. If the run has just begun, load this page again in a moment."
                self._send(404, text.encode(), "text/plain; charset=utf-8")

        def _answer(self, what: str, names: list[str]) -> None:
            if what == "":
                self._send(200, viewer.run_list().encode(), "text/html; charset=utf-8")
            elif what == "page":
                self._send(200, viewer.page(names), "text/html; charset=utf-8")
            elif what == "state":
                state = orjson.dumps({"stamp": viewer.stamp(viewer.paths(names))})
                self._send(200, state, "application/json")
            else:
                self._send(404, b"there is no such page", "text/plain")

        def _send(self, status: int, content: bytes, media_type: str) -> None:
            self.send_response(status)
            headers = {
                "Content-Type": media_type,
                "Content-Length": str(len(content)),
                "Cache-Control": "no-store",
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
                "Cross-Origin-Resource-Policy": "same-origin",
            }
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not logged: the address is secret."""

    try:
        server = ThreadingHTTPServer((HOST, port or 0), Handler)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"port {port} cannot be used: {error}", hint="choose another --port, or leave it out"
        ) from error
    with server:
        started(f"http://{HOST}:{server.server_port}/{secret}/")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
