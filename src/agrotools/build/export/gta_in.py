"""Import of GTA-shaped JSON, or other JSON that a field map describes, into a benchmark folder.

Nothing is dropped silently: entries that cannot be read are listed with the reason in the header's metadata
(``unread``, ``note``) and on the card.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from PIL import Image
from pydantic import JsonValue, ValidationError

from agrotools.build.export.folder import safe_path, write_benchmark
from agrotools.build.export.gta_entries import (
    DEFAULT_MAP,
    MAP_FILE,
    Entry,
    FieldMap,
    entries_in,
    read_entry,
    read_map,
    slots_of,
    unread_fields,
    value_at,
    with_from,
)
from agrotools.core import (
    FAMILY_OF_TASK_TYPE,
    Arguments,
    BenchmarkError,
    ErrorInfo,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    first_error,
)
from agrotools.core.base import Progress, no_progress
from agrotools.core.files import sha256_of_file
from agrotools.formats.benchmark import FILES_FOLDER, BenchmarkHeader
from agrotools.formats.writing import replace_folder
from agrotools.tools import AGROTOOLS, tool_names

_FILE_FIELDS = ("note", "bands", "gsd_m", "crs", "intrinsics", "depth_unit_mm", "classes")


def build_gta(place: Path, out: Path, progress: Progress = no_progress) -> BenchmarkHeader:
    """Convert ``place``, a folder with GTA-shaped JSON or a field map (TOML), into the benchmark folder ``out``.

    The folder may contain its own map, ``agrotools-map.toml``. The target is written completely or not at all.

    Raises:
        BenchmarkError: a file is missing, the JSON is invalid, the map has unknown keys, no entry is readable, or
            ``out`` contains something else.
    """
    return import_entries(*_map_of(place), out, progress)


def import_entries(folder: Path, fields: FieldMap, out: Path, progress: Progress = no_progress) -> BenchmarkHeader:
    """Convert the entries of the JSON file in ``folder`` that ``fields`` names; errors as in :func:`build_gta`.

    The header's metadata counts the fields that the map does not read (``unread_fields``).
    """
    entries = dict(entries_in(folder, fields))
    samples: list[Sample] = []
    seen: set[str] = set()
    unread: dict[str, list[JsonValue]] = {}
    with replace_folder(out) as partial:
        (partial / FILES_FOLDER).mkdir()
        for number, (key, content) in enumerate(entries.items(), start=1):
            try:
                entry = read_entry(key, content, fields)
                sample = _read_sample(content, entry, fields, folder)
                if sample.id in seen:
                    raise BenchmarkError(f"its id {sample.id!r} is there twice")
                for file, original in zip(sample.files, entry.files, strict=True):
                    shutil.copyfile(folder / safe_path(original), partial / file.path)
                seen.add(sample.id)
                samples.append(sample)
            except BenchmarkError as error:
                unread.setdefault(error.message, []).append(key)
            progress("entries", number, len(entries))
        if not samples:
            raise BenchmarkError(
                f"none of the {len(entries)} entries can be read. {_unread_reasons(unread)}",
                hint=f"give a field map that says where things lie, --source gta=MAP.toml; {DEFAULT_MAP} is one",
            )
        header = _header(folder, fields, samples, len(entries), unread)
        if left := unread_fields(entries, fields):
            header = header.model_copy(update={"metadata": {**header.metadata, "unread_fields": {**left}}})
        write_benchmark(partial, header, samples)
    return header


def _map_of(place: Path) -> tuple[Path, FieldMap]:
    if place.is_file():
        fields = read_map(place)
        return place.parent / Path(fields.data).expanduser(), fields
    if not place.is_dir():
        raise BenchmarkError(f"there is no {place}", hint="give the folder of the JSON file, or a field map")
    return place, read_map(place / MAP_FILE) if (place / MAP_FILE).is_file() else read_map()


def _read_sample(content: Any, entry: Entry, fields: FieldMap, folder: Path) -> Sample:
    files = tuple(_files(content, entry, fields, folder))
    names = {path: file.name for path, file in zip(entry.files, files, strict=True)}
    steps = tuple(
        ReferenceStep(
            tool=(tool := _tool(call.tool, fields)),
            arguments=_our_arguments(tool, call.arguments, names, fields),
            observation=observation_of(call.returned),
            thought=call.thought,
        )
        for call in entry.calls
    )
    spelt = {**names, **{file.name: file.name for file in files}}
    answer_type, slots = slots_of(content, fields.answer, steps, spelt)
    listed = value_at(content, fields.sample.tools, [])
    offered = [value_at(tool, fields.sample.tool_name) if isinstance(tool, dict) else tool for tool in listed]
    # An entry that lists no tools is offered all: those that it calls are a part of the solution.
    tools = [_tool(str(tool), fields) for tool in offered] or AGROTOOLS
    toolset = dict.fromkeys([*tools, *(step.tool for step in steps)])

    def text(name: str, default: str | None) -> str:
        value = value_at(content, getattr(fields.sample, name))
        return value if isinstance(value, str) and value else default or ""

    task_type = text("task_type", fields.defaults.task_type)
    task_type = fields.task_types.get(task_type, task_type)
    family = text("family", fields.defaults.family) or FAMILY_OF_TASK_TYPE.get(task_type, "unknown")
    given_id = value_at(content, fields.sample.id, entry.key)
    try:
        return Sample(
            id=str(given_id),
            query=entry.query,
            files=files,
            family=family,
            task_type=task_type,
            answer_type=answer_type,
            template=text("template", fields.defaults.template),
            source=text("source", fields.defaults.source),
            toolset=tuple(toolset),
            reference=ReferenceTrajectory(steps=steps),
            answer=tuple(with_from(slot, steps) for slot in slots),
            no_tool_eligible=answer_type != "plot" and all(file.kind == "image" for file in files),
        )
    except ValidationError as error:
        raise BenchmarkError(first_error(error)) from error


def _files(content: Any, entry: Entry, fields: FieldMap, folder: Path) -> Iterator[SampleFile]:
    used_names: set[str] = set()
    for item, path in zip(value_at(content, fields.files.at, []), entry.files, strict=True):
        source = folder / safe_path(path)
        if not source.is_file():
            raise BenchmarkError(f"there is no file {path!r}")
        word = value_at(item, fields.files.type) if isinstance(item, dict) else None
        suffix = source.suffix.lower()
        kind = fields.files.types.get(str(word or suffix[1:]), word or "image")
        name = value_at(item, fields.files.name) if isinstance(item, dict) else None
        name = name if isinstance(name, str) else source.name
        while name in used_names:
            name = f"{Path(name).stem}_{Path(name).suffix}"
        used_names.add(name)
        digest = sha256_of_file(source)
        more = {field: value_at(item, getattr(fields.files, field)) for field in _FILE_FIELDS}
        entry_of_file = {"name": name, "path": f"{FILES_FOLDER}/{digest[:16]}{suffix}", "kind": kind, "sha256": digest}
        entry_of_file |= {field: value for field, value in {**_size_px(source), **more}.items() if value is not None}
        try:
            yield SampleFile.model_validate_json(orjson.dumps(entry_of_file))
        except ValidationError as error:
            raise BenchmarkError(f"file {path!r}: {first_error(error)}") from error


def _size_px(path: Path) -> dict[str, int]:
    try:
        with Image.open(path) as picture:
            return {"width_px": picture.width, "height_px": picture.height}
    except (OSError, Image.DecompressionBombError):
        return {}


def _tool(name: str, fields: FieldMap) -> str:
    ours = fields.tools.get(name, name)
    if ours not in tool_names() and fields.unknown_tools == "refuse":
        raise BenchmarkError(f'there is no tool {ours!r}: map it under [tools], or set unknown_tools = "keep"')
    return ours


def _our_arguments(tool: str, arguments: Arguments, names: Mapping[str, str], fields: FieldMap) -> Arguments:
    """Return arguments under agrotools' names, with files by their names in the sample."""
    renamed = fields.arguments.get(tool, {})
    ends = [Path(path).name for path in names]
    short = {Path(path).name: name for path, name in names.items() if ends.count(Path(path).name) == 1}
    bare = {path.removeprefix(fields.files.folder): name for path, name in names.items()}
    known = {**short, **bare, **names}
    return {
        renamed.get(argument, argument): known.get(value, value) if isinstance(value, str) else value
        for argument, value in arguments.items()
    }


