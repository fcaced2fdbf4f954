"""Tools that the files of a benchmark declare, without a function: their schemas, and the calls that run for theirs."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any, cast

from pydantic import ValidationError

from agrotools.calling.contract import Tool
from agrotools.core import AgreementKind, Arguments, DeclaredTool, PlotSpec, ToolCall, ToolError
from agrotools.text.json_kinds import is_list, is_number, is_object
from agrotools.text.loose_json import parsed

_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
"""JSON type of an input by its type in GTA's list of tools; other inputs are texts."""
_FACTS = ("description", "default")
Schema = dict[str, Any]


class ToolWithoutFunction(Tool[..., Any]):
    """Tool whose calls are compared and checked by its schema, and are run by nothing."""

    def __init__(self, spec: DeclaredTool) -> None:
        self.name = spec.name
        self.spec = spec
        self.resolver = None
        self.backends = ("recorded",)
        self.declared_files = ()
        self.backend_files = None
        self.expert = spec.expert
        self.example = {}
        self.unusable = None
        self.nameable = None
        self.declared_libraries = ()

    def read(self, arguments: Arguments) -> Arguments:
        return arguments

    def validate(self, arguments: Arguments) -> Arguments:
        """Return the arguments; ToolError if one is unknown or missing."""
        known, required = (
            cast(Any, self.spec.parameters.get(key, [])) for key in ("properties", "required")
        )
        faults = [f"{name} is unknown" for name in arguments if name not in known]
        if faults := [
            *faults,
            *(f"{name} is missing" for name in required if name not in arguments),
        ]:
            raise ToolError("invalid_argument", "; ".join(faults))
        return arguments


def installed_call(tool: DeclaredTool, call: ToolCall) -> ToolCall:
    """Return the call of the installed tool that runs a call of ``tool``; ToolError if its schema refuses it."""
    given = ToolWithoutFunction(tool).validate(call.arguments)
    arguments = {tool.renamed.get(name, name): value for name, value in given.items()}
    if tool.runs == "plot" and (chart := chart_of(arguments)):
        arguments = chart.model_dump(mode="json", exclude={"legend"}, exclude_none=True)
    return call.model_copy(update={"tool": tool.runs, "arguments": arguments})


def declared_tools(
    listed: Iterable[Any],
    calls: Iterable[tuple[str, Arguments]],
    runs: Mapping[str, str],
    renamed: Mapping[str, Mapping[str, str]],
    agreement: Mapping[str, AgreementKind],
) -> dict[str, DeclaredTool]:
    """Return all tools that files list or call, by name; one without a schema takes the arguments of its calls.

    Args:
        listed: lists of tools in the files.
        calls: names and arguments of the calls in the files.
        runs: installed tools that run instead of those of the files, by name or pattern.
        renamed: arguments of each installed tool by the names that the files give them.
        agreement: how values of an argument are compared, by name or pattern.
    """
    tools: dict[str, DeclaredTool] = {}
    for name, (description, schema) in _found_tools(listed, calls).items():
        inputs = cast("dict[str, Schema]", schema["properties"])
        installed = of_name(name, runs) or ""
        callable_name = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
        if not re.search(r"[A-Za-z0-9]", callable_name):
            # A name in another script, in which models can call none.
            callable_name = f"tool_{len(tools) + 1}"
            description = f"{name}. {description}".strip()
        tools[name] = DeclaredTool(
            name=callable_name,
            category="published",
            version="1",
            description=description,
            parameters=schema,
            agreement={each: _agreement_of(each, inputs[each], agreement) for each in inputs},
            defaults={
                each: given["default"] for each, given in inputs.items() if "default" in given
            },
            runs=installed,
            renamed={theirs: own for theirs, own in renamed.get(installed, {}).items() if own},
        )
    return tools


def _found_tools(
    listed: Iterable[Any], calls: Iterable[tuple[str, Arguments]]
) -> dict[str, tuple[str, Schema]]:
    """Return description and schema of each tool, with the arguments of its calls among its inputs."""
    found: dict[str, tuple[str, Schema]] = {}
    for value in listed:
        for name, description, schema in schemas_in(parsed(value)):
            found.setdefault(name, (description, schema))
    for name, arguments in calls:
        if name not in found:
            found[name] = ("", {"type": "object", "properties": {}})
        _, schema = found[name]
        of_calls = {argument: {} for argument in arguments}
        schema["properties"] = {**of_calls, **schema["properties"]}
    return found


