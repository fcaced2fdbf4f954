"""What a model sees of a sample's files: for each a line of facts and, where it can be shown, an image."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from agrotools.agents.previews import PREVIEWED_KINDS, Preview, Unreadable, make_preview
from agrotools.core import SampleFile
from agrotools.models import ContentPart, ImagePart, TextPart


def file_parts(files: Sequence[SampleFile], *, images: bool = True) -> tuple[ContentPart, ...]:
    """A line for each file, each followed by its image. ``images=False``: the lines alone.

    Previews carry pixels and nothing else: no path, no metadata of the file. The line of a file that cannot be read
    says so.
    """
    parts: list[ContentPart] = []
    for file in files:
        preview: Preview | Unreadable | None = None
        if file.kind in PREVIEWED_KINDS and (images or file.width_px is None):
            preview = _preview(file)
        parts.append(TextPart(text=f"- {describe(file, preview, shown=images)}"))
        if images and isinstance(preview, Preview):
            parts.append(ImagePart(url=preview.url))
    return tuple(parts)


def describe(file: SampleFile, preview: Preview | Unreadable | None, *, shown: bool = True) -> str:
    """Name, kind, original size, bands, ground sampling distance, intrinsics, classes and note, where known."""
    facts: list[str] = [file.kind]
    if isinstance(preview, Preview):
        facts.append(f"{preview.width_px} x {preview.height_px} px")
    elif file.width_px and file.height_px:
        facts.append(f"{file.width_px} x {file.height_px} px")
    if file.bands:
        facts.append(f"bands {', '.join(file.bands)}")
    elif isinstance(preview, Preview) and preview.bands > 4:
        facts.append(f"{preview.bands} bands")
    if file.gsd_m:
        facts.append(f"{file.gsd_m:g} m per pixel")
    if file.crs:
        facts.append(f"coordinate system {file.crs}")
    if camera := file.intrinsics:
        facts.append(f"focal length {camera.fx_px:g} x {camera.fy_px:g} px")
        facts.append(f"principal point at {camera.cx_px:g}, {camera.cy_px:g} px")
    if file.depth_unit_mm:
        facts.append(f"one unit of depth is {file.depth_unit_mm:g} mm")
    colours = preview.colours if isinstance(preview, Preview) and shown else {}
    if file.classes:
        named = [
            f"{index} = {meaning}{f' ({colours[index]})' if index in colours else ''}"
            for index, meaning in file.classes.items()
        ]
        facts.append(f"classes: {', '.join(named)}")
    elif colours:
        facts.append(f"values: {', '.join(f'{value} ({colour})' for value, colour in colours.items())}")
    if isinstance(preview, Preview) and shown and preview.how:
        facts.append(f"shown {preview.how}")
    if isinstance(preview, Unreadable):
        facts.append(f"cannot be shown: {preview.reason}")
    if file.note:
        facts.append(f"note: {file.note}")
    return f"{file.name}: {'; '.join(facts)}"


def _preview(file: SampleFile) -> Preview | Unreadable:
    path = Path(file.path)
    try:
        stat = path.stat()
    except OSError:
        return Unreadable("the file is missing")
    return _cached_preview(file.path, file.name, file.kind, file.bands, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _cached_preview(
    path: str, name: str, kind: str, bands: tuple[str, ...] | None, _mtime_ns: int, _size: int
) -> Preview | Unreadable:
    # One sample is shown at every step and in every epoch: encoded once, found again while the file stays the same.
    return make_preview(Path(path), name, kind, bands)
