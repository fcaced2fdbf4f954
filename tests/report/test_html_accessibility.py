"""The page by the rules of axe-core, which npm provides: no serious fault in any view, light or dark."""

from pathlib import Path

import pytest

from agrotools.report.html import build_report
from support.axe import serious_faults
from support.browser import NO_BROWSER, browser, find_browser
from support.made_runs import call, end_to_end, made_sample, right, write_files, write_run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER)]


async def test_no_view_has_a_serious_fault(tmp_path: Path):
    samples = [made_sample(f"s{number}", task_type=f"task_{number % 2}") for number in range(12)]
    write_files(tmp_path, samples)
    wrong = [end_to_end(sample, call("2*4"), answer="rows: 8") for sample in samples[:6]]
    runs = [
        write_run(tmp_path / "a", [*wrong, *map(right, samples[6:])], model="some-model"),
        write_run(tmp_path / "b", map(right, samples), model="other-model"),
    ]
    report = build_report(runs, tmp_path / "report.html").path
    faults: dict[str, list[str]] = {}
    async with browser() as chromium:
        page = await chromium.open(width=1400, height=900)
        for scheme in ("light", "dark"):
            await page.prefer(scheme)
            for view in ("overview", "samples", "compare", "tables", "errors", "setup", "samples?q=x"):
                await page.goto("about:blank")
                await page.goto(f"{report.as_uri()}#{view}")
                await page.until("document.body.dataset.ready")
                await page.until("document.body.dataset.view !== 'samples' || document.querySelector('#detail > *')")
                if found := await serious_faults(page):
                    faults[f"{scheme} {view}"] = found
    assert faults == {}
