"""Parsing of replies and calls as in lagent 0.2.4, and of arguments as in AgentLego 0.2.0, as used by GTA and ThinkGeo.

Reimplemented from their behaviour (Apache-2.0; github.com/InternLM/lagent: agents/react.py, actions/parser.py,
actions/builtin_actions.py; github.com/InternLM/agentlego: parsers/default_parser.py, types.py). The few messages sent
back to a model, including the keywords of the format, are copied verbatim. Deviations: if the originals raise an
exception (arguments that are not an object or are nested too deeply), the arguments are invalid here; if they print a
Python set, its members are sorted here.

``toolmeta.json`` in this folder holds the tool descriptions of GTA and ThinkGeo, word for word (Apache-2.0; the file
names its source). A tool without a published description is declared by its specification in this package.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import orjson
from pydantic import JsonValue

from agrotools.core import Arguments, BenchmarkError, ToolSpec
from agrotools.core.texts import without_surrogates
from agrotools.formats.benchmark import Benchmark
from agrotools.text.loose_json import NotJson, loads_strictly

THOUGHT, ACTION, ACTION_INPUT = "Thought:", "Action:", "Action Input:"
RESPONSE, FINISH = "Response:", "Final Answer:"
NO_ACTION, INVALID_ACTION = "NoAction", "InvalidAction"
FOLLOW_FORMAT = "Please follow the format"
CHECK_NAME = "The action is invalid, please check the action name."
JSON_ARGUMENTS = (
    "If you call this tool, you must pass arguments in "
    "the JSON format {key: value}, where the key is the parameter name."
)
_ARGS_ERRORS = ("invalid json format: ", "unknown arguments: ", "missing required arguments: ")

_TYPES = {"int": "NUMBER", "float": "FLOAT", "bool": "BOOLEAN"}
_HOLDERS = {"image": "ImageIO", "audio": "AudioIO", "video": "VideoIO", "file": "File"}
_FENCE_OPENS, _FENCE_CLOSES = "```json\n", "\n```"


class Parameter(NamedTuple):
    """Parameter as AgentLego declares it. ``type``: image, text, audio, file, int, float or bool."""

    name: str
    type: str
    description: str | None
    required: bool


class DeclaredTool(NamedTuple):
    """Tool as a ``toolmeta.json`` declares it."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]


class ParsedReply(NamedTuple):
    """Parsed reply. ``text``: the answer, or the input of the action as written."""

    kind: Literal["answer", "call", "nothing"]
    thought: str
    tool: str
    text: str


class Failure(NamedTuple):
    """Failure of a call: its type in prediction files, and the message to the model."""

    type: Literal["ARGS_ERROR", "API_ERROR"]
    message: str


class CheckedCall(NamedTuple):
    """Call after all checks that precede the run of its tool.

    ``raw_arguments``: arguments as the model wrote them, as text if they cannot be parsed. ``arguments``: arguments
    cast to their declared types; None if the cast failed.
    """

    tool: str
    raw_arguments: Arguments | str
    arguments: Arguments | None
    failure: Failure | None


def read_reply(text: str) -> ParsedReply:
    """Parse a reply into an answer, a call or nothing.

    The answer follows the last ``Final Answer:``. Otherwise the tool is named in the last complete line with
    ``Action:``, and its input is the text after the first ``Action Input:``.
    """
    thought = text.split(ACTION)[0].split(THOUGHT)[-1].split(FINISH)[0]
    if FINISH in text:
        return ParsedReply("answer", thought, "", text.rpartition(FINISH)[2])
    lines = text.split("\n")[:-1]
    tool = next((line.partition(ACTION)[2] for line in reversed(lines) if ACTION in line), None)
    _, marker, action_input = text.partition(ACTION_INPUT)
    if tool is None or not marker:
        return ParsedReply("nothing", thought, "", "")
    return ParsedReply("call", thought, tool.strip(), action_input.strip().strip('"'))


