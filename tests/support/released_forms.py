"""Six questions, as eight people may release them: the same questions, calls and answers in files of other forms.

Each function writes a form into a folder. ``differences`` says what a loaded benchmark has otherwise.
"""

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from agrotools.core import FAMILY_OF_TASK_TYPE, Sample


class Truth(NamedTuple):
    """One question. ``margin``: tolerance in the unit of the answer; ``chart``: series of a figure."""

    id: str
    question: str
    task: str
    family: str
    pictures: tuple[str, ...]
    calls: tuple[tuple[str, dict[str, Any], Any], ...]
    kind: str
    gold: Any
    margin: float = 0.0
    tolerance: Any = None
    """Tolerance as a share of the value, or as a text with its sign."""
    unit: str | None = None
    said: str = ""


_CHART = {"kind": "bar", "x": ["field", "crop"], "y": [12.0, 30.0], "title": "Weeds by plot"}
TRUTHS = (
    Truth(
        "q001",
        "Which insect is feeding on this rice leaf, and what is it called?",
        "Pest Identification and Diagnosis",
        "Recognition and Retrieval",
        ("00002.png",),
        (("PestDiagnosis", {"image": "00002.png"}, {"label": "rice leaf roller", "score": 0.91}),),
        "exact",
        "rice leaf roller",
        said="It is the rice leaf roller.",
    ),
    Truth(
        "q002",
        "How much larger is the mean apple in the first photo than in the second, in millimetres?",
        "Apple Size Estimation",
        "Counting and Measurement",
        ("tree_a.png", "tree_b.png"),
        (
            ("FruitSize", {"image": "tree_a.png", "fruit": "apple"}, {"mean_mm": 80.5}),
            ("FruitSize", {"image": "tree_b.png", "fruit": "apple"}, {"mean_mm": 72.5}),
            ("Calculator", {"expression": "80.5 - 72.5"}, {"value": 8.0}),
        ),
        "tolerance",
        8.0,
        margin=0.4,
        tolerance=0.05,
        unit="mm",
        said="The apples differ by 8.0 mm.",
    ),
    Truth(
        "q003",
        "How many wheat heads can be seen in this picture?",
        "Fruit and Crop Organ Counting",
        "Counting and Measurement",
        ("wheat_17.png",),
        (("ObjectCounter", {"image": "wheat_17.png", "object": "wheat head"}, {"count": 14}),),
        "tolerance",
        14,
        margin=3,
        tolerance="±3",
        said="There are 14 wheat heads.",
    ),
    Truth(
        "q004",
        "How large is the part of the leaf that lesions cover, in square millimetres?",
        "Lesion Mask & Severity Analysis",
        "Segmentation Interpretation",
        ("leaf_9.png",),
        (
            ("LesionAnalysis", {"image": "leaf_9.png"}, {"lesion_px": 124, "mm2_per_px": 0.1}),
            ("Calculator", {"expression": "124 * 0.1"}, {"value": 12.4}),
        ),
        "tolerance",
        12.4,
        margin=0.62,
        tolerance="5%",
        unit="mm^2",
        said="Lesions cover 12.4 mm^2 of the leaf.",
    ),
    Truth(
        "q005",
        "What disease does this leaf show, and how should the grower treat it?",
        "Crop Disease Analysis",
        "Recognition and Retrieval",
        ("leaf_3.png",),
        (
            ("DiseaseDiagnosis", {"image": "leaf_3.png"}, {"label": "apple scab"}),
            ("KnowledgeSearch", {"query": "apple scab control"}, {"text": "Remove fallen leaves."}),
        ),
        "open_text",
        "The leaf shows apple scab. Remove fallen leaves in autumn and spray a protective fungicide.",
        said="It is apple scab: remove the leaves and spray.",
    ),
    Truth(
        "q006",
        "Draw how many weeds stand in the field and in the crop, from the two numbers of this survey.",
        "Plotting Tasks",
        "Visualization and Analytics",
        ("survey.png",),
        (
            ("ObjectCounter", {"image": "survey.png", "object": "weed"}, {"field": 12, "crop": 30}),
            ("Plot", _CHART, {"file": "plot.png"}),
        ),
        "plot",
        _CHART,
        said="The figure shows 12 and 30 weeds.",
    ),
)

