"""Size and speed of the report page, measured in a headless Chromium (named by AGROTOOLS_TEST_BROWSER, or installed).

Limit of docs/report.md, "Samples": a page stays below 30 MB.

    python performance/report_page.py [--texts 15000] [--agents 2000] [--pictures 3000] [--keep FOLDER]

Writes two runs of made-up records, 15,000 text samples and 2,000 agent samples with 3,000 pictures, and a report of
each. Printed for each: seconds to write, size of the file, milliseconds until the first view and until the list is
ready, the longest task of the main thread while the list is scrolled, filtered, sorted and searched, and the time until
a sample is shown. Exits with 1 unless the first view takes less than 1 s, no task more than 100 ms, and no file 30 MB.
"""

import argparse
import asyncio
import io
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from agrotools.core import Observation, Record, SampleFile  # noqa: E402
from agrotools.report.html.page import build_report  # noqa: E402
from agrotools.runner.records import RECORDS_FILE  # noqa: E402
from agrotools.runner.yardsticks import Yardsticks  # noqa: E402
from support.browser import browser  # noqa: E402
from support.made_runs import call, end_to_end, keep, made_sample, write_run  # noqa: E402

WORDS = (
    "leaf stem rust blight soil canopy yield furrow "
    "irrigate prune spore lesion nitrogen harvest weed drought"
).split()
FIRST_VIEW_MS, LONGEST_TASK_MS, LARGEST_FILE = 1000, 100, 30_000_000
TASKS = "new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((each) => each.duration)))"


def prose(draw: random.Random, n: int) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(n))


def texts(n: int) -> Iterator[Record]:
    """Yield answers to questions without files, about 1,500 characters each."""
    draw = random.Random(1)
    for number in range(n):
        task, query = draw.choice(WORDS), f"{prose(draw, 30)}?"
        sample = made_sample(f"q{number:05}", query=query, files=(), reference=None, task_type=task)
        answer = f"{prose(draw, 240)}\nrows: {draw.choice([6, 7, 8])}"
        yield end_to_end(sample, answer=answer, mode="no-tool")


def agents(n: int, n_pictures: int, folder: Path) -> Iterator[Record]:
    """Yield trajectories of three calls; each sample has a photo, and some have an overlay, ``n_pictures`` in all."""
    draw = random.Random(2)
    (folder / "benchmark" / "files").mkdir(parents=True)
    (folder / "benchmark" / "benchmark.toml").write_text('name = "b"\n')
    for number in range(n):
        file = SampleFile(
            name="image_1.jpg",
            path=f"files/{number}.jpg",
            kind="image",
            width_px=640,
            height_px=480,
        )
        (folder / "benchmark" / file.path).write_bytes(photo(number))
        boxes = [
            [x := draw.randrange(600), y := draw.randrange(440), x + 20, y + 20] for _ in range(40)
        ]
        artifacts = (keep(folder / "agents", photo(n + number)),) if number < n_pictures - n else ()
        seen = Observation(
            result={"count": 40, "boxes": boxes, "notes": [prose(draw, 20)]}, artifacts=artifacts
        )
        sample = made_sample(
            f"a{number:04}",
            query=f"{prose(draw, 20)}?",
            files=(file,),
            task_type=draw.choice(WORDS),
        )
        thought = prose(draw, 40)
        steps = [call("2*3", turn, thought=thought, observation=seen) for turn in range(2)]
        yield end_to_end(
            sample,
            *steps,
            call("6 + 1", 2),
            answer=f"rows: {draw.choice([6, 7, 8])} {prose(draw, 40)}",
        )


def write(run: Path, records: Iterator[Record]) -> None:
    """Write a run without syncing each record to disk."""
    write_run(run, [next(records)])
    with (run / RECORDS_FILE).open("a", encoding="utf-8") as file:
        file.writelines(f"{record.model_dump_json()}\n" for record in records)


