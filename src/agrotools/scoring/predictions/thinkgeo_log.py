"""The log that ThinkGeo's scorer writes of its judge: ``[{"id": 0, ..., "scores": ["yes", "no"]}, ...]``."""

from pathlib import Path
from typing import Any

from agrotools.core import BenchmarkError
from agrotools.scoring.loose import is_list, is_object, is_text
from agrotools.scoring.predictions.json_files import read_json
from agrotools.scoring.reference.thinkgeo import Judgement


def read_log(path: Path) -> list[Judgement]:
    """Raises :class:`BenchmarkError` where the file cannot be read or is of another form."""
    found = read_json(path)
    entries: list[Any] = found if is_list(found) else [None]
    judgements: list[Judgement] = []
    seen: set[int] = set()
    for index, entry in enumerate(entries):
        position: Any = entry.get("id") if is_object(entry) else None
        replies: Any = entry.get("scores") if is_object(entry) else None
        if type(position) is not int or not is_list(replies) or not all(map(is_text, replies)):
            raise BenchmarkError(
                f"{path.name}, entry {index} is no judgement",
                hint='a log looks like [{"id": 0, "scores": ["yes", "no"]}, ...]',
            )
        if position in seen:
            raise BenchmarkError(f"{path.name}: sample {position} is judged twice")
        seen.add(position)
        judgements.append(Judgement(position, tuple(replies)))
    return judgements
