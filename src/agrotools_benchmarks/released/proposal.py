"""Proposal of a field map: the fields of another layout that hold question, files, calls and answer.

A field is proposed by its name alone, from the lists of ``proposals.toml``; the user checks the map.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.calling import get_tool
from agrotools.calling.declared import of_name
from agrotools.core.files import read_table
from agrotools.loading.values import NOTHING, list_in, value_at
from agrotools.text.loose_json import parsed
from agrotools_benchmarks._dialogs.gta_in import Source
from agrotools_build.export.gta_entries import FieldMap

Row = dict[str, Any]
NAMES = Path(__file__).with_name("proposals.toml")
_REQUIRED = ("sample.query", "files.at", "calls.at", "calls.tool", "answer.at")
"""Keys of a map without which no entry can be read."""


class Proposal(NamedTuple):
    """Tables of a map, and a line on each field that was found, or that is needed and was not."""

    tables: dict[str, dict[str, Any]]
    lines: list[str]


def propose_places(rows: Sequence[Row]) -> Proposal:
    """Return the places of a map that the names of fields propose."""
    names: Mapping[str, Mapping[str, Sequence[str]]] = read_table(NAMES)
    proposal = Proposal({}, [])

    def propose(table: str, key: str, objects: Sequence[Any]) -> str:
        there = [path for path in names[table][key] if _is_at(path, objects)]
        if there:
            others = f" (also there: {', '.join(there[1:])})" if there[1:] else ""
            proposal.tables.setdefault(table, {})[key] = there[0]
            proposal.lines.append(f"{table}.{key}: {there[0]}{others}")
        elif f"{table}.{key}" in _REQUIRED:
            proposal.lines.append(f"{table}.{key}: not found")
        return there[0] if there else ""

    for key in names["sample"]:
        propose("sample", key, rows)
    files = [*_items_at(rows, propose("files", "at", rows))]
    for key in ("path", "id", "type"):
        propose("files", key, files)
    messages = [*_items_at(rows, propose("calls", "at", rows))]
    each = propose("calls", "each", messages)
    calls = [*_items_at(messages, each)] if each else messages
    if not each:
        proposal.tables.setdefault("calls", {})["each"] = ""  # a step is itself a call
    for key in ("tool", "arguments", "observation"):
        propose("calls", key, calls)
    for key in ("thought", "role"):
        propose("calls", key, messages)
    answers = [*_items_at(rows, propose("answer", "at", rows))]
    for key in ("value", "name", "aliases"):
        propose("answer", key, answers)
    for key in ("type", "unit", "abs_tol", "rel_tol", "tol", "tol_kind", "options"):
        propose("answer", key, [*answers, *rows])
    return proposal


def _is_at(paths: str, objects: Sequence[Any]) -> bool:
    """True if some object has values at all of the paths, which are joined by ``+``."""
    parts = [path.strip() for path in paths.split("+")]
    return any(
        all(value_at(each, part, NOTHING) not in (NOTHING, None) for part in parts)
        for each in objects
    )


def _items_at(objects: Sequence[Any], paths: str) -> Iterator[Any]:
    """Yield the values at paths in objects, of a list its items."""
    for each in objects if paths else ():
        for path in paths.split("+"):
            value = parsed(value_at(each, path.strip()))
            yield from list_in(value) or ([] if value is None else [value])


def propose_tools(source: Source, fields: FieldMap) -> Proposal:
    """Return the tables ``[tools]`` and ``[arguments]``: what runs the calls of each tool, with which arguments."""
    tools: dict[str, Any] = {}
    arguments: dict[str, Any] = {}
    lines: list[str] = []
    for name, declared in source.declared.items():
        ours = of_name(name, fields.proposals) or of_name(declared.description, fields.proposals)
        tools[name] = ours or ""
        lines.append(f"tool {name}({', '.join(declared.agreement)}): {ours or 'recorded results'}")
        if not ours or ours == "plot":
            continue
        known, given = get_tool(ours).spec.agreement, fields.arguments.get(ours, {})
        others = {each: given.get(each, "") for each in declared.agreement if each not in known}
        arguments.setdefault(ours, {}).update(others)
        lines += [
            f"  {each}: which argument of {ours}({', '.join(known)})?"
            for each, own in others.items()
            if not own
        ]
    return Proposal({"tools": tools, "arguments": arguments}, lines)
