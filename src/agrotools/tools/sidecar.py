"""Sidecars: what a photograph does not say of itself, in a JSON file beside it.

``field.jpg.meta.json`` (or ``field.meta.json``) holds an object with any of: ``gsd_m`` (metres per pixel), ``bands``
(names in file order), ``crs``, ``intrinsics`` (``fx_px``, ``fy_px``, ``cx_px``, ``cy_px``), ``depth_unit_mm``,
``classes`` (class number to meaning), ``width_px`` and ``height_px`` (of the image that the intrinsics belong to),
``kind``, ``note``.
"""

from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from agrotools.core import SampleFile, ToolError

SUFFIX = ".meta.json"
_LARGEST_BYTES = 2**16
_KEYS = ("gsd_m", "bands", "crs", "intrinsics", "depth_unit_mm", "classes", "width_px", "height_px", "note", "kind")


def read_sidecar(path: Path) -> SampleFile | None:
    """What the sidecar of a file says; None where there is none.

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