_ABOUT = {
    "PestDiagnosis": ("Names the insect in a picture.", ("image",)),
    "FruitSize": ("Measures the fruits in a picture.", ("image", "fruit")),
    "Calculator": ("Computes.", ("expression",)),
    "ObjectCounter": ("Counts objects in a picture.", ("image", "object")),
    "LesionAnalysis": ("Finds the lesions of a leaf.", ("image",)),
    "DiseaseDiagnosis": ("Names the disease of a leaf.", ("image",)),
    "KnowledgeSearch": ("Looks up a topic.", ("query",)),
    "Plot": ("Draws a chart.", ("kind", "x", "y", "title")),
}


def schemas(*names: str) -> list[dict[str, Any]]:
    """Return the tools as functions of OpenAI; all of them without names."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": _ABOUT[name][0],
                "parameters": {
                    "type": "object",
                    "properties": {each: {} for each in _ABOUT[name][1]},
                },
            },
        }
        for name in names or _ABOUT
    ]


def picture(name: str) -> bytes:
    """Return a small picture, another one for each name."""
    pixels = np.random.default_rng(sum(map(ord, name))).integers(0, 255, (12, 16, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def write_pictures(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for truth in TRUTHS:
        for name in truth.pictures:
            (folder / name).write_bytes(picture(name))


def paths(truth: Truth, folder: str) -> list[str]:
    """Return the pictures of a question as paths below ``folder``."""
    return [f"{folder}/{name}" for name in truth.pictures]


def gold_text(truth: Truth) -> str:
    """Return the right answer as a cell of a table: a name as it is, else JSON."""
    return truth.gold if isinstance(truth.gold, str) else json.dumps(truth.gold)


def messages(truth: Truth, *, text_arguments: bool = True) -> list[dict[str, Any]]:
    """Return the messages of OpenAI's chat interface."""
    talk: list[dict[str, Any]] = [
        {"role": "system", "content": "You are an agronomist."},
        {"role": "user", "content": truth.question},
    ]
    for number, (tool, arguments, result) in enumerate(truth.calls):
        given = json.dumps(arguments) if text_arguments else arguments
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": tool, "arguments": given},
        }
        talk.append({"role": "assistant", "content": None, "tool_calls": [call]})
        talk.append(
            {"role": "tool", "tool_call_id": f"call_{number}", "content": json.dumps(result)}
        )
    return [*talk, {"role": "assistant", "content": truth.said}]


def react_text(truth: Truth) -> str:
    lines = [f"Question: {truth.question}"]
    for tool, arguments, result in truth.calls:
        lines += [
            f"Thought: I use a tool for this.\nAction: {tool}",
            f"Action Input: {json.dumps(arguments)}",
            f"Observation: {json.dumps(result)}",
        ]
    return "\n".join([*lines, f"Thought: I know it now.\nFinal Answer: {truth.said}"])


def differences(samples: Sequence[Sample]) -> list[str]:
    """Return what the samples of a form have otherwise than the questions."""
    by_question = {sample.query: sample for sample in samples}
    found: list[str] = []
    for truth in TRUTHS:
        sample = by_question.get(truth.question)
        if sample is None:
            found.append(f"{truth.id}: not read")
            continue
        for name, (is_so, should) in _compared(sample, truth).items():
            if is_so != should:
                found.append(f"{truth.id} {name}: {is_so} for {should}")
    return found


def _compared(sample: Sample, truth: Truth) -> dict[str, tuple[Any, Any]]:
    slot = sample.answer[0]
    steps = sample.reference.steps
    named = {path: file.name for path, file in zip(truth.pictures, sample.files, strict=False)}
    calls = [
        {key: named.get(str(value), value) for key, value in given.items()}
        for _, given, _ in truth.calls
    ]
    hashes = [hashlib.sha256(picture(name)).hexdigest() for name in truth.pictures]
    results = [step.observation is not None for step in steps]
    return {
        "pictures": ([file.sha256 for file in sample.files], hashes),
        "tools": (sample.reference.tools, tuple(call[0] for call in truth.calls)),
        "arguments": ([dict(step.arguments) for step in steps], calls),
        "results": (results, [True] * len(truth.calls)),
        "family": (sample.family, FAMILY_OF_TASK_TYPE[_TASKS[truth.task]]),
        "task": (sample.task_type, _TASKS[truth.task]),
        "kind": (sample.answer_type, truth.kind),
        "gold": (_gold(slot), _wanted(truth)),
        "margin": (round(getattr(slot, "margin", 0.0), 6), truth.margin),
        "unit": (getattr(slot, "unit", None), truth.unit),
    }


_TASKS = {
    "Pest Identification and Diagnosis": "pest_diagnosis",
    "Apple Size Estimation": "apple_size",
    "Fruit and Crop Organ Counting": "organ_counting",
    "Lesion Mask & Severity Analysis": "lesion_severity",
    "Crop Disease Analysis": "crop_disease",
    "Plotting Tasks": "plotting",
}


