"""Download of files: a few at a time, resumed after an interruption, checked by hash, from a mirror if one is given.

A file gets its name only when it is complete and has the expected hash; until then its content is in ``NAME.part``,
which the next call continues. A mirror is a folder or an address that holds a file at the path of its public address,
with or without the host: ``MIRROR/huggingface.co/datasets/...`` or ``MIRROR/datasets/...``.
"""

import errno
import hashlib
import json
import re
import shutil
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from itertools import count
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import Request, urlopen

from agrotools.core import BenchmarkError, InfrastructureError, UsageError
from agrotools.core.files import sha256_of_file, write_whole
from agrotools.core.progress import Progress, no_progress
from agrotools.models.refusals import retry_after

CONNECTIONS = 4
_BLOCK = 2**18
_REPORT_EVERY_S = 1.0
_FAILURES_IN_A_ROW = 5
"""Files in a row that a host does not give before it is given up."""
_LARGEST, _LARGEST_CONVERTED = 200 * 10**9, 100 * 10**6
"""Bytes after which a file of unknown size is given up."""
_MUCH = 20_000_000
"""Bytes of replies above which progress is shown in megabytes."""
_LFS_POINTER = b"version https://git-lfs.github.com/spec"
_GONE, _REFUSED = (404, 410), (401, 403, 429, 451)
_WORTH_ANOTHER_TRY = (408, 425, 429, 500, 502, 503, 504)
Reason = Literal["missing", "refused", "differs", "unreachable"]
REASONS: Mapping[Reason, str] = {
    "missing": "were not found",
    "refused": "were refused by the server",
    "differs": "differ from the expected content",
    "unreachable": "could not be read from the server",
}


class Item(NamedTuple):
    """File to download.

    Attributes:
        path: place below the target folder.
        urls: public addresses, the preferred one first.
        mirrored: further paths that the file may have below a mirror.
        sha256: hash of the content; empty if it is not known.
        git_sha1: hash of the content as a blob of Git; empty if it is not known.
        size: bytes of the downloaded content.
        convert: function that returns the content to store, or None if the downloaded content is not the expected one;
            it must accept what it returned itself. ``sha256`` then holds for the stored content.
    """

    path: str
    urls: tuple[str, ...]
    mirrored: tuple[str, ...] = ()
    sha256: str = ""
    git_sha1: str = ""
    size: int | None = None
    convert: Callable[[bytes], bytes | None] | None = None

    @property
    def most_bytes(self) -> int:
        """Bytes after which the download of the file is given up."""
        if self.size is not None:
            return self.size
        return _LARGEST_CONVERTED if self.convert else _LARGEST

    def is_intact(self, path: Path) -> bool:
        """Return True if ``path`` holds the expected content; a file without known hash must have the known size."""
        if not path.is_file():
            return False
        if self.convert:
            return self.convert(path.read_bytes()) is not None
        if self.sha256:
            return sha256_of_file(path) == self.sha256
        if self.git_sha1:
            return git_sha1_of(path) == self.git_sha1
        return self.size is None or path.stat().st_size == self.size


class MissingFile(NamedTuple):
    """File that was not obtained. ``detail``: message of the last attempt, with its address."""

    path: str
    reason: Reason
    detail: str


@dataclass(frozen=True)
class Patience:
    """Seconds until a silent connection is given up, attempts per address, and first and longest wait in seconds.

    ``least_bytes_s``: mean rate below which a connection is given up after ``timeout_s``.
    """

    timeout_s: float = 30.0
    least_bytes_s: float = 1000.0
    attempts: int = 4
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0


@dataclass
class _Denied(Exception):
    """An address gives no file. ``again``: it may later, after ``wait_s`` seconds. ``no_host``: no connection."""

    reason: Reason
    detail: str
    again: bool = False
    wait_s: float | None = None
    no_host: bool = False


