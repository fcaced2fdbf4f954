"""Proposal of a field map: the fields of another layout that hold question, files, calls and answer.

A field is proposed by its name, from the lists of ``proposals.toml``. Two things are seen in the values: which field
names files that are there, and what the words for types of answers mean. The user checks the map; its comments name
the fields that it passes over.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from agrotools.calling import get_tool
from agrotools.calling.declared import of_name
from agrotools.core.files import read_table
from agrotools.loading.checking import shorten
from agrotools.loading.values import NOTHING, list_in, number_in, value_at
from agrotools.text.loose_json import parsed
from agrotools_benchmarks._dialogs.gta_in import Source
from agrotools_build.export.gta_entries import SHORT_WORDS, AnswerKind, FieldMap, unread_values

Row = dict[str, Any]
NAMES = Path(__file__).with_name("proposals.toml")
_REQUIRED = ("sample.query", "calls.at", "calls.tool", "answer.at")
"""Keys of a map without which no entry can be read, beside ``files.at``, for which values count, too."""


class Proposal(NamedTuple):
    """Tables of a map, and a line on each field that was found, or that is needed and was not."""

    tables: dict[str, dict[str, Any]]
    lines: list[str]


def propose_places(rows: Sequence[Row], files_there: frozenset[str]) -> Proposal:
    """Return the places of a map that the names of fields propose. ``files_there``: names of files of the folder."""
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
    files_at = propose("files", "at", rows)
    files = [*_items_at(rows, files_at)]
    for key in ("path", "id", "type"):
        propose("files", key, files)
    if not files_at:
        _propose_files(rows, files_there, proposal)
    return proposal


def _propose_files(rows: Sequence[Row], files_there: frozenset[str], proposal: Proposal) -> None:
    """Propose the field whose values name files of the folder; with several, one may be gold, so they are only said."""
    taken = {proposal.tables.get(table, {}).get("at") for table in ("calls", "answer")}
    naming = [
        name
        for name in dict.fromkeys(field for row in rows for field in row)
        if name not in taken and _names_files(rows, name, files_there)
    ]
    if len(naming) == 1:
        proposal.tables["files"] = {"at": naming[0]}
    proposal.lines.append(f"files.at: {' or '.join(naming) or 'not found'}")


def _names_files(rows: Sequence[Row], field: str, files_there: frozenset[str]) -> bool:
    """True if a field is the name of a file of the folder, or a list with one."""
    values = [row.get(field) for row in rows]
    texts = [text for value in values for text in (list_in(value) or [value])]
    return any(isinstance(text, str) and _last_part(text) in files_there for text in texts)


def _last_part(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def propose_answer_types(rows: Sequence[Row], fields: FieldMap) -> Proposal:
    """Return the table ``[answer_types]`` for words in the files that the map lacks, by the values of their answers."""
    of_word: dict[str, list[tuple[Any, bool]]] = {}
    for row in rows:
        for answer in _items_at([row], fields.answer["at"]):
            word = value_at(answer, fields.answer["type"]) or value_at(row, fields.answer["type"])
            if isinstance(word, str) and word.strip().lower() not in _known_types(fields):
                value = value_at(answer, fields.answer["value"])
                of_word.setdefault(word.strip(), []).append((value, _has_tolerance(answer, fields)))
    proposal = Proposal({}, [])
    for word, answers in of_word.items():
        example = json.dumps(answers[0][0], ensure_ascii=False, default=str)
        kind = _type_of([value for value, _ in answers], any(stated for _, stated in answers))
        if kind:
            proposal.tables.setdefault("answer_types", {})[word] = kind
        proposal.lines.append(
            f"answer_types.{word}: {kind or 'not found'} (answers: {len(answers)}, such as {shorten(example)})"
        )
    return proposal


def _known_types(fields: FieldMap) -> set[str]:
    return {*map(str.lower, fields.answer_types), *get_args(AnswerKind)}


def _has_tolerance(answer: Any, fields: FieldMap) -> bool:
    return any(value_at(answer, fields.answer[key]) is not None for key in _TOLERANCES)


_TOLERANCES = ("abs_tol", "rel_tol", "tol")


def _type_of(values: Sequence[Any], has_tolerance: bool) -> str | None:
    """Return the type of answers that are all numbers, or all short texts; None for others, which may be open text."""
    if has_tolerance and all(number_in(value) is not None for value in values):
        return "tolerance"
    are_short = all(
        isinstance(value, str) and len(value.split()) <= SHORT_WORDS for value in values
    )
    return "exact" if are_short else None


def passed_over(rows: Sequence[Row], fields: FieldMap) -> list[str]:
    """Return a line on each field that a map does not read, with an example."""
    examples: dict[str, Any] = {}
    for name, value in unread_values(rows, fields):
        if examples.get(name) is None:
            examples[name] = value
    lines: list[str] = []
    for name, value in examples.items():
        example = json.dumps(value, ensure_ascii=False, default=str)
        lines.append(f"not read: {name}, such as {shorten(example)}")
    return lines


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
