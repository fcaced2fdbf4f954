"""Blind grading on a real server, in a real browser: keys alone, hostile text, and no model's name."""

import json
from pathlib import Path
from typing import Any

import pytest

from agrotools.build.review.grading import open_sheet
from agrotools.report.judges import Grade
from build.test_review_browser import SHOWN, enter, key
from support.axe import serious_faults
from support.browser import NO_BROWSER, Page, browser, find_browser
from support.made_runs import call, end_to_end, made_sample, write_files, write_run
from support.review_server import ATTACK, ReviewServer, reviewing

pytestmark = [pytest.mark.slow, pytest.mark.process]
pytest.importorskip("starlette", reason="needs the extra review")
pytest.importorskip("uvicorn", reason="needs the extra review")
needs_browser = pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER)

RUBRICS = f"""
[[rubric]]
id = "goal"
name = "Goal {ATTACK.replace('"', "'").replace("'", "&")}"
question = "Right? <script>window.hit=1</script>"
[[rubric]]
id = "plan"
name = "Plan"
question = "Sound?"
levels = ["no", "yes"]
steps = true
"""


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two runs on two samples; the first calls a tool, and writes markup wherever it can."""
    samples = [made_sample(f"s{k}", query=f"How many? {ATTACK}") for k in range(2)]
    write_files(tmp_path, samples)
    (tmp_path / "rubrics.toml").write_text(RUBRICS)
    step = call(ATTACK, thought=f"tulip-7b: {ATTACK}")
    first = [end_to_end(s, step, answer=f"rows: 7 {ATTACK}") for s in samples]
    second = [end_to_end(s, answer="rows: 9 says zinnia") for s in samples]
    return [
        write_run(tmp_path / "first", first, model=f"tulip-7b{ATTACK}"),
        write_run(tmp_path / "second", second, model="acme/zinnia-2"),
    ]


def stored(folder: Path) -> list[dict[str, Any]]:
    path = folder / "grades.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def a_grade(server: ReviewServer, row: Any, **changes: Any) -> dict[str, Any]:
    made = {
        "id": "0" * 12,
        "sample": row["id"],
        "content": row["content"],
        "reviewer": "Ada",
        "verdict": "grade",
    }
    return made | {"grades": {"goal": 1, "plan": 1}, "reason": ""} | changes


def test_the_server_stores_whole_grades_only_and_names_no_model(runs: list[Path], tmp_path: Path):
    sheet = open_sheet(runs)
    with reviewing(*runs, "--rubrics", tmp_path / "rubrics.toml", command="grade") as server:
        rows = server.index("Ada")["samples"]
        assert [row["id"] for row in rows] == [*sheet.items]
        everything = json.dumps(server.index("Ada")) + "".join(
            server.ask(f"/sample/{r['id']}").body.decode() for r in rows
        )
        assert "[model]" in everything
        assert not any(
            name in everything.lower() for name in ("tulip", "zinnia", "acme", "first", "second/")
        )
        row = next(row for row in rows if sheet.items[row["id"]].calls)
        for changes, status in (
            ({"grades": {"goal": 1}}, 422), ({"sample": "0" * 12}, 404),
            ({"content": "0" * 16}, 409), ({"verdict": "accept"}, 422), ({}, 200),
        ):  # fmt: skip
            assert server.post(a_grade(server, row, **changes)).status == status
        assert len(stored(tmp_path)) == 1
        assert Grade.model_validate(stored(tmp_path)[0]).value == 1
        assert server.ask(f"/decisions/{row['id']}?reviewer=Ada").data["sources"] == []
        assert server.ask(f"/decisions/{row['id']}?reviewer=Bo").data["mine"] is None
        assert (
            server.post(a_grade(server, row, id="1" * 12, reviewer="Bo")).data["row"]["mine"]
            == "grade"
        )
        shown = server.ask(f"/decisions/{row['id']}?reviewer=Ada").data
        assert (shown["mine"]["reviewer"], shown["others"], shown["hidden"]) == ("Ada", [], 0), (
            "others are not shown"
        )
        assert {each["reviewers"] for each in server.index("Cy")["samples"]} == {0}


PLAN = "!document.querySelector('[data-rubric=plan]').hidden"
OPEN = "document.getElementById('standing').open"


async def grade_answer(page: Page, presses: str) -> None:
    """Grade the shown answer: goal, and plan where it is asked; store it."""
    for press in presses if await page.evaluate(PLAN) else presses[0]:
        await page.type(press)
    await key(page, "Enter")


@needs_browser
async def test_everything_is_graded_by_keys(runs: list[Path], tmp_path: Path):
    arguments = (*runs, "--rubrics", tmp_path / "rubrics.toml", "--reviewer", "Ada")
    async with browser() as chromium:
        with reviewing(*arguments, command="grade") as server:
            page = await enter(chromium, server)
            assert await page.evaluate("document.querySelectorAll('#list li').length") == 4
            await key(page, "Enter")
            await page.until(
                "document.getElementById('trouble').textContent.startsWith('Not graded yet')"
            )
            await page.type("3")
            await key(page, "ArrowUp")
            await page.type("1")
            if await page.evaluate(PLAN):
                await page.type("2")
            first = await page.evaluate(SHOWN)
            await key(page, "Enter")
            await page.until("document.getElementById('saving').textContent === 'stored'")
            await page.until(f"{SHOWN} !== {first!r}")
            assert [(row["sample"], row["grades"]["goal"]) for row in stored(tmp_path)] == [
                (first, 0)
            ]
            graded = [first]
            for number in (2, 3, 4):
                assert not await page.evaluate(OPEN)
                assert not await page.evaluate("document.body.textContent.includes('zinnia')")
                if await page.evaluate(f"{graded}.includes({SHOWN})"):
                    await page.type("u")
                    await page.until(f"!{graded}.includes({SHOWN})")
                graded.append(at := await page.evaluate(SHOWN))
                await grade_answer(page, "22")
                await page.until(
                    f"document.getElementById('done').textContent === '{number} of 4 graded'"
                )
                if number < 4 and await page.evaluate("location.hash") != f"#{at}":
                    await page.until(f"{SHOWN} !== {at!r}")
            await page.until(OPEN)
            text = await page.evaluate("document.getElementById('standing-body').textContent")
            assert "zinnia" in text
            assert "tulip" in text
            assert await page.evaluate("window.hit === undefined")
            assert await page.evaluate(
                "document.querySelector('#standing-body img, #sample img[src=x]') === null"
            )
            await page.until("document.getElementById('sources').textContent !== ''")
    assert len(stored(tmp_path)) == 4


@needs_browser
async def test_no_page_has_a_serious_fault(runs: list[Path], tmp_path: Path):
    with (
        reviewing(*runs, "--reviewer", "Ada", command="grade") as server,
        reviewing(tmp_path, command="view") as view,
    ):
        async with browser() as chromium:
            page = await enter(chromium, server)
            await page.send("Page.setBypassCSP", enabled=True)
            for scheme in ("light", "dark"):
                await page.prefer(scheme)
                assert await serious_faults(page) == []
                for dialog in ("help", "standing"):
                    await page.evaluate(f"document.getElementById('{dialog}').showModal()")
                    assert await serious_faults(page) == []
                    await page.evaluate(f"document.getElementById('{dialog}').close()")
            await page.goto(view.address)
            assert await serious_faults(page) == []
