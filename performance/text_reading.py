"""How well ``read_text`` reads: character errors on pictures whose text is known.

Figures of docs/general-tools.md, "Accuracy of text reading".

    python performance/text_reading.py --data DIR [--json]

``DIR`` holds a folder ``ocr_text`` with a ``truth.json``: pages (``text``: a file), single words (``text_string``),
receipts (``boxes`` with the text as label), signs (``strings``) and street scenes (``boxes`` without text). Letters are
compared after bringing quotes and dashes to one form; spaces count in pages alone. Of a page two figures are given:
each line against the most alike line that was read, whatever their order, and the whole text in reading order.
"""

import argparse
import csv
import json
import time
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np

from agrotools.calling import get_tool
from agrotools.calling.workspace import artifacts_in

_ALIKE = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "—": "-", "–": "-", "￥": "¥"}
)


def edits(wanted: str, got: str) -> int:
    """Letters to be put in, taken out or replaced (Levenshtein 1966)."""
    letters = np.frombuffer(got.encode("utf-32-le"), np.uint32)
    steps = np.arange(len(letters) + 1)
    row = steps.copy()
    for number, letter in enumerate(wanted, start=1):
        changed = np.minimum(row[:-1] + (letters != ord(letter)), row[1:] + 1)
        row = np.concatenate([[number], changed])
        row = np.minimum.accumulate(row - steps) + steps
    return int(row[-1])


def plain(text: str, *, spaces: bool) -> str:
    """Text as it is compared."""
    folded = unicodedata.normalize("NFC", text).translate(_ALIKE)
    return (" " if spaces else "").join(folded.split())


def page_errors(wanted: str, lines: list[str]) -> tuple[int, int, int]:
    """Letters of a page; edits line by line in any order; edits in reading order."""
    truth = [line for line in (plain(line, spaces=True) for line in wanted.splitlines()) if line]
    got = [plain(line, spaces=True) for line in lines]
    left = dict(enumerate(got))
    errors = 0
    for line in sorted(truth, key=len, reverse=True):
        costs = {number: edits(line, other) for number, other in left.items()}
        best = min(costs, key=lambda number: costs[number], default=None)
        if best is None or costs[best] >= len(line):
            errors += len(line)
            continue
        errors += costs[best]
        del left[best]
    whole = " ".join(truth)
    return len(whole), errors, edits(whole, " ".join(got))


def measured(folder: Path, out: Path) -> list[dict[str, Any]]:
    """One row for each picture of the folder."""
    rows: list[dict[str, Any]] = []
    read_text = get_tool("read_text")
    for item in json.loads((folder / "truth.json").read_text(encoding="utf-8")):
        started = time.perf_counter()
        with artifacts_in(out):
            result = read_text(image=str(folder / item["image"]))
        seconds = time.perf_counter() - started
        lines = [line.text for line in result.lines]
        row: dict[str, Any] = {
            "id": item["id"],
            "kind": item["kind"],
            "lines": len(lines),
            "seconds": seconds,
        }
        if "text" in item:
            wanted = (folder / item["text"]).read_text(encoding="utf-8")
            letters, any_order, in_order = page_errors(wanted, lines)
            row |= {
                "set": "pages",
                "letters": letters,
                "errors": any_order,
                "errors_in_order": in_order,
            }
        elif "text_string" in item:
            wanted = plain(item["text_string"], spaces=False)
            row |= {
                "set": "words",
                "letters": len(wanted),
                "errors": edits(wanted, plain("".join(lines), spaces=False)),
            }
        elif "strings" in item:
            got = {plain(line, spaces=False) for line in lines}
            texts = [plain(text, spaces=False) for text in item["strings"]]
            nearest = [
                min((edits(text, other) for other in got), default=len(text)) for text in texts
            ]
            capped = [min(cost, len(text)) for cost, text in zip(nearest, texts, strict=True)]
            row |= {"set": "signs", "letters": sum(map(len, texts)), "errors": sum(capped)}
        else:
            row |= _boxes(folder / item["boxes"], result.lines, scene="n_regions" in item)
        rows.append(row)
    return rows


def _boxes(path: Path, lines: Any, *, scene: bool) -> dict[str, Any]:
    """Of a receipt, letters of the lines whose middle lies in a box; of a scene, the share of legible boxes found."""
    with path.open(encoding="utf-8", newline="") as file:
        truth = list(csv.DictReader(file))
    boxes = [[float(row[name]) for name in ("xmin", "ymin", "xmax", "ymax")] for row in truth]
    middles = [((line.box[0] + line.box[2]) / 2, (line.box[1] + line.box[3]) / 2) for line in lines]
    texts = [plain(row["label"], spaces=False) for row in truth]
    if scene:
        wanted = [box for box, text in zip(boxes, texts, strict=True) if text == "text"]
        found = sum(
            any(box[0] <= x <= box[2] and box[1] <= y <= box[3] for x, y in middles)
            for box in wanted
        )
        return {"set": "scenes", "regions": len(wanted), "found": found}
    errors = 0
    # A line that was read may span several boxes of the truth: rows of boxes are compared whole.
    rows = _rows(boxes)
    for row in rows:
        low, high = min(boxes[index][1] for index in row), max(boxes[index][3] for index in row)
        ordered = sorted(row, key=lambda index: boxes[index][0])
        inside = sorted(
            (line for line, (_, y) in zip(lines, middles, strict=True) if low <= y <= high),
            key=lambda line: line.box[0],
        )
        wanted = "".join(texts[index] for index in ordered)
        errors += min(
            len(wanted), edits(wanted, plain("".join(line.text for line in inside), spaces=False))
        )
    return {"set": "receipts", "letters": sum(map(len, texts)), "errors": errors}


def _rows(boxes: list[list[float]]) -> list[list[int]]:
    rows: list[list[int]] = []
    for index in sorted(range(len(boxes)), key=lambda index: boxes[index][1] + boxes[index][3]):
        middle = (boxes[index][1] + boxes[index][3]) / 2
        if rows and boxes[rows[-1][0]][1] <= middle <= boxes[rows[-1][0]][3]:
            rows[-1].append(index)
        else:
            rows.append([index])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("agrotools-out"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = measured(given.data / "ocr_text", given.out)
    if given.json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        if "errors" in row:
            said = f"{100 * row['errors'] / row['letters']:.2f} % of {row['letters']} letters wrong"
            if "errors_in_order" in row:
                said += f", in reading order {100 * row['errors_in_order'] / row['letters']:.2f} %"
        else:
            said = f"{row['found']} of {row['regions']} legible regions found"
        print(
            f"{row['set']:9} {row['id']:18} {said} ({row['lines']} lines, {row['seconds']:.2f} s)"
        )
    for name in dict.fromkeys(row["set"] for row in rows if "errors" in row):
        letters = sum(row["letters"] for row in rows if row["set"] == name)
        errors = sum(row["errors"] for row in rows if row["set"] == name)
        print(f"{name}: {100 * errors / letters:.2f} % of {letters} letters wrong")


if __name__ == "__main__":
    main()
