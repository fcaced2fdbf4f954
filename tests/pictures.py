"""Pictures of README and the pages in ``docs/images``.

``python tests/pictures.py [POOL]`` measures a drawn field trial, runs two scripted agents, and draws them. POOL is the
folder of the training pictures (see ``training/``): with it, 30 photos that no tool learnt from become a benchmark as
one makes of own photos. Its page, what two tools find on such photos, and the strip of README are drawn, too.
"""

import asyncio
import base64
import csv
import json
import re
import shutil
import sys
import tempfile
from contextlib import chdir
from io import BytesIO
from itertools import chain, groupby, zip_longest
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from PIL import Image

from agrotools_tools import analyze_lesions, count_objects, measure_zones
from support.browser import Page, browser
from support.command import run_command
from support.drawn_trial import GRID, draw_trial
from support.review_server import reviewing

IMAGES = Path(__file__).parents[1] / "docs" / "images"
AGENTS = {
    "runs/a": ("agent A", "baseline:planted:0.8:1"),
    "runs/b": ("agent B", "baseline:planted:0.4:2"),
}
"""Scripted agents of the tutorial by the folder of their run: name on the pages, and model."""
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
TREE = "AppleBBCH81__DSC_1410_17kv39r15k_4.jpg"
LEAF = "1699.jpg"
"""Photos on which the pictures of tools stand: their findings can be seen at a small size."""
PHONE = (390, 800)
"""Width and height of the screen of a phone, in CSS pixels."""
STRIP_WIDTHS = {"strip.jpg": 900, "strip-narrow.jpg": 390}
"""Widths at which GitHub shows README, on a screen and on a phone."""
SHARP = 2
"""Pixels for each CSS pixel, of pictures that are shown smaller than they were taken."""
JPEG_QUALITY = 88
"""Quality of pictures with photographs: letters stay clear, at a fifth of the size of PNG."""
STRIP = """<!doctype html>
<meta charset="utf-8">
<style>
html { overflow: hidden; } body { margin: 0; font: 13px/1.3 system-ui, sans-serif; color: #1f2328; background: white; }
main { display: flex; gap: 12px; padding: 2px; align-items: flex-start; }
figure { margin: 0; }
figcaption { padding-top: 5px; font-weight: 600; }
img { display: block; width: 100%; object-fit: cover; object-position: top; border-radius: 6px; }
.photos { width: 206px; } .map { width: 176px; } .words { width: 286px; } .phone { width: 190px; }
.tree { height: 206px; } .leaf { height: 100px; margin-top: 6px; } .map img { height: 383px; object-position: bottom; }
.words img { border: 1px solid #d1d9e0; box-sizing: border-box; }
.verdict { padding: 6px 8px; background: #f6f6f6; }
.phone img { height: 383px; border: 5px solid #333; border-radius: 16px; box-sizing: border-box; }
.points { height: 204px; margin-top: 8px; }
@media (max-width: 600px) {
  main { flex-wrap: wrap; gap: 10px; }
  .photos, .map { width: calc(50% - 5px); } .words { width: 100%; }
  .map { order: 1; } .words { order: 2; }
  .phone { order: 3; width: 70%; margin: auto; } .phone img { height: 500px; } .points { height: 275px; }
  .tree { height: 190px; } .leaf { height: 95px; } .map img { height: 291px; }
}
</style>
<main>
<figure class="photos"><img class="tree" src="tree.png"><img class="leaf" src="leaf.png">
  <figcaption>Apples and lesions that tools found</figcaption></figure>
<figure class="map"><img src="map.png"><figcaption>Plant cover of the plots of a trial</figcaption></figure>
<figure class="words"><img class="verdict" src="verdict.png"><figcaption>Which of two agents is better</figcaption>
  <img class="points" src="points.png"><figcaption>Where the points of agent B went</figcaption></figure>
<figure class="phone"><img src="phone.png"><figcaption>A question about your own photo</figcaption></figure>
</main>
"""
"""Page of the strip: its panels beside each other, on a phone below each other."""


