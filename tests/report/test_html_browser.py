"""The report in a real browser: nothing fails, nothing is fetched, nothing that others wrote is run."""

from pathlib import Path

import pytest

from agrotools.core import Observation
from agrotools.report.html import build_report
from support.browser import NO_BROWSER, Page, browser, find_browser
from support.made_runs import (
    ATTACK,
    ATTACKS,
    call,
    end_to_end,
    hostile_run,
    keep,
    made_sample,
    picture,
    predicted,
    right,
    write_files,
    write_run,
)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER)]

ROWS = "[...document.querySelectorAll('#list a.row b')].map((each) => each.textContent)"
SHOWN = "document.querySelector('#detail h3')?.textContent.replace(/\\s+/g, ' ').trim()"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model beside the oracle: s0 answered wrong, s1 without an answer, s2 with a failed call, s3 right."""
    tmp_path = tmp_path_factory.mktemp("report")
    samples = [made_sample(f"s{number}") for number in range(4)]
    write_files(tmp_path, samples)
    failed = {"kind": "invalid_argument", "message": "fruit is not defined"}
    model = [
        end_to_end(samples[0], call("2*4"), call("6 + 1", 1), answer="rows: 8"),
        end_to_end(samples[1], call("2*3"), answer=None),
        end_to_end(samples[2], call("2*3", observation={"error": failed}), call("6 + 1", 1)),
        right(samples[3]),
        *(predicted(sample, "2*3", "6 + 1") for sample in samples),
    ]
    overlay = keep(tmp_path / "oracle", picture((200, 30, 30), form="PNG"))
    drawn = Observation(result={"value": 6.0}, artifacts=(overlay,))
    best = [end_to_end(sample, call("2*3", observation=drawn), call("6 + 1", 1)) for sample in samples]
    runs = [
        write_run(tmp_path / "model", model, model="some-model"),
        write_run(tmp_path / "oracle", best, model="baseline:oracle", privileged=True),
    ]
    return build_report(runs, tmp_path / "report.html").path


async def choose(page: Page, select: str, value: str) -> None:
    """Choose an entry of a list as a person with a keyboard does."""
    await page.evaluate(
        f"(() => {{ const e = document.getElementById({select!r}); e.value = {value!r};"
        " e.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )


def faults(page: Page) -> tuple[list[str], list[str]]:
    return page.errors, page.dialogs


async def test_samples_are_found_by_filters_search_keys_and_links(report: Path):
    async with browser() as chromium:
        page = await chromium.open(report.as_uri())
        assert await page.evaluate("document.getElementById('run').selectedOptions[0].textContent") == "some-model"
        assert len(await page.evaluate(ROWS)) == 8

        await page.click("input[value='tool error']")
        assert await page.evaluate(ROWS) == ["s2"]
        await page.click("input[value='tool error']")
        await page.click("input[value='wrong argument']")
        assert await page.evaluate(ROWS) == ["s0"]
        await page.click("#reset")
        assert len(await page.evaluate(ROWS)) == 12
        await choose(page, "mode", "end-to-end")
        await choose(page, "run", "0")
        await choose(page, "state", "wrong")
        assert await page.evaluate(ROWS) == ["s0", "s1"]
        await page.click("#reset")

        await page.type("/")
        assert await page.evaluate("document.activeElement.id") == "text"
        await page.type("fruit is not")
        await page.until("document.getElementById('count').textContent.startsWith('1 of 12')")
        assert await page.evaluate(ROWS) == ["s2"]
        assert await page.evaluate("document.getElementById('text').value") == "fruit is not"

        await page.click("#list a.row")
        await page.until("location.hash === '#model/end-to-end/s2/0'")
        assert "s2 end-to-end, some-model, answered" in await page.until(SHOWN)
        assert "fruit is not defined" in await page.evaluate("document.getElementById('detail').textContent")

        await page.click("#reset")
        await choose(page, "run", "0")
        await choose(page, "mode", "end-to-end")
        await choose(page, "order", "id")
        await page.evaluate("document.activeElement.blur()")
        await page.type("j")
        await page.until("location.hash === '#model/end-to-end/s3/0'")
        await page.type("kkk")
        await page.until("location.hash === '#model/end-to-end/s0/0'")
        assert await page.evaluate("document.querySelectorAll('#list [aria-current]').length") == 1

        assert faults(page) == ([], [])
        assert page.requests == [report.as_uri()]


async def test_a_link_opens_its_sample_with_pictures_and_those_of_the_other_run(report: Path):
    async with browser() as chromium:
        page = await chromium.open(f"{report.as_uri()}#model/end-to-end/s1/0")
        assert await page.until("document.querySelector('#detail').getBoundingClientRect().top < innerHeight / 2")
        assert (await page.until(SHOWN)).startswith("0 s1 end-to-end, some-model, max_steps")
        images = "[...document.querySelectorAll('#detail img')]"
        await page.until(f"{images}.length === 2 && {images}.every((each) => each.naturalWidth === 80)")
        other = await page.evaluate("document.querySelector('#detail .other').textContent.replace(/\\s+/g, ' ')")
        assert "baseline:oracle, end-to-end" in other
        assert "rows: 7" in other
        assert "overlay.png" in other
        await page.click("#detail button.zoom")
        assert await page.evaluate("document.querySelector('#detail figure').classList.contains('large')")

        await page.goto(f"{report.as_uri()}#oracle/end-to-end/s2/0")
        await page.until(f"{SHOWN}.startsWith('100 s2 end-to-end, baseline:oracle')")
        assert "s2" in await page.evaluate("document.querySelector('#list [aria-current]').textContent")
        await page.evaluate("location.hash = 'model/step-by-step/s3/0'")
        await page.until("document.querySelector('#detail h3').textContent.includes('step-by-step')")
        assert await page.evaluate("document.querySelectorAll('#detail table.steps tbody tr').length") == 3
        await page.evaluate("location.hash = 'nowhere/at/all/%zz'")
        assert faults(page) == ([], [])


async def test_a_class_of_errors_leads_to_a_sample_whatever_is_filtered(report: Path):
    async with browser() as chromium:
        page = await chromium.open(report.as_uri())
        await choose(page, "task", "organ_counting")
        await choose(page, "state", "right")
        link = "a.example[href$='/end-to-end/s2/0']"
        assert await page.evaluate(f"document.querySelector({link!r}).textContent") == "s2"
        await page.click(link)
        await page.until(f"{SHOWN}?.includes('s2 end-to-end')")
        await page.until("document.getElementById('samples').getBoundingClientRect().top < innerHeight")
        assert "tool error" in await page.evaluate("document.querySelector('#detail .facets').textContent")
        assert faults(page) == ([], [])


async def test_nothing_that_others_wrote_is_run_or_fetched(tmp_path: Path):
    report = build_report(
        [hostile_run(tmp_path / "run"), hostile_run(tmp_path / "again")], tmp_path / "report.html"
    ).path
    async with browser() as chromium:
        page = await chromium.open(report.as_uri())
        await page.click("#reset")
        assert len(await page.evaluate(ROWS)) == 6
        for at in range(6):
            await page.evaluate(f"document.querySelectorAll('#list a')[{at}].click()")
            assert ATTACKS[0] in await page.evaluate("document.getElementById('detail').textContent")
        await page.evaluate("document.getElementById('text').value = '<img src=x'")
        await page.evaluate("document.getElementById('text').dispatchEvent(new Event('input'))")
        await page.until("document.getElementById('count').textContent.startsWith('6 of 6')")
        text = await page.evaluate("document.body.textContent")
        assert ATTACK[:30] in text
        assert await page.evaluate("window.hit ?? null") is None
        assert (
            await page.evaluate("document.querySelectorAll('iframe, base, [onerror], [onload], [href^=java]').length")
            == 0
        )
        assert faults(page) == ([], [])
        assert page.requests == [report.as_uri()]
        # The policy holds even if something did get in.
        await page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.hit=1>')")
        await page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'hit = 1'}))")
        await page.evaluate("new Promise((done) => setTimeout(done, 100))")
        assert await page.evaluate("window.hit ?? null") is None
        assert page.errors
        assert page.blocked == [(tmp_path / "x").as_uri()]
        assert page.requests == [report.as_uri()]


@pytest.mark.parametrize("width", [400, 1600])
async def test_nothing_is_wider_than_the_window_in_light_and_dark(report: Path, width: int):
    async with browser() as chromium:
        page = await chromium.open(width=width, height=900)
        colours = []
        for scheme in ("light", "dark"):
            await page.prefer(scheme)
            await page.goto(f"{report.as_uri()}#model/end-to-end/s0/0")
            wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            assert await page.evaluate(wide)
            colours.append(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert colours[0] != colours[1]
        assert faults(page) == ([], [])
