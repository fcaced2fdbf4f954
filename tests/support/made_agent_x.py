"""Folders in the shape of Agent-X's, with made-up questions on small drawings: as many of each kind as it has."""

import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.made_gta import Entry, draw, write_json

_LOOKERS = (
    "SceneDescriber",
    "ObjectCounter",
    "OCR",
    "RegionDescriber",
    "LocateObjectByText",
    "MathOCR",
)
_THINKERS = ("Calculator", "WebSearch", "Solver")
_MAKERS = ("DrawBoundingBox", "OverlayText", "CodePlotter", "ImageGenerator", "ImageStylization")
_PREFIXES = ("VCA", "WEB", "SEC", "DRIVE", "SPORT", "MATH")


def agent_x_entries(
    count: int = 828, calls: int = 2807, images: int = 222, videos: int = 112
) -> Iterator[Entry]:
    """Entries with ``calls`` calls in all; the answer to ``images`` of them is an image, ``videos`` are on a video."""
    rng = random.Random(828)
    kinds = ["generative"] * images + ["objective", "subjective"] * ((count - images) // 2)
    kinds += ["objective"] * (count - len(kinds))
    moving = [True] * videos + [False] * (count - videos)
    rng.shuffle(kinds)
    rng.shuffle(moving)
    done = 0
    for number, (kind, is_video) in enumerate(zip(kinds, moving, strict=True)):
        own = round(calls * (number + 1) / count) - done
        done += own
        prefix = _PREFIXES[number % len(_PREFIXES)]
        files = [f"{prefix}_{number}.avi" if is_video else f"{prefix}_{number}.jpg"]
        if not is_video and number % 9 == 0:
            files.append(f"{prefix}_{number}b.jpg")
        yield _entry(number, kind, files, own, rng)


def _entry(number: int, kind: str, files: list[str], calls: int, rng: random.Random) -> Entry:
    tools = [rng.choice((*_LOOKERS, *_THINKERS)) for _ in range(calls)]
    if kind == "generative":
        tools[-1] = rng.choice(_MAKERS)
    elif number % 50 == 3:
        # The last call of a text answer makes no image, one before may.
        tools[0] = "DrawBoundingBox"
    steps = [_step(place, tool, files[0], number) for place, tool in enumerate(tools, start=1)]
    value: Any = (
        f"{number} shapes"
        if kind == "objective"
        else f"The picture shows a shape with the number {number}."
    )
    return {
        "file_path": ", ".join(files),
        "query": f"What can be said of drawing {number}?",
        "query_type": kind,
        "tool_metadata": {
            name: {"name": name, "description": f"{name}.", "inputs": [], "outputs": []}
            for name in tools
        },
        "reasoning_steps": [steps] if number % 5 == 2 else steps,
        "final_answer": {
            "value": number if number % 40 == 7 else value,
            "justification": f"It says {number}.",
        },
    }


def _step(place: int, tool: str, file: str, number: int) -> Entry:
    given = {
        "ObjectCounter": f"{file}, shapes",
        "RegionDescriber": f"{file}, (1, 2, 30, 40), colour",
        "LocateObjectByText": f"{file}, the shape",
        "Calculator": f"{number} + {place}",
        "WebSearch": f"what is {number}, and why",
        "Solver": "def solution():\n    return str(1)",
        "DrawBoundingBox": f"{file}, (1, 2, 30, 40), shape",
        "OverlayText": f"{file}, {number}",
        "CodePlotter": "def solution():\n    return figure",
        "ImageGenerator": f"drawing, {number}",
        "ImageStylization": f"{file}, make it green",
    }.get(tool, file)
    output: Any = str(number)
    if place == 1 and number % 11 == 0:
        output = [{"box": [1, 2, 3, 4]}, {"box": [5, 6, 7, 8]}]
    step: Entry = {
        "step": place,
        "task": f"look at part {place}",
        "tool": tool,
        "input": given,
        "output": output,
    }
    if number % 13:
        step["thought"] = f"I need part {place}."
    if number % 17 == 4:
        del step["input"]
    return step


def write_agent_x(folder: Path, **counts: int) -> Path:
    """A whole folder: ``data.json``, ``tools_metadata.json``, ``files/``."""
    entries = {str(number): [entry] for number, entry in enumerate(agent_x_entries(**counts))}
    for number, (entry,) in enumerate(entries.values()):
        for name in entry["file_path"].split(", "):
            path = folder / "files" / name
            if name.endswith(".avi"):
                write_video(path, number, frames=4 + number % 9)
            else:
                draw(path, number)
    write_json(folder / "data.json", entries)
    write_json(
        folder / "tools_metadata.json",
        [{"name": name} for name in (*_LOOKERS, *_THINKERS, *_MAKERS)],
    )
    return folder


def write_video(path: Path, number: int, frames: int = 12) -> Path:
    """A film of ``frames`` pictures (motion JPEG), each a little brighter than the one before."""
    import cv2
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        film = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 4.0, (48, 32))
        for place in range(frames):
            picture = np.full((32, 48, 3), 10 + place * 200 // max(frames, 1), dtype=np.uint8)
            picture[4:12, 4 : 4 + 1 + number % 30] = 255
            film.write(picture)
        film.release()
    return path
