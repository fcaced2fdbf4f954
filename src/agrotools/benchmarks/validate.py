"""``agrotools validate``: all that is wrong with a benchmark folder, in one pass."""

import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue, TypeAdapter, ValidationError

from agrotools.benchmarks.checks.answers import check_answer
from agrotools.benchmarks.checks.fault import Checked, Fault, Tools, schema_faults
from agrotools.benchmarks.checks.files import check_described, check_files
from agrotools.benchmarks.checks.leaks import check_leaks
from agrotools.benchmarks.checks.reference import check_reference
from agrotools.core import BenchmarkError, Sample
from agrotools.core.taxonomy import PlotSpec
from agrotools.formats.benchmark import HEADER_FILE, SAMPLES_FILE, BenchmarkHeader
from agrotools.tools import get_tool


def validate_folder(path: str | Path) -> list[Fault]:
    """Every fault of the benchmark in folder ``path``; an empty list means that it is sound.

    Never stops at the first fault: a broken line hides only itself, a broken header only what depends on it.

    Raises:
        BenchmarkError: ``path`` is no folder.
    """
    root = Path(path).expanduser().resolve()
    if not root.is_dir():
        raise BenchmarkError(f"{path} is not a folder", hint="give the folder that holds benchmark.toml")
    tools = Tools(get_tool)
    header, faults = _checked_header(root, tools)
    hashes: dict[Path, str] = {}
    samples: list[tuple[int, Sample]] = []
    for line, sample in _checked_lines(root, faults):
        samples.append((line, sample))
        at = Checked(sample, line, root, tools, header)
        check_files(at, hashes)
        check_reference(at)
        check_answer(at)
        check_leaks(at)
        faults.extend(at.faults)
    faults.extend(_repeats(samples))
    faults.extend(check_described(root, hashes))
    return sorted(faults, key=lambda fault: (fault.file != HEADER_FILE, fault.line or 0))


def format_schema() -> dict[str, JsonValue]:
    """JSON Schema of the format: one property for each file of a benchmark folder."""
    header = TypeAdapter(BenchmarkHeader).json_schema(ref_template="#/$defs/{model}")
    sample = TypeAdapter(Sample).json_schema(by_alias=True, ref_template="#/$defs/{model}")
    plot = TypeAdapter(PlotSpec).json_schema(ref_template="#/$defs/{model}")
    definitions = {**header.pop("$defs", {}), **plot.pop("$defs", {}), **sample.pop("$defs", {})}
    definitions |= {"Sample": sample, "BenchmarkHeader": header, "PlotSpec": plot}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "agrotools benchmark folder",
        "description": "benchmark.toml (as an object), samples.jsonl (one object on each line), and the folder files/",
        "type": "object",
        "required": [HEADER_FILE, SAMPLES_FILE],
        "properties": {
            HEADER_FILE: {"$ref": "#/$defs/BenchmarkHeader"},
            SAMPLES_FILE: {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Sample"}},
        },
        "$defs": definitions,
    }


