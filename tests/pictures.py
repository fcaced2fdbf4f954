"""Pictures of the pages in ``docs/images``.

``python tests/pictures.py [POOL]`` measures a drawn field trial, runs two scripted agents, and draws them. POOL is the
folder of the training pictures (see ``training/``): with it, 30 photos that no tool learnt from become a benchmark as
one makes of own photos, whose page is drawn, too.
"""

import asyncio
import csv
import json
import sys
import tempfile
from itertools import chain, groupby, zip_longest
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from PIL import Image

from agrotools_tools import measure_zones
from support.browser import Page, browser
from support.command import run_command
from support.drawn_trial import GRID, draw_trial
from support.review_server import reviewing

IMAGES = Path(__file__).parents[1] / "docs" / "images"
AGENTS = ("--model", "baseline:planted:0.6:1", "--model", "baseline:planted:0.4:2")
SAMPLE = "apples-007"
YARDSTICKS = ("--model", "baseline:oracle", "--model", "baseline:planner")
TRIAL_PX = 640
"""Height of the pictures of the trial."""
LEAVES, TREES = 15, 15
"""Number of photos of each kind."""
DISEASES = {"brown_spot_phoma": "brown spot", "leaf_miner": "leaf miner"}
"""Names of diseases as a person writes them, where they differ from the labels of the pool."""
LEAF_SAMPLE = "my-farm-001"
"""A question on the severity of a leaf."""


async def draw(report: str, run: str) -> None:
    """Open the report and write two pictures: the overview, and a sample of ``run``."""
    async with browser() as chromium:
        page = await chromium.open(f"{report}#overview", width=1400, height=900)
        await write(page, "report-overview.png", "document.body.dataset.ready")
        await page.goto(f"{report}#samples?run=0&id={run}/end-to-end/{SAMPLE}/0")
        await page.until(f"document.querySelector('#detail h2')?.textContent.includes('{SAMPLE}')")
        await write(page, "report.png", "document.querySelector('#detail img')")


async def write(page: Page, name: str, ready: str) -> None:
    """Write what is seen in a light page, once ``ready`` is true and its pictures have had a second."""
    await page.prefer("light")
    await page.until(ready)
    await asyncio.sleep(1)
    (IMAGES / name).write_bytes(await page.screenshot())


