"""Binding: a TOML file that makes our tools of the calls of a tool server.

A table of the file is one of our tools. ``when`` says which of our calls it can answer, ``calls`` which calls of the
server these become, ``result`` where the fields of our result are, ``refuses`` how the server says that it cannot. A
table without ``calls`` is one call of the served tool of the same name, with the same arguments, whose result is taken
whole. ``server`` is the address, if the command line gives none.

Whoever reads a binding gets every fault of it at once, before any call.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast, get_args

from pydantic import BaseModel, Field, JsonValue, ValidationError

from agrotools.calling.contract import Tool
from agrotools.core import FrozenModel, ToolError, UsageError
from agrotools.core.files import read_toml, sha256_of_file
from agrotools.core.texts import suggestion
from agrotools.served.expressions import NoValue, is_true, names_in, value_of
from agrotools.served.session import Listing, ServedTool
from agrotools.text.expression_functions import ExpressionError

_WHOLE = re.compile(r"\{([^{}]*)\}")
_FOLDER = "files"
"""Placeholder for the folder of the sample's files, in arguments as in a command."""


BINDING_FAULT = "the binding does not fit"
"""Beginning of errors of a call that come from the binding: the server did not refuse, or was never asked."""


class BoundCall(FrozenModel):
    """One call of the server: its tool, its arguments with placeholders, and what later calls use of its result."""

    tool: str
    arguments: dict[str, JsonValue] = {}
    keep: dict[str, str] = {}
    """Expressions over the result, by the name that later placeholders use."""


class Refusal(FrozenModel):
    """Condition on a result by which the server says that it cannot answer, and where it says why: expressions."""

    when: str
    message: str = ""


