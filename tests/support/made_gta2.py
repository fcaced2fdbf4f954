"""Folders in the shape of GTA-2's, as far as it is known, with made-up tasks on small files of several kinds."""

from pathlib import Path
from typing import Any

from support.made_gta import call, draw, returned, tool_meta, write_json

HERE = ("OCR", "DrawBox", "Calculator", "ImageDescription")
NOT_HERE = ("PdfFileGenerator", "SpeechToText")

Entry = dict[str, Any]


def leaf(name: str | None, weight: float | None = None, requirements: str | None = None) -> Entry:
    """A node without sub-tasks; what is None is left out."""
    told = {
        "id": name,
        "requirements": requirements or f"Requirement {name} is met.",
        "weight": weight,
    }
    return {key: value for key, value in told.items() if value is not None}


def node(name: str, below: list[Entry], weight: float | None = None) -> Entry:
    return {**leaf(name, weight), "sub_tasks": below}


NESTED = [node("1", [leaf("1.1", 2), leaf("1.2", 1)], 3), leaf("2", 1)]
"""Graded 10, 4 and 6 it comes to 7.5."""


def task(number: int = 0, **changes: Any) -> Entry:
    """A sound entry of ``end.json`` on one image; ``changes`` are other fields."""
    entry: Entry = {
        "dialogs": [{"role": "user", "content": f"Make a report on drawing {number}."}],
        "files": [{"type": "image", "path": f"image/task_{number}.png"}],
        "sub_tasks": NESTED,
    }
    return entry | changes


def tasks() -> dict[str, Entry]:
    """Five entries: trees of 3, 2, 1, 2 and 3 leaves; the last has a reference, one of whose tools is not here."""
    files = [
        {"type": "pdf", "path": "files/brief.pdf"},
        {"type": "audio", "path": "files/talk.mp3"},
        {"type": "table", "path": "files/sales.xlsx"},
        {"type": "video", "path": "files/clip.mp4"},
    ]
    image = "image/task_4.png"
    steps = [
        call("OCR", {"image": image}, "read it"),
        returned("OCR", "(1, 2, 3, 40) 4"),
        call("PdfFileGenerator", {"content": "4"}, "write it"),
        returned("PdfFileGenerator", "report.pdf"),
    ]
    dialogs = [
        {"role": "user", "content": "Write drawing 4 down."},
        *steps,
        {"role": "assistant", "content": "Done."},
    ]
    return {
        "0": task(0),
        "1": task(1, sub_tasks=[leaf("a"), leaf("b")]),
        "2": task(2, files=files, sub_tasks=leaf("only")),
        "3": task(3, files=[], sub_tasks=[leaf("x", 0), leaf("x", 5)]),
        "4": task(4, dialogs=dialogs),
    }


def write_gta2(
    folder: Path, entries: dict[str, Any] | None = None, *, toolmeta: Any = "objects"
) -> Path:
    """A folder with ``end.json``, ``step.json``, ``toolmeta.json`` and every file that the entries name.

    ``toolmeta``: ``objects`` or ``names`` of six tools, four of them here; None leaves it out; else its content.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entries = tasks() if entries is None else entries
    for number, entry in enumerate(entries.values()):
        for file in entry.get("files") or [] if isinstance(entry, dict) else []:
            path = folder / file["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".png":
                draw(path, number)
            else:
                path.write_bytes(f"{path.name}: made up".encode())
    write_json(folder / "end.json", entries)
    steps = [call("OCR", {"image": "image/step.png"}, "look"), returned("OCR", "(1, 2, 3, 40) 7")]
    dialogs = [
        {"role": "user", "content": "What stands there?"},
        *steps,
        {"role": "assistant", "content": "7"},
    ]
    step = {
        "tools": [{"name": "OCR"}, {"name": "PdfFileGenerator"}],
        "files": [{"type": "image", "path": "image/step.png"}],
        "dialogs": dialogs,
        "gt_answer": {"whitelist": [["7"]], "blacklist": None},
    }
    draw(folder / "image" / "step.png", 7)
    write_json(folder / "step.json", {"0": step})
    names = [*HERE, *NOT_HERE]
    content = {"objects": [tool_meta(name) for name in names], "names": names}.get(toolmeta, toolmeta) if isinstance(
        toolmeta, str
    ) else toolmeta  # fmt: skip
    if content is not None:
        write_json(folder / "toolmeta.json", content)
    return folder
