"""Loader of the released AgroTools questions: JSON or parquet files of unknown form, read by a field map.

The entries are converted into a benchmark folder in the user's cache, again whenever the files or the map change. What
the map does not read is reported: fields with their number, and entries with the reason.
"""

import fnmatch
import hashlib
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast

import tomli_w

from agrotools.calling import get_tool
from agrotools.calling.declared import of_name
from agrotools.core import BenchmarkError, FrozenModel, ToleranceSlot, UndecidedError, UsageError
from agrotools.core.errors import NoFileError
from agrotools.core.files import cache_dir, read_text, sha256_of_file, write_whole
from agrotools.core.progress import Progress
from agrotools.core.readings import Readings
from agrotools.formats.benchmark import Benchmark, load_folder
from agrotools.loading.benchmarks import Loading, find_below, settings_of
from agrotools.loading.checking import EntryFault, FileCheck, shorten
from agrotools.loading.values import translated
from agrotools_benchmarks._dialogs.gta_in import KnownOfEntries, Source, import_entries, plain_id
from agrotools_benchmarks.released.containers import (
    Contents,
    data_files,
    files_beside,
    read_contents,
)
from agrotools_benchmarks.released.entries import Entries, marks_of, read_entries
from agrotools_benchmarks.released.fields import QUESTIONS, ROLE_KEYS, Asker
from agrotools_benchmarks.released.names import words
from agrotools_build.export.gta_entries import MAP_FILE, FieldMap, read_map

MAP = Path(__file__).with_name("map.toml")
_SHOWN = 12
_DATA = (".parquet", ".json", ".jsonl", ".csv", ".tsv", ".xlsx", ".yaml", ".yml")


class ReleasedSettings(FrozenModel):
    """Options of ``agrotools eval agrotools``."""

    map: str = ""
    """Field map (TOML); default: ``agrotools-map.toml`` in the folder of the files, or the one in the package."""
    answer: str = ""
    """Field of the right answer, where two may be it."""
    calls: str = ""
    """Field of the reference calls, where two may be it."""
    tolerance: str = ""
    """Kind of a tolerance that states none: ``abs``, ``rel`` or ``percent``."""
    percent: Literal["", "relative", "points"] = ""
    """What a tolerance of 5 % is beside an answer in percent: 5 % of the answer, or 5 percentage points."""

    lists: Literal["", "any", "all"] = ""
    """What a list of exact answers is: other names of one (``any``), or answers that are all required."""

    @property
    def given(self) -> dict[str, str]:
        """Answers to questions on the files."""
        return {name: value for name in QUESTIONS if (value := getattr(self, name))}


def find_entries(data_root: Path | None, *, itself: bool = True) -> Path:
    """Return the folder ``agrotools`` below ``data_root``, or that folder ``itself``; NoFileError if it has no data."""
    find, get = partial(data_files, only=read_map(MAP).file), "agrotools benchmarks get agrotools"
    itself = itself and data_root is not None
    return find_below(
        "agrotools", data_root, ["agrotools"], find, "JSON or parquet files", get, itself=itself
    )[0]


def find_folder(data_root: Path | None) -> Path:
    """Return the folder ``agrotools`` below ``data_root``; NoFileError if there is none, or no data in it."""
    return find_entries(data_root, itself=False)


def load_released(loading: Loading) -> Benchmark:
    """Load the questions below ``loading.data_root``.

    ``loading.readings`` takes what was read as what; it is in the header's metadata (``read``, ``not_read``), too.

    Raises:
        UsageError: an option is unknown, or pyarrow is needed and not installed.
        UndecidedError: two fields may be the answer or the calls, or a tolerance may be of two kinds.
        BenchmarkError: the files are missing, or no entry can be read with the map; the message lists the reasons.
    """
    settings = settings_of(ReleasedSettings, "agrotools", loading.options)
    readings = loading.readings or Readings()
    target = converted_folder(loading.data_root, settings)
    if not (target / "benchmark.toml").is_file():
        asker = Asker(readings, settings.given, {})
        read = _read(loading.data_root, settings, asker)
        _settle(readings, find_entries(loading.data_root))
        # Answers of the user belong to this command: another one without them asks again.
        answered = settings.model_copy(update=asker.chosen)
        target = converted_folder(loading.data_root, answered)
        _convert(read, find_entries(loading.data_root), target, readings, loading.progress)
    benchmark = load_folder(target)
    for what in _texts(benchmark, "read"):
        readings.take(what)
    for what in _texts(benchmark, "not_read"):
        readings.leave(what)
    return benchmark