def _gold(slot: Any) -> Any:
    if slot.type == "open_text":
        return slot.facts[0].phrases[0]
    if slot.type == "plot":
        series = slot.value["series"][0]
        return [slot.value["kind"], list(series["x"]), list(series["y"])]
    return slot.value


def _wanted(truth: Truth) -> Any:
    if truth.kind == "plot":
        return [truth.gold["kind"], truth.gold["x"], truth.gold["y"]]
    return truth.gold


# --- eight forms of people who had not seen the loader ----------------------------------------------------------------


def parquet_with_lists_of_pictures(folder: Path) -> None:
    """Parquet with the pictures as a list of structs, steps as JSON, and an answer as a struct of text."""
    rows = [
        {
            "id": each.id,
            "question": each.question,
            "images": [{"bytes": picture(name), "path": name} for name in each.pictures],
            "task_type": each.task,
            "task_family": each.family,
            "tools": json.dumps(schemas()),
            "gold_trace": json.dumps(steps(each)),
            "answer_type": each.kind,
            "answer": json.dumps({"value": each.gold, "unit": each.unit}),
            "tolerance": json.dumps(each.tolerance),
        }
        for each in TRUTHS
    ]
    write_parquet(rows, folder / "data/test-00000-of-00001.parquet")


def steps(truth: Truth) -> list[dict[str, Any]]:
    return [
        {"step": number, "tool": tool, "arguments": arguments, "observation": result}
        for number, (tool, arguments, result) in enumerate(truth.calls, start=1)
    ]


def write_parquet(rows: list[dict[str, Any]], path: Path) -> None:
    import pyarrow.parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def pushed_to_hub(folder: Path) -> None:
    """(a) Parquet as ``push_to_hub`` writes it, with one picture column; rows of two pictures have a second one."""
    rows = [
        {
            "image": {"bytes": picture(each.pictures[0]), "path": each.pictures[0]},
            "image_2": {"bytes": picture(each.pictures[1]), "path": each.pictures[1]}
            if len(each.pictures) > 1
            else None,
            "query": each.question,
            "task": each.task,
            "family": each.family,
            "trace": [
                {"tool_name": tool, "tool_args": json.dumps(given), "tool_output": json.dumps(out)}
                for tool, given, out in each.calls
            ],
            "answer_type": {"exact": "exact-match", "tolerance": "tolerance-matched"}.get(
                each.kind, each.kind.replace("_", "-")
            ),
            "ground_truth": json.dumps(each.gold),
            "unit": each.unit,
            "tolerance": str(each.tolerance or ""),
        }
        for each in TRUTHS
    ]
    write_parquet(rows, folder / "data/train-00000-of-00001.parquet")


def picture_folder(folder: Path) -> None:
    """(b) Picture folder with ``metadata.jsonl``, messages of OpenAI, and no list of tools."""
    write_pictures(folder / "images")
    lines = []
    for each in TRUTHS:
        row: dict[str, Any] = {
            "file_name": f"images/{each.pictures[0]}",
            "messages": messages(each),
            "task": each.task,
            "answer": {"type": each.kind, "value": each.gold},
        }
        if len(each.pictures) > 1:
            row["additional_file_names"] = [f"images/{name}" for name in each.pictures[1:]]
        if each.tolerance:
            row["answer"]["tolerance"] = each.tolerance
            row["answer"]["unit"] = each.unit
        lines.append(row)
    write_lines(lines, folder / "metadata.jsonl")


