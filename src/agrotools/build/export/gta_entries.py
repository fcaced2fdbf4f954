"""Entries of third-party JSON, read with a field map that gives the path of each part of a sample."""

import ast
import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

import orjson
from pydantic import Field, ValidationError

from agrotools.benchmarks.values import NOTHING, read_rows, value_at
from agrotools.core import FAMILIES, AgreementKind, Arguments, BenchmarkError, FileKind, FrozenModel, first_error
from agrotools.core.files import cache_dir, read_text
from agrotools.text.loose_json import parsed

MAP_FILE = "agrotools-map.toml"
DEFAULT_MAP = Path(__file__).with_name("gta_map.toml")
AnswerKind = Literal["exact", "tolerance", "open_text", "plot", "boolean", "choice_set", "rank", "abstain"]
Paths = dict[str, str]


class Defaults(FrozenModel):
    """Values of samples and answers that state none."""

    task_type: str
    family: str | None = None
    template: str = "imported"
    source: str = "imported"
    abs_tol: Annotated[float, Field(ge=0)] | None = None
    rel_tol: Annotated[float, Field(ge=0)] | None = None
    tol_kind: Literal["rel", "abs", "percent"] = "rel"
    any: bool = False  # one item of a list of exact answers is enough


class FieldMap(FrozenModel):
    """Field map; ``gta_map.toml`` next to this module documents it and supplies what a map lacks."""

    data: str
    file: str
    entries: str
    unknown_tools: Literal["refuse", "keep", "declare"]
    benchmark: dict[str, Any]
    """Header fields of the benchmark; without a name, that of the folder counts."""
    sample: Paths
    defaults: Defaults
    files: Paths
    file_types: dict[str, FileKind]
    calls: Paths
    tools: dict[str, str]
    proposals: dict[str, str]
    arguments: dict[str, dict[str, str]]
    agreement: dict[str, AgreementKind]
    answer: Paths
    answer_types: dict[str, AnswerKind]
    answers: dict[str, Any]
    families: dict[str, str] = {name: family for family, name in FAMILIES.items()}
    task_types: dict[str, str]


TABLES = ("sample", "files", "calls", "answer")
"""Tables of paths."""


def read_map(path: Path = DEFAULT_MAP, base: Path = DEFAULT_MAP) -> FieldMap:
    """Read a field map, completed by the map ``base`` and the default map; BenchmarkError if one is not valid."""
    hint = f"{base} is an example with every key"
    try:
        default, *maps = (tomllib.loads(read_text(each)) for each in (DEFAULT_MAP, base, path))
        fields = FieldMap.model_validate_json(orjson.dumps(_merged(_merged(default, maps[0]), maps[1])))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, orjson.JSONEncodeError) as error:
        raise BenchmarkError(f"the field map {path} cannot be read: {error}", hint=hint) from error
    except ValidationError as error:
        raise BenchmarkError(f"the field map {path}: {first_error(error)}", hint=hint) from error
    unknown = [f"{name}.{key}" for name in TABLES for key in getattr(fields, name) if key not in default[name]]
    if unknown:
        raise BenchmarkError(f"the field map {path}: {unknown[0]} is no key of a map", hint=hint)
    return fields


def _merged(base: Any, own: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(own, dict):
        return own
    return {**base, **{key: _merged(base.get(key), value) for key, value in own.items()}}


def unread_fields(entries: Mapping[str, Any], fields: FieldMap) -> dict[str, int]:
    """Count the fields of entries, files and messages that the map does not read."""
    paths = "|".join(path for table in TABLES for path in getattr(fields, table).values())
    known = {path.strip().split(".")[0] for path in re.split(r"[|+]", paths)}
    counts: Counter[str] = Counter()
    for content in entries.values():
        levels = [("", [content]), ("calls: ", parsed(value_at(content, fields.calls["at"])))]
        with suppress(BenchmarkError):  # reported with the entry
            levels.append(("files: ", files_of(content, fields)))
        for prefix, items in levels:
            objects = [item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict)]
            counts.update(f"{prefix}{key}" for item in objects for key in item if key not in known)
    return dict(counts.most_common())


class EntryCall(NamedTuple):
    """Call of an entry, with the names used in the entry, and its result (``NOTHING``: none is recorded)."""

    tool: str
    arguments: Arguments
    thought: str
    returned: Any


class Entry(NamedTuple):
    """Public fields of an entry. ``files``: paths in the folder that is read; ``words``: the final answer."""

    key: str
    query: str
    files: tuple[str, ...]
    calls: tuple[EntryCall, ...]
    words: str


