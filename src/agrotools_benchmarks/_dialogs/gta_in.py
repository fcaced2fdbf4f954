"""Import of GTA-shaped JSON, or other JSON that a field map describes, into a benchmark folder.

Nothing is dropped silently: entries that cannot be read are listed with the reason in the header's metadata
(``unread``, ``note``) and on the card.
"""

import hashlib
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import groupby
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
from pydantic import JsonValue, ValidationError

from agrotools.calling import tool_names
from agrotools.calling.declared import chart_of, declared_tools
from agrotools.core import (
    FAMILY_OF_TASK_TYPE,
    Arguments,
    BenchmarkError,
    DeclaredTool,
    ErrorInfo,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    first_error,
)
from agrotools.core.files import sha256_of_file
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import FILES_FOLDER, BenchmarkHeader
from agrotools.formats.writing import replace_folder
from agrotools.loading.checking import count_list
from agrotools.loading.validate import STOPS_RUN
from agrotools.loading.values import NOTHING, lettered, translated, value_at
from agrotools.text.loose_json import parsed
from agrotools_benchmarks._dialogs.loading import (
    entry_list,
    image_size,
    plain_path,
    safe_name,
)
from agrotools_build.building import without_faulty
from agrotools_build.export.folder import write_benchmark
from agrotools_build.export.gta_entries import (
    DEFAULT_MAP,
    MAP_FILE,
    AnswerReader,
    Entry,
    EntryCall,
    FieldMap,
    content_of,
    entries_in,
    files_of,
    read_entry,
    read_map,
    unread_fields,
    with_from,
)
from agrotools_tools import AGROTOOLS

_FILE_FIELDS = ("note", "bands", "gsd_m", "crs", "intrinsics", "depth_unit_mm", "classes")


def build_gta(place: Path, out: Path, progress: Progress = no_progress) -> BenchmarkHeader:
    """Convert ``place``, a folder with GTA-shaped JSON or a field map (TOML), into the benchmark folder ``out``.

    The folder may contain its own map, ``agrotools-map.toml``. Entries with a fault for which no run would begin are
    left out and counted. BenchmarkError: no entry is left, the map has unknown keys, or ``out`` contains something
    else, which stays.
    """
    folder, fields = _map_of(place)
    # With unknown_tools = "keep", the map itself asks for entries that cannot be run.
    codes = STOPS_RUN if fields.unknown_tools == "refuse" else STOPS_RUN - {"unknown_tool"}
    return import_entries(
        entries_in(folder, fields), folder, fields, out, progress, without_faults=codes
    )


class KnownOfEntries(NamedTuple):
    """What is known of entries before they are converted.

    ``left``: fields that are not read, with their number; ``metadata``: more fields of the header's metadata.
    """

    left: Mapping[str, int] = MappingProxyType({})
    metadata: Mapping[str, Any] = MappingProxyType({})


def import_entries(
    entries: Mapping[str, Any],
    folder: Path,
    fields: FieldMap,
    out: Path,
    progress: Progress = no_progress,
    known: KnownOfEntries | None = None,
    without_faults: Collection[str] = (),
) -> BenchmarkHeader:
    """Convert ``entries``, whose files are in ``folder``; errors as in :func:`build_gta`.

    ``without_faults``: codes of faults; entries that have one are left out and counted in the header's metadata.
    """
    known = known or KnownOfEntries(left=unread_fields(entries, fields))
    source = Source(folder, fields, entries)
    samples: list[Sample] = []
    seen: set[str] = set()
    unread: dict[str, list[str]] = {}
    number_of_all = len(entries)
    with replace_folder(out) as partial:
        (partial / FILES_FOLDER).mkdir()
        for number, (key, content) in enumerate(entries.items(), start=1):
            try:
                entry = read_entry(key, content, fields)
                sample = _read_sample(content, entry, source)
                if sample.id in seen:
                    raise BenchmarkError(f"its id {sample.id!r} is there twice ([sample] id)")
                for file, original in zip(sample.files, entry.files, strict=True):
                    shutil.copyfile(source.find(original), partial / file.path)
                seen.add(sample.id)
                samples.append(sample)
            except BenchmarkError as error:
                unread.setdefault(error.message, []).append(_key_and_id(key, content, fields))
            progress("entries", number, len(entries))
        n_read, dropped = len(samples), Counter[str]()
        samples = without_faulty(samples, partial, dropped, without_faults)
        reasons = "; ".join(
            [f"{reason}: {entry_list(keys)}" for reason, keys in unread.items()]
            + [f"{count} {reason}" for reason, count in dropped.items()]
        )
        if not samples:
            hint = f"give a field map, --source gta=MAP.toml; {DEFAULT_MAP} is one"
            raise BenchmarkError(
                f"none of the {number_of_all} entries can be used. {reasons}", hint=hint
            )
        left = known.left
        others = Counter(
            each.task_type for each in samples if each.task_type not in FAMILY_OF_TASK_TYPE
        )
        lost = number_of_all - n_read
        notes = (
            [f"{lost} of {number_of_all} entries could not be read. {reasons}"] if unread else []
        )
        notes += (
            [f"fields that the map does not read, with their number: {count_list(left)}"]
            if left
            else []
        )
        notes += (
            [f"files found in other folders than they are named in: {_examples(source.by_end)}"]
            if source.by_end
            else []
        )
        notes += [f"no translation under [task_types]: {count_list(others)}"] if others else []
        metadata = {
            "unread": unread,
            **({"dropped": {**dropped}} if dropped else {}),
            "unread_fields": left,
            "notes": notes,
            "note": " ".join(notes),
            **known.metadata,
        }
        header = _header(source, samples, metadata)
        write_benchmark(partial, header, samples)
    return header


