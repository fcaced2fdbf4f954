"""Workspace of a tool: the files it may read, and the folder for its artifacts.

Policies and tools refer to files by name. :class:`Workspace` is the host side: it resolves names to paths and refuses
paths outside the workspace. :func:`save_artifact` and :func:`file_info` are the tool side and work the same in a worker
and in plain Python.

Sidecar files add metadata that a photograph lacks: ``field.jpg.meta.json`` (or ``field.meta.json``) is a JSON object
with any of ``gsd_m`` (metres per pixel), ``bands`` (names in file order), ``crs``, ``intrinsics`` (``fx_px``,
``fy_px``, ``cx_px``, ``cy_px``), ``depth_unit_mm``, ``classes`` (class number to meaning), ``width_px`` and
``height_px`` (of the image that the intrinsics belong to), ``kind``, ``note``.

Published benchmarks refer to files by path. Such a path is never opened; only its last parts are compared with the
listed files and with the artifacts of earlier calls.
"""

import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from hashlib import sha256
from itertools import takewhile
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson
from pydantic import ValidationError

from agrotools.core import Artifact, SampleFile, ToolError
from agrotools.core.files import read_text, write_new

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    from agrotools.calling.services import Replies, VisionModel
    from agrotools.vision import Box


def match_file(name: str, files: Sequence[SampleFile], artifacts: Path) -> str | None:
    """Return the one file or artifact that ``name`` names, in whole or by the end of its path, else None."""
    path = Path(name)
    if str(path) in {file.name for file in files}:
        return str(path)
    if "\0" in name or ".." in path.parts or "\\" in name or name.startswith("~") or not path.name:
        return None
    alike = {file.name: file for file in files if path.name in (file.name, Path(file.path).name)}
    if not alike:
        return path.name if path.name[0] != "." and os.path.lexists(artifacts / path.name) else None
    # If files in different folders share a name, the folders in the path decide.
    common: dict[str, int] = {}
    for candidate, file in alike.items():
        pairs = zip(reversed(path.parts), reversed(Path(file.path).parts), strict=False)
        common[candidate] = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    best = [name for name, count in common.items() if count == max(common.values())]
    return best[0] if len(best) == 1 else None


SUFFIX = ".meta.json"
_LARGEST_BYTES = 2**16
SIDECAR_KEYS = (
    "gsd_m",
    "bands",
    "crs",
    "intrinsics",
    "depth_unit_mm",
    "classes",
    "width_px",
    "height_px",
    "note",
    "kind",
)


def read_sidecar(path: Path) -> SampleFile | None:
    """Return the sidecar of a file or None; ToolError ``unreadable_file`` if it is no object with allowed keys."""
    return next(
        (_parsed(sidecar, path.name) for sidecar in sidecars(path) if sidecar.is_file()), None
    )


def sidecars(path: Path) -> tuple[Path, Path]:
    """Return the possible sidecars of a file."""
    return path.with_name(path.name + SUFFIX), path.with_name(path.stem + SUFFIX)


def _parsed(sidecar: Path, name: str) -> SampleFile:
    hint = f"it is a JSON object with any of: {', '.join(SIDECAR_KEYS)}"
    try:
        if sidecar.stat().st_size > _LARGEST_BYTES:
            raise ToolError(
                "unreadable_file", f"{sidecar.name} is too large for a sidecar", hint=hint
            )
        said: Any = orjson.loads(read_text(sidecar))
    except (OSError, ValueError) as error:
        raise ToolError(
            "unreadable_file", f"{sidecar.name} cannot be read: {error}", hint=hint
        ) from error
    if not isinstance(said, dict):
        raise ToolError("unreadable_file", f"{sidecar.name} is not a JSON object", hint=hint)
    unknown = sorted(str(key) for key in said if key not in SIDECAR_KEYS)
    if unknown:
        raise ToolError(
            "unreadable_file",
            f"{sidecar.name} has unknown keys: {', '.join(unknown[:5])}",
            hint=hint,
        )
    # The name is only used in messages; local files may have names that are not allowed in a sample.
    shown = "".join(
        letter if letter.isascii() and letter.isalnum() else "_-."["-.".find(letter) + 1]
        for letter in name
    )
    try:
        return SampleFile.model_validate(
            {"name": shown.lstrip("_-.")[:100] or "file", "path": name, "kind": "image", **said}
        )
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise ToolError(
            "unreadable_file", f"{sidecar.name}: {where}: {fault['msg']}", hint=hint
        ) from error