def _agreement_of(
    name: str, schema: Schema, agreement: Mapping[str, AgreementKind]
) -> AgreementKind:
    """Return how values of an input are compared: a text by the rule for its name, a number as one."""
    if "enum" in schema:
        return "choice"
    kind = schema.get("type")
    if kind in (None, "string"):
        return of_name(name, agreement) or "choice"
    return "number" if kind in ("integer", "number") else "choice"


def schemas_in(value: Any) -> Iterator[tuple[str, str, Schema]]:
    """Yield name, description and schema of each tool in a value: as functions of OpenAI, MCP, or GTA declare them.

    A tool may also list its arguments by name: ``{"image": "path of the image"}``.
    """
    if is_object(value) and not {"name", "function"} & {*value}:
        value = [{"name": name, **tool} for name, tool in value.items() if is_object(tool)]
    for item in value if is_list(value) else [value]:
        tool: Any = item.get("function", item) if isinstance(item, dict) else None
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            continue
        schema: Any = next(
            (tool[key] for key in ("parameters", "input_schema", "inputSchema") if key in tool),
            None,
        )
        if isinstance(inputs := tool.get("inputs"), list):
            schema = _of_inputs(inputs)
        if isinstance(schema, dict) and "properties" not in schema:
            schema = {"type": "object", "properties": _described(schema)}
        if isinstance(schema, dict) and isinstance(schema["properties"], dict):
            plain = {**without_nulls(schema), "properties": _only_schemas(schema["properties"])}
            yield tool["name"].strip(), str(tool.get("description") or ""), plain


def _of_inputs(inputs: list[Any]) -> Schema:
    """Return the schema of inputs as GTA lists them."""
    named = [each for each in inputs if is_object(each) and isinstance(each.get("name"), str)]
    properties: Schema = {}
    for each in named:
        facts = {key: each[key] for key in _FACTS if each.get(key) is not None}
        properties[each["name"]] = {"type": _TYPES.get(str(each.get("type")), "string"), **facts}
    required = [each["name"] for each in named if not each.get("optional")]
    return {"type": "object", "properties": properties, "required": required}


def _only_schemas(properties: Schema) -> Schema:
    return {
        str(name): without_nulls(about) if is_object(about) else {}
        for name, about in properties.items()
    }


def without_nulls(value: Any) -> Any:
    """Return a value without the nulls of its objects, which a header in TOML cannot hold."""
    if is_object(value):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if is_list(value):
        return [without_nulls(each) for each in value if each is not None]
    return value


def _described(arguments: Schema) -> Schema:
    """Return the schemas of arguments that are listed by name, with a type, a description, or a schema."""
    described: Schema = {}
    for name, about in arguments.items():
        if isinstance(about, dict):
            kind = _TYPES.get(str(about.get("type")), about.get("type", "string"))
            described[name] = {**about, "type": kind}
        elif name not in ("type", "required"):
            kind = _TYPES.get(str(about), "")
            described[name] = {"type": kind} if kind else {"description": str(about)}
    return described


def of_name(name: str, table: Mapping[str, Any]) -> Any:
    """Return the value of a table with a name, else of the first pattern in it that the name has."""
    patterns = (
        value for pattern, value in table.items() if fnmatchcase(name.lower(), pattern.lower())
    )
    return table[name] if name in table else next(patterns, None)


_KIND = (
    "kind",
    "chart_type",
    "plot_type",
    "graph_type",
    "figure_type",
    "chart",
    "plot",
    "mark",
    "type",
)
_DATA = (
    "series",
    "y",
    "datasets",
    "data",
    "values",
    "y_values",
    "y_data",
    "heights",
    "counts",
    "points",
    "bars",
    "ys",
)
_X = ("x", "labels", "categories", "x_values", "x_data", "names", "bands", "index", "xs")
_INNER = ("spec", "data", "chart", "plot", "figure", "value", "params")
"""Keys of an object that may hold the chart, or its data."""
_KINDS = {
    **{"column": "bar", "barh": "bar", "curve": "line", "timeseries": "line", "trend": "line"},
    **{
        "histogram": "hist",
        "boxplot": "box",
        "heat_map": "heatmap",
        "bars": "bar",
        "lines": "line",
    },
}
"""Our kind of chart by other names of it."""
_LABELS = {
    **{
        "x_label": ("xlabel", "x_axis", "xaxis", "x_title"),
        "y_label": ("ylabel", "y_axis", "yaxis", "y_title"),
    },
    **{
        "title": ("chart_title", "plot_title", "name"),
        "x_unit": (),
        "y_unit": ("unit",),
        "legend": (),
    },
}
"""Other names of the words of a chart."""
_NAME = ("name", "label", "series", "legend")
_Y = ("y", "values", "data", "y_values", "value", "counts")