def check_call(
    reply: ParsedReply, tools: Sequence[DeclaredTool], exists: Callable[[str], bool]
) -> CheckedCall:
    """Check the call of a reply that is not an answer, up to the point where its tool would run.

    ``exists``: function that returns True if a file exists at a path in an argument.
    """
    if reply.kind != "call":
        return CheckedCall(NO_ACTION, {"text": ""}, None, Failure("API_ERROR", FOLLOW_FORMAT))
    # "OCR.run" also names the tool OCR, because the function of every tool is called run.
    name, dot, function = reply.tool.partition(".")
    tool = next((each for each in tools if each.name == name), None)
    if tool is None or "." in function:
        return CheckedCall(
            INVALID_ACTION,
            {"text": reply.text},
            None,
            Failure("API_ERROR", reply.text or CHECK_NAME),
        )
    if dot and function != "run":
        return CheckedCall(name, reply.text, None, Failure("API_ERROR", f"invalid API: {function}"))
    call_arguments = read_arguments(tool.parameters, reply.text)
    if isinstance(call_arguments, Failure):
        return CheckedCall(name, reply.text, None, call_arguments)
    cast_values = cast_arguments(tool.parameters, call_arguments, exists)
    if isinstance(cast_values, Failure):
        return CheckedCall(name, call_arguments, None, cast_values)
    return CheckedCall(name, call_arguments, cast_values, None)


def read_arguments(parameters: Sequence[Parameter], text: str) -> Arguments | Failure:
    """Parse the arguments in an action's input: a JSON object, either bare or in a code fence marked ``json``."""
    arguments = arguments_in(text)
    if arguments is None:
        return Failure("ARGS_ERROR", f"invalid json format: {_without_fence(text)}")
    required = [parameter.name for parameter in parameters if parameter.required]
    return (
        name_failure([parameter.name for parameter in parameters], required, arguments) or arguments
    )


def name_failure(
    known: Iterable[str], required: Iterable[str], names: Iterable[str]
) -> Failure | None:
    """Return the failure for unknown or, if there are none, missing arguments; None if the names are correct."""
    if unknown := set(names).difference(known):
        return Failure("ARGS_ERROR", f"unknown arguments: {_as_set(unknown)}")
    if missing := set(required).difference(names):
        return Failure("ARGS_ERROR", f"missing required arguments: {_as_set(missing)}")
    return None


def arguments_in(text: str) -> Arguments | None:
    """Return an action's input as a JSON object with any content; None if it is not one."""
    try:
        value = loads_strictly(_without_fence(text))
    except NotJson:
        return None
    return value if isinstance(value, dict) else None


def is_argument_failure(message: str) -> bool:
    """Return True if this message is an ``ARGS_ERROR``, for which prediction files store the arguments as text."""
    return message.startswith(_ARGS_ERRORS)


def cast_arguments(
    parameters: Sequence[Parameter], arguments: Arguments, exists: Callable[[str], bool]
) -> Arguments | Failure:
    """Convert the arguments to their declared types with Python's conversions."""
    by_name = {parameter.name: parameter.type for parameter in parameters}
    try:
        return {name: _cast(by_name[name], value, exists) for name, value in arguments.items()}
    except (TypeError, ValueError, OverflowError, FileNotFoundError, NotImplementedError) as error:
        return Failure("API_ERROR", repr(error))


def _cast(kind: str, value: JsonValue, exists: Callable[[str], bool]) -> JsonValue:
    match kind:
        case "text":
            return value if isinstance(value, str) else str(value)
        case "int":
            return value if isinstance(value, int) else int(cast(Any, value))
        case "float":
            return value if isinstance(value, float) else float(cast(Any, value))
        case "bool":
            return bool(value)
        case "image" | "audio" | "video" | "file":
            if not isinstance(value, str):
                raise NotImplementedError(
                    f"The value type `{type(value)}` is not supported by `{_HOLDERS[kind]}`"
                )
            if not exists(value):
                raise FileNotFoundError(f"No such file: '{value}'")
            return value
        case _:  # lists and objects, which no published tool has
            return value


def format_tools(tools: Iterable[DeclaredTool]) -> str:
    """Return the tools as the system message lists them: a printed Python list."""
    return str(
        [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": [
                    {
                        "name": each.name,
                        "description": each.description,
                        "type": _TYPES.get(each.type, "STRING"),
                    }
                    for each in tool.parameters
                ],
                "required": [each.name for each in tool.parameters if each.required],
                "parameter_description": JSON_ARGUMENTS,
            }
            for tool in tools
        ]
    )


def strip_reply(text: str) -> str:
    """Return a reply without surrounding white space, as the published client passes it on."""
    return without_surrogates(text).strip()


