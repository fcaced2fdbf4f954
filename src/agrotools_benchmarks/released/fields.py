"""Recognition of the fields of rows: which one holds the question, the pictures, the trace, the answer, and so on.

A field is recognised by its values, and by its name where several would do. Names are those of the field map, in
which paths joined by ``|`` are tried in order, and pictures at paths joined by ``+`` are read one after the other. A
path that a map of the user gives is taken as it is.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import snowballstemmer

from agrotools.calling.declared import chart_of, schemas_in
from agrotools.core import FAMILIES, FAMILY_OF_TASK_TYPE, BenchmarkError
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.loading.values import number_in, translated, value_at
from agrotools.text.normalise import CJK
from agrotools_benchmarks.released.answers import (
    UNDECIDED,
    is_on_tolerance,
    is_tolerance_name,
    kind_of,
)
from agrotools_benchmarks.released.containers import GROUP, Row
from agrotools_benchmarks.released.gold_words import is_sentence
from agrotools_benchmarks.released.names import snake
from agrotools_benchmarks.released.pictures import pictures_in
from agrotools_benchmarks.released.traces import Inputs, Trace, plain_question, read_trace, text_of
from agrotools_build.export.gta_entries import FieldMap

ROLES = (
    "id",
    "query",
    "tools",
    "family",
    "task_type",
    "source",
    "files",
    "calls",
    "answer",
    "kind",
)
"""What is looked for in the fields; the first six are keys of ``[sample]`` in a map."""
ROLE_KEYS = {
    **{role: ("sample", role) for role in ROLES[:6]},
    **{role: (role, "at") for role in ("files", "calls", "answer")},
    "kind": ("answer", "type"),
}
"""Table and key of a field map for each role."""

_DEPTH = 3
"""Levels of an object in which fields are looked for: ``metadata.gold.answer``."""
_TRIED = 30
"""Rows whose values are read as traces, to find the field of the trace."""
_WORDS_ASKED = 4
"""Fewest words, on average, of a field without a known name that is taken for the question."""
_MODELS_OWN = {*"pred prediction predicted predictions model baseline generated candidate".split()}
"""Words of names of fields with what models answered, which are no part of a question."""
_NO_INPUT = {*"gold gt answer answers output outputs result results plot chart figure".split()}
"""Words of names of fields whose pictures are no input: figures that were drawn, masks that are right."""
_STATED_RIGHT = {
    *"gt gold golden truth groundtruth correct right consensus majority adjudicated agreed".split()
}
_EXPECTED = {*"expected reference ref target label labels standard eval evaluation".split()}
_ANSWERED = {*"answer answers ans solution response output final result results value".split()}
"""Words of names of the right answer, the plainest first."""
_NO_ANSWER = {
    *"type types kind unit units id ids trace trajectory step steps tool tools call calls format options".split(),
    *"choices explanation rationale reasoning metric image images file files path query question source".split(),
    *"dataset family task category split method mode modes messages conversations dialogs rubric".split(),
} | _MODELS_OWN
"""Words of names of fields on the answer that are not the answer."""
_NUMBER = {"num", "number", "count"}
"""Words of names of numbers, which are answers if the name says that they are right: ``gold_number``."""
_TYPE_WORDS = {
    *"type kind format match matching metric scoring eval method mode judge checker".split()
}
_CALLED = {*"used called required gold sequence gt order chain expected num count".split()}
"""Words of names of fields with the tools of the solution, which are not those that are offered."""


class Found(NamedTuple):
    """Paths of a map by role (empty: not found), and the fields of the rows that none of them reads."""

    paths: dict[str, str]
    left: dict[str, int]


ANSWER_ITEMS = "answer_items|answer_item|answer_names|answer_name|answer_fields|answer_slots"
"""Names of fields with the names of the parts of an answer."""

QUESTIONS = ("answer", "calls", "tolerance", "percent", "lists")
"""Options that answer a question on the files."""


class Asker(NamedTuple):
    """Who is asked where files may be read in two ways.

    ``given``: answers of the command line, by option; ``chosen``: takes the answers of all questions.
    """

    readings: Readings
    given: Mapping[str, str]
    chosen: dict[str, str]

    def choose(self, option: str, text: str, choices: Sequence[Choice]) -> str:
        """Return the reading to go on with; UsageError if the answer that is given is none of them."""
        question = ReadingQuestion(text, f"--option={option}", tuple(choices))
        self.chosen[option] = self.readings.choose(question, self.given.get(option))
        return self.chosen[option]


class Columns:
    """Values of rows by path, in the order of the fields; paths in objects too, and not in lists."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.values: dict[str, list[Any]] = {}
        for row in rows:
            for path, value in _paths_in(row, _DEPTH):
                self.values.setdefault(path, []).append(value)
        self.rows = rows

    def named(self, paths: str, fits: Callable[[str, list[Any]], bool]) -> list[str]:
        """Return the paths with one of the names, whose values fit, in the order of the names, outer ones first."""
        wanted = [snake(each.strip()) for each in re.split(r"[|+]", paths)]
        found: list[tuple[int, int, str]] = []
        for path, values in self.values.items():
            plain, depth = snake(path), path.count(".")
            names = (plain, plain.rpartition(".")[2])
            places = [wanted.index(name) for name in names if name in wanted]
            if places and fits(path, values):
                found.append((depth, places[0], path))
        return [path for _, _, path in sorted(found)]


