"""Loader of the released AgroTools questions: JSON or parquet files of unknown form, read by a field map.

The entries are converted into a benchmark folder in the user's cache, again whenever the files or the map change. What
the map does not read is reported: fields with their number, and entries with the reason.
"""

import fnmatch
import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import tomli_w

from agrotools.benchmarks.checking import EntryFault, FileCheck, shorten
from agrotools.benchmarks.loading import Loading, find_below, settings_of
from agrotools.benchmarks.values import value_at
from agrotools.build.export.gta_entries import MAP_FILE, FieldMap, entries_in, entry_files, read_map
from agrotools.build.export.gta_in import Source, import_entries
from agrotools.core import BenchmarkError, FrozenModel, ToleranceSlot, UsageError
from agrotools.core.base import NoFileError, Progress
from agrotools.core.files import cache_dir, read_text, sha256_of_file, write_whole
from agrotools.formats.benchmark import Benchmark, load_folder
from agrotools.tools import get_tool
from agrotools.tools.declared import of_name

MAP = Path(__file__).with_name("map.toml")
_SHOWN = 12
_DATA = (".parquet", ".json", ".jsonl", ".csv", ".tsv", ".xlsx", ".yaml", ".yml")


class ReleasedSettings(FrozenModel):
    """Options of ``agrotools eval agrotools``."""

    map: str = ""
    """Field map (TOML); default: ``agrotools-map.toml`` in the folder of the files, or the one in the package."""


def find_entries(data_root: Path | None, *, itself: bool = True) -> Path:
    """Return the folder ``agrotools`` below ``data_root``, or that folder ``itself``; NoFileError if it has no data."""
    find, get = partial(entry_files, fields=read_map(MAP)), "agrotools benchmarks get agrotools"
    itself = itself and data_root is not None
    return find_below(
        "agrotools", data_root, ["agrotools"], find, "JSON or parquet files", get, itself=itself
    )[0]


def find_folder(data_root: Path | None) -> Path:
    """Return the folder ``agrotools`` below ``data_root``; NoFileError if there is none, or no data in it."""
    return find_entries(data_root, itself=False)


def load_released(loading: Loading) -> Benchmark:
    """Load the questions below ``loading.data_root``.

    Raises:
        UsageError: an option is unknown, or pyarrow is needed and not installed.
        BenchmarkError: the files are missing, or no entry can be read with the map; the message lists the reasons.
    """
    settings = settings_of(ReleasedSettings, "agrotools", loading.options)
    target = converted_folder(loading.data_root, settings.map)
    if not (target / "benchmark.toml").is_file():
        root = find_entries(loading.data_root)
        _, fields = map_for(root, settings.map)
        entries = entries_in(root, fields)
        try:
            import_entries(entries, root, fields, target, loading.progress)
        except BenchmarkError as error:
            names = ", ".join(
                dict.fromkeys(
                    name for row in entries.values() if isinstance(row, dict) for name in row
                )
            )
            first = shorten(str(next(iter(entries.values()), "none")), 1500)
            hint = f"say in {root / MAP_FILE} where they are, [TABLE] key = ... (--propose-map); fields: {names}"
            error.hint = "; ".join([hint, f"first entry: {first}", *_not_read(root, fields)])
            raise
    return load_folder(target)


def check_released(data_root: Path | None, progress: Progress) -> FileCheck:
    """Check the files: entries that cannot be read, by reason, and fields that are not read."""
    benchmark = load_released(Loading(data_root, progress=progress))
    metadata: dict[str, Any] = benchmark.header.metadata
    root = find_entries(data_root)
    path, fields = map_for(root)
    faults = [
        EntryFault(str(key), reason)
        for reason, keys in metadata.get("unread", {}).items()
        for key in keys
    ]
    files = tuple(str(path) for path in entry_files(root, fields)[:_SHOWN])
    notes = [str(note) for note in metadata["notes"] if "could not be read" not in str(note)]
    notes += [*_notes(path, benchmark), *_not_read(root, fields)]
    hint = (
        "eval leaves these entries out and counts them; correct the map: --propose-map"
        if faults
        else ""
    )
    return FileCheck(
        files, len(benchmark.samples) + len(faults), benchmark.samples, faults, notes, hint
    )


