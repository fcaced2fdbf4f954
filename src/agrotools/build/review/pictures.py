"""Pictures for the page: any image, raster, depth map or mask rendered as PNG or JPEG, kept while it is likely to be
looked at again. Nothing is sent as it lies on the disk but photographs that were decoded and encoded anew."""

import io
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from agrotools.agents.images import PREVIEWED_KINDS, Picture, Unreadable, make_picture
from agrotools.build.review.material import Material
from agrotools.core import Artifact, SampleFile
from agrotools.report.html.places import Absent, Places
from agrotools.tools.cache import ResultCache

SIDES_PX = {"small": 900, "large": 4096}
"""Longest side of a picture on the page, and of one that is zoomed into."""
_KEPT_BYTES = 96_000_000
_PICTURE_KINDS = frozenset({"overlay", "mask", "plot", "image"})


@dataclass(frozen=True)
class Rendered:
    """A picture as it is sent. ``width_px`` and ``height_px`` are those of the file, not of the picture."""

    content: bytes
    media_type: str
    width_px: int
    height_px: int
    how: str
    colours: dict[str, str]


class Pictures:
    """Renders files of samples and artifacts of their reference calls; safe to use from several threads."""

    def __init__(self, material: Material) -> None:
        self._places = Places(material.artifact_folders)
        self._roots = material.roots
        self._tool_results = ResultCache()
        self._kept: OrderedDict[tuple[object, ...], Rendered] = OrderedDict()
        self._bytes = 0
        self._guard = threading.Lock()

    def of_file(self, file: SampleFile, size: str) -> Rendered | Absent:
        """A file of a sample; the reason where it cannot be shown."""
        if file.kind not in PREVIEWED_KINDS:
            return Absent(f"a {file.kind} is not shown as a picture")
        key = (file.sha256 or file.path, file.kind, file.bands, size)
        return self._once(key, self.path_of_file(file), file.name, file.kind, file.bands, size)

    def of_artifact(self, artifact: Artifact, size: str) -> Rendered | Absent:
        """A file that a tool made when the reference was recorded."""
        if artifact.kind not in _PICTURE_KINDS:
            return Absent(f"a {artifact.kind} is not shown as a picture")
        kind = "mask" if artifact.kind == "mask" else "image"
        return self._once(
            (artifact.sha256, kind, size), self.path_of_artifact(artifact), artifact.name, kind, None, size
        )

    def path_of_file(self, file: SampleFile) -> Path | Absent:
        """Where a file of a sample lies, if its content is what was recorded."""
        return self._places.of_file(file, self._roots)

    def path_of_artifact(self, artifact: Artifact) -> Path | Absent:
        """Where an artifact lies: among those of the folder or run, else among the tool results of this machine."""
        found = self._places.of_artifact(artifact)
        if not isinstance(found, Absent):
            return found
        return self._tool_results.artifact(artifact) or Absent("not kept when the benchmark was built")

    def _once(
        self,
        key: tuple[object, ...],
        path: Path | Absent,
        name: str,
        kind: str,
        bands: tuple[str, ...] | None,
        size: str,
    ) -> Rendered | Absent:
        with self._guard:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        if isinstance(path, Absent):
            return path
        rendered = _rendered(path, name, kind, bands, SIDES_PX[size])
        if isinstance(rendered, Absent):
            return rendered
        with self._guard:
            if key not in self._kept:
                self._kept[key] = rendered
                self._bytes += len(rendered.content)
            while self._bytes > _KEPT_BYTES and len(self._kept) > 1:
                self._bytes -= len(self._kept.popitem(last=False)[1].content)
        return rendered


def _rendered(path: Path, name: str, kind: str, bands: tuple[str, ...] | None, longest_px: int) -> Rendered | Absent:
    picture = make_picture(path, name, kind, bands, longest_px=longest_px)
    if isinstance(picture, Unreadable):
        return Absent(picture.reason)
    content, media_type = _encoded(picture)
    return Rendered(content, media_type, picture.width_px, picture.height_px, picture.how, picture.colours)


def _encoded(picture: Picture) -> tuple[bytes, str]:
    """JPEG, or PNG where every pixel's colour means something."""
    buffer = io.BytesIO()
    if picture.exact:
        picture.image.save(buffer, "PNG", compress_level=4)
        return buffer.getvalue(), "image/png"
    picture.image.convert("RGB").save(buffer, "JPEG", quality=85)
    return buffer.getvalue(), "image/jpeg"
