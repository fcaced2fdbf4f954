"""Replies and calls as lagent 0.2.4 reads them, arguments as AgentLego 0.2.0 takes them: what GTA and ThinkGeo ran on.

Written anew from their behaviour (Apache-2.0; github.com/InternLM/lagent: agents/react.py, actions/parser.py,
actions/builtin_actions.py; github.com/InternLM/agentlego: parsers/default_parser.py, types.py). The few messages that
are told back to a model, the words of the format among them, stand here as they are there. What goes beyond: where the
originals end with an exception (arguments that are no object, nested too deep), the arguments are invalid here, and
where they print a Python set, its members are sorted.

``toolmeta.json`` beside this file holds what GTA and ThinkGeo say of their tools, word for word (Apache-2.0; its source
is named in it). A tool that is in none of them is declared by what we say of it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import orjson
from pydantic import JsonValue

from agrotools.core import Arguments, BenchmarkError, ToolSpec
from agrotools.formats.benchmark import Benchmark
from agrotools.text.loose_json import NotJson, loads_strictly, without_surrogates

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
    """A parameter as AgentLego declares it; ``type``: image, text, audio, file, int, float or bool."""

    name: str
    type: str
    description: str | None
    required: bool


class DeclaredTool(NamedTuple):
    """A tool as a ``toolmeta.json`` declares it."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]


class ParsedReply(NamedTuple):
    """A reply as it was read. ``text``: the answer, or the input of the action, as written."""

    kind: Literal["answer", "call", "nothing"]
    thought: str
    tool: str
    text: str


class Failure(NamedTuple):
    """Failure of a call: its type in prediction files, and the message to the model."""

    type: Literal["ARGS_ERROR", "API_ERROR"]
    message: str


class Checked(NamedTuple):
    """A call after all that happens to it before its tool runs.

    ``raw_arguments``: the arguments as the model gave them; its own text if they cannot be read. ``arguments``: as the
    tool takes them, each of its declared type; None if they cannot be cast.
    """

    tool: str
    raw_arguments: Arguments | str
    arguments: Arguments | None
    failure: Failure | None


def read_reply(text: str) -> ParsedReply:
    """The answer after the last ``Final Answer:``; else the last ``Action:`` that a line ends, and all that follows
    the first ``Action Input:``; else nothing."""
    thought = text.split(ACTION)[0].split(THOUGHT)[-1].split(FINISH)[0]
    if FINISH in text:
        return ParsedReply("answer", thought, "", text.rpartition(FINISH)[2])
    lines = text.split("\n")[:-1]
    tool = next((line.partition(ACTION)[2] for line in reversed(lines) if ACTION in line), None)
    _, marker, action_input = text.partition(ACTION_INPUT)
    if tool is None or not marker:
        return ParsedReply("nothing", thought, "", "")
    return ParsedReply("call", thought, tool.strip(), action_input.strip().strip('"'))


def check_call(reply: ParsedReply, tools: Sequence[DeclaredTool], exists: Callable[[str], bool]) -> Checked:
    """Checked call of a reply that is no answer, up to the point where its tool would run.

    Args:
        reply: read by :func:`read_reply`.
        tools: those that were offered.
        exists: true if there is a file at a path that an argument names.
    """
    if reply.kind != "call":
        return Checked(NO_ACTION, {"text": ""}, None, Failure("API_ERROR", FOLLOW_FORMAT))
    # "OCR.run" names the tool OCR too: run is what every tool's function is called.
    name, dot, function = reply.tool.partition(".")
    tool = next((each for each in tools if each.name == name), None)
    if tool is None or "." in function:
        return Checked(INVALID_ACTION, {"text": reply.text}, None, Failure("API_ERROR", reply.text or CHECK_NAME))
    if dot and function != "run":
        return Checked(name, reply.text, None, Failure("API_ERROR", f"invalid API: {function}"))
    call_arguments = read_arguments(tool.parameters, reply.text)
    if isinstance(call_arguments, Failure):
        return Checked(name, reply.text, None, call_arguments)
    cast_values = cast_arguments(tool.parameters, call_arguments, exists)
    if isinstance(cast_values, Failure):
        return Checked(name, call_arguments, None, cast_values)
    return Checked(name, call_arguments, cast_values, None)


def read_arguments(parameters: Sequence[Parameter], text: str) -> Arguments | Failure:
    """The arguments that an action's input holds: a JSON object, in a fence marked ``json`` or bare."""
    arguments = arguments_in(text)
    if arguments is None:
        return Failure("ARGS_ERROR", f"invalid json format: {_without_fence(text)}")
    required = [parameter.name for parameter in parameters if parameter.required]
    return name_failure([parameter.name for parameter in parameters], required, arguments) or arguments


def name_failure(known: Iterable[str], required: Iterable[str], names: Iterable[str]) -> Failure | None:
    """Failure for arguments that a tool does not take, or else lacks; None if the names are right."""
    if unknown := set(names).difference(known):
        return Failure("ARGS_ERROR", f"unknown arguments: {_as_set(unknown)}")
    if missing := set(required).difference(names):
        return Failure("ARGS_ERROR", f"missing required arguments: {_as_set(missing)}")
    return None


def arguments_in(text: str) -> Arguments | None:
    """The JSON object that an action's input is, whatever is in it; None where it is none."""
    try:
        value = loads_strictly(_without_fence(text))
    except NotJson:
        return None
    return value if isinstance(value, dict) else None


