"""Previews: any image, raster, depth map or mask as one 8-bit picture of bounded size, encoded as a data URL."""

import base64
import io
import threading
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import rasterio
    from PIL import Image

LONGEST_SIDE_PX = 1568
PREVIEWED_KINDS = frozenset({"image", "raster", "depth", "mask"})
PERCENTILES = (2.0, 98.0)

_STRETCH = f"from percentile {PERCENTILES[0]:g} to {PERCENTILES[1]:g}"
_ORIENTATION = 0x0112
_QUARTER_TURNS = (5, 6, 7, 8)
_DEEP_MODES = ("I", "I;16", "I;16B", "F")
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF")
_TIFF_MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_FILTER_LOCK = threading.Lock()
_LONGEST_READ_PX = 200_000_000
_MASK_COLOURS: tuple[tuple[str, tuple[int, int, int]], ...] = (
    ("black", (0, 0, 0)),
    ("green", (0, 170, 0)),
    ("red", (220, 30, 30)),
    ("blue", (40, 80, 230)),
    ("yellow", (240, 220, 40)),
    ("magenta", (210, 50, 200)),
    ("cyan", (50, 200, 210)),
    ("orange", (245, 140, 30)),
    ("white", (255, 255, 255)),
    ("brown", (130, 80, 40)),
    ("pink", (250, 160, 190)),
    ("grey", (128, 128, 128)),
)


@dataclass(frozen=True)
class Preview:
    """A picture of a file. ``width_px`` and ``height_px`` are those of the file, not of the picture."""

    url: str = field(repr=False)
    width_px: int
    height_px: int
    bands: int
    how: str = ""
    """How the picture differs from the file: size, bands, stretch."""
    colours: dict[str, str] = field(default_factory=dict)
    """For masks: pixel value to the name of the colour that stands for it."""


@dataclass(frozen=True)
class Unreadable:
    """A file without a preview, and why, in words that name no path."""

    reason: str


def make_preview(path: Path, kind: str, bands: tuple[str, ...] | None) -> Preview | Unreadable:
    """Read, scale and encode one file; never raises for what is in it."""
    try:
        if _is_pillow_image(path):
            return _of_image(path, kind)
        return _of_raster(path, kind, bands)
    except Exception:
        # Decoders raise many things for broken files, and name paths in their messages.
        return Unreadable("it cannot be read as an image")


def _is_pillow_image(path: Path) -> bool:
    """Whether Pillow reads the file; TIFF and ENVI go to rasterio, which knows their bands."""
    with path.open("rb") as file:
        head = file.read(12)
    return head.startswith((b"\xff\xd8", b"\x89PNG", b"BM", b"GIF8")) or (head[:4] == b"RIFF" and head[8:] == b"WEBP")


def _of_image(path: Path, kind: str) -> Preview | Unreadable:
    import numpy as np
    from PIL import Image, ImageOps

    with Image.open(path, formats=_FORMATS) as opened:
        width, height = opened.size
        if width * height > _LONGEST_READ_PX:
            return Unreadable("it has too many pixels")
        if opened.getexif().get(_ORIENTATION) in _QUARTER_TURNS:
            width, height = height, width
        opened.draft(None, (LONGEST_SIDE_PX, LONGEST_SIDE_PX))
        image = ImageOps.exif_transpose(opened)
    if kind == "mask" and len(image.getbands()) == 1:
        return _of_classes(np.asarray(image), width, height)
    if image.mode in _DEEP_MODES:
        return _finished(_stretched(np.asarray(image)[:, :, None]), width, height, 1, f"stretched {_STRETCH}")
    return _finished(_on_white(image), width, height, len(image.getbands()), exact=kind == "mask")


def _of_raster(path: Path, kind: str, names: tuple[str, ...] | None) -> Preview | Unreadable:
    import numpy as np
    from PIL import Image
    from rasterio.enums import Resampling

    with _opened_raster(path) as source:
        width, height, count = source.width, source.height, source.count
        if width * height > _LONGEST_READ_PX:
            return Unreadable("it has too many pixels")
        scale = min(1.0, LONGEST_SIDE_PX / max(width, height))
        size = (max(1, round(height * scale)), max(1, round(width * scale)))
        if kind == "mask" and count == 1:
            return _of_classes(source.read(1, out_shape=size, resampling=Resampling.nearest), width, height)
        chosen = _shown_bands(names, count)
        values = source.read(
            [index + 1 for index in chosen], out_shape=(len(chosen), *size), resampling=Resampling.average, masked=True
        )
        is_8_bit = source.dtypes[0] == "uint8"
    values = np.moveaxis(np.ma.filled(values.astype(np.float32), np.nan), 0, 2)
    how = ""
    if count > 1 and (names or count > 4):
        how = f"as {', '.join(names[index] if names else f'band {index + 1}' for index in chosen)}"
    if is_8_bit and count <= 4:
        return _finished(Image.fromarray(_as_rgb(np.nan_to_num(values))), width, height, count, how)
    how = f"{how}, each band stretched {_STRETCH}" if len(chosen) > 1 else f"stretched {_STRETCH}"
    return _finished(_stretched(values), width, height, count, how.removeprefix(", "))


