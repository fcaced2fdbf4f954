"""Loader of the released AgroTools questions, in the dialog form of GTA and ThinkGeo or by a field map.

The authors have released the files where we could not read them. Questions in the dialog form are read as they are. Any
other layout is refused with the fields that were found; a field map, which ``--propose-map`` writes, says where they
are. The entries are converted into a benchmark folder in the user's cache, again whenever the files or the map change.
"""

import fnmatch
import hashlib
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast

import tomli_w

from agrotools.calling.declared import schemas_in
from agrotools.core import BenchmarkError, FrozenModel, ToleranceSlot, UndecidedError, UsageError
from agrotools.core.errors import NoFileError
from agrotools.core.files import cache_dir, read_text, sha256_of_file, write_whole
from agrotools.core.progress import Progress
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.formats.benchmark import Benchmark, load_folder
from agrotools.loading.benchmarks import Loading, find_below, settings_of
from agrotools.loading.checking import EntryFault, FileCheck, MapProposal, shorten
from agrotools.loading.values import (
    NOTHING,
    list_in,
    number_in,
    place_of_entries,
    read_rows,
    value_at,
)
from agrotools.text.loose_json import parsed
from agrotools_benchmarks._dialogs.gta_in import KnownOfEntries, Source, import_entries, plain_id
from agrotools_benchmarks.released.proposal import (
    Row,
    passed_over,
    propose_answer_types,
    propose_places,
    propose_tools,
)
from agrotools_build.export.gta_entries import MAP_FILE, FieldMap, read_map, unread_fields

MAP = Path(__file__).with_name("map.toml")
_DATA = (".json", ".jsonl", ".parquet", ".csv", ".tsv", ".xlsx")
_SHOWN = 12


class ReleasedSettings(FrozenModel):
    """Options of ``agrotools eval agrotools``."""

    map: str = ""
    """Field map (TOML); default: ``agrotools-map.toml`` in the folder of the files, or the one in the package."""
    tolerance: Literal["", "abs", "rel", "percent"] = ""
    """Kind of a tolerance that states none."""
    lists: Literal["", "any", "all"] = ""
    """What a list of exact answers is: other names of one (``any``), or answers that are all required."""


class _Found(NamedTuple):
    """Rows of the files by position, the field map with the answers to its questions, and the files."""

    rows: dict[str, Row]
    fields: FieldMap
    files: tuple[Path, ...]


def find_entries(data_root: Path | None, *, itself: bool = True) -> Path:
    """Return the folder ``agrotools`` below ``data_root``, or that folder ``itself``; NoFileError if it has no data."""
    find, get = data_files, "agrotools benchmarks get agrotools"
    itself = itself and data_root is not None
    return find_below(
        "agrotools", data_root, ["agrotools"], find, "JSON or parquet files", get, itself=itself
    )[0]


def find_folder(data_root: Path | None) -> Path:
    """Return the folder ``agrotools`` below ``data_root``; NoFileError if there is none, or no data in it."""
    return find_entries(data_root, itself=False)


def data_files(root: Path) -> list[Path]:
    """Return the files below ``root`` that may have rows."""
    return [
        path
        for path in sorted(root.rglob("[!.]*"))
        if path.suffix.lower() in _DATA and path.is_file()
    ]


def load_released(loading: Loading) -> Benchmark:
    """Load the questions below ``loading.data_root``.

    ``loading.readings`` takes what was read as what; it is in the header's metadata (``read``, ``not_read``), too.

    Raises:
        UsageError: an option is unknown, or pyarrow is needed and not installed.
        UndecidedError: a tolerance may be of two kinds, or a list of exact answers may be other names of one.
        BenchmarkError: the files are missing, are in a layout that needs a map, or no entry can be read.
    """
    settings = settings_of(ReleasedSettings, "agrotools", loading.options)
    readings = loading.readings or Readings()
    target = converted_folder(loading.data_root, settings)
    if not (target / "benchmark.toml").is_file():
        root = find_entries(loading.data_root)
        found = _read(root, settings, readings)
        _settle(readings, root)
        # Answers of the user belong to this command: another one without them asks again.
        target = converted_folder(loading.data_root, _answered(settings, readings))
        left = unread_fields(found.rows, found.fields)
        for name, number in left.items():
            readings.leave(f"field {name} ({number})")
        known = KnownOfEntries(left=left, metadata=readings.as_data())
        try:
            import_entries(found.rows, root, found.fields, target, loading.progress, known)
        except BenchmarkError as error:
            error.hint = f"say in {root / MAP_FILE} where they are; {_layout(found.rows.values())}"
            raise
    benchmark = load_folder(target)
    for what in _texts(benchmark, "read"):
        readings.take(what)
    for what in _texts(benchmark, "not_read"):
        readings.leave(what)
    return benchmark