def _key_and_id(key: str, content: Any, fields: FieldMap) -> str:
    """Return what a message calls an entry: its key or position, and its own id if that is another one."""
    own = value_at(content, fields.sample["id"])
    return key if own is None or str(own) == key else f"{key} ({own})"


def _examples(by_end: Mapping[str, str]) -> str:
    path, found = next(iter(by_end.items()))
    return f"{len(by_end)}, such as {path} in {found}"


def _map_of(place: Path) -> tuple[Path, FieldMap]:
    if place.is_file():
        fields = read_map(place)
        return place.parent / Path(fields.data).expanduser(), fields
    if not place.is_dir():
        raise BenchmarkError(
            f"there is no {place}", hint="give the folder of the JSON file, or a field map"
        )
    return place, read_map(place / MAP_FILE) if (place / MAP_FILE).is_file() else read_map()


Parts = tuple[str, ...]
"""Parts of a path."""


def _parts_of(path: str) -> Parts:
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return tuple(part for part in parts if part not in ("/", ".", ".."))


def _shared_end(first: Parts, second: Parts) -> int:
    """Return the number of parts, from the last, that two paths share."""
    pairs = zip(reversed(first), reversed(second), strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second))
    )


def _is_end(first: Parts, second: Parts) -> bool:
    """True if one path is the end of the other."""
    return _shared_end(first, second) == min(len(first), len(second))


