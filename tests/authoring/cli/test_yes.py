"""``--yes`` answers what the command printed above it: for each kind of question, both build the same benchmark."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from agrotools_build.own_photos.plan import read_plan
from support.command import run_command

pytestmark = pytest.mark.tools

NAMES = [f"IMG_{number:02}.jpg" for number in range(1, 13)]
"""Photos of leaves with more and more spots."""
Rows = list[list]
Writing = Callable[[Path], Path]


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, name in enumerate(NAMES):
        picture = Image.new("RGB", (96, 64), (245, 245, 245))
        draw = ImageDraw.Draw(picture)
        draw.ellipse((8, 8, 88, 56), fill=(60, 120 + number, 50))
        draw.ellipse((30, 20, 32 + 3 * number, 22 + 2 * number), fill=(120, 80, 40))
        picture.save(folder / name)
    return folder


def _csv(*rows: list, encoding: str = "utf-8") -> Writing:
    def write(folder: Path) -> Path:
        file = folder / "table.csv"
        lines = [
            ",".join(f'"{cell}"' if "," in str(cell) else str(cell) for cell in row) for row in rows
        ]
        file.write_text("\n".join(lines) + "\n", encoding=encoding)
        return file

    return write


def _workbook(**sheets: Rows) -> Writing:
    def write(folder: Path) -> Path:
        openpyxl = pytest.importorskip("openpyxl", reason="extra build")
        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in sheets.items():
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(row)
        book.save(folder / "table.xlsx")
        return folder / "table.xlsx"

    return write


def _json(content: dict) -> Writing:
    def write(folder: Path) -> Path:
        (folder / "table.json").write_text(json.dumps(content))
        return folder / "table.json"

    return write


def _column(header: str, cells: list) -> Rows:
    return [["Photo", header], *([name, cell] for name, cell in zip(NAMES, cells, strict=True))]


def _coco(width: int) -> dict:
    """Annotations of pictures of that width, whose photos are 96 pixels wide."""
    height = width * 2 // 3
    images = [
        {"id": at, "file_name": name, "width": width, "height": height}
        for at, name in enumerate(NAMES)
    ]
    boxes = [
        {"id": 10 * at + k, "image_id": at, "category_id": 1, "bbox": [1 + k, 1, 4, 4]}
        for at in range(12)
        for k in range(at % 5 + 1)
    ]
    return {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "apple"}]}


SHARES = [5 * at + 4 for at in range(12)]
DISEASES = ["coffee rust", "healthy", "leaf miner"] * 4
TWO_SHEETS = {
    "a": _column("Severity (%)", SHARES)[:8],
    "b": [["Photo", "Severity (%)"], *_column("", SHARES)[8:]],
}
OTHER_PHOTOS = [
    ["Photo", "Image 2", "Apples"],
    *([n, NAMES[11 - at], at % 5 + 1] for at, n in enumerate(NAMES)),
]
OBSERVERS = [["Photo", "Apples left", "Apples right"], *([n, at, at] for at, n in enumerate(NAMES))]
THINGS = [
    ["Photo", "Apples left", "Apples right"],
    *([n, at, 40 - 3 * at] for at, n in enumerate(NAMES)),
]
ALIKE = [
    ["Photo", "Spots", "Flecken gesamt"],
    *([n, at, 40 - 3 * at] for at, n in enumerate(NAMES)),
]
SAME_NAME = [
    ["Photo", "Apples", "Apples", "Severity (%)"],
    *([n, at, at + 1, SHARES[at]] for at, n in enumerate(NAMES)),
]
RATED = [
    ["Photo", "Severity (0-9)", "Apples"],
    *([n, at % 9, at % 5] for at, n in enumerate(NAMES)),
]
SLIP = [*DISEASES[:9], "cofee rust", "leef miner", "xyzzy"]
ABOVE = [
    [name if part == 0 else "", 4 * at + 5] for at, name in enumerate(NAMES) for part in range(2)
]

PROPOSED: dict[str, tuple] = {
    "sheet": (_workbook(**TWO_SHEETS), {"sheet"}),
    "rows of the header": (
        _csv(["Photo", "Severity"], ["", "(%)"], *_column("", SHARES)[1:]), {"header"}
    ),
    "encoding": (
        _csv(["Photo", "Severity (%)", "część pola, środa"],
             *([n, SHARES[at], "gałąź"] for at, n in enumerate(NAMES)), encoding="cp1250"),
        {"encoding"},
    ),
    "column of the photos": (_csv(*OTHER_PHOTOS), {"images_column"}),
    "rows without a photo": (_csv(["Photo", "Severity (%)"], *ABOVE), {"unnamed_rows"}),
    "a rating": (_csv(*RATED), {"Severity (0-9).ask"}),
    "columns of one name": (
        _csv(*SAME_NAME), {"Apples.ask", "Apples (2).ask"}
    ),
    "names that are near": (
        _csv(*_column("Disease", SLIP)),
        {"Disease.names.cofee rust", "Disease.names.leef miner", "Disease.names.xyzzy"},
    ),
    "names that nothing is near": (_csv(*_column("Disease", ["qqxx", "wwyy", "zzvv"] * 4)), {"Disease.ask"}),
    "two observers": (_csv(*OBSERVERS), {"Apples left.second"}),
    "two things": (_csv(*THINGS), {"Apples left.second"}),
    "two columns of one question": (_csv(*ALIKE), {"Spots.second"}),
    "what is counted": (
        _csv(*_column("maçãs maduras", SHARES)), {"maçãs maduras.target"}, "maçãs maduras.ask=count"
    ),
    "size of annotated pictures": (_json(_coco(192)), {"sizes"}),
}  # fmt: skip
"""By what is asked: how the table is written, the keys that are asked about, and what is said already."""


ONLY_YOURS: dict[str, tuple] = {
    "crop": (_csv(*_column("Disease", ["rust", "healthy"] * 6)), {"Disease.crop"}),
    "what is counted": (_csv(*_column("Count", SHARES)), {"Count.target"}, "Count.ask=count"),
    "unit": (_csv(*_column("Glorps", SHARES)), {"Glorps.unit"}, "Glorps.ask=canopy_height"),
    "decimal mark": (_csv(*_column("Trees", ["1,234", "2,345"] * 6)), {"Trees.decimal"}),
}
"""Tables with a question that only their owner can answer, as :data:`PROPOSED`."""


def _command(table: Path, out: str, said: list[str]) -> list[str]:
    words = ["build", "--images", "photos", "--answers", table.name, "--out", out]
    for word in said:
        words += ["--set", word]
    return words


def _printed(table: Path, out: str, said: list[str]) -> list[str]:
    """Return the words of the command that a build prints when it stops with questions."""
    stopped = run_command(*_command(table, out, said))
    assert stopped.returncode == 4, stopped.stdout + stopped.stderr
    assert not Path(out).exists()
    offered = re.search(r"^hint: .*?: agrotools (build .*)$", stopped.stderr, re.MULTILINE)
    assert offered is not None, stopped.stderr
    return shlex.split(offered[1])


def _keys(words: list[str]) -> set[str]:
    return {word.removeprefix("--set=").partition("=")[0] for word in words if "--set=" in word}


def _built(table: Path, words: list[str]) -> tuple[object, list[str]]:
    """Build; return the plan, and the samples as they are in their folder."""
    done = run_command(*words, cwd=table.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    plan_file = table.with_suffix(".plan.toml")
    plan = read_plan(plan_file)
    plan_file.unlink()
    out = words[words.index("--out") + 1]
    return plan, Path(out, "samples.jsonl").read_text("utf-8").splitlines()


@pytest.mark.parametrize("asked", PROPOSED)
def test_yes_builds_what_the_printed_command_builds(photos: Path, tmp_path: Path, asked: str):
    write, keys, *said = PROPOSED[asked]
    table = write(tmp_path)
    printed = _printed(table, "printed/made", said)
    assert _keys(printed) == keys
    accepted = [*_command(table, "accepted/made", said), "--yes"]
    assert _built(table, printed) == _built(table, accepted)


@pytest.mark.parametrize("asked", ONLY_YOURS)
def test_yes_takes_no_answer_that_only_the_owner_knows(photos: Path, tmp_path: Path, asked: str):
    write, keys, *said = ONLY_YOURS[asked]
    table = write(tmp_path)
    printed = _printed(table, "made", said)
    assert _keys(printed) == keys
    assert run_command(*printed).returncode == 2, "a placeholder is no answer"
    accepted = run_command(*_command(table, "made", said), "--yes")
    assert accepted.returncode == 4
    assert not Path("made").exists()