def _answered(settings: ReleasedSettings, readings: Readings) -> ReleasedSettings:
    """Return the settings with the answers to the questions that were asked."""
    given = {name: readings.chosen.get(f"--option={name}") for name in ("tolerance", "lists")}
    return settings.model_copy(update={name: value for name, value in given.items() if value})


def _settle(readings: Readings, root: Path) -> None:
    """Raise an error with the questions that nobody has answered; its hint holds for any caller."""
    try:
        readings.settle()
    except UndecidedError as error:
        options = " ".join(answer.removeprefix("--option=") for answer in error.answers)
        error.hint = (
            f"{_propose_command(root)} writes these readings into a map beside the files, which all commands read;"
            f" or give them as options of the benchmark: {options}"
        )
        raise


def _propose_command(root: Path) -> str:
    return f"agrotools benchmarks check agrotools {shlex.quote(str(root))} --propose-map"


def _texts(benchmark: Benchmark, key: str) -> list[str]:
    listed = benchmark.header.metadata.get(key)
    return [str(each) for each in listed] if isinstance(listed, list) else []


# --- rows -------------------------------------------------------------------------------------------------------------


def _read(root: Path, settings: ReleasedSettings, readings: Readings) -> _Found:
    """Return the rows of all files in the form of the map, and the map with the answers to its questions.

    Raises:
        NoFileError: no file is in this form.
    """
    path, fields = map_for(root, settings.map)
    tables = _tables(root, fields, readings)
    fitting = {file: rows for file, rows in tables.items() if _fits(rows, fields)}
    if not fitting:
        name, rows = max(tables.items(), key=lambda item: len(item[1]), default=(root, []))
        form = "the dialog form of GTA" if path == MAP else f"the form of {path}"
        tables_of = {"files": fields.files, "calls": fields.calls, "answer": fields.answer}
        places = ", ".join(f"[{table}] at {paths['at']}" for table, paths in tables_of.items())
        todo = (
            f"for another layout, {_propose_command(root)} writes a field map to correct"
            if path == MAP
            else f"correct {path}"
        )
        raise NoFileError(
            f"{root} has no file in {form} (entries with {places})",
            hint=f"{todo}; {name.name}: {_layout(rows)}",
        )
    rows = _numbered(fitting, fields)
    names = " and ".join(file.relative_to(root).as_posix() for file in fitting)
    form = "in the dialog form" if path == MAP else f"by {path.name}"
    readings.take(f"{len(rows)} rows from {names} {form}")
    for file in tables:
        lists_tools = any(True for _ in schemas_in(tables[file]))
        if file not in fitting and tables[file] and not lists_tools:
            readings.leave(f"file {file.relative_to(root).as_posix()}")
    return _Found(rows, _decided(rows, fields, settings, readings), tuple(fitting))


def _tables(root: Path, fields: FieldMap, readings: Readings) -> dict[Path, list[Row]]:
    """Return the rows of each file below ``root``, or of the one that the map names; others may not be readable."""
    if fields.file:
        rows = read_rows(root / fields.file, fields.entries)
        return {root / fields.file: [row for row in rows if isinstance(row, dict)]}
    tables: dict[Path, list[Row]] = {}
    for path in data_files(root):
        try:
            rows = [*read_rows(path, fields.entries)]
        except BenchmarkError as error:
            readings.leave(f"file {path.relative_to(root).as_posix()}: {error.message}")
            continue
        tables[path] = [row for row in rows if isinstance(row, dict)]
    return tables


