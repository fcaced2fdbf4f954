"""Benchmark as GTA-shaped JSON: ``dataset.json``, ``toolmeta.json`` and ``image/``, in GTA's published layout.

An entry has ``tools``, ``files``, ``dialogs`` (question, calls, their results, final answer) and ``gt_answer``
(``whitelist`` and ``blacklist``, or reference texts, or null for a figure). This is less than a sample: tolerances
become a few spellings of the number, several facts become one text, and a figure becomes null.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue

from agrotools.benchmarks._dialogs.lagent_format import declared_spec
from agrotools.build.export.folder import replacing_export, write_card
from agrotools.core import (
    AbstainSlot,
    Arguments,
    BenchmarkError,
    BooleanSlot,
    ChoiceSetSlot,
    ExactSlot,
    FileSlot,
    KeywordsSlot,
    Observation,
    OpenTextSlot,
    ReferenceStep,
    ReferenceTextsSlot,
    Sample,
    SampleFile,
    Slot,
    ToleranceSlot,
    ToolSpec,
)
from agrotools.core.record import literal_value
from agrotools.formats.benchmark import BenchmarkHeader
from agrotools.text.answer_form import format_answer
from agrotools.tools import get_tool

DATASET_FILE, TOOLS_FILE, IMAGE_FOLDER = "dataset.json", "toolmeta.json", "image"
_USE = "`dataset.json` has the shape of GTA (open-compass/GTA)."
_FIGURE_SAVED = "The image is saved."


def export_gta(root: Path, header: BenchmarkHeader, samples: Sequence[Sample], out: Path) -> None:
    """Write the benchmark to ``out``, completely or not at all; UsageError for unknown tools, else BenchmarkError."""
    called = (step.tool for sample in samples if sample.reference for step in sample.reference.steps)
    used = dict.fromkeys((*header.toolset, *(name for sample in samples for name in sample.toolset), *called))
    meta = {name: tool_meta(get_tool(name).spec) for name in used}
    with replacing_export(out, "gta") as partial:
        for sample in samples:
            (partial / IMAGE_FOLDER / sample.id).mkdir(parents=True)
            for file in sample.files:
                if (place := partial / gta_path(sample, file)).exists():
                    raise BenchmarkError(f"sample {sample.id}: two files are called {file.name!r}", hint="rename one")
                shutil.copyfile(root / file.path, place)
        entries = {str(number): gta_entry(sample, meta) for number, sample in enumerate(samples)}
        (partial / DATASET_FILE).write_bytes(orjson.dumps(entries, option=orjson.OPT_INDENT_2))
        (partial / TOOLS_FILE).write_bytes(orjson.dumps(meta, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        write_card(partial, header, samples, use=_USE)


def gta_path(sample: Sample, file: SampleFile) -> str:
    """Return the path of a sample's file in the export; it ends in the name used in the question."""
    return f"{IMAGE_FOLDER}/{sample.id}/{file.name}"


