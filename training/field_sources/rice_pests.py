"""Insects of rice, photographed singly."""

import re

from field_sources.snapshot import Prepared, Reader, drawn_by_lot

_LABELS = {
    "rice_leaf_roller": "rice_leaf_roller",
    "rice_stem_borer": "yellow_rice_borer",
    "rice_bug": "rice_bug",
    "brown": "brown_planthopper",
}
"""Entries of the knowledge base by the first part of a file's name, which its owner gave by the pest.

``green_leafhopper`` is left out, because most of its pictures show a leafhopper of meadows (Cicadella viridis), and
``planthopper``, because they show flatids of trees; ``images`` name no pest.
"""
_CATERPILLAR = "4"
"""Class of a box that holds a caterpillar, of whichever pest."""
_LEAST_SHARE = 0.05
"""Least share of the picture that the insect's box fills: smaller insects cannot be told apart."""
_OF_EACH = 48
_SESSIONS = {
    "rice_stem_borer": ({545, 546, 555}, {553, 556}, {569, 570, 571, 572}, set(range(585, 594))),
    "rice_bug": ({383, 391, 392}, {408, 409, 410}, {455, 457}),
    "brown": ({279, 281}, set(range(295, 318))),
}
"""Numbers of pictures that show one animal or one place, by look."""


def _read_rice_pests(prepared: Prepared) -> None:
    """Pictures with one box, which fills enough of them; a picture is a cluster unless a session has several."""
    snapshot = prepared.snapshot
    stages: dict[str, str] = {}
    by_pest: dict[str, list[str]] = {}
    for path in snapshot.paths("train/images/", ".jpg"):
        pest = re.split(r"_\d", path.rpartition("/")[2])[0]
        boxes = _boxes(snapshot.text(_labels_of(path)))
        if pest not in _LABELS or len(boxes) != 1:
            continue
        kind, width, height = boxes[0]
        if width * height >= _LEAST_SHARE:
            stages[path] = "caterpillar" if kind == _CATERPILLAR else "adult"
            by_pest.setdefault(pest, []).append(path)
    for pest, paths in by_pest.items():
        for path in drawn_by_lot(paths, _OF_EACH):
            number = _number(path)
            name = f"{pest}_{number}"
            prepared.add(
                name,
                _session(pest, number) or name,
                {"image": path},
                label=_LABELS[pest],
                stage=stages[path],
            )


def _labels_of(path: str) -> str:
    return path.replace("/images/", "/labels/").replace(".jpg", ".txt")


def _boxes(text: str) -> list[tuple[str, float, float]]:
    """Return class, width and height of each box, as shares of the picture; outlines are no boxes and are skipped."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return [(row[0], float(row[3]), float(row[4])) for row in rows if len(row) == 5]


def _number(path: str) -> int:
    """Return the number of a picture, the last one in its owner's name for it."""
    own_name = re.split(r"_[A-Za-z]+\.rf\.|\.rf\.", path.rpartition("/")[2])[0]
    return int(re.findall(r"\d+", own_name)[-1])


def _session(pest: str, number: int) -> str:
    for numbers in _SESSIONS.get(pest, ()):
        if number in numbers:
            return f"{pest}_{min(numbers)}_to_{max(numbers)}"
    return ""


RICE_PESTS = Reader(
    "AhmadSubadri/dataset-pest-rice",
    "20a08ef55540d8740c218a00c44c607740104172",
    _read_rice_pests,
)
