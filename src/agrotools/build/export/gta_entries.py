"""Entries of third-party JSON, read with a field map that gives the path of each part of a sample."""

import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

import orjson
from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from agrotools.core import (
    AnswerType,
    Arguments,
    BenchmarkError,
    ExactSlot,
    FileKind,
    FileSlot,
    FrozenModel,
    PlotSlot,
    PlotSpec,
    ReferenceStep,
    Slot,
    ToleranceSlot,
    first_error,
)
from agrotools.formats.benchmark import SourceNote

MAP_FILE = "agrotools-map.toml"
DEFAULT_MAP = Path(__file__).with_name("gta_map.toml")


class NamedBenchmark(FrozenModel):
    """Header fields of the benchmark."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
    version: Annotated[str, Field(min_length=1)] = "1"
    licence: Annotated[str, Field(min_length=1)]
    description: str = ""
    synthetic: bool = False
    sources: tuple[SourceNote, ...] = ()


class SamplePaths(FrozenModel):
    id: str | None = None
    query: str
    tools: str | None = None
    tool_name: str = ""
    family: str | None = None
    task_type: str | None = None
    template: str | None = None
    source: str | None = None


class Defaults(FrozenModel):
    task_type: str
    family: str | None = None
    template: str = "imported"
    source: str = "imported"


class FilePaths(FrozenModel):
    at: str
    path: str = ""
    folder: str = ""
    type: str | None = None
    name: str | None = None
    note: str | None = None
    bands: str | None = None
    gsd_m: str | None = None
    crs: str | None = None
    intrinsics: str | None = None
    depth_unit_mm: str | None = None
    classes: str | None = None
    types: dict[str, FileKind] = {}


class CallPaths(FrozenModel):
    at: str
    each: str = ""
    tool: str
    arguments: str
    thought: str | None = None
    observation: str = ""
    reply_role: str | None = None
    reply: str = ""


class AnswerPaths(FrozenModel):
    at: str
    type: str | None = None
    value: str = "value"
    unit: str | None = None
    aliases: str | None = None
    abs_tol: str | None = None
    rel_tol: str | None = None
    name: str | None = None
    label: str | None = None
    default_abs_tol: Annotated[float, Field(ge=0)] | None = None
    default_rel_tol: Annotated[float, Field(ge=0)] | None = None
    types: dict[str, AnswerType] = {}


class FieldMap(FrozenModel):
    """Field map; ``gta_map.toml`` next to this module documents it and supplies missing tables."""

    data: str = "."
    file: str
    entries: str = ""
    unknown_tools: Literal["refuse", "keep"] = "refuse"
    benchmark: NamedBenchmark | None = None
    sample: SamplePaths
    defaults: Defaults
    files: FilePaths
    calls: CallPaths
    tools: dict[str, str] = {}
    arguments: dict[str, dict[str, str]] = {}
    answer: AnswerPaths
    task_types: dict[str, str] = {}


def read_map(path: Path = DEFAULT_MAP) -> FieldMap:
    """Read a field map, with missing tables from the default map; BenchmarkError if it is not valid."""
    hint = f"{DEFAULT_MAP} is an example with every key"
    try:
        local_map = _toml(path)
        whole = local_map if path == DEFAULT_MAP else {**_toml(DEFAULT_MAP), **local_map}
        return FieldMap.model_validate_json(orjson.dumps(whole))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, orjson.JSONEncodeError) as error:
        raise BenchmarkError(f"the field map {path} cannot be read: {error}", hint=hint) from error
    except ValidationError as error:
        raise BenchmarkError(f"the field map {path}: {first_error(error)}", hint=hint) from error


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def value_at(value: Any, path: str | None, default: Any = None) -> Any:
    """Return the value at ``path`` (keys and positions joined by dots) in ``value``, or ``default`` if it is absent.

    Of several paths, joined by ``|``, the first that exists counts.
    """
    if path is None:
        return default
    if "|" in path:
        values = (value_at(value, each, _NOTHING) for each in path.split("|"))
        return next((each for each in values if each is not _NOTHING), default)
    for part in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(part, _NOTHING)
        elif isinstance(value, list) and part.lstrip("-").isdecimal() and -len(value) <= int(part) < len(value):
            value = value[int(part)]
        else:
            value = _NOTHING
        if value is _NOTHING:
            return default
    return value


def unread_fields(entries: Mapping[str, Any], fields: FieldMap) -> dict[str, int]:
    """Count the fields of entries, files and messages that the map does not read."""
    files, calls, sample = fields.files, fields.calls, fields.sample
    of_entry = [*sample.model_dump().values(), files.at, calls.at, fields.answer.at]
    of_file = [value for name, value in files.model_dump(exclude={"at", "folder", "types"}).items() if name != "at"]
    of_message = [calls.each or calls.tool, calls.arguments, calls.thought, calls.observation, calls.reply, "role"]
    counts: Counter[str] = Counter()
    for content in entries.values():
        levels = [("", [content], of_entry)]
        levels += [(f"{files.at}: ", value_at(content, files.at, []), of_file)]
        levels += [(f"{calls.at}: ", value_at(content, calls.at, []), of_message)]
        for prefix, items, read in levels:
            known = {each.split(".")[0] for path in read if path for each in path.split("|")}
            keys = {key for item in items if isinstance(item, dict) for key in item} if isinstance(items, list) else ()
            counts.update(f"{prefix}{key}" for key in keys if key not in known)
    return dict(counts.most_common())


_SLOT: TypeAdapter[Slot] = TypeAdapter(Slot)
_LEADING: dict[str, AnswerType] = {"tolerance": "tolerance", "open_text": "open_text", "plot": "plot"}
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}
_NOTHING = object()


def slots_of(
    entry: Any, paths: AnswerPaths, steps: Sequence[ReferenceStep], files: Mapping[str, str]
) -> tuple[AnswerType, tuple[Slot, ...]]:
    """Return answer type and slots of an entry, from GTA's ``gt_answer``, one answer or a list of answers.

    Each group of a ``whitelist`` becomes a slot: yes or no, the name of a file (``files``: names of the sample's files
    by spelling), or otherwise an exact slot whose spellings are aliases. Reference texts become the phrasings of one
    fact; null becomes the figure drawn by the last call of ``plot``.

    Raises:
        BenchmarkError: the answer has none of these forms, or lacks a field that its type requires (named in the
            message).
    """
    value = value_at(entry, paths.at, _NOTHING)
    if value is _NOTHING:
        raise BenchmarkError(f"there is no answer at {paths.at!r}")
    if isinstance(value, dict) and "whitelist" in value:
        plain = _of_whitelist(cast(dict[str, Any], value), files)
    elif isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        facts = [{"phrases": value}]
        plain = [{"type": "open_text", "name": "answer", "label": "answer", "facts": facts}]
    elif value is None or value in ([], {}):
        plain = [_figure(steps)]
    else:
        several = cast(list[Any], value) if isinstance(value, list) else [value]
        plain = [_of_answer(one, entry, paths, number, steps) for number, one in enumerate(several, start=1)]
        names = [slot["name"] for slot in plain]
        if len(set(names)) < len(names):
            raise BenchmarkError("two of its answers have one name")
    try:
        slots = tuple(_SLOT.validate_json(orjson.dumps(slot)) for slot in plain)
    except ValidationError as error:
        raise BenchmarkError(f"its answer: {first_error(error)}") from error
    return _LEADING.get(slots[0].type, "exact"), slots


def _of_whitelist(given: dict[str, Any], files: Mapping[str, str]) -> list[dict[str, Any]]:
    groups, wrong = given["whitelist"], given.get("blacklist") or []
    if not isinstance(groups, list) or not groups or not all(isinstance(group, list) and group for group in groups):
        raise BenchmarkError("its whitelist is not a list of lists of spellings")
    distractors = [str(word) for group in wrong for word in (group if isinstance(group, list) else [group])]
    names = list(dict.fromkeys(files.values()))
    slots: list[dict[str, Any]] = []
    for number, group in enumerate(cast(list[list[Any]], groups), start=1):
        name = "answer" if len(groups) == 1 else f"answer_{number}"
        slot: dict[str, Any] = {"name": name, "label": name.replace("_", " ")}
        value, *aliases = map(str, group)
        truths = {_YES_NO.get(text.casefold()) for text in (value, *aliases)}
        if len(truths) == 1 and None not in truths:
            slot |= {"type": "boolean", "value": truths.pop()}
        elif not aliases and value in files:
            slot |= {"type": "file", "value": files[value], "choices": names}
        else:
            others = [word for word in distractors if word not in (value, *aliases)]
            slot |= {"type": "exact", "value": value, "aliases": {value: aliases} if aliases else {}}
            slot |= {"choices": [value, *others]} if others else {}
        slots.append(slot)
    return slots


def _of_answer(one: Any, entry: Any, paths: AnswerPaths, number: int, steps: Sequence[ReferenceStep]) -> dict[str, Any]:
    """Return the slot of an answer, which is an object or a plain value."""
    value = value_at(one, paths.value) if isinstance(one, dict) else one

    def beside(path: str | None) -> Any:
        """Return a property of the answer: a key of the answer if it is an object, otherwise of the entry."""
        return value_at(one if isinstance(one, dict) else entry, path)

    word = beside(paths.type)
    by_form = "open_text" if isinstance(value, list) else "exact"
    kind = paths.types.get(str(word), str(word) if word is not None else by_form)
    slot: dict[str, Any] = {
        "type": kind,
        "name": beside(paths.name) or f"answer_{number}",
        "label": beside(paths.label) or beside(paths.name) or "answer",
    }
    if kind == "plot":
        return slot | {"value": value} if isinstance(value, dict) else slot | {"value": _figure(steps)["value"]}
    if value is None:
        raise BenchmarkError(f"its answer has no value at {paths.value!r}")
    if kind == "open_text":
        texts = value if isinstance(value, list) else [value]
        return slot | {"facts": [{"phrases": [str(text) for text in texts]}]}
    if kind == "tolerance":
        return slot | _tolerance(value, beside, paths)
    if isinstance(value, bool):
        return slot | {"type": "boolean", "value": value}
    aliases = beside(paths.aliases)
    unit = {"unit": beside(paths.unit)} if beside(paths.unit) else {}
    return slot | {
        "value": value,
        "aliases": {str(value): [*map(str, aliases)]} if isinstance(aliases, list) else {},
        **unit,
    }


def _tolerance(value: Any, beside: Any, paths: AnswerPaths) -> dict[str, Any]:
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise BenchmarkError(f"its answer {value!r} is of type tolerance and no number") from error
    abs_tol, rel_tol = beside(paths.abs_tol), beside(paths.rel_tol)
    if abs_tol is None and rel_tol is None:
        abs_tol, rel_tol = paths.default_abs_tol, paths.default_rel_tol
    if abs_tol is None and rel_tol is None:
        raise BenchmarkError("its answer is of type tolerance and has none: set answer.default_rel_tol in the map")
    return {"value": number, "unit": beside(paths.unit), "abs_tol": abs_tol or 0.0, "rel_tol": rel_tol or 0.0}


def _figure(steps: Sequence[ReferenceStep]) -> dict[str, Any]:
    """Return the slot of a figure: the specification returned by the last call of ``plot``, or its arguments."""
    for step in reversed(steps):
        if step.tool != "plot":
            continue
        result = step.observation.result if step.observation else None
        drawn_arguments = {name: value for name, value in step.arguments.items() if name in PlotSpec.model_fields}
        for spec in (result.get("spec") if result else None, drawn_arguments):
            try:
                plot = PlotSpec.model_validate_json(orjson.dumps(spec)).model_dump(mode="json")
            except ValidationError:
                continue
            return {"type": "plot", "name": "figure", "label": "figure", "value": plot, "value_from": "tool"}
    raise BenchmarkError("its answer is a figure, and no call of plot says what it shows")


def with_from(slot: Slot, steps: Sequence[ReferenceStep]) -> Slot:
    """Return ``slot`` with a reference to the field of the last observation that has its value, if exactly one has."""
    last = next((number for number in reversed(range(len(steps))) if steps[number].observation), None)
    if last is None or slot.from_ is not None:
        return slot
    observation = steps[last].observation
    result = observation.result if observation and observation.result else {}
    fields = [name for name, value in result.items() if name.isidentifier() and _holds(slot, value)]
    if len(fields) != 1:
        return slot
    return slot.model_copy(update={"from_": f"steps[{last}].observation.{fields[0]}"})


def _holds(slot: Slot, value: JsonValue) -> bool:
    if isinstance(slot, PlotSlot | FileSlot):
        return value == slot.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(slot, ToleranceSlot):
            return abs(value - slot.value) <= slot.margin
        value = str(value) if math.isfinite(value) else None
    return (
        isinstance(slot, ExactSlot)
        and isinstance(value, str)
        and value.casefold() in {name.casefold() for name in slot.names}
    )


class EntryCall(NamedTuple):
    """Call of an entry, with the names used in the entry, and its result."""

    tool: str
    arguments: Arguments
    thought: str
    returned: JsonValue


class Entry(NamedTuple):
    """Public fields of an entry. ``files``: paths in the folder that is read."""

    key: str
    query: str
    files: tuple[str, ...]
    calls: tuple[EntryCall, ...]


def entries_in(folder: Path, fields: FieldMap) -> Iterator[tuple[str, Any]]:
    """Yield keys and contents of all entries of the JSON file in ``folder`` that ``fields`` names.

    Raises:
        BenchmarkError: the file does not exist, is not JSON, or has no entries at the given path.
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
            f"{path} is not JSON: {error}", hint="JSON, or JSON lines where it ends in .jsonl"
        ) from error
    entries = value_at(whole, fields.entries)
    if isinstance(entries, dict):
        yield from ((str(key), value) for key, value in entries.items())
    elif isinstance(entries, list):
        yield from ((str(number), value) for number, value in enumerate(entries))
    else:
        raise BenchmarkError(f"{path}: there are no entries at {fields.entries!r}", hint="set `entries` in a field map")