async def draw(report: str, run: str, parts: Path) -> None:
    """Open the report of two agents; write its pictures, and the panels of the strip into ``parts``."""
    async with browser() as chromium:
        page = await chromium.open(f"{report}#overview", width=1400, height=900)
        await write(page, "report-overview.png", "document.body.dataset.ready")
        await page.goto(f"{report}#samples?run=0&id={run}/end-to-end/{SAMPLE}/0")
        await page.until(f"document.querySelector('#detail h2')?.textContent.includes('{SAMPLE}')")
        await write(page, "report.png", "document.querySelector('#detail img')")
        await page.resize(1100, 640)
        await page.goto(f"{report}#compare")
        await write(page, "compare.png", "document.querySelector('#compare .pair')")
        await page.resize(PHONE[0], 2 * PHONE[1])  # high enough for all causes of both agents
        (parts / "verdict.png").write_bytes(await take(page, "#compare .pair"))
        await page.goto(f"{report}#overview")
        (parts / "points.png").write_bytes(await take(page, "#overview .lost"))


async def take(page: Page, selector: str) -> bytes:
    """Return a sharp picture of the first element that ``selector`` finds, once it is seen."""
    await page.prefer("light")
    await page.until(f"document.querySelector({selector!r})?.offsetHeight")
    await asyncio.sleep(1)
    box = await page.evaluate(
        f"(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect();"
        " return {x: b.x + scrollX, y: b.y + scrollY, width: b.width, height: b.height}; })()"
    )
    reply = await page.send(
        "Page.captureScreenshot",
        format="png",
        captureBeyondViewport=True,
        clip={**box, "scale": SHARP},
    )
    return base64.b64decode(reply["data"])


async def write(page: Page, name: str, ready: str) -> None:
    """Write what is seen in a light page, once ``ready`` is true and its pictures have had a second."""
    await page.prefer("light")
    await page.until(ready)
    await asyncio.sleep(1)
    (IMAGES / name).write_bytes(await page.screenshot())


