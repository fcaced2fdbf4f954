"""The entries of somebody's JSON, read by a field map: question, files and calls, as every reader sees them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import JsonValue

from agrotools.build.export.gta_map import FieldMap, found
from agrotools.core import Arguments, BenchmarkError


@dataclass(frozen=True)
class Entry:
    """What an entry says in the fields that every reader of it sees: ``files`` are paths in the folder read."""

    key: str
    query: str
    files: tuple[str, ...]
    calls: tuple[tuple[str, Arguments], ...]
    thoughts: tuple[str, ...]
    returned: tuple[JsonValue, ...]


def entries_in(folder: Path, fields: FieldMap) -> Iterator[tuple[str, Any]]:
    """Keys and contents of all entries of the JSON that ``fields`` names in ``folder``.

    Raises:
        BenchmarkError: no such file, no JSON, or nothing where the entries should be.
    """
    path = folder / fields.file
    try:
        text = path.read_bytes()
        lines = path.suffix == ".jsonl"
        whole = [orjson.loads(line) for line in text.splitlines() if line.strip()] if lines else orjson.loads(text)
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be read: {error.strerror}", hint="name it in a field map: file") from error
    except orjson.JSONDecodeError as error:
        raise BenchmarkError(
            f"{path} is no JSON: {error}", hint="JSON, or JSON lines where it ends in .jsonl"
        ) from error
    entries = found(whole, fields.entries)
    if isinstance(entries, dict):
        yield from ((str(key), value) for key, value in entries.items())
    elif isinstance(entries, list):
        yield from ((str(number), value) for number, value in enumerate(entries))
    else:
        raise BenchmarkError(f"{path}: there are no entries at {fields.entries!r}", hint="set `entries` in a field map")


def read_entry(key: str, content: Any, fields: FieldMap) -> Entry:
    """What an entry says.

    Raises:
        BenchmarkError: there is no question, or a file or call cannot be read; the message says which.
    """
    if not isinstance(content, dict):
        raise BenchmarkError("it is no object")
    query = found(content, fields.sample.query)
    if not isinstance(query, str) or not query.strip():
        raise BenchmarkError(f"there is no question at {fields.sample.query!r}")
    listed = found(content, fields.files.at, [])
    if not isinstance(listed, list):
        raise BenchmarkError(f"there is no list of files at {fields.files.at!r}")
    paths = [item if isinstance(item, str) else found(item, fields.files.path) for item in listed]
    if not all(isinstance(path, str) and path for path in paths):
        raise BenchmarkError(f"a file has no path at {fields.files.path!r}")
    steps = list(_steps(content, fields))
    return Entry(
        key,
        query,
        tuple(f"{fields.files.folder}{path}" for path in paths),
        tuple((tool, arguments) for tool, arguments, _, _ in steps),
        tuple(thought for _, _, thought, _ in steps),
        tuple(returned for _, _, _, returned in steps),
    )


def _steps(content: Any, fields: FieldMap) -> Iterator[tuple[str, Arguments, str, JsonValue]]:
    """Tool, arguments, thought and what was returned, of every call; tools by the names that the entry uses."""
    paths = fields.calls
    messages = found(content, paths.at)
    if not isinstance(messages, list):
        raise BenchmarkError(f"there is no list of calls at {paths.at!r}")
    for position, message in enumerate(cast(list[Any], messages)):
        calls = found(message, paths.each, [])
        replies = _replies(messages[position + 1 :], fields)
        for call in calls if isinstance(calls, list) else [calls]:
            tool = found(call, paths.tool)
            if not isinstance(tool, str):
                if paths.each:
                    raise BenchmarkError(f"a call has no tool at {paths.tool!r}")
                continue  # Where messages are calls themselves, others may stand between them.
            arguments = _arguments(found(call, paths.arguments, {}), tool)
            returned = next(replies, None) if paths.reply_role else found(call, paths.observation or None)
            thought = found(message, paths.thought)
            yield tool, arguments, thought if isinstance(thought, str) else "", returned


def _replies(later: list[Any], fields: FieldMap) -> Iterator[JsonValue]:
    """What the messages right after a message of calls say that these returned."""
    for message in later:
        if found(message, "role") != fields.calls.reply_role:
            return
        yield found(message, fields.calls.reply)


def _arguments(given: Any, tool: str) -> Arguments:
    if isinstance(given, str):
        try:
            given = orjson.loads(given)
        except orjson.JSONDecodeError as error:
            raise BenchmarkError(f"the arguments of {tool} are no JSON: {error}") from error
    if not isinstance(given, dict):
        raise BenchmarkError(f"the arguments of {tool} are no object")
    return cast(Arguments, given)
