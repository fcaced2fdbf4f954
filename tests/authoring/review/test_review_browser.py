"""The review page in a real browser: keys, decisions that survive a killed server and a closed tab, hostile text."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.axe import serious_faults
from support.browser import NO_BROWSER, Chromium, Page, browser, find_browser
from support.review_server import ATTACK, ReviewServer, review_benchmark, reviewing, start_review

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER)]
pytest.importorskip("starlette", reason="needs the extra review")
pytest.importorskip("uvicorn", reason="needs the extra review")

SHOWN = "(document.querySelector('#sample article')?.dataset.id ?? '')"


async def enter(
    chromium: Chromium, server: ReviewServer, *, width: int = 1280, height: int = 800
) -> Page:
    """A tab that shows a sample."""
    page = await chromium.open(width=width, height=height)
    await come_in(page, server)
    return page


async def come_in(page: Page, server: ReviewServer) -> None:
    await page.goto(server.address)
    await page.until(SHOWN)


async def key(page: Page, name: str, *, control: bool = False) -> None:
    """Press one key that writes nothing by itself."""
    for kind in ("rawKeyDown", "keyUp"):
        await page.send(
            "Input.dispatchKeyEvent", type=kind, key=name, modifiers=2 if control else 0
        )


async def shows(page: Page, sample: str) -> None:
    await page.until(f"{SHOWN} === {sample!r}")


async def stored(page: Page) -> None:
    await page.until("document.getElementById('saving').textContent === 'stored'")


async def fetched(page: Page, sample: str) -> None:
    """Wait until the page has the text of a sample that comes later."""
    await page.until(
        f"performance.getEntriesByName(new URL('sample/{sample}', document.baseURI).href).length"
    )


def decisions(folder: Path) -> list[dict[str, Any]]:
    path = folder / "review.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def test_samples_are_paged_filtered_and_decided_by_keys(tmp_path: Path):
    folder = review_benchmark(tmp_path / "benchmark", 6)
    flag = {
        "id": "rows-0005",
        "check": "leak",
        "severity": "warning",
        "message": "the answer is in the question",
    }
    (folder / "quality.jsonl").write_text(json.dumps(flag) + "\nbroken\n")
    before = (folder / "samples.jsonl").read_bytes()
    async with browser() as chromium:
        with reviewing(folder, "--by", "Ada") as server:
            page = await enter(chromium, server)
            await shows(page, "rows-0001")
            for press, sample in (("j", "rows-0002"), ("j", "rows-0003"), ("k", "rows-0002")):
                await page.type(press)
                await shows(page, sample)
            await key(page, "ArrowRight")
            await shows(page, "rows-0003")

            await page.type("a")
            await shows(page, "rows-0004")
            await page.type("r")
            assert await page.evaluate("document.activeElement.id") == "reason"
            await page.type("wrong region")
            await key(page, "Enter")
            await shows(page, "rows-0005")
            assert "the answer is in the question" in await page.evaluate(
                "document.querySelector('.flags').textContent"
            )
            assert "1 lines could not be read" in await page.evaluate(
                "document.querySelector('.note').textContent"
            )
            await stored(page)
            made = decisions(folder)
            assert [(each["sample"], each["verdict"], each.get("reason", "")) for each in made] == [
                ("rows-0003", "accept", ""),
                ("rows-0004", "reject", "wrong region"),
            ]
            assert {each["reviewer"] for each in made} == {"Ada"}

            await page.type("e")
            assert await page.evaluate("document.activeElement.dataset.edit") == "query"
            await page.type("Please: ")
            await page.evaluate(
                "(() => { const e = document.querySelector('[data-edit=abs_tol]'); e.value = '3.5';"
                " e.dispatchEvent(new Event('input', { bubbles: true })); })()"
            )
            await page.evaluate("document.getElementById('reason').value = 'politer'")
            await key(page, "Enter", control=True)
            await shows(page, "rows-0006")
            await stored(page)
            edits = decisions(folder)[-1]["edits"]
            assert edits["query"].startswith("Please: How much")
            assert edits["slots"] == {"green": {"abs_tol": 3.5}}
            assert (folder / "samples.jsonl").read_bytes() == before

            await page.type("u")
            await shows(page, "rows-0001")
            await page.evaluate(
                "(() => { const e = document.getElementById('state'); e.value = 'undecided';"
                " e.dispatchEvent(new Event('input', { bubbles: true })); })()"
            )
            names = "[...document.querySelectorAll('#list .name')].map((each) => each.firstChild.textContent)"
            assert await page.evaluate(names) == ["rows-0001", "rows-0002", "rows-0006"]
            await page.type("?")
            assert await page.evaluate("document.getElementById('help').open")
            assert (page.errors, page.blocked, page.dialogs) == ([], [], [])


async def test_nothing_is_lost_when_the_server_is_killed_and_the_tab_reloaded(tmp_path: Path):
    folder = review_benchmark(tmp_path / "benchmark", 5)
    async with browser() as chromium:
        server = start_review(folder, "--by", "Ada")
        page = await enter(chromium, server)
        await page.type("a")
        await shows(page, "rows-0002")
        await stored(page)
        await fetched(page, "rows-0003")
        server.kill()

        await page.type("a")  # decided while nobody listens
        await page.until(
            "document.getElementById('trouble').textContent.includes('not stored yet')"
        )
        await page.type("r")
        await page.type("half a rea")
        assert [each["sample"] for each in decisions(folder)] == ["rows-0001"]
        # The dead process left half a line behind.
        with (folder / "review.jsonl").open("a") as file:
            file.write('{"id": "00000000", "sam')

        with reviewing(folder, "--by", "Ada") as again:
            assert again.port == server.port
            await come_in(page, again)
            await stored(page)
            assert [each["sample"] for each in decisions(folder)] == ["rows-0001", "rows-0002"]
            await page.evaluate("location.hash = '#rows-0003'")
            await shows(page, "rows-0003")
            await page.until("document.getElementById('draft').textContent.includes('restored')")
            assert await page.evaluate("document.getElementById('reason').value") == "half a rea"
            await page.click("#reason")
            await key(page, "End")
            await page.type("son")
            await key(page, "Enter")
            await shows(page, "rows-0004")
            await stored(page)
            assert decisions(folder)[-1]["reason"] == "half a reason"
            assert decisions(folder)[-1]["verdict"] == "reject"
            assert (
                await page.evaluate(
                    "Object.keys(localStorage).filter((key) => /draft|outbox/.test(key)).length"
                )
                == 0
            )


async def test_what_others_wrote_is_text_and_never_runs(tmp_path: Path):
    folder = review_benchmark(
        tmp_path / "benchmark", 2, rows_0001={"query": ATTACK, "source": ATTACK, "template": ATTACK}
    )
    lines = (folder / "samples.jsonl").read_text().splitlines()
    sample = json.loads(lines[0])
    sample["answer"][0]["label"] = ATTACK
    sample["reference"]["steps"][0]["thought"] = ATTACK
    sample["reference"]["steps"][0]["observation"]["result"] |= {
        "notes": [ATTACK],
        "flags": [ATTACK],
        "text": ATTACK,
    }
    sample["files"][0]["note"] = ATTACK
    (folder / "samples.jsonl").write_text("\n".join([json.dumps(sample), lines[1]]) + "\n")
    flag = {"id": "rows-0001", "check": ATTACK, "severity": "warning", "message": ATTACK}
    (folder / "quality.jsonl").write_text(json.dumps(flag) + "\n")
    async with browser() as chromium:
        with reviewing(folder, "--by", ATTACK[:50]) as server:
            page = await enter(chromium, server)
            assert await page.evaluate("document.querySelector('.query').textContent") == ATTACK
            assert await page.evaluate("document.querySelector('.thought').textContent") == ATTACK
            assert ATTACK in await page.evaluate("document.querySelector('.flags').textContent")
            assert await page.evaluate("document.getElementById('who').textContent") == ATTACK[:50]
            found = "document.querySelectorAll('#sample b b, [onerror], [src=x], #list b, main script').length"
            assert await page.evaluate(found) == 0
            await page.type("e")
            assert (
                await page.evaluate("document.querySelector('[data-edit=query]').value") == ATTACK
            )
            await key(page, "Escape")
            await page.evaluate("document.activeElement.blur()")
            await key(page, "Escape")
            await page.type("r")
            await page.type("<i>no</i>")
            await key(page, "Enter")
            await shows(page, "rows-0002")
            await page.evaluate("document.getElementById('standing-open').click()")
            await page.until("document.getElementById('standing').open")
            assert (
                await page.evaluate(
                    "document.querySelectorAll('#standing i, #standing img').length"
                )
                == 0
            )
            assert await page.evaluate("window.hit ?? null") is None
            assert (page.errors, page.blocked, page.dialogs) == ([], [], [])
            # The policy holds even if something did get in.
            await page.evaluate(
                "document.body.insertAdjacentHTML('beforeend', '<p onclick=window.hit=1 id=trap>x</p>')"
            )
            await page.evaluate("document.getElementById('trap').click()")
            assert await page.evaluate("window.hit ?? null") is None
            assert page.errors


async def test_pictures_carry_boxes_zoom_and_say_why_one_is_missing(tmp_path: Path):
    folder = review_benchmark(tmp_path / "benchmark", 2)
    async with browser() as chromium:
        with reviewing(folder, "--by", "Ada") as server:
            (folder / "files" / "2.png").unlink()
            page = await enter(chromium, server)
            await page.until("document.querySelector('.files img').naturalWidth === 64")
            shape = "document.querySelector('svg.shapes rect.argument')"
            box = f"(() => {{ const b = {shape}.getBBox(); return [b.x, b.y, b.width, b.height]; }})()"
            assert await page.evaluate(box) == [8, 6, 32, 24]
            edge = "getBoundingClientRect().left"
            image = "document.querySelector('.files img')"
            share = f"({shape}.{edge} - {image}.{edge}) / {image}.clientWidth"
            assert await page.evaluate(share) == pytest.approx(8 / 64, abs=0.03)
            differs = "[...document.querySelectorAll('tr.differs')].map((row) => row.textContent)"
            assert await page.evaluate(differs) == ["green_pct4050", "value80100"]
            await page.type("b")
            assert (
                await page.evaluate(
                    "getComputedStyle(document.querySelector('svg.shapes')).display"
                )
                == "none"
            )
            await page.type("z")
            await page.until(
                "document.querySelector('#viewer[open] .moved')?.style.transform.includes('scale')"
            )
            before = await page.evaluate("document.querySelector('.moved').style.transform")
            await page.type("+")
            assert await page.evaluate("document.querySelector('.moved').style.transform") != before
            await page.type("z")
            await page.until("!document.querySelector('#viewer[open]')")

            await page.type("j")
            await shows(page, "rows-0002")
            await page.until(
                "document.querySelector('.files .absent')?.textContent.includes('not found')"
            )


async def test_the_page_has_no_serious_fault(tmp_path: Path):
    folder = review_benchmark(tmp_path / "benchmark", 2)
    async with browser() as chromium:
        with reviewing(folder, "--by", "Ada") as server:
            page = await enter(chromium, server)
            await page.send(
                "Page.setBypassCSP", enabled=True
            )  # the policy of the page would refuse axe-core
            for scheme in ("light", "dark"):
                await page.prefer(scheme)
                assert await serious_faults(page) == []
                for dialog in ("help", "standing"):
                    await page.evaluate(f"document.getElementById('{dialog}').showModal()")
                    assert await serious_faults(page) == []
                    await page.evaluate(f"document.getElementById('{dialog}').close()")
