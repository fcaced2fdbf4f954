"""Entries of GTA, ThinkGeo and GTA-2: tools, files, a dialog with calls and what they returned, and a gold answer.

The first user turn of a dialog is asked and scored; the published scorers do so end-to-end, and no published dialog is
known to have a second one. Of several calls in one message the first counts, as it does there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple, cast

import orjson
from pydantic import JsonValue, ValidationError

from agrotools.benchmarks.published.answers import ANSWER_TYPES, MISSING, AnswerKind, Gold, gold_of
from agrotools.benchmarks.published.files import VIDEO_SUFFIXES, FileTable, kind_of, plain_path, safe_name
from agrotools.benchmarks.published.findings import Findings, is_too_deep, shortened, shown, told
from agrotools.benchmarks.published.toolsets import IMAGE_TOOLS
from agrotools.core import (
    Arguments,
    BenchmarkError,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
)
from agrotools.tools import TOOLS

TOO_DEEP = "it is nested too deep"
_KINDS: Mapping[str, str] = {"image": "image", "video": "video", "table": "table"}


@dataclass(frozen=True)
class DialogForm:
    """How a benchmark's samples are called and sorted."""

    benchmark: str
    """``gta``, ``thinkgeo`` or ``gta-2``."""
    prefix: str
    """Begins the ids of samples."""
    family: str
    source: str
    folder: str = ""
    """Where paths of files begin, below the root."""
    any_file: bool = False
    """Whether files may be of any kind; else what is no video and is not said to be a table is an image."""
    lacks_tools: bool = False
    """Whether entries may list tools that are not here: they are not offered then."""
    tools: tuple[str, ...] | None = None
    """What every entry is offered, whatever it lists itself."""
    gold: Callable[[Mapping[str, Any], Callable[[str], None]], Gold] | None = None
    """Reads the gold of an entry (the second argument takes notes), in place of ``gt_answer``. Such entries need have
    neither reference calls nor a final answer."""


@dataclass
class _Reader:
    """One entry while it is read; every fault is noted, so that all are told at once."""

    key: str
    findings: Findings
    open_ended: bool = False
    """Whether its dialog need hold neither calls nor an answer."""
    broken: bool = False
    names: dict[str, str] = field(default_factory=dict)
    """The published path of each file, with its name in the sample."""

    def fault(self, message: str) -> None:
        self.broken = True
        self.findings.fault(self.key, message)

    def note(self, message: str) -> None:
        self.findings.note(self.key, message)


class ReadEntry(NamedTuple):
    """A sample with what else its groups may follow from."""

    sample: Sample
    kind: AnswerKind


def read_entry(
    key: str, position: int, entry: Any, form: DialogForm, table: FileTable, findings: Findings
) -> ReadEntry | None:
    """The sample of an entry; None where it cannot be used, for which ``findings`` then hold every reason."""
    reader = _Reader(key, findings, open_ended=form.gold is not None)
    if not isinstance(entry, dict):
        reader.fault("it is no object")
        return None
    if is_too_deep(entry):
        reader.fault(TOO_DEEP)
        return None
    content = cast("dict[str, Any]", entry)
    files = _files(content.get("files"), form, table, reader)
    turn = _first_turn(content.get("dialogs"), reader)
    steps = _steps(turn.messages, reader) if turn else []
    called = [step.tool for step in steps]
    toolset = [*form.tools] if form.tools is not None else _toolset(content.get("tools"), called, reader, form)
    try:
        questions = _questions(content.get("evaluation"), reader)
        final = turn.final_text if turn else ""
        if form.gold is not None:
            gold = form.gold(content, reader.note)
        else:
            gold = gold_of(content.get("gt_answer", MISSING), questions, IMAGE_TOOLS[form.benchmark], called, final)
    except BenchmarkError as error:
        reader.fault(error.message)
        return None
    if reader.broken or turn is None:
        return None
    for note in gold.notes:
        reader.note(note)
    if questions and gold.kind != "objective":
        reader.note("its questions to the judge are not asked: only answers with keywords are judged")
    metadata: dict[str, JsonValue] = {"entry": key, "position": position, "final_text": turn.final_text}
    if turn.user_turns > 1:
        metadata["user_turns"] = turn.user_turns
    if any(file.path != path for path, file in zip(reader.names, files, strict=True)):
        metadata["published_paths"] = {name: path for path, name in reader.names.items()}
    try:
        sample = Sample(
            id=f"{form.prefix}-{safe_name(key.zfill(3))}",
            query=turn.query,
            files=tuple(files),
            family=form.family,
            task_type=gold.kind,
            answer_type=ANSWER_TYPES[gold.kind],
            template=f"{form.prefix}_{gold.kind}",
            source=form.source,
            toolset=tuple(toolset),
            reference=ReferenceTrajectory(steps=tuple(steps)) if steps or form.gold is None else None,
            answer=(gold.slot,),
            no_tool_eligible=gold.kind not in ("image", "workflow") and all(file.kind == "image" for file in files),
            metadata=metadata,
        )
    except (ValidationError, RecursionError) as error:
        reader.fault(shortened(first_reason(error), 120))
        return None
    return ReadEntry(sample, gold.kind)


