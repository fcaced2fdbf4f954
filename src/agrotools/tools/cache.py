"""The result cache: the second model of a comparison does not wait for work that the first one already caused."""

import os
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import file_digest, sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from platform import python_version
from typing import Any

import orjson
from pydantic import ValidationError

from agrotools.core import Arguments, Artifact, ErrorInfo, Noun, SampleFile
from agrotools.core.paths import cache_dir
from agrotools.tools.contract import Tool
from agrotools.tools.frames import Reply
from agrotools.tools.workspace import write_whole

NUMERIC_LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-image",
    "opencv-python-headless",
    "rasterio",
    "pillow",
    "matplotlib",
    "simpleeval",
)
_TOOL_CODE = ("core", "text", "vision", "models", "knowledge", "tools")
"""Packages of ours that the result of a tool can depend on."""


class _Entry(Noun):
    result: dict[str, Any] | None = None
    error: ErrorInfo | None = None
    artifacts: tuple[Artifact, ...] = ()


class ResultCache:
    """Results of tool calls on disk, each beside the hash of itself; artifacts by the hash of their content.

    Entries are written whole or not at all. One that does not read back as it was written counts as absent. Any
    number of processes may share a folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_dir("tool-results")
        self._hashes: dict[tuple[str, int, int, int], str] = {}

    def key(
        self,
        tool: Tool[..., Any],
        backend: str,
        arguments: Arguments,
        paths: Mapping[str, Path],
        infos: Mapping[str, SampleFile | None],
    ) -> str:
        """The name of a call's result: equal calls have equal keys, and whatever can change the result is in it.

        Args:
            arguments: canonical, files by name.
            paths: each file that the arguments name, and where it lies.
            infos: what the sample says of those files; tools see that too.
        """
        known = {name: info.model_dump(mode="json", exclude={"path", "sha256"}) for name, info in infos.items() if info}
        parts = {
            "tool": tool.name,
            "version": tool.version,
            "backend": backend,
            "arguments": arguments,
            "files": {name: self._hash(path) for name, path in paths.items()},
            "infos": known,
            "data_files": {str(path): self._hash(path) for path in tool.data_files if path.is_file()},
            "code": code_hash(tool.function.__module__),
            "libraries": _library_versions(),
        }
        return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def get(self, key: str) -> Reply | None:
        """The result under ``key`` with the contents of its artifacts, or None."""
        try:
            digest, _, body = self._entry_path(key).read_bytes().partition(b"\n")
            if sha256(body).hexdigest().encode() != digest:
                return None
            entry = _Entry.model_validate_json(body)
            contents = [self._artifact_path(artifact).read_bytes() for artifact in entry.artifacts]
        except (OSError, ValidationError):
            return None
        for artifact, content in zip(entry.artifacts, contents, strict=True):
            if sha256(content).hexdigest() != artifact.sha256:
                return None
        if entry.error:
            return {"error": entry.error.model_dump()}, []
        return {"result": entry.result, "artifacts": [artifact.model_dump() for artifact in entry.artifacts]}, contents

    def put(self, key: str, reply: Reply) -> None:
        """Keep a result. A disk that is full or read-only costs the entry, not the run."""
        message, contents = reply
        entry = _Entry(
            result=message.get("result"),
            error=message.get("error"),
            artifacts=message.get("artifacts", ()),
        )
        body = entry.model_dump_json().encode()
        try:
            for artifact, content in zip(entry.artifacts, contents, strict=True):
                write_whole(self._artifact_path(artifact), content)
            write_whole(self._entry_path(key), sha256(body).hexdigest().encode() + b"\n" + body)
        except OSError:
            return

    def _entry_path(self, key: str) -> Path:
        return self.folder / "results" / key[:2] / f"{key}.json"

    def _artifact_path(self, artifact: Artifact) -> Path:
        digest = artifact.sha256 or ""
        return self.folder / "artifacts" / digest[:2] / digest

    def _hash(self, path: Path) -> str:
        """Hash of a file's content, taken again only where the file has changed."""
        status = path.stat()
        stamp = (os.fspath(path), status.st_ino, status.st_size, status.st_mtime_ns)
        if stamp not in self._hashes:
            with path.open("rb") as file:
                self._hashes[stamp] = file_digest(file, "sha256").hexdigest()
        return self._hashes[stamp]


@cache
def _library_versions() -> dict[str, str]:
    versions = {"python": python_version()}
    for name in NUMERIC_LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "absent"
    return versions


@cache
def code_hash(module: str) -> str:
    """Hash of the source that the tool in ``module`` can depend on, so that nobody who mends a tool sees old results.

    For a tool of ours these are the packages below the tools; for a plug-in its own top package or module.
    """
    ours = Path(__file__).parents[1]
    sources = [path for package in _TOOL_CODE for path in (ours / package).rglob("*.py")]
    if not module.startswith("agrotools."):
        sources += _sources_of(module.partition(".")[0])
    return _hash_of_sources(sorted(sources))


def _sources_of(package: str) -> Iterable[Path]:
    found = find_spec(package)
    if found is None or found.origin is None:
        return []
    origin = Path(found.origin)
    return origin.parent.rglob("*.py") if origin.name == "__init__.py" else [origin]


def _hash_of_sources(paths: Iterable[Path]) -> str:
    digest = sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + sha256(path.read_bytes()).digest())
    return digest.hexdigest()
