"""The editor of the review page in a real browser: traces are corrected, questions written, and nothing is lost."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from support.axe import serious_faults
from support.browser import NO_BROWSER, Chromium, Page, browser, find_browser
from support.review_server import ATTACK, ReviewServer, green_blocks, reviewing, start_review

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER)]
pytest.importorskip("starlette", reason="needs the extra review")
pytest.importorskip("uvicorn", reason="needs the extra review")

SHOWN = "(document.querySelector('#sample article')?.dataset.id ?? '')"
TOOLS = "[...document.querySelectorAll('.editor select.tool')].map((each) => each.value)"


async def enter(chromium: Chromium, server: ReviewServer) -> Page:
    page = await chromium.open(width=1280, height=900)
    await page.goto(server.address)
    await page.until("document.querySelector('#sample').firstElementChild")
    return page


async def press(page: Page, name: str, *, control: bool = False, alt: bool = False) -> None:
    """Press one key that writes nothing by itself."""
    held = 2 * control + alt
    for kind in ("rawKeyDown", "keyUp"):
        await page.send("Input.dispatchKeyEvent", type=kind, key=name, modifiers=held)


async def open_editor(page: Page, key: str = "t") -> None:
    await page.type(key)
    await page.until("document.querySelector('.editor')")


async def ran(page: Page) -> None:
    """Wait until the steps have run as they are."""
    await page.until(
        "document.querySelector('.editor') && !document.querySelector('.editor .stale, .editor.stale')"
        " && !document.querySelector('[data-do=run]').disabled"
    )


async def set_field(page: Page, at: str, value: str) -> None:
    """Fill in the field of the editor at a place in its state, as typing or choosing does."""
    await page.until(f"document.querySelector('[data-at=\"{at}\"]')")
    await page.evaluate(
        f"(() => {{ const e = document.querySelector('[data-at=\"{at}\"]'); e.value = {json.dumps(value)};"
        " for (const name of ['input', 'change']) e.dispatchEvent(new Event(name, { bubbles: true })); })()"
    )


async def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag on the picture of the editor, in shares of its width and height."""
    left, top, width, height = await page.evaluate(
        "(() => { const e = document.querySelector('.drawable.drawing'); e.scrollIntoView({block: 'center'});"
        " const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()"
    )
    for kind, (x, y) in (
        ("mousePressed", start),
        ("mouseMoved", end),
        ("mouseReleased", end),
    ):
        await page.send(
            "Input.dispatchMouseEvent",
            type=kind,
            x=left + x * width,
            y=top + y * height,
            button="left",
            buttons=1,
            clickCount=1,
        )


