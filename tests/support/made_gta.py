"""Folders in the shape of GTA's, with made-up questions on small drawings: as many of each kind as GTA has."""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

PERCEPTION = (
    "OCR",
    "ImageDescription",
    "RegionAttributeDescription",
    "CountGivenObject",
    "TextToBbox",
    "MathOCR",
)
OTHERS = ("Calculator", "GoogleSearch", "Solver")
MAKERS = ("DrawBox", "AddText", "Plot", "TextToImage", "ImageStylization")
_SHAPES = ("square", "disc", "bar")

Entry = dict[str, Any]


def draw(path: Path, number: int, size: tuple[int, int] = (64, 48)) -> None:
    """A small picture of ``number`` in a shape."""
    path.parent.mkdir(parents=True, exist_ok=True)
    colour = ((37 * number) % 200 + 30, (91 * number) % 200 + 30, (151 * number) % 200 + 30)
    picture = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(picture)
    shape = _SHAPES[number % 3]
    box = (4, 4, size[0] - 5, size[1] - 5 if shape != "bar" else size[1] // 2)
    (pen.ellipse if shape == "disc" else pen.rectangle)(box, outline=colour, width=3)
    pen.text((size[0] // 3, size[1] // 3), str(number), fill=colour)
    picture.save(path)


def tool_meta(name: str) -> Entry:
    """A tool as GTA describes its own, shortened."""
    kind = "image" if name in MAKERS else "text"
    argument = {
        "type": "text",
        "name": "text",
        "description": None,
        "optional": False,
        "default": None,
    }
    return {
        "name": name,
        "description": f"{name}.",
        "inputs": [argument],
        "outputs": [{"type": kind, "name": None}],
    }


def call(tool: str, arguments: Entry, thought: str | None) -> Entry:
    """A message that calls a tool."""
    made: Entry = {
        "role": "assistant",
        "tool_calls": [{"type": "function", "function": {"name": tool, "arguments": arguments}}],
    }
    return made if thought is None else {**made, "thought": thought}


def returned(tool: str, content: str, kind: str = "text") -> Entry:
    """A message with what a tool returned."""
    return {"role": "tool", "name": tool, "content": {"type": kind, "content": content}}


def steps_of(tools: Sequence[str], image: str, number: int, thoughts: bool = True) -> list[Entry]:
    """Calls of ``tools`` on ``image``, with what they return."""
    messages: list[Entry] = []
    for place, tool in enumerate(tools):
        thought = f"Step {place + 1} of drawing {number}." if thoughts else None
        messages.append(call(tool, _arguments(tool, image, number + place), thought))
        maker = tool in MAKERS
        content = f"image/made_{number}_{place}.png" if maker else f"(1, 2, {number}, 40) {number}"
        messages.append(returned(tool, content, "image" if maker else "text"))
    return messages


def _arguments(tool: str, image: str, number: int) -> Entry:
    own: dict[str, Entry] = {
        "Calculator": {"expression": f"{number} + 1"},
        "GoogleSearch": {"query": f"what is {number}", "k": 4},
        "Solver": {"command": f"def solution():\n    return str({number})"},
        "Plot": {"command": "def solution():\n    return figure"},
        "TextToImage": {"keywords": f"drawing, {number}"},
        "ImageStylization": {"image": image, "instruction": "make it green"},
        "DrawBox": {"image": image, "bbox": f"(1, 2, {number % 60}, 40)", "annotation": "it"},
        "AddText": {"image": image, "text": str(number), "position": "lt"},
        "CountGivenObject": {"image": image, "text": "shapes"},
        "TextToBbox": {"image": image, "text": "the shape", "top1": number % 2 == 0},
        "RegionAttributeDescription": {
            "image": image,
            "bbox": "(1, 2, 30, 40)",
            "attribute": "colour",
        },
    }
    return own.get(tool, {"image": image})


def answer_of(kind: str, number: int) -> Any:
    """``gt_answer`` of a kind, in the forms that are published."""
    if kind == "image":
        return None
    if kind == "subjective":
        return [f"A drawing of {number}.", f"It shows {number} in a shape", f"the number {number}"]
    forms: list[Any] = [
        {"whitelist": [[str(number)]], "blacklist": None},
        {
            "whitelist": [[f"{number:,}", str(number)], ["shape", "disc"]],
            "blacklist": [[str(number + 1), "bar"]],
        },
        {"whitelist": [[f"-{number}"]], "blacklist": []},
        {"whitelist": [[f"${number}", f"{number} dollars"]], "blacklist": None},
        {"whitelist": [[f"{number}%"]], "blacklist": None},
    ]
    return forms[number % len(forms)]


def gta_entries() -> Iterator[tuple[Entry, list[str]]]:
    """229 entries with the counts of GTA, and the images of each.

    Of tools: 17 / 147 / 50 / 15 entries with 1 / 2 / 3 / 4; 557 steps; 156 objective, 16 subjective, 57 image answers;
    252 images, one of them in two entries.
    """
    rng = random.Random(20240711)
    kinds = ["objective"] * 156 + ["subjective"] * 16 + ["image"] * 57
    counts = [1] * 17 + [2] * 147 + [3] * 50 + [4] * 15
    more = [0] * 17 + [1] * 13 + [6] + [0] * 198
    rng.shuffle(kinds)
    image = 0
    for number, (kind, tools, added) in enumerate(zip(kinds, counts, more, strict=True)):
        own = rng.sample((*PERCEPTION, *OTHERS), tools)
        own = [*own[:-1], rng.choice(MAKERS)] if kind == "image" else own
        called = [*own[:-1], *[own[-1]] * (max(2 - tools, 0) + 1 + added)]
        images = 2 if number < 25 and number != 5 else 1
        paths = [f"image/image_{image - 1}.jpg"] if number == 5 else []
        while len(paths) < images:
            paths.append(f"image/image_{image}.jpg")
            image += 1
        yield (
            {
                "tools": [tool_meta(name) for name in own],
                "files": [{"type": "image", "path": path, "url": None} for path in paths],
                "dialogs": [
                    {"role": "user", "content": f"What does drawing {number} come to?"},
                    *steps_of(called, paths[0], number, thoughts=number % 7 != 0),
                    {
                        "role": "assistant",
                        "content": "The image is saved." if kind == "image" else str(number),
                    },
                ],
                "gt_answer": answer_of(kind, number),
            },
            paths,
        )


def write_gta(folder: Path) -> Path:
    """A whole folder: ``dataset.json``, ``toolmeta.json``, ``image/``."""
    entries: dict[str, Entry] = {}
    for number, (entry, paths) in enumerate(gta_entries()):
        entries[str(number)] = entry
        for path in paths:
            if not (folder / path).exists():
                draw(folder / path, number)
    write_json(folder / "dataset.json", entries)
    meta = {name: tool_meta(name) for name in (*PERCEPTION, *OTHERS, *MAKERS)}
    write_json(folder / "toolmeta.json", meta)
    return folder


def write_entries(folder: Path, entries: dict[str, Any], name: str = "dataset.json") -> Path:
    """A folder with these entries, every image they name drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, entry in enumerate(entries.values()):
        files = entry.get("files") if isinstance(entry, dict) else None
        for file in files if isinstance(files, list) else []:
            path = file.get("path") if isinstance(file, dict) else None
            if isinstance(path, str) and path and ".." not in path and not (folder / path).exists():
                draw(folder / path, number)
    write_json(folder / name, entries)
    return folder


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


def plain_entry(**changes: Any) -> Entry:
    """A sound entry with one OCR call; ``changes`` are other fields, None leaves one out."""
    entry: Entry = {
        "tools": [tool_meta("OCR"), tool_meta("Calculator")],
        "files": [{"type": "image", "path": "image/image_1.jpg", "url": None}],
        "dialogs": [
            {"role": "user", "content": "What stands there?"},
            *steps_of(("OCR",), "image/image_1.jpg", 7),
            {"role": "assistant", "content": "7"},
        ],
        "gt_answer": {"whitelist": [["7", "seven"]], "blacklist": None},
    }
    return entry | changes