ArtifactKind = Literal["overlay", "mask", "plot", "image", "table"]

_MOST_NAMED = 5
"""Maximum number of files of a folder in a hint if no name is close."""
ARTIFACT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".svg": "image/svg+xml",
    ".tif": "image/tiff",
    ".csv": "text/csv",
    ".json": "application/json",
    ".geojson": "application/geo+json",
}


class ArtifactWriteError(OSError):
    """Error for an artifact that cannot be written, as opposed to a system error raised by the tool itself."""


@dataclass(frozen=True)
class Workspace:
    """Read-only files of one sample by name, and the folder for its artifacts.

    ``files[].path`` is absolute. A file may be a link only if its target is inside ``root`` (None: inside the file's
    own folder). Artifacts of earlier calls can be referred to by name, like files.
    """

    files: tuple[SampleFile, ...]
    artifacts: Path
    root: Path | None = None

    def resolve(self, name: str, *, by_last_part: bool = False) -> Path:
        """Return the real path of the file or artifact with this name; ``by_last_part``: also of a path that ends in
        it (``/data/image/a.jpg`` for ``a.jpg``), and nothing else is opened. ToolError ``path_outside_workspace``
        (absolute path, ``..``, link leading out), ``file_not_found`` with the closest names, ``unreadable_file`` (a
        folder, pipe or device)."""
        if by_last_part:
            name = match_file(name, self.files, self.artifacts) or name
        name = path_inside(name)
        for file in self.files:
            if file.name == name:
                path = Path(file.path)
                return regular_file(path, name, within=self.root or path.parent)
        made = self.artifacts / name
        if ARTIFACT_NAME.fullmatch(name) and os.path.lexists(made):
            return regular_file(made, name, within=self.artifacts)
        raise file_not_found(name, [file.name for file in self.files])

    def info(self, name: str) -> SampleFile | None:
        """Return the metadata of the file with this name or last path part, or None for an artifact."""
        meant = match_file(name, self.files, self.artifacts)
        return next((file for file in self.files if file.name == meant), None)

    def keep(self, artifact: Artifact, content: bytes) -> Artifact:
        """Write an artifact under an unused name; equal content with the same name is written only once."""
        return write_artifact(self.artifacts, artifact, content, {file.name for file in self.files})


def host_file(name: str) -> Path:
    """Return the real path of a local file, for tools that are called as plain Python; errors as of
    :func:`regular_file`."""
    if "\0" in name:
        raise ToolError("file_not_found", "a file name cannot hold a NUL character")
    path = Path(name).expanduser()
    try:
        exists = path.exists()
    except OSError as error:
        raise ToolError(
            "file_not_found", f"{name[:100]!r} cannot be looked up: {error.strerror}"
        ) from error
    if not exists:
        raise file_not_found(name, _check_kind(path), close_to=path.name)
    return regular_file(path, name, within=None)


def _check_kind(path: Path) -> list[str]:
    """Return the names of files in the same folder whose suffix is of the same kind, as possible matches."""
    try:
        beside = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return []
    return [
        name
        for name in beside
        if not path.suffix or _kind_of_suffix(Path(name)) == _kind_of_suffix(path)
    ]


def _kind_of_suffix(path: Path) -> str:
    """Return ``image`` for image suffixes, else the suffix itself."""
    guessed = guess_type(path.name)[0] or ""
    return "image" if guessed.startswith("image/") else path.suffix.lower()


def path_inside(
    name: str, hint: str = "use the name of a file exactly as it is listed, without folders"
) -> str:
    """Return a relative name without a way out of its folder, else ToolError ``path_outside_workspace``."""
    if "\0" in name:
        raise ToolError("path_outside_workspace", "a file name cannot hold a NUL character")
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or name.startswith("~"):
        raise ToolError(
            "path_outside_workspace", f"{name[:100]!r} leads out of the workspace", hint=hint
        )
    return str(path)