def read_entry(key: str, content: Any, fields: FieldMap) -> Entry:
    """Read question, files and calls of an entry; BenchmarkError names the part that cannot be read."""
    if not isinstance(content, dict):
        raise BenchmarkError("it is not an object")
    query = value_at(content, fields.sample.query)
    if not isinstance(query, str) or not query.strip():
        raise BenchmarkError(f"there is no question at {fields.sample.query!r}")
    listed = value_at(content, fields.files.at, [])
    if not isinstance(listed, list):
        raise BenchmarkError(f"there is no list of files at {fields.files.at!r}")
    paths = [item if isinstance(item, str) else value_at(item, fields.files.path) for item in listed]
    if not all(isinstance(path, str) and path for path in paths):
        raise BenchmarkError(f"a file has no path at {fields.files.path!r}")
    places = tuple(f"{fields.files.folder}{path}" for path in paths)
    return Entry(key, query, places, tuple(_calls(content, fields)))


def _calls(content: Any, fields: FieldMap) -> Iterator[EntryCall]:
    paths = fields.calls
    messages = value_at(content, paths.at)
    if not isinstance(messages, list):
        raise BenchmarkError(f"there is no list of calls at {paths.at!r}")
    for position, message in enumerate(cast(list[Any], messages)):
        # With "each" as in "tool_calls|", a step that is no message of a role is itself a call.
        itself = paths.each.endswith("|") and isinstance(message, dict) and "role" not in message
        calls = value_at(message, paths.each if itself else paths.each.rstrip("|"), [])
        replies = _replies(messages[position + 1 :], fields)
        for call in calls if isinstance(calls, list) else [calls]:
            tool = value_at(call, paths.tool)
            if not isinstance(tool, str):
                if paths.each:
                    raise BenchmarkError(f"a call has no tool at {paths.tool!r}")
                continue  # If messages are themselves calls, other messages may come between them.
            arguments = _arguments(value_at(call, paths.arguments, {}), tool)
            returned = next(replies, None) if paths.reply_role else None
            returned = value_at(call, paths.observation or None) if returned is None else returned
            thought = value_at(message, paths.thought)
            yield EntryCall(tool, arguments, thought if isinstance(thought, str) else "", returned)


def _replies(later: list[Any], fields: FieldMap) -> Iterator[JsonValue]:
    """Yield results of calls, from the messages right after them."""
    for message in later:
        if value_at(message, "role") != fields.calls.reply_role:
            return
        yield value_at(message, fields.calls.reply)


def _arguments(given: Any, tool: str) -> Arguments:
    if isinstance(given, str):
        try:
            given = orjson.loads(given)
        except orjson.JSONDecodeError as error:
            raise BenchmarkError(f"the arguments of {tool} are not JSON: {error}") from error
    if not isinstance(given, dict):
        raise BenchmarkError(f"the arguments of {tool} are not an object")
    return cast(Arguments, given)
