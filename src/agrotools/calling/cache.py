"""Cache of tool results, so that later models in a comparison reuse calls that an earlier one already made.

The size of the folder is bounded without an index, so any number of processes may share it and be killed at any time.
A process sweeps the folder if nobody has done so for a day, and whenever it has written another 2 % of the limit
itself. A sweep removes the files with the oldest modification times until 10 % of the limit is free. Reading a file
updates its modification time, at most once an hour. An entry whose artifact was removed counts as absent.
"""

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import file_digest, sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from platform import python_version
from typing import Any

import orjson
from filelock import FileLock, Timeout

from agrotools.calling.contract import Tool
from agrotools.calling.result import Reply
from agrotools.core import Arguments, Artifact, SampleFile, UsageError
from agrotools.core.files import cache_dir, write_whole
from agrotools.packages import package_tables

DEFAULT_LIMIT_MB = 5000.0
_MB = 10**6
_DAY_S, _HOUR_S = 86_400, 3600
_SHARE_BETWEEN_SWEEPS = 0.02
_SHARE_KEPT = 0.9
_MARK, _LOCK = ".swept", ".sweeping"


def limit_from_environment() -> float:
    """Return the megabytes of ``AGROTOOLS_CACHE_MB``, or the default; UsageError if it is no finite number >= 0."""
    text = os.environ.get("AGROTOOLS_CACHE_MB", "").strip() or str(DEFAULT_LIMIT_MB)
    with suppress(ValueError):
        if 0 <= (limit := float(text)) < float("inf"):
            return limit
    hint = "give megabytes, e.g. AGROTOOLS_CACHE_MB=2000"
    raise UsageError(f"AGROTOOLS_CACHE_MB is {text!r}, not a size", hint=hint)


class Sweeper:
    """Keeps the files below ``folder`` within about ``limit_mb`` megabytes (10^6 bytes). Thread-safe."""

    def __init__(self, folder: Path, limit_mb: float) -> None:
        self.folder = folder
        self.limit = limit_mb * _MB
        self._unswept = 0
        self._looked = False
        self._lock = threading.Lock()

    def mark_used(self, *paths: Path) -> None:
        """Mark these files as recently used."""
        now = time.time()
        for path in paths:
            with suppress(OSError):
                if now - path.stat().st_mtime > _HOUR_S:
                    os.utime(path)

    def record_write(self, size: int) -> None:
        """Record that ``size`` bytes were written, and sweep if a sweep is due."""
        with self._lock:
            self._unswept += size
            due = self._unswept > self.limit * _SHARE_BETWEEN_SWEEPS or (
                not self._looked and self._long_ago()
            )
            self._looked = True
            if due:
                self._unswept = 0
        if due:
            self.sweep()

    def sweep(self) -> int:
        """Remove the oldest files above the limit, unless another process does so; return the bytes removed."""
        with suppress(OSError, Timeout), FileLock(self.folder / _LOCK, timeout=0):
            (self.folder / _MARK).touch()
            return self._remove_oldest()
        return 0

    def _long_ago(self) -> bool:
        try:
            return time.time() - (self.folder / _MARK).stat().st_mtime > _DAY_S
        except OSError:
            return True

    def _remove_oldest(self) -> int:
        files: list[tuple[float, int, str]] = []
        removed = 0
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)  # noqa: PTH118 - tens of thousands of files
                with suppress(OSError):
                    status = os.stat(path)  # noqa: PTH116
                    if name not in (_MARK, _LOCK):
                        files.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return 0
        for _, size, path in sorted(files):
            if total - removed <= self.limit * _SHARE_KEPT:
                break
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108
                removed += size
        return removed


NUMERIC_LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-image",
    "opencv-python-headless",
    "rasterio",
    "pillow",
    "matplotlib",
    "simpleeval",
    "onnxruntime",
    "bm25s",
)
_TOOL_CODE = ("core", "text", "vision", "models", "knowledge", "calling")
"""Rooms of the engine that the result of a tool can depend on."""
_MOST_HASHES = 100_000
"""Maximum number of file hashes held in memory, whatever the number of files in a benchmark."""


