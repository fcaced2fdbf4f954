"""Leaves and shoots of mango on a light ground."""

import re
from datetime import UTC, datetime, timedelta

from field_sources.snapshot import Prepared, Reader, drawn_by_lot

_FOLDER = "src/data/MangoLeafBD_Without_Testset_Augmentation/"
_NUMBERS = {
    "Anthracnose": ("anthracnose", 30),
    "Cutting Weevil": ("cutting_weevil", 20),
    "Gall Midge": ("gall_midge", 30),
    "Healthy": ("healthy", 16),
    "Scooty Mould": ("sooty_mould", 15),
    "Sooty Mould": ("sooty_mould", 15),
}
"""Label and number of pictures by the name of a folder.

Left out are powdery mildew (most leaves have the film of sooty mould), die back (a dry leaf by itself shows no cause)
and bacterial canker (bitten and torn margins, which insects leave too).
"""
_TIME = re.compile(r"(\d{8}_\d{6})")
_BREAK = timedelta(minutes=10)
"""Longest pause between two pictures of a session; longer ones are followed by leaves from elsewhere."""


def _read_mango(prepared: Prepared) -> None:
    """Pictures of MangoLeafBD as taken, without augmented ones; a session is known from the times in their names."""
    paths = prepared.snapshot.paths(_FOLDER, ".jpg")
    session_of = _sessions(paths)
    chosen: dict[str, list[str]] = {}
    for path in paths:
        folder = path.split("/")[-2]
        if folder in _NUMBERS:
            chosen.setdefault(folder, []).append(path)
    for folder, some in chosen.items():
        label, number = _NUMBERS[folder]
        for path in drawn_by_lot(some, number):
            name = f"{label}_{_TIME.findall(path)[-1]}"
            prepared.add(name, session_of[path], {"image": path}, label=label)


def _sessions(paths: list[str]) -> dict[str, str]:
    """Return the session of each picture, named by the time of its first one."""
    timed = sorted((_taken(path), path) for path in paths)
    sessions: dict[str, str] = {}
    started, before = timed[0][0], timed[0][0]
    for taken, path in timed:
        if taken - before > _BREAK:
            started = taken
        sessions[path] = started.strftime("%Y-%m-%d_%H%M")
        before = taken
    return sessions


def _taken(path: str) -> datetime:
    """Return the time in a picture's name. Its zone does not matter, since only differences are used."""
    return datetime.strptime(_TIME.findall(path)[-1], "%Y%m%d_%H%M%S").replace(tzinfo=UTC)


MANGO_LEAVES = Reader(
    "OmdenaAI/dhaka-bangladesh-mango-leaf",
    "76c2514858079bde16d36cb1def6fe6f8ffa7fec",
    _read_mango,
)
