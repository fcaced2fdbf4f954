"""Files of runs and their pictures; each picture is embedded once and scaled to fit a size budget.

A file of a sample or an artifact comes in; the name of its picture on the page goes out, or the reason why there is
none (:class:`Absent`). Files with another hash than the recorded one are not shown.
"""

import base64
import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from PIL import ExifTags, Image

from agrotools.agents.images import PREVIEWED_KINDS, Unreadable, make_picture
from agrotools.calling.cache import Sweeper, limit_from_environment
from agrotools.core import Artifact, BenchmarkError, SampleFile
from agrotools.core.files import (
    artifact_path,
    cache_dir,
    sha256_of_file,
    sha256_of_json,
    write_whole,
)
from agrotools.formats.benchmark import HEADER_FILE, resolve_file
from agrotools.formats.manifest import Manifest
from agrotools.loading import BENCHMARKS
from agrotools.loading.checking import file_roots

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}|")


@dataclass(frozen=True)
class Absent:
    """File that is not shown, and the reason as text for the page.

    ``by_kind`` is True if files of this kind never have a picture, so that none is missing.
    """

    reason: str
    by_kind: bool = False


def benchmark_roots(manifest: Manifest, run: Path, data_root: Path | None) -> list[Path]:
    """Return the folders that may contain the benchmark of a run.

    The stored paths are resolved against the working directory and the parents of the run folder. No files are
    generated or downloaded.
    """
    name = manifest.benchmark_path
    # Runs are in WORKING_DIRECTORY/runs/NAME by default.
    seen_from = [Path(), *run.resolve().parents[:3]]
    was = (
        [place / Path(manifest.data_root).expanduser() for place in seen_from]
        if manifest.data_root
        else []
    )
    if name in BENCHMARKS:
        places = [data_root, *was, None]
        return next((roots for place in places if (roots := file_roots(name, place))), [])
    stated_path = Path(name).expanduser()
    moved = [data_root / stated_path, data_root] if data_root else []
    candidates = [*moved, *(place / stated_path for place in [*was, *seen_from])]
    return [
        folder.resolve() for folder in dict.fromkeys(candidates) if (folder / HEADER_FILE).is_file()
    ]


class Places:
    """Finder of files named by records; files whose hash differs from the recorded one are not shown."""

    def __init__(self, runs: Sequence[Path]) -> None:
        self._runs = runs
        self._hashes: dict[Path, str] = {}

    def of_file(self, file: SampleFile, roots: Sequence[Path]) -> Path | Absent:
        """Return the path of a sample's file in the first of ``roots`` that has it."""
        altered = False
        for root in roots:
            try:
                path = resolve_file(root, file.path)
                if file.sha256 is None or self._hash(path) == file.sha256:
                    return path
                altered = True
            except (BenchmarkError, OSError, ValueError):
                continue
        return Absent("altered since the run" if altered else "not found on this machine")

    def of_artifact(self, artifact: Artifact) -> Path | Absent:
        """Return the path of a file made by a tool, in the run that stores it."""
        suffix = Path(artifact.name).suffix
        if (
            artifact.sha256 is None
            or not _SHA256.fullmatch(artifact.sha256)
            or not _SUFFIX.fullmatch(suffix)
        ):
            return Absent("not kept")
        for path in (artifact_path(run, artifact.sha256, suffix) for run in self._runs):
            try:
                if path.is_file() and not path.is_symlink() and self._hash(path) == artifact.sha256:
                    return path
            except OSError:
                continue
        return Absent("not among the run's artifacts")

    def _hash(self, path: Path) -> str:
        if path not in self._hashes:
            self._hashes[path] = sha256_of_file(path)
        return self._hashes[path]


BUDGET_BYTES = 21_000_000
"""Default size limit of all pictures on the page together, in bytes after encoding."""
LONGEST_SIDE_PX = 480
"""Default longest side of a picture on the page."""
_SMALLER_SIDES_PX = (640, 480, 320, 200, 120)
"""Longest sides of pictures that are scaled down to meet the size limit."""
_LARGEST_SVG = 300_000
_LARGEST_PLAIN = 20_000_000
FILE_SHARES = 2
_MADE = "made"
"""Kind of the pictures that tools make, except masks."""
_QUALITIES = (66, 40)
"""Qualities that are tried at each size: a coarser picture shows more than a smaller one."""
_SHARE_STEP = 1.05
"""Ratio of the shares that are told apart, so that a page with few more pictures finds them in the cache."""
_CACHE_MB = 1000.0
_ENCODING = 2
"""Version of the encoding; raised when pictures of the same files look different."""
_NO_ARTIFACT_PICTURES = frozenset({"table"})


@dataclass(frozen=True)
class EmbeddedPicture:
    """Picture on the page. ``id`` is the id of the element with its data."""

    id: str
    width_px: int
    height_px: int
    description: str = ""
    colours: dict[str, str] = field(default_factory=dict)