def file_not_found(name: str, known: list[str], close_to: str | None = None) -> ToolError:
    """Return the error for a name that no file has, with the closest of the ``known`` names."""
    listed = close = get_close_matches(close_to or name, known, n=3, cutoff=0.5)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    elif close_to is None:
        listed, hint = known, f"files: {', '.join(known)}" if known else None
    else:
        nothing = "the folder has no file of this kind; give the path of a file"
        hint = f"files: {', '.join(known[:_MOST_NAMED])}" if known else nothing
    why = f"there is no file {name[:100]!r}"
    return ToolError("file_not_found", why, hint=hint, candidates=tuple(listed[:20]))


def regular_file(path: Path, name: str, within: Path | None) -> Path:
    """Return the real path of a regular file. ToolError ``file_not_found``; ``path_outside_workspace`` (a link out
    of ``within``); ``unreadable_file``."""
    try:
        real = path.resolve(strict=True)
        mode = real.stat().st_mode
    except (OSError, RuntimeError) as error:
        raise ToolError(
            "file_not_found", f"the file {name!r} is listed but cannot be opened"
        ) from error
    if within is not None and not real.is_relative_to(within.resolve()):
        raise ToolError(
            "path_outside_workspace", f"{name!r} is a link that leads out of the workspace"
        )
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise ToolError("unreadable_file", f"{name!r} is {what}", hint="name a file")
    return real


@dataclass(frozen=True, eq=False)
class MapLayer:
    """Map of a measured quantity. ``values``: float32 (rows, columns), NaN without data, of the part ``box`` of the
    raster, perhaps reduced by a whole factor. ``marked``: bool (rows, columns), areas to be outlined.
    """

    name: str
    values: "NDArray[np.float32]"
    meaning: str
    marked: "NDArray[np.bool_]"
    marked_as: str
    box: "Box"


@dataclass
class CallContext:
    """Context of a running tool: metadata of its files, its back-end, and the storage of artifacts."""

    keep: Callable[[Artifact, bytes], Artifact]
    infos: Mapping[Path, SampleFile] = field(default_factory=dict)
    backend: str | None = None
    reads_sidecars: bool = False
    """True if metadata missing from ``infos`` is read from sidecar files."""
    vision: "VisionModel | None" = None
    """Vision model of the back-end ``vlm``."""
    replies: "Replies | None" = None
    """Replies of services, if the tool runs in a worker; outside of workers services are called directly."""
    layers: "list[MapLayer] | None" = None
    """Collected maps, if the caller wants them."""
    folder: Path | None = None
    """Folder that ``keep`` writes to, if it is one of the caller."""


def _unwritten(artifact: Artifact, _content: bytes) -> Artifact:
    """Return the artifact of a caller who gave no folder; nothing is written."""
    return artifact


_outside_of_calls = CallContext(_unwritten, reads_sidecars=True)
_work: ContextVar[CallContext] = ContextVar("agrotools_work", default=_outside_of_calls)


@contextmanager
def call_context(work: CallContext) -> Iterator[CallContext]:
    """Set the context of the tools that run inside the block."""
    token = _work.set(work)
    try:
        yield work
    finally:
        _work.reset(token)


@contextmanager
def artifacts_in(
    folder: str | os.PathLike[str],
    *,
    backend: str | None = None,
    vision: "VisionModel | None" = None,
) -> Iterator[Path]:
    """Write the artifacts of tools that are called as plain Python inside the block to ``folder``. ``backend``
    replaces the default back-end, if the tool has it; ``vision`` is the model of ``vlm``."""
    where, current = Path(folder), _work.get()

    def keep(artifact: Artifact, content: bytes) -> Artifact:
        try:
            return write_artifact(where, artifact, content)
        except OSError as error:
            raise ArtifactWriteError(
                error.errno, error.strerror, error.filename or str(where)
            ) from error

    work = replace(
        current,
        keep=keep,
        backend=backend or current.backend,
        vision=vision or current.vision,
        folder=where,
    )
    with call_context(work):
        yield where


