"""Conversion of GTA and ThinkGeo entries (tools, files, dialog, gold answer) to samples.

Only the first user turn of a dialog is asked and scored, as in the end-to-end mode of the published scorers; no
published dialog is known to have a second one. Only the first of several calls in a message counts, also as published.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

import orjson
from pydantic import JsonValue, ValidationError

from agrotools.calling import TOOLS
from agrotools.core import (
    AnswerType,
    Arguments,
    BenchmarkError,
    KeywordsSlot,
    Observation,
    ReferenceStep,
    ReferenceTextsSlot,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    Slot,
    first_error,
)
from agrotools.core.progress import Progress
from agrotools.loading.checking import shorten
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools_benchmarks._dialogs.loading import (
    VIDEO_SUFFIXES,
    FileTable,
    Findings,
    error_text,
    plain_path,
    quote,
    safe_name,
    samples_of,
)
from agrotools_benchmarks._dialogs.plugin_parts import ImageCallsSlot

AnswerKind = Literal["objective", "subjective", "image"]
ANSWER_TYPES: Mapping[AnswerKind, AnswerType] = {"objective": "exact", "image": "image"}
"""Answer type of the samples of each kind; open text for others."""
_MISSING = object()
_KINDS: Mapping[str, str] = {"image": "image", "video": "video", "table": "table"}


class Gold(NamedTuple):
    """Slot and kind of an answer."""

    kind: AnswerKind
    slot: Slot

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> "Gold":
        """Return the gold of an answer that is compared with ``texts``."""
        return cls(
            "subjective", ReferenceTextsSlot(name="answer", label="the answer", values=tuple(texts))
        )


@dataclass(frozen=True)
class DialogForm:
    """Names, categories and file rules of a benchmark's samples."""

    image_tools: Collection[str]
    """Tools that return an image."""
    tools: Sequence[str]
    """Tools of the benchmark, offered with entries that list none."""
    prefix: str
    """Prefix of sample ids."""
    family: str
    source: str
    folder: str = ""
    """Folder below the root that file paths are relative to."""


def read_entries(
    entries: Mapping[str, Any],
    form: DialogForm,
    table: FileTable,
    with_groups: Callable[[Sample], Sample],
    findings: Findings,
    progress: Progress,
    what: str = "entries",
) -> list[Sample]:
    """Return the samples of all usable entries, each passed through ``with_groups``; see :func:`samples_of`.

    ``task_type`` of a sample is the kind of its answer until then.
    """
    samples = samples_of(entries, partial(_read_entry, form, table), findings, progress, what)
    return [with_groups(sample) for sample in samples]


def _read_entry(
    form: DialogForm, table: FileTable, position: int, entry: Any, findings: Findings
) -> Sample | None:
    """Return the sample of an entry. If the entry cannot be used, return None and add all reasons to ``findings``."""
    if not is_object(entry):
        findings.fault("it is no object")
        return None
    files, names = _files(entry.get("files"), form, table, findings)
    turn = _first_turn(entry.get("dialogs"), findings)
    steps = _steps(turn.messages, names, findings) if turn else []
    called = [step.tool for step in steps]
    toolset = _toolset(entry.get("tools"), called, findings, form)
    asked = [
        item.get("question") if is_object(item) else item
        for item in _items(entry.get("evaluation"))
    ]
    questions = [
        text for text in asked if is_text(text) and text.strip()
    ]  # of ThinkGeo, to a judge
    try:
        gold = _gold(
            entry.get("gt_answer", _MISSING),
            questions,
            form.image_tools,
            called,
            turn.final_text if turn else "",
            findings,
        )
    except BenchmarkError as error:
        findings.fault(error.message)
        return None
    if findings.broken or turn is None:
        return None
    if questions and gold.kind != "objective":
        findings.note(
            "its questions to the judge are not asked: only answers with keywords are judged"
        )
    metadata: dict[str, JsonValue] = {
        "entry": findings.key,
        "position": position,
        "final_text": turn.final_text,
    }
    if turn.user_turns > 1:
        metadata["user_turns"] = turn.user_turns
    if any(file.path != path for path, file in zip(names, files, strict=True)):
        metadata["published_paths"] = {name: path for path, name in names.items()}
    return sample_of(
        form.prefix,
        gold,
        findings,
        query=turn.query,
        files=tuple(files),
        family=form.family,
        source=form.source,
        toolset=tuple(toolset),
        reference=ReferenceTrajectory(steps=tuple(steps)),
        no_tool_eligible=gold.kind != "image" and all(file.kind == "image" for file in files),
        metadata=metadata,
    )


def sample_of(prefix: str, gold: Gold, findings: Findings, **fields: Any) -> Sample | None:
    """Return the sample of an entry; if it is not a valid one, return None and add the reason to ``findings``.

    ``prefix``: prefix of sample ids; ``fields``: fields of the sample that do not follow from ``gold``.
    """
    try:
        return Sample(
            id=f"{prefix}-{safe_name(findings.key.zfill(3))}",
            task_type=gold.kind,
            answer_type=ANSWER_TYPES.get(gold.kind, "open_text"),
            template=f"{prefix}_{gold.kind}",
            answer=(gold.slot,),
            **fields,
        )
    except ValidationError as error:
        findings.fault(shorten(first_error(error), 120))
        return None