@dataclass
class Downloader:
    """Downloads into ``folder``. ``mirror``: folder or address used instead of the public addresses."""

    folder: Path
    mirror: str = ""
    patience: Patience = field(default_factory=Patience)
    _dead_hosts: dict[str, str] = field(default_factory=dict[str, str])
    _failures: Counter[str] = field(default_factory=Counter[str])
    """Files in a row that each host did not give."""
    _bytes: dict[Path, tuple[int, int]] = field(default_factory=dict[Path, tuple[int, int]])
    """Received and expected bytes by file."""
    _trouble: str = ""
    """Last failure and what is done about it; empty after a success."""
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Raise a UsageError if the mirror is neither an HTTP address nor a folder."""
        if (
            self.mirror
            and not _is_address(self.mirror)
            and not Path(self.mirror).expanduser().is_dir()
        ):
            raise UsageError(
                f"--mirror: there is no folder {self.mirror}",
                hint="give a folder or an HTTP address",
            )

    def fetch(
        self, items: Sequence[Item], progress: Progress = no_progress, what: str = "files"
    ) -> list[MissingFile]:
        """Download the files that are not there yet and return those that could not be obtained.

        Raises:
            InfrastructureError: no server could be reached, or the disk is too small.
        """
        wanted = [item for item in items if not item.is_intact(self.folder / item.path)]
        n_there = len(items) - len(wanted)
        progress(what, n_there, len(items))
        self.folder.mkdir(parents=True, exist_ok=True)
        self._check_space(wanted)
        pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="download")
        pending = {pool.submit(self._obtain, item) for item in wanted}
        failures: list[MissingFile] = []
        shown = ("", n_there)
        try:
            while pending:
                done, pending = wait(pending, timeout=_REPORT_EVERY_S, return_when=FIRST_COMPLETED)
                failures += [failure for future in done if (failure := future.result())]
                n_there += len(done)
                state = (self._trouble, n_there - len(failures))
                if state != shown:
                    shown = state
                    trouble, n_obtained = state
                    label = f"{what} ({trouble})" if trouble else what
                    progress(label, n_obtained, len(items))
                elif not done:
                    self._show_bytes(progress)
        except BaseException:
            self._stop.set()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        none_reached = all(failure.reason == "unreachable" for failure in failures)
        if wanted and len(failures) == len(wanted) and none_reached:
            raise InfrastructureError(
                f"no file could be downloaded: {failures[0].detail}",
                hint="check the network connection, or give a copy: --mirror DIR or --mirror URL",
            )
        return sorted(failures)

    def _check_space(self, wanted: Sequence[Item]) -> None:
        """Raise an error if the disk has no room for files of known size."""
        size = sum(item.size or 0 for item in wanted)
        free = shutil.disk_usage(self.folder).free
        if size > free:
            raise InfrastructureError(
                f"{size / 1e9:.1f} GB are needed in {self.folder}, {free / 1e9:.1f} GB are free",
                hint="choose another disk: --out DIR",
            )

    def _show_bytes(self, progress: Progress) -> None:
        """Show the progress of large files in megabytes, while no file is completed."""
        transfers = [*self._bytes.copy().values()]  # other threads add to it
        expected = sum(whole for _, whole in transfers)
        if expected > _MUCH:
            received = sum(there for there, _ in transfers)
            progress("MB", received // 10**6, expected // 10**6)

    def read_json(self, url: str) -> tuple[object, str | None]:
        """Return the JSON at ``url``, and the address of the next page if the reply names one.

        Raises:
            BenchmarkError: the address gives no JSON.
            InfrastructureError: it cannot be reached.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f".{hashlib.sha256(url.encode()).hexdigest()[:16]}.listing"
        try:
            next_page = self._try_addresses(Item(part.name, (url,)), part)
            return json.loads(part.read_bytes()), next_page
        except _Denied as denied:
            kind = InfrastructureError if denied.reason == "unreachable" else BenchmarkError
            raise kind(
                denied.detail, hint="check the network connection, or give a copy: --mirror DIR"
            ) from denied
        except ValueError as error:
            raise BenchmarkError(f"{url} gives no JSON: {error}") from error
        finally:
            part.unlink(missing_ok=True)

    def _obtain(self, item: Item) -> MissingFile | None:
        target = self.folder / item.path
        part = target.with_name(f"{target.name}.part")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._try_addresses(item, part)
            if item.convert:
                content = item.convert(part.read_bytes())
                assert content is not None
                write_whole(target, content, synced=False)
                part.unlink()
            else:
                part.replace(target)
        except _Denied as denied:
            return MissingFile(item.path, denied.reason, denied.detail)
        return None

    def _addresses(self, item: Item) -> Sequence[str]:
        if not self.mirror:
            return item.urls
        # A folder has no queries.
        places = [url if _is_address(self.mirror) else url.partition("?")[0] for url in item.urls]
        places = [place.partition("://")[2] for place in places]
        paths = [
            *map(quote, item.mirrored),
            *places,
            *(place.partition("/")[2] for place in places),
        ]
        return [f"{self.mirror.rstrip('/')}/{path}" for path in paths]

    def _try_addresses(self, item: Item, part: Path) -> str | None:
        """Read the file from the first address that gives it, into ``part``; return the link to the next page."""
        denied = _Denied("missing", f"{item.path}: no address")
        for address in self._addresses(item):
            try:
                return self._try_address(address, item, part)
            except _Denied as error:
                # "Missing" is the weakest reason: another address may have refused the file.
                denied = error if denied.reason == "missing" else denied
        raise denied

    def _try_address(self, address: str, item: Item, part: Path) -> str | None:
        host, wait_s = urlsplit(address).netloc, self.patience.first_wait_s
        for attempt in count(1):
            if host in self._dead_hosts:
                raise _Denied("unreachable", self._dead_hosts[host])
            resumed = part.is_file()
            try:
                link = self._receive(address, part, item.most_bytes)
                _check(item, part, address, resumed)
                self._trouble = ""
                self._failures[host] = 0
                return link
            except _Denied as denied:
                if not denied.again or attempt >= self.patience.attempts or self._stop.is_set():
                    self._count_failure(host, denied)
                    raise
                pause_s = min(denied.wait_s or wait_s, self.patience.longest_wait_s)
                self._trouble = (
                    f"{denied.detail}; again in {pause_s:.0f} s" if pause_s >= 1 else self._trouble
                )
                self._stop.wait(pause_s)
                wait_s *= 2

    def _count_failure(self, host: str, denied: _Denied) -> None:
        """Give up a host that cannot be reached, or that did not give several files in a row."""
        if not host or denied.reason == "missing":
            return
        self._failures[host] += 1
        if denied.no_host or self._failures[host] >= _FAILURES_IN_A_ROW:
            self._dead_hosts[host] = self._trouble = f"{denied.detail}; {host} is given up"

    def _receive(self, address: str, part: Path, most: int) -> str | None:
        """Read an address into ``part``, continuing what is there; return the address of the next page, if named."""
        if not _is_address(address):
            _copy(address, part, most)
            return None
        there = part.stat().st_size if part.is_file() else 0
        headers = {"User-Agent": "agrotools"}
        if there:
            headers["Range"] = f"bytes={there}-"
        request = Request(address, headers=headers)
        try:
            with urlopen(request, timeout=self.patience.timeout_s) as reply:
                continues = there > 0 and reply.status == 206
                self._write(reply, part, most, append=continues)
                link = re.search(r'<([^>]+)>;[^,]*rel="next"', reply.headers.get("Link") or "")
                return link and link[1]
        except HTTPError as error:
            error.close()
            raise _denied_by_status(error, address, part) from error
        except URLError as error:
            unknown = isinstance(error.reason, socket.gaierror)
            host = urlsplit(address).hostname
            text = f"cannot resolve {host} (offline?)" if unknown else f"{address}: {error.reason}"
            raise _Denied("unreachable", text, again=True, no_host=True) from error
        except (HTTPException, OSError) as error:
            if isinstance(error, OSError) and _is_of_disk(error):
                raise
            raise _Denied(
                "unreachable", f"{address}: the connection broke ({error})", again=True
            ) from error

    def _write(self, reply: HTTPResponse, part: Path, most: int, *, append: bool) -> None:
        """Write a reply to ``part``, or behind what it holds; OSError if it is cut, too slow or interrupted."""
        length = reply.headers.get("Content-Length") or ""
        before = part.stat().st_size if append else 0
        whole = before + int(length) if length.isdecimal() else 0
        received = 0
        began = time.monotonic()
        with part.open("ab" if append else "wb") as file:
            while block := reply.read1(_BLOCK):
                file.write(block)
                received += len(block)
                self._bytes[part] = (before + received, whole)
                if self._stop.is_set():
                    raise OSError("interrupted")
                if before + received > most:
                    break
                seconds = time.monotonic() - began
                is_slow = received < self.patience.least_bytes_s * seconds
                if is_slow and seconds > self.patience.timeout_s:
                    raise OSError(f"slower than {self.patience.least_bytes_s / 1000:g} kB/s")
        if before + received > most:
            part.unlink()
            raise _Denied("differs", f"{reply.url} is larger than the expected {most:,} bytes")
        if length.isdecimal() and received < int(length):
            raise OSError(f"{received} of {length} bytes received")


