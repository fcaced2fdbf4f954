"""Searches kept in a file, one to a line, and found there again."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = "searches.jsonl"
"""Name of the file in a folder of recorded searches."""


def query_key(query: str) -> str:
    """Key of a query: letter case and spaces do not count."""
    return " ".join(query.casefold().split())


def record(folder: Path, backend: str, query: str, k: int, found: dict[str, Any]) -> None:
    """Add a search to the folder's file. A disk that is full or read-only costs the record, not the search."""
    line = {"query": query, "k": k, "service": backend, "at": datetime.now(UTC).isoformat(timespec="seconds"), **found}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / FILE).open("ab", buffering=0) as file:  # whole, in one piece, whoever else adds a line
            file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
    except OSError:
        return


def recording_path(place: str) -> Path:
    """The file of recorded searches at a path: that file, or the one in that folder."""
    path = Path(place).expanduser()
    return path / FILE if path.is_dir() else path


def find_recorded(place: str, query: str, k: int) -> dict[str, Any] | None:
    """The last recorded search of that query that asked for as many results at least, else the last of it; or None.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line of it is no recorded search (a torn last line is passed over).
    """
    lines = recording_path(place).read_text(encoding="utf-8").split("\n")  # other line breaks may stand in text
    best: dict[str, Any] | None = None
    enough = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            same, asked = query_key(entry["query"]) == query_key(query), int(entry.get("k", 0))
            _check(entry)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            if number == len(lines):  # what ends in a line break has an empty last line
                break
            raise ValueError(f"line {number} is no recorded search") from error
        if same and (asked >= k or not enough):
            best, enough = entry, asked >= k
    if best is None:
        return None
    return {name: best.get(name) for name in ("answer", "knowledge")} | {"results": best["results"][:k]}


def _check(entry: dict[str, Any]) -> None:
    """See that what was found has its form.

    Raises:
        TypeError: it has another.
    """
    texts = [hit[name] for hit in entry["results"] for name in ("title", "url", "snippet")]
    if (knowledge := entry.get("knowledge")) is not None:
        texts += [knowledge["title"], knowledge["text"]]
    if entry.get("answer") is not None:
        texts.append(entry["answer"])
    if not isinstance(entry["results"], list) or not all(isinstance(text, str) for text in texts):
        raise TypeError