def _opened_raster(path: Path) -> "rasterio.DatasetReader":
    import rasterio
    from rasterio.errors import NotGeoreferencedWarning

    # The driver is named, not guessed: a file that says it is something else could lead GDAL anywhere.
    with path.open("rb") as file:
        driver = "GTiff" if file.read(4) in _TIFF_MAGIC else "ENVI"
    # The list of warning filters belongs to all threads; two that change it at once would leave it changed.
    with _FILTER_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        return rasterio.open(path, driver=driver)


def _shown_bands(names: tuple[str, ...] | None, count: int) -> list[int]:
    """Indices of red, green and blue where they are named, else of the first three bands, else of the first."""
    if names and len(names) == count:
        lowered = [name.lower() for name in names]
        named = [
            next((index for index, name in enumerate(lowered) if name in (colour, colour[0])), None)
            for colour in ("red", "green", "blue")
        ]
        found = [index for index in named if index is not None]
        if len(found) == 3:
            return found
    return [0, 1, 2] if count >= 3 else [0]


def _stretched(values: "np.ndarray") -> "Image.Image":
    """Each band of (h, w, b) from its percentiles to 0..255; not-a-number becomes black."""
    import numpy as np
    from PIL import Image

    bands: list[np.ndarray] = []
    for band in np.moveaxis(values.astype(np.float32), 2, 0):
        finite = band[np.isfinite(band)]
        low, high = np.percentile(finite, PERCENTILES) if finite.size else (0.0, 1.0)
        span = float(high - low) or 1.0
        scaled = np.clip((np.nan_to_num(band, nan=low, posinf=high, neginf=low) - low) / span, 0, 1)
        bands.append(np.where(np.isfinite(band), scaled * 255, 0))
    return Image.fromarray(_as_rgb(np.stack(bands, axis=2)))


def _as_rgb(values: "np.ndarray") -> "np.ndarray":
    import numpy as np

    eight_bit = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return eight_bit[:, :, 0] if eight_bit.shape[2] == 1 else eight_bit


def _of_classes(values: "np.ndarray", width: int, height: int) -> Preview:
    """A map of class indices, with one colour for each value; many values are stretched instead."""
    import numpy as np
    from PIL import Image

    present, index = np.unique(values, return_inverse=True)
    if present.size > len(_MASK_COLOURS):
        return _finished(_stretched(values[:, :, None]), width, height, 1, f"stretched {_STRETCH}")
    palette = np.array([colour for _, colour in _MASK_COLOURS], dtype=np.uint8)
    picture = Image.fromarray(palette[index.reshape(values.shape)])
    colours = {f"{value:g}": name for value, (name, _) in zip(present.tolist(), _MASK_COLOURS, strict=False)}
    return _finished(picture, width, height, 1, exact=True, colours=colours)


def _on_white(image: "Image.Image") -> "Image.Image":
    from PIL import Image

    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layered = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layered.size, (255, 255, 255, 255)), layered).convert("RGB")
    return image.convert("RGB")


def _finished(
    picture: "Image.Image",
    width: int,
    height: int,
    bands: int,
    how: str = "",
    *,
    exact: bool = False,
    colours: dict[str, str] | None = None,
) -> Preview:
    """Scale to the longest side and encode: JPEG, or PNG where every pixel's colour means something."""
    from PIL import Image

    resampling = Image.Resampling.NEAREST if exact else Image.Resampling.LANCZOS
    picture.thumbnail((LONGEST_SIDE_PX, LONGEST_SIDE_PX), resampling)
    buffer = io.BytesIO()
    # A fresh copy without the file's metadata: comments and positions of the original stay out of prompts.
    clean = Image.frombytes(picture.mode, picture.size, picture.tobytes())
    if exact:
        clean.save(buffer, "PNG", optimize=True)
    else:
        clean.save(buffer, "JPEG", quality=90)
    kind = "png" if exact else "jpeg"
    if picture.size != (width, height):
        how = f"{how}, at {picture.width} x {picture.height} px".removeprefix(", ")
    encoded = base64.b64encode(buffer.getvalue()).decode("ascii")
    return Preview(f"data:image/{kind};base64,{encoded}", width, height, bands, how, colours or {})