def _notes(path: Path, benchmark: Benchmark) -> Iterator[str]:
    """Yield what the user has to decide: tolerances, lists, figures without data, lines of the map without effect."""
    tools = benchmark.header.declared
    slots = [slot for sample in benchmark.samples for slot in sample.answer]
    if equal := sum(isinstance(slot, ToleranceSlot) and slot.margin == 0 for slot in slots):
        yield f"{equal} numbers without tolerance must be equal ([defaults] rel_tol, abs_tol)"
    if lists := sum(slot.type == "exact" and slot.name == "answer_2" for slot in slots):
        yield f"{lists} exact answers are lists: every item is required ([defaults] any = true if one item is enough)"
    plots = {tool.name for tool in tools if tool.runs == "plot"}
    steps = [
        it
        for each in benchmark.samples
        if each.reference
        for it in each.reference.steps
        if it.tool in plots
    ]
    if figures := sum(
        "spec" not in (step.observation.result or {}) for step in steps if step.observation
    ):
        yield f"{figures} figures have no data that can be drawn ([tools], [arguments.plot])"
    own: dict[str, Any] = tomllib.loads(read_text(path)) if path != MAP else {}
    names = {
        "tools": {tool.name for tool in tools},
        "answers": {sample.id for sample in benchmark.samples},
    }
    for table, used in names.items():  # made of letters, digits and "_"
        if lines := [
            line
            for line in own.get(table, ())
            if not fnmatch.filter(used, re.sub(r"[^\w.-]+", "*", line))
        ]:
            yield f"lines without effect under [{table}]: {', '.join(lines)}"


def _not_read(root: Path, fields: FieldMap) -> list[str]:
    """Return a line on the data files below ``root`` that are not read."""
    others = sorted({*root.rglob("[!.]*")} - {*entry_files(root, fields), root / MAP_FILE})
    names = ", ".join(str(path.relative_to(root)) for path in others if path.suffix in _DATA)
    return (
        [f'files that are not read (file = "..." reads one alone): {shorten(names, 300)}']
        if names
        else []
    )


def map_for(root: Path, given: str = "") -> tuple[Path, FieldMap]:
    """Return the map and its path: the given one, that beside the files, or the one of the package."""
    beside = root / MAP_FILE
    path = Path(given).expanduser() if given else beside if beside.is_file() else MAP
    if not path.is_file():
        raise NoFileError(
            f"there is no file {path}", hint="--option map=FILE gives a field map in TOML"
        )
    return path, read_map(path, MAP)


def converted_folder(data_root: Path | None, given: str = "") -> Path:
    """Return the folder in the cache for these files and this map; it may not exist yet."""
    root, digest = (
        find_entries(data_root),
        hashlib.sha256(MAP.read_bytes() + version("agrotools").encode()),
    )
    map_path, fields = map_for(root, given)
    for path in (map_path, *entry_files(root, fields)):
        digest.update(f"{path} {sha256_of_file(path)}\n".encode())
    return cache_dir("benchmarks") / f"agrotools-{digest.hexdigest()[:10]}"


_KEYS = {
    "sample": "id query tools family task_type source",
    "files": "at",
    "calls": "at final",
    "answer": "at options",
}
_HEAD = 'Proposed field map; other keys are as in the package. [tools]: what runs the calls; "" plays back results.'


def propose_map(data_root: Path | None, progress: Progress) -> list[str]:
    """Write a proposed map beside the released files; return lines on what was found.

    Raises:
        UsageError: there is such a file already.
        BenchmarkError: the files are missing.
    """
    root = find_entries(data_root)
    target = root / MAP_FILE
    if target.exists():
        raise UsageError(f"{target} exists already", hint="edit it, or remove it")
    _, fields = map_for(root)
    entries = entries_in(root, fields)
    document: dict[str, dict[str, Any]] = {"tools": {}, "arguments": {}}
    found = [f"{len(entries)} entries in {root}"]
    for table, key in ((table, key) for table, keys in _KEYS.items() for key in keys.split()):
        paths = [path.strip() for path in re.split(r"[|+]", getattr(fields, table)[key])]
        paths = [
            path
            for path in paths
            if any(value_at(each, path) not in (None, "", []) for each in entries.values())
        ]
        found.append(f"{table}.{key}: {', '.join(paths) or 'not found'}")
        if paths:
            document.setdefault(table, {})[key] = (" + " if table == "files" else "|").join(paths)
    for name, tool in Source(root, fields, entries).declared.items():
        ours = of_name(name, fields.proposals) or of_name(tool.description, fields.proposals) or ""
        document["tools"][name] = ours
        found.append(f"tool {name}({', '.join(tool.agreement)}): {ours or 'recorded results'}")
        if ours and ours != "plot":
            known, given = get_tool(ours).spec.agreement, fields.arguments.get(ours, {})
            others = {each: given.get(each, "") for each in tool.agreement if each not in known}
            document["arguments"].setdefault(ours, {}).update(others)
            found += [
                f"  {each}: which argument of {ours}({', '.join(known)})?"
                for each in others
                if not others[each]
            ]
    comments = "".join(f"# {line}\n" for line in [_HEAD, *found])
    write_whole(target, (comments + tomli_w.dumps(document)).encode())
    found.append(f"map written: {target}")
    try:
        benchmark = load_released(Loading(data_root, {"map": str(target)}, progress))
    except BenchmarkError as error:
        return [*found, error.message, f"  {error.hint}"]
    forms = Counter(
        " and ".join(dict.fromkeys(slot.type for slot in sample.answer))
        for sample in benchmark.samples
    )
    notes = cast(list[str], benchmark.header.metadata["notes"])
    return [*found, *(f"answer {form}: {count}" for form, count in forms.most_common()), *notes]
