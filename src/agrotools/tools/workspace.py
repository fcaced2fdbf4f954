"""Workspace of a tool: the files that it may read, and the folder for its artifacts.

Policies and tools know files by name. :class:`Workspace` is the host's side: from a name to a path, refusing all
that leads out. :func:`save_artifact` and :func:`file_info` are the tool's side, the same in a worker and in plain
Python.

Sidecars hold metadata that a photograph lacks: ``field.jpg.meta.json`` (or ``field.meta.json``) is an object with any
of ``gsd_m`` (metres per pixel), ``bands`` (names in file order), ``crs``, ``intrinsics`` (``fx_px``, ``fy_px``,
``cx_px``, ``cy_px``), ``depth_unit_mm``, ``classes`` (class number to meaning), ``width_px`` and ``height_px`` (of the
image that the intrinsics belong to), ``kind``, ``note``.

Published benchmarks name files by paths. Such a path is never opened: its end is compared with the listed files and
with the artifacts of earlier calls.
"""

import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from hashlib import sha256
from itertools import takewhile
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson
from pydantic import ValidationError

from agrotools.core import Artifact, SampleFile, ToolError
from agrotools.core.files import write_new

if TYPE_CHECKING:
    from PIL.Image import Image

    from agrotools.tools.services import Replies, VisionModel


def match_file(name: str, files: Sequence[SampleFile], artifacts: Path) -> str | None:
    """The name of the file or artifact that ``name`` is, or whose path ends as it does; None where there is not one."""
    path = Path(name)
    if str(path) in {file.name for file in files}:
        return str(path)
    if "\0" in name or ".." in path.parts or "\\" in name or name.startswith("~") or not path.name:
        return None
    alike = {file.name: file for file in files if path.name in (file.name, Path(file.path).name)}
    if not alike:
        return path.name if path.name[0] != "." and os.path.lexists(artifacts / path.name) else None
    # Of two files called alike in two folders, the one is meant whose folder is named too.
    common = {name: _common_ending(path, Path(file.path)) for name, file in alike.items()}
    best = [name for name, count in common.items() if count == max(common.values())]
    return best[0] if len(best) == 1 else None