def first_reason(error: ValidationError | RecursionError) -> str:
    """What pydantic found first, in words."""
    if isinstance(error, RecursionError):
        return TOO_DEEP
    detail = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"


def _files(given: Any, form: DialogForm, table: FileTable, reader: _Reader) -> list[SampleFile]:
    found: list[SampleFile] = []
    if given is None:
        return found
    if not isinstance(given, list):
        reader.fault("its files are no list")
        return found
    for item in cast("list[Any]", given):
        path = cast("dict[str, Any]", item).get("path") if isinstance(item, dict) else item
        if not isinstance(path, str):
            reader.fault(f"a file without a path: {shown(item)}")
            continue
        if path in reader.names:
            reader.note("it names a file twice")
            continue
        name = safe_name(path, reader.names.values())
        said = cast("dict[str, Any]", item).get("type") if isinstance(item, dict) else None
        suffix = PurePosixPath(path).suffix.lower()
        kind = "video" if suffix in VIDEO_SUFFIXES - {".gif"} else _KINDS.get(str(said), "image")
        kind = kind_of(path) if form.any_file else kind
        try:
            relative = table.find(path, (form.folder,))
            made = table.image(relative, name) if kind == "image" else table.other(relative, name, cast("Any", kind))
        except BenchmarkError as error:
            reader.fault(told(error))
            continue
        reader.names[path] = name
        found.append(made)
    return found


class _Turn(NamedTuple):
    query: str
    messages: list[dict[str, Any]]
    """What follows the question, up to the next one."""
    final_text: str
    user_turns: int


def _first_turn(dialogs: Any, reader: _Reader) -> _Turn | None:
    if not isinstance(dialogs, list) or not dialogs:
        reader.fault("it has no dialogs")
        return None
    messages = [cast("dict[str, Any]", each) for each in cast("list[Any]", dialogs) if isinstance(each, dict)]
    if len(messages) < len(cast("list[Any]", dialogs)):
        reader.note("messages that are no objects are left out")
    asked = [place for place, message in enumerate(messages) if message.get("role") == "user"]
    query = text_of(messages[asked[0]].get("content")).strip() if asked else ""
    if not query:
        reader.fault("its dialog asks no question")
        return None
    if len(asked) > 1:
        reader.note("only the first of its user turns is asked and scored")
    end = asked[1] if len(asked) > 1 else len(messages)
    own = messages[asked[0] + 1 : end]
    said = [text_of(message.get("content")) for message in own if _is_said(message)]
    if not said and not reader.open_ended:
        reader.note("its dialog ends without a final answer")
    return _Turn(query, own, said[-1] if said else "", len(asked))


