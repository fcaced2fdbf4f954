"""The log that ThinkGeo's scorer writes of its judge: ``[{"id": 0, ..., "scores": ["yes", "no"]}, ...]``."""

from pathlib import Path
from typing import Any

from agrotools.core import BenchmarkError
from agrotools.scoring.predictions.compared import read_json
from agrotools.scoring.reference.thinkgeo import Judgement
from agrotools.text.loose_json import is_list, is_object, is_text

_FORM = 'a log looks like [{"id": 0, "scores": ["yes", "no"]}, ...]'


def read_log(path: Path) -> tuple[list[Judgement], list[str]]:
    """The judgements of a log, and what is malformed in it: a sample whose entry is malformed was not judged, a reply
    that is no text says nothing. Of two entries for a sample the first counts.

    Raises:
        BenchmarkError: the file cannot be read, or holds no list of judgements.
    """
    found = read_json(path)
    if not is_list(found):
        raise BenchmarkError(f"{path.name} is no list of judgements", hint=_FORM)
    judgements: dict[int, Judgement] = {}
    malformed: list[str] = []
    for index, entry in enumerate(found):
        position: Any = entry.get("id") if is_object(entry) else None
        replies: Any = entry.get("scores") if is_object(entry) else None
        if type(position) is not int or not is_list(replies):
            malformed.append(f"{path.name}, entry {index} is no judgement")
        elif position in judgements:
            malformed.append(f"{path.name}, entry {index}: sample {position} is judged twice")
        else:
            if not all(map(is_text, replies)):
                malformed.append(f"{path.name}, entry {index}: a reply is no text")
            judgements[position] = Judgement(position, tuple(r if is_text(r) else "" for r in replies))
    if found and not judgements:
        raise BenchmarkError(malformed[0], hint=_FORM)
    return list(judgements.values()), malformed