def write_trial(folder: Path) -> None:
    """Write the map of a drawn trial, and its treatments beside it."""
    rasters, plan = draw_trial(folder)
    measure_zones(rasters, GRID, table=plan, out=folder / "trial")
    parts = [Image.open(folder / "trial" / name) for name in ("zones_map.png", "treatments.png")]
    parts = [part.convert("RGB") for part in parts]
    sized = [part.resize((part.width * TRIAL_PX // part.height, TRIAL_PX)) for part in parts]
    both = Image.new("RGB", (sum(part.width for part in sized), TRIAL_PX), "white")
    both.paste(sized[0], (0, 0))
    both.paste(sized[1], (sized[0].width, 0))
    both.save(IMAGES / "trial.png", optimize=True)


def write_own_photos(pool: Path, folder: Path) -> None:
    """Write 30 photos and a table as a person keeps them: leaves with lesions, and sections of apple trees."""
    (folder / "photos").mkdir()
    table = [("Photo", "Severity", "Disease", "Apples", "Observer")]
    with ZipFile(pool / "leaf_lesion_masks" / "images_masks.zip") as pictures:
        for leaf in _leaves(pool)[:LEAVES]:
            name = f"IMG_{2000 + len(table)}.jpg"
            (folder / "photos" / name).write_bytes(pictures.read(leaf["image"]))
            severity = f"{100 * float(leaf['lesion_fraction_of_leaf']):.1f}%"
            disease = DISEASES.get(leaf["label"], leaf["label"])
            table.append((name, severity, disease, "", "Ann"))
    with ZipFile(pool / "fruit_boxes" / "images.zip") as pictures:
        for tree in _trees(pool)[:TREES]:
            name = f"IMG_{2000 + len(table)}.jpg"
            (folder / "photos" / name).write_bytes(pictures.read(tree["image"]))
            table.append((name, "", "", str(tree["count"]), "Bob"))
    with (folder / "scouting.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(table)


def _leaves(pool: Path) -> list[dict[str, str]]:
    """Return coffee leaves that neither the recogniser nor the net of lesions learnt from, diseases in turn."""
    learnt = {row["group"] for row in _labels(pool, "leaf_disease") if row["split"] == "train"}
    rows = [
        row
        for row in _labels(pool, "leaf_lesion_masks")
        if row["split"] == "val" and row["label"] and row["group"] not in learnt
    ]
    rows.sort(key=lambda row: row["label"])
    of_disease = [list(rows) for _, rows in groupby(rows, lambda row: row["label"])]
    in_turn = chain.from_iterable(zip_longest(*of_disease))
    return [leaf for leaf in in_turn if leaf is not None]


def _labels(pool: Path, task: str) -> list[dict[str, str]]:
    with (pool / task / "labels.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _trees(pool: Path) -> list[dict[str, Any]]:
    """Return a section of each photo of apple trees that no tool learnt from."""
    lines = (pool / "fruit_boxes" / "labels.jsonl").read_text(encoding="utf-8").splitlines()
    sections = [json.loads(line) for line in lines]
    apples = [
        section
        for section in sections
        if section["split"] == "val" and section["group"].startswith("AppleBBCH81/")
    ]
    return list({section["group"]: section for section in apples}.values())


async def draw_own_farm(report: str, run: str) -> None:
    """Write two pictures of the page of own photos: the overview, and a leaf with its lesions."""
    async with browser() as chromium:
        page = await chromium.open(f"{report}#overview", width=1200, height=600)
        await write(page, "own-farm.png", "document.body.dataset.ready")
        await page.goto(f"{report}#samples?run=0&id={run}/end-to-end/{LEAF_SAMPLE}/0")
        await page.until(
            f"document.querySelector('#detail h2')?.textContent.includes('{LEAF_SAMPLE}')"
        )
        await write(page, "own-farm-sample.png", "document.querySelector('#detail img')")


async def draw_review(address: str) -> None:
    """Write a picture of the review page: the editor with a leaf, the call on it and its result."""
    async with browser() as chromium:
        page = await chromium.open(f"{address}#{LEAF_SAMPLE}", width=1280, height=800)
        await page.until("document.querySelector('#sample article')")
        await page.type("t")
        await page.until("document.querySelector('.artifacts img')?.naturalWidth")
        await write(page, "review.png", "document.querySelector('.part-state.same')")


def write_own_farm(pool: Path, folder: Path) -> None:
    """Build the benchmark of own photos, run two baselines on it, and draw their page."""
    write_own_photos(pool, folder)
    answers = ("--images", "photos", "--answers", "scouting.csv")
    run_command("build", *answers, "--out", "my-farm", cwd=folder)
    run_command("eval", "my-farm", "--mode", "end-to-end", *YARDSTICKS, cwd=folder)
    page = next((folder / "runs").glob("*/report-2-runs-*.html"))
    asyncio.run(draw_own_farm(page.as_uri(), page.parent.name))
    with reviewing(folder / "my-farm", "--by", "Ada") as server:
        asyncio.run(draw_review(server.address))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as name:
            write_own_farm(Path(sys.argv[1]), Path(name))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_trial(folder)
        run_command("eval", "embedded", "--quick", "--mode", "end-to-end", *AGENTS, cwd=folder)
        runs = sorted((folder / "runs").glob("[!.]*"), reverse=True)
        run_command(
            "report", *(f"runs/{run.name}" for run in runs), "--out", "report.html", cwd=folder
        )
        asyncio.run(draw((folder / "report.html").as_uri(), runs[0].name))