class ResultCache:
    """Results of tool calls on disk, each stored with its checksum, and artifacts by the hash of their content.

    Entries are written atomically; an entry with a wrong checksum counts as absent. Any number of processes may share
    a folder. Above ``limit_mb`` (default: ``AGROTOOLS_CACHE_MB``, else 5,000) the least recently used entries are
    removed, see :mod:`agrotools.calling.cache`.

    Raises:
        UsageError: ``AGROTOOLS_CACHE_MB`` is not a valid size.
    """

    def __init__(self, folder: Path | None = None, limit_mb: float | None = None) -> None:
        self.folder = folder or cache_dir("tool-results")
        self._sweeper = Sweeper(
            self.folder, limit_from_environment() if limit_mb is None else limit_mb
        )
        self._hashes: dict[tuple[str, int, int, int], str] = {}

    def key(
        self,
        tool: Tool[..., Any],
        backend: str,
        arguments: Arguments,
        paths: Mapping[str, Path],
        infos: Mapping[str, SampleFile | None],
    ) -> str:
        """Return the cache key of a call: a hash of everything that can change its result. ``paths`` and ``infos``:
        path and metadata of each file of the call by name. OSError: a file cannot be read; ToolError: the value of
        the back-end is not usable."""
        known = {
            name: info.model_dump(mode="json", exclude={"path", "sha256"})
            for name, info in infos.items()
            if info
        }
        parts = {
            "tool": tool.name,
            "version": tool.version,
            "backend": backend,
            "arguments": arguments,
            "files": {name: self.file_hash(path) for name, path in paths.items()},
            "infos": known,
            "data_files": {
                str(path): self.file_hash(path)
                for path in tool.files_for(backend)
                if path.is_file()
            },
            "code": code_hash(tool.function.__module__),
            "libraries": library_versions(),
        }
        return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def get(self, key: str) -> Reply | None:
        """Return the result stored under ``key`` with the contents of its artifacts, or None."""
        try:
            digest, _, body = self._entry_path(key).read_bytes().partition(b"\n")
            if sha256(body).hexdigest().encode() != digest:
                return None
            entry = orjson.loads(body)
            hashes = [artifact["sha256"] for artifact in entry["artifacts"]]
            contents = [self._artifact_path(digest).read_bytes() for digest in hashes]
        except OSError:
            return None
        if any(
            sha256(content).hexdigest() != digest
            for content, digest in zip(contents, hashes, strict=True)
        ):
            return None
        self._sweeper.mark_used(self._entry_path(key), *map(self._artifact_path, hashes))
        if entry["error"]:
            return {"error": entry["error"]}, []
        return {"result": entry["result"], "artifacts": entry["artifacts"]}, contents

    def put(self, key: str, reply: Reply) -> None:
        """Store a result. If the disk is full or read-only, the entry is lost but no error is raised."""
        (message, contents), nothing = reply, {"result": None, "error": None, "artifacts": []}
        entry = {name: message.get(name, default) for name, default in nothing.items()}
        body = orjson.dumps(entry)
        try:
            for artifact, content in zip(entry["artifacts"], contents, strict=True):
                _write(self._artifact_path(artifact["sha256"]), content)
            _write(self._entry_path(key), sha256(body).hexdigest().encode() + b"\n" + body)
        except OSError:
            return
        self._sweeper.record_write(len(body) + sum(map(len, contents)))

    def artifact(self, artifact: Artifact) -> Path | None:
        """Return the path of the content of ``artifact``, or None if it is not in the cache or was altered."""
        digest = artifact.sha256 or ""
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            return None
        path = self._artifact_path(digest)
        try:
            return path if path.is_file() and self.file_hash(path) == digest else None
        except OSError:
            return None

    def _entry_path(self, key: str) -> Path:
        return self.folder / "results" / key[:2] / f"{key}.json"

    def _artifact_path(self, digest: str) -> Path:
        return self.folder / "artifacts" / digest[:2] / digest

    def file_hash(self, path: Path) -> str:
        """Return the hash of a file's content, computed again only if the file has changed."""
        status = path.stat()
        stamp = (os.fspath(path), status.st_ino, status.st_size, status.st_mtime_ns)
        if (known := self._hashes.get(stamp)) is not None:
            return known
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        if len(self._hashes) >= _MOST_HASHES:
            self._hashes.clear()
        self._hashes[stamp] = digest
        return digest


@cache
def library_versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that results of tools can depend on."""
    versions = {"python": python_version()}
    for name in NUMERIC_LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "absent"
    return versions


@cache
def code_hash(module: str) -> str:
    """Return a hash of the source code that the tool in ``module`` can depend on, so that code changes void results.

    It covers the rooms of the engine that tools use, the packages of this distribution that have tools, because tools
    of others may call them, and the top-level package or module of the tool itself.
    """
    engine = Path(__file__).parents[1]
    sources = {path for room in _TOOL_CODE for path in (engine / room).rglob("*.py")}
    packages = {table.package for table in package_tables() if table.tools}
    for package in {*packages, module.partition(".")[0]} - {engine.name}:
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            origin = Path(spec.origin)
            is_package = origin.name == "__init__.py"
            sources |= set(origin.parent.rglob("*.py")) if is_package else {origin}
    digest = sha256()
    for path in sorted(sources):
        digest.update(path.name.encode() + b"\0" + sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(
        path, content, synced=False
    )  # a file truncated by a power failure fails its checksum