def _is_address(mirror: str) -> bool:
    return mirror.startswith(("http://", "https://"))


def _is_of_disk(error: OSError) -> bool:
    """Return True for an error of the disk, not of the connection."""
    return bool(error.filename) or error.errno in (errno.ENOSPC, errno.EDQUOT)


def _copy(path: str, part: Path, most: int) -> None:
    """Copy a file of a mirror that is a folder; ``path`` is quoted like an address."""
    source = Path(unquote(path)).expanduser()
    try:
        if source.exists() and not source.is_file():
            raise _Denied("differs", f"{source} is not a regular file")
        size = source.stat().st_size
        if size > most:
            raise _Denied("differs", f"{source} is larger than expected ({size:,} bytes)")
        shutil.copyfile(source, part)
    except OSError as error:
        raise _Denied("missing", f"{unquote(path)}: {error.strerror or error}") from error


def _check(item: Item, part: Path, address: str, resumed: bool) -> None:
    """Raise an error, and remove the file, if it is not the expected one. It is read again if it was ``resumed``."""
    with part.open("rb") as file:
        pointer = file.read(len(_LFS_POINTER)) == _LFS_POINTER
    if not pointer and item.is_intact(part):
        return
    size = part.stat().st_size
    part.unlink()
    if pointer:  # the file itself is at another address
        raise _Denied("missing", f"{address} holds a pointer of Git LFS, not the file")
    raise _Denied(
        "differs",
        f"{address}: {size} bytes of other content than expected",
        again=resumed,
        wait_s=0.01,
    )