async def kept_on_server(page: Page) -> None:
    await page.until(
        "document.querySelector('[data-shows=kept]').textContent === 'kept on the server'"
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def versions(folder: Path) -> list[dict[str, Any]]:
    return lines(folder / "review.written" / "versions.jsonl")


async def test_a_trace_is_corrected_run_bound_and_saved_as_a_new_version(tmp_path: Path):
    folder = green_blocks(tmp_path / "benchmark", 2)
    before = (folder / "samples.jsonl").read_bytes()
    async with browser() as chromium:
        with reviewing(folder, "--by", "Ada") as server:
            page = await enter(chromium, server)
            await page.until(f"{SHOWN} === 'rows-0001'")
            await page.type("a")
            await page.until("document.getElementById('saving').textContent === 'stored'")
            await page.type("k")
            await page.until(f"{SHOWN} === 'rows-0001'")
            await open_editor(page)
            await ran(page)
            state = "document.querySelector('.part-state').textContent"
            assert "40 % ± 2 stands in the sample" in await page.evaluate(state)

            # Steps are added, moved and removed, also by keys; what uses a result cannot come before it.
            await set_field(page, "add-step", "measure_crop_weed_area")
            await page.until(f"{TOOLS}.length === 3")
            await page.evaluate("document.querySelector('.step[data-step=\"3\"]').focus()")
            await press(page, "ArrowUp", alt=True)
            names = ["describe_region", "measure_crop_weed_area", "calculate"]
            assert await page.evaluate(TOOLS) == names
            await page.evaluate("document.querySelector('.step[data-step=\"3\"]').focus()")
            await press(page, "ArrowUp", alt=True)
            await press(page, "ArrowUp", alt=True)
            assert await page.evaluate(TOOLS) == [names[0], names[2], names[1]]
            assert "cannot swap" in await page.evaluate(
                "document.getElementById('trouble').textContent"
            )
            await page.evaluate("document.querySelector('.step[data-step=\"3\"]').focus()")
            await press(page, "Delete")
            assert await page.evaluate(TOOLS) == ["describe_region", "calculate"]
            await press(page, "z", control=True)
            assert len(await page.evaluate(TOOLS)) == 3
            await press(page, "y", control=True)
            assert len(await page.evaluate(TOOLS)) == 2

            # A box is drawn: its label is none of that box, and the page asks which value counts.
            await page.click(".step[data-step='1'] button.draw")
            await drag(page, (0.025, 0.05), (0.5, 0.75))
            await page.until(
                "document.querySelector('[data-at=\"steps.0.region\"]').value === '8, 12, 160, 180'"
            )
            await press(page, "Enter", control=True)
            await ran(page)
            await page.until("document.querySelector('.part-state.differs')")
            await press(page, "s", control=True)
            await page.until(
                "document.getElementById('trouble').textContent.includes('stands in the sample')"
            )
            assert versions(folder) == []
            await page.click("button.take-result")
            await ran(page)
            await set_field(page, "query", "How much of the drawn part is green, twice over?")
            await kept_on_server(page)
            await page.goto(server.address)  # reloaded in the middle of it
            await page.until("document.querySelector('.editor')")
            await ran(page)
            assert "drawn part" in await page.evaluate(
                "document.querySelector('[data-at=query]').value"
            )
            await press(page, "z", control=True)
            assert "block 1" in await page.evaluate(
                "document.querySelector('[data-at=query]').value"
            )
            await press(page, "y", control=True)
            await press(page, "s", control=True)
            await page.until(f"{SHOWN} === 'rows-0001'")

            (version,) = versions(folder)
            sample = version["sample"]
            measured, calculated = sample["reference"]["steps"]
            assert (version["by"], sample["query"][:26]) == ("Ada", "How much of the drawn part")
            assert measured["arguments"]["region"] == [8, 12, 160, 180]
            share = measured["observation"]["result"]["vegetation_pct"]
            assert calculated["observation"]["result"]["value"] == pytest.approx(2 * share)
            assert sample["answer"][0]["value"] == pytest.approx(2 * share)
            assert (folder / "samples.jsonl").read_bytes() == before

            # It is another content: the earlier decision is shown, and does not count.
            assert "Not decided yet" in await page.evaluate(
                "document.getElementById('mine').textContent"
            )
            others = "document.querySelector('.others').textContent"
            await page.until(f"{others}.includes('no longer counted: accept')")
            made = "[...document.querySelectorAll('.made li')].map((each) => each.innerText)"
            drafted, corrected = await page.evaluate(made)
            assert drafted.startswith("drafted by template twice_green")
            assert "corrected by Ada" in corrected
            await page.type("a")
            await page.until("document.getElementById('saving').textContent === 'stored'")
            decided = lines(folder / "review.jsonl")
            assert [each["verdict"] for each in decided] == ["accept", "accept"]
            assert decided[0]["content"] != decided[1]["content"]
            # The version that lacked a decision on its value was refused, which the console says.
            assert len(page.errors) == 1
            assert "422" in page.errors[0]
            assert (page.blocked, page.dialogs) == ([], [])


async def test_a_value_of_another_calculation_is_not_offered_as_a_label(tmp_path: Path):
    folder = green_blocks(tmp_path / "benchmark", 1)
    part = "document.querySelector('.part-state').textContent"
    async with browser() as chromium:
        with reviewing(folder, "--by", "Ada") as server:
            page = await enter(chromium, server)
            await open_editor(page)
            await ran(page)
            await set_field(page, "steps.1.expression", "4 * g")
            await press(page, "Enter", control=True)
            await ran(page)
            await page.until("document.querySelector('.part-state.differs .take-result')")
            assert await page.evaluate("document.querySelector('.keep-label') === null")
            said = await page.evaluate(part)
            assert "the results give 80 % ± 2" in said
            assert "It cannot be kept" in said
            assert "± 2 was set when the sample was made" in said
            await page.click("button.take-result")
            await ran(page)
            await press(page, "s", control=True)
            await page.until("!document.querySelector('.editor')")
            (version,) = versions(folder)
            assert version["sample"]["answer"][0]["value"] == 80.0
            assert "labels_kept" not in version["sample"]["metadata"]["corrected"][0]


async def test_a_question_is_written_from_nothing_and_survives_a_killed_server(tmp_path: Path):
    folder = green_blocks(tmp_path / "benchmark", 2)
    picture = Image.open(folder / "files" / "2.png")
    picture.rotate(180).save(folder / "files" / "new.png")
    (folder / "files" / "no_picture.png").write_bytes(b"text")
    async with browser() as chromium:
        server = start_review(folder, "--by", "Ada")
        page = await enter(chromium, server)
        await page.until(SHOWN)
        await open_editor(page, "n")
        # A picture that lies in the folder, and that no sample has yet.
        await page.click(".tile[title='files/new.png']")
        await page.until("document.querySelector('.drawable img').naturalWidth > 0")
        await set_field(page, "query", "What share of the second block do the plants cover?")
        await set_field(page, "task_type", "weed_crop_area")
        await kept_on_server(page)
        server.kill()
        await set_field(page, "query", "What share of the block do the plants cover?")
        await page.until(
            "document.getElementById('trouble').textContent.includes('kept in this browser')"
        )
        with reviewing(folder, "--by", "Ada") as again:
            await page.goto(again.address)
            await page.until("document.querySelector('.editor')")
            query = "document.querySelector('[data-at=query]').value"
            assert await page.evaluate(query) == "What share of the block do the plants cover?"
            await set_field(page, "add-step", "measure_crop_weed_area")
            await press(page, "Enter", control=True)
            await page.until("document.querySelector('[data-path=\"0:soil_pct\"]')")
            assert await page.evaluate("document.querySelector('.artifacts img') !== null")
            # A value is chosen with the keyboard; it becomes the answer.
            await page.evaluate("document.querySelector('[data-path=\"0:soil_pct\"]').focus()")
            await page.send(
                "Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter",
                windowsVirtualKeyCode=13, text="\r",
            )  # fmt: skip
            await page.send("Input.dispatchKeyEvent", type="keyUp", key="Enter")
            await page.until("document.querySelector('.part-state .right')")
            await set_field(page, "parts.0.label", "share of bare soil")
            await page.click("[data-do=save]")
            await page.until(f"{SHOWN}.startsWith('written-')")
            (version,) = versions(folder)
            sample = version["sample"]
            (slot,) = sample["answer"]
            result = sample["reference"]["steps"][0]["observation"]["result"]
            assert (slot["value"], slot["unit"]) == (result["soil_pct"], "%")
            assert slot["label"] == "share of bare soil"
            (file,) = sample["files"]
            assert (file["path"], file["name"]) == ("files/new.png", "image_1.png")
            assert (file["width_px"], file["height_px"]) == (320, 240)
            assert sample["metadata"]["written"]["by"] == "Ada"
            assert await page.evaluate("document.getElementById('unfinished').children.length") == 0
            await page.until(
                "[...document.querySelectorAll('#list .name')].some((e) => e.textContent.endsWith('written'))"
            )
            assert page.dialogs == []


async def test_two_reviewers_agree_on_a_version_and_neither_overwrites_the_other(tmp_path: Path):
    folder = green_blocks(tmp_path / "benchmark", 1)
    async with browser() as chromium:
        with reviewing(folder, "--by", "Bo") as server:
            bo = await enter(chromium, server)
            await open_editor(bo)
            await ran(bo)
            await set_field(bo, "query", "Bo asks how much is green, twice over?")
            await kept_on_server(bo)
            with reviewing(folder, "--by", "Ada", "--port", str(server.port + 1)) as other:
                ada = await enter(chromium, other)
                await open_editor(ada)
                await ran(ada)
                await set_field(ada, "query", "Ada asks how much is green, twice over?")
                await press(ada, "s", control=True)
                await ada.until("document.querySelector('.query')?.textContent.startsWith('Ada')")
                await ada.type("a")
                await ada.until("document.getElementById('saving').textContent === 'stored'")

            await press(bo, "s", control=True)
            await bo.until(
                "document.getElementById('trouble').textContent.includes('Ada changed this sample')"
            )
            await bo.goto(server.address)
            await bo.until("document.querySelector('.editor .note')")
            # Its tab is in the background, where no frame is drawn to click on.
            await bo.evaluate("document.querySelector('.editor .note button').click()")
            await bo.until(
                "document.querySelector('[data-at=query]')?.value.startsWith('Ada asks')"
            )
            await press(bo, "Escape")
            await bo.until(f"{SHOWN} === 'rows-0001'")
            await bo.type("a")
            await bo.until("document.getElementById('saving').textContent === 'stored'")
            first, second = lines(folder / "review.jsonl")
            assert first["content"] == second["content"]
            assert [each["sample"]["query"][:3] for each in versions(folder)] == ["Ada"]


async def test_a_failing_tool_and_hostile_text_are_shown_as_text(tmp_path: Path):
    folder = green_blocks(tmp_path / "benchmark", 1, query=ATTACK)
    async with browser() as chromium:
        with reviewing(folder, "--by", "Ada") as server:
            page = await enter(chromium, server)
            await open_editor(page)
            await ran(page)
            assert await page.evaluate("document.querySelector('[data-at=query]').value") == ATTACK
            await set_field(page, "steps.0.region", "500, 500, 400, 400")
            await set_field(page, "parts.0.label", ATTACK)
            await press(page, "Enter", control=True)
            await page.until("document.querySelector('.result .error')")
            said = await page.evaluate("document.querySelector('.result .error').textContent")
            assert "region" in said
            assert "Traceback" not in said
            await press(page, "s", control=True)
            await page.until(
                "document.getElementById('trouble').textContent.includes('not saved: step 1')"
            )
            assert (
                await page.evaluate("document.querySelectorAll('.editor b b, [onerror]').length")
                == 0
            )
            assert await page.evaluate("window.hit ?? null") is None
            await page.send("Page.setBypassCSP", enabled=True)
            for scheme in ("light", "dark"):
                await page.prefer(scheme)
                assert await serious_faults(page) == []
            assert versions(folder) == []


async def test_a_new_question_chooses_between_label_and_tool_and_discard_asks_once(tmp_path: Path):
    call = {
        "tool": "measure_crop_weed_area",
        "arguments": {"image": "image_1.png"},
        "observation": {"result": {"soil_pct": 80.0}},
        "truth": {"soil_pct": 60.0},
    }
    answer = {
        "type": "tolerance", "name": "soil", "label": "share of bare soil", "value": 60.0, "unit": "%",
        "abs_tol": 5.0, "from": "steps[0].observation.soil_pct",
    }  # fmt: skip
    folder = green_blocks(
        tmp_path / "benchmark", 1, reference={"steps": [call]}, answer=[answer],
        query="How much of the block is bare?",
    )  # fmt: skip
    trouble = "document.getElementById('trouble').textContent"
    async with browser() as chromium:
        with reviewing(folder, "--by", "Ada") as server:
            page = await enter(chromium, server)
            await open_editor(page, "n")
            await page.click(".tile")
            await set_field(page, "query", "What share of this block is bare soil?")
            await set_field(page, "task_type", "weed_crop_area")
            await set_field(page, "add-step", "measure_crop_weed_area")
            await press(page, "Enter", control=True)
            await page.click("[data-path='0:soil_pct']")
            await page.until("document.querySelector('.part-state.differs .keep-label')")
            await press(page, "s", control=True)
            await page.until(f"{trouble}.includes('the label in rows-0001 says 60')")
            await page.click("button.keep-label")
            await ran(page)
            await page.click("[data-do=save]")
            await page.until(f"{SHOWN}.startsWith('written-')")
            (version,) = versions(folder)
            assert version["sample"]["answer"][0]["value"] == 60.0
            assert "tool_values" not in version["sample"]["metadata"]

            await open_editor(page, "n")
            await set_field(page, "query", "Work that may be lost")
            await page.click("[data-do=discard]")
            assert await page.evaluate("document.querySelector('.editor') !== null")
            await page.click("[data-do=discard]")
            await page.until("!document.querySelector('.editor')")
