"""Whole questions of GTA on its own pictures, with reference trajectories of ours: recorded, and with real tools."""

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from support.made_gta import call, returned, write_entries

CHART = """```python
def solution():
    import matplotlib.pyplot as plt
    countries = ["USA", "China", "Australia", "India", "South Korea"]
    series = {
        "sales volume": [40080, 35070, 27054, 23046, 16032],
        "revenue": [15971880, 15866670, 14812566, 10608174, 10494948],
        "profit": [3086421, 3032162, 2868636, 1853710, 1975844],
    }
    figure, axes = plt.subplots(figsize=(7, 4))
    for place, (name, values) in enumerate(series.items()):
        axes.bar([at + (place - 1) * 0.27 for at in range(5)], values, width=0.27, label=name)
    axes.set_xticks(range(5), countries)
    axes.set_yscale("log")
    axes.legend()
    return figure
```"""


def _steps(question: str, image: str) -> tuple[list[dict[str, Any]], str]:
    """The calls that answer a question, with what they return, and the answer."""
    ocr, look = {"image": image}, {"image": image}
    if question == "menu":
        sum_ = {"expression": "11 + 0 + 11 + 0"}
        text = "(27, 157, 90, 170) Pan-Cake\n(27, 172, 98, 185) Jelly Doughnuts\n(181, 112, 252, 125) Chicken Burger"
        return [call("OCR", ocr, "Read the menu."), returned("OCR", text),
                call("Calculator", sum_, "Is it enough?"), returned("Calculator", "22")], "22 dollars"  # fmt: skip
    if question == "orange":
        search = {"query": "recommended dietary allowance of vitamin C for women; vitamin C in an orange"}
        return [call("ImageDescription", look, "What fruit is it?"), returned("ImageDescription", "an orange"),
                call("GoogleSearch", search, "Look both up."),
                returned("GoogleSearch", "1 - women: 75 mg a day\n\n2 - oranges: 53.2 mg in 100 g, by others 53"),
                call("Calculator", {"expression": "round(75 / 53 * 100)"}, "So many grams."),
                returned("Calculator", "142")], "142"  # fmt: skip
    if question == "plot":
        return [call("OCR", ocr, "Read the table."), returned("OCR", "(36, 62, 50, 78) USA"),
                call("Plot", {"command": CHART}, "Draw it."),
                returned("Plot", "image/chart.png", "image")], "The image is saved."  # fmt: skip
    return [call("ImageDescription", look, "What is there?"),
            returned("ImageDescription", "eggs, flour, butter and strawberries"),
            call("TextToImage", {"keywords": "cake, eggs, flour, butter, strawberries"}, "Make it."),
            returned("TextToImage", "image/cake.png", "image")], "The image is saved."  # fmt: skip


@pytest.fixture(scope="module")
def data(field_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of GTA with the four questions whose pictures are there."""
    source = field_data / "gta_samples"
    if not (source / "truth.json").is_file():
        pytest.skip(f"no questions of GTA at {source}: set AGROTOOLS_TEST_DATA")
    root = tmp_path_factory.mktemp("gta") / "gta_dataset"
    entries: dict[str, Any] = {}
    for number, item in enumerate(json.loads((source / "truth.json").read_text("utf-8"))):
        image = f"image/{Path(item['images'][0]).name}"
        (root / "image").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / item["images"][0], root / image)
        steps, said = _steps(item["id"], image)
        answer = item["answer"]
        gold = (
            [answer]
            if item["id"] == "menu"
            else {"whitelist": [[answer]], "blacklist": None}
            if answer == "142"
            else None
        )
        entries[str(number)] = {
            "tools": [{"name": name} for name in item["tools"]],
            "files": [{"type": "image", "path": image, "url": None}],
            "dialogs": [{"role": "user", "content": item["query"]}, *steps, {"role": "assistant", "content": said}],
            "gt_answer": gold,
        }
    write_entries(root, entries)
    return root.parent


def evaluated(data: Path, run: Path, *backends: str) -> dict[str, dict[str, Any]]:
    """The records by question, of the oracle end to end."""
    command = ["eval", "gta", "--data-root", data, "-m", "baseline:oracle", "--mode", "end-to-end", "--out", run]
    options = [text for backend in backends for text in ("--backend", backend)]
    done = CliRunner().invoke(app, [*map(str, command), *options])
    assert done.exit_code == 0, done.output
    names = ("menu", "orange", "plot", "ingredient")
    lines = map(json.loads, (run / "records.jsonl").read_text(encoding="utf-8").splitlines())
    records = {names[int(record["sample"]["metadata"]["entry"])]: record for record in lines}
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))["scores"]
    fas = {row["sample_id"]: row["value"] for row in scores if row["metric"] == "fas"}
    return {name: {**record, "fas": fas[record["sample"]["id"]]} for name, record in records.items()}


def calls(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for step in record["trajectory"]["steps"] if step["kind"] == "call"]


def test_what_can_run_here_really_runs(data: Path, tmp_path: Path):
    records = evaluated(data, tmp_path / "run", "recorded", "Calculator=offline", "Plot=sandbox")
    assert records["orange"]["fas"] == 1
    assert calls(records["orange"])[-1]["observation"]["result"]["text"] == "142"
    assert not calls(records["orange"])[-1]["recorded"]
    drawn = calls(records["plot"])[-1]["observation"]
    assert drawn["error"] is None
    (chart,) = [artifact for artifact in drawn["artifacts"] if artifact["media_type"] == "image/png"]
    assert (tmp_path / "run" / "artifacts").is_dir()
    assert chart["sha256"]
    assert records["plot"]["fas"] == 1


@pytest.mark.skipif(importlib.util.find_spec("rapidocr") is None, reason="needs rapidocr (the extra ocr)")
def test_the_menu_and_the_table_are_really_read(data: Path, tmp_path: Path):
    records = evaluated(data, tmp_path / "run", "recorded", "OCR=offline")
    menu = calls(records["menu"])[0]["observation"]["result"]["text"]
    for words in ("Chicken Burger", "Beef Burger", "Apple Pie", "$11.00"):
        assert words.replace(" ", "") in menu.replace(" ", ""), menu
    table = calls(records["plot"])[0]["observation"]["result"]["text"]
    for words in ("South Korea", "40.080", "15.971.880", "3.086.421"):
        assert words.replace(" ", "") in table.replace(" ", ""), table
