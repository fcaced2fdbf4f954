"""Prompts of a run: every request that was sent to a model for a sample, in ``prompts.jsonl`` of the run folder.

Each message and each list of tools is stored once, by content hash; images are in ``artifacts/``. The file is
append-only. Its lines have two forms:

* ``{"hash": H, "message": M}`` or ``{"hash": H, "tools": [...]}``: content in wire format, except that the URL of an
  image is ``data:TYPE;sha256,HASH``;
* ``{"key": [mode, sample id, epoch], "requests": [[N, [H, ...], T], ...]}``: for each request the number of leading
  messages that it shares with the previous one, the hashes of the others, and the hash of the tools or null. The last
  line of a key is valid.

Prompts are written just before the record that they belong to, so that every record has its prompts.
"""

import base64
import os
from binascii import Error as Base64Error
from binascii import unhexlify
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from agrotools.core import FrozenModel, RunStoreError, ToolSpec
from agrotools.core.files import Journal, artifact_path, write_new
from agrotools.models import Completion, Message, ModelSettings
from agrotools.models.base import (
    ImagePart,
    ModelWrapper,
    function_list,
    json_bytes,
    message_json,
    with_images,
)
from agrotools.runner.records import Key

PROMPTS_FILE = "prompts.jsonl"
_SUFFIXES = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}
_HASH_DIGITS = 32
_CONTENT = b'{"hash":"'
_REQUESTS = b',"requests":'

Request = tuple[Sequence[Message], Sequence[ToolSpec]]
_sent: ContextVar[list[Request] | None] = ContextVar("sent", default=None)


def collect_requests() -> list[Request]:
    """Return a new list, to which :class:`ObservedModel` adds each request that the current task sends from now on."""
    requests: list[Request] = []
    _sent.set(requests)
    return requests


def add_requests(requests: Sequence[Request]) -> None:
    """Add requests that an external agent sent to the list of :func:`collect_requests`, if there is one."""
    if (collected := _sent.get()) is not None:
        collected += requests


class ObservedModel(ModelWrapper):
    """Model wrapper that logs each request for :func:`collect_requests`."""

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        """Return the wrapped model's reply."""
        requests = _sent.get()
        if requests is not None:
            requests.append((messages, tools))
        return await self.model.generate(messages, tools, settings)


class PromptLog:
    """The open ``prompts.jsonl`` of a run, created with the first request; OSError if it cannot be read."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._path = run / PROMPTS_FILE
        self._journal: Journal | None = None
        self._known = set[bytes]()
        """Hashes of the stored contents."""
        if self._path.exists():
            self._recover()

    def lines(self, key: Key, requests: Sequence[Request]) -> bytes:
        """Return the lines of ``requests``, to be written; images in them are written now, or OSError."""
        lines: list[bytes] = []
        entries: list[list[Any]] = []
        known: dict[int, str] = {}
        """Hashes by object identity; the objects live as long as the requests."""
        before: list[str] = []
        for messages, tools in requests:
            for message in messages:
                if id(message) not in known:
                    content = message_json(with_images(message, self._image))
                    known[id(message)] = self._store_content(b"message", content, lines)
            if tools and id(tools) not in known:
                known[id(tools)] = self._store_content(
                    b"tools", json_bytes(function_list(tools)), lines
                )
            digests = [known[id(message)] for message in messages]
            shared = len(before)
            if digests[:shared] != before:  # not a further turn of the same conversation
                shared = sum(
                    1
                    for _ in takewhile(
                        lambda pair: pair[0] == pair[1], zip(before, digests, strict=False)
                    )
                )
            entries.append([shared, digests[shared:], known[id(tools)] if tools else None])
            before = digests
        lines.append(orjson.dumps({"key": key, "requests": entries}) + b"\n")
        return b"".join(lines)

    def write(self, lines: bytes) -> None:
        """Pass lines to the operating system, which are synced within a second; OSError if they cannot be written."""
        self._journal = self._journal or Journal(self._path)
        self._journal.append(lines)

    def close(self) -> None:
        """Sync and close; OSError if the last lines could not be written to disk."""
        if self._journal is not None:
            self._journal.close()

    def _store_content(self, kind: bytes, content: bytes, lines: list[bytes]) -> str:
        digest = sha256(content).digest()[: _HASH_DIGITS // 2]
        if digest not in self._known:
            self._known.add(digest)
            lines.append(b'%s%s","%s":%s}\n' % (_CONTENT, digest.hex().encode(), kind, content))
        return digest.hex()

    def _image(self, image: ImagePart) -> str:
        """Return a short URL for an image after writing it to ``artifacts/``."""
        media_type, _, encoded = image.url.removeprefix("data:").partition(";base64,")
        try:
            content = image.content or base64.b64decode(encoded, validate=True)
        except (Base64Error, ValueError):
            content = b""
        if not content or not image.url.startswith("data:"):
            return image.url
        digest = sha256(content).hexdigest()
        write_new(artifact_path(self._run, digest, _SUFFIXES.get(media_type, ".bin")), content)
        return f"data:{media_type};sha256,{digest}"

    def _recover(self) -> None:
        end = 0
        for line in complete_lines(self._path):
            end += len(line)
            if line.startswith(_CONTENT):
                with suppress(ValueError):
                    self._known.add(unhexlify(line[len(_CONTENT) : len(_CONTENT) + _HASH_DIGITS]))
        if self._path.stat().st_size > end:
            os.truncate(self._path, end)


def add_prompts(run: Path, target: Path, known: set[bytes]) -> None:
    """Append the prompts of ``run`` to those of the run ``target``, except damaged lines.

    ``known``: hashes of the contents that ``target`` has, which grow.
    """
    if not (run / PROMPTS_FILE).is_file():
        return
    with (target / PROMPTS_FILE).open("ab") as joined:
        for line in complete_lines(run / PROMPTS_FILE):
            digest = (
                line[len(_CONTENT) : len(_CONTENT) + _HASH_DIGITS]
                if line.startswith(_CONTENT)
                else b""
            )
            with suppress(ValueError):
                if digest not in known and (digest or orjson.loads(line)):
                    joined.write(line)
                    known |= {digest} - {b""}


class StoredImage(FrozenModel):
    """An image that was sent to a model."""

    sha256: str
    media_type: str
    file: str
    """Path relative to the run folder."""
    bytes: int | None
    """Size in bytes; None if the file is missing."""


class StoredRequest(NamedTuple):
    """A request that was sent to a model: messages and tools in wire format, except for the URLs of images."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    shared: int
    """Number of leading messages shared with the previous request."""