def _items(value: Any) -> list[Any]:
    """Return the items of a list; empty for any other value."""
    return value if is_list(value) else []


def _files(
    value: Any, form: DialogForm, table: FileTable, findings: Findings
) -> tuple[list[SampleFile], dict[str, str]]:
    """Return the files, and a mapping from their published paths to their names in the sample."""
    files: list[SampleFile] = []
    names: dict[str, str] = {}
    if value is not None and not is_list(value):
        findings.fault("its files are no list")
    for item in _items(value):
        path: Any = item.get("path") if is_object(item) else item
        if not is_text(path):
            findings.fault(f"a file without a path: {quote(item)}")
            continue
        if path in names:
            findings.note("it names a file twice")
            continue
        name = safe_name(path, names.values())
        is_video = PurePosixPath(path).suffix.lower() in VIDEO_SUFFIXES - {".gif"}
        kind: Any = (
            "video"
            if is_video
            else _KINDS.get(str(item.get("type") if is_object(item) else None), "image")
        )
        try:
            relative = table.find(path, (form.folder,))
            file = (
                table.image(relative, name)
                if kind == "image"
                else table.other(relative, name, kind)
            )
        except BenchmarkError as error:
            findings.fault(error_text(error))
            continue
        names[path] = name
        files.append(file)
    return files, names


def _toolset(value: Any, called: Sequence[str], findings: Findings, form: DialogForm) -> list[str]:
    """Return the tools that the entry lists, in its order, followed by those that it calls without listing them.

    An entry that lists none is offered all tools of the benchmark, since those it calls are part of the solution.
    """
    items = (
        [*value] if is_object(value) else _items(value)
    )  # an object has the tools by name, as in toolmeta.json
    names = [item.get("name") if is_object(item) else item for item in items]
    if not all(is_text(name) and name.strip() for name in names):
        findings.fault("a tool without a name")
    listed = [str(name).strip() for name in names]
    if not listed and not findings.broken:
        findings.note("it lists no tools and is offered all tools of the benchmark")
    return offered_tools(listed or form.tools, called, findings)


def offered_tools(listed: Sequence[str], called: Sequence[str], findings: Findings) -> list[str]:
    """Return the listed tools, followed by those that are called without being listed. Unknown ones are faults."""
    if any(tool not in listed for tool in called):
        findings.note("it calls a tool that it does not list")
    tools = list(dict.fromkeys([*listed, *called]))
    for tool in tools:
        if tool not in TOOLS:
            findings.fault(f"there is no tool {quote(tool)}")
    return tools


class _Turn(NamedTuple):
    """Question of a dialog with the messages that follow it, and the number of questions in the whole dialog."""

    query: str
    messages: list[dict[str, Any]]
    """Messages after the question, up to the next one."""
    final_text: str
    user_turns: int


def _first_turn(dialogs: Any, findings: Findings) -> _Turn | None:
    """Return the first question of a dialog with the following messages; None if there is no question."""
    if not is_list(dialogs) or not dialogs:
        findings.fault("it has no dialogs")
        return None
    messages: list[dict[str, Any]] = [message for message in dialogs if is_object(message)]
    user_places = [place for place, message in enumerate(messages) if message.get("role") == "user"]
    query = text_of(messages[user_places[0]].get("content")).strip() if user_places else ""
    if not query:
        findings.fault("its dialog asks no question")
        return None
    if len(user_places) > 1:
        findings.note("only the first of its user turns is asked and scored")
    following = messages[
        user_places[0] + 1 : user_places[1] if len(user_places) > 1 else len(messages)
    ]
    of_assistant = [message for message in following if message.get("role") == "assistant"]
    answers = [
        text_of(message.get("content")) for message in of_assistant if not message.get("tool_calls")
    ]
    if not answers:
        findings.note("its dialog ends without a final answer")
    return _Turn(query, following, answers[-1] if answers else "", len(user_places))


def _steps(
    messages: Sequence[dict[str, Any]],
    names: Mapping[str, str],
    findings: Findings,
) -> list[ReferenceStep]:
    """Return the calls of a turn as reference steps."""
    steps: list[ReferenceStep] = []
    for message, following in zip(messages, [*messages[1:], {}], strict=False):
        calls = message.get("tool_calls")
        if message.get("role") != "assistant" or not calls:
            continue
        call = _call(calls, names, findings, len(steps) + 1)
        if call is None:
            continue
        tool, arguments = call
        returned = following if following.get("role") == "tool" else {}
        if not returned:
            findings.note("a call has no recorded observation")
        elif returned.get("name") not in (None, tool):
            findings.note("an observation is that of another tool than was called")
        observation = _observation(returned.get("content"))
        text: Any = message.get("thought")
        thought = text if is_text(text) else ""
        steps.append(
            ReferenceStep(tool=tool, arguments=arguments, observation=observation, thought=thought)
        )
    if not steps:
        findings.note("its dialog calls no tool")
    if any(not step.thought for step in steps):
        findings.note("some steps have no thought")
    return steps


