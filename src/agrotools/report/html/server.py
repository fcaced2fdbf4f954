"""Local server of the page: the list of runs in a folder, and the page of one or several of them, live.

It listens on 127.0.0.1 only, answers only requests that name this host, and only below a secret path, so that neither
other machines nor other pages in the browser can read it. Files are never served: only pages built from runs.
"""

import hashlib
import os
import secrets
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import orjson

from agrotools.core import AgrotoolsError, RunStoreError, UsageError
from agrotools.core.files import MANIFEST_FILE
from agrotools.core.systems import read_at
from agrotools.report.html.page import Page, content_hash, page_style
from agrotools.report.html.pictures import PictureEncoder
from agrotools.report.html.runs import floor_and_ceiling, opened_runs, summarise
from agrotools.report.run_list import list_runs, run_folders, runs_table
from agrotools.report.settings import PaperTables, paper_tables
from agrotools.report.text_tables import page_templates
from agrotools.runner.records import RECORDS_FILE
from agrotools.runner.repeated_calls import REPEATED_CALLS_FILE
from agrotools.runner.rescore import JUDGEMENTS_FILE, SCORES_FILE
from agrotools.scoring.summary import Summary

HOST = "127.0.0.1"
_MOST_PAGES = 8
"""Most pages that are kept open; the oldest is closed for a new one."""
_REST = 9
"""Time between two updates of a page, in durations of the first: they take at most a tenth of one processor."""
_LONGEST_REST_S = 20.0
_LONGEST_SIDE_PX = 1000
_PICTURE_BYTES = _DETAIL_BYTES = 500_000_000
"""Most bytes of pictures, and of details, of an open page: they are in a file, not in the page."""

