"""Folders in the shape of ThinkGeo's, with made-up questions on small drawings: as many of each kind as it has."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.made_gta import Entry, call, draw, returned, tool_meta, write_json

_SUBJECTS = {
    "disaster": "Which buildings were damaged by the flood between the two pictures",
    "urban": "Which houses of the residential block lie near the road",
    "traffic": "What heading do the cars at the intersection have",
    "aviation": "What stands on the runway beside the aircraft",
    "industry": "What is the diameter of the storage tanks",
    "recreation": "What is beside the tennis courts",
    "environment": "What lies near the garbage at the water body",
}
_HARDER = (
    "",
    " and estimate the area",
    " and count them",
    " and compare how many there are in each area",
)
_SEPARATORS = ("; ", ", ", "\n")
_MIDDLE = (
    "ObjectDetection",
    "SegmentObjectPixels",
    "CountGivenObject",
    "RegionAttributeDescription",
    "Calculator",
)


def thinkgeo_entries(
    count: int, steps: int, images: int, sensor: str
) -> Iterator[tuple[Entry, list[str]]]:
    """``count`` entries with ``steps`` calls in all, ``images`` of them with an image for an answer."""
    rng = random.Random(count)
    kinds = ["text"] * (count - images) + ["image"] * images
    rng.shuffle(kinds)
    done = 0
    for number, kind in enumerate(kinds):
        own = round(steps * (number + 1) / count) - done
        done += own
        subject = list(_SUBJECTS)[number % len(_SUBJECTS)]
        pair = subject == "disaster"
        stem = f"image/{sensor}_{number}"
        paths = (
            [f"{stem}_pre_disaster.png", f"{stem}_post_disaster.png"] if pair else [f"{stem}.png"]
        )
        messages = list(_calls(own, paths, number, kind))
        entry: Entry = {
            "tools": [
                tool_meta(name)
                for name in dict.fromkeys(m["name"] for m in messages if m["role"] == "tool")
            ],
            "files": [{"type": "image", "path": path, "url": None} for path in paths],
            "dialogs": [
                {
                    "role": "user",
                    "content": f"{_SUBJECTS[subject]}{rng.choice(_HARDER)} (scene {number})?",
                },
                *messages,
                {
                    "role": "assistant",
                    "content": "The image is saved." if kind == "image" else f"{number} m",
                },
            ],
            "gt_answer": None
            if kind == "image"
            else {"whitelist": [[str(number)]], "blacklist": None},
        }
        if kind == "text":
            entry["evaluation"] = [
                {"question": f"Does the response say that it is about {number} m?"}
            ]
        yield entry, paths


def _calls(count: int, paths: list[str], number: int, kind: str) -> Iterator[Entry]:
    """``count`` calls: boxes or changes first, an image drawn last where that is the answer."""
    image = paths[-1]
    for place in range(count):
        thought = f"I look at scene {number}, step {place + 1}."
        if place == 0 and len(paths) == 2:
            arguments: dict[str, Any] = {
                "pre_image": paths[0],
                "post_image": paths[1],
                "text": "What has changed?",
            }
            yield call("ChangeDetection", arguments, thought)
            yield returned("ChangeDetection", f"[[1,2,{number},8],[3,4,{number},9]]")
        elif place == 0:
            yield call("TextToBbox", {"image": image, "text": "the thing", "top1": False}, thought)
            boxes = [f"(1, 2, {number}, 8), score 94", "(3, 4, 5, 9), score 83"]
            yield returned("TextToBbox", _SEPARATORS[number % 3].join(boxes))
        elif place == count - 1 and kind == "image":
            yield call(
                "DrawBox",
                {"image": image, "bbox": f"(1, 2, {number}, 8)", "annotation": "it"},
                thought,
            )
            yield returned("DrawBox", f"image/drawn_{number}.png", "image")
        else:
            tool = _MIDDLE[(number + place) % len(_MIDDLE)]
            yield call(tool, _given(tool, image, number), thought)
            yield returned(tool, str(number))


def _given(tool: str, image: str, number: int) -> dict[str, Any]:
    if tool == "Calculator":
        return {"expression": f"{number} * 0.5"}
    own: dict[str, dict[str, Any]] = {
        "ObjectDetection": {},
        "RegionAttributeDescription": {"bbox": "(1, 2, 30, 40)", "attribute": "colour"},
        "SegmentObjectPixels": {"text": "cars", "flag": False},
    }
    return {"image": image, **own.get(tool, {"text": "cars"})}


def write_thinkgeo(folder: Path, *, sar: bool = True) -> Path:
    """A whole folder: 436 optical entries with 1,534 calls and, beside them, 50 on radar images with 244."""
    parts = {"ThinkGeoBench.json": (436, 1534, 68, "P")}
    if sar:
        parts["ThinkGeoBench_SAR.json"] = (50, 244, 14, "sar")
    for name, (count, steps, images, sensor) in parts.items():
        entries: dict[str, Entry] = {}
        for number, (entry, paths) in enumerate(thinkgeo_entries(count, steps, images, sensor)):
            entries[str(number)] = entry
            for path in paths:
                draw(folder / path, number)
        write_json(folder / name, entries)
    return folder