def _is_said(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant" and not message.get("tool_calls")


def _steps(messages: Sequence[dict[str, Any]], reader: _Reader) -> list[ReferenceStep]:
    steps: list[ReferenceStep] = []
    without_thought = False
    for place, message in enumerate(messages):
        calls = message.get("tool_calls")
        if message.get("role") != "assistant" or not calls:
            continue
        called = _called(calls, reader, len(steps) + 1)
        if called is None:
            continue
        tool, arguments = called
        thought = message.get("thought")
        without_thought = without_thought or not thought
        returned = messages[place + 1] if place + 1 < len(messages) else {}
        if returned.get("role") != "tool":
            reader.note("a call has no recorded observation")
            returned = {}
        elif returned.get("name") not in (None, tool):
            reader.note("an observation is that of another tool than was called")
        steps.append(
            ReferenceStep(
                tool=tool,
                arguments=arguments,
                observation=observation_of(returned.get("content")),
                thought=thought if isinstance(thought, str) else "",
            )
        )
    if not steps:
        if not reader.open_ended:
            reader.note("its dialog calls no tool")
    elif without_thought:
        reader.note("some steps have no thought")
    return steps


def _called(calls: Any, reader: _Reader, number: int) -> tuple[str, Arguments] | None:
    """Tool and arguments of the first call of a message."""
    several = cast("list[Any]", calls) if isinstance(calls, list) else [calls]
    if len(several) > 1:
        reader.note("of several calls in one message the first counts")
    first = cast("dict[str, Any]", several[0]) if isinstance(several[0], dict) else {}
    function = cast("dict[str, Any]", first.get("function") if isinstance(first.get("function"), dict) else first)
    tool, arguments = function.get("name"), function.get("arguments")
    if not isinstance(tool, str) or not tool.strip():
        reader.fault(f"step {number} names no tool")
        return None
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            arguments = arguments.strip() and {"": arguments}
    if arguments is None or arguments == "":
        arguments = {}
    if not isinstance(arguments, dict) or "" in arguments:
        reader.fault(f"the arguments of step {number} are no object")
        return None
    given = cast("Arguments", arguments)
    names = {plain_path(path): name for path, name in reader.names.items()} | reader.names
    return tool.strip(), {name: with_names(value, names) for name, value in given.items()}


def with_names(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    """``value`` with the published path of a file as its name in the sample; other texts stay as they are."""
    if isinstance(value, list):
        return [with_names(item, names) for item in value]
    if not isinstance(value, str):
        return value
    return names.get(value) or names.get(plain_path(value)) or value


def _toolset(given: Any, called: Sequence[str], reader: _Reader, form: DialogForm) -> list[str]:
    """The entry's own tools in the order in which it lists them, then those that it calls and does not list."""
    listed: list[str] = []
    if isinstance(given, dict):  # by name, as a toolmeta.json has them
        given = [*cast("dict[str, Any]", given)]
    elif given is not None and not isinstance(given, list):
        reader.fault(f"its tools are no list: {shown(given)}")
    for item in cast("list[Any]", given) if isinstance(given, list) else []:
        name = cast("dict[str, Any]", item).get("name") if isinstance(item, dict) else item
        if isinstance(name, str) and name.strip():
            listed.append(name.strip())
        else:
            reader.fault(f"a tool without a name: {shown(item)}")
    if any(tool not in listed for tool in called) and listed:
        reader.note("it calls a tool that it does not list")
    tools = list(dict.fromkeys([*listed, *called]))
    missing = [tool for tool in tools if tool not in TOOLS]
    if form.lacks_tools:
        if missing:
            reader.note("tools that are not here are not offered")
        return [tool for tool in tools if tool not in missing]
    for tool in missing:
        reader.fault(f"there is no tool {shown(tool)}")
    if not tools and not reader.broken:
        reader.fault("it lists no tools and calls none")
    return tools


def _questions(given: Any, reader: _Reader) -> list[str]:
    """ThinkGeo's questions to a judge."""
    found: list[str] = []
    if isinstance(given, dict):
        given = [cast("dict[str, Any]", given)]
    elif given is not None and not isinstance(given, list):
        reader.note("its questions to the judge are no list")
    for item in cast("list[Any]", given) if isinstance(given, list) else []:
        text = cast("dict[str, Any]", item).get("question") if isinstance(item, dict) else item
        if isinstance(text, str) and text.strip():
            found.append(text)
        else:
            reader.note("a question to the judge is no text")
    return found


def observation_of(content: Any) -> Observation:
    """What a tool returned: ``{"text": ...}``, or ``{"image": path as written}``; an empty result for nothing."""
    if content is None:
        return Observation(result={})
    if isinstance(content, dict):
        given = cast("dict[str, Any]", content)
        if "content" in given:
            kind = "image" if given.get("type") == "image" and isinstance(given["content"], str) else "text"
            return Observation(result={kind: text_of(given["content"])})
    return Observation(result={"text": text_of(content)})


def text_of(content: Any) -> str:
    """The text of a message: itself, the texts of its parts, or what it holds as JSON (too deep: nothing)."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) and content and all(isinstance(part, dict) for part in cast("list[Any]", content)):
        parts = [cast("dict[str, Any]", part) for part in cast("list[Any]", content)]
        texts = [part.get("text", part.get("content")) for part in parts]
        if all(isinstance(text, str) for text in texts):
            return "\n".join(cast("list[str]", texts))
    try:
        return orjson.dumps(content).decode()
    except TypeError:
        return ""
