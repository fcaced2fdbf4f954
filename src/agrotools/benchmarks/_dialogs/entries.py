"""Entries of GTA, ThinkGeo and GTA-2: tools, files, a dialog, and a gold answer."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple, cast

from pydantic import JsonValue, ValidationError

from agrotools.benchmarks._dialogs.dialogs import ANSWER_TYPES, MISSING, AnswerKind, Gold, first_turn, gold_of, steps_of
from agrotools.benchmarks._dialogs.files import VIDEO_SUFFIXES, FileTable, kind_of, safe_name
from agrotools.benchmarks._dialogs.findings import (
    TOO_DEEP,
    EntryFindings,
    error_text,
    first_reason,
    is_too_deep,
    quoted,
    shortened,
)
from agrotools.core import BenchmarkError, ReferenceTrajectory, Sample, SampleFile
from agrotools.tools import TOOLS

_KINDS: Mapping[str, str] = {"image": "image", "video": "video", "table": "table"}


@dataclass(frozen=True)
class DialogForm:
    """Names, categories and file rules of a benchmark's samples."""

    image_tools: Collection[str]
    """The tools that return an image."""
    prefix: str
    """Begins the ids of samples."""
    family: str
    source: str
    folder: str = ""
    """Folders below the root that paths of files are relative to."""
    any_file: bool = False
    """True if files may be of any kind; otherwise all but videos and declared tables are images."""
    lacks_tools: bool = False
    """True if entries may list tools that are not available here; those are not offered."""
    tools: tuple[str, ...] | None = None
    """Tools that every entry is offered, whatever it lists itself."""
    gold: Callable[[Mapping[str, Any], Callable[[str], None]], Gold] | None = None
    """Reads the gold of an entry (the second argument takes notes), in place of ``gt_answer``. Such entries need have
    neither reference calls nor a final answer."""


class ReadEntry(NamedTuple):
    """A sample with what else its groups may follow from."""

    sample: Sample
    kind: AnswerKind


def read_entry(
    position: int, entry: Any, form: DialogForm, table: FileTable, findings: EntryFindings
) -> ReadEntry | None:
    """The sample of an entry; None where it cannot be used, for which ``findings`` is then told every reason."""
    if not isinstance(entry, dict):
        findings.fault("it is no object")
        return None
    if is_too_deep(entry):
        findings.fault(TOO_DEEP)
        return None
    content = cast("dict[str, Any]", entry)
    files, names = _files(content.get("files"), form, table, findings)
    open_ended = form.gold is not None
    turn = first_turn(content.get("dialogs"), findings, open_ended=open_ended)
    steps = steps_of(turn.messages, names, findings, open_ended=open_ended) if turn else []
    called = [step.tool for step in steps]
    toolset = [*form.tools] if form.tools is not None else _toolset(content.get("tools"), called, findings, form)
    try:
        questions = _questions(content.get("evaluation"), findings)
        final = turn.final_text if turn else ""
        if form.gold is not None:
            gold = form.gold(content, findings.note)
        else:
            gold = gold_of(content.get("gt_answer", MISSING), questions, form.image_tools, called, final)
    except BenchmarkError as error:
        findings.fault(error.message)
        return None
    if findings.broken or turn is None:
        return None
    for note in gold.notes:
        findings.note(note)
    if questions and gold.kind != "objective":
        findings.note("its questions to the judge are not asked: only answers with keywords are judged")
    metadata: dict[str, JsonValue] = {"entry": findings.key, "position": position, "final_text": turn.final_text}
    if turn.user_turns > 1:
        metadata["user_turns"] = turn.user_turns
    if any(file.path != path for path, file in zip(names, files, strict=True)):
        metadata["published_paths"] = {name: path for path, name in names.items()}
    try:
        sample = Sample(
            id=f"{form.prefix}-{safe_name(findings.key.zfill(3))}",
            query=turn.query,
            files=tuple(files),
            family=form.family,
            task_type=gold.kind,
            answer_type=ANSWER_TYPES[gold.kind],
            template=f"{form.prefix}_{gold.kind}",
            source=form.source,
            toolset=tuple(toolset),
            reference=ReferenceTrajectory(steps=tuple(steps)) if steps or not open_ended else None,
            answer=(gold.slot,),
            no_tool_eligible=gold.kind not in ("image", "workflow") and all(file.kind == "image" for file in files),
            metadata=metadata,
        )
    except (ValidationError, RecursionError) as error:
        findings.fault(shortened(first_reason(error), 120))
        return None
    return ReadEntry(sample, gold.kind)