def chart_of(given: Mapping[str, Any]) -> PlotSpec | None:
    """Return the chart that an object describes by our series, columns, rows, or categories; None if by none."""
    told = next((given[name] for name in _KIND if isinstance(given.get(name), str)), "")
    objects = (given.get(name) for name in _INNER)
    inner: Schema = next((value for value in objects if isinstance(value, dict)), {})
    told = told or next((inner[name] for name in _KIND if isinstance(inner.get(name), str)), "")
    data: Any = given.get("data")
    if not told and is_list(data):  # traces of Plotly
        kinds = (each.get("type") for each in data if is_object(each))
        told = next((kind for kind in kinds if isinstance(kind, str)), "")
    more = _words_of_chart({**inner, **given})
    series = _first_series(given) or _first_series(inner)
    kind = _plain_kind(told)
    try:
        kind = "grouped_bar" if kind == "bar" and len(series) > 1 else kind
        return PlotSpec.model_validate({**more, "kind": kind, "series": series})
    except (ValidationError, TypeError):
        return None


def _plain_kind(told: str) -> str:
    words = re.sub(r"(chart|plot|graph|_|-|\s)+$", "", told.strip().lower().replace(" ", "_"))
    return _KINDS.get(words, words)


def _words_of_chart(given: Mapping[str, Any]) -> Schema:
    """Return title, labels and units under our names."""
    words: Schema = {}
    for name, others in _LABELS.items():
        found = next((given[key] for key in (name, *others) if given.get(key) is not None), None)
        if isinstance(found, str | bool):
            words[name] = found
    return words


def _first_series(given: Mapping[str, Any]) -> list[Schema]:
    x = next((given[name] for name in _X if is_list(given.get(name))), None)
    for name in _DATA:
        if given.get(name):
            with suppress(TypeError, ValueError):
                if found := _series(given[name], x):
                    return found
    return []


def _series(data: Any, x: Any) -> list[Schema]:
    """Return the series of lists of numbers, of objects that are series or points, or of a table of columns."""
    if is_list(data):
        return _of_list(data, x)
    if not is_object(data):
        return []
    if data and all(is_number(value) for value in data.values()):
        return [{"name": "", "x": [*data], "y": [*data.values()]}]
    return _of_columns(data, x)


def _of_list(data: list[Any], x: Any) -> list[Schema]:
    """Return the series of a list: of series, of points with names or as pairs, or of numbers."""
    if data and all(is_object(each) for each in data):
        are_series = all(any(is_list(each.get(key)) for key in _Y) for each in data)
        return [_one_series(each, x) for each in data] if are_series else _of_points(data)
    if data and all(is_list(each) and len(each) == 2 for each in data):
        return _of_columns({"x": [first for first, _ in data], "y": [y for _, y in data]}, x)
    return _of_columns({"": data}, x)


def _of_columns(table: Mapping[str, Any], x: Any) -> list[Schema]:
    """Return the series of a table: each column of numbers. Without ``x``, it is a column of the table."""
    columns = {name: value for name, value in table.items() if is_list(value)}
    if x is None:
        own = next((name for name in _X if name in columns), None)
        if not own and len(columns) > 1:
            own = next(iter(columns))  # the first column of a table
        x = columns.pop(own) if own else None
    return [
        {"name": "" if name in _Y else name, "x": x or [*range(1, len(y) + 1)], "y": y}
        for name, y in columns.items()
        if all(map(is_number, y))
    ]


def _one_series(given: Mapping[str, Any], x: Any) -> Schema:
    y = next(given[name] for name in _Y if is_list(given.get(name)))
    own = next((given[name] for name in _X if is_list(given.get(name))), None)
    name = next((given[key] for key in _NAME if isinstance(given.get(key), str)), "")
    return {"name": name, "x": own or x or [*range(1, len(y) + 1)], "y": y}


def _of_points(rows: list[Schema]) -> list[Schema]:
    """Return the series of rows with a value each: the first field is x, and each other field of numbers is one."""
    names = [name for name in rows[0] if all(name in row for row in rows)]
    x = next((name for name in names if not all(is_number(row[name]) for row in rows)), None)
    x = x or next(iter(names), None)
    others = [name for name in names if name != x and all(is_number(row[name]) for row in rows)]
    points = [row[x] for row in rows] if x else []
    return [
        {"name": name if len(others) > 1 else "", "x": points, "y": [row[name] for row in rows]}
        for name in others
    ]
