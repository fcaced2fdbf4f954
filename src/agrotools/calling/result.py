"""Tool results, their plain JSON form, and the frames exchanged between the executor and its workers.

A frame consists of the length of the JSON (4 bytes, big-endian), the total length of the artifact contents (8 bytes),
the JSON, and the contents one after the other. The JSON gives the length of each content.
"""

import base64
import html
import io
import math
import struct
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import orjson
from pydantic import BaseModel, ConfigDict, JsonValue, PrivateAttr

from agrotools.core import Artifact, ErrorInfo

if TYPE_CHECKING:
    from PIL.Image import Image

CERTIFICATES = Path(__file__).parents[1] / "data" / "certificates.json"
"""What the accuracy studies found about each tool. Written by ``studies/write_accuracy.py``."""
ARTIFACT_KEY = "$artifact"
"""Key of artifact placeholders: ``{"$artifact": n}`` in an encoded result is replaced by the n-th artifact's name."""


class ToolResult(BaseModel):
    """Base class of all tool results.

    Field names include the unit; a field of type ``Artifact`` is a file created by the tool. The docstring below a
    field is its description. ``notes`` explain the basis of the numbers (method, scale used); ``flags`` are short
    identifiers that warn of possible errors.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    _contents: dict[str, bytes] = PrivateAttr(default_factory=dict[str, bytes])
    _paths: dict[str, Path] = PrivateAttr(default_factory=dict[str, Path])

    def attach_files(self, contents: Mapping[str, bytes], paths: Mapping[str, Path]) -> None:
        """Add the contents and paths of written files, by name. Called by tools run in this process."""
        self._contents.update(contents)
        self._paths.update(paths)

    @property
    def paths(self) -> dict[str, Path]:
        """Paths of the files that were written, by name: artifacts, and maps of a georeferenced raster."""
        return dict(self._paths)

    @property
    def picture(self) -> "Image | None":
        """Picture to check the result by: its overlay, else its plot or image; None if it has none."""
        artifact = self._pictured()
        if artifact is None:
            return None
        from PIL import Image

        image = Image.open(io.BytesIO(self.content(artifact)))
        image.load()
        return image

    def content(self, artifact: Artifact) -> bytes:
        """Return the content of an artifact of a tool run in this process; KeyError if it was run elsewhere."""
        return self._contents[artifact.name]

    def artifact_fields(self) -> dict[str, Artifact]:
        """Return the artifacts of the result by the names of their fields."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in values.items() if isinstance(value, Artifact)}

    def _pictured(self) -> Artifact | None:
        kinds = ("overlay", "plot", "image", "mask")
        made = [
            each
            for each in self.artifact_fields().values()
            if each.name in self._contents and each.kind in kinds
        ]
        shown = [each for each in made if each.media_type in ("image/png", "image/jpeg")]
        return min(shown, key=lambda each: kinds.index(each.kind), default=None)

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(_shortened(value))}</td></tr>"
            for name, value in encode_result(self)[0].items()
            if value not in (None, [], {}) and not isinstance(getattr(self, name, None), Artifact)
        ]
        shown = ""
        if artifact := self._pictured():
            data = base64.b64encode(self.content(artifact)).decode()
            shown = f'<img alt="{artifact.name}" style="max-width:100%" src="data:{artifact.media_type};base64,{data}">'
        return f"<div>{shown}<table>{''.join(rows)}</table></div>"


_LONGEST_VALUE = 300


def _shortened(value: JsonValue) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


