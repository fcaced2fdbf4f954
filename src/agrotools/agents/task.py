"""Task of an external agent: the question, its files, and the tools as functions.

All that an agent is given is in the task, in this process or another one, and nothing in it tells the answer. It calls
tools through a :data:`ToolCaller`, and reports its tokens through :data:`SendUsage`.
"""

import base64
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import Field, JsonValue

from agrotools.core import ErrorInfo, FrozenModel, ToolError
from agrotools.text.answer_reader import value_text

_TYPES: Mapping[str, type] = {
    "string": str,
    "number": float,
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
}
ToolCaller = Callable[[str, dict[str, Any]], Any]
"""Executes a call, given the name of the tool and its arguments, and returns the observation; a coroutine function for
async agents."""
SendUsage = Callable[[dict[str, Any]], None]
"""Passes a usage report, as JSON, to the run."""
_Count = Annotated[int, Field(ge=0, le=10**12)]


class UsageReport(FrozenModel):
    """Tokens and cost of an agent's requests to models since its last report. Unknown fields are errors."""

    input_tokens: _Count = 0
    """Tokens of the prompts, including those that came from the provider's cache."""
    output_tokens: _Count = 0
    cached_input_tokens: _Count | None = None
    cost_usd: Annotated[float | None, Field(ge=0, le=10**6, allow_inf_nan=False)] = None
    """Cost in US dollars; None to have it computed from the tokens and the price of ``model``."""
    model: str = ""
    """``PROVIDER:NAME``, or a name that only one provider of the price table has."""


class Picture(NamedTuple):
    """Picture as a model can be shown it."""

    media_type: str
    content: str
    """Base64."""

    @property
    def url(self) -> str:
        """The picture as a data URL."""
        return f"data:{self.media_type};base64,{self.content}"

    @property
    def data(self) -> bytes:
        """The encoded file."""
        return base64.b64decode(self.content)


class Link(NamedTuple):
    """File that a call wrote, as a resource that an MCP client can read."""

    uri: str
    name: str
    media_type: str


class ToolReply(NamedTuple):
    """Reply to a call: ``result`` or ``error`` as a model sees it, pictures, links; ``meta`` is for the client."""

    observation: Mapping[str, Any]
    pictures: Sequence[Picture] = ()
    links: Sequence[Link] = ()
    meta: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The observation as JSON. That of a failed call has kind, message and hint of the error."""
        return json.dumps(self.observation, ensure_ascii=False)


@dataclass(frozen=True)
class TaskEndpoint:
    """OpenAI-compatible endpoint that counts the agent's requests (``--agent-model``)."""

    url: str
    """Address with ``/v1``, as ``base_url`` of OpenAI's clients."""
    key: str
    """Token of the sample."""
    model: str
    """Name of the model. Requests for another one get this one, too."""


@dataclass(frozen=True)
class TaskFile:
    """A file of a task. Tools refer to it by ``name``; the agent may read it at ``path``."""

    name: str
    path: str
    kind: str
    """``image``, ``raster``, ``depth``, ``mask`` or ``table``."""
    description: str
    """Size, bands, ground sampling distance and notes, as a model is told them."""
    bands: Sequence[str] | None = None
    """Names of the bands of a raster, in order, if they are known."""

    @property
    def picture(self) -> Picture | None:
        """Preview of the file, as a model is shown it; None for tables and files that cannot be shown."""
        from agrotools.agents.images import PREVIEWED_KINDS, Preview, make_preview

        if self.kind not in PREVIEWED_KINDS:
            return None
        preview = make_preview(
            Path(self.path), self.name, self.kind, tuple(self.bands) if self.bands else None
        )
        if not isinstance(preview, Preview):
            return None
        media_type, _, content = preview.image.url.removeprefix("data:").partition(";base64,")
        return Picture(media_type, content)


@dataclass(frozen=True)
class ToolDescription:
    """Name, description and JSON Schema of the arguments of a tool."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]

    def offered(self) -> dict[str, Any]:
        """Return the fields, as :meth:`agrotools.core.ToolSpec.offered` does."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