def observation_of(returned: JsonValue) -> Observation | None:
    """Return the observation of a result, or None: a JSON object as it is, other text as the field ``text``."""
    if isinstance(returned, str):
        try:
            parsed = orjson.loads(returned)
        except orjson.JSONDecodeError:
            parsed = None
        returned = parsed if isinstance(parsed, dict) else {"text": returned} if returned else None
    if returned is None:
        return None
    result: dict[str, JsonValue] = {**returned} if isinstance(returned, dict) else {"value": returned}
    if set(result) == {"error"}:
        try:
            return Observation(error=ErrorInfo.model_validate_json(orjson.dumps(result["error"])))
        except ValidationError:
            pass
    return Observation(result=result)


def _header(
    folder: Path, fields: FieldMap, samples: list[Sample], entries: int, unread: dict[str, list[JsonValue]]
) -> BenchmarkHeader:
    header = _imported_header(folder, fields, samples)
    if not unread:
        return header
    notes = [str(header.metadata["note"])] if "note" in header.metadata else []
    notes.append(f"{entries - len(samples)} of {entries} entries could not be read. {_unread_reasons(unread)}")
    more: dict[str, JsonValue] = {"unread": {**unread}, "note": " ".join(notes)}
    return header.model_copy(update={"metadata": {**header.metadata, **more}})


def _imported_header(folder: Path, fields: FieldMap, samples: list[Sample]) -> BenchmarkHeader:
    used = {name for sample in samples for name in sample.toolset} or {*AGROTOOLS}
    known = [name for name in AGROTOOLS if name in used]
    benchmark = fields.benchmark
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in folder.resolve().name)
    return BenchmarkHeader(
        name=benchmark.name if benchmark else plain.lower().strip("-")[:64] or "imported",
        version=benchmark.version if benchmark else "1",
        licence=benchmark.licence if benchmark else "not stated in the files that were read",
        description=benchmark.description if benchmark else "",
        synthetic=bool(benchmark and benchmark.synthetic),
        toolset=(*known, *sorted(used.difference(known))),
        sources=benchmark.sources if benchmark else (),
        metadata={
            "imported_from": fields.file,
            "rai": {
                "dataAnnotationProtocol": "Questions, reference calls, what these returned, and answers are those of "
                "the files that were read; agrotools ran nothing."
            },
        },
    )


def _unread_reasons(unread: Mapping[str, list[JsonValue]]) -> str:
    return "; ".join(f"{reason}: {', '.join(map(str, keys))}" for reason, keys in unread.items())