class Source:
    """Folder of entries, its files, and the tools that it declares."""

    def __init__(
        self,
        folder: Path,
        fields: FieldMap,
        entries: Mapping[str, Any],
    ) -> None:
        self.folder, self.fields = folder, fields
        self._paths: set[Parts] = set()
        """Paths of files in the entries."""
        self.by_end: dict[str, str] = {}
        """Files whose folders have other names in the entries, by the path there."""
        self.declared: dict[str, DeclaredTool] = {}
        if fields.unknown_tools == "declare":
            for name in {*fields.tools.values(), *fields.arguments} - {*tool_names(), ""}:
                raise BenchmarkError(
                    f"the field map: there is no tool {name!r} ([tools], [arguments])"
                )
            calls: list[tuple[str, Arguments]] = []
            for key, content in entries.items():
                with suppress(BenchmarkError):  # reported with the entry
                    entry = read_entry(key, content, fields)
                    calls += [(call.tool, call.arguments) for call in entry.calls]
                    self._paths |= {_parts_of(path) for path in entry.files}
            listed = [value_at(content, fields.sample["tools"]) for content in entries.values()]
            small = [
                path for path in sorted(folder.rglob("*.json")) if path.stat().st_size <= 1_000_000
            ]
            listed += map(content_of, small)
            declared = declared_tools(
                listed, calls, fields.tools, fields.arguments, fields.agreement
            )
            self.declared = {
                name: _as_called(tool, [given for called, given in calls if called == name])
                for name, tool in declared.items()
            }

    @cached_property
    def _by_name(self) -> dict[str, dict[tuple[str, ...], Path]]:
        """Return the files by name and by the parts of their path in their folder."""
        by_name: dict[str, dict[tuple[str, ...], Path]] = {}
        for path in self.folder.rglob("*"):
            if path.is_file() and path.resolve().is_relative_to(self.folder.resolve()):
                by_name.setdefault(path.name, {})[path.relative_to(self.folder).parts] = path
        return by_name

    def find(self, path: str) -> Path:
        """Return the file that shares the longest end of its path with the given one, which may be of another machine.

        BenchmarkError: there is none, or several; or two paths of entries would mean one file, and not by all of it.
        """
        parts = _parts_of(path)
        found = self._fitting(parts)
        are_ends = any(_is_end(parts, each) for each in found)
        if len(found) != 1 or not (are_ends or self._is_alone(parts, found[0])):
            several = len(found) > 1 and are_ends
            raise BenchmarkError(
                f"there {'are several files' if several else 'is no file'} {path!r} ([files] at, path)"
            )
        if not are_ends:
            self.by_end[path] = "/".join(found[0])
        return self._by_name[parts[-1]][found[0]]

    def _fitting(self, parts: Parts) -> list[Parts]:
        """Return the files that a path may mean: those that share the longest end with it."""
        there = self._by_name.get(parts[-1], {}) if parts else {}
        shared = {each: _shared_end(parts, each) for each in there}
        longest = max(shared.values(), default=0)
        found = [each for each, length in shared.items() if length == longest]
        whole = [each for each in found if len(each) == longest]
        return whole or found

    def _is_alone(self, parts: Parts, file: Parts) -> bool:
        """True if no other path in the entries means a file as well as one whose folders have other names."""
        own = _shared_end(parts, file)
        others = self._given.get(file, set()) - {parts}
        return parts in self._paths and all(_shared_end(each, file) < own for each in others)

    @cached_property
    def _given(self) -> dict[Parts, set[Parts]]:
        """Return the paths in the entries that mean each file, by the longest end that they share with it."""
        given: dict[Parts, set[Parts]] = {}
        for parts in self._paths:
            for file in self._fitting(parts):
                given.setdefault(file, set()).add(parts)
        return given

    def tool(self, name: str) -> str:
        """Return the name of a tool in samples: as the files declare it, or of the tool that the map makes it."""
        if name in self.declared:
            return self.declared[name].name
        ours = self.fields.tools.get(name, name)
        if ours not in tool_names() and self.fields.unknown_tools == "refuse":
            raise BenchmarkError(
                f'there is no tool {ours!r}: map it under [tools], or set unknown_tools = "keep"'
            )
        return ours


def _as_called(tool: DeclaredTool, calls: Sequence[Arguments]) -> DeclaredTool:
    """Return a tool for figures without a tool of ours that runs its calls, if none has data, as one that runs code."""
    has_no_data = all(chart_of(_renamed(tool, call)) is None for call in calls)
    if tool.runs == "plot" and calls and has_no_data:
        return tool.model_copy(update={"runs": "", "renamed": {}})
    return tool


def _renamed(tool: DeclaredTool, arguments: Arguments) -> Arguments:
    return {tool.renamed.get(name, name): value for name, value in arguments.items()}


def _read_sample(content: Any, entry: Entry, source: Source) -> Sample:
    fields, files = source.fields, tuple(_files(content, entry, source))
    if fields.unknown_tools == "declare" and not entry.calls:
        raise BenchmarkError("there is no call of a tool ([calls] at, each, tool, arguments)")
    names = {path: file.name for path, file in zip(entry.files, files, strict=True)}
    steps = _steps(content, entry, files, source)
    sample_id = str(value_at(content, fields.sample["id"], entry.key)).strip()
    spelt = {**names, **{file.name: file.name for file in files}}
    reader = AnswerReader(content, fields, steps, spelt, entry.query, entry.words)
    answer_type, slots = reader.slots(
        fields.answers.get(sample_id, value_at(content, fields.answer["at"], NOTHING))
    )
    listed = parsed(value_at(content, fields.sample["tools"]))
    listed = listed if isinstance(listed, list | dict) else ()
    offered = [
        (value_at(tool, fields.sample["tool_name"]) if isinstance(tool, dict) else tool)
        for tool in listed
    ]
    # An entry that lists no tools is offered all: those that it calls are a part of the solution.
    tools = [source.tool(str(tool).strip()) for tool in offered or source.declared] or AGROTOOLS
    toolset = dict.fromkeys([*tools, *(step.tool for step in steps)])

    def text(name: str, default: str | None) -> str:
        value = value_at(content, fields.sample[name])
        return value.strip() if isinstance(value, str) and value.strip() else default or ""

    family = translated(text("family", fields.defaults.family), fields.families)
    task_type = translated(text("task_type", fields.defaults.task_type), fields.task_types)
    options = lettered(value_at(content, fields.answer["options"]))
    shown = [
        f"{letter}. {option}" for letter, option in options.items() if option not in entry.query
    ]
    try:
        return Sample(
            id=plain_id(sample_id),
            query="\n".join([entry.query, *shown]),
            files=files,
            family=family or FAMILY_OF_TASK_TYPE.get(task_type, "unknown"),
            task_type=task_type,
            answer_type=answer_type,
            template=text("template", fields.defaults.template),
            source=text("source", fields.defaults.source),
            toolset=tuple(toolset),
            declared=tuple(tool for tool in source.declared.values() if tool.name in toolset),
            reference=ReferenceTrajectory(steps=_in_groups(steps, [*names.values()])),
            answer=tuple(with_from(slot, steps) for slot in slots),
            no_tool_eligible=answer_type not in ("plot", "image")
            and all(file.kind == "image" for file in files),
            metadata=_published(names),
        )
    except ValidationError as error:
        raise BenchmarkError(first_error(error)) from error