def _denied_by_status(error: HTTPError, address: str, part: Path) -> _Denied:
    if error.code == 416:  # the part is as long as the file, or longer
        part.unlink(missing_ok=True)
        return _Denied("unreachable", f"{address}: HTTP 416", again=True, wait_s=0.01)
    reason: Reason = (
        "missing" if error.code in _GONE else "refused" if error.code in _REFUSED else "unreachable"
    )
    wait_s = retry_after(dict(error.headers.items())) if error.headers else None
    again = error.code in _WORTH_ANOTHER_TRY
    return _Denied(
        reason, f"{address}: HTTP {error.code} {error.reason}", again=again, wait_s=wait_s
    )


def repository_urls(place: str) -> tuple[str, str]:
    """Return the addresses of a file on GitHub, the second for large files (Git LFS).

    ``place``: ``OWNER/REPO/COMMIT/PATH``, quoted.
    """
    return (
        f"https://raw.githubusercontent.com/{place}",
        f"https://media.githubusercontent.com/media/{place}",
    )


def git_sha1_of(path: Path) -> str:
    """Return the hash of a file as a blob of Git."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest()


def failure_lines(failures: Sequence[MissingFile]) -> Iterator[str]:
    """Yield lines of text about the failures, grouped by reason: at most three of each."""
    for reason, words in REASONS.items():
        some = [each for each in failures if each.reason == reason]
        if some:
            yield f"{len(some)} {words}:"
            yield from (f"  {each.path} ({each.detail})" for each in some[:3])
            if len(some) > 3:
                yield f"  ... and {len(some) - 3} more"