def is_argument_failure(message: str) -> bool:
    """True if a failure with this message is an ``ARGS_ERROR``, for which prediction files keep arguments as text."""
    return message.startswith(_ARGS_ERRORS)


def cast_arguments(
    parameters: Sequence[Parameter], arguments: Arguments, exists: Callable[[str], bool]
) -> Arguments | Failure:
    """The arguments as their tool takes them: what is not of its declared type is made so as Python does it."""
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
                raise NotImplementedError(f"The value type `{type(value)}` is not supported by `{_HOLDERS[kind]}`")
            if not exists(value):
                raise FileNotFoundError(f"No such file: '{value}'")
            return value
        case _:  # lists and objects, which no published tool takes
            return value


def described(tools: Iterable[DeclaredTool]) -> str:
    """The tools as the system message lists them: a Python list, printed."""
    return str(
        [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": [
                    {"name": each.name, "description": each.description, "type": _TYPES.get(each.type, "STRING")}
                    for each in tool.parameters
                ],
                "required": [each.name for each in tool.parameters if each.required],
                "parameter_description": JSON_ARGUMENTS,
            }
            for tool in tools
        ]
    )


def received(text: str) -> str:
    """A reply as their client hands it on: without blanks at its ends."""
    return without_surrogates(text).strip()


def _without_fence(text: str) -> str:
    """Content of a fence that ends the text; an opening fence is removed only if it is marked ``json``."""
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
    """Published descriptions of the tools of a benchmark, by name.

    Args:
        benchmark: its name; ``thinkgeo`` says some things of its own, all others are as in GTA.
        root: its folder; a ``toolmeta.json`` there wins over ours.

    Raises:
        BenchmarkError: that file is none.
    """
    ours = _packaged_tools()
    known = {**ours["gta"], **(ours["thinkgeo"] if benchmark == "thinkgeo" else {})}
    path = root / TOOLMETA_FILE if root else None
    return {**known, **read_toolmeta(path)} if path and path.is_file() else known


def declared_text(benchmark: Benchmark) -> str:
    """The declarations of the benchmark's tools as the system message lists them, in the order of their names."""
    declared = declared_by(benchmark.name, benchmark.root)
    return described(declared[tool] for tool in sorted(declared) if tool in benchmark.toolset)


def read_toolmeta(path: Path) -> Declared:
    """The tools in a file of GTA's form: an object, or a list, of tools with ``name``, ``description``, ``inputs``.

    What a list only names (a text, or an object without ``inputs``) is left out: GTA-2 may have such lists.

    Raises:
        BenchmarkError: it is none.
    """
    try:
        content = orjson.loads(path.read_bytes())
        tools = content.values() if isinstance(content, dict) else [tool for tool in content if "inputs" in tool]
        return {_text_field(tool, "name"): _declared(tool["name"], tool) for tool in tools}
    except OSError as error:
        raise BenchmarkError(f"{path} cannot be read: {error.strerror or error}") from error
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError) as error:
        raise BenchmarkError(
            f"{path} is no list of tools: {error}", hint="download it again, or remove it: its tools are known here"
        ) from error


def declared_tools(specs: Sequence[ToolSpec], declared: Declared) -> tuple[DeclaredTool, ...]:
    """Each of ``specs`` as ``declared`` has it, or else as we describe it."""
    return tuple(declared.get(spec.name) or declared_spec(spec) for spec in specs)


def declared_spec(spec: ToolSpec) -> DeclaredTool:
    """A tool of ours in the form in which published ones are declared."""
    properties = cast("dict[str, dict[str, JsonValue]]", spec.parameters.get("properties", {}))
    required = cast("list[str]", spec.parameters.get("required", []))
    parameters = tuple(
        Parameter(name, _type(spec, name, schema), _text(schema.get("description")), name in required)
        for name, schema in properties.items()
    )
    return DeclaredTool(spec.name, spec.description, parameters)


def _type(spec: ToolSpec, name: str, schema: Mapping[str, JsonValue]) -> str:
    choices = schema.get("anyOf")
    options = [schema, *(choices if isinstance(choices, list) else [])]
    types = [str(option["type"]) for option in options if isinstance(option, dict) and "type" in option]
    kind = next((_SCHEMA_TYPES[kind] for kind in types if kind in _SCHEMA_TYPES), "json")
    return "image" if kind == "text" and spec.agreement.get(name) == "file" else kind


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


@cache
def _packaged_tools() -> dict[str, dict[str, DeclaredTool]]:
    content = orjson.loads(files(__package__ or "").joinpath(TOOLMETA_FILE).read_bytes())
    return {name: {tool: _declared(tool, said) for tool, said in content[name].items()} for name in ("gta", "thinkgeo")}


def _declared(name: str, content: Mapping[str, Any]) -> DeclaredTool:
    """A tool from its entry in a ``toolmeta.json``.

    Raises:
        TypeError, LookupError: a name or a type is missing or no text.
    """
    parameters = tuple(
        Parameter(
            _text_field(each, "name"),
            _text_field(each, "type"),
            _text(each.get("description")),
            not each.get("optional"),
        )
        for each in content["inputs"]
    )
    return DeclaredTool(name, str(content.get("description") or ""), parameters)


def _text_field(content: Mapping[str, Any], key: str) -> str:
    if not isinstance(content[key], str):
        raise TypeError(f"the {key} of a tool or an input is no text")
    return content[key]