def entry_files(folder: Path, fields: FieldMap) -> list[Path]:
    """Return the file that the map names, else ``agrotools.jsonl``, or all parquet files, else JSON, else tables."""
    if fields.file or (folder / "agrotools.jsonl").is_file():
        return [folder / (fields.file or "agrotools.jsonl")]
    there = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    forms = ((".parquet",), (".json", ".jsonl"), (".csv", ".tsv"))
    return next(filter(None, ([path for path in there if path.suffix in form] for form in forms)), [])


def entries_in(folder: Path, fields: FieldMap) -> dict[str, Any]:
    """Return all entries in ``folder`` by position; pictures inside parquet files are written to :func:`pictures`.

    An object with a question is an entry, with what else its folder holds if it is the only one there. Rows of several
    files complete the entry with their id, if they have no question or agree with it.
    """
    files, query, rows = entry_files(folder, fields), fields.sample["query"], list[Any]()
    contents = {path: content_of(path) for path in files if path.suffix == ".json"}
    single = {path: each for path, each in contents.items() if isinstance(each, dict) and value_at(each, query)}
    in_folder = Counter(path.parent for path in single)
    for path in files:
        if path in single:
            rows.append(_in_folder(path.parent) if in_folder[path.parent] == 1 else {"id": path.stem, **single[path]})
        elif in_folder[path.parent] != 1:
            rows += map(_plain, read_rows(path, fields.entries))
    objects = sorted((row for row in rows if isinstance(row, dict)), key=lambda row: not value_at(row, query))
    if len(files) > 1 and objects and value_at(objects[0], query):
        by_id: dict[str, list[dict[str, Any]]] = {}
        for row in objects:  # first those with a question
            same, asks = by_id.setdefault(str(value_at(row, fields.sample["id"], id(row))), []), value_at(row, query)
            if len(same) == 1 and (not asks or all(same[0].get(key, value) == value for key, value in row.items())):
                same[0].update({**row, **same[0]})
            elif asks:
                same.append(row)
        rows = [row for same in by_id.values() for row in same]
    return {str(number): row for number, row in enumerate(rows)}


def content_of(path: Path) -> Any:
    """Return the content of a text file or a JSON file; None if it cannot be read."""
    try:
        return read_text(path).strip() if path.suffix == ".txt" else orjson.loads(read_text(path))
    except (OSError, ValueError):
        return None


def _in_folder(folder: Path) -> dict[str, Any]:
    """Return the entry of a folder: the keys of its objects, and each other content by the name of its file."""
    contents = {path.stem: content_of(path) for path in sorted(folder.iterdir()) if path.suffix in (".json", ".txt")}
    entry = {"id": folder.name}
    for content in contents.values():
        entry = {**content, **entry} if isinstance(content, dict) else entry
    return {**contents, **entry}


def _plain(value: Any) -> Any:
    """Return a value of a row as JSON; pictures are written, and named by their path."""
    if isinstance(value, dict):
        if isinstance(value.get("bytes"), bytes):
            digest, name = hashlib.sha256(value["bytes"]).hexdigest()[:16], Path(str(value.get("path") or "x.png")).name
            (pictures() / digest).mkdir(parents=True, exist_ok=True)
            (pictures() / digest / name).write_bytes(value["bytes"])
            return {"path": f"{digest}/{name}"}
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def pictures() -> Path:
    """Return the folder in the cache of pictures that were inside parquet files."""
    return cache_dir("benchmarks") / "pictures"


def files_of(content: Any, fields: FieldMap) -> list[Any]:
    """Return the files that an entry lists, at all places that the map joins by ``+``."""
    places = [parsed(value_at(content, each.strip(), NOTHING)) for each in fields.files["at"].split("+")]
    if fields.unknown_tools == "declare" and {*map(id, places)} == {id(NOTHING)}:
        raise BenchmarkError(f"there are no files at {fields.files['at']!r} ([files] at)")
    lists = [[] if each in (None, NOTHING) else [each] if isinstance(each, str) else each for each in places]
    if not all(isinstance(each, list) for each in lists):
        raise BenchmarkError(f"there is no list of files at {fields.files['at']!r} ([files] at)")
    return [item for each in lists for item in each]


def _text(value: Any) -> Any:
    """Return the text of a message, whose content may be a list of parts; any other value as it is."""
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        return "\n".join(part["text"] for part in value if isinstance(part.get("text"), str)) or value
    return value


