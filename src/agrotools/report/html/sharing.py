"""Removal of places, file names and folders from the data of a page that is made for other people."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from agrotools.core.texts import count_text

_PART = r"(?:[\w.@%+-]+(?: [\w.@%+-]+)*(?=/)|[\w.@%+-]+)"
"""Part of a path; only a folder may have spaces in its name."""
_BACK = r"\\{1,8}"
"""Backslash, also as it is written in JSON within JSON."""
_PATH = re.compile(
    rf"(?<![\w.:/<~])(?:(?:[A-Za-z]:)?(?:/{_PART}){{2,}}|(?:\.{{1,2}}|~[\w.-]*)(?:/{_PART})+)/?"
    rf"|(?:\b[A-Za-z]:|\\{{2,8}}[\w.-]+)(?:{_BACK}[\w.@%+$-]+(?: [\w.@%+$-]+(?=\\))*)+"
    r"|(?:%2F[\w.@+-]+){2,}",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"\b(?:sk|pk|rk)-[\w-]{12,}|\bhf_\w{12,}|\bAKIA[0-9A-Z]{12,}|\bgh[pousr]_\w{16,}|\bxox[a-z]-[\w-]{10,}"
    r"|\bAIza[\w-]{20,}|\beyJ[\w-]{10,}\.[\w.-]+"
    r"|(?i:\bbearer\s+[\w.~+/=-]{8,})"
    r"|(?i:\b\w*(?:api_?key|password|passwd|secret|access_?token)\b\W{0,6}[=:]\W{0,6}[^\s\"'\\,;]{6,})"
)
_LABEL = r"[\w-]++\."
_ADDRESS = re.compile(
    r"(?<![a-z0-9+.-])(?:[a-z][a-z0-9+.-]*+://|file:/)[^\s\"'<>)\\]+"
    r"|(?<![\w.-])[\w.-]++@[\w.-]++:[\w.@%+/~-]+"
    r"|(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+"
    r"|\b(?:\d{1,3}\.){3}\d{1,3}\b(?::\d+)?"
    r"|(?<![\w:])(?=[0-9a-f:]*(?:::|[a-f]))(?:[0-9a-f]{1,4}:{1,2}){2,7}[0-9a-f]{0,4}(?![\w:])"
    rf"|(?<![\w.-])(?:{_LABEL})+(?:local|localdomain|lan|home|internal|intranet|corp|com|org|net|edu|gov|mil|io|ai)\b"
    r"(?::\d+)?"
    rf"|(?<![\w.-])(?:{_LABEL}){{2,}}(?:de|at|ch|uk|fr|nl|it|es|pl|eu|us|ca|cn|in|br|jp|kr|au|nz|za|ru|ke|info)\b"
    r"(?::\d+)?"
    r"|\b(?:DESKTOP|LAPTOP)-[A-Z0-9]{5,}\b",
    re.IGNORECASE,
)
"""Possessive quantifiers, and no start within a word: a long word of a model must not take time of its square."""
_DEGREE = r"(?:°|\\+u00b0)"
_PLACE_WORDS = r"lat|lon|lng|latitude|longitude|easting|northing|gps\w*"
_NAMED = rf"{_PLACE_WORDS}|long|geotransform|tiepoint|breitengrad|längengrad|latitud|longitud"
_DEGREES = re.compile(
    r"[-+]?\d{1,3}\.\d{4,}°?(?:\s*[NSEW])?(?:\s*[,;/ ]\s*[-+]?\d{1,3}\.\d{4,}°?(?:\s*[NSEW]\b)?)+"
    r"|[-+]?\d{1,3}\.\d{5,}\s*(?:\n|\\+n|\+)\s*[-+]?\d{1,3}\.\d{5,}"
    r"|[-+]?\d{1,3},\d{4,}(?:\s*[;/ ]\s*[-+]?\d{1,3},\d{4,})+"
    rf"|\d{{1,3}}{_DEGREE}\s*\d{{1,2}}(?:\.\d+)?['′]\s*(?:\d{{1,2}}(?:\.\d+)?\\*[\"″]\s*)?[NSEW]"
    r"|\b[NS]\s?\d{1,2}\.\d+°?\W{1,3}[EW]\s?\d{1,3}\.\d+°?"
    r"|\d{1,2}\.\d+\s?°?\s?[NS]\W{1,3}\d{1,3}\.\d+\s?°?\s?[EW]\b"
    rf"|(?i:\b(?:{_NAMED})\b\W{{0,40}}[-+]?\d+(?:[.,/]\d+)?°?"
    r"(?:,? \(?[-+]?\d+(?:[./]\d+)?\)?|,[-+]?\d+\.\d{4,})*)"
    r"|(?:北纬|南纬|东经|西经|纬度|经度)\W{0,5}\d+(?:\.\d+)?"
    r"|(?i:\b(?:left|right|top|bottom|min[xy]|max[xy])\b\W{0,5}\d{5,7}\.\d+)"
    r"|(?i:\b(?:MULTI)?(?:POINT|LINESTRING|POLYGON)\s*(?:Z\s*)?\(+[-+\d.eE,()\s]+\))"
    r"|\b(?:UTM\W{1,3})?\d{1,2}\s?[C-HJ-NP-X]\s+\d{6}(?:\.\d+)?\W{1,3}\d{6,7}(?:\.\d+)?"
    r"|\b\d{6}\.\d+[ ,;/]\s*\d{7}\.\d+\b"
    r"|\b\d{1,2}[C-HJ-NP-X]\s?[A-HJ-NP-Z]{2}\s?\d{3,5}\s?\d{3,5}\b"
    r"|\b(?=\d*[A-Z])[23456789CFGHJMPQRVWX]{4,8}\+[23456789CFGHJMPQRVWX]{2,3}\b"
)
"""Two or more numbers of four or more decimals or with letters, degrees and minutes, named ones, WKT and codes."""
_AXIS = re.compile(rf"(?i)\b(?:{_NAMED})\b|[经纬]度")
_SHARES = re.compile(r"\W*0[.,]\d+(?:\W+0[.,]\d+)+")
"""Numbers below 1, such as shares and scores: as degrees they are a place in the sea."""
_PLACE = re.compile(
    rf"(?:.*_)?(?:{_PLACE_WORDS}|coordinates|geo\w*|crs|bounds|transform|utm\w*)(?:_\w+)?"
    r"|host(?:name)?|user(?:name)?"
)
"""Names of fields and columns that tell a place, a machine or a person."""
_PLAIN_NAME = re.compile(r"[a-z]+(?:_[a-z]+)*_\d{1,3}\.[a-z]{2,5}")
"""File names that benchmarks give, such as ``image_1.jpg``; others may name a farm or a person."""
_FILE = re.compile(
    r"(?<![\w/\\.@%+-])(?:[\w@%+-][\w.@%+-]*+/)*[\w@%+-][\w.@%+-]*"
    r"\.(?:jpe?g|png|tiff?|webp|bmp|gif|heic|dng|csv|xlsx?|geojson|gpkg|shp|kml|kmz|las|laz)\b",
    re.IGNORECASE,
)
_COMMON_NAME = re.compile(r"[a-z]+(?:[-_][a-z]+)*(?:[-_]?\d{1,3})?\.\w+")
"""Names of files in texts that tell nothing, such as ``overlay.png``."""
_TELLING_STEM = re.compile(r"(?=.{6})(?=.*[\d_ -]).*")
_PATTERNS = (
    ("key", _SECRET),
    ("address", _ADDRESS),
    ("coordinate", _DEGREES),
    ("path", _PATH),
    ("file name", _FILE),
)
_NO_COORDINATE = "[coordinate removed]"
_PLURALS = {"address": "addresses"}
_DRAWN = ("plot", "image")
"""Kinds of files in which a tool writes what a call says."""


def _is_pair(*pair: object) -> bool:
    """True if two numbers may be degrees: both with four or more decimals, and not both below 1."""
    numbers = [each for each in pair if isinstance(each, float) and abs(each) <= 180]
    exact = all(len(repr(each).partition(".")[2]) >= 4 for each in numbers)
    return len(numbers) == 2 and exact and max(map(abs, numbers)) >= 1


class Scrubber:
    """Removes what may tell where and by whom a file was made, and counts it."""

    def __init__(self) -> None:
        self.removed: Counter[str] = Counter()
        self.left_out: set[str] = set()
        """Pictures that the page must not hold, because they show what was removed."""

    def text(self, text: str, names: Mapping[str, str] | None = None) -> str:
        """Return ``text`` without folders, addresses and coordinates; ``names``: new names of files by old ones."""
        for old, new in (names or {}).items():
            if old in text:
                self.removed["file name"] += text.count(old)
                text = text.replace(old, new)
        for what, pattern in _PATTERNS:
            text = pattern.sub(partial(self._removed, what), text)
        return text

    def _removed(self, what: str, match: re.Match[str]) -> str:
        """Return the mark of what was removed; what tells nothing stays."""
        tells_nothing = what == "file name" and _COMMON_NAME.fullmatch(match[0])
        if tells_nothing or _SHARES.fullmatch(match[0]):
            return match[0]
        self.removed[what] += 1
        return f"[{what} removed]"

    def data(self, value: Any, names: Mapping[str, str] | None = None) -> Any:
        """Return JSON data with all its texts scrubbed, and fields and columns of coordinates emptied."""
        if isinstance(value, str):
            return self.text(value, names)
        if isinstance(value, (list, tuple)):
            return self._list(value, names)
        if isinstance(value, dict):
            return self._fields(value, names)
        return value

    def _list(self, value: Sequence[Any], names: Mapping[str, str] | None) -> list[Any]:
        """Return a list scrubbed: it may be a name with values, or a pair of coordinates."""
        name, *rest = value or ("",)
        if rest and isinstance(name, str) and _PLACE.fullmatch(name.lower()):
            self.removed["coordinate"] += 1
            return [name, *(_NO_COORDINATE if each else each for each in rest)]
        if len(value) == 2 and _is_pair(*value):
            self.removed["coordinate"] += 1
            return [_NO_COORDINATE, _NO_COORDINATE]
        return [self.data(item, names) for item in value]

    def _fields(self, value: Mapping[str, Any], names: Mapping[str, str] | None) -> dict[str, Any]:
        """Return fields scrubbed, those that tell a place emptied."""
        if _is_pair(value.get("x"), value.get("y")):
            self.removed["coordinate"] += 1
            value = {**value, "x": _NO_COORDINATE, "y": _NO_COORDINATE}
        kept: dict[str, Any] = {}
        for key, item in value.items():
            if _PLACE.fullmatch(key.lower()) and isinstance(item, (int, float, str, list, dict)):
                self.removed["coordinate"] += 1
                kept[key] = _NO_COORDINATE
            else:
                kept[self.text(key, names)] = self._rows(item) if key == "rows" else item
        return {key: self.data(item, names) for key, item in kept.items()}

    def _rows(self, rows: Any) -> Any:
        """Return the rows of a table with the columns of coordinates emptied."""
        header = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], list) else []
        places = {
            at
            for at, name in enumerate(header)
            if isinstance(name, str) and _PLACE.fullmatch(name.lower())
        }
        if not places:
            return rows
        self.removed["coordinate"] += len(places) * (len(rows) - 1)
        return [["" if at in places else cell for at, cell in enumerate(row)] for row in rows]

    def step(self, step: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
        """Return a step scrubbed, without the drawings that a telling call made: their pixels tell it, too.

        A chart whose axes are named as coordinates loses its values.
        """
        call = step.get("call") or {}
        labels = [
            text for name, text in call.items() if name.endswith("label") and isinstance(text, str)
        ]
        is_map = any(_AXIS.search(text) for text in labels)
        if is_map:
            self.removed["coordinate"] += 1
            empty = {
                "call": {"values": _NO_COORDINATE},
                "args": [],
                "plain": [],
                "lines": [],
                "result": None,
            }
            step = {**step, **{name: value for name, value in empty.items() if name in step}}
        if is_map or self._tells(call, names):
            drawn = [file for file in step.get("files", []) if file["kind"] in _DRAWN]
            self.left_out |= {file["picture"] for file in drawn if "picture" in file}
        if "files" in step:
            step = {**step, "files": [self._file(file) for file in step["files"]]}
        return self.data(step, names)

    def _file(self, file: dict[str, Any]) -> dict[str, Any]:
        """Return a file of a step, without its picture if that is left out."""
        if file.get("picture") not in self.left_out:
            return file
        self.removed["drawing"] += 1
        reason = "left out, because texts of its call were removed"
        return {
            "name": file["name"],
            "kind": file["kind"],
            "text": file.get("text", ""),
            "absent": reason,
        }

    def _tells(self, call: Mapping[str, Any], names: Mapping[str, str]) -> bool:
        """Return True if more than names of files is removed from the arguments of a call."""
        trial = Scrubber()
        trial.data(call, names)
        return any(n for what, n in trial.removed.items() if what != "file name")

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
        parts = [
            count_text(n, what, _PLURALS.get(what, "")) for what, n in self.removed.items() if n
        ]
        return f"For sharing, removed: {', '.join(parts) or 'nothing'} (metadata of pictures is never embedded)."