_SIZE = re.compile(r"(^|, )at \d+ x \d+ px$")
"""Size in the description of a preview, which does not apply to the page."""


class _Wanted(NamedTuple):
    """Picture that is made once: hash or path of its file, kind and bands."""

    content: str | None
    kind: str
    bands: tuple[str, ...] | None = None


class PictureEncoder:
    """Encoder of pictures, each at its first request; :meth:`fresh` yields the pictures that were not yet written.

    ``shares`` is the number of distinct pictures that will be requested, files of samples counted twice: they have
    twice the share of results in the remaining budget. A picture that exceeds its share is encoded
    more coarsely, then scaled down. ``longest_px`` limits the sides of all. Encoded pictures are kept in the cache by
    the content of their file and their share of the page; the oldest are removed.
    """

    def __init__(
        self, shares: int, budget_bytes: int = BUDGET_BYTES, longest_px: int = LONGEST_SIDE_PX
    ) -> None:
        self._folder = cache_dir("report-pictures")
        self._sweeper = Sweeper(self._folder, min(_CACHE_MB, limit_from_environment()))
        self.longest_px = longest_px
        self._sides_px = (longest_px, *(side for side in _SMALLER_SIDES_PX if side < longest_px))
        self._remaining = shares
        self._budget = budget_bytes
        self._pictures: dict[_Wanted, EmbeddedPicture | Absent] = {}
        self._fresh: list[tuple[str, str]] = []
        self.bytes = 0
        self.n = 0
        self.shrunk = 0
        """Number of pictures that were scaled down or left out because of the budget."""

    def of_file(self, file: SampleFile, path: Path | Absent) -> EmbeddedPicture | Absent:
        """Return the picture of a sample's file."""
        if file.kind not in PREVIEWED_KINDS:
            return Absent(f"no preview of a {file.kind}", by_kind=True)
        return self._once(
            _Wanted(file.sha256 or file.path, file.kind, file.bands), path, file.name, FILE_SHARES
        )

    def of_artifact(self, artifact: Artifact, path: Path | Absent) -> EmbeddedPicture | Absent:
        """Return the picture of a file made by a tool."""
        if artifact.kind in _NO_ARTIFACT_PICTURES:
            return Absent(f"no preview of a {artifact.kind}", by_kind=True)
        return self._once(
            _Wanted(artifact.sha256, "mask" if artifact.kind == "mask" else _MADE),
            path,
            artifact.name,
        )

    def fresh(self) -> Iterator[tuple[str, str]]:
        """Return id and data URL of each picture encoded since the last call."""
        fresh, self._fresh = self._fresh, []
        return iter(fresh)

    def _once(
        self, wanted: _Wanted, path: Path | Absent, name: str, weight: int = 1
    ) -> EmbeddedPicture | Absent:
        if wanted not in self._pictures:
            share = weight * (self._budget - self.bytes) // max(self._remaining, weight)
            self._pictures[wanted] = (
                path if isinstance(path, Absent) else self._make(wanted, path, name, share)
            )
            self._remaining -= weight
        return self._pictures[wanted]

    def _make(self, wanted: _Wanted, path: Path, name: str, share: int) -> EmbeddedPicture | Absent:
        encoded = (
            _drawing(path, share)
            if path.suffix == ".svg"
            else self._thumbnail(wanted, path, name, share)
        )
        if isinstance(encoded, Absent):
            return encoded
        picture = replace(encoded.picture, id=f"p{self.n}")
        self.n += 1
        self.bytes += len(encoded.url)
        self.shrunk += encoded.is_shrunk
        self._fresh.append((picture.id, encoded.url))
        return picture

    def _thumbnail(self, wanted: _Wanted, path: Path, name: str, share: int) -> "_Encoded | Absent":
        step = int(math.log(max(share, 1), _SHARE_STEP))
        share = int(_SHARE_STEP**step)
        content = (
            wanted.content if _SHA256.fullmatch(wanted.content or "") else sha256_of_file(path)
        )
        fields = [_ENCODING, content, wanted.kind, wanted.bands, path.suffix, self.longest_px, step]
        key = sha256_of_json(fields)
        stored = self._folder / key[:2] / f"{key}.json"
        with suppress(OSError, ValueError, TypeError):
            url, picture, is_shrunk = orjson.loads(stored.read_bytes())
            self._sweeper.mark_used(stored)
            return _Encoded(url, EmbeddedPicture(**picture), is_shrunk)
        decoded = _decoded(path, name, wanted, self.longest_px)
        if isinstance(decoded, Absent):
            return decoded
        encoded = self._fitting(*decoded, share)
        if encoded is None:
            self.shrunk += 1
            return Absent("omitted to keep the page small")
        new = orjson.dumps([encoded.url, asdict(encoded.picture), encoded.is_shrunk])
        with suppress(OSError):  # the disk is full or read-only
            stored.parent.mkdir(parents=True, exist_ok=True)
            write_whole(stored, new, synced=False)
            self._sweeper.record_write(len(new))
        return encoded

    def _fitting(
        self, image: Image.Image, about: EmbeddedPicture, exact: bool, share: int
    ) -> "_Encoded | None":
        """Return the picture in the best size and quality that fits; None if the smallest exceeds the share."""
        longest = max(image.size)
        for side in dict.fromkeys(min(each, longest) for each in self._sides_px):
            for quality in _QUALITIES[: 1 if exact else None]:
                encoded = _encoded(image, about, exact, side, quality)
                if len(encoded[0]) <= share:
                    return _Encoded(*encoded, is_shrunk=side < longest)
        return None


