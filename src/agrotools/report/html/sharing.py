"""Removal of places, file names and folders from the data of a page that is made for other people."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from agrotools.core.base import count_text

_PART = r"(?:[\w.@%+-]+(?: [\w.@%+-]+)*(?=/)|[\w.@%+-]+)"
"""Part of a path; only a folder may have spaces in its name."""
_PATH = re.compile(
    rf"(?<![\w.:/<~])(?:(?:[A-Za-z]:)?(?:/{_PART}){{2,}}|(?:\.{{1,2}}|~)(?:/{_PART})+)/?"
    r"|(?:\b[A-Za-z]:|\\\\[\w.-]+)(?:\\{1,2}[\w.@%+$-]+(?: [\w.@%+$-]+(?=\\))*)+"
)
_ADDRESS = re.compile(
    r"\b(?:[a-z][a-z0-9+.-]*://|file:/)[^\s\"'<>)]+"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|\b(?:\d{1,3}\.){3}\d{1,3}\b(?::\d+)?"
    r"|\b[\w-]+(?:\.[\w-]+)*\.(?:local|localdomain|lan|home|internal|intranet|corp)\b(?::\d+)?",
    re.IGNORECASE,
)
_DEGREES = re.compile(
    r"[-+]?\d{1,3}\.\d{4,}°?(?:\s*[NSEW])?(?:\s*[,;/ ]\s*[-+]?\d{1,3}\.\d{4,}°?(?:\s*[NSEW]\b)?)+"
    r"|[-+]?\d{1,3},\d{4,}(?:\s*[;/ ]\s*[-+]?\d{1,3},\d{4,})+"
    r"|\d{1,3}°\s*\d{1,2}(?:\.\d+)?['′]\s*(?:\d{1,2}(?:\.\d+)?[\"″]\s*)?[NSEW]"
    r"|\b[NS]\s?\d{1,2}\.\d+°?\W{1,3}[EW]\s?\d{1,3}\.\d+°?"
    r"|\d{1,2}\.\d+\s?°?\s?[NS]\W{1,3}\d{1,3}\.\d+\s?°?\s?[EW]\b"
    r"|(?i:\b(?:lat|lon|lng|long|latitude|longitude|easting|northing)\b\W{0,5}[-+]?\d+(?:[.,]\d+)?°?)"
    r"|(?i:\b(?:MULTI)?(?:POINT|LINESTRING|POLYGON)\s*(?:Z\s*)?\(+[-+\d.eE,()\s]+\))"
    r"|\b(?:UTM\W{1,3})?\d{1,2}\s?[C-HJ-NP-X]\s+\d{6}(?:\.\d+)?\W{1,3}\d{6,7}(?:\.\d+)?"
    r"|\b\d{1,2}[C-HJ-NP-X]\s?[A-HJ-NP-Z]{2}\s?\d{3,5}\s?\d{3,5}\b"
    r"|\b(?=\d*[A-Z])[23456789CFGHJMPQRVWX]{4,8}\+[23456789CFGHJMPQRVWX]{2,3}\b"
)
"""Two or more numbers of four or more decimals or with letters, degrees and minutes, named ones, WKT and codes."""
_SHARES = re.compile(r"\W*0[.,]\d+(?:\W+0[.,]\d+)+")
"""Numbers below 1, such as shares and scores: as degrees they are a place in the sea."""
_PLACE = re.compile(r"(?:.*_)?(?:lat|lon|lng|latitude|longitude|gps\w*|coordinates|geo\w*|crs|bounds|utm\w*)(?:_\w+)?")
_PLAIN_NAME = re.compile(r"[a-z]+(?:_[a-z]+)*_\d{1,3}\.[a-z]{2,5}")
"""File names that benchmarks give, such as ``image_1.jpg``; others may name a farm or a person."""
_FILE = re.compile(
    r"(?<![\w/\\.])[\w@%+-][\w.@%+-]*"
    r"\.(?:jpe?g|png|tiff?|webp|bmp|gif|heic|dng|csv|xlsx?|geojson|gpkg|shp|kml|kmz|las|laz)\b",
    re.IGNORECASE,
)
_COMMON_NAME = re.compile(r"[a-z]+(?:[-_][a-z]+)*(?:[-_]?\d{1,3})?\.\w+")
"""Names of files in texts that tell nothing, such as ``overlay.png``."""
_TELLING_STEM = re.compile(r"(?=.{6})(?=.*[\d_ -]).*")
_PLURALS = {"address": "addresses"}


class Scrubber:
    """Removes what may tell where and by whom a file was made, and counts it."""

    def __init__(self) -> None:
        self.removed: Counter[str] = Counter()

    def text(self, text: str, names: Mapping[str, str] | None = None) -> str:
        """Return ``text`` without folders, addresses and coordinates; ``names``: new names of files by old ones."""
        for old, new in (names or {}).items():
            if old in text:
                self.removed["file name"] += text.count(old)
                text = text.replace(old, new)
        for what, pattern in (("address", _ADDRESS), ("path", _PATH), ("file name", _FILE), ("coordinate", _DEGREES)):
            text = pattern.sub(partial(self._removed, what), text)
        return text

    def _removed(self, what: str, match: re.Match[str]) -> str:
        if (what == "file name" and _COMMON_NAME.fullmatch(match[0])) or _SHARES.fullmatch(match[0]):
            return match[0]
        self.removed[what] += 1
        return f"[{what} removed]"

    def data(self, value: Any, names: Mapping[str, str] | None = None) -> Any:
        """Return JSON data with all its texts scrubbed, and fields and columns of coordinates emptied."""
        if isinstance(value, str):
            return self.text(value, names)
        if isinstance(value, (list, tuple)):
            return [self.data(item, names) for item in value]
        if not isinstance(value, dict):
            return value
        kept: dict[str, Any] = {}
        for key, item in value.items():
            if _PLACE.fullmatch(key.lower()) and isinstance(item, (int, float, str, list, dict)):
                self.removed["coordinate"] += 1
                kept[key] = "[coordinate removed]"
            else:
                kept[self.text(key, names)] = self._rows(item) if key == "rows" else item
        return {key: self.data(item, names) for key, item in kept.items()}

    def _rows(self, rows: Any) -> Any:
        """Return the rows of a table with the columns of coordinates emptied."""
        header = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], list) else []
        places = {at for at, name in enumerate(header) if isinstance(name, str) and _PLACE.fullmatch(name.lower())}
        self.removed["coordinate"] += len(places) * (len(rows) - 1) if places else 0
        return [[cell if at not in places else "" for at, cell in enumerate(row)] for row in rows] if places else rows

    @staticmethod
    def new_names(names: Iterable[str]) -> dict[str, str]:
        """Return new names for files whose names a benchmark did not give, and for their stems, the longest first."""
        renamed: dict[str, str] = {}
        own = [name for name in dict.fromkeys(names) if not _PLAIN_NAME.fullmatch(name)]
        for number, name in enumerate(own, 1):
            path, new = PurePosixPath(name), f"file_{number}"
            renamed |= {path.stem: new} if _TELLING_STEM.fullmatch(path.stem) else {}
            renamed[name] = f"{new}{path.suffix}"
        return dict(sorted(renamed.items(), key=lambda each: -len(each[0])))

    def summary(self) -> str:
        """Return a sentence that says what was removed."""
        parts = [count_text(n, what, _PLURALS.get(what, "")) for what, n in self.removed.items() if n]
        return f"For sharing, removed: {', '.join(parts) or 'nothing'} (metadata of pictures is never embedded)."