def gta_entry(sample: Sample, meta: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of ``sample``; ``meta`` contains the result of :func:`tool_meta` by tool name."""
    names = {file.name: gta_path(sample, file) for file in sample.files}
    dialogs: list[dict[str, Any]] = [{"role": "user", "content": sample.query}]
    for step in sample.reference.steps if sample.reference else ():
        called = {"name": step.tool, "arguments": gta_arguments(step, names)}
        message: dict[str, Any] = {"role": "assistant", "tool_calls": [{"type": "function", "function": called}]}
        dialogs.append(message | ({"thought": step.thought} if step.thought else {}))
        content = {"type": "text", "content": _observed(step.observation)}
        dialogs.append({"role": "tool", "name": step.tool, "content": content})
    dialogs.append({"role": "assistant", "content": _final(sample.answer)})
    return {
        "tools": [meta[name] for name in sample.toolset],
        "files": [{"type": file.kind, "path": names[file.name], "url": None} for file in sample.files],
        "dialogs": dialogs,
        "gt_answer": gt_answer(sample.answer),
    }


def gta_arguments(step: ReferenceStep, names: dict[str, str]) -> Arguments:
    """Return the arguments of a reference step as literal values, with files by their path in the export."""
    agreement = get_tool(step.tool).spec.agreement
    literals = {argument: literal_value(value) for argument, value in step.arguments.items()}
    files = ((name, value) for name, value in literals.items() if agreement.get(name) == "file")
    return literals | {name: names.get(value, value) for name, value in files if isinstance(value, str)}


def gt_answer(slots: Sequence[Slot]) -> dict[str, Any] | list[str] | None:
    """Return the gold in GTA's three forms: lists of spellings (closed answers), texts (open ones), None (images)."""
    closed = [slot for slot in slots if not slot.made_by_tools and not _reference_texts(slot)]
    if closed:
        groups = [group for slot in closed for group in _whitelist(slot)]
        wrong = [word for slot in closed if isinstance(slot, ExactSlot) for word in slot.distractors]
        closed_groups = [[*group] for slot in closed if isinstance(slot, KeywordsSlot) for group in slot.blacklist]
        return {"whitelist": groups, "blacklist": [*closed_groups, *([wrong] if wrong else [])] or None}
    return [text for slot in slots for text in _reference_texts(slot)] or None


def _whitelist(slot: Slot) -> list[list[str]]:
    """Return groups of spellings; a correct answer contains one spelling of each group."""
    if isinstance(slot, ChoiceSetSlot):
        return [[member, *slot.aliases.get(member, ())] for member in slot.value]
    if isinstance(slot, BooleanSlot):
        return [["yes", "true"] if slot.value else ["no", "false"]]
    if isinstance(slot, ToleranceSlot):
        near = (f"{slot.value:g}", *(f"{slot.value:.{digits}f}" for digits in (3, 2, 1, 0)), str(slot.value))
        return [[*dict.fromkeys(text for text in near if abs(float(text) - slot.value) <= slot.margin)] or [near[-1]]]
    if isinstance(slot, ExactSlot):
        return [[*dict.fromkeys(slot.names)]]
    if isinstance(slot, KeywordsSlot):
        return [[*group] for group in slot.whitelist]
    if isinstance(slot, AbstainSlot):
        return [["cannot be determined", "无法确定"]]
    return [[slot.value]] if isinstance(slot, FileSlot) else []


def _reference_texts(slot: Slot) -> list[str]:
    if isinstance(slot, OpenTextSlot):
        return ["; ".join(fact.phrases[0] for fact in slot.facts)]
    if isinstance(slot, ReferenceTextsSlot):
        return [*slot.values]
    return [slot.right_text] if slot.free_text and slot.right_text is not None else []


def _final(slots: Sequence[Slot]) -> str:
    values: dict[str, JsonValue] = {
        slot.name: [*value] if isinstance(value, tuple) else value
        for slot in slots
        if not slot.made_by_tools
        and not isinstance(slot, KeywordsSlot)
        and not _reference_texts(slot)
        and (value := getattr(slot, "value", None)) is not None
    }
    texts = [text for slot in slots for text in _reference_texts(slot)[:1]]
    texts += [", ".join(group[0] for group in _whitelist(slot) if group) for slot in slots if slot.type == "keywords"]
    figure = [_FIGURE_SAVED] if any(slot.made_by_tools and not slot.judged for slot in slots) else []
    return "\n".join(text for text in (*figure, *texts, format_answer(slots, values)) if text)


def _observed(observation: Observation | None) -> str:
    if observation is None:
        return ""
    error = observation.error and {"error": observation.error.model_dump(mode="json", exclude_none=True)}
    return orjson.dumps(error or observation.result).decode()


def tool_meta(spec: ToolSpec) -> dict[str, Any]:
    """Return the metadata of a tool in GTA's form: inputs with type, default and description, and one text output."""
    inputs = [
        {"name": each.name, "type": each.type, "description": each.description, "optional": not each.required}
        | {"default": spec.defaults.get(each.name), "filetype": None}
        for each in declared_spec(spec).parameters
    ]
    output = {"type": "text", "name": None, "description": "JSON", "optional": False, "default": None, "filetype": None}
    return {"name": spec.name, "description": spec.description, "inputs": inputs, "outputs": [output]}