class ResultPart(BaseModel):
    """Base class of records inside a result."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True
    )


def encode_result(
    result: ToolResult, significant_digits: int | None = 6
) -> tuple[dict[str, JsonValue], tuple[Artifact, ...]]:
    """Return a result as JSON with placeholders for its artifacts, and the artifacts in order of appearance.

    Floats are rounded to ``significant_digits`` (None: not rounded). NaN and infinities become null because JSON has
    neither. Integers beyond 64 bits become floats. Notes and flags come last.
    """
    artifacts: list[Artifact] = []

    def plain(value: Any) -> JsonValue:
        if value is None or type(value) in (str, bool):
            return value
        if isinstance(value, Artifact):
            if value not in artifacts:
                artifacts.append(value)
            return {ARTIFACT_KEY: artifacts.index(value)}
        if isinstance(value, BaseModel):
            return {
                alias: plain(getattr(value, name)) for name, alias in _aliases(type(value)).items()
            }
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, Enum):
            return plain(value.value)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return round_significant(float(value), significant_digits)
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return round_significant(value, significant_digits)
        if hasattr(value, "tolist"):  # numpy scalars and arrays, without importing numpy
            return plain(value.tolist())
        if isinstance(value, (list, tuple, set, frozenset)):
            return [plain(item) for item in value]
        raise TypeError(f"a result cannot hold a {type(value).__name__}")

    encoded = cast(dict[str, JsonValue], plain(result))
    for name in ("notes", "flags"):
        encoded[name] = encoded.pop(name)
    return encoded, tuple(artifacts)


@cache
def _aliases(model: type[BaseModel]) -> dict[str, str]:
    return {name: field.alias or name for name, field in model.model_fields.items()}


def round_significant(value: float, significant_digits: int | None) -> float | None:
    """Round ``value`` to this number of significant digits (None: not at all); return None if it is not finite."""
    if not math.isfinite(value):
        return None
    return value if significant_digits is None else float(f"{value:.{significant_digits}g}")


def with_artifact_names(value: JsonValue, names: list[str]) -> JsonValue:
    """Return an encoded result with its artifact placeholders replaced by names."""
    if isinstance(value, dict):
        if value.keys() == {ARTIFACT_KEY}:
            return names[cast(int, value[ARTIFACT_KEY])]
        return {key: with_artifact_names(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [with_artifact_names(item, names) for item in value]
    return value


HEADER = struct.Struct(">IQ")

Reply = tuple[dict[str, Any], list[bytes]]
"""Message of a worker and the contents of its artifacts."""

OUT_OF_MEMORY = ErrorInfo(
    kind="limit",
    message="the tool ran out of the memory it may use",
    hint="use a smaller region or a smaller file",
)


def failure(error: ErrorInfo, log: str = "") -> Reply:
    """Return the reply for a failed call, with the end of its log."""
    return {"error": error.model_dump(), "log": log[-20_000:]}, []


LARGEST_MESSAGE = 16 * 2**20
LARGEST_CONTENT = 256 * 2**20


class BrokenFrame(Exception):
    """Invalid or missing frame: the other process ended or does not follow the format."""


def pack_frame(message: dict[str, Any], contents: Sequence[bytes] = ()) -> bytes:
    """Encode a message and its contents as one frame; OverflowError if they exceed the size limits."""
    if contents:
        message = {**message, "lengths": [len(content) for content in contents]}
    head = orjson.dumps(message, option=orjson.OPT_NON_STR_KEYS)
    total = sum(len(content) for content in contents)
    if len(head) > LARGEST_MESSAGE or total > LARGEST_CONTENT:
        raise OverflowError(f"the message has {len(head)} bytes and {total} bytes of artifacts")
    return b"".join((HEADER.pack(len(head), total), head, *contents))


def read_frame(source: BinaryIO) -> Reply | None:
    """Read the next frame, blocking; return None at the end of the stream."""
    header = source.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    head, total = HEADER.unpack(header)
    return unpack_frame(source.read(head), source.read(total))


def unpack_frame(head: bytes, rest: bytes) -> Reply:
    """Return the message and the contents of a frame after its header; BrokenFrame if the message is no JSON object."""
    try:
        message = orjson.loads(head)
        lengths = message.pop("lengths", [])
        contents: list[bytes] = []
        start = 0
        for length in lengths:
            contents.append(rest[start : start + length])
            start += length
    except (orjson.JSONDecodeError, AttributeError, TypeError) as error:
        raise BrokenFrame(f"the message is not a JSON object: {error}") from error
    return message, contents


@cache
def certificate(tool: str, version: str) -> dict[str, Any]:
    """Return what the accuracy studies found about a tool, and ``text``, the same on one line.

    Of a tool with a study: ``version`` of the tool and date (``measured``); numbers of ``subjects`` in photographs, of
    ``independent`` ones among them, and of drawn or written ones (``made``); ``coverage`` of its interval, of all, then
    of parts, the worst first, with 95 % intervals (Clopper and Pearson 1934); calls ``refused`` or flagged on pictures
    that the tool is made for (``known``, named in ``made_for``) and others (``strange``), as [number, calls]; in words,
    what it refuses; and its ``error`` on its ``own`` collection and ``elsewhere``.
    """
    found: dict[str, Any] = orjson.loads(CERTIFICATES.read_bytes()).get(
        tool, {"why": "no accuracy study"}
    )
    if "why" in found:
        return {**found, "text": found["why"]}
    other = "" if found["version"] == version else f" (this is version {version})"
    text = f"measured on version {found['version']}{other}, {found['measured']}: {found['subjects']} subjects in "
    text += f"photographs ({found['independent']} independent), {found['made']} drawn or written"
    for each in found["coverage"][:2]:
        below = ", below 80 %" if each["below_80"] else ""
        share, low = 100 * each["share"], 100 * each["low"]
        text += f"; {each['of']} covers {share:.1f} % of {each['subjects']} (at least {low:.1f} %{below})"
    error = found["error"]
    text += f"; elsewhere ({error['elsewhere']['of']}): {error['elsewhere']['text']}"
    text += f"; own collection ({error['own']['of']}): {error['own']['text']}"
    made_for = ", ".join(found["made_for"])
    pictures = {"known": f"pictures that it is made for ({made_for})", "strange": "others"}
    for kind, (number, calls) in found["refused"].items():
        text += f"; refuses or flags {number} of {calls} {pictures[kind]}"
    return {**found, "text": text}