def write_lines(rows: list[dict[str, Any]], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def react_texts(folder: Path) -> None:
    """(c) A JSON list with the trace as one text in the form of ReAct."""
    write_pictures(folder / "images")
    rows = [
        {
            "qid": number,
            "images": paths(each, "images"),
            "question": each.question,
            "category": each.family,
            "subcategory": each.task,
            "react_trace": react_text(each),
            "gold_answer": each.gold,
            "eval_type": {"open_text": "open", "tolerance": "numeric"}.get(each.kind, each.kind),
            "tolerance": {"kind": "absolute", "value": each.margin} if each.margin else None,
            "unit": each.unit,
        }
        for number, each in enumerate(TRUTHS)
    ]
    (folder / "agrotools_test.json").write_text(json.dumps(rows, indent=1), "utf-8")


def sharegpt_lines(folder: Path) -> None:
    """(d) JSON Lines with the turns of ShareGPT, and the answer in ``metadata``."""
    write_pictures(folder / "imgs")
    rows = []
    for each in TRUTHS:
        turns = [{"from": "human", "value": f"<image>\n{each.question}"}]
        for tool, given, out in each.calls:
            call = json.dumps({"name": tool, "arguments": given})
            turns.append({"from": "function_call", "value": call})
            turns.append({"from": "observation", "value": json.dumps(out)})
        turns.append({"from": "gpt", "value": each.said})
        metadata = {
            "task_type": each.task,
            "gold": each.gold,
            "answer_type": each.kind,
            "tolerance": {"abs": each.margin} if each.margin else None,
            "unit": each.unit,
        }
        rows.append(
            {
                "id": each.id,
                "images": paths(each, "imgs"),
                "conversations": turns,
                "tools": json.dumps([tool["function"] for tool in schemas()]),
                "metadata": metadata,
            }
        )
    write_lines(rows, folder / "agrotools.json.jsonl")


def object_with_data(folder: Path) -> None:
    """(e) One JSON object with the tools once, and the rows under ``data``."""
    write_pictures(folder / "images")
    rows = [
        {
            "question_id": each.id,
            "query": each.question,
            "image_paths": paths(each, "images"),
            "task": {"family": each.family, "type": each.task},
            "reference": {
                "trajectory": [
                    {"action": tool, "action_input": given, "observation": out}
                    for tool, given, out in each.calls
                ],
                "answer": each.gold,
                "answer_type": each.kind,
                "rel_tolerance": each.margin / each.gold if each.margin else None,
                "unit": each.unit,
            },
        }
        for each in TRUTHS
    ]
    content = {"name": "AgroTools", "version": "1.0", "tools": schemas(), "data": rows}
    (folder / "agrotools.json").write_text(json.dumps(content), "utf-8")


def table_with_json(folder: Path) -> None:
    """(f) CSV with JSON in its cells."""
    write_pictures(folder / "images")
    with (folder / "test.csv").open("w", newline="", encoding="utf-8") as file:
        names = (
            *("id", "question", "image_paths", "task_family", "task_type", "tool_calls"),
            *("answer_type", "answer", "tolerance", "unit"),
        )
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for each in TRUTHS:
            calls = [
                {"name": tool, "arguments": given, "result": out} for tool, given, out in each.calls
            ]
            answer = gold_text(each)
            files = json.dumps(paths(each, "images"))
            facts = (each.id, each.question, files, each.family, each.task, json.dumps(calls))
            tolerance = "" if each.tolerance is None else each.tolerance
            row = (*facts, each.kind, answer, tolerance, each.unit or "")
            writer.writerow(dict(zip(names, row, strict=True)))


def typed_gta(folder: Path) -> None:
    """(g) GTA's form with typed answers; a plot is an object without ``value``."""
    write_pictures(folder / "image")
    entries = {}
    for number, each in enumerate(TRUTHS):
        dialogs: list[dict[str, Any]] = [{"role": "user", "content": each.question}]
        for tool, given, out in each.calls:
            arguments = {
                key: f"image/{value}" if value in each.pictures else value
                for key, value in given.items()
            }
            call = {"type": "function", "function": {"name": tool, "arguments": arguments}}
            dialogs.append({"role": "assistant", "tool_calls": [call], "thought": "I use a tool."})
            content = {"type": "text", "content": json.dumps(out)}
            dialogs.append({"role": "tool", "name": tool, "content": content})
        dialogs.append({"role": "assistant", "content": each.said})
        answer: dict[str, Any] = {"type": each.kind, "value": each.gold}
        if each.kind == "plot":
            chart = {key: value for key, value in each.gold.items() if key != "kind"}
            answer = {"type": "plot", "chart_type": each.gold["kind"], **chart}
        if each.tolerance:
            answer |= {"tolerance": each.tolerance, "unit": each.unit}
        tools = {call[0] for call in each.calls}
        entries[str(number)] = {
            "tools": [
                {
                    "name": name,
                    "description": _ABOUT[name][0],
                    "inputs": [
                        {"type": "text", "name": key, "optional": False} for key in _ABOUT[name][1]
                    ],
                    "outputs": [],
                }
                for name in _ABOUT
                if name in tools
            ],
            "files": [
                {"type": "image", "path": f"image/{name}", "url": None} for name in each.pictures
            ],
            "dialogs": dialogs,
            "gt_answer": answer,
            "task_type": each.task,
        }
    (folder / "dataset.json").write_text(json.dumps(entries), "utf-8")


EIGHT = (
    parquet_with_lists_of_pictures,
    pushed_to_hub,
    picture_folder,
    react_texts,
    sharegpt_lines,
    object_with_data,
    table_with_json,
    typed_gta,
)