def _published(names: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the metadata on the paths of files in the entries, of those that differ from their names here."""
    paths = {name: plain_path(path) for path, name in names.items()}
    return {"published_paths": dict(paths)} if any(map(str.__ne__, paths, paths.values())) else {}


def plain_id(given: str) -> str:
    """Return an id in the characters that an id may have; ids in other scripts keep apart by a hash."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", given).lstrip("_.-")
    if given.isascii():
        return plain
    digest = hashlib.sha256(given.encode()).hexdigest()[:_ID_DIGITS]
    return f"{plain}-{digest}" if plain else f"q-{digest}"


_ID_DIGITS = 8
"""Digits of the hash in an id: two of 10,000 ids are alike in one of 80 sets."""


def _in_groups(steps: Sequence[ReferenceStep], files: Sequence[Any]) -> tuple[ReferenceStep, ...]:
    """Return the steps, those of one tool in a row that differ in nothing but ``files`` as a group."""

    def kind(step: ReferenceStep) -> object:
        return step.tool, {name: value in files or value for name, value in step.arguments.items()}

    grouped: list[ReferenceStep] = []
    for number, alike in enumerate(list(group) for _, group in groupby(steps, kind)):
        several = len({str(step.arguments) for step in alike}) == len(alike) > 1
        grouped += [
            step.model_copy(update={"group": number}) if several else step for step in alike
        ]
    return tuple(grouped)


def _recorded(call: EntryCall, source: Source) -> Observation | None:
    """Return the recorded result of a call, with the chart that it drew, because charts are scored by their data."""
    observation, tool = observation_of(call.returned), source.declared.get(call.tool)
    chart = chart_of(_renamed(tool, call.arguments)) if tool and tool.runs == "plot" else None
    if chart is None or (observation and observation.error):
        return observation
    return Observation(
        result={
            **((observation and observation.result) or {}),
            "spec": chart.model_dump(mode="json"),
        }
    )


def _files(content: Any, entry: Entry, source: Source) -> Iterator[SampleFile]:
    fields, used_names = source.fields, set[str]()
    ends = Counter(Path(path).name for path in entry.files)
    for item, path in zip(files_of(content, fields), entry.files, strict=True):
        place = source.find(path)
        stated = {
            name: value_at(item, at) for name, at in fields.files.items() if isinstance(item, dict)
        }
        word, name, suffix = stated.get("type"), stated.get("name"), place.suffix.lower()
        kind = (
            fields.file_types.get(str(word)) or fields.file_types.get(suffix[1:]) or word or "image"
        )
        # Files with one name differ by their folders, which a question may name.
        name = (
            f"{place.parent.name}_{place.name}"
            if ends[place.name] > 1 and not name
            else name or place.name
        )
        name = safe_name(str(name), used_names)
        used_names.add(name)
        digest = sha256_of_file(place)
        facts = {
            "name": name,
            "path": f"{FILES_FOLDER}/{digest[:16]}{suffix}",
            "kind": kind,
            "sha256": digest,
        }
        with suppress(BenchmarkError):  # no picture
            facts["width_px"], facts["height_px"] = image_size(place, path)
        facts |= {field: stated[field] for field in _FILE_FIELDS if stated.get(field) is not None}
        try:
            yield SampleFile.model_validate_json(orjson.dumps(facts))
        except ValidationError as error:
            raise BenchmarkError(
                f"file {path!r}: {first_error(error)} ([files], [file_types])"
            ) from error