def _without_fence(text: str) -> str:
    """Return the content of a code fence that ends the text; the opening is removed only if it is marked ``json``."""
    ended = text.rstrip()
    if not ended.endswith(_FENCE_CLOSES):
        return text
    return ended.removesuffix(_FENCE_CLOSES).lstrip().removeprefix(_FENCE_OPENS).strip()


def _as_set(names: Iterable[str]) -> str:
    return f"{{{', '.join(repr(name) for name in sorted(names))}}}"


TOOLMETA_FILE = "toolmeta.json"
_SCHEMA_TYPES = {"string": "text", "integer": "int", "number": "float", "boolean": "bool"}

Declared = Mapping[str, DeclaredTool]


def declared_by(benchmark: str, root: Path | None = None) -> Declared:
    """Return the published descriptions of a benchmark's tools, by name.

    ``thinkgeo`` has some of its own, all others use those of GTA; a ``toolmeta.json`` in ``root`` takes precedence.

    Raises:
        BenchmarkError: that file is not a valid ``toolmeta.json``.
    """
    ours = _packaged_tools()
    known = {**ours["gta"], **(ours["thinkgeo"] if benchmark == "thinkgeo" else {})}
    path = root / TOOLMETA_FILE if root else None
    return {**known, **read_toolmeta(path)} if path and path.is_file() else known


def declared_text(benchmark: Benchmark) -> str:
    """Return the declarations of the benchmark's tools as the system message lists them, sorted by name."""
    declared = declared_by(benchmark.name, benchmark.root)
    return format_tools(declared[tool] for tool in sorted(declared) if tool in benchmark.toolset)


def read_toolmeta(path: Path) -> Declared:
    """Read a file in GTA's format: an object or a list of tools with ``name``, ``description`` and ``inputs``.

    List items that only name a tool (a text, or an object without ``inputs``) are skipped.

    Raises:
        BenchmarkError: the file has another format.
    """
    try:
        content = orjson.loads(path.read_bytes())
        tools = (
            content.values()
            if isinstance(content, dict)
            else [tool for tool in content if "inputs" in tool]
        )
        return {_text_field(tool, "name"): _declared(tool["name"], tool) for tool in tools}
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be read: {error.strerror or error}") from error
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError) as error:
        hint = "download it again, or remove it: agrotools knows its tools"
        raise BenchmarkError(f"{path} is no list of tools: {error}", hint=hint) from error


def declared_spec(spec: ToolSpec) -> DeclaredTool:
    """Convert a tool specification to the form of the published declarations."""
    properties = cast("dict[str, dict[str, JsonValue]]", spec.parameters.get("properties", {}))
    required = cast("list[str]", spec.parameters.get("required", []))
    parameters = tuple(
        Parameter(
            name, _type(spec, name, schema), _text(schema.get("description")), name in required
        )
        for name, schema in properties.items()
    )
    return DeclaredTool(spec.name, spec.description, parameters)


def _type(spec: ToolSpec, name: str, schema: Mapping[str, JsonValue]) -> str:
    choices = schema.get("anyOf")
    options = [schema, *(choices if isinstance(choices, list) else [])]
    types = [
        str(option["type"]) for option in options if isinstance(option, dict) and "type" in option
    ]
    kind = next((_SCHEMA_TYPES[kind] for kind in types if kind in _SCHEMA_TYPES), "json")
    return "image" if kind == "text" and spec.agreement.get(name) == "file" else kind


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


@cache
def _packaged_tools() -> dict[str, dict[str, DeclaredTool]]:
    content = orjson.loads(files(__package__ or "").joinpath(TOOLMETA_FILE).read_bytes())
    return {
        name: {tool: _declared(tool, said) for tool, said in content[name].items()}
        for name in ("gta", "thinkgeo")
    }


def _declared(name: str, content: Mapping[str, Any]) -> DeclaredTool:
    """Read a tool from its entry in a ``toolmeta.json``."""
    parameters: list[Parameter] = []
    for each in content["inputs"]:
        text, needed = _text(each.get("description")), not each.get("optional")
        parameters.append(
            Parameter(_text_field(each, "name"), _text_field(each, "type"), text, needed)
        )
    return DeclaredTool(name, str(content.get("description") or ""), tuple(parameters))


def _text_field(content: Mapping[str, Any], key: str) -> str:
    if not isinstance(content[key], str):
        raise TypeError(f"the {key} of a tool or an input is no text")
    return content[key]