def _fits(rows: Sequence[Row], fields: FieldMap) -> bool:
    """True if an entry has files, calls and an answer where the map says; the answer may be null, of a figure."""
    paths = (*fields.files["at"].split("+"), fields.calls["at"], fields.answer["at"])
    return any(
        all(value_at(row, path.strip(), NOTHING) is not NOTHING for path in paths) for row in rows
    )


def _file_names(root: Path) -> frozenset[str]:
    return frozenset(path.name for path in root.rglob("*") if path.is_file())


def _numbered(tables: Mapping[Path, Sequence[Row]], fields: FieldMap) -> dict[str, Row]:
    """Return the rows of all files by position; ids of several files get the name of their file before them."""
    key = fields.sample["id"].partition("|")[0]
    rows: list[Row] = []
    for file, of_file in tables.items():
        for place, row in enumerate(of_file):
            own = value_at(row, fields.sample["id"], place)
            rows.append({**row, key: f"{file.stem}-{own}"} if len(tables) > 1 else row)
    return {str(place): row for place, row in enumerate(rows)}


def _layout(rows: "Sequence[Row] | Any") -> str:
    """Return the fields of rows and the first row, for a message."""
    listed = [*rows]
    names = ", ".join(dict.fromkeys(name for row in listed for name in row))
    return (
        f"fields: {names or 'none'}; first entry: {shorten(str(next(iter(listed), 'none')), 1500)}"
    )


# --- questions --------------------------------------------------------------------------------------------------------


def _decided(
    rows: Mapping[str, Row], fields: FieldMap, settings: ReleasedSettings, readings: Readings
) -> FieldMap:
    """Return the map with the kind of bare tolerances and the sense of lists, as it says, or as was asked."""
    decided: dict[str, Any] = {}
    sizes = [size for row in rows.values() for size in _bare_tolerances(row, fields)]
    if sizes and "tol_kind" not in fields.defaults.model_fields_set:
        largest = max(sizes)
        choices = [
            Choice("rel", f"± {largest:g} times the answer"),
            Choice("abs", f"± {largest:g} in the unit of the answer"),
            Choice("percent", f"± {largest:g} % of the answer"),
        ]
        if largest >= 1:  # as a share it would hold all values down to zero
            choices = choices[1:]
        text = f"a tolerance that states no kind, such as {largest:g}, is:"
        question = ReadingQuestion(text, "--option=tolerance", tuple(choices))
        decided["tol_kind"] = readings.choose(question, settings.tolerance or None)
    listed = next((value for row in rows.values() if (value := _exact_list(row, fields))), None)
    if listed and fields.defaults.any is None:
        choices = [Choice("any", "other names of one answer"), Choice("all", "each is required")]
        text = f"the exact answers in a list ({shorten(', '.join(map(str, listed)), 80)}) are:"
        question = ReadingQuestion(text, "--option=lists", tuple(choices))
        decided["any"] = readings.choose(question, settings.lists or None) == "any"
    defaults = fields.defaults.model_copy(update=decided)
    return fields.model_copy(update={"defaults": defaults})


def _bare_tolerances(row: Row, fields: FieldMap) -> Iterator[float]:
    """Yield the tolerances of an entry and of its answer that are numbers and state no kind."""
    answer = parsed(value_at(row, fields.answer["at"]))
    for scope in (
        row,
        answer,
        *list_in(answer),
        *list_in(value_at(answer, fields.answer["parts"])),
    ):
        size = number_in(value_at(scope, fields.answer["tol"]))
        if size and not value_at(scope, fields.answer["tol_kind"]):
            yield size


def _exact_list(row: Row, fields: FieldMap) -> list[Any]:
    """Return the answer of an entry if it is of type exact and a list of several names."""
    answer = parsed(value_at(row, fields.answer["at"]))
    inner = parsed(value_at(answer, fields.answer["value"])) if isinstance(answer, dict) else None
    names = list_in(answer) or list_in(inner)
    word = value_at(answer, fields.answer["type"]) or value_at(row, fields.answer["type"])
    is_exact = isinstance(word, str) and fields.answer_types.get(word.lower(), word) == "exact"
    are_names = all(isinstance(name, str) for name in names)
    return names if is_exact and are_names and len(names) > 1 else []