_PLACE = re.compile(
    r"^<?(?:image|img|picture)[ _-]?([1-9]\d?)>?$", re.IGNORECASE
)  # of a file, by its place


def _steps(
    content: Any, entry: Entry, files: Sequence[SampleFile], source: Source
) -> list[ReferenceStep]:
    """Return the reference steps, arguments under agrotools' names and files by their names in the sample."""
    fields, names, ends = (
        source.fields,
        [file.name for file in files],
        [Path(path).name for path in entry.files],
    )
    known = {end: name for end, name in zip(ends, names, strict=True) if ends.count(end) == 1}
    known |= dict(zip(entry.files, names, strict=True))
    by_path = [*zip(entry.files, names, strict=True)]
    ids = [str(value_at(item, fields.files["id"])) for item in files_of(content, fields)]
    handles = [
        {f"#{number}", ends[number - 1].rpartition(".")[0], key}
        for number, key in enumerate(ids, 1)
    ]
    steps, seen = list[ReferenceStep](), ""

    def named(value: Any, is_file: bool) -> Any:
        if not isinstance(value, str):
            return [named(each, is_file) for each in value] if isinstance(value, list) else value
        path = value.strip().replace("\\", "/")
        name = (
            known.get(path)
            or known.get(f"{fields.files['folder']}{path}")
            or known.get(Path(path).name)
            or _only(name for given, name in by_path if given.endswith(f"/{path}"))
        )
        if name or not is_file:
            return name or value
        found = [
            name
            for name, own in zip(names, handles, strict=True)
            if {path, _PLACE.sub(r"#\1", path)} & own
        ]
        if len(found) != 1 and not Path(path).suffix and (path.isdecimal() or path not in seen):
            raise BenchmarkError(
                f"a call has the file {path!r}, which is not listed ([files] id, [agreement])"
            )
        return found[0] if len(found) == 1 else value

    for call in entry.calls:
        tool, declared = source.tool(call.tool), source.declared.get(call.tool)
        renamed = {} if declared else fields.arguments.get(tool, {})
        own = (
            {name for name, rule in declared.agreement.items() if rule == "file"}
            if declared
            else set[str]()
        )
        given = {
            renamed.get(name, name): named(each, name in own)
            for name, each in call.arguments.items()
        }
        observation = _recorded(call, source)
        steps.append(
            ReferenceStep(tool=tool, arguments=given, observation=observation, thought=call.thought)
        )
        seen += str(call.returned)
    return steps


def _only(names: Iterable[str]) -> str | None:
    """Return the only one of some names; None if there is none, or several."""
    found = [*names]
    return found[0] if len(found) == 1 else None


def observation_of(returned: Any) -> Observation | None:
    """Return the observation of a result, or None: a JSON object as it is, other text as the field ``text``."""
    if returned is NOTHING or returned == "":
        return None
    if isinstance(returned, str):
        read = parsed(returned)
        returned = read if isinstance(read, dict) else {"text": returned}
    result: dict[str, JsonValue] = (
        {**returned} if isinstance(returned, dict) else {"value": returned}
    )
    if set(result) == {"error"}:
        with suppress(ValidationError):
            return Observation(error=ErrorInfo.model_validate_json(orjson.dumps(result["error"])))
    return Observation(result=result)


def _header(source: Source, samples: list[Sample], metadata: dict[str, Any]) -> BenchmarkHeader:
    declared = {tool.name: tool for tool in source.declared.values()}
    used = {name for sample in samples for name in sample.toolset} or {*AGROTOOLS}
    known = [name for name in (*declared, *AGROTOOLS) if name in used]
    plain = re.sub(r"[^a-z0-9]", "-", source.folder.resolve().name.lower()).strip("-")[:64]
    rai = "Questions, reference calls, what these returned, and answers are those of the files that were read; "
    fields: dict[str, Any] = {
        **{"name": plain or "imported", **source.fields.benchmark},
        "toolset": (*known, *sorted(used.difference(known))),
        "declared": [tool for name, tool in declared.items() if name in used],
        "backends": {
            name: "recorded" for name in known if name in declared and not declared[name].runs
        },
        "metadata": {**metadata, "rai": {"dataAnnotationProtocol": f"{rai}agrotools ran nothing."}},
    }
    try:
        return BenchmarkHeader.model_validate(fields)
    except ValidationError as error:
        why = f"[benchmark] of the field map: {first_error(error)}"
        raise BenchmarkError(why, hint=f"see {DEFAULT_MAP}") from error