class ToolFunctions(dict[str, Callable[..., Any]]):
    """Tools of a task as functions, by name (``task.tools["calculate"]``) or as attributes (``task.tools.calculate``).

    A function takes the tool's arguments by keyword and returns its result, a dict as a model would see it. For agent
    frameworks, ``function.spec`` has name, description and JSON Schema, and ``function.reply(**arguments)`` makes the
    same call but returns a :class:`ToolReply`, also if it failed. In an async agent, both return an awaitable.

    Raises:
        ToolError: from a function, if the call failed; its hint says what to change.
    """

    def __init__(self, tools: Sequence[ToolDescription], call: ToolCaller) -> None:
        super().__init__((tool.name, _tool_function(tool, call)) for tool in tools)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"this task has no tool {name!r}; it has {', '.join(self)}"
            ) from None


@dataclass(frozen=True)
class Task:
    """Question that an external agent answers.

    An agent is a function ``(task) -> answer``, plain or async. A dict of values by item name is scored as it is. Of a
    text, the form is asked for if the function has a parameter ``form``: it is called again, with the message that asks
    for it (before: None) and a task without tools whose :attr:`prompt` has question, answer and message.

    Examples:
        >>> def solve(task):
        ...     total = task.tools.calculate(expression="2 + 3")
        ...     return {"value": total["value"]}
        >>> run = at.evaluate("my-farm", model=solve, mode="end-to-end")
    """

    query: str
    files: tuple[TaskFile, ...]
    prompt: str
    """The whole text that a model would get: instructions, list of files and question."""
    tools: ToolFunctions
    max_steps: int
    """Number of tool calls after which the sample ends without an answer."""
    endpoint: TaskEndpoint | None = None
    """Endpoint of the agent's model; None without ``--agent-model``."""
    answer: str = ""
    """The agent's answer, when its form is asked for."""
    epoch: int = 0
    """Number of the repetition of the sample, from 0 (``--epochs``)."""
    seed: int = 0
    """Seed of the run (``--seed``)."""
    _send_usage: SendUsage = field(default=lambda _report: None, repr=False)

    def report_usage(
        self,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cached_input_tokens: int | None = None,
        cost_usd: float | None = None,
        model: str = "",
    ) -> None:
        """Report tokens and cost of requests to models; the reports of a sample are added up.

        Args:
            input_tokens: tokens of the prompts, including ``cached_input_tokens``.
            output_tokens: tokens of the replies.
            cached_input_tokens: input tokens that came from the provider's cache, if it is known.
            cost_usd: cost in US dollars. By default, it is computed from the tokens and ``--price``, or the price of
                ``model``, without discounts for cached tokens.
            model: ``PROVIDER:NAME``, or a name that only one provider of the price table has.

        Raises:
            ValueError: a number is negative, not finite, or more than 10^12 tokens or 10^6 USD.
        """
        report = UsageReport(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_input_tokens=cached_input_tokens,
            cost_usd=cost_usd,
            model=model,
        )
        self._send_usage(report.model_dump())

    @property
    def pictures(self) -> list[Picture]:
        """Previews of the files that can be shown, in their order, as a model is shown them beside :attr:`prompt`."""
        return [picture for file in self.files if (picture := file.picture) is not None]


def task_from_json(data: Mapping[str, Any], call: ToolCaller, send_usage: SendUsage) -> Task:
    """Return the task that :func:`task_json` wrote, with tools that use ``call`` and reports for ``send_usage``."""
    return Task(
        query=data["query"],
        files=tuple(TaskFile(**file) for file in data["files"]),
        prompt=data["prompt"],
        tools=ToolFunctions([ToolDescription(**tool) for tool in data["tools"]], call),
        max_steps=data["max_steps"],
        endpoint=TaskEndpoint(**data["endpoint"]) if "endpoint" in data else None,
        answer=data.get("answer", ""),
        epoch=data["epoch"],
        seed=data["seed"],
        _send_usage=send_usage,
    )