def _paths_in(value: Mapping[str, Any], depth: int, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, each in value.items():
        path = f"{before}{name}"
        if each is None or each == "" or "|" in path or "+" in path:
            continue
        yield path, each
        if isinstance(each, dict) and depth > 1:
            yield from _paths_in(each, depth - 1, f"{path}.")
        if re.search(r"tags?$|labels$|categor", name.lower()) and isinstance(each, list):
            yield from ((f"{path}.{at}", word) for at, word in enumerate(each))


def _words(path: str) -> set[str]:
    return {*re.findall(r"[a-z]+", snake(path).replace("reward_model", "reward"))}


def _last_words(path: str) -> set[str]:
    return _words(path.rpartition(".")[2])


def recognise(
    rows: Sequence[Row],
    fields: FieldMap,
    own: Mapping[str, str],
    asker: "Asker",
) -> Found:
    """Return the paths of the roles.

    Args:
        own: paths of a map of the user, by role.
        asker: asked where two fields may have a role, and would give other values.
    """
    columns = Columns(rows)
    traces = _traces(columns, fields, inputs_of(rows))
    names = {role: getattr(fields, table)[key] for role, (table, key) in ROLE_KEYS.items()}
    roles = _Roles(own)
    # Each stage looks only at fields that no earlier one has taken: a trace has questions and answers in it too.
    _recognise_calls(roles, columns, names, traces, asker)
    _recognise_question(roles, columns, names, traces, fields)
    _recognise_answer(roles, columns, names, fields, asker)
    _recognise_id_and_files(roles, columns, names)
    _say_what_was_read(roles.paths, asker.readings)
    left = _left(columns, roles.paths)
    for name in left:
        asker.readings.leave(f"field {name}")
    return Found(roles.paths, left)


class _Roles:
    """Paths of the roles that have been recognised. A role keeps the first paths that it gets."""

    def __init__(self, own: Mapping[str, str]) -> None:
        """Begin with the paths of a map of the user, by role."""
        self.paths = dict.fromkeys(ROLES, "") | dict(own)

    def settle(self, role: str, candidates: Iterable[str]) -> None:
        """Give a role these paths, unless it has some; without candidates it stays open."""
        self.paths[role] = self.paths[role] or "|".join(candidates)

    def taken(self, *roles: str) -> set[str]:
        """Return the paths of some roles."""
        return {path for role in roles for path in self.paths[role].split("|")}

    def traces(self) -> list[str]:
        """Return the fields with the calls."""
        return [path.strip() for path in re.split(r"[|+]", self.paths["calls"]) if path]

    def is_free(self, path: str) -> bool:
        """True for a field that is no trace and no part of one, and that is of the rows themselves."""
        traces = self.traces()
        is_trace = path in traces or path.startswith(tuple(f"{trace}." for trace in traces))
        return not is_trace and not path.startswith("(")


def _recognise_calls(
    roles: _Roles,
    columns: Columns,
    names: Mapping[str, str],
    traces: Mapping[str, "_Tried"],
    asker: Asker,
) -> None:
    """Recognise the fields of the calls: one that can be read as a trace, else lists beside each other."""
    if not roles.paths["calls"]:
        roles.settle("calls", _chosen_trace(traces, names["calls"], asker))
    roles.settle("calls", _lists_beside(columns))
    # Calls that cannot be read are looked for by name, so that the reason can be said.
    long = columns.named(names["calls"], lambda _, values: all(map(_is_long, values)))
    roles.settle("calls", long[:1])


def _recognise_question(
    roles: _Roles,
    columns: Columns,
    names: Mapping[str, str],
    traces: Mapping[str, "_Tried"],
    fields: FieldMap,
) -> None:
    """Recognise the fields of the question, of the tools that are offered, and of the task and its family."""
    questions = _questions(columns, names["query"], roles.is_free, traces, roles.paths["calls"])
    roles.settle("query", questions)
    roles.settle("tools", columns.named(names["tools"], _are_tools))
    schemas = [path for path, values in columns.values.items() if _are_schemas(values)]
    roles.settle("tools", schemas[:1])
    roles.settle("task_type", _tasks(columns, fields, names["task_type"], roles.is_free))
    task = roles.paths["task_type"]
    roles.settle("family", _families(columns, fields, names["family"], roles.is_free, task))


_ASKED = ("query", "tools", "task_type", "family")
"""Roles that are recognised before the answer."""


def _recognise_answer(
    roles: _Roles, columns: Columns, names: Mapping[str, str], fields: FieldMap, asker: Asker
) -> None:
    """Recognise the fields of the answer and of its type, among those that have no other role."""
    asked = roles.taken(*_ASKED)
    kinds = _kinds(columns, fields, lambda path: roles.is_free(path) and path not in asked)
    roles.settle("kind", kinds)
    used = roles.taken(*_ASKED, "kind")
    traces = roles.traces()

    def may_be_answer(path: str) -> bool:
        holds_trace = any(trace.startswith(f"{path}.") for trace in traces)
        return roles.is_free(path) and path not in used and not holds_trace

    if not roles.paths["answer"]:
        candidates = _answers(columns, names["answer"], may_be_answer)
        roles.settle("answer", _chosen_answer(columns, candidates, asker))


def _recognise_id_and_files(roles: _Roles, columns: Columns, names: Mapping[str, str]) -> None:
    """Recognise the fields of the id, the source and the pictures."""
    used = roles.taken(*_ASKED, "kind", "answer")
    n_rows = len(columns.rows)
    ids = columns.named(names["id"], lambda _, values: _are_ids(values, n_rows))
    roles.settle("id", ids[:1])
    sources = columns.named(
        names["source"], lambda path, values: _are_texts(values) and path not in used
    )
    roles.settle("source", sources[:1])
    if not roles.paths["files"]:
        pictures = _pictures(columns, names["files"], roles.is_free, used)
        roles.paths["files"] = " + ".join(pictures)


def _say_what_was_read(paths: Mapping[str, str], readings: Readings) -> None:
    if not paths["answer"] and paths["calls"]:
        readings.take(f"answer from the last words of {paths['calls']}")
    for role in ROLES:
        if role == "query" and _LANGUAGE.search(snake(paths[role])):
            readings.take(f"question from {paths[role]}, the language of the answers")
        elif paths[role]:
            readings.take(f"{_SPOKEN[role]} from {paths[role]}")


_SPOKEN = {
    "id": "id",
    "query": "question",
    "tools": "tools",
    "family": "family",
    "task_type": "task",
    "source": "source",
    "files": "pictures",
    "calls": "calls",
    "answer": "answer",
    "kind": "answer type",
}


RESULTS_NAME = re.compile(r"observation|result|output|response|return")
"""Name of a list of results, one for each call."""


def is_unit_name(name: str) -> bool:
    """True for the name of a field with the unit of the answer, ``gold_unit``."""
    return bool(re.search(r"(?:^|_)units?$", snake(name))) and not is_on_tolerance(name)


def _left(columns: Columns, paths: Mapping[str, str]) -> dict[str, int]:
    """Return the number of rows with each field that no path reads."""
    read = {
        part.strip().split(".")[0] for each in paths.values() for part in re.split(r"[|+]", each)
    }
    known = {*"unit units options choices answerable is_answerable template aliases".split()}
    outer = {name for row in columns.rows for name in row}
    left: Counter[str] = Counter()
    for path, values in columns.values.items():
        is_known = (
            path in read
            or snake(path) in known
            or snake(path) in ANSWER_ITEMS.split("|")
            or is_unit_name(path)
            or (
                RESULTS_NAME.search(path.lower()) and all(isinstance(each, list) for each in values)
            )
            or path.startswith("(")
            or is_on_tolerance(path)
        )
        if path in outer and not is_known:
            left[path] = len(values)
    return dict(left.most_common())


# --- traces and tools -------------------------------------------------------------------------------------------------


def inputs_of(rows: Sequence[Any]) -> dict[str, tuple[str, ...]]:
    """Return the arguments of each tool that rows list, in order."""
    found: dict[str, tuple[str, ...]] = {}
    for row in rows:
        for value in row.values() if isinstance(row, dict) else ():
            if isinstance(value, list | dict):
                for name, _, schema in schemas_in(value):
                    found.setdefault(name, tuple(schema["properties"]))
    return found


class _Tried(NamedTuple):
    """Traces of the first rows of a field; None: one that cannot be read."""

    traces: list[Trace | None]
    calls: int
    results: int


def _traces(columns: Columns, fields: FieldMap, inputs: Inputs) -> dict[str, _Tried]:
    """Return the fields in which there are calls, with the traces of their first rows."""
    found: dict[str, _Tried] = {}
    for path, values in columns.values.items():
        if _words(path) & _MODELS_OWN or path.startswith("("):
            continue
        if _is_shared(values):
            continue  # an instruction, with tools or an example
        traces = [tried_trace(value, fields, inputs) for value in values[:_TRIED]]
        calls = [call for trace in traces if trace for call in trace.calls]
        if calls:
            results = sum(
                isinstance(call.returned, str | dict | list | int | float) for call in calls
            )
            found[path] = _Tried(traces, len(calls), results)
    return found


def _is_long(value: Any) -> bool:
    """True for lists and objects, and for texts that may have calls."""
    if isinstance(value, str):
        return "(" in value or "{" in value or "Action" in value or "Tool" in value
    return isinstance(value, list | dict)


def tried_trace(value: Any, fields: FieldMap, inputs: Inputs) -> Trace | None:
    """Return the trace that a value is; None if it cannot be read as one."""
    if not _is_long(value):
        return None
    try:
        return read_trace(value, fields.calls, inputs)
    except BenchmarkError:
        return None


def _chosen_trace(tried: Mapping[str, _Tried], names: str, asker: "Asker") -> list[str]:
    """Return the fields with calls, the one to read first: with most calls, then most results, then its name."""
    wanted = [snake(each) for each in names.split("|")]

    def rank(path: str) -> tuple[float, ...]:
        name = snake(path)
        place = wanted.index(name) if name in wanted else len(wanted)
        # Of a field and one inside it, the inner one is the trace.
        return (-tried[path].calls, -tried[path].results, -path.count("."), place)

    ordered = sorted(tried, key=rank)
    first = next(iter(ordered), None)
    apart = [path for path in ordered if first and path != first and not _are_nested(first, path)]
    rivals = [path for path in apart if first and _differ(tried[first], tried[path])]
    if first and (rivals or "calls" in asker.given):
        listed = (first, *(rivals or apart))
        choices = [Choice(path, _calls_shown(tried[path])) for path in listed]
        return [asker.choose("calls", "the reference calls are in the field:", choices)]
    return [path for path in (first, *apart) if path]


STEP_WORDS = {
    "tool": {"tool", "tools", "action", "actions", "function", "functions", "api", "apis", "calls"},
    "arguments": {"input", "inputs", "args", "arguments", "params", "parameters"},
    "observation": {
        "observation",
        "observations",
        "output",
        "outputs",
        "result",
        "results",
        "responses",
    },
    "thought": {"thought", "thoughts", "reasoning"},
}
"""Words of the names of lists that hold one part of all steps, by the part. Arguments and results come first in
``tool_inputs``."""


def part_of_steps(path: str) -> str:
    """Return the part of steps that a list of this name holds; empty if it is none."""
    words = _last_words(path)
    parts = ("arguments", "observation", "thought", "tool")
    return next((part for part in parts if words & STEP_WORDS[part]), "")


_ROWS_TRIED = 5
"""Rows whose values are read as traces, to see whether a file has calls."""


def have_calls(rows: Sequence[Row], fields: FieldMap) -> bool:
    """True if rows have calls of tools: in one of their values, or in lists beside each other."""
    first = rows[:_ROWS_TRIED]
    for row in first:
        traces = (tried_trace(value, fields, {}) for value in row.values())
        if any(trace and trace.calls for trace in traces):
            return True
    return bool(first and _lists_beside(Columns(first)))


def are_steps(rows: Sequence[Row]) -> bool:
    """True if each row of a table is a step: it has a tool in one cell, and its arguments or its result in another."""
    parts = {part_of_steps(name) for row in rows for name in row}
    return "tool" in parts and bool(parts & {"arguments", "observation"})


def _lists_beside(columns: Columns) -> list[str]:
    """Return the lists that hold the parts of steps beside each other, joined by ``+``; empty without the tools."""
    found: dict[str, str] = {}
    for path, values in columns.values.items():
        part = part_of_steps(path)
        if part and part not in found and all(isinstance(value, list) for value in values):
            are_names = all(isinstance(name, str) for value in values for name in value)
            if part != "tool" or are_names:
                found[part] = path
    tools, arguments = found.get("tool"), found.get("arguments")
    if not tools or not arguments:
        return []
    lengths = [(value_at(row, tools), value_at(row, arguments)) for row in columns.rows]
    if any(len(one or ()) != len(other or ()) for one, other in lengths):
        return []
    return [" + ".join(found.values())]


def _are_nested(first: str, second: str) -> bool:
    return first.startswith(f"{second}.") or second.startswith(f"{first}.")


def _calls_shown(tried: _Tried) -> str:
    first = next(trace for trace in tried.traces if trace and trace.calls)
    return " > ".join(call.tool for call in first.calls)


def _differ(first: _Tried, second: _Tried) -> bool:
    """True if two fields have other calls in a row, rather than one of them a part of those of the other."""
    for one, other in zip(first.traces, second.traces, strict=False):
        if one and other and one.calls and other.calls:
            short, long = sorted(
                ([call.tool for call in each.calls] for each in (one, other)), key=len
            )
            rest = iter(long)
            if not all(tool in rest for tool in short):
                return True
    return False


def _are_tools(path: str, values: list[Any]) -> bool:
    if _last_words(path) & _CALLED:
        return False
    return all(
        isinstance(value, dict | list | str) and len(value) > 0 and _name_tools(value)
        for value in values
    )


def names_in(text: str) -> list[str]:
    """Return the names in a text, parted by commas or semicolons."""
    return [name.strip() for name in re.split(r"[,;、，；|\n]", text) if name.strip()]


_NAME_OF_TOOL = re.compile(r"[^\W\d][\w.\- &]{1,59}")


def _name_tools(value: Any) -> bool:
    if isinstance(value, str):
        names = names_in(value)
        return bool(names) and all(_NAME_OF_TOOL.fullmatch(name) for name in names)
    if isinstance(value, list):
        return all(isinstance(each, str) or _is_tool(each) for each in value)
    return bool(list(schemas_in(value)))


def _is_tool(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value_at(value, "name|function.name|tool"), str)


def _are_schemas(values: list[Any]) -> bool:
    return all(
        isinstance(value, list | dict) and any(True for _ in schemas_in(value)) for value in values
    )


# --- questions --------------------------------------------------------------------------------------------------------


def _questions(
    columns: Columns,
    names: str,
    is_free: Callable[[str], bool],
    traces: Mapping[str, _Tried],
    calls: str,
) -> list[str]:
    """Return the fields of the question: by name, else the trace that begins with it, else the texts that ask."""

    def fits(path: str, values: list[Any]) -> bool:
        return is_free(path) and all(text_of(value).strip() for value in values)

    named = columns.named(names, fits) or _in_one_language(columns, names, fits)
    # A text that all rows share is an instruction; where it is the only one, it is the question all the same.
    named.sort(key=lambda path: _is_shared(columns.values[path]))
    if named and not (
        _is_shared(columns.values[named[0]]) and _begins_with_question(traces, calls)
    ):
        return named
    if _begins_with_question(traces, calls):
        return [*calls.split("|"), *named]
    dialogs = [
        path for path, values in columns.values.items() if is_free(path) and _are_dialogs(values)
    ]
    if dialogs or named:
        return [*named, *dialogs]
    asking = {
        path: sum(text.strip().endswith("?") for text in values)
        for path, values in columns.values.items()
        if is_free(path) and _are_texts(values) and _mean_words(values) >= _WORDS_ASKED
    }
    best = max(asking, key=lambda path: asking[path], default=None)
    return [best] if best and asking[best] else []


_LANGUAGE = re.compile(r"_(?:(en|eng|english)|zh|cn|chn|chinese)$")
"""End of the name of a field that is there in two languages: ``question_en``."""


def _in_one_language(
    columns: Columns, names: str, fits: Callable[[str, list[Any]], bool]
) -> list[str]:
    """Return the fields of a question that is there in two languages, that in the language of the answers first."""
    wanted = {snake(each) for each in names.split("|")}
    found = {
        path: bool(at[1])
        for path, values in columns.values.items()
        if (at := _LANGUAGE.search(snake(path)))
        and {snake(path)[: at.start()], snake(path)[: at.start()].rpartition(".")[2]} & wanted
        and fits(path, values)
    }
    is_english = not _answers_are_chinese(columns)
    ordered = sorted(found, key=lambda path: found[path] is not is_english)
    number = len(columns.rows)
    return ordered[:1] if ordered and len(columns.values[ordered[0]]) == number else ordered


def _answers_are_chinese(columns: Columns) -> bool:
    """True if the answers are in Chinese, and no field has them in English."""
    fields = [
        path
        for path in columns.values
        if answer_class(path) < len(_CLASSES) and not _last_words(path) & _NO_ANSWER
    ]
    ends = [_LANGUAGE.search(snake(path)) for path in fields]
    if any(end and end[1] for end in ends):
        return False
    texts = [each for path in fields for each in columns.values[path] if isinstance(each, str)]
    return 2 * sum(bool(re.search(f"[{CJK}]", text)) for text in texts) > len(texts)


def _begins_with_question(traces: Mapping[str, _Tried], calls: str) -> bool:
    tried = [trace for path in calls.split("|") if path in traces for trace in traces[path].traces]
    return any(trace and trace.question for trace in tried)


def _is_shared(values: Sequence[Any]) -> bool:
    texts = {value if isinstance(value, str) else text_of(value) for value in values}
    return len(values) > 1 and len(texts) == 1 and "" not in texts


def _are_dialogs(values: Sequence[Any]) -> bool:
    return all(isinstance(value, list) and _first_user(value) for value in values)


def _first_user(messages: Any) -> str:
    """Return the first words of the user in a list of messages."""
    return text_of(
        value_at(messages, "user.content|human.value|user.value|human.content|user.parts|user.text")
    )


def _are_texts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _mean_words(values: Sequence[str]) -> float:
    return sum(len(value.split()) for value in values) / len(values)


_CALL_KEYS = {"tool", "tool_name", "name", "action", "function", "api_name"}
_ARGUMENT_KEYS = {
    "arguments",
    "args",
    "tool_args",
    "tool_input",
    "action_input",
    "parameters",
    "observation",
}


def asks(row: Any, names: str) -> bool:
    """True if an object has a question: in a field with one of the ``names``, or in the words of a user."""
    if not isinstance(row, dict):
        return False
    if _CALL_KEYS & {*row} and _ARGUMENT_KEYS & {*row}:  # a call may ask a tool something
        return False
    columns = Columns([row])
    if text_of(value_at(row, names)).strip():
        return True
    if columns.named(names, lambda _, values: bool(text_of(values[0]).strip())):
        return True
    return any(
        (isinstance(value, list) and _first_user(value))
        or (
            isinstance(value, str)
            and bool(re.search(r"^\W*(Action|Tool)\s*\d*:", value, re.MULTILINE))
        )
        for values in columns.values.values()
        for value in values
    )


def question_in(row: Row, names: str) -> str:
    """Return the question in a field with one of the ``names``; empty if there is none."""
    paths = Columns([row]).named(names, lambda _, values: bool(text_of(values[0]).strip()))
    return plain_question(text_of(value_at(row, paths[0]))) if paths else ""


def key_in(row: Any, names: str) -> str | None:
    """Return the id of a row, in a field with one of the ``names``; None if it has none."""
    columns = Columns([row]) if isinstance(row, dict) else None
    paths = columns.named(names, lambda _, values: _is_key(values[0])) if columns else []
    return str(value_at(row, paths[0])) if paths else None


def _is_key(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _are_ids(values: Sequence[Any], number: int) -> bool:
    return len(values) == number == len({str(value) for value in values}) and all(
        map(_is_key, values)
    )


# --- tasks, answers ---------------------------------------------------------------------------------------------------


@cache
def _stemmer() -> Any:
    return snowballstemmer.stemmer("english")


@cache
def task_of(word: str, table: tuple[tuple[str, str], ...]) -> str:
    """Return our name of a task or family, also by the stems of its words (``tree_count``); else the word.

    Two groups call one task an analysis, an interpretation or a detection, so these words may differ.
    """
    known = dict(table)
    found = translated(word, known)
    if found in known.values():
        return found
    for left_out in (frozenset[str](), _ON_METHOD):
        stems = {" ".join(_stems(name, left_out)): ours for name, ours in known.items()}
        stems.pop("", None)  # names without Latin letters
        found = translated(" ".join(_stems(word, left_out)), stems)
        if found in known.values():
            return found
    return word


_ON_METHOD = frozenset("analysis interpretation detection estimation measurement".split())
"""Words of names of tasks on what is done, which do not tell one task from another."""


def _stems(name: str, left_out: Collection[str] = ()) -> list[str]:
    parted = snake(name).replace("_", " ").split()
    others = {"and", "task", "tasks", *left_out}
    return _stemmer().stemWords([word for word in parted if word not in others])


def task_table(fields: FieldMap) -> tuple[tuple[str, str], ...]:
    ids = {name: name for name in FAMILY_OF_TASK_TYPE}
    return tuple({**ids, **fields.task_types}.items())


def family_table(fields: FieldMap) -> tuple[tuple[str, str], ...]:
    return tuple({**{name: name for name in FAMILIES}, **fields.families}.items())


def _share_known(values: Sequence[Any], table: tuple[tuple[str, str], ...]) -> float:
    ours = {own for _, own in table}
    return sum(isinstance(value, str) and task_of(value, table) in ours for value in values) / len(
        values
    )


def _tasks(
    columns: Columns, fields: FieldMap, names: str, is_free: Callable[[str], bool]
) -> list[str]:
    """Return the field of the task: with values that are our tasks, else with a known name and no family in it."""
    tasks, families = task_table(fields), family_table(fields)
    shares = {
        path: _share_known(values, tasks)
        for path, values in columns.values.items()
        if (is_free(path) or path == GROUP)
        and _are_texts(values)
        and _mean_words(values) < 2 * _WORDS_ASKED
    }
    named = {*columns.named(names, lambda path, _: path in shares)}
    known = [
        path
        for path, share in shares.items()
        if (share >= _MOST or (share and path in named))
        and not _last_words(path) & _ON_ANSWER
        and not _words(path) & {"answer", "gt", "scoring"}
        and (
            share == 1
            or not all(kind_of(each, fields.answer_types) for each in columns.values[path])
        )
    ]
    known.sort(key=lambda path: (-shares[path], path not in named, path.count(".")))
    if known:
        return known[:1]

    def fits(path: str, values: list[Any]) -> bool:
        is_kind = all(kind_of(value, fields.answer_types) for value in values)
        return (
            is_free(path)
            and _are_texts(values)
            and not is_kind
            and not _share_known(values, families)
        )

    return columns.named(names, fits)[:1]


_ON_ANSWER = {*"answer gold gt eval match metric scoring".split()}
"""Words of names of fields on how an answer is scored; a type of answer may be called as a task, ``plot``."""
_MOST = 0.5
"""Share of values that are our tasks in a field without the name of one."""


def _families(
    columns: Columns, fields: FieldMap, names: str, is_free: Callable[[str], bool], task: str
) -> list[str]:
    table = family_table(fields)
    found = [
        path
        for path, values in columns.values.items()
        if path != task
        and (is_free(path) or path == GROUP)
        and _are_texts(values)
        and _share_known(values, table)
    ]
    named = columns.named(
        names, lambda path, values: is_free(path) and path != task and _are_texts(values)
    )
    return (found or named)[:1]


def _kinds(columns: Columns, fields: FieldMap, is_free: Callable[[str], bool]) -> list[str]:
    """Return the fields of the answer type: with a name that says so, or a name of a type and values that are types."""
    stated: list[str] = []
    for path, values in columns.values.items():
        words = _last_words(path)
        if not is_free(path) or not _are_texts(values) or not words & _TYPE_WORDS:
            continue
        is_named = bool(words & {"answer", "gold", "gt", "match", "scoring", "evaluation", "eval"})
        known = (kind_of(value, fields.answer_types) or _is_text_word(value) for value in values)
        shares = sum(map(bool, known))
        if shares == len(values) or (is_named and shares):
            stated.append(path)
    return sorted(
        stated, key=lambda path: (not _last_words(path) & {"answer", "gold", "gt"}, path.count("."))
    )


def _is_text_word(value: str) -> bool:
    return value.strip().lower() in UNDECIDED


def _answers(columns: Columns, names: str, is_free: Callable[[str], bool]) -> list[str]:
    """Return the fields that may be the right answer, the likeliest first."""
    wanted = [snake(each) for each in names.split("|")]
    ranked: list[tuple[int, bool, int, int, str]] = []
    for path, values in columns.values.items():
        words = _last_words(path)
        is_apart = not is_free(path) or is_tolerance_name(path) or all(map(_is_talk, values))
        is_apart = is_apart or snake(path.rpartition(".")[2]) in ANSWER_ITEMS.split("|")
        is_number = words & _NUMBER and words & (_STATED_RIGHT | _EXPECTED)
        if (
            is_apart
            or words & _NO_ANSWER
            or (words & _NUMBER and not is_number)
            or _words(path) & _MODELS_OWN
        ):
            continue
        place = wanted.index(snake(path)) if snake(path) in wanted else len(wanted)
        place_of_class = answer_class(path)
        if place < len(wanted) or place_of_class < len(_CLASSES):
            is_said = not words & _SHORT_FORM and all(map(_is_said, values))
            ranked.append((place_of_class, is_said, path.count("."), place, path))
    found = _without_annotators([path for *_, path in sorted(ranked)], columns.rows)
    # What is inside an answer is read with it.
    return [path for path in found if not any(path.startswith(f"{outer}.") for outer in found)]


_SHORT_FORM = {"value", "values", "short", "normalized", "normalised"}
"""Words of names of answers beside which the others are the same in a sentence: ``answer_value``."""


def _is_said(value: Any) -> bool:
    return isinstance(value, str) and is_sentence(value)


def _without_annotators(paths: list[str], rows: Sequence[Row]) -> list[str]:
    """Return the fields of answers without those of single people, where a field has what they agreed on."""
    agreed = [path for path in paths if _last_words(path) & _AGREED and not _is_of_one(path)]
    if not agreed:
        return paths
    numbered = [path for path in paths if _NUMBERED.search(path)]
    are_of_people = _share_one(rows, agreed[0], numbered) >= _MOST
    return [
        path for path in paths if not _is_of_one(path) and not (are_of_people and path in numbered)
    ]


def _is_of_one(path: str) -> bool:
    """True for the name of the answer of one of several people: ``answer_annotator2``."""
    return bool(_last_words(path) & _ANNOTATORS)


_NUMBERED = re.compile(r"\d$")


def _share_one(rows: Sequence[Row], agreed: str, others: Sequence[str]) -> float:
    """Return the share of rows in which one of the other fields has the value of the field ``agreed``."""
    same = [
        any(str(value_at(row, path)).casefold() == str(value).casefold() for path in others)
        for row in rows
        if (value := value_at(row, agreed)) is not None
    ]
    return sum(same) / len(same) if same else 0.0


_ANNOTATORS = {
    *"annotator annotators rater raters reviewer reviewers expert experts worker labeler coder".split()
}
_AGREED = {*"final consensus majority adjudicated agreed gold gt truth".split()}


_CLASSES = (_STATED_RIGHT, _EXPECTED, _ANSWERED)


def answer_class(path: str) -> int:
    """Return how plainly a name says that a field is the right answer: 0 for ``gt_answer``, 2 for ``answer``."""
    words = _last_words(path)
    return next((at for at, names in enumerate(_CLASSES) if words & names), len(_CLASSES))


def _is_talk(value: Any) -> bool:
    """True for messages, and for objects that hold them or calls."""
    if isinstance(value, list):
        return bool(value) and all(
            isinstance(each, dict) and {*each} & {"role", "from", "tool", "tool_calls"}
            for each in value
        )
    return isinstance(value, dict) and any(_is_talk(inner) for inner in value.values())


def _chosen_answer(columns: Columns, candidates: list[str], asker: "Asker") -> list[str]:
    """Return the fields of the answer; a question where two that are named alike have other short values."""
    first = next(iter(candidates), None)
    if first is None:
        return []
    rivals = [
        path
        for path in candidates[1:]
        if answer_class(path) == answer_class(first) and _other_values(columns.rows, first, path)
    ]
    if rivals or "answer" in asker.given:
        named = [path for path in (asker.given.get("answer"),) if path in columns.values]
        listed = dict.fromkeys([first, *rivals, *named])
        choices = [Choice(path, _example(columns.values[path])) for path in listed]
        return [asker.choose("answer", "the right answer is in the field:", choices)]
    return candidates


def _example(values: Sequence[Any]) -> str:
    return f"e.g. {str(values[0])[:40]}"


_SHORT = 8
"""Longest text, in words, that may be another answer rather than a sentence with the answer."""


def _other_values(rows: Sequence[Row], first: str, second: str) -> bool:
    """True if two fields of a row have other short values."""
    for row in rows:
        one, other = value_at(row, first), value_at(row, second)
        if one is None or other is None:
            continue
        one, other = _short(one), _short(other)
        if one is None or other is None:
            continue
        numbers = _only_number(one), _only_number(other)
        if is_sentence(one) is not is_sentence(other) and None in numbers:
            continue  # the same, said
        is_same = (
            numbers[0] == numbers[1] if None not in numbers else one.casefold() == other.casefold()
        )
        if (
            not is_same
            and one.casefold() not in other.casefold()
            and other.casefold() not in one.casefold()
        ):
            return True
    return False


def _only_number(text: str) -> float | None:
    """Return the only number in a text; None if it has none or several."""
    numbers = {number_in(each) for each in re.findall(r"-?\d[\d,]*(?:\.\d+)?", text)}
    return numbers.pop() if len(numbers) == 1 else None


def _short(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value_at(value, "value|answer|text")
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    return text if 0 < len(text.split()) <= _SHORT else None


# --- pictures ---------------------------------------------------------------------------------------------------------

_FILE_NAME = re.compile(r"(?:^|_)file_?names?$|(?:^|_)(?:image|img|file|photo|picture)_?paths?$")


def _pictures(
    columns: Columns, names: str, is_free: Callable[[str], bool], used: set[str]
) -> list[str]:
    """Return the fields of pictures, in the order of the row."""
    wanted = {snake(each.strip()) for each in re.split(r"[|+]", names)}
    found: list[str] = []
    for path, values in columns.values.items():
        name = snake(path.rpartition(".")[2])
        is_named = snake(path) in wanted or name in wanted or bool(_FILE_NAME.search(name))
        inside = any(path.startswith(f"{outer}.") for outer in found)
        if not is_free(path) or inside or path in used or _words(path) & _NO_INPUT:
            continue
        if all(pictures_in(value, is_named=is_named) or value in ([], {}) for value in values):
            found.append(path)
    return found


def chart_in(row: Row) -> Any:
    """Return the chart that a field of a row describes, to be drawn; None if none does."""
    for name, value in row.items():
        if (
            _words(name) & {"plot", "chart", "figure"}
            and isinstance(value, dict)
            and chart_of(value)
        ):
            return value
    return None
