"""Files of one sample as a tool server gets them: copies in a folder of their own, which it may write to.

Whoever calls names files as in every call. An argument that names one becomes its path in the folder, or its bytes
where the schema asks for these. Names outside are refused as :mod:`agrotools.calling.workspace` refuses them.
"""

import base64
import mimetypes
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import orjson

from agrotools.calling.workspace import SIDECAR_KEYS, SUFFIX, Workspace, path_inside
from agrotools.core import SampleFile, ToolError

_MADE = "made"
"""Subfolder of the files that earlier calls made; apart, because a server may give its next file an equal name."""
_AS_BYTES = frozenset({"base64", "byte", "binary"})
"""Values of ``contentEncoding`` and ``format`` of an argument that takes the content of a file."""
_FILE_SCHEME = "file://"


@dataclass(frozen=True)
class SampleFolder:
    """Folder of the files of one sample, and the workspace that they come from."""

    workspace: Workspace
    path: Path

    def lay_out(self) -> None:
        """Copy the files of the sample, pictures upright, each with a sidecar of what is known about it."""
        from agrotools.vision.reading import copy_upright

        for file in self.workspace.files:
            is_picture = file.kind in ("image", "mask")
            copy = copy_upright if is_picture else shutil.copyfile
            copy(self.workspace.resolve(file.name), self.path / file.name)
            if about := _sidecar(file):
                (self.path / (file.name + SUFFIX)).write_bytes(about)

    def given(self, value: Any, schema: Mapping[str, Any]) -> Any:
        """Return the value of an argument with files in the form that its schema asks for.

        Raises:
            ToolError: ``path_outside_workspace``, or a file that was listed and is gone.
        """
        if isinstance(value, list):
            inner: Any = schema.get("items")
            of_items = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
            return [self.given(item, of_items) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            return {key: self.given(item, {}) for key, item in table.items()}
        if not isinstance(value, str):
            return value
        path = self._path_of(value)
        if path is None:
            return value
        if takes_bytes(schema) and path.is_file():
            return base64.b64encode(path.read_bytes()).decode()
        return str(path)

    def _path_of(self, text: str) -> Path | None:
        """Return the path that a text means: that of a file, or of one that the server is to write; None if none."""
        if text in {file.name for file in self.workspace.files}:
            return self.path / text
        made = self.workspace.artifacts / text
        if text == Path(text).name and made.is_file():
            return self._copied(self.workspace.resolve(text))
        plain = unquote(text.removeprefix(_FILE_SCHEME)) if text.startswith(_FILE_SCHEME) else text
        if Path(plain).is_relative_to(self.path) and ".." not in Path(plain).parts:
            return Path(plain)
        has_no_line_break = "\n" not in plain
        if has_no_line_break and (plain.startswith(("/", "~/")) or ".." in plain.split("/")):
            path_inside(plain)
        is_there = has_no_line_break and len(plain) < 200 and (self.path / plain).is_file()
        if is_there or _is_file_name(plain):
            return self.path / path_inside(plain)
        return None

    def _copied(self, made: Path) -> Path:
        """Return the copy of a file that an earlier call made."""
        copy = self.path / _MADE / made.name
        if not copy.exists():
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(made, copy)
        return copy

    def without_paths(self, value: Any) -> Any:
        """Return a result or message with the files of the folder by name: its path differs from run to run."""
        if isinstance(value, str):
            return value.replace(f"{_FILE_SCHEME}{self.path}/", "").replace(f"{self.path}/", "")
        if isinstance(value, list):
            return [self.without_paths(item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            return {key: self.without_paths(item) for key, item in table.items()}
        return value


def _sidecar(file: SampleFile) -> bytes:
    """Return what is known about a file as the content of its sidecar; empty if it is its kind alone."""
    about = file.model_dump(mode="json", include={*SIDECAR_KEYS}, exclude_none=True)
    return orjson.dumps(about) if about.keys() != {"kind"} else b""


def takes_bytes(schema: Mapping[str, Any]) -> bool:
    """True if an argument takes the content of a file, in one of the forms of its schema."""
    others = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return any(
        str(each.get(key, "")).lower() in _AS_BYTES
        for each in (schema, *others)
        for key in ("contentEncoding", "format")
    )


def _is_file_name(text: str) -> bool:
    """True for one word with the ending of a known kind of file, such as ``mask.png``: a file that may be written."""
    return (
        len(text.split()) == 1 and mimetypes.guess_type(text)[0] is not None and ("://" not in text)
    )


def check_arguments(name: str, arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Check the names of arguments against a schema; ToolError ``invalid_argument`` names all faults."""
    known: Any = schema.get("properties", {})
    required: Any = schema.get("required", [])
    is_open = schema.get("additionalProperties") not in (None, False)
    faults = [f"{each} is unknown" for each in arguments if each not in known and not is_open]
    faults += [f"{each} is missing" for each in required if each not in arguments]
    if faults:
        raise ToolError(
            "invalid_argument",
            f"{name}: {'; '.join(faults)}",
            hint=f"arguments: {', '.join(known) or 'none'}",
        )