class BoundTool(FrozenModel):
    """One of our tools, made of calls of a server."""

    name: str
    when: dict[str, bool | tuple[JsonValue, ...]] = {}
    """Values of our arguments that it is made for; ``true``: any but none, ``false``: none."""
    calls: tuple[BoundCall, ...] = ()
    result: dict[str, JsonValue] = {}
    """Fields of our result: texts are expressions over the last result, over what was kept, and over what placeholders
    may use."""
    refuses: Refusal | None = None

    @property
    def is_whole(self) -> bool:
        """True if our tool is the served tool of the same name."""
        return not self.calls

    def passed_over(self, arguments: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
        """Return the arguments of a call that the binding neither uses nor names in ``when``: the server never sees
        them, so that a region would be measured as the whole picture."""
        if self.is_whole:
            return []
        used = {*self.when}
        for call in self.calls:
            for placeholder in _placeholders(call.arguments):
                used |= _names(placeholder)
        return [name for name in given_arguments(arguments, defaults) if name not in used]

    def unfit(self, arguments: Mapping[str, Any]) -> ToolError | None:
        """Return why this tool is not made for a call with these arguments; None if it is."""
        for name, allowed in self.when.items():
            value = arguments.get(name)
            if isinstance(allowed, tuple):
                is_fit, words = value in allowed, " or ".join(map(str, allowed))
            else:
                is_fit, words = (value is not None) is allowed, "given" if allowed else "left out"
            if not is_fit:
                return ToolError(
                    "invalid_argument",
                    f"{self.name} is not made for {name} = {value!r} here",
                    argument=name,
                    hint=f"{name} may be {words}",
                )
        return None


class Binding(FrozenModel):
    """A binding file: the tools that it makes, and the address of the server if the file names it."""

    path: str
    server: str = ""
    tools: dict[str, BoundTool]
    hash: Annotated[str, Field(exclude=True)] = ""
    """SHA-256 of the file."""


def read_binding(file: Path, find_tool: Callable[[str], Tool[..., Any]]) -> Binding:
    """Return the binding in a file, checked against our own tools.

    Raises:
        UsageError: the file cannot be read, or a key, a tool, an argument or a field does not exist.
    """
    values = read_toml(file, "binding", hint="check the path of --binding")
    server = values.pop("server", "")
    faults: list[str] = []
    tools: dict[str, BoundTool] = {}
    if not isinstance(server, str):
        faults.append("server: should be an address")
    for name, table in values.items():
        try:
            tool = find_tool(name)
            bound = BoundTool.model_validate({**table, "name": name})
        except (UsageError, ValidationError, TypeError) as error:
            faults.append(f"[{name}]: {_words(error)}")
            continue
        faults += [f"[{name}] {fault}" for fault in _faults_of_ours(bound, tool)]
        tools[name] = bound
    if not tools and not faults:
        faults = ["it binds no tool"]
    _refuse(file, faults)
    return Binding(path=str(file), server=server, tools=tools, hash=sha256_of_file(file))


def check_against(
    binding: Binding, listing: Listing, find_tool: Callable[[str], Tool[..., Any]]
) -> None:
    """Check the calls of a binding against what a server lists.

    Raises:
        UsageError: a served tool, an argument or a field of a result does not exist; the hint says what does.
    """
    faults: list[str] = []
    for bound in binding.tools.values():
        spec = find_tool(bound.name).spec
        given = list(cast("dict[str, Any]", spec.parameters.get("properties", {})))
        calls = bound.calls or (
            BoundCall(tool=bound.name, arguments={name: f"{{{name}}}" for name in given}),
        )
        for number, call in enumerate(calls):
            place = f"[{bound.name}] calls[{number}]" if bound.calls else f"[{bound.name}]"
            served = listing.tool(call.tool)
            if served is None:
                names = [tool.name for tool in listing.tools]
                near = suggestion(call.tool, names)
                faults.append(f"{place}.tool: {listing.name} has no tool {call.tool!r} ({near})")
                continue
            faults += [f"{place}.{fault}" for fault in _faults_of_call(call, served, bound)]
            is_last = number == len(calls) - 1
            used = [*call.keep.values(), *(_expressions(bound.result) if is_last else ())]
            kept = {*given, *(name for each in calls for name in each.keep)}
            faults += [f"{place}: {fault}" for fault in _faults_of_result(used, served, kept)]
    _refuse(Path(binding.path), faults)


def _refuse(file: Path, faults: Sequence[str]) -> None:
    if faults:
        raise UsageError(
            f"binding {file}: {'; '.join(faults)}",
            hint="agrotools docs tool_servers explains bindings",
        )


def _words(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    faults: list[str] = []
    for each in error.errors():
        place = each["loc"]
        what = each["msg"]
        if each["type"] == "extra_forbidden":
            what = f"there is no such key ({suggestion(str(place[-1]), _keys_at(place))})"
        faults.append(f"{'.'.join(map(str, place))}: {what}")
    return "; ".join(faults)


def _keys_at(place: Sequence[int | str]) -> list[str]:
    """Return the keys that the table of a binding may have in which an unknown one stands."""
    tables: dict[object, type[FrozenModel]] = {"calls": BoundCall, "refuses": Refusal}
    table = tables.get(place[0], BoundTool) if len(place) > 1 else BoundTool
    return [key for key in table.model_fields if not (table is BoundTool and key == "name")]


def _faults_of_ours(bound: BoundTool, tool: Tool[..., Any]) -> list[str]:
    """Return what a binding says of our own tool that is not so: arguments, fields, and names of kept values."""
    ours: Any = tool.spec.parameters.get("properties", {})
    faults = [
        f"when.{name}: no argument ({suggestion(name, ours)})"
        for name in bound.when
        if name not in ours
    ]
    known = {*ours, _FOLDER}
    for number, call in enumerate(bound.calls):
        for used in _placeholders(call.arguments):
            faults += [
                f"calls[{number}].arguments: {{{used}}} uses {name!r}, which no argument and no earlier keep is"
                for name in _names(used) - known
            ]
        known |= call.keep.keys()
    if bound.is_whole and (bound.result or bound.refuses):
        faults.append("result and refuses need calls")
    if bound.calls and not bound.result:
        faults.append("result: no field is given")
    if bound.refuses is not None:
        refuses = {"when": bound.refuses.when, "message": bound.refuses.message}
        for name, expression in refuses.items():
            faults += _faults_of_expression(expression, f"refuses.{name}") if expression else []
    return [*faults, *_faults_of_fields(bound.result, tool.result_type, "result")]


def _faults_of_expression(expression: str, place: str) -> list[str]:
    try:
        names_in(expression)
    except UsageError as error:
        return [f"{place}: {error.message}"]
    return []


def _faults_of_fields(given: Mapping[str, Any], model: type[BaseModel], place: str) -> list[str]:
    faults: list[str] = []
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    for name, value in given.items():
        if name not in fields:
            faults.append(
                f"{place}.{name}: our result has no such field ({suggestion(name, fields)})"
            )
            continue
        inner = _model_in(fields[name].annotation)
        parts = value if isinstance(value, list) else [value]
        for part in parts:
            if isinstance(part, dict) and inner is not None:
                faults += _faults_of_fields(part, inner, f"{place}.{name}")
            elif isinstance(part, str):
                faults += _faults_of_expression(part, f"{place}.{name}")
    return faults


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(each) for each in get_args(annotation))
    return next((each for each in found if each is not None), None)


def _faults_of_call(call: BoundCall, served: ServedTool, bound: BoundTool) -> list[str]:
    known: Any = served.arguments.get("properties", {})
    required: Any = served.arguments.get("required", [])
    lacking = [name for name in required if name not in call.arguments]
    faults = [f"arguments: {served.name} needs {name!r}" for name in lacking]
    is_open = served.arguments.get("additionalProperties") not in (None, False)
    if (
        bound.is_whole or is_open
    ):  # arguments of ours that the served tool lacks are refused when a call gives them
        return faults
    unknown = [name for name in call.arguments if name not in known]
    return faults + [
        f"arguments.{name}: {served.name} has no such argument ({suggestion(name, known)})"
        for name in unknown
    ]


def _faults_of_result(expressions: Sequence[str], served: ServedTool, kept: set[str]) -> list[str]:
    """Return the names that a result cannot have, if the server says which fields it has."""
    schema = served.result or {}
    fields: Any = schema.get("properties", {})
    if not fields or fields.keys() == {"result"} or schema.get("additionalProperties"):
        return []
    unknown = {name for each in expressions for name in names_in(each)} - kept - fields.keys()
    return [
        f"{name!r} is no field of the result of {served.name} ({suggestion(name, fields)})"
        for name in sorted(unknown)
    ]


def _expressions(value: Any) -> list[str]:
    """Return the expressions in the fields of a result."""
    if isinstance(value, str):
        return [value]
    items: Any = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return []
    return [each for item in items for each in _expressions(item)]


def _placeholders(value: Any) -> list[str]:
    return [found for text in _expressions(value) for found in _WHOLE.findall(text)]


def _names(placeholder: str) -> set[str]:
    return {_FOLDER} if placeholder == _FOLDER else names_in(placeholder)


def given_arguments(arguments: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call that are neither null nor their default."""
    return {
        name: value
        for name, value in arguments.items()
        if value is not None and value != defaults.get(name)
    }


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Return an argument with its placeholders replaced: a placeholder alone keeps the type of its value.

    Raises:
        NoValue: a placeholder has no value.
        ExpressionError: one cannot be evaluated.
    """
    if isinstance(value, list):
        return [filled(item, values) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {key: filled(item, values) for key, item in table.items()}
    if not isinstance(value, str):
        return value
    if whole := _WHOLE.fullmatch(value):
        return value_of(whole[1], values)
    return _WHOLE.sub(lambda match: str(value_of(match[1], values)), value)


def filled_arguments(call: BoundCall, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call; one that is a placeholder without a value is left out."""
    arguments: dict[str, Any] = {}
    for name, value in call.arguments.items():
        try:
            arguments[name] = filled(value, values)
        except NoValue:
            if not isinstance(value, str) or not _WHOLE.fullmatch(value):
                raise
    return arguments


def our_result(bound: BoundTool, values: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return the fields of our result from the last result, the kept values, and the arguments and facts of the call.

    Raises:
        ToolError: the server refuses, or its result has no value of a field.
    """
    if bound.refuses is not None and _holds(bound.refuses.when, values):
        raise ToolError("nothing_found", _reason(bound, bound.refuses.message, values))
    return {name: _field(name, value, values) for name, value in bound.result.items()}


def _holds(condition: str, values: Mapping[str, Any]) -> bool:
    try:
        return is_true(condition, values)
    except ExpressionError as error:
        message = f"{BINDING_FAULT}: refuses.when cannot be judged: {error}"
        raise ToolError("tool_failed", message) from error


def _reason(bound: BoundTool, message: str, values: Mapping[str, Any]) -> str:
    """Return why the server refuses, in its words if the result has them."""
    try:
        said = value_of(message, values) if message else None
    except (NoValue, ExpressionError):
        said = None
    return str(said or f"{bound.name} cannot answer this call")


def _field(name: str, value: Any, values: Mapping[str, Any]) -> JsonValue:
    if isinstance(value, dict):
        return {
            key: _field(key, item, values) for key, item in cast("dict[str, Any]", value).items()
        }
    if isinstance(value, list):
        return [_field(name, item, values) for item in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    try:
        return value_of(value, values)
    except (NoValue, ExpressionError) as error:
        message = f"{BINDING_FAULT}: no value of {name}: {error}"
        raise ToolError("tool_failed", message) from error