def _checked_header(root: Path, tools: Tools) -> tuple[BenchmarkHeader | None, list[Fault]]:
    path = root / HEADER_FILE

    def fault(code: str, message: str, hint: str, field: str | None = None) -> Fault:
        return Fault(code=code, message=message, hint=hint, file=HEADER_FILE, field=field)

    if not path.is_file():
        return None, [fault("missing_header", f"there is no {HEADER_FILE}", "add it: name, version, licence, toolset")]
    try:
        data = orjson.dumps(tomllib.loads(path.read_text("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, TypeError, RecursionError) as error:
        return None, [fault("broken_toml", str(error), "correct the TOML")]
    try:
        header = BenchmarkHeader.model_validate_json(data)
    except ValidationError as error:
        return None, list(schema_faults(error, HEADER_FILE))
    faults = [
        fault(
            "unknown_tool", f"there is no tool {name!r}", "`agrotools tools list` names the tools", f"toolset[{index}]"
        )
        for index, name in enumerate(header.toolset)
        if tools.get(name) is None
    ]
    for field, values in (("toolset", header.toolset), ("modes", header.modes)):
        if len(set(values)) < len(values):
            faults.append(fault("repeated_value", f"{field} names something twice", "name each once", field))
    return header, faults


def _checked_lines(root: Path, faults: list[Fault]) -> Iterable[tuple[int, Sample]]:
    path = root / SAMPLES_FILE
    if not path.is_file():
        hint = "add it: one sample as JSON on each line"
        faults.append(
            Fault(code="missing_samples", message=f"there is no {SAMPLES_FILE}", hint=hint, file=SAMPLES_FILE)
        )
        return
    has_lines = False
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            has_lines = True
            sample = _checked_line(line, number, faults)
            if sample is not None:
                yield number, sample
    if not has_lines:
        hint = "add one sample as JSON on each line"
        faults.append(Fault(code="no_samples", message="it holds no sample", hint=hint, file=SAMPLES_FILE))


def _checked_line(line: bytes, number: int, faults: list[Fault]) -> Sample | None:
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        hint = "write one JSON object on one line"
        faults.append(Fault(code="broken_json", message=str(error), hint=hint, file=SAMPLES_FILE, line=number))
        return None
    try:
        return Sample.model_validate_json(line)
    except ValidationError as error:
        name = raw.get("id") if isinstance(raw, dict) else None
        faults.extend(schema_faults(error, SAMPLES_FILE, number, name if isinstance(name, str) else None))
        return None


def _repeats(samples: Sequence[tuple[int, Sample]]) -> Iterable[Fault]:
    """Ids used twice, and questions asked twice about the same files."""
    ids: dict[str, int] = {}
    questions: dict[tuple[str, ...], tuple[int, str]] = {}
    for line, sample in samples:
        if sample.id in ids:
            message = f"line {ids[sample.id]} has the same id"
            yield Fault(code="duplicate_id", message=message, hint="give each sample its own id", file=SAMPLES_FILE,
                        line=line, sample=sample.id, field="id")  # fmt: skip
        ids.setdefault(sample.id, line)
        key = (" ".join(sample.query.casefold().split()), *sorted(file.sha256 or file.path for file in sample.files))
        if key in questions:
            message = f"line {questions[key][0]} ({questions[key][1]}) asks the same about the same files"
            yield Fault(code="duplicate_question", message=message, hint="remove one of them", file=SAMPLES_FILE,
                        line=line, sample=sample.id, field="query")  # fmt: skip
        questions.setdefault(key, (line, sample.id))


def first_form_remarks(root: Path) -> list[str]:
    """Remarks on a folder whose lines and header can be read; what cannot is passed over, as a fault tells of it."""
    remarks: list[str] = []
    of_first_form = 0
    with suppress(OSError), (root / SAMPLES_FILE).open("rb") as file:
        for line in file:
            with suppress(orjson.JSONDecodeError):
                of_first_form += _has_first_form(orjson.loads(line)) if line.strip() else 0
    if of_first_form:
        remarks.append(
            f"{of_first_form} samples have options in the first form (distractors and no choices): their prompts name "
            "what it holds, and aliases are known of the right option alone; build the benchmark again for the present"
        )
    with suppress(OSError, ValueError):
        if not tomllib.loads((root / HEADER_FILE).read_text("utf-8")).get("canary"):
            remarks.append("it has no canary: a leak of it into training data cannot be found")
    return remarks


def _has_first_form(sample: Any) -> bool:
    slots = sample.get("answer") if isinstance(sample, dict) else None
    return any(
        isinstance(slot, dict) and slot.get("type") == "exact" and (slot.get("distractors") or _listed(slot))
        for slot in (slots if isinstance(slots, list) else ())
    )


def _listed(slot: dict[str, Any]) -> bool:
    return bool(slot.get("aliases")) and isinstance(slot["aliases"], list)
