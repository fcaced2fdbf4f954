"""Files of a sample: there, inside the folder, unaltered, named without giving anything away."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import orjson

from agrotools.benchmarks.checks.fault import Checked, Fault
from agrotools.core import BenchmarkError
from agrotools.core.files import sha256_of_file
from agrotools.formats.benchmark import CROISSANT_FILE, resolve_file

_IMAGE_SUFFIXES = {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp", ".bmp"}


def check_files(at: Checked, hashes: dict[Path, str]) -> None:
    """Codes: duplicate_file_name, path_outside, missing_file, not_a_file, altered_file, unreadable_file,
    missing_bands, missing_classes. ``hashes`` keeps the hash of each real path over all samples.
    """
    names: set[str] = set()
    for index, file in enumerate(at.sample.files):
        where = f"files[{index}]"
        if file.name in names:
            hint = "give each file of a sample its own name"
            at.fault("duplicate_file_name", f"{where}.name", f"two files are called {file.name!r}", hint)
        names.add(file.name)
        try:
            real = resolve_file(at.root, file.path)
        except BenchmarkError as error:
            at.fault(_path_code(error), f"{where}.path", error.message, error.hint or "correct the path")
            continue
        try:
            actual = hashes.get(real) or hashes.setdefault(real, sha256_of_file(real))
        except OSError as error:
            at.fault("unreadable_file", f"{where}.path", f"{file.path}: {error.strerror}", "make the file readable")
            continue
        if file.sha256 is not None and file.sha256 != actual:
            message = f"{file.path} has sha256 {actual[:12]}..., recorded {file.sha256[:12]}..."
            hint = "put the recorded file back, or build the benchmark again"
            at.fault("altered_file", f"{where}.sha256", message, hint)
        elif file.sha256 is None:
            at.fault(
                "no_hash", f"{where}.sha256", f"the hash of {file.path} is not recorded", f'add "sha256": "{actual}"'
            )
        if file.kind in ("image", "mask") and real.suffix.lower() in _IMAGE_SUFFIXES:
            _check_image(at, where, real, index, actual)
        if file.kind == "raster" and not file.bands:
            at.fault("missing_bands", f"{where}.bands", f"{file.name} is a raster without band names", "list its bands")
        if file.kind == "mask" and not file.classes:
            hint = 'say what its values mean, e.g. {"1": "crop"}'
            at.fault("missing_classes", f"{where}.classes", f"{file.name} is a mask without class meanings", hint)


def _path_code(error: BenchmarkError) -> str:
    if "leads out" in error.message:
        return "path_outside"
    return "missing_file" if "there is no file" in error.message else "not_a_file"


def _check_image(at: Checked, where: str, real: Path, index: int, sha256: str) -> None:
    from PIL import Image

    file = at.sample.files[index]
    try:
        width, height = _decoded_size(real, sha256)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Warning) as error:
        at.fault("unreadable_file", f"{where}.path", f"{file.path} is no readable image: {error}", "replace the file")
        return
    recorded = (file.width_px or width, file.height_px or height)
    if recorded != (width, height):
        message = f"{file.path} has {width} x {height} px, recorded {recorded[0]} x {recorded[1]}"
        at.fault("wrong_size", f"{where}.width_px", message, "correct width_px and height_px")


@lru_cache(maxsize=4096)
def _decoded_size(path: Path, _sha256: str) -> tuple[int, int]:
    """Width and height of an image that decodes to its end. Many samples share an image of one content."""
    import warnings

    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path) as image:
            image.load()
            return image.size


_HINT = "write it anew: agrotools export DIR --format croissant"


def check_described(root: Path, hashes: dict[Path, str]) -> Iterator[Fault]:
    """Codes: broken_croissant, stale_croissant. ``hashes`` keeps the hash of each real path."""
    path = root / CROISSANT_FILE
    if not path.is_file():
        return
    try:
        described = orjson.loads(path.read_bytes())
        files = [(str(file["contentUrl"]), str(file["sha256"])) for file in cast(Any, described)["distribution"]]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        yield _fault("broken_croissant", f"it lists no files with their hashes: {error}")
        return
    for name, sha256 in files:
        if name.startswith(("http://", "https://")):
            continue
        try:
            real = resolve_file(root, name)
            actual = hashes.get(real) or hashes.setdefault(real, sha256_of_file(real))
        except (BenchmarkError, OSError) as error:
            yield _fault("stale_croissant", f"it lists {name}: {error}")
            continue
        if actual != sha256:
            yield _fault("stale_croissant", f"{name} is not the file that it describes (sha256 differs)")


def _fault(code: str, message: str) -> Fault:
    return Fault(code=code, message=message, hint=_HINT, file=CROISSANT_FILE)
