"""Answers and places that stand in a file beside its pixels: EXIF, comments, text chunks, the file's own path."""

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from agrotools.benchmarks.checks.leaks import has_word, labels_of, revealed_answer, spaced
from agrotools.build.quality.finding import Finding
from agrotools.core import ChoiceSetSlot, ExactSlot, Sample

_DESCRIPTIONS = {
    "ImageDescription": 270, "DocumentName": 269, "PageName": 285, "XPTitle": 40091, "XPComment": 40092,
    "XPKeywords": 40094, "XPSubject": 40095,
}  # fmt: skip
_EXIF, _GPS, _USER_COMMENT = 34665, 34853, 37510
_GPS_LATITUDE = 2
_CHUNKS_OF_SOFTWARE = {"software", "icc_profile", "dpi", "jfif", "exif", "gamma", "srgb", "progressive", "adobe"}
_LONGEST = 4000


class Beside:
    """What a file says beside its pixels: ``texts`` by where they stand, and whether it knows where it was taken."""

    def __init__(self, path: Path) -> None:
        self.texts: dict[str, str] = {}
        self.has_position = False
        from PIL import Image

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # broken EXIF is no matter of ours
                with Image.open(path) as picture:
                    self._read(picture)
        except (OSError, ValueError, SyntaxError, TypeError, KeyError, Image.DecompressionBombError):
            return  # No picture that Pillow reads, and so no metadata that it shows anybody.

    def _read(self, picture: object) -> None:
        exif = picture.getexif()  # pyright: ignore[reportAttributeAccessIssue]
        for name, tag in _DESCRIPTIONS.items():
            self._note(f"EXIF {name}", exif.get(tag))
        self._note("EXIF UserComment", exif.get_ifd(_EXIF).get(_USER_COMMENT))
        self.has_position = _GPS_LATITUDE in exif.get_ifd(_GPS)
        for name, value in picture.info.items():  # pyright: ignore[reportAttributeAccessIssue]
            if str(name).lower() not in _CHUNKS_OF_SOFTWARE:
                self._note(str(name), value)

    def _note(self, name: str, value: object) -> None:
        if isinstance(value, bytes):
            wide = name.startswith("EXIF XP")
            value = value.removeprefix(b"ASCII\0\0\0").removeprefix(b"UNICODE\0")
            value = value.decode("utf-16-le" if wide else "utf-8", errors="replace")
        if isinstance(value, str) and (text := value.replace("\0", " ").strip()):
            self.texts[name] = text[:_LONGEST]


def check_metadata(samples: Iterable[Sample], root: Path) -> Iterator[Finding]:
    """Checks ``answer_in_metadata``, ``answer_in_path`` and ``position_in_metadata``."""
    known: dict[str, Beside] = {}
    for sample in samples:
        positions = 0
        for file in sample.files:
            if file.path not in known:
                known[file.path] = Beside(root / file.path)
            beside = known[file.path]
            positions += beside.has_position
            for slot in sample.answer:
                for where, text in beside.texts.items():
                    if said := revealed_answer(slot, text):
                        message = f"{where} of {file.name} holds {said!r}, (part of) the answer {slot.name!r}"
                        yield Finding(id=sample.id, check="answer_in_metadata", severity="error", message=message)
                if isinstance(slot, ExactSlot | ChoiceSetSlot):
                    stem = spaced(PurePosixPath(file.path).stem)
                    if label := next((label for label in labels_of(slot) if has_word(stem, spaced(label))), None):
                        message = f"the stored file {file.path} tells the answer {label!r}; no model sees that name"
                        yield Finding(id=sample.id, check="answer_in_path", severity="info", message=message)
        if positions:
            message = f"{positions} files say where they were taken (GPS in EXIF): remove it before you share them"
            yield Finding(id=sample.id, check="position_in_metadata", severity="info", message=message)