def _settle(readings: Readings, root: Path) -> None:
    """Raise an error with the questions that nobody has answered; its hint holds for any caller."""
    try:
        readings.settle()
    except UndecidedError as error:
        options = " ".join(answer.removeprefix("--option=") for answer in error.answers)
        command = f"agrotools benchmarks check agrotools {shlex.quote(str(root))} --propose-map"
        error.hint = (
            f"{command} writes these readings into a map beside the files, which all commands read;"
            f" or give them as options of the benchmark: {options}"
        )
        raise


def _texts(benchmark: Benchmark, key: str) -> list[str]:
    listed = benchmark.header.metadata.get(key)
    return [str(each) for each in listed] if isinstance(listed, list) else []


def _read(data_root: Path | None, settings: ReleasedSettings, asker: Asker) -> Entries:
    root = find_entries(data_root)
    _, fields = map_for(root, settings.map)
    return read_entries(root, fields, read_map(MAP), asker)


def _convert(
    read: Entries, root: Path, target: Path, readings: Readings, progress: Progress
) -> None:
    """Write the benchmark folder ``target``; a BenchmarkError without readable entries says what they look like."""
    known = KnownOfEntries(read.faults, read.found.left, read.contents.folders, readings.as_data())
    try:
        import_entries(read.entries, root, read.fields, target, progress, known)
    except BenchmarkError as error:
        names = ", ".join(
            dict.fromkeys(name for row in read.rows for name in row if name[0] != "(")
        )
        first = shorten(str(next(iter(read.rows), "none")), 1500)
        hint = f"say in {root / MAP_FILE} where they are, [TABLE] key = ... (--propose-map); fields: {names}"
        error.hint = "; ".join([hint, f"first entry: {first}", *_not_read(root, read.contents)])
        raise


def check_released(
    data_root: Path | None,
    progress: Progress,
    options: Mapping[str, str | int | bool] = MappingProxyType({}),
    readings: Readings | None = None,
) -> FileCheck:
    """Check the files: entries that cannot be read, by reason, and fields that are not read."""
    readings = readings or Readings()
    benchmark = load_released(Loading(data_root, options, progress, readings=readings))
    metadata: dict[str, Any] = benchmark.header.metadata
    settings = settings_of(ReleasedSettings, "agrotools", options)
    root = find_entries(data_root)
    path, fields = map_for(root, settings.map)
    faults = [
        EntryFault(str(key), reason)
        for reason, keys in metadata.get("unread", {}).items()
        for key in keys
    ]
    contents = read_contents(root, marks_of(fields, read_map(MAP)), fields.file, fields.entries)
    files = tuple(str(path) for path in contents.files[:_SHOWN])
    notes = [str(note) for note in metadata["notes"] if "could not be read" not in str(note)]
    notes += [*_notes(path, benchmark), *_not_read(root, contents)]
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
        # A name in another script is the first sentence of the description.
        "tools": {each for it in tools for each in (it.name, it.description.partition(".")[0])},
        "answers": {sample.id for sample in benchmark.samples},
    }
    for table, used in names.items():  # made of letters, digits and "_"
        if lines := [
            line
            for line in own.get(table, ())
            if plain_id(line) not in used
            and not fnmatch.filter(used, re.sub(r"[^\w.-]+", "*", line))
        ]:
            yield f"lines without effect under [{table}]: {', '.join(lines)}"