def _files(
    value: Any, form: DialogForm, table: FileTable, findings: EntryFindings
) -> tuple[list[SampleFile], dict[str, str]]:
    """The files, and by the published path of each its name in the sample."""
    files: list[SampleFile] = []
    names: dict[str, str] = {}
    if value is None:
        return files, names
    if not isinstance(value, list):
        findings.fault("its files are no list")
        return files, names
    for item in cast("list[Any]", value):
        path = cast("dict[str, Any]", item).get("path") if isinstance(item, dict) else item
        if not isinstance(path, str):
            findings.fault(f"a file without a path: {quoted(item)}")
            continue
        if path in names:
            findings.note("it names a file twice")
            continue
        name = safe_name(path, names.values())
        item_type = cast("dict[str, Any]", item).get("type") if isinstance(item, dict) else None
        suffix = PurePosixPath(path).suffix.lower()
        kind = "video" if suffix in VIDEO_SUFFIXES - {".gif"} else _KINDS.get(str(item_type), "image")
        kind = kind_of(path) if form.any_file else kind
        try:
            relative = table.find(path, (form.folder,))
            file = table.image(relative, name) if kind == "image" else table.other(relative, name, cast("Any", kind))
        except BenchmarkError as error:
            findings.fault(error_text(error))
            continue
        names[path] = name
        files.append(file)
    return files, names


def _toolset(value: Any, called: Sequence[str], findings: EntryFindings, form: DialogForm) -> list[str]:
    """The entry's own tools in the order in which it lists them, then those that it calls and does not list."""
    listed: list[str] = []
    if isinstance(value, dict):  # by name, as a toolmeta.json has them
        value = [*cast("dict[str, Any]", value)]
    elif value is not None and not isinstance(value, list):
        findings.fault(f"its tools are no list: {quoted(value)}")
    for item in cast("list[Any]", value) if isinstance(value, list) else []:
        name = cast("dict[str, Any]", item).get("name") if isinstance(item, dict) else item
        if isinstance(name, str) and name.strip():
            listed.append(name.strip())
        else:
            findings.fault(f"a tool without a name: {quoted(item)}")
    if any(tool not in listed for tool in called) and listed:
        findings.note("it calls a tool that it does not list")
    tools = list(dict.fromkeys([*listed, *called]))
    missing = [tool for tool in tools if tool not in TOOLS]
    if form.lacks_tools:
        if missing:
            findings.note("tools that are not here are not offered")
        return [tool for tool in tools if tool not in missing]
    for tool in missing:
        findings.fault(f"there is no tool {quoted(tool)}")
    if not tools and not findings.broken:
        findings.fault("it lists no tools and calls none")
    return tools


def _questions(value: Any, findings: EntryFindings) -> list[str]:
    """ThinkGeo's questions to a judge."""
    questions: list[str] = []
    if isinstance(value, dict):
        value = [cast("dict[str, Any]", value)]
    elif value is not None and not isinstance(value, list):
        findings.note("its questions to the judge are no list")
    for item in cast("list[Any]", value) if isinstance(value, list) else []:
        text = cast("dict[str, Any]", item).get("question") if isinstance(item, dict) else item
        if isinstance(text, str) and text.strip():
            questions.append(text)
        else:
            findings.note("a question to the judge is no text")
    return questions
