"""Entries of the released questions, in one form whatever the form of the files: the rows, read by their fields."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

from agrotools.calling.declared import chart_of, schemas_in
from agrotools.core import BenchmarkError
from agrotools.core.readings import Choice
from agrotools.loading.values import NOTHING, value_at
from agrotools_benchmarks.released.answers import (
    UNDECIDED,
    AnswerForm,
    PercentSense,
    Stated,
    ToleranceKind,
    bare_kinds,
    bare_sizes,
    first_kind,
    flat,
    is_tolerance_name,
    other_kinds,
    plain_answer,
)
from agrotools_benchmarks.released.containers import (
    ARCHIVES,
    FOLDER,
    Contents,
    Marks,
    Row,
    data_files,
    files_beside,
    read_contents,
)
from agrotools_benchmarks.released.fields import (
    ANSWER_ITEMS,
    RESULTS_NAME,
    ROLE_KEYS,
    Asker,
    Found,
    are_steps,
    asks,
    chart_in,
    family_table,
    have_calls,
    inputs_of,
    is_unit_name,
    key_in,
    names_in,
    part_of_steps,
    question_in,
    recognise,
    task_of,
    task_table,
)
from agrotools_benchmarks.released.gold_words import (
    Beside,
    asks_for_several,
    in_words,
    items_in,
    named_parts,
    with_files_named,
)
from agrotools_benchmarks.released.names import in_english, snake, with_plain_keys
from agrotools_benchmarks.released.pictures import (
    FILE_KEYS,
    drop_repeated_files,
    name_stored_pictures,
    pictures_in,
    with_files,
)
from agrotools_benchmarks.released.traces import (
    Inputs,
    Trace,
    english_call,
    plain_question,
    read_trace,
    text_of,
)
from agrotools_build.export.gta_entries import DEFAULT_MAP, FieldMap, read_map


class Entries(NamedTuple):
    """Entries by position, those that cannot be read with the reason, and what was found.

    ``fields``: the map by which :func:`~agrotools_benchmarks._dialogs.gta_in.import_entries` reads the entries.
    """

    entries: dict[str, Row]
    faults: dict[str, str]
    contents: Contents
    found: Found
    fields: FieldMap
    rows: list[Row]
    tolerance: str
    """Kind of all bare tolerances; empty: each has the kind of its size."""
    percent: PercentSense | None = None
    """What tolerances in percent are beside answers in percent; None if there are none, or all say so."""
    lists: str = ""
    """What lists of exact answers are: ``any`` or ``all``, once that was asked."""


def marks_of(fields: FieldMap, base: FieldMap) -> Marks:
    """Return what tells rows from other objects: names of ``fields``, and of ``base``, as files differ."""
    names = {key: f"{fields.sample[key]}|{base.sample[key]}" for key in ("query", "id")}
    return Marks(
        lambda row: asks(row, names["query"]),
        lambda row: key_in(row, names["id"]),
        lambda row: question_in(row, names["query"]),
        lambda rows: have_calls(rows, base),
        are_steps,
    )


def read_entries(root: Path, fields: FieldMap, base: FieldMap, asker: Asker) -> Entries:
    """Read the entries below ``root``.

    Args:
        fields: map of the user, or that of the package.
        base: map of the package; paths that differ from it are taken as they are.
        asker: asked where the files may be read in two ways.

    Raises:
        BenchmarkError: a file cannot be read.
    """
    contents = read_contents(root, marks_of(fields, base), fields.file, fields.entries)
    own = {
        role: getattr(fields, table)[key]
        for role, (table, key) in ROLE_KEYS.items()
        if getattr(fields, table)[key] != getattr(base, table)[key]
    }
    rows = [row for row in contents.rows if isinstance(row, dict)]
    _say_files(contents, root, fields, len(rows), asker)
    found = recognise(rows, fields, own, asker)
    kinds = _bare(rows, found.paths, fields, asker)
    tolerance = kinds["small"] if kinds["small"] == kinds["large"] else ""
    reader = _EntryReader(contents, found, fields, base, kinds, asker)
    entries: dict[str, Row] = {}
    faults: dict[str, str] = {}
    for number, row in enumerate(rows):
        try:
            entries[str(number)] = reader.entry(row)
        except BenchmarkError as error:
            faults[str(number)] = error.message
    for as_what, texts in reader.said.items():
        asker.readings.take(f"{len(texts)} answers such as {texts[0]} as {as_what}")
    for name, english in reader.tools.items():
        asker.readings.take(f"tool {name} as {english}")
    left = {**found.left, **reader.left_of_files}
    return Entries(
        entries,
        faults,
        contents,
        found._replace(left=left),
        _plain_map(fields),
        rows,
        tolerance,
        reader.percent_sense,
        reader.lists,
    )


def _say_files(contents: Contents, root: Path, fields: FieldMap, number: int, asker: Asker) -> None:
    """Say which files were read, and which that may have rows were not."""
    names = contents.shown[:_FILES_NAMED]
    more = ["..."] if len(contents.shown) > len(names) else []
    asker.readings.take(f"{number} rows from {' and '.join([*names, *more])}")
    for sheet in contents.sheets_left:
        asker.readings.leave(sheet)
    for path in (*data_files(root, fields.file), *files_beside(root, fields.file)):
        if path not in (*contents.files, *contents.tool_files) and not path.name.lower().endswith(
            ARCHIVES
        ):
            asker.readings.leave(f"file {path.relative_to(root)}")


_FILES_NAMED = 4
"""Files that the line on what was read names; a set may have one for each question."""


def _plain_map(fields: FieldMap) -> FieldMap:
    """Return a map with the paths of entries in the one form, and everything else of ``fields``."""
    plain = read_map(DEFAULT_MAP)
    sample = {**plain.sample, "query": "query", "tool_name": fields.sample["tool_name"]}
    calls = {**plain.calls, "at": "calls", "each": "", "tool": "tool", "arguments": "arguments"}
    calls |= {"observation": "observation", "role": "role", "final": "final", "end": ""}
    files = {**fields.files, "at": "files"}
    tables = {"sample": sample, "calls": calls, "files": files, "answer": plain.answer}
    return fields.model_copy(update=tables)


def _bare(
    rows: Sequence[Row],
    paths: Mapping[str, str],
    fields: FieldMap,
    asker: Asker,
) -> "Mapping[str, ToleranceKind]":
    """Return the kind of bare tolerances below 1 and of others, as asked if they may be of two kinds."""
    if "tol_kind" in fields.defaults.model_fields_set:
        return _of_one_kind(fields.defaults.tol_kind)
    sizes = bare_sizes(scope for row in rows for scope in _scopes(row, paths))
    kinds = bare_kinds(sizes)
    if "tolerance" not in asker.given and not other_kinds(sizes):
        for size in sorted({*sizes} - {0.0})[:_FILES_NAMED]:
            kind = kinds["small" if size < 1 else "large"]
            asker.readings.take(f"tolerance {size:g} as {_TOLERANCE_WORDS[kind]}")
    choices = other_kinds(sizes)
    if choices or "tolerance" in asker.given:
        example = f"{max(sizes, default=0):g}"
        shown = {
            "abs": f"± {example}",
            "rel": f"± {example} times the answer",
            "percent": f"± {example} % of the answer",
        }
        offered = choices or ["abs", "rel", "percent"]
        listed = [Choice(kind, shown[kind]) for kind in offered]
        chosen = asker.choose("tolerance", f"a tolerance of {example} is:", listed)
        return _of_one_kind(next(kind for kind in offered if kind == chosen))
    return kinds


def _of_one_kind(kind: ToleranceKind) -> dict[str, ToleranceKind]:
    return {"small": kind, "large": kind}


_TOLERANCE_WORDS = {
    "abs": "that much in the unit of the answer",
    "rel": "that share of the answer",
    "percent": "percent of the answer",
}


_APART = ("calls", "tools", "files")
"""Roles of fields that state nothing on the answer."""


def _scopes(row: Row, paths: Mapping[str, str], roles: Sequence[str] = _APART) -> list[Row]:
    """Return the objects of a row that may state the tolerance and the unit of its answer, the outer ones first.

    ``paths``: those of the roles; fields of ``roles`` are left out.
    """
    apart = {path.strip() for role in roles for path in re.split(r"[|+]", paths[role])}
    return [_with_margins(with_plain_keys(each)) for each in _objects_in(row, apart, "", _DEPTH)]


def _with_margins(scope: Row) -> Row:
    """Return an object, with tolerances that are written for each part, ``mean: 0.5; highest: 1``, by part."""
    return {
        name: (named_parts(value) or value) if is_tolerance_name(str(name)) else value
        for name, value in scope.items()
    }


_DEPTH = 3
"""Levels of an object in which a tolerance is looked for: ``metadata.scoring.tolerance``."""


def _objects_in(value: Row, apart: Collection[str], before: str, depth: int) -> Iterator[Row]:
    yield value
    for name, inner in value.items() if depth else ():
        path = f"{before}{name}"
        if path in apart:
            continue
        for each in inner if isinstance(inner, list) else [inner]:
            if isinstance(each, dict):
                yield from _objects_in(each, apart, f"{path}.", depth - 1)


class _EntryReader:
    """Reader of the entries of rows.

    ``left_of_files``: number of fields of files that are not read. ``said``: texts of answers, by what they were read
    as. ``tools``: English names of tools that have Chinese ones. ``percent_sense``: what tolerances in percent are
    beside answers in percent, and ``lists`` what lists of exact answers are, once that was asked.
    """

    def __init__(
        self,
        contents: Contents,
        found: Found,
        fields: FieldMap,
        base: FieldMap,
        kinds: "Mapping[str, ToleranceKind]",
        asker: Asker,
    ) -> None:
        self._contents, self._paths, self._fields = contents, found.paths, fields
        self._kinds, self._asker = kinds, asker
        self.percent_sense: PercentSense | None = None
        self._inputs: Inputs = inputs_of([*contents.rows, *contents.beside])
        self._shared = [each for value in contents.beside for each in _tools_in(value)]
        # The path of a type in a map is often that of the entry, and its parts have types of their own.
        paths = {**fields.answer, "type": f"{fields.answer['type']}|{base.answer['type']}"}
        own = {
            key: fields.answer[key]
            for key in ("abs_tol", "rel_tol", "tol", "tol_kind")
            if fields.answer[key] != base.answer[key]
        }
        self._form = AnswerForm(paths, fields.answer_types, self._bare, own, self._percent_sense)
        is_own = fields.calls["final"] != base.calls["final"]
        self._final = fields.calls["final"] if is_own else ""
        self.left_of_files: dict[str, int] = {}
        self.said: dict[str, list[str]] = {}
        self.tools: dict[str, str] = {}
        self.lists = ""
        self._lists_of_one: dict[str, bool] = {}

    def _bare(self, size: float) -> "ToleranceKind":
        return self._kinds["small" if size < 1 else "large"]

    def _percent_sense(self, size: float, answer: str) -> PercentSense:
        """Return what a tolerance in percent is beside an answer in percent, as the map says, or as is asked once."""
        if of_map := self._fields.defaults.percent:
            return of_map
        if not self.percent_sense:
            number = re.search(r"\d+(?:\.\d+)?", answer)
            margin = f": ± {float(number[0]) * size / 100:g}" if number else ""
            of_answer = f"± {size:g} % of the answer{margin}"
            listed = [Choice("relative", of_answer), Choice("points", f"± {size:g} points")]
            text = f"a tolerance of {size:g} %, of an answer in percent ({answer}), is:"
            self.percent_sense = cast(PercentSense, self._asker.choose("percent", text, listed))
        return self.percent_sense

    def entry(self, row: Row) -> Row:
        """Return the entry of a row; BenchmarkError if its calls, its files or its tolerance cannot be read."""
        trace = self._trace(row)
        final = text_of(value_at(row, self._final)) if self._final else trace.answer
        entry: Row = {"query": self._question(row, trace), "final": final}
        entry["files"] = self._files(row, trace)
        given = with_files(trace.calls, entry["files"])
        calls = tuple(map(english_call, given))
        names = zip(given, calls, strict=True)
        self.tools |= {call.tool: same.tool for call, same in names if call.tool != same.tool}
        trace = trace._replace(calls=calls)
        entry["calls"] = [
            {"tool": call.tool, "arguments": call.arguments, "thought": call.thought}
            | ({} if call.returned is NOTHING else {"observation": call.returned})
            for call in trace.calls
        ]
        entry |= self._facts(row)
        entry |= self._answer(row, trace, [str(value_at(each, "path")) for each in entry["files"]])
        return entry

    def _value(self, row: Row, role: str, default: Any = None) -> Any:
        path = self._paths[role]
        return value_at(row, path, default) if path else default

    def _trace(self, row: Row) -> Trace:
        for path in self._paths["calls"].split("|"):
            value = _beside(row, path) if "+" in path else value_at(row, path) if path else None
            if value is not None:
                trace = read_trace(value, self._fields.calls, self._inputs)
                if trace.calls:
                    return trace._replace(calls=_with_results(trace, row))
        raise BenchmarkError(
            f"there is no call of a tool at {self._paths['calls'] or self._fields.calls['at']!r}"
            " ([calls] at, each, tool, arguments)"
        )

    def _question(self, row: Row, trace: Trace) -> str:
        for path in self._paths["query"].split("|"):
            value = value_at(row, path) if path else None
            if path in self._paths["calls"].split("|") and trace.question:
                return trace.question
            if isinstance(value, list) and (
                talk := read_trace(value, self._fields.calls, {}).question
            ):
                return talk
            if text := text_of(value).strip():
                return plain_question(text)
        if trace.question:
            return trace.question
        place = self._paths["query"] or self._fields.sample["query"]
        raise BenchmarkError(f"there is no question at {place!r} ([sample] query)")

    def _facts(self, row: Row) -> Row:
        """Return id, tools, task, family, source and options of a row."""
        facts: Row = {}
        for role in ("id", "source"):
            if (value := self._value(row, role)) is not None:
                facts[role] = str(value)
        task, family = self._value(row, "task_type"), self._value(row, "family")
        if isinstance(task, str):
            facts["task_type"] = task_of(task.strip(), task_table(self._fields))
        if isinstance(family, str):
            facts["family"] = task_of(family.strip(), family_table(self._fields))
        listed = self._value(row, "tools")
        if isinstance(listed, str):
            listed = names_in(listed)
        facts["tools"] = _in_english(listed) if listed is not None else self._shared
        plain = with_plain_keys(row)
        for key in ("options", "answerable"):
            if (value := value_at(plain, self._fields.answer[key])) is not None:
                facts[key] = value
        if (template := value_at(plain, self._fields.sample["template"])) is not None:
            facts["template"] = template
        return facts

    # --- answers ------------------------------------------------------------------------------------------------------

    def _answer(self, row: Row, trace: Trace, paths: Sequence[str]) -> Row:
        """Return the answer, as ``gt_answer``, and the tolerance of GTA's form, which stands beside it."""
        places = [path for path in self._paths["answer"].split("|") if path]
        values = {path: value_at(row, path, NOTHING) for path in places}
        empty = (None, "", [], {})
        place = next(
            (at for at in places if values[at] is not NOTHING and values[at] not in empty), ""
        )
        place = place or next((at for at in places[:1] if values[at] is not NOTHING), "")
        value = values[place] if place else NOTHING
        stated = self._stated(row, place)._replace(
            words=f"{self._question(row, trace)}\n{trace.answer}"
        )
        if stated.kind == "plot" and (chart := chart_in(row)):
            value = chart
        if value is NOTHING and stated.kind == "plot":
            value = None
        if value is NOTHING and not places and trace.answer:
            value = trace.answer  # the trace is right, and so is what it ends with
        is_figure = stated.kind in (None, "plot", "abstain")
        if value is NOTHING or (value is None and not is_figure):
            return {}
        beside_it = Beside(
            stated.kind,
            items_in(value_at(with_plain_keys(row), ANSWER_ITEMS)),
            {PurePosixPath(path).name: path for path in paths},
            stated.words,
            self._say,
        )
        if stated.kind == "exact" and isinstance(value, list) and len(value) > 1:
            value = self._of_list(value, place, stated.words)
        answer = flat(plain_answer(in_words(value, beside_it), stated, self._form))
        answer = with_files_named(answer, beside_it)
        if isinstance(answer, dict) and answer.get("type") == "plot" and "value" not in answer:
            answer |= _drawn(value, trace, self._question(row, trace))
        beside = {}
        if isinstance(answer, dict) and "whitelist" in answer:
            beside = {key: answer[key] for key in ("abs_tol", "rel_tol") if key in answer}
        return {"gt_answer": answer, **beside}

    def _of_list(self, value: list[Any], place: str, words: str) -> Any:
        """Return an exact answer that is a list: names of one answer, or answers that are all required."""
        of_map = self._fields.defaults.any
        if not all(isinstance(each, str) for each in value):
            return value
        if asks_for_several(words.partition("\n")[0]):
            listed = enumerate(value, start=1)
            parts = [
                {"name": f"answer_{at}", "type": "exact", "value": each} for at, each in listed
            ]
            return parts if of_map else value
        if of_map is not None or not self._is_list_of_one(place):
            return value
        shown = ", ".join(value[:_FILES_NAMED])
        choices = [Choice("any", "other names of one answer"), Choice("all", "each is required")]
        text = f"the exact answers in a list ({shown}) are:"
        self.lists = self._asker.choose("lists", text, choices)
        if self.lists == "all":
            return value
        return {"type": "exact", "value": value[0], "aliases": value[1:]}

    def _is_list_of_one(self, place: str) -> bool:
        """True if a field is a list also where it holds one answer, so others may be names of one answer."""
        if place not in self._lists_of_one:
            found = (value_at(row, place) for row in self._contents.rows)
            there = [each for each in found if each is not None]
            are_lists = all(isinstance(each, list) for each in there)
            self._lists_of_one[place] = are_lists and any(len(each) == 1 for each in there)
        return self._lists_of_one[place]

    def _say(self, as_what: str, text: str) -> None:
        self.said.setdefault(as_what, []).append(text)

    def _stated(self, row: Row, place: str) -> Stated:
        """Return what a row states on the answer at ``place`` beside it."""
        words = [value_at(row, path) for path in self._paths["kind"].split("|") if path]
        words = [word for word in words if isinstance(word, str) and word.strip()]
        is_text = any(word.strip().lower() in UNDECIDED for word in words)
        kind = first_kind(words, self._fields.answer_types)
        if words and not kind and not is_text:
            raise BenchmarkError(
                f"its answer is of the type {words[0]!r}: add it under [answer_types]"
            )
        paths = {**self._paths, "answer": place}
        scopes = tuple(_scopes(row, paths, (*_APART, "answer")))
        units = (value_at(scope, self._fields.answer["unit"]) for scope in scopes)
        others = (each for scope in scopes for name, each in scope.items() if is_unit_name(name))
        unit = next((each for each in (*units, *others) if isinstance(each, str)), "")
        is_undecided = is_text and kind in (None, "exact")
        own = None if is_undecided else kind
        return Stated(own, unit, scopes, is_undecided)

    # --- files --------------------------------------------------------------------------------------------------------

    def _files(self, row: Row, trace: Trace) -> list[Any]:
        """Return the files of a row: those in its fields, else those in its messages, each once."""
        items: list[Any] = []
        places = [path.strip() for path in self._paths["files"].split("+") if path.strip()]
        for path in places:
            value = value_at(row, path)
            items += pictures_in(value, is_named=True) or _as_given(value)
        items = items or _listed_in(trace)
        query = value_at(row, self._paths["query"])
        if not items and isinstance(query, list):  # the messages of the question hold them
            items = _listed_in(read_trace(query, self._fields.calls, {}))
        if not items and not places:
            raise BenchmarkError(f"there are no files at {self._fields.files['at']!r} ([files] at)")
        self._note_left(items)
        files = [self._placed(item, row) for item in items]
        return drop_repeated_files(name_stored_pictures(files))

    def _note_left(self, items: Sequence[Any]) -> None:
        known = {
            name for path in self._fields.files.values() for name in re.split(r"[|+. ]+", path)
        }
        for item in items:
            for name in item if isinstance(item, dict) else ():
                if name not in known | {"unnamed", "bytes"}:
                    key = f"files: {name}"
                    self.left_of_files[key] = self.left_of_files.get(key, 0) + 1

    def _placed(self, item: Any, row: Row) -> Any:
        """Return a file with its place from the folder of the set, where it stands beside the file of the row."""
        path = (
            item
            if isinstance(item, str)
            else value_at(item, f"{self._fields.files['path']}|{FILE_KEYS}")
        )
        if not isinstance(path, str):
            return item
        plain = path.strip().removeprefix("./")
        beside = PurePosixPath(str(row.get(FOLDER, "."))) / plain
        if self._fields.files["folder"]:  # a map of the user says where files are
            return {**(item if isinstance(item, dict) else {}), "path": plain}
        is_there = any((folder / beside).is_file() for folder in self._contents.folders)
        placed = beside.as_posix() if is_there else plain
        return {**(item if isinstance(item, dict) else {}), "path": placed}


