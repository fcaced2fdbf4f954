"""Extraction of video frames as images into the user's cache, in folders named by the hash of the video."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from agrotools.benchmarks._dialogs.files import actual_content
from agrotools.core import BenchmarkError
from agrotools.core.files import cache_dir, sha256_of_file

Choice = Literal["even", "first"]
PLACE = "video-frames"
"""First part of frame paths, and the name of the frame folder in the user's cache."""
_QUALITY = 95
_MOST_READ = 200_000
_FORM = "1"
"""Version of the extraction; change it when frames are selected or written differently."""


def frames_folder() -> Path:
    """Return the folder of the extracted frames."""
    return cache_dir(PLACE)


def frames_of(video: Path, count: int, choice: Choice) -> list[str]:
    """Extract at most ``count`` frames of a video and return their paths below :func:`frames_folder`.

    ``even``: frames spread over the video, including the first and the last (the middle one if ``count`` is 1).
    ``first``: the first frames. A shorter video gives all of its frames.

    Raises:
        BenchmarkError: the video cannot be decoded, or the cache cannot be written.
    """
    try:
        name = f"{sha256_of_file(video)[:32]}-{choice}-{count}-{_FORM}"
    except OSError as error:
        raise BenchmarkError(f"{video.name} cannot be read: {error.strerror or error}") from error
    target = frames_folder() / name
    if not target.is_dir():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(prefix=".making-", dir=target.parent) as temporary:
                made = Path(temporary) / name
                made.mkdir()
                _write_frames(video, made, count, choice)
                made.replace(target)
        except OSError as error:
            # Another process may have written the same frames in the meantime.
            if not target.is_dir():
                raise BenchmarkError(
                    f"frames of {video.name} cannot be written to {target.parent}: {error.strerror or error}",
                    hint="set AGROTOOLS_CACHE to a folder that can be written",
                ) from error
    return [f"{name}/{path.name}" for path in _frames_in(target)]


def _frames_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("frame_*_of_*.jpg"))


def _write_frames(video: Path, folder: Path, count: int, choice: Choice) -> None:
    import cv2

    capture = cv2.VideoCapture(str(video))
    good_frames: list[Path] = []
    try:
        if not capture.isOpened():
            raise BenchmarkError(f"{video.name} is no video that can be read{actual_content(video)}")
        length = _length(cv2, video) if choice == "even" else count
        places = set(_places(length, count) if choice == "even" else range(count))
        place = 0
        while place <= max(places, default=0) and capture.grab():
            if place in places:
                good, frame = capture.retrieve()
                path = folder / f"frame_{len(good_frames) + 1:02d}.jpg"
                if good and cv2.imwrite(str(path), frame, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY]):
                    good_frames.append(path)
            place += 1
    except cv2.error as error:
        raise BenchmarkError(f"{video.name} cannot be decoded") from error
    finally:
        capture.release()
    if not good_frames:
        raise BenchmarkError(f"{video.name} contains no frame that can be read")
    for path in good_frames:
        path.rename(path.with_stem(f"{path.stem}_of_{len(good_frames):02d}"))


def _length(cv2: Any, video: Path) -> int:
    """Count the frames by reading them, because the number in a file's header is often wrong."""
    capture = cv2.VideoCapture(str(video))
    try:
        length = 0
        while length < _MOST_READ and capture.grab():
            length += 1
        return length
    finally:
        capture.release()


def _places(length: int, count: int) -> list[int]:
    if length <= count:
        return list(range(length))
    if count == 1:
        return [length // 2]
    return [round(place * (length - 1) / (count - 1)) for place in range(count)]