def read_entry(key: str, content: Any, fields: FieldMap) -> Entry:
    """Read question, files and calls of an entry; BenchmarkError names the part that cannot be read."""
    if not isinstance(content, dict):
        raise BenchmarkError("it is not an object")
    query, at = _text(value_at(content, fields.sample["query"])), fields.files["path"]
    if not isinstance(query, str) or not query.strip():
        raise BenchmarkError(f"there is no question at {fields.sample['query']!r} ([sample] query)")
    paths = [item if isinstance(item, str) else value_at(item, at) for item in files_of(content, fields)]
    if not all(isinstance(path, str) and path for path in paths):
        raise BenchmarkError(f"a file has no path at {at!r} ([files] path)")
    calls, folder = _calls(content, fields), fields.files["folder"]
    places = tuple(folder + path.strip().replace("\\", "/") for path in paths)
    ends = [call for call in calls if call.tool in fields.calls["end"].split("|")]
    words = [_text(value_at(content, fields.calls["final"])), *(it for end in ends for it in end.arguments.values())]
    last = next((each for each in reversed(words) if isinstance(each, str)), "")
    query = _IMAGE_MARKS.sub("", query).strip()
    return Entry(key, query, places, tuple(call for call in calls if call not in ends), last)


def _calls(content: Any, fields: FieldMap) -> list[EntryCall]:
    """Return the calls of a list of steps, or of messages that hold calls and results, by id or in their order."""
    paths, found, waiting = fields.calls, list[EntryCall](), list[tuple[Any, int]]()
    messages, roles = parsed(value_at(content, paths["at"])), paths["reply_role"].split("|")
    if not isinstance(messages, list):
        raise BenchmarkError(f"there is no list of calls at {paths['at']!r} ([calls] at)")
    for message in cast(list[Any], messages):
        inside = parsed(value_at(message, paths["each"])) if value_at(message, paths["role"]) not in roles else None
        items = inside if isinstance(inside, list) else [inside if isinstance(inside, dict) else message]
        for item in cast(list[Any], items):
            if value_at(item, paths["role"]) in roles and value_at(item, f"function.name|{paths['arguments']}") is None:
                key = value_at(item, paths["reply_id"])
                place = next((each for each in waiting if None in (key, each[0]) or each[0] == key), None)
                if place is None:
                    raise BenchmarkError(f"there is a result without a call, {key or 'no id'} ([calls] at, each, id)")
                waiting.remove(place)
                found[place[1]] = found[place[1]]._replace(returned=_text(value_at(item, paths["reply"], NOTHING)))
                continue
            tool, arguments = value_at(item, paths["tool"]), value_at(item, paths["arguments"], NOTHING)
            thought = value_at(message, paths["thought"])
            if written := _ACTION.search(said) if isinstance(said := value_at(item, "content|value"), str) else None:
                thought, tool, arguments = (each.strip() for each in written.groups(""))
            if isinstance(tool, str) and _WHOLE_CALL.fullmatch(tool):
                tool, arguments = _written(tool)
            if arguments is NOTHING and (not isinstance(tool, str) or value_at(item, paths["role"]) is not None):
                continue  # a message without a call
            if not isinstance(tool, str):
                raise BenchmarkError(f"a call has no tool at {paths['tool']!r} ([calls] tool)")
            given = parsed({} if arguments in (NOTHING, None, "") else arguments)
            if not isinstance(given, dict):
                fault = f"not JSON: {given[:60]!r}" if isinstance(given, str) else "not an object"
                raise BenchmarkError(f"the arguments of {tool} are {fault} ([calls] arguments)")
            waiting.append((value_at(item, paths["id"]), len(found)))
            returned = value_at(item, paths["observation"], NOTHING) if paths["observation"] else NOTHING
            found.append(EntryCall(tool.strip(), given, str(thought or ""), returned))
    return found


_IMAGE_MARKS = re.compile(r"^(\s*<image>)+|(<image>\s*)+$")
_WHOLE_CALL = re.compile(r"\s*[\w.]+\(.*\)\s*", re.DOTALL)
_ACTION = re.compile(r"^(?:\s*Thought:(.*?)\n)?\s*Action:([^\n]+)\n\s*Action Input:(.*)", re.DOTALL)


def _written(call: str) -> tuple[str, Arguments]:
    """Return tool and arguments of a call that is written as Python, ``Tool(a="x")``."""
    with suppress(SyntaxError, ValueError, AttributeError):
        tree: Any = ast.parse(call.strip(), mode="eval").body
        if not tree.args:
            return ast.unparse(tree.func), {each.arg: ast.literal_eval(each.value) for each in tree.keywords}
    raise BenchmarkError(f"the tool {call[:60]!r} is a whole call, with arguments without names ([calls] tool)")
