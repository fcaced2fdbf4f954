"""Pictures of the pages in ``docs/images``.

``python tests/pictures.py`` measures a drawn field trial, runs two scripted agents, and draws them.
"""

import asyncio
import tempfile
from pathlib import Path

from PIL import Image

from agrotools_tools import measure_zones
from support.browser import Page, browser
from support.command import run_command
from support.drawn_trial import GRID, draw_trial

IMAGES = Path(__file__).parents[1] / "docs" / "images"
AGENTS = ("--model", "baseline:planted:0.6:1", "--model", "baseline:planted:0.4:2")
SAMPLE = "apples-007"
TRIAL_PX = 640
"""Height of the pictures of the trial."""


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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_trial(folder)
        run_command("eval", "embedded", "--quick", "--mode", "end-to-end", *AGENTS, cwd=folder)
        runs = sorted((folder / "runs").glob("[!.]*"), reverse=True)
        run_command(
            "report", *(f"runs/{run.name}" for run in runs), "--out", "report.html", cwd=folder
        )
        asyncio.run(draw((folder / "report.html").as_uri(), runs[0].name))