class StoredPrompts:
    """Index of the requests of a run, in one pass over ``prompts.jsonl``; only offsets are kept in memory.

    :meth:`read_on` adds what was written since.

    Raises:
        RunStoreError: the file cannot be read.
    """

    def __init__(self, run: Path) -> None:
        self._path = run / PROMPTS_FILE
        self._offsets: dict[bytes, int] = {}
        """Offset of the last line of each content and each key, by the beginning of the line."""
        self._end = 0
        self.read_on()

    def read_on(self) -> None:
        try:
            self._offsets.update(self._new_lines())
        except FileNotFoundError:
            return
        except _UNREADABLE as error:
            raise self._fault(error) from error

    def _new_lines(self) -> Iterator[tuple[bytes, int]]:
        for line in complete_lines(self._path, self._end):
            offset, self._end = self._end, self._end + len(line)
            is_content = line.startswith(_CONTENT)
            yield (
                line[: len(_CONTENT) + _HASH_DIGITS]
                if is_content
                else line.partition(_REQUESTS)[0],
                offset,
            )

    def of(self, key: Key) -> list[StoredRequest] | None:
        """Return the requests sent for a sample; None if none are stored; RunStoreError if they cannot be read."""
        try:
            with self._path.open("rb") as file:
                return self._read(file, key)
        except FileNotFoundError:
            return None
        except _UNREADABLE as error:
            raise self._fault(error) from error

    def _read(self, file: BinaryIO, key: Key) -> list[StoredRequest] | None:
        beginning = orjson.dumps({"key": key})[:-1]
        if beginning not in self._offsets:
            return None
        requests: list[StoredRequest] = []
        for shared, added, tools in self._line(file, beginning)["requests"]:
            messages = requests[-1].messages[:shared] if shared else []
            messages += [
                self._line(file, _CONTENT + digest.encode())["message"] for digest in added
            ]
            offered: list[dict[str, Any]] = (
                self._line(file, _CONTENT + tools.encode())["tools"] if tools else []
            )
            requests.append(StoredRequest(messages, offered, shared))
        return requests

    def _line(self, file: BinaryIO, beginning: bytes) -> dict[str, Any]:
        """Return the content of the last line that begins so; KeyError if there is none."""
        file.seek(self._offsets[beginning])
        return orjson.loads(file.readline())

    def _fault(self, error: Exception) -> RunStoreError:
        is_missing = isinstance(error, OSError)
        reason = (
            f"cannot be read: {error.strerror or error}" if is_missing else "is cut off or damaged"
        )
        return RunStoreError(
            f"{self._path} {reason}",
            hint="restore it from a copy of the run; records and scores do not depend on it",
        )


_UNREADABLE = (OSError, ValueError, LookupError, TypeError)


def stored_image(run: Path, url: str) -> StoredImage | None:
    """Return the image that a URL in a stored message refers to; None if it is not a reference to a stored image."""
    media_type, mark, digest = url.removeprefix("data:").partition(";sha256,")
    if not (mark and url.startswith("data:") and len(digest) == 64 and digest.isalnum()):
        return None
    path = artifact_path(run, digest, _SUFFIXES.get(media_type, ".bin"))
    size = path.stat().st_size if path.is_file() else None
    name = path.relative_to(run).as_posix()
    return StoredImage(sha256=digest, media_type=media_type, file=name, bytes=size)


def complete_lines(path: Path, start: int = 0) -> Iterator[bytes]:
    """Yield the complete lines of a file from an offset on."""
    with path.open("rb") as file:
        file.seek(start)
        yield from (line for line in file if line.endswith(b"\n"))
