"""What a model sees of a sample's files: for each a line of facts and, where it can be shown, an image."""

import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

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
        preview = _preview(file) if _is_previewed(file, images) else None
        parts.append(TextPart(text=f"- {describe(file, preview, shown=images)}"))
        if images and isinstance(preview, Preview):
            parts.append(ImagePart(url=preview.url))
    return tuple(parts)


def is_prepared(files: Sequence[SampleFile], *, images: bool = True) -> bool:
    """Whether :func:`file_parts` has nothing left to read or encode, and so takes no time."""
    return all(
        (key := _preview_key(file)) is None or _kept_preview(key) for file in files if _is_previewed(file, images)
    )


def _is_previewed(file: SampleFile, images: bool) -> bool:
    return file.kind in PREVIEWED_KINDS and (images or file.width_px is None)


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


_PreviewKey = tuple[str, str, str, tuple[str, ...] | None, int, int]
_PREVIEWS_KEPT = 256
_previews: OrderedDict[_PreviewKey, Preview | Unreadable] = OrderedDict()
"""One sample is shown at every step and in every epoch: encoded once, found again while the file stays the same."""
_previews_lock = Lock()


def _preview(file: SampleFile) -> Preview | Unreadable:
    key = _preview_key(file)
    if key is None:
        return Unreadable("the file is missing")
    if found := _kept_preview(key):
        return found
    made = make_preview(Path(file.path), file.name, file.kind, file.bands)
    with _previews_lock:
        _previews[key] = made
        while len(_previews) > _PREVIEWS_KEPT:
            _previews.popitem(last=False)
    return made


def _kept_preview(key: _PreviewKey) -> Preview | Unreadable | None:
    with _previews_lock:
        if key in _previews:
            _previews.move_to_end(key)
        return _previews.get(key)


def _preview_key(file: SampleFile) -> _PreviewKey | None:
    """What a preview depends on; None where there is no file."""
    try:
        stat = os.stat(file.path)  # noqa: PTH116 - for each file of each sample, twice
    except OSError:
        return None
    return (file.path, file.name, file.kind, file.bands, stat.st_mtime_ns, stat.st_size)