@contextmanager
def collect_files(
    folder: Path | None,
) -> Iterator[tuple[dict[str, bytes], dict[str, Path], list[MapLayer]]]:
    """Provide the contents and paths by name, and the maps, of the files of the tool that runs inside the block, which
    are written to ``folder``, else to that of :func:`artifacts_in`; without either there are no paths."""
    contents, paths, layers = dict[str, bytes](), dict[str, Path](), list[MapLayer]()
    with ExitStack() as stack:
        if folder is not None:
            stack.enter_context(artifacts_in(folder))
        work = _work.get()

        def keep(artifact: Artifact, content: bytes) -> Artifact:
            name, number = artifact.name, 1
            while work.keep is _unwritten and contents.get(name, content) != content:
                number += 1
                name = _numbered(artifact.name, number)
            stored = work.keep(artifact.model_copy(update={"name": name}), content)
            contents[stored.name] = content
            if work.folder is not None:
                paths[stored.name] = work.folder / stored.name
            return stored

        stack.enter_context(
            call_context(replace(work, keep=keep, layers=None if folder is None else layers))
        )
        yield contents, paths, layers


def add_map_layer(layer: Callable[[], MapLayer]) -> None:
    """Add a map to those that the caller wants. Called by tools; ``layer`` is not called where no maps are wanted."""
    if (layers := _work.get().layers) is not None:
        layers.append(layer())


def file_info(path: Path) -> SampleFile | None:
    """Return the metadata of a file (bands, ground sampling distance, intrinsics, classes...), or None: of the
    sample in an evaluation, else of a sidecar file. ToolError ``unreadable_file``: the sidecar is invalid."""
    work = _work.get()
    return (
        work.infos.get(path)
        if path in work.infos or not work.reads_sidecars
        else read_sidecar(path)
    )


def shown_name(path: Path) -> str:
    """Return the name by which the caller knows a file."""
    info = file_info(path)
    return info.name if info else path.name


def backend_in_use() -> str | None:
    """Return the back-end chosen for the running tool, or None for its default."""
    return _work.get().backend


def vision_in_use() -> "VisionModel | None":
    """Return the vision model of the running tool, or None."""
    return _work.get().vision


def replies_in_use() -> "Replies | None":
    """Return the replies of services to the running tool, or None if it calls services directly."""
    return _work.get().replies


def save_artifact(
    name: str, kind: ArtifactKind, content: "Image | NDArray[np.uint8] | bytes"
) -> Artifact:
    """Save a file for people to view: bytes, or for png and jpg a Pillow image or uint8 (rows, columns, 3).

    Called by tools. Outside a worker it is written to the folder of the call or of :func:`artifacts_in`, if any,
    perhaps with a number added to its name; the result of the tool holds its content. ValueError: the name or its
    extension (png, jpg, svg, tif, csv, json, geojson) is not allowed.
    """
    suffix = Path(name).suffix
    if not ARTIFACT_NAME.fullmatch(name) or suffix not in _MEDIA_TYPES:
        raise ValueError(f"{name!r} is not a valid artifact name")
    data = content if isinstance(content, bytes) else _encode(content, suffix)
    artifact = Artifact(
        name=name, kind=kind, media_type=_MEDIA_TYPES[suffix], sha256=sha256(data).hexdigest()
    )
    return _work.get().keep(artifact, data)


def _encode(picture: "Image | NDArray[np.uint8]", suffix: str) -> bytes:
    from PIL import Image

    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    buffer = io.BytesIO()
    if suffix == ".jpg":
        image.convert("RGB").save(buffer, "JPEG", quality=90)
    elif suffix == ".png":
        image.save(
            buffer, "PNG", compress_level=2
        )  # a third of the time of level 6, 20 % more bytes
    else:
        raise ValueError(f"an image can be saved as .png or .jpg, not {suffix}")
    return buffer.getvalue()


def write_artifact(
    folder: Path,
    artifact: Artifact,
    content: bytes,
    taken: "frozenset[str] | set[str]" = frozenset(),
) -> Artifact:
    """Write an artifact into ``folder`` under a name that is neither in use there nor in ``taken``."""
    name, number = artifact.name, 1
    while name in taken or not (
        write_new(path := folder / name, content)
        or (path.is_file() and not path.is_symlink() and path.read_bytes() == content)
    ):
        number += 1
        name = _numbered(artifact.name, number)
    return artifact.model_copy(update={"name": name})


def _numbered(name: str, number: int) -> str:
    return f"{Path(name).stem}_{number}{Path(name).suffix}"
