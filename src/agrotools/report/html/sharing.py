"""Removal of places, file names and folders from the data of a page that is made for other people."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from agrotools.core.base import count_text

_PATH = re.compile(r"(?<![\w.:/<~])(?:~|[A-Za-z]:)?(?:/[\w.@%+ -]*[\w.@%+-]){2,}/?|\b[A-Za-z]:\\[\w.\\@%+ -]+")
_ADDRESS = re.compile(r"\b(?:https?|file)://[^\s\"'<>)]+")
_DEGREES = re.compile(
    r"[-+]?\d{1,3}\.\d{4,}°?\s*[NSEW]?\s*[,;/ ]\s*[-+]?\d{1,3}\.\d{4,}°?\s*[NSEW]?"
    r"|\d{1,3}°\s*\d{1,2}['′]\s*(?:\d{1,2}(?:\.\d+)?[\"″]\s*)?[NSEW]"
)
_PLACE = re.compile(r"(?:.*_)?(?:lat|lon|lng|latitude|longitude|gps\w*|coordinates|geo\w*|crs|bounds|utm\w*)(?:_\w+)?")
_PLAIN_NAME = re.compile(r"[a-z]+(?:_[a-z]+)*_\d{1,3}\.[a-z]{2,5}")
"""File names that benchmarks give, such as ``image_1.jpg``; others may name a farm or a person."""


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
        for what, pattern in (("address", _ADDRESS), ("coordinate", _DEGREES), ("path", _PATH)):
            text, n = pattern.subn(f"[{what} removed]", text)
            self.removed[what] += n
        return text

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
        """Return new names for files whose names a benchmark did not give, the longest first."""
        own = [name for name in dict.fromkeys(names) if not _PLAIN_NAME.fullmatch(name)]
        renamed = {name: f"file_{at}{name[name.rfind('.') :] if '.' in name else ''}" for at, name in enumerate(own, 1)}
        return dict(sorted(renamed.items(), key=lambda each: -len(each[0])))

    def summary(self) -> str:
        """Return a sentence that says what was removed."""
        parts = [count_text(n, what) for what, n in self.removed.items() if n]
        return f"For sharing, removed: {', '.join(parts) or 'nothing'} (metadata of pictures is never embedded)."