def write_trial(folder: Path, parts: Path) -> None:
    """Write the map of a drawn trial, also into ``parts``, and its treatments beside it."""
    rasters, plan = draw_trial(folder)
    measure_zones(rasters, GRID, table=plan, out=folder / "trial")
    names = ("zones_map.png", "treatments.png")
    drawn = [Image.open(folder / "trial" / name).convert("RGB") for name in names]
    drawn[0].save(parts / "map.png")
    sized = [part.resize((part.width * TRIAL_PX // part.height, TRIAL_PX)) for part in drawn]
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


def write_findings(pool: Path, parts: Path) -> None:
    """Write what two tools find on a photo: apples in a tree, and lesions on a leaf."""
    with ZipFile(pool / "fruit_boxes" / "images.zip") as pictures:
        (parts / "tree.jpg").write_bytes(pictures.read(TREE))
    with ZipFile(pool / "leaf_lesion_masks" / "images_masks.zip") as pictures:
        (parts / "leaf.jpg").write_bytes(pictures.read(LEAF))
    apples = count_objects(image=str(parts / "tree.jpg"), target="apple").picture
    lesions = analyze_lesions(image=str(parts / "leaf.jpg")).picture
    assert apples is not None
    assert lesions is not None
    apples.save(parts / "tree.png")
    lesions.save(parts / "leaf.png")
    both = Image.new("RGB", (apples.width + lesions.width, apples.height), "white")
    both.paste(apples, (0, 0))
    both.paste(lesions, (apples.width, 0))
    both.save(IMAGES / "findings.jpg", quality=JPEG_QUALITY)


async def draw_strip(parts: Path) -> None:
    """Write the strip of README from its panels in ``parts``: for a screen, and for a phone."""
    page_file = parts / "strip.html"
    page_file.write_text(STRIP, encoding="utf-8")
    async with browser() as chromium:
        for name, width in STRIP_WIDTHS.items():
            page = await chromium.open(page_file.as_uri(), width=width, height=600)
            strip = Image.open(BytesIO(await take(page, "main"))).convert("RGB")
            strip.save(IMAGES / name, quality=JPEG_QUALITY)


async def draw_own_farm(report: str, run: str, parts: Path) -> None:
    """Write the pictures of the page of own photos: the overview, and a leaf with its lesions, also on a phone."""
    async with browser() as chromium:
        page = await chromium.open(f"{report}#overview", width=1200, height=600)
        await write(page, "own-farm.png", "document.body.dataset.ready")
        await page.goto(f"{report}#samples?run=0&id={run}/end-to-end/{LEAF_SAMPLE}/0")
        await page.until(
            f"document.querySelector('#detail h2')?.textContent.includes('{LEAF_SAMPLE}')"
        )
        await write(page, "own-farm-sample.png", "document.querySelector('#detail img')")
        await page.resize(*PHONE)
        (parts / "phone.png").write_bytes(await take(page, "body"))


async def draw_review(address: str) -> None:
    """Write a picture of the review page: the editor with a leaf, the call on it and its result."""
    async with browser() as chromium:
        page = await chromium.open(f"{address}#{LEAF_SAMPLE}", width=1280, height=800)
        await page.until("document.querySelector('#sample article')")
        await page.type("t")
        await page.until("document.querySelector('.artifacts img')?.naturalWidth")
        await write(page, "review.png", "document.querySelector('.part-state.same')")


def write_own_farm(pool: Path, folder: Path, parts: Path) -> None:
    """Build the benchmark of own photos, run two baselines on it, and draw their page."""
    write_own_photos(pool, folder)
    answers = ("--images", "photos", "--answers", "scouting.csv")
    run_command("build", *answers, "--out", "my-farm", cwd=folder)
    run_command("eval", "my-farm", "--mode", "end-to-end", *YARDSTICKS, cwd=folder)
    page = next((folder / "runs").glob("*/report-2-runs-*.html"))
    asyncio.run(draw_own_farm(page.as_uri(), page.parent.name, parts))
    with reviewing(folder / "my-farm", "--by", "Ada") as server:
        asyncio.run(draw_review(server.address))


def write_agents(folder: Path, parts: Path) -> None:
    """Run two scripted agents on the quick part of ``embedded``, and draw their page."""
    command = ("eval", "embedded", "--quick", "--mode", "end-to-end")
    for run, (name, model) in AGENTS.items():
        run_command(*command, "--model", model, "--name", name, "--out", run, cwd=folder)
    run_command("report", *reversed(AGENTS), "--out", "report.html", cwd=folder)
    asyncio.run(draw((folder / "report.html").as_uri(), "b", parts))
    plot_tasks(folder)


def plot_tasks(folder: Path) -> None:
    """Run the Python of the tutorial beside its runs, and keep its plot."""
    page = (IMAGES.parent / "tutorial.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    with chdir(folder):
        exec(compile(block, "tutorial.md", "exec"), {})
    shutil.copy(folder / "tasks.png", IMAGES)


def main() -> None:
    """Draw all pictures; those with photographs only if the folder of the training pictures is named."""
    with tempfile.TemporaryDirectory() as name:
        parts = Path(name) / "parts"
        folder = Path(name) / "work"
        parts.mkdir()
        folder.mkdir()
        write_trial(folder, parts)
        write_agents(folder, parts)
        if len(sys.argv) > 1:
            pool = Path(sys.argv[1])
            (folder / "farm").mkdir()
            write_own_farm(pool, folder / "farm", parts)
            write_findings(pool, parts)
            asyncio.run(draw_strip(parts))


if __name__ == "__main__":
    main()