def photo(seed: int) -> bytes:
    """Return a JPEG of 640 x 480 px with structure at several scales, as foliage has."""
    draw = np.random.default_rng(seed)
    layers = [draw.normal(0, 22, (480 // size, 640 // size, 3)) for size in (4, 16, 80)]
    sized = [
        np.kron(layer, np.ones((480 // len(layer), 640 // layer.shape[1], 1))) for layer in layers
    ]
    buffer = io.BytesIO()
    pixels = np.clip(np.add(sum(sized), (70, 110, 60)), 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


async def measure(page_file: Path) -> dict[str, float]:
    """Open a report and use it; return milliseconds."""
    async with browser() as chromium:
        page = await chromium.open(width=1400, height=900)
        observe = f"window.tasks = []; {TASKS}.observe({{type: 'longtask', buffered: true}})"
        await page.send("Page.addScriptToEvaluateOnNewDocument", source=observe)
        await page.goto(page_file.as_uri())
        await page.until("document.body.dataset.ready")
        paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        found = {
            "first paint": await page.until(paint),
            "overview and list ready": await page.evaluate(
                "performance.getEntriesByName('ready')[0].startTime"
            ),
            "longest task at start": await page.evaluate("Math.max(0, ...window.tasks)"),
        }
        await page.evaluate("location.hash = 'samples'")
        await page.until("document.querySelector('#detail h2')")
        await page.evaluate("new Promise((done) => setTimeout(done, 500))")
        busy = "const end = performance.now() + 150; while (performance.now() < end);"
        await page.evaluate(f"setTimeout(() => {{ {busy} }})")
        await page.until("window.tasks.some((ms) => ms >= 150)")  # long tasks are seen
        await page.evaluate("window.tasks.length = 0")
        change = "document.querySelector('select[name={0}]').selectedIndex = {1}; "
        change += "document.querySelector('select[name={0}]').dispatchEvent(new Event('change'))"
        search = "document.getElementById('search').value = 'nitrogen rust'; "
        search += "document.getElementById('search').dispatchEvent(new Event('input'))"
        scrolls = ["document.getElementById('list').scrollBy(0, 3000)"] * 8
        scrolls += [
            f"document.getElementById('list').scrollTo(0, {place})" for place in (1_000_000, 0)
        ]
        reset = "document.getElementById('reset').click()"
        for act in (*scrolls, change.format("sort", 3), change.format("task", 3), reset, search):
            await page.evaluate(f"setTimeout(() => {{ {act} }})")
            await page.evaluate("new Promise((done) => setTimeout(done, 150))")
        await page.until("!document.getElementById('found').textContent.includes('searching')")
        found["longest task in use"] = await page.evaluate("Math.max(0, ...window.tasks)")
        await page.evaluate("document.getElementById('reset')?.click()")
        start = "window.begun = performance.now(), document.activeElement.blur()"
        await page.evaluate(start)
        before = await page.evaluate("document.querySelector('#detail h2').textContent")
        await page.type("j")
        await page.until(f"document.querySelector('#detail h2').textContent !== {before!r}")
        found["next sample shown"] = await page.evaluate("performance.now() - window.begun")
        if page.errors:
            print("errors:", *page.errors[:3])
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure size and speed of the report page.")
    parser.add_argument("--texts", type=int, default=15_000)
    parser.add_argument("--agents", type=int, default=2_000)
    parser.add_argument("--pictures", type=int, default=3_000)
    parser.add_argument(
        "--keep", type=Path, help="Folder for runs and reports, which are used again."
    )
    args = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="agrotools-page-") as temporary:
        folder = args.keep or Path(temporary)
        for name in ("texts", "agents"):
            run, page = folder / name, folder / f"{name}.html"
            if not run.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                write(
                    run,
                    texts(args.texts)
                    if name == "texts"
                    else agents(args.agents, args.pictures, folder),
                )
            if not page.is_file():
                began = time.perf_counter()
                written = build_report([run], page, yardsticks=Yardsticks())
                print(
                    f"{name}: {written.shown} of {written.records} records, {written.pictures} pictures",
                    end=", ",
                    flush=True,
                )
                print(f"{time.perf_counter() - began:.0f} s to write", end=", ", flush=True)
            print(f"{name}: {page.stat().st_size / 1e6:.1f} MB", flush=True)
            found = asyncio.run(measure(page))
            for what, ms in found.items():
                print(f"  {what:26}{ms:8.0f} ms")
            failed |= (
                found["first paint"] > FIRST_VIEW_MS
                or found["overview and list ready"] > FIRST_VIEW_MS
            )
            failed |= (
                found["longest task in use"] > LONGEST_TASK_MS or page.stat().st_size > LARGEST_FILE
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