def _common_ending(one: Path, other: Path) -> int:
    """Number of parts that two paths share at their ends."""
    pairs = zip(reversed(one.parts), reversed(other.parts), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


SUFFIX = ".meta.json"
_LARGEST_BYTES = 2**16
_KEYS = ("gsd_m", "bands", "crs", "intrinsics", "depth_unit_mm", "classes", "width_px", "height_px", "note", "kind")


def read_sidecar(path: Path) -> SampleFile | None:
    """Content of the sidecar of a file; None if there is none.

    Raises:
        ToolError: ``unreadable_file``, it is no JSON object with these keys.
    """
    for sidecar in (path.with_name(path.name + SUFFIX), path.with_name(path.stem + SUFFIX)):
        if sidecar.is_file():
            return _parsed(sidecar, path.name)
    return None


def _parsed(sidecar: Path, name: str) -> SampleFile:
    hint = f"it is a JSON object with any of: {', '.join(_KEYS)}"
    try:
        if sidecar.stat().st_size > _LARGEST_BYTES:
            raise ToolError("unreadable_file", f"{sidecar.name} is too large for a sidecar", hint=hint)
        said: Any = orjson.loads(sidecar.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise ToolError("unreadable_file", f"{sidecar.name} cannot be read: {error}", hint=hint) from error
    if not isinstance(said, dict):
        raise ToolError("unreadable_file", f"{sidecar.name} is no JSON object", hint=hint)
    unknown = sorted(str(key) for key in said if key not in _KEYS)
    if unknown:
        raise ToolError("unreadable_file", f"{sidecar.name} has unknown keys: {', '.join(unknown[:5])}", hint=hint)
    # The name is for messages; files of this machine may have names that a sample could not use.
    shown = "".join(
        letter if letter.isascii() and letter.isalnum() else "_-."["-.".find(letter) + 1] for letter in name
    )
    try:
        return SampleFile.model_validate(
            {"name": shown.lstrip("_-.")[:100] or "file", "path": name, "kind": "image", **said}
        )
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise ToolError("unreadable_file", f"{sidecar.name}: {where}: {fault['msg']}", hint=hint) from error


ArtifactKind = Literal["overlay", "mask", "plot", "image", "table"]

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".svg": "image/svg+xml",
    ".tif": "image/tiff",
    ".csv": "text/csv",
    ".json": "application/json",
}


class ArtifactWriteError(OSError):
    """An artifact cannot be written; any other system error is the tool's own."""


@dataclass(frozen=True)
class Workspace:
    """One sample's files, read-only and by name, and the folder its artifacts go to.

    ``files[].path`` is absolute. A file may be a link only if it stays inside ``root`` (None: inside its own folder).
    Artifacts of earlier calls can be named like files.
    """

    files: tuple[SampleFile, ...]
    artifacts: Path
    root: Path | None = None

    def resolve(self, name: str, *, by_last_part: bool = False) -> Path:
        """The real path of the file of that name.

        With ``by_last_part`` a path that is no such name stands for the listed file, or the artifact, called like
        its last part (``/data/image/a.jpg`` for ``a.jpg``); nothing else is looked up for it.

        Raises:
            ToolError: ``path_outside_workspace`` (absolute path, ``..``, link leading out), ``file_not_found`` with
                the closest names, ``unreadable_file`` (a folder, pipe or device).
        """
        if by_last_part:
            name = match_file(name, self.files, self.artifacts) or name
        name = _path_inside(name)
        for file in self.files:
            if file.name == name:
                path = Path(file.path)
                return _regular_file(path, name, within=self.root or path.parent)
        made = self.artifacts / name
        if _FILE_NAME.fullmatch(name) and os.path.lexists(made):
            return _regular_file(made, name, within=self.artifacts)
        raise _not_found(name, [file.name for file in self.files])

    def info(self, name: str) -> SampleFile | None:
        """Metadata of the file of that name, or of that last part; None for an artifact."""
        meant = match_file(name, self.files, self.artifacts)
        return next((file for file in self.files if file.name == meant), None)

    def keep(self, artifact: Artifact, content: bytes) -> Artifact:
        """Write an artifact under a name that is still free; equal content under the same name is written once."""
        return write_artifact(self.artifacts, artifact, content, {file.name for file in self.files})


def host_file(name: str) -> Path:
    """The file at a path of this machine, for tools that are called as plain Python.

    Raises:
        ToolError: ``file_not_found`` with the closest names in its folder, ``unreadable_file``.
    """
    if "\0" in name:
        raise ToolError("file_not_found", "a file name cannot hold a NUL character")
    path = Path(name).expanduser()
    try:
        exists = path.exists()
    except OSError as error:
        raise ToolError("file_not_found", f"{name[:100]!r} cannot be looked up: {error.strerror}") from error
    if not exists:
        raise _not_found(name, _check_kind(path), close_to=path.name)
    return _regular_file(path, name, within=None)


def _check_kind(path: Path) -> list[str]:
    """The files in the folder of ``path`` that may have been meant by it: by their suffix of its kind."""
    try:
        beside = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return []
    return [name for name in beside if not path.suffix or _kind_of_suffix(Path(name)) == _kind_of_suffix(path)]


def _kind_of_suffix(path: Path) -> str:
    """Kind of file by its suffix: ``image``, or the suffix itself."""
    guessed = guess_type(path.name)[0] or ""
    return "image" if guessed.startswith("image/") else path.suffix.lower()


def _path_inside(name: str) -> str:
    if "\0" in name:
        raise ToolError("path_outside_workspace", "a file name cannot hold a NUL character")
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or name.startswith("~"):
        raise ToolError(
            "path_outside_workspace",
            f"{name[:100]!r} leads out of the workspace",
            hint="use the name of a file exactly as it is listed, without folders",
        )
    return str(path)


def _not_found(name: str, known: list[str], close_to: str | None = None) -> ToolError:
    close = get_close_matches(close_to or name, known, n=3, cutoff=0.5)
    listed = close or (known if close_to is None else [])
    return ToolError(
        "file_not_found",
        f"there is no file {name[:100]!r}",
        hint=f"did you mean {' or '.join(close)}?" if close else f"files: {', '.join(listed)}" if listed else None,
        candidates=tuple(listed[:20]),
    )


def _regular_file(path: Path, name: str, within: Path | None) -> Path:
    try:
        real = path.resolve(strict=True)
        mode = real.stat().st_mode
    except (OSError, RuntimeError) as error:
        raise ToolError("file_not_found", f"the file {name!r} is listed but cannot be opened") from error
    if within is not None and not real.is_relative_to(within.resolve()):
        raise ToolError("path_outside_workspace", f"{name!r} is a link that leads out of the workspace")
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "no regular file"
        raise ToolError("unreadable_file", f"{name!r} is {what}", hint="name a file")
    return real


@dataclass
class CallContext:
    """Context of a running tool: metadata of its files, its back-end, and where artifacts go."""

    keep: Callable[[Artifact, bytes], Artifact]
    infos: Mapping[Path, SampleFile] = field(default_factory=dict)
    backend: str | None = None
    reads_sidecars: bool = False
    """True if metadata that ``infos`` lacks are read from a JSON file beside the image."""
    vision: "VisionModel | None" = None
    """Vision model of the back-end ``vlm``."""
    replies: "Replies | None" = None
    """Replies of services, in a worker; elsewhere services are called directly."""


_work: ContextVar[CallContext | None] = ContextVar("agrotools_work", default=None)


@contextmanager
def call_context(work: CallContext) -> Iterator[CallContext]:
    """Run a tool with these surroundings."""
    token = _work.set(work)
    try:
        yield work
    finally:
        _work.reset(token)


@contextmanager
def artifacts_in(
    folder: str | os.PathLike[str], *, backend: str | None = None, vision: "VisionModel | None" = None
) -> Iterator[Path]:
    """Tools that are called as plain Python inside this block leave their artifacts in ``folder``.

    ``backend`` is the way they do their work, where not the default; a tool that has no such back-end may ignore it.
    ``vision`` is the model that the back-end ``vlm`` asks.
    """
    where = Path(folder)
    current = _work.get()

    def keep(artifact: Artifact, content: bytes) -> Artifact:
        try:
            return write_artifact(where, artifact, content)
        except OSError as error:
            raise ArtifactWriteError(error.errno, error.strerror, error.filename or str(where)) from error

    work = CallContext(
        keep=keep,
        infos=current.infos if current else {},
        backend=backend or (current.backend if current else None),
        reads_sidecars=current.reads_sidecars if current else True,
        vision=vision or (current.vision if current else None),
        replies=current.replies if current else None,
    )
    with call_context(work):
        yield where


def file_info(path: Path) -> SampleFile | None:
    """Metadata of a file (bands, ground sampling distance, intrinsics, classes...), or None.

    In an evaluation that is what the sample says; for tools called as plain Python or from the command line, what a
    sidecar beside the file says.

    Raises:
        ToolError: ``unreadable_file``, a sidecar that is none.
    """
    work = _work.get()
    if work is not None and (path in work.infos or not work.reads_sidecars):
        return work.infos.get(path)
    return read_sidecar(path)


def shown_name(path: Path) -> str:
    """The name by which whoever called knows a file."""
    info = file_info(path)
    return info.name if info else path.name


def backend_in_use() -> str | None:
    """The back-end chosen for the running tool; None for its default."""
    work = _work.get()
    return work.backend if work else None


def vision_in_use() -> "VisionModel | None":
    """Vision model of the running tool; None if it has none."""
    work = _work.get()
    return work.vision if work else None


def replies_in_use() -> "Replies | None":
    """Replies of services to the running tool; None if it calls them itself."""
    work = _work.get()
    return work.replies if work else None


def save_artifact(name: str, kind: ArtifactKind, content: "Image | bytes") -> Artifact:
    """Keep something that a person would want to look at. Called by tools.

    Args:
        name: file name with extension: png, jpg, svg, tif, csv or json. The final name may get a number.
        kind: what it is.
        content: bytes as they shall lie in the file, or a Pillow image for png and jpg.

    Returns:
        The artifact; outside a worker it lies in ``agrotools-out`` or the folder of :func:`artifacts_in`.
    """
    suffix = Path(name).suffix
    if not _FILE_NAME.fullmatch(name) or suffix not in _MEDIA_TYPES:
        raise ValueError(f"an artifact cannot be called {name!r}")
    data = content if isinstance(content, bytes) else _encode(content, suffix)
    artifact = Artifact(name=name, kind=kind, media_type=_MEDIA_TYPES[suffix], sha256=sha256(data).hexdigest())
    work = _work.get()
    if work is None:
        return write_artifact(Path("agrotools-out"), artifact, data)
    return work.keep(artifact, data)


def _encode(image: "Image", suffix: str) -> bytes:
    buffer = io.BytesIO()
    if suffix == ".jpg":
        image.convert("RGB").save(buffer, "JPEG", quality=90)
    elif suffix == ".png":
        if image.mode == "RGB":
            return _quick_png(image)
        image.save(buffer, "PNG", compress_level=2)  # a third of the time of 6, a fifth more bytes
    else:
        raise ValueError(f"an image is kept as .png or .jpg, not {suffix}")
    return buffer.getvalue()


def _quick_png(image: "Image") -> bytes:
    """A colour picture as PNG in half the time that Pillow takes, which tries five filters on every row."""
    import cv2
    import numpy as np

    there, content = cv2.imencode(".png", cv2.cvtColor(np.asarray(image), cv2.COLOR_RGB2BGR))
    if not there:
        raise ValueError(f"a picture of {image.width} x {image.height} pixels cannot be kept as PNG")
    return content.tobytes()


def write_artifact(
    folder: Path, artifact: Artifact, content: bytes, taken: "frozenset[str] | set[str]" = frozenset()
) -> Artifact:
    """Write an artifact into ``folder`` under a name that is neither there nor in ``taken``."""
    stem, suffix = Path(artifact.name).stem, Path(artifact.name).suffix
    number = 1
    while True:
        name = artifact.name if number == 1 else f"{stem}_{number}{suffix}"
        number += 1
        if name not in taken and (write_new(folder / name, content) or _has_content(folder / name, content)):
            return artifact.model_copy(update={"name": name})


def _has_content(path: Path, content: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes() == content