def answer_text(answer: object) -> str:
    """Return an agent's answer as text: a dict becomes lines ``name: value``, None an empty text.

    None and NaN in a dict are no value, because a program that failed returns them: only the word ``unknown`` refuses.
    """
    if isinstance(answer, Mapping):
        values = cast("Mapping[object, object]", answer)
        lines = (f"{name}: {value_text(v)}" for name, v in values.items() if not _is_missing(v))
        return "\n".join(lines)
    return "" if answer is None else str(answer)


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def to_reply(observation: Mapping[str, Any]) -> ToolReply:
    """Return the reply that an observation is, with its pictures apart."""
    shown = {key: value for key, value in observation.items() if key != "pictures"}
    return ToolReply(shown, [Picture(**each) for each in observation.get("pictures", ())])


def tool_result(observation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result in an observation; ToolError if it is an error."""
    if error := observation.get("error"):
        info = ErrorInfo.model_validate(error)
        raise ToolError(
            info.kind,
            info.message,
            argument=info.argument,
            hint=info.hint,
            setup=info.setup,
            candidates=info.candidates,
        )
    result = observation.get("result")
    return dict(result) if isinstance(result, Mapping) else {}


def _tool_function(tool: ToolDescription, call: ToolCaller) -> Callable[..., Any]:
    def caller(read: Callable[[Any], Any]) -> Any:
        async def call_async(**arguments: Any) -> Any:
            return read(await call(tool.name, arguments))

        def call_plain(**arguments: Any) -> Any:
            return read(call(tool.name, arguments))

        return call_async if inspect.iscoroutinefunction(call) else call_plain

    function = with_signature(caller(tool_result), tool, dict)
    function.reply = caller(to_reply)
    function.spec = tool
    return function


def with_signature(
    function: Any, tool: ToolDescription, returns: type, *, is_method: bool = False
) -> Any:
    """Return ``function`` with the name, docstring, arguments by keyword and types of a tool, for agent frameworks.

    Arguments of served tools whose names Python does not take (``from``) are in its docstring and schema alone.
    """
    function.__name__ = function.__qualname__ = tool.name
    function.__doc__ = _docstring(tool)
    properties, required = _properties(tool), cast("list[str]", tool.parameters.get("required", []))
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=_annotation(schema)
            if name in required or "default" in schema
            else _annotation(schema) | None,
            default=inspect.Parameter.empty if name in required else schema.get("default"),
        )
        for name, schema in properties.items()
        if is_parameter_name(name)
    ]
    receiver = (
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)] if is_method else []
    )
    function.__signature__ = inspect.Signature([*receiver, *parameters], return_annotation=returns)
    function.__annotations__ = {each.name: each.annotation for each in parameters} | {
        "return": returns
    }
    return function


def is_parameter_name(name: str) -> bool:
    """True if a method of Python can have an argument with this name."""
    return name.isidentifier() and not iskeyword(name) and name != "self"


def _docstring(tool: ToolDescription) -> str:
    arguments = "\n".join(
        f"    {name}: {_about(name, schema)}" for name, schema in _properties(tool).items()
    )
    return (
        f"{tool.description.strip()}\n\nArgs:\n{arguments}"
        if arguments
        else tool.description.strip()
    )


def _about(name: str, schema: Mapping[str, Any]) -> str:
    """Return the description of an argument, which no framework accepts empty, with the fields of its objects."""
    words = " ".join(str(schema.get("description", "")).split()) or name.replace("_", " ")
    shape = schema.get("items", schema)
    return f"{words}; JSON Schema {json.dumps(shape)}" if "properties" in shape else words


def _properties(tool: ToolDescription) -> dict[str, dict[str, Any]]:
    return cast("dict[str, dict[str, Any]]", tool.parameters.get("properties", {}))


def _annotation(schema: Mapping[str, Any]) -> Any:
    schemas = schema.get("anyOf", [schema])
    types = [_type_of(each) for each in schemas if each.get("type") in _TYPES]
    annotation: Any = types[0] if types else Any
    for other in types[1:]:
        annotation |= other
    return (
        annotation | None
        if types and any(each.get("type") == "null" for each in schemas)
        else annotation
    )


def _type_of(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return Literal[*schema["enum"]]
    if schema["type"] == "array" and "items" in schema:
        return list[_annotation(schema["items"])]
    return _TYPES[schema["type"]]
