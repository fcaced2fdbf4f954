"""Tools that the files of a benchmark declare, without a function: their schemas, and the calls that run for theirs."""

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, cast

from pydantic import ValidationError

from agrotools.core import AgreementKind, Arguments, DeclaredTool, PlotSpec, ToolCall, ToolError
from agrotools.text.loose_json import is_list, is_object, parsed
from agrotools.tools.contract import Tool

_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
"""JSON type of an input by its type in GTA's list of tools; other inputs are texts."""
_FACTS = ("description", "default")
Schema = dict[str, Any]


class ToolWithoutFunction(Tool[..., Any]):
    """Tool whose calls are compared and checked by its schema, and are run by nothing."""

    def __init__(self, spec: DeclaredTool) -> None:
        self.name, self.spec, self.resolver = spec.name, spec, None
        self.backends, self.declared_files, self.backend_files = ("recorded",), (), None

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
    """Return all tools that files list or call, by name; one without a schema takes the arguments of its calls."""
    found: dict[str, tuple[str, Schema]] = {}
    for value in listed:
        for name, description, schema in _schemas(parsed(value)):
            found.setdefault(name, (description, schema))
    for name, arguments in calls:
        _, schema = found.setdefault(name, ("", {"type": "object", "properties": {}}))
        schema["properties"] = {**{argument: {} for argument in arguments}, **schema["properties"]}
    tools: dict[str, DeclaredTool] = {}
    for name, (description, schema) in found.items():
        inputs, ours = cast("dict[str, Schema]", schema["properties"]), of_name(name, runs) or ""
        types = {each: given.get("type") for each, given in inputs.items() if "enum" not in given}
        rules = {
            each: of_name(each, agreement)
            for each in inputs
            if types.get(each, "") in (None, "string")
        }
        numbers = {each for each, kind in types.items() if kind in ("integer", "number")}
        tools[name] = DeclaredTool(
            name=re.sub(r"[^A-Za-z0-9_-]+", "_", name),
            category="published",
            version="1",
            description=description,
            parameters=schema,
            agreement={
                each: rules.get(each) or ("number" if each in numbers else "choice")
                for each in inputs
            },
            defaults={
                each: given["default"] for each, given in inputs.items() if "default" in given
            },
            runs=ours,
            renamed={theirs: own for theirs, own in renamed.get(ours, {}).items() if own},
        )
    return tools


def _schemas(value: Any) -> Iterator[tuple[str, str, Schema]]:
    """Yield name, description and schema of each tool in a value: as functions of OpenAI, MCP, or GTA declare them."""
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
            types = {
                each["name"]: {"type": _TYPES.get(str(each.get("type")), "string")}
                for each in inputs
            }
            facts = {
                each["name"]: {key: each[key] for key in _FACTS if each.get(key) is not None}
                for each in inputs
            }
            schema = {
                "type": "object",
                "properties": {name: types[name] | facts[name] for name in types},
            }
            schema["required"] = [each["name"] for each in inputs if not each.get("optional")]
        if isinstance(schema, dict) and isinstance(schema.setdefault("properties", {}), dict):
            yield tool["name"].strip(), str(tool.get("description") or ""), schema


def of_name(name: str, table: Mapping[str, Any]) -> Any:
    """Return the value of a table with a name, else of the first pattern in it that the name has."""
    patterns = (
        value for pattern, value in table.items() if fnmatchcase(name.lower(), pattern.lower())
    )
    return table[name] if name in table else next(patterns, None)


_KIND = ("kind", "chart_type", "chart", "plot_type", "type")
_DATA = ("series", "y", "data", "values")


def chart_of(given: Mapping[str, Any]) -> PlotSpec | None:
    """Return the chart that an object describes by our series, a table of columns, or categories; None if by none."""
    kind = next((given[name] for name in _KIND if isinstance(given.get(name), str)), "")
    kind = kind.removesuffix(" chart").strip().lower()
    more = {name: given[name] for name in PlotSpec.model_fields if given.get(name) is not None}
    try:
        series = _series(
            next((given[name] for name in _DATA if given.get(name)), None), given.get("x")
        )
        kind = "grouped_bar" if kind == "bar" and len(series) > 1 else kind
        return PlotSpec.model_validate({**more, "kind": kind, "series": series})
    except (ValidationError, TypeError):
        return None


def _series(data: Any, x: Any) -> list[Schema]:
    if is_list(data) and not all(is_object(each) for each in data):
        data = {"": data}
    if is_object(data) and not any(is_list(value) for value in data.values()):
        return [{"name": "", "x": [*data], "y": [*data.values()]}]
    if is_object(data):
        columns = [*data.items()]
        if x is None and len(columns) > 1:  # the first column of a table
            x, columns = columns[0][1], columns[1:]
        data = [{"name": name, "y": y} for name, y in columns]
    rows = data if is_list(data) else []
    return [
        {"name": "", "x": x or [*range(1, len(each.get("y") or ()) + 1)], **each} for each in rows
    ]