# --- check ------------------------------------------------------------------------------------------------------------


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
    tables = _tables(root, fields, Readings())
    files = [str(file) for file, rows in tables.items() if _fits(rows, fields)]
    notes = [str(note) for note in metadata["notes"] if "could not be read" not in str(note)]
    notes += _notes(path, benchmark)
    hint = (
        "eval leaves these entries out and counts them; correct the map: --propose-map"
        if faults
        else ""
    )
    number = len(benchmark.samples) + len(faults)
    return FileCheck(tuple(files[:_SHOWN]), number, benchmark.samples, faults, notes, hint)


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
    map_path, _ = map_for(root, settings.map)
    for path in (map_path, *data_files(root)):
        digest.update(f"{path} {sha256_of_file(path)}\n".encode())
    digest.update(f"{settings.tolerance} {settings.lists}".encode())
    return cache_dir("benchmarks") / f"agrotools-{digest.hexdigest()[:10]}"


# --- proposed map -----------------------------------------------------------------------------------------------------

_HEAD = 'Proposed field map; other keys are as in the package. [tools]: what runs the calls; "" plays back results.'


def propose_map(
    data_root: Path | None,
    progress: Progress,
    options: Mapping[str, str | int | bool] = MappingProxyType({}),
    readings: Readings | None = None,
) -> MapProposal:
    """Write a proposed map beside the released files; return what was found.

    The map answers the questions on the files by the proposed readings, and names the others in its comments.

    Raises:
        UsageError: there is such a file already.
        BenchmarkError: the files are missing, or none has rows.
    """
    root, readings = find_entries(data_root), readings or Readings()
    target = root / MAP_FILE
    if target.exists():
        raise UsageError(f"{target} exists already", hint="edit it, or remove it")
    settings = settings_of(ReleasedSettings, "agrotools", options)
    tables = _tables(root, read_map(MAP), Readings())
    file, rows = max(tables.items(), key=lambda item: len(item[1]), default=(root, []))
    if not rows:
        raise BenchmarkError(f"{root} has no file with entries", hint="get the files again")
    lines = _write_proposal(target, file, rows, settings, readings)
    try:
        benchmark = load_released(Loading(data_root, {"map": str(target)}, progress))
    except BenchmarkError as error:
        return MapProposal([*lines, error.message, f"  {error.hint}"], reads_all=False)
    forms = Counter(
        " and ".join(dict.fromkeys(slot.type for slot in sample.answer))
        for sample in benchmark.samples
    )
    lines += [f"answer {form}: {count}" for form, count in forms.most_common()]
    lines += cast(list[str], benchmark.header.metadata["notes"])
    return MapProposal(lines, reads_all=not benchmark.header.metadata["unread"])


def _write_proposal(
    target: Path, file: Path, rows: list[Row], settings: ReleasedSettings, readings: Readings
) -> list[str]:
    """Write the map that the rows of a file propose; return a line on each thing that was found.

    It is written twice: types, questions and tools are found at the places that the first one names.
    """
    root = target.parent
    name = file.relative_to(root).as_posix()
    places = propose_places(rows, _file_names(root))
    lines = [f"{len(rows)} entries in {name}", *places.lines]
    document: dict[str, Any] = {"file": name, "entries": place_of_entries(file), **places.tables}
    _write(target, document, lines)
    fields = read_map(target, MAP)
    types = propose_answer_types(rows, fields)
    numbered = _numbered({file: rows}, fields)
    fields = _decided(numbered, fields, settings, readings)
    defaults = fields.defaults.model_dump(
        include={"tol_kind", "any"} & fields.defaults.model_fields_set, exclude_none=True
    )
    tools = propose_tools(Source(root, fields, numbered), fields)
    document |= {**types.tables, "defaults": defaults, **tools.tables}
    questions = [f"decide: {question}" for question in readings.questions]
    lines += [*types.lines, *tools.lines, *passed_over(rows, fields), *questions]
    _write(target, document, lines)
    return [*lines, f"map written: {target}"]


def _write(target: Path, document: Mapping[str, Any], found: Sequence[str]) -> None:
    """Write a map with what was found as comments."""
    comments = "".join(f"# {line}\n" for line in [_HEAD, *found])
    written = {key: value for key, value in document.items() if value}
    write_whole(target, (comments + tomli_w.dumps(written)).encode())