_PLAIN = "text/plain"
_HTML = "text/html; charset=utf-8"
_SAFE_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every reply: nothing is stored, and no other page learns the address or shows the content."""

_RELOAD = """setInterval(async () => {
  const due = await fetch("state").then((reply) => reply.json(), () => null);
  if (due && due.stamp !== document.body.dataset.stamp && !document.querySelector(":checked")) location.reload();
}, 2000);"""
"""Script of the list of runs, which is loaded again when a run has changed, unless runs are marked."""


class _Shell(NamedTuple):
    stamp: str
    content: bytes
    rests_until: float


class _LivePage:
    """Page of one or several runs. Each record is added once; its details and pictures are kept in a file."""

    def __init__(self, paths: Sequence[Path], data_root: Path | None) -> None:
        self.runs = opened_runs(paths, data_root=data_root, summaries=None)
        self._paths = paths
        self._data_root = data_root
        self._basis = self._outside_records()
        self.shown = _Shell("", b"", 0.0)
        self._file = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - open as long as the page
        weakref.finalize(self, self._file.close)
        self._parts: dict[str, tuple[int, int]] = {}
        pictures = PictureEncoder(1, _PICTURE_BYTES, _LONGEST_SIDE_PX)
        self._page = Page(self.runs, pictures, self._keep, _DETAIL_BYTES, live=True)
        self._whole: tuple[Sequence[PaperTables], Mapping[str, Summary]] | None = None
        """Filled tables of papers, and baselines, of all records; None while more records are expected."""
        for at, run in enumerate(self.runs):
            self._page.add(at, run.records.each_key())

    def _outside_records(self) -> list[object]:
        """Return what scores depend on besides records, which are scored again if it changes."""
        beside = [
            run / name for run in self._paths for name in (JUDGEMENTS_FILE, REPEATED_CALLS_FILE)
        ]
        stamps = [each.stat().st_mtime_ns if each.exists() else None for each in beside]
        inodes = [(run / RECORDS_FILE).stat().st_ino for run in self._paths]
        return [*stamps, *inodes]

    def _keep(self, name: str, content: str) -> None:
        encoded = content.encode()
        self._parts[name] = (self._file.seek(0, os.SEEK_END), len(encoded))
        self._file.write(encoded)
        self._file.flush()

    def part(self, name: str) -> bytes:
        """Return a block of details, a long text or a picture; LookupError if there is none of this name."""
        place, size = self._parts[name]
        return read_at(self._file.fileno(), size, place)

    def read_on(self) -> bool:
        """Add new records; False if something else has changed, so that a new page must be begun."""
        if self._outside_records() != self._basis:
            return False
        for at, run in enumerate(self.runs):
            try:
                new, replaces = run.records.read_on(run.folder)
            except RunStoreError:
                return False
            if replaces:
                return False
            if new:
                self._page.add(at, new)
                self._whole = None
        return True

    def shell(self, live: Mapping[str, str]) -> bytes:
        """Return the page without its parts; what needs all records again is added once no more are expected."""
        finished = all(sum(run.manifest.planned.values()) <= len(run.records) for run in self.runs)
        summarise(self.runs, allow_invalid=True, finished=finished)
        if finished and self._whole is None:
            tables = paper_tables(self._paths, [run.summary for run in self.runs])
            self._whole = tables, floor_and_ceiling(self.runs, self._data_root).summaries
        papers, yardsticks = self._whole or ((), {})
        return f"{self._page.shell(papers, yardsticks, live=live)}</body>\n</html>\n".encode()


class Viewer:
    """Pages of the runs in ``folder``. A page of a run that goes on gets the new records when it is asked for."""

    def __init__(self, folder: Path, data_root: Path | None = None) -> None:
        self.folder, self._data_root = folder, data_root
        self._pages: dict[tuple[Path, ...], _LivePage] = {}
        self._known: dict[str, Path] = {}
        self._list = _Shell("", b"", 0.0)
        self._building = threading.Lock()

    def run_list(self) -> bytes:
        """Return the page with the list of runs."""
        began, stamp = time.monotonic(), self.stamp(list(run_folders(self.folder)))
        if stamp != self._list.stamp:
            runs = list(list_runs(self.folder))
            content = _rendered(
                "runs.html.j2",
                stamp=stamp,
                folder=self.folder.resolve(),
                runs=runs,
                table=runs_table(runs, self.folder),
                script=_RELOAD,
                script_hash=content_hash(_RELOAD),
            )
            self._list = _shell_of(stamp, content, began)
        return self._list.content

    def paths(self, names: Sequence[str]) -> tuple[Path, ...]:
        """Return the folders of runs by name; a UsageError for names that are not in the list."""
        if not names or not self._known.keys() >= {*names}:
            self._known = {entry.name: entry.path for entry in list_runs(self.folder)}
        if not names or not self._known.keys() >= {*names}:
            raise UsageError("there is no such run", hint="go back to the list of runs")
        return tuple(self._known[name] for name in names)

    def page(self, names: Sequence[str]) -> bytes:
        """Return the page of the runs ``names``, with their new records."""
        paths = self.paths(names)
        with self._building:
            stamp = self.stamp(paths)
            page = self._pages.get(paths)
            if page is not None and page.shown.stamp == stamp:
                return page.shown.content
            began = time.monotonic()
            if page is None or not page.read_on():
                page = self._pages[paths] = _LivePage(paths, self._data_root)
            for old in [*self._pages][:-_MOST_PAGES]:
                del self._pages[old]
            query = urlencode({"run": names}, doseq=True)
            live = {"state": f"state?{query}", "part": f"part?{query}", "stamp": stamp}
            page.shown = _shell_of(stamp, page.shell(live), began)
            return page.shown.content

    def without_records(self, names: Sequence[str]) -> list[str]:
        """Return the names of those runs that have no finished sample yet."""
        files = [run / RECORDS_FILE for run in self.paths(names)]
        return [
            name
            for name, file in zip(names, files, strict=True)
            if not file.exists() or not file.stat().st_size
        ]

    def part(self, names: Sequence[str], name: str) -> bytes:
        """Return a part of an open page; LookupError if there is none of this name."""
        return self._pages[self.paths(names)].part(name)

    def state(self, names: Sequence[str]) -> str:
        """Return the stamp of the page that is due: that of the last one until the machine has rested from it.

        Without names, it is that of the list of runs.
        """
        if names:
            paths = self.paths(names)
            page = self._pages.get(paths)
            last = page.shown if page else None
        else:
            paths = tuple(run_folders(self.folder))
            last = self._list
        is_resting = last is not None and time.monotonic() < last.rests_until
        return last.stamp if last and is_resting else self.stamp(paths)

    @staticmethod
    def stamp(paths: Sequence[Path]) -> str:
        """Return a text that changes whenever one of the runs does."""
        files = [
            run / name
            for run in paths
            for name in (MANIFEST_FILE, RECORDS_FILE, SCORES_FILE, REPEATED_CALLS_FILE)
        ]
        times = [str(file.stat().st_mtime_ns) if file.exists() else "-" for file in files]
        return hashlib.sha256(" ".join([*map(str, paths), *times]).encode()).hexdigest()[:16]


def _shell_of(stamp: str, content: bytes, began: float) -> _Shell:
    ended = time.monotonic()
    return _Shell(stamp, content, ended + min(_LONGEST_REST_S, _REST * (ended - began)))


def _rendered(template: str, **fields: Any) -> bytes:
    style = page_style()
    page = page_templates().get_template(template)
    return page.render(style=style, style_hash=content_hash(style), **fields).encode()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request of a browser; ``secret`` is the first part of every path that is answered."""

    server_version, sys_version = "agrotools", ""
    timeout = 60
    """Seconds after which a connection without a whole request is closed."""

    def __init__(self, viewer: Viewer, secret: str, *connection: Any) -> None:
        self._viewer, self._secret = viewer, secret
        super().__init__(*connection)  # answers the request

    def do_GET(self) -> None:
        with suppress(ConnectionError):  # the reader has closed the page
            self._respond()

    do_HEAD = do_GET

    def _respond(self) -> None:
        """Answer a request that names this host and the secret path; an error is a page that says what it is."""
        address = urlsplit(self.path)
        if not self._names_this_host() or not address.path.startswith(f"/{self._secret}/"):
            self._send(403, b"open the address that agrotools view printed", _PLAIN)
            return
        try:
            self._answer(address.path.removeprefix(f"/{self._secret}/"), parse_qs(address.query))
        except ConnectionError:
            raise
        except (AgrotoolsError, OSError, LookupError) as error:
            self._send(404, _message("not found", str(error)))

    def _names_this_host(self) -> bool:
        """Return False for a request that reached this port by the name of another host."""
        port = self.connection.getsockname()[1]
        return self.headers.get("Host") in {f"{HOST}:{port}", f"localhost:{port}"}

    def _answer(self, what: str, query: Mapping[str, list[str]]) -> None:
        names = query.get("run", [])
        if what == "":
            self._send(200, self._viewer.run_list())
        elif what == "page":
            self._send(200, self._page(names))
        elif what == "state":
            state = orjson.dumps({"stamp": self._viewer.state(names)})
            self._send(200, state, "application/json")
        elif what == "part":
            part = self._viewer.part(names, query.get("name", [""])[0])
            self._send(200, part, "text/plain; charset=us-ascii")
        else:
            self._send(404, b"there is no such page", _PLAIN)

    def _page(self, names: list[str]) -> bytes:
        """Return the page of runs, or one that waits for their first samples."""
        waiting = self._viewer.without_records(names)
        if waiting:
            text = f"{', '.join(waiting)}: no sample is finished yet. The page opens as soon as one is."
            return _message("waiting", text, waiting=True)
        return self._viewer.page(names)

    def _send(self, status: int, content: bytes, media_type: str = _HTML) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        for name, value in _SAFE_HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged: the address is secret."""


def _message(title: str, text: str, *, waiting: bool = False) -> bytes:
    """Return a page with a message; if it is ``waiting``, it loads itself again."""
    return _rendered("message.html.j2", title=title, text=text, waiting=waiting)


def serve_pages(viewer: Viewer, port: int | None, started: Callable[[str], None]) -> None:
    """Serve until interrupted. ``started`` gets the address."""
    secret = secrets.token_urlsafe(18)
    try:
        server = ThreadingHTTPServer((HOST, port or 0), partial(_Handler, viewer, secret))
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"port {port} cannot be used: {error}", hint="choose another --port, or leave it out"
        ) from error
    with server:
        started(f"http://{HOST}:{server.server_port}/{secret}/")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