def _call(
    calls: Any, names: Mapping[str, str], findings: Findings, number: int
) -> tuple[str, Arguments] | None:
    """Return the tool and the arguments of the first call of a message."""
    several: list[Any] = calls if is_list(calls) else [calls]
    if len(several) > 1:
        findings.note("of several calls in one message the first counts")
    first: Any = several[0] if is_object(several[0]) else {}
    function: Any = first["function"] if is_object(first.get("function")) else first
    tool: Any = function.get("name")
    arguments: Any = function.get("arguments")
    if not is_text(tool) or not tool.strip():
        findings.fault(f"step {number} names no tool")
        return None
    if is_text(arguments):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            arguments = arguments.strip() and {"": arguments}
    if arguments is None or arguments == "":
        arguments = {}
    if not is_object(arguments) or "" in arguments:
        findings.fault(f"the arguments of step {number} are no object")
        return None
    every = {plain_path(path): name for path, name in names.items()} | {**names}
    return tool.strip(), {name: _replace_paths(value, every) for name, value in arguments.items()}


def _replace_paths(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    """Replace published file paths in ``value`` by the names in the sample; other texts are unchanged."""
    if isinstance(value, list):
        return [_replace_paths(item, names) for item in value]
    if not isinstance(value, str):
        return value
    return names.get(value) or names.get(plain_path(value)) or value


def _observation(content: Any) -> Observation:
    """Return the output of a tool as ``{"text": ...}`` or ``{"image": published path}``; empty if there is none."""
    if content is None:
        return Observation(result={})
    kind = "text"
    if is_object(content) and "content" in content:
        kind = "image" if content.get("type") == "image" and is_text(content["content"]) else "text"
        content = content["content"]
    return Observation(result={kind: text_of(content)})


def text_of(content: Any) -> str:
    """Return the text of a message: the string itself, the joined texts of its parts, or its content as JSON.

    Content that is nested too deeply gives an empty text.
    """
    if is_text(content) or content is None:
        return content or ""
    if is_list(content) and content and all(map(is_object, content)):
        texts = [part.get("text", part.get("content")) for part in content]
        if all(map(is_text, texts)):
            return "\n".join(texts)
    try:
        return orjson.dumps(content).decode()
    except TypeError:
        return ""


def _gold(
    answer: Any,
    questions: Sequence[str],
    image_tools: Iterable[str],
    called: Sequence[str],
    final_text: str,
    findings: Findings,
) -> Gold:
    """Read the gold of an entry from its ``gt_answer``.

    An object with ``whitelist`` is objective, a list of texts is subjective, and null, ``[]`` or ``{}`` means an image.
    If the answer is empty and no tool of ``called`` creates an image, the final text of the dialog is the answer.
    """
    if answer is _MISSING:
        raise BenchmarkError("it has no gt_answer")
    if answer is None or answer in ([], {}, ""):
        if used := tuple(dict.fromkeys(tool for tool in called if tool in set(image_tools))):
            return Gold("image", ImageCallsSlot(name="image", label="the image", tools=used))
        if not final_text.strip():
            raise BenchmarkError(
                "it has no gt_answer, no call makes an image, and the dialog ends without a text"
            )
        findings.note(
            "it has no gt_answer, and no call makes an image: the final text of the dialog is its answer"
        )
        return Gold.of_texts([final_text])
    if is_object(answer):
        if "whitelist" not in answer:
            raise BenchmarkError(f"its gt_answer has no whitelist: {quote(list(answer))}")
        lists: dict[str, Any] = {
            which: _groups(answer.get(which), which) for which in ("whitelist", "blacklist")
        }
        return Gold(
            "objective",
            KeywordsSlot(name="answer", label="the answer", **lists, questions=tuple(questions)),
        )
    if isinstance(answer, str | int | float) and not isinstance(answer, bool):
        findings.note("gt_answer is one value, not a list of texts")
        return Gold.of_texts([str(answer)])
    if is_list(answer) and all(isinstance(text, str | int | float) for text in _items(answer)):
        if texts := [str(text) for text in _items(answer) if str(text).strip()]:
            return Gold.of_texts(texts)
        raise BenchmarkError("the texts of its gt_answer are all empty")
    raise BenchmarkError(f"its gt_answer has an unknown form: {quote(answer)}")


def _groups(value: Any, which: str) -> tuple[tuple[str, ...], ...]:
    """Return groups of aliases as they were written; numbers become text."""
    if value is None and which == "blacklist":
        return ()
    if not is_list(value) or not all(is_list(group) for group in _items(value)):
        raise BenchmarkError(f"its {which} is no list of lists: {quote(value)}")
    for group in _items(value):
        if not all(isinstance(alias, str | int | float) for alias in group):
            raise BenchmarkError(f"its {which} holds something else than texts: {quote(group)}")
    return tuple(tuple(map(str, group)) for group in _items(value))