class _Encoded(NamedTuple):
    url: str
    picture: EmbeddedPicture
    is_shrunk: bool
    """True if it was scaled down because of its share."""


class RunPictures:
    """Source of the pictures and long texts of the run in folder ``run``; missing files are added to a shared set.

    ``text`` returns what the page holds in place of a text, so that texts of many records are stored once.
    """

    def __init__(
        self,
        run: Path,
        roots: Sequence[Path],
        places: Places,
        pictures: PictureEncoder,
        missing: set[str],
        text: Callable[[str], Any] = str,
    ) -> None:
        self.run, self.text = run, text
        self._roots, self._places, self._pictures, self._missing = roots, places, pictures, missing

    def path_of_file(self, file: SampleFile) -> Path | Absent:
        return self._places.of_file(file, self._roots)

    def path_of_artifact(self, artifact: Artifact) -> Path | Absent:
        return self._places.of_artifact(artifact)

    def file(self, file: SampleFile) -> EmbeddedPicture | Absent:
        picture = self._pictures.of_file(file, self.path_of_file(file))
        if isinstance(picture, Absent) and not picture.by_kind:
            self._missing.add(file.path)
        return picture

    def artifact(self, artifact: Artifact, *, made_here: bool) -> EmbeddedPicture | Absent:
        """Return the picture of an artifact. ``made_here``: a call of this run created and should have stored it."""
        picture = self._pictures.of_artifact(artifact, self._places.of_artifact(artifact))
        if isinstance(picture, Absent) and made_here and not picture.by_kind:
            self._missing.add(artifact.sha256 or artifact.name)
        return picture


def _decoded(
    path: Path, name: str, wanted: _Wanted, longest_px: int
) -> tuple[Image.Image, EmbeddedPicture, bool] | Absent:
    """Return a file as a picture, its description, and whether its colours must be kept exactly."""
    kind = "image" if wanted.kind == _MADE else wanted.kind
    if kind == "image" and (image := _plain_image(path, longest_px)):
        return image, EmbeddedPicture("", 0, 0), False
    picture = make_picture(path, name, kind, wanted.bands, longest_px=longest_px)
    if isinstance(picture, Unreadable):
        return Absent(picture.reason)
    about = EmbeddedPicture("", 0, 0, _SIZE.sub("", picture.changes), picture.colours)
    return picture.image, about, picture.exact


def _plain_image(path: Path, longest_px: int) -> Image.Image | None:
    """Return a usual 8-bit picture that is upright, several times as fast as readers of all kinds of files do."""
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            Image.open(path, formats=("PNG", "JPEG", "WEBP")) as image,
        ):
            usual = image.mode in ("L", "RGB") and image.width * image.height <= _LARGEST_PLAIN
            if not usual or image.getexif().get(ExifTags.Base.Orientation, 1) != 1:
                return None
            image.thumbnail((longest_px, longest_px), Image.Resampling.BILINEAR, reducing_gap=1.0)
            return image.copy()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def _encoded(
    image: Image.Image, about: EmbeddedPicture, exact: bool, side: int, quality: int
) -> tuple[str, EmbeddedPicture]:
    if max(image.size) > side:
        image = image.copy()
        image.thumbnail(
            (side, side), Image.Resampling.NEAREST if exact else Image.Resampling.BILINEAR
        )
    buffer = io.BytesIO()
    about = replace(about, width_px=image.width, height_px=image.height)
    if exact:
        image.save(buffer, "PNG", compress_level=6)
        return _data_url("png", buffer.getvalue()), about
    # WebP saves a tenth of the size and takes four times as long.
    image.convert("RGB").save(buffer, "JPEG", quality=quality, optimize=True)
    return _data_url("jpeg", buffer.getvalue()), about


def _drawing(path: Path, share: int) -> _Encoded | Absent:
    """Encode an SVG unchanged.

    As the source of an image it can neither run scripts nor load files. SVGs with entities, whose expansion could block
    the browser, are rejected."""
    content = path.read_bytes() if path.stat().st_size <= _LARGEST_SVG else b""
    if not content or b"<!ENTITY" in content or b"<svg" not in content:
        return Absent("a vector image that is too large or of an unsupported form")
    url = _data_url("svg+xml", content)
    if len(url) > max(share, _LARGEST_SVG // 2):
        return Absent("omitted for its size")
    return _Encoded(url, EmbeddedPicture("", 640, 480), is_shrunk=False)


def _data_url(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