def _not_read(root: Path, contents: Contents) -> list[str]:
    """Return a line on the data files below ``root`` that are not read."""
    others = sorted({*root.rglob("[!.]*")} - {*contents.files, root / MAP_FILE})
    names = ", ".join(str(path.relative_to(root)) for path in others if path.suffix in _DATA)
    return (
        [f'files that are not read (file = "..." reads one alone): {shorten(names, 300)}']
        if names
        else []
    )


_DEFAULTS = ReleasedSettings()


def map_for(root: Path, given: str = "") -> tuple[Path, FieldMap]:
    """Return the map and its path: the given one, that beside the files, or the one of the package."""
    beside = root / MAP_FILE
    path = Path(given).expanduser() if given else beside if beside.is_file() else MAP
    if not path.is_file():
        raise NoFileError(
            f"there is no file {path}", hint="--option map=FILE gives a field map in TOML"
        )
    return path, read_map(path, MAP)


def converted_folder(data_root: Path | None, settings: ReleasedSettings = _DEFAULTS) -> Path:
    """Return the folder in the cache for these files, map and answers; it may not exist yet."""
    root = find_entries(data_root)
    digest = hashlib.sha256(MAP.read_bytes() + version("agrotools").encode())
    map_path, fields = map_for(root, settings.map)
    for path in (
        map_path,
        *data_files(root, fields.file),
        *files_beside(root, fields.file),
    ):
        digest.update(f"{path} {sha256_of_file(path)}\n".encode())
    digest.update(str(sorted(settings.given.items())).encode())
    return cache_dir("benchmarks") / f"agrotools-{digest.hexdigest()[:10]}"


_HEAD = 'Proposed field map; other keys are as in the package. [tools]: what runs the calls; "" plays back results.'


def propose_map(
    data_root: Path | None,
    progress: Progress,
    options: Mapping[str, str | int | bool] = MappingProxyType({}),
    readings: Readings | None = None,
) -> list[str]:
    """Write a proposed map beside the released files; return lines on what was found.

    The map answers the questions on the files by the proposed readings, and names the others in its comments.

    Raises:
        UsageError: there is such a file already.
        BenchmarkError: the files are missing.
    """
    root, readings = find_entries(data_root), readings or Readings()
    target = root / MAP_FILE
    if target.exists():
        raise UsageError(f"{target} exists already", hint="edit it, or remove it")
    settings = settings_of(ReleasedSettings, "agrotools", options)
    read = _read(data_root, settings, Asker(readings, settings.given, {}))
    found = [f"{len(read.rows)} entries in {root}"]
    document = _places(read, found)
    decided = {"tol_kind": read.tolerance, "percent": read.percent}
    document["defaults"] = {key: value for key, value in decided.items() if value}
    if read.lists:
        document["defaults"]["any"] = read.lists == "any"
    _propose_tools(read, Source(root, read.fields, read.entries), document, found)
    found += [f"decide: {question}" for question in readings.questions]
    comments = "".join(f"# {line}\n" for line in [_HEAD, *found])
    written = {table: keys for table, keys in document.items() if keys}
    write_whole(target, (comments + tomli_w.dumps(written)).encode())
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


def _places(read: Entries, found: list[str]) -> dict[str, dict[str, Any]]:
    """Return the tables of a map with the places that were found, and add a line on each to ``found``."""
    document: dict[str, dict[str, Any]] = {"tools": {}, "arguments": {}}
    for role, (table, key) in ROLE_KEYS.items():
        path = read.found.paths[role]
        found.append(f"{table}.{key}: {path or 'not found'}")
        if path:
            document.setdefault(table, {})[key] = path
    return document


def _propose_tools(
    read: Entries, source: Source, document: dict[str, dict[str, Any]], found: list[str]
) -> None:
    """Add to a map what runs the calls of each tool, and which of its arguments are ours."""
    fields = read.fields
    for name, tool in source.declared.items():
        ours = translated(name, words("tools"))
        if ours == name:  # none of the phrases of the paper
            ours = of_name(name, fields.proposals) or of_name(tool.description, fields.proposals)
        ours = ours or ""
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