def _listed_in(trace: Trace) -> list[Any]:
    """Return the pictures in the messages of a trace."""
    return [item for each in trace.pictures for item in pictures_in(each, is_named=True)]


def _in_english(tools: Any) -> Any:
    """Return a list of tools with the English phrases of Chinese names."""
    if not isinstance(tools, list):
        return tools
    found: list[Any] = []
    for tool in tools:
        if isinstance(tool, str):
            found.append(in_english(tool.strip(), "tools_in_chinese"))
        elif isinstance(tool, dict) and isinstance(tool.get("name"), str):
            found.append({**tool, "name": in_english(tool["name"], "tools_in_chinese")})
        else:
            found.append(tool)
    return found


def _as_given(value: Any) -> list[Any]:
    """Return the files at a path of the user's map, whatever they are."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _beside(row: Row, paths: str) -> Row:
    """Return the parts of steps that stand in lists beside each other, by part."""
    names = [path.strip() for path in paths.split("+")]
    return {part_of_steps(name): value_at(row, name) for name in names}


_CHART_WORDS = ("line", "bar", "scatter", "hist", "pie", "box", "heatmap")


def _drawn(given: Any, trace: Trace, question: str) -> Row:
    """Return the chart of an answer, or of the last call that draws one, whose kind only words say.

    These are the name of the tool, titles, or the question: ``plot_bar``, ``Bar chart of weeds``.
    """
    objects = [("", each) for each in (given,) if isinstance(each, dict)]
    objects += [(call.tool, call.arguments) for call in reversed(trace.calls)]
    for tool, each in objects:
        if chart_of(each):
            return {}  # it says its kind itself, and is read with the answer
        titles = [value for value in each.values() if isinstance(value, str)]
        words = re.findall(r"[a-z]+", " ".join(map(snake, [tool, *titles, question])))
        kind = next((word for word in words if word in _CHART_WORDS), "")
        if kind and (chart := chart_of({**each, "kind": kind})):
            return {"value": chart.model_dump(mode="json")}
    return {}


def _with_results(trace: Trace, row: Row) -> tuple[Any, ...]:
    """Return the calls, with the results that a list beside them gives, one for each."""
    calls = trace.calls
    if any(call.returned is not NOTHING for call in calls):
        return calls
    for name, value in row.items():
        is_result = RESULTS_NAME.search(name.lower())
        if is_result and isinstance(value, list) and len(value) == len(calls):
            return tuple(
                call._replace(returned=each) for call, each in zip(calls, value, strict=True)
            )
    return calls


def _tools_in(value: Any) -> list[Any]:
    """Return the tools that an object beside the rows lists, or is."""
    inner = value.values() if isinstance(value, dict) else ()
    for each in (value, *inner):
        listed = schemas_in(each) if isinstance(each, list | dict) else ()
        tools = [
            {"name": name, "description": about, "parameters": schema}
            for name, about, schema in listed
        ]
        if tools:
            return tools
    return []
