"""The report in a real browser: nothing fails, is fetched, or is run of what others wrote; axe-core finds no fault."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from agrotools.core import (
    AbstainSlot,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    Reply,
    SampleFile,
    Step,
    ToolCall,
    Usage,
)
from agrotools.formats.tool_check import LabelCount, ToolCheck
from agrotools.models import Message
from agrotools.report.html.data import whole_data
from agrotools.report.html.page import build_report
from agrotools.runner.prompts import PromptLog
from agrotools.scoring.aggregate import score_record
from agrotools.scoring.lost_points import lost_shares
from support.axe import serious_faults
from support.browser import NO_BROWSER, Chromium, Page, browser, find_browser
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

READY = "document.body.dataset.ready"
ROWS = (
    "[...document.querySelectorAll('#list a.row')].sort((a, b) => a.ariaPosInSet - b.ariaPosInSet)"
    ".map((each) => each.querySelector('b').textContent)"
)
FOUND = "document.getElementById('found').textContent"
SHOWN = "document.querySelector('#detail h2')?.textContent.replace(/\\s+/g, ' ').trim()"
DETAIL = "document.getElementById('detail').textContent.replace(/\\s+/g, ' ')"


def returned(expression: str, value: float) -> Step:
    """A call of ``calculate`` with its result."""
    return call(expression, observation=Observation(result={"value": value}))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model beside the oracle: s0 answered wrong, s1 without an answer, s2 with a failed call, s3 right."""
    tmp_path = tmp_path_factory.mktemp("report")
    samples = [made_sample(f"s{number}") for number in range(4)]
    write_files(tmp_path, samples)
    failed = {"kind": "invalid_argument", "message": "fruit is not defined"}
    model = [
        end_to_end(samples[0], returned("2*3", 6.0), returned("6 + 2", 8.0), answer="rows: 8"),
        end_to_end(samples[1], call("2*3"), answer=None),
        end_to_end(samples[2], call("2*3", observation={"error": failed}), call("6 + 1", 1)),
        right(samples[3]),
        *(predicted(sample, "2*3", "6 + 1") for sample in samples),
    ]
    overlay = keep(tmp_path / "oracle", picture((200, 30, 30), form="PNG"))
    drawn = Observation(result={"value": 6.0}, artifacts=(overlay,))
    best = [
        end_to_end(sample, call("2*3", observation=drawn), call("6 + 1", 1)) for sample in samples
    ]
    runs = [
        write_run(tmp_path / "model", model, model="some-model"),
        write_run(tmp_path / "oracle", best, model="baseline:oracle", privileged=True),
    ]
    return build_report(runs, tmp_path / "report.html").path


async def opened(chromium: Chromium, report: Path, address: str = "", **size: int) -> Page:
    page = await chromium.open(f"{report.as_uri()}{address}", **size)
    await page.until(READY)
    return page


async def choose(page: Page, select: str, value: str) -> None:
    """Choose an entry of a list as a person with a keyboard does."""
    await page.evaluate(
        f"(() => {{ const e = document.querySelector('select[name={select}]'); e.value = {value!r};"
        " e.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )


def faults(page: Page) -> tuple[list[str], list[str]]:
    return page.errors, page.dialogs


async def test_the_pair_of_the_overview_is_of_models_and_never_of_baselines(tmp_path: Path):
    samples = [made_sample(f"s{number:02}") for number in range(20)]
    write_files(tmp_path, samples)
    wrong = [end_to_end(each, call("2*3"), answer="rows: 9") for each in samples]
    oracle = write_run(
        tmp_path / "oracle", map(right, samples), model="baseline:oracle", privileged=True
    )
    good = write_run(tmp_path / "good", map(right, samples), model="good")
    poor = write_run(tmp_path / "poor", wrong, model="poor")
    pair = "document.querySelector('#overview p.pair strong')?.textContent ?? ''"
    async with browser() as chromium:
        for runs, shown in (([oracle, poor], ""), ([oracle, poor, good], "good is better: 100.0")):
            report = build_report(runs, tmp_path / f"{len(runs)}.html").path
            page = await opened(chromium, report)
            text = await page.evaluate(pair)
            assert (text[: len(shown)], bool(text)) == (shown, bool(shown))
            assert faults(page) == ([], [])


async def test_scores_are_rounded_as_in_the_terminal():
    script = Path(str(files("agrotools"))) / "report" / "html" / "formats.js"
    formats = script.read_text(encoding="utf-8")
    shares = [k / 400 for k in range(401)] + [k / 8 for k in range(9)] + [k / 7 for k in range(8)]
    async with browser() as chromium:
        page = await chromium.open()
        block = f"{{ {formats}\n[{shares}.map(points), {shares}.map((share) => rounded(100 * share))] }}"
        tenths, whole = await page.evaluate(block)
    assert [float(text) for text in tenths] == [float(f"{100 * share:.1f}") for share in shares]
    assert whole == [round(100 * share) for share in shares]


async def test_the_overview_shows_score_tasks_and_samples_worth_a_look_on_one_screen(report: Path):
    async with browser() as chromium:
        page = await opened(chromium, report, width=1400, height=900)
        text = await page.evaluate(
            "document.getElementById('overview').textContent.replace(/\\s+/g, ' ')"
        )
        assert "some-model" in text
        assert "organ counting" in text
        assert await page.evaluate("document.querySelector('.figure b').textContent") == "50"
        assert await page.evaluate("document.querySelectorAll('.worth a').length") == 2
        assert await page.evaluate("document.querySelector('main').scrollHeight <= innerHeight")
        await page.click(".worth a")
        await page.until("document.body.dataset.view === 'samples'")
        assert "some-model" in await page.until(SHOWN)
        assert faults(page) == ([], [])


async def test_samples_are_found_by_filters_search_keys_and_links(report: Path):
    async with browser() as chromium:
        page = await opened(chromium, report, "#samples")
        assert (
            await page.evaluate(
                "document.querySelector('select[name=run]').selectedOptions[0].textContent"
            )
            == "some-model"
        )
        assert len(await page.evaluate(ROWS)) == 8

        await choose(page, "lost", "arguments")
        assert await page.evaluate(ROWS) == ["s0"]
        await page.click("#reset")
        assert len(await page.evaluate(ROWS)) == 12
        await choose(page, "mode", "end-to-end")
        await choose(page, "run", "0")
        await choose(page, "state", "wrong")
        assert await page.evaluate(ROWS) == ["s0", "s1"]
        assert "run=0&mode=end-to-end&state=wrong" in await page.evaluate("location.hash")
        await page.click("#reset")

        await page.type("/")
        await page.until("document.activeElement.id === 'search'")
        await page.type("fruit is not")
        await page.until(f"{FOUND}.startsWith('1 of 12')")
        assert await page.evaluate(ROWS) == ["s2"]

        await page.click("#list a.row")
        await page.until("location.hash.endsWith('id=model/end-to-end/s2/0')")
        assert await page.until(SHOWN) == "✓100 s2 end-to-end, some-model"
        await page.until(f"{DETAIL}.includes('fruit is not defined')")

        await page.click("#reset")
        await choose(page, "run", "0")
        await choose(page, "mode", "end-to-end")
        await choose(page, "sort", "id")
        await page.evaluate("document.activeElement.blur()")
        await page.type("j")
        await page.until("location.hash.endsWith('id=model/end-to-end/s3/0')")
        await page.type("kkk")
        await page.until("location.hash.endsWith('id=model/end-to-end/s0/0')")
        assert (
            await page.evaluate("document.querySelectorAll('#list [aria-selected=true]').length")
            == 1
        )

        assert faults(page) == ([], [])
        assert page.requests == [report.as_uri()]


async def test_a_link_opens_its_sample_with_pictures_and_answers_of_the_other_run(report: Path):
    async with browser() as chromium:
        page = await opened(chromium, report, "#samples?id=model/end-to-end/s1/0")
        assert (await page.until(SHOWN)) == "✗0 s1 end-to-end, some-model"
        await page.until(f"{DETAIL}.includes('no answer (max_steps)')")
        image = "document.querySelector('#detail .stage img.base')"
        await page.until(f"{image}?.naturalWidth === 80")
        await page.until(f"{DETAIL}.includes('baseline:oracle privilegedrows: 7')")

        await page.click("#detail button.enlarge")
        await page.until("document.querySelector('#viewer img.base')?.naturalWidth === 80")
        await page.type("++")
        moved = "document.querySelector('#viewer .moved').style.transform"
        assert "scale(2.25)" in await page.evaluate(moved)
        await page.evaluate("document.getElementById('viewer').close()")

        await page.goto(f"{report.as_uri()}#samples?id=oracle/end-to-end/s2/0")
        await page.until(f"{SHOWN} === '✓100 s2 end-to-end, baseline:oracle'")
        await page.until("document.querySelector('#detail .toggle.layer')")
        await page.type("o")
        await page.until(
            "document.querySelector('#detail .stage img.overlay')?.naturalWidth === 80"
        )
        assert "s2" in await page.evaluate(
            "document.querySelector('#list [aria-selected=true]').textContent"
        )
        await page.evaluate("location.hash = 'samples?id=model/step-by-step/s3/0'")
        await page.until(f"{SHOWN}.includes('step-by-step')")
        await page.until("document.querySelectorAll('#detail .steps .step').length === 3")
        await page.evaluate("location.hash = 'samples?id=nowhere/%zz'")
        await page.evaluate("location.hash = 'nowhere/at/all/%zz'")
        await page.until("document.body.dataset.view === 'overview'")
        assert faults(page) == ([], [])


async def test_question_answer_and_steps_are_seen_at_once(report: Path):
    """Without scrolling, in a window of a laptop; the words of the answer that were read are marked."""
    async with browser() as chromium:
        address = "#samples?id=model/end-to-end/s0/0"
        page = await opened(chromium, report, address, width=1280, height=900)
        await page.until("document.querySelector('#detail .stage img.base')?.naturalWidth === 80")
        for part in (".query", ".given .answer", ".step", ".step .seen"):
            place = f"document.querySelector('#detail {part}').getBoundingClientRect()"
            top, bottom = await page.evaluate(f"[{place}.top, {place}.bottom]")
            assert 0 < top < bottom < 900, part
        # What is known of a tool's accuracy is one sentence on hover, not a line of each step.
        tested = "[...document.querySelectorAll('#detail .step h4 abbr')].map((each) => each.title)"
        assert set(await page.evaluate(tested)) <= {"Exact arithmetic, no accuracy study."}
        assert "no accuracy study" not in await page.evaluate(DETAIL)
        # Narrow, the steps stand between the answer and its scores.
        await page.resize(390, 844)
        tops = "['.query', '.given', '.taken', '.slots'].map((part) => document.querySelector(`#detail ${part}`)"
        tops = await page.evaluate(f"{tops}.getBoundingClientRect().top)")
        assert tops == sorted(tops)
        assert faults(page) == ([], [])


@pytest.mark.parametrize(
    ("answer", "before"),
    [
        ("There are 8 plants in 8 lines.\nrows: 8", ["rows: "]),
        ("The result:\n**rows**: **8**\nI saw 8 of 8.", ["**rows**: **"]),
        ('8 plants. {"rows": 8}', ['8 plants. {"rows": ']),
        ("About 8 rows.", []),
    ],
)
async def test_the_words_are_marked_that_the_score_was_read_from(
    tmp_path: Path, answer: str, before: list[str]
):
    sample = made_sample()
    write_files(tmp_path, [sample])
    run = write_run(tmp_path / "run", [end_to_end(sample, answer=answer)])
    report = build_report([run], tmp_path / "report.html").path
    marks = "[...document.querySelectorAll('#detail .answer mark')]"
    async with browser() as chromium:
        page = await opened(chromium, report, "#samples")
        await page.until("document.querySelector('#detail .answer')")
        assert await page.evaluate(f"{marks}.map((each) => each.textContent)") == ["8"] * len(
            before
        )
        shown = await page.evaluate(f"{marks}.map((each) => each.previousSibling.textContent)")
        assert [text.splitlines()[-1] for text in shown] == before
        assert faults(page) == ([], [])


async def test_values_that_are_alike_are_marked_each_at_its_name(tmp_path: Path):
    (rows,) = made_sample().answer
    plants = rows.model_copy(update={"name": "plants_seen", "label": "number of plants"})
    sample = made_sample(answer=(rows, plants))
    write_files(tmp_path, [sample])
    answer = "rows: 7\nplants seen: 7"
    run = write_run(tmp_path / "run", [end_to_end(sample, answer=answer)])
    report = build_report([run], tmp_path / "report.html").path
    async with browser() as chromium:
        page = await opened(chromium, report, "#samples")
        await page.until("document.querySelector('#detail .answer')")
        titles = "[...document.querySelectorAll('#detail .answer mark')].map((each) => each.title)"
        rows_title, plants_title = await page.evaluate(titles)
        assert rows_title.startswith("number of rows")
        assert plants_title.startswith("number of plants")
        assert faults(page) == ([], [])


async def test_help_opens_at_its_top_and_closes(report: Path):
    shown = "document.getElementById('help')"
    async with browser() as chromium:
        page = await opened(chromium, report, width=900, height=400)
        for by_key in (True, False):
            if by_key:
                await page.type("?")
            else:
                await page.click("#help-open")
            await page.until(f"{shown}.open")
            assert await page.evaluate(f"{shown}.scrollHeight > {shown}.clientHeight")
            assert await page.evaluate(f"{shown}.scrollTop") == 0
            title = "document.getElementById('help-title').getBoundingClientRect().top"
            assert 0 < await page.evaluate(title) < 100
            await page.click("#help form button")
            await page.until(f"!{shown}.open")
        assert faults(page) == ([], [])


async def test_a_jump_to_the_content_stays_in_the_view(report: Path):
    async with browser() as chromium:
        page = await opened(chromium, report, "#setup")
        await page.evaluate("document.querySelector('.skip').click()")
        assert await page.evaluate("document.activeElement.id") == "main"
        assert await page.evaluate("document.body.dataset.view") == "setup"
        assert faults(page) == ([], [])


def report_of_two(folder: Path, tasks: tuple[str, str]) -> Path:
    """Write the page of two runs on twelve samples of two task types; the first run has half of them wrong."""
    samples = [made_sample(f"s{number}", task_type=tasks[number % 2]) for number in range(12)]
    write_files(folder, samples)
    wrong = [end_to_end(sample, call("2*4"), answer="rows: 8") for sample in samples[:6]]
    runs = [
        write_run(folder / "a", [*wrong, *map(right, samples[6:])], model="some-model"),
        write_run(folder / "b", map(right, samples), model="other-model"),
    ]
    return build_report(runs, folder / "report.html").path


async def test_a_phone_shows_differences_with_whole_words(tmp_path: Path):
    report = report_of_two(tmp_path, ("weed_identification", "organ_counting"))
    headers = "[...document.querySelectorAll('#compare .differences tbody th')]"
    async with browser() as chromium:
        page = await opened(chromium, report, "#compare", width=390, height=844)
        names = await page.evaluate(f"{headers}.map((each) => each.textContent)")
        assert "weed identification" in names
        assert "wrong plan" in names
        # A name takes at most two lines, and no card is wider than the window.
        assert max(await page.evaluate(f"{headers}.map((each) => each.offsetHeight)")) < 60
        cards = "[...document.querySelectorAll('#compare .card')]"
        assert await page.evaluate(f"{cards}.every((each) => each.scrollWidth <= each.clientWidth)")
        assert faults(page) == ([], [])


async def test_the_names_of_tools_leave_room_for_the_numbers_of_samples_on_a_phone(tmp_path: Path):
    report = report_of_two(tmp_path, ("weed_identification", "organ_counting"))
    text = report.read_text(encoding="utf-8")
    tool = "measure_weed_phenotype"
    report.write_text(text.replace('["cause","planning",', f'["cause","tool:{tool}",'), "utf-8")
    row = f"[...document.querySelectorAll('#compare tr')].find((each) => each.textContent.includes('{tool}'))"
    async with browser() as chromium:
        page = await opened(chromium, report, "#compare", width=390, height=844)
        assert (await page.evaluate(f"{row}.textContent")).endswith("n 12")
        end = f"{row}.lastElementChild.getBoundingClientRect().right"
        card = f"{row}.closest('.card').getBoundingClientRect().right"
        assert await page.evaluate(f"{end} < {card}")
        # Two cards beside each other are narrower than one on a phone.
        await page.resize(1000, 844)
        table = f"{row}.closest('table').getBoundingClientRect().right"
        assert await page.evaluate(f"{table} < {card}")
        assert faults(page) == ([], [])


async def test_a_page_of_one_run_has_no_empty_comparison(tmp_path: Path):
    sample = made_sample()
    write_files(tmp_path, [sample])
    run = write_run(tmp_path / "run", [right(sample)])
    report = build_report([run], tmp_path / "report.html").path
    async with browser() as chromium:
        page = await opened(chromium, report, "#compare")
        assert await page.evaluate("document.body.dataset.view") == "overview"
        assert "Compare" not in await page.evaluate("document.getElementById('tabs').textContent")
        assert faults(page) == ([], [])


async def test_boxes_of_question_calls_and_truth_are_drawn_and_can_be_hidden(tmp_path: Path):
    sized = SampleFile(
        name="image_1.jpg", path="files/s1.jpg", kind="image", width_px=80, height_px=60
    )
    step = ReferenceStep(
        tool="calculate",
        arguments={"expression": "2*3", "image": "image_1.jpg"},
        truth={"boxes": [[1, 1, 9, 9], [20, 20, 30, 30]]},
    )
    plan = ReferenceTrajectory(steps=(step,))
    sample = made_sample(
        query="How large is the fruit at (10, 10, 40, 40)?", files=(sized,), reference=plan
    )
    write_files(tmp_path, [sample])
    seen = Observation(result={"boxes": [[2, 2, 10, 10], [21, 21, 31, 31], [50, 5, 70, 50]]})
    arguments = {"expression": "2*3", "image": "image_1.jpg", "region": [0, 0, 80, 60]}
    calls = Step(
        turn=0, kind="call", call=ToolCall(tool="calculate", arguments=arguments), observation=seen
    )
    report = build_report(
        [write_run(tmp_path / "run", [end_to_end(sample, calls)])], tmp_path / "report.html"
    ).path
    drawn = "Object.fromEntries(['question', 'call', 'found', 'truth'].map((origin) =>"
    drawn += " [origin, document.querySelectorAll(`#detail svg.shapes .line.${origin}`).length]))"
    async with browser() as chromium:
        page = await opened(chromium, report, "#samples")
        await page.until("document.querySelector('#detail svg.shapes')")
        assert await page.evaluate(drawn) == {"question": 1, "call": 1, "found": 3, "truth": 2}
        await page.type("t")
        assert await page.evaluate(drawn) == {"question": 1, "call": 1, "found": 3, "truth": 0}
        await page.click("#detail .toggle.found")
        assert await page.evaluate(drawn) == {"question": 1, "call": 1, "found": 0, "truth": 0}
        box = "document.querySelector('#detail svg.shapes .line.question')"
        placed = f"['x', 'y', 'width', 'height'].map((name) => Number({box}.getAttribute(name)))"
        assert await page.evaluate(placed) == [10, 10, 30, 30]
        assert faults(page) == ([], [])


async def test_nothing_that_others_wrote_is_run_or_fetched(tmp_path: Path):
    report = build_report(
        [hostile_run(tmp_path / "run"), hostile_run(tmp_path / "again")], tmp_path / "report.html"
    ).path
    async with browser() as chromium:
        page = await opened(chromium, report, "#samples")
        for view in ("overview", "tables", "errors", "compare", "setup", "samples?sort=id"):
            await page.evaluate(f"location.hash = {view!r}")
            await page.until(f"document.body.dataset.view === '{view.split('?')[0]}'")
        await page.type("?")
        await page.evaluate("document.getElementById('help').close()")
        assert len(await page.evaluate(ROWS)) == 6
        for at in range(6):
            await page.evaluate(f"document.querySelectorAll('#list a')[{at}].click()")
            await page.until(
                f"document.querySelector('#list a[aria-selected=true]') && {DETAIL}.includes('in a terminal')"
            )
            await page.evaluate(
                "document.querySelectorAll('#detail details').forEach((each) => { each.open = true; })"
            )
            await page.evaluate(
                "document.querySelectorAll('#detail button.more').forEach((each) => each.click())"
            )
            assert ATTACKS[0] in await page.evaluate(
                "document.getElementById('detail').textContent"
            )
        await page.evaluate("document.getElementById('search').value = '<img src=x'")
        await page.evaluate("document.getElementById('search').dispatchEvent(new Event('input'))")
        await page.until(f"{FOUND}.startsWith('6 of 6')")
        assert ATTACK[:30] in await page.evaluate("document.body.textContent")
        assert "\u202e" not in await page.evaluate("document.body.innerText")
        assert await page.evaluate("window.hit ?? null") is None
        bad = "document.querySelectorAll('iframe, base, [onerror], [onload], [href^=java]').length"
        assert await page.evaluate(bad) == 0
        assert faults(page) == ([], [])
        assert page.requests == [report.as_uri()]
        # The policy holds even if something did get in.
        await page.evaluate(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.hit=1>')"
        )
        await page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {text: 'hit = 1'}))"
        )
        await page.evaluate("new Promise((done) => setTimeout(done, 100))")
        assert await page.evaluate("window.hit ?? null") is None
        assert page.errors
        assert page.blocked == [(tmp_path / "x").as_uri()]
        assert page.requests == [report.as_uri()]


@pytest.mark.parametrize("width", [390, 900, 1600])
async def test_nothing_is_wider_than_the_window_in_light_and_dark(report: Path, width: int):
    async with browser() as chromium:
        page = await chromium.open(width=width, height=900)
        for view in (
            "overview",
            "table",
            "samples?id=model/end-to-end/s0/0",
            "tables",
            "compare",
            "setup",
        ):
            colours = []
            for scheme in ("light", "dark"):
                await page.prefer(scheme)
                await page.goto(f"{report.as_uri()}#{view}")
                await page.until(READY)
                wide = (
                    "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
                )
                assert await page.evaluate(wide), view
                colours.append(
                    await page.evaluate("getComputedStyle(document.body).backgroundColor")
                )
            assert colours[0] != colours[1]
        assert faults(page) == ([], [])


async def test_requests_replies_lost_points_and_two_dates_are_shown(tmp_path: Path):
    first = SampleFile(
        name="image_1.jpg", path="files/1.jpg", kind="image", width_px=80, height_px=60
    )
    files = (first, first.model_copy(update={"name": "image_2.jpg", "path": "files/2.jpg"}))
    samples = [made_sample(f"s{number}", files=files) for number in range(2)]
    write_files(tmp_path, samples)
    usage = Usage(input_tokens=1200, output_tokens=9)
    reply = Reply(text="Action: calculate\nInput: <b>2*4</b>", seconds=2.0, usage=usage)
    records = [
        end_to_end(samples[0], call("2*4", reply=reply), answer="The answer is:\nrows: 8"),
        right(samples[1]),
    ]
    run = write_run(tmp_path / "run", records, model="some-model")
    log = PromptLog(run)
    system = "You are given tools. " * 40
    log.write(
        log.lines(
            ("end-to-end", "s0", 0),
            [([Message.of("system", system), Message.of("user", samples[0].query)], [])],
        )
    )
    log.close()
    report = build_report([run], tmp_path / "report.html").path
    async with browser() as chromium:
        page = await opened(chromium, report, width=1400)
        bar = "[...document.querySelectorAll('.bar .part')].map((each) => each.textContent)"
        assert await page.evaluate(bar) == ["score50", "wrong plan50"]
        widths = "[...document.querySelectorAll('.bar .part')].map((each) => each.offsetWidth)"
        scored, lost = await page.evaluate(widths)
        assert scored == pytest.approx(lost, abs=2), "the score and what was lost are one whole"
        await page.click(".bar .part.planning")
        await page.until(f"{FOUND}.startsWith('1 of 2')")
        assert "lost=planning" in await page.evaluate("location.hash")
        await page.until(f"{DETAIL}.includes('wrong plan 100')")
        assert (
            await page.evaluate("document.querySelector('#detail .answer mark').textContent") == "8"
        )
        assert "model 2.0 s, 1.2k + 9 tokens" in await page.evaluate(DETAIL)
        await page.evaluate(
            "document.querySelectorAll('#detail details').forEach((each) => { each.open = true; })"
        )
        await page.until(f"{DETAIL}.includes({system.strip()!r})")
        assert "Input: <b>2*4</b>" in await page.evaluate(DETAIL)
        await page.evaluate("[...document.querySelectorAll('#detail .toggle')].at(-1).click()")
        await page.until("document.querySelector('#detail .stage img.after')?.naturalWidth === 80")
        slide = "const e = document.querySelector('.slider'); e.value = 80; e.dispatchEvent(new Event('input'));"
        await page.evaluate(f"(() => {{ {slide} }})()")
        assert "80%" in await page.evaluate(
            "document.querySelector('#detail .stage img.after').style.clipPath"
        )
        await page.evaluate(
            "document.querySelector('#detail .frame').scrollIntoView({ block: 'center' })"
        )
        middle = (
            "(() => { const { left, top, width, height } = document.querySelector('#detail .moved')"
        )
        middle += ".getBoundingClientRect(); return [left, width, top + height / 2]; })()"
        left, width, y = await page.evaluate(middle)
        for kind, share in (
            ("mousePressed", 0.8),
            ("mouseMoved", 0.5),
            ("mouseMoved", 0.3),
            ("mouseReleased", 0.3),
        ):
            place = {"x": left + share * width, "y": y}
            await page.send(
                "Input.dispatchMouseEvent",
                type=kind,
                **place,
                button="left",
                buttons=1,
                clickCount=1,
            )
        border = float(await page.evaluate("document.querySelector('#detail .slider').value"))
        assert border == pytest.approx(30, abs=2), "the border follows the pointer"
        await page.evaluate("document.querySelector('#detail .enlarge').click()")
        assert await page.evaluate("document.querySelector('#viewer .slider').value") == str(
            round(border)
        )
        await page.evaluate("document.querySelector('#viewer').close()")
        assert faults(page) == ([], [])


async def test_a_sample_says_that_its_point_was_lost_by_its_twin(tmp_path: Path):
    yes = made_sample("yes", files=(), twin="no", may_abstain=True)
    refusal = AbstainSlot(name="refusal", label="none", reason="no_scale", asks=yes.answer)
    no = made_sample("no", files=(), twin="yes", may_abstain=True, answer=(refusal,))
    records = [end_to_end(each, answer="rows: unknown") for each in (no, yes)]
    run = write_run(tmp_path / "run", records, model="some-model")
    report = build_report([run], tmp_path / "report.html").path
    async with browser() as chromium:
        page = await opened(chromium, report, "#samples?id=run/end-to-end/no/0")
        await page.until("document.querySelector('#detail .lost')")
        lost = await page.evaluate("document.querySelector('#detail .lost').textContent")
        assert lost.endswith("the answerable twin yes was refused: 1 point less")


async def test_a_refused_pair_is_not_the_first_sample_worth_a_look(tmp_path: Path):
    yes = made_sample("a-yes", files=(), twin="a-no", may_abstain=True)
    refusal = AbstainSlot(name="refusal", label="none", reason="no_scale", asks=yes.answer)
    no = made_sample("a-no", files=(), twin="a-yes", may_abstain=True, answer=(refusal,))
    ordinary = end_to_end(
        made_sample("b", files=()), returned("2*3", 6.0), returned("6 + 1", 7.0), answer="rows: 9"
    )
    refused = [end_to_end(each, answer="rows: unknown") for each in (no, yes)]
    run = write_run(tmp_path / "run", [*refused, ordinary], model="some-model")
    report = build_report([run], tmp_path / "report.html").path
    names = "[...document.querySelectorAll('.worth a b')].map((each) => each.textContent)"
    async with browser() as chromium:
        page = await opened(chromium, report)
        assert (await page.evaluate(names))[0] == "b"
        assert faults(page) == ([], [])


async def test_each_of_a_few_runs_has_a_bar_of_its_points(tmp_path: Path):
    samples = [made_sample(f"s{number}") for number in range(4)]
    write_files(tmp_path, samples)
    runs: list[Path] = []
    for name, n_wrong in (("good", 1), ("poor", 4), ("best", 0)):
        wrong = [end_to_end(each, answer="rows: 9") for each in samples[:n_wrong]]
        records = [*wrong, *map(right, samples[n_wrong:])]
        runs.append(write_run(tmp_path / name, records, model=name))
    report = build_report(runs, tmp_path / "report.html").path
    bars = (
        "[...document.querySelectorAll('.lost .of-run')]"
        ".map((each) => ['h3', '.bar'].map((part) => each.querySelector(part).textContent))"
    )
    async with browser() as chromium:
        page = await opened(chromium, report)
        assert await page.evaluate(bars) == [
            ["good", "score75wrong plan25"],
            ["poor", "wrong plan100"],
        ]
        await page.click(".lost .of-run:last-child a.part")
        await page.until("document.body.dataset.view === 'samples'")
        assert "run=1" in await page.evaluate("location.hash")
        assert faults(page) == ([], [])


async def test_five_hundred_rows_sort_and_a_record_is_downloaded_as_explain_prints_it(
    tmp_path: Path,
):
    samples = [made_sample(f"s{number:03}", files=()) for number in range(500)]
    calls = [call("2*3"), call("6 + 1", 1)]
    records = [
        end_to_end(each, *calls[: at % 3], answer=f"rows: {7 + at % 2}")
        for at, each in enumerate(samples)
    ]
    run = write_run(tmp_path / "run", records, model="some-model")
    report = build_report([run], tmp_path / "report.html").path
    rows_of_second = score_record(records[1])
    shares = lost_shares(records[1], rows_of_second)
    shown = whole_data(run, records[1], rows_of_second, shares)
    rows = "[...document.querySelectorAll('#table tbody tr')].map((row) => row.textContent)"
    async with browser() as chromium:
        page = await opened(chromium, report, "#table", width=1400, height=900)
        headings = (
            "[...document.querySelectorAll('#table thead th')].map((each) => each.textContent)"
        )
        assert await page.evaluate(headings) == [
            *("sample", "score ▲", "question", "expected", "answer", "mode", "lost by", "calls")
        ]
        for by in ("calls", "sample", "answer", "score"):
            await page.evaluate(f"document.querySelector('#table th a[href*=\"by={by}\"]').click()")
            await page.until(f"location.hash.includes('by={by}')")
            assert len(await page.evaluate(rows)) == 500
        await page.evaluate("document.querySelector('#table th a[href*=\"by=sample\"]').click()")
        await page.until(f"({rows})[0].startsWith('s000')")
        await page.click("#table a[href*='s001']")
        await page.until(f"{SHOWN}?.includes('s001')")
        await page.evaluate(
            "navigator.clipboard.writeText = async (text) => { window.copied = text; };"
            "URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return '#'; };"
        )
        await page.click("#copy-id")
        assert await page.until("window.copied") == "s001"
        await page.evaluate("document.getElementById('download').click()")
        assert json.loads(await page.until("window.saved")) == json.loads(json.dumps(shown))
        assert faults(page) == ([], [])


async def test_no_view_has_a_serious_fault(tmp_path: Path):
    report = report_of_two(tmp_path, ("task_0", "task_1"))
    faults: dict[str, list[str]] = {}
    async with browser() as chromium:
        page = await chromium.open(width=1400, height=900)
        for scheme in ("light", "dark"):
            await page.prefer(scheme)
            for view in (
                "overview",
                "table",
                "samples",
                "compare",
                "tables",
                "errors",
                "setup",
                "samples?q=x",
            ):
                await page.goto("about:blank")
                await page.goto(f"{report.as_uri()}#{view}")
                await page.until("document.body.dataset.ready")
                await page.until(
                    "document.body.dataset.view !== 'samples' || document.querySelector('#detail > *')"
                )
                if found := await serious_faults(page):
                    faults[f"{scheme} {view}"] = found
    assert faults == {}


async def test_the_overview_shows_on_how_many_photos_the_tools_agree_with_the_table(
    tmp_path: Path,
) -> None:
    """Labels are written by whoever made the table, so that they are text and nothing else."""
    label = "<img src=x onerror=alert(1)>"
    counts = [{"label": label, "right": 4, "otherwise": 1, "not_named": 0}]
    counts += [{"label": "rust", "right": 3, "otherwise": 0, "not_named": 2}]
    check = ToolCheck.model_validate(
        {
            **{"column": "Disease", "tool": "diagnose_pest_disease", "kind": "name"},
            **{"n": 10, "agreed": 7, "lower": 0.35, "upper": 0.93, "labels": counts},
            "silent": ("IMG_2013.jpg", "b.jpg"),
            "photos": [{"photo": label, "table": "rust", "tool": "healthy", "agrees": False}],
        }
    )
    samples = [made_sample(f"s{number}") for number in range(6)]  # a task with fewer is pale
    write_files(tmp_path, samples)
    run = write_run(tmp_path / "run", map(right, samples), tool_checks=(check,))
    report = build_report([run], tmp_path / "report.html").path
    rows = (
        "[...document.querySelectorAll('.checks table:not(.photos) tbody tr')].map((row) => "
        "[...row.children].map((cell) => cell.textContent))"
    )
    async with browser() as chromium:
        page = await opened(chromium, report, width=1400)
        said = await page.evaluate("document.querySelector('.checks p').textContent")
        assert said == check.sentence()
        assert await page.evaluate(rows) == [
            [label, "4 of 5", "1", ""],
            ["rust", "3 of 5", "", "2"],
        ]
        assert await page.evaluate(rows.replace(":not(.photos)", ".photos")) == [
            [label, "rust", "healthy", "differs"]
        ]
        await page.evaluate("document.querySelector('.checks details').open = true")
        assert await serious_faults(page) == []


OWN_PHOTOS = ToolCheck(
    column="Disease",
    tool="diagnose_pest_disease",
    kind="name",
    n=5,
    agreed=4,
    lower=0.4,
    upper=0.9,
    labels=(
        LabelCount(label="rust", right=2, otherwise=1, not_named=0),
        LabelCount(label="leaf miner", right=2, otherwise=0, not_named=0),
    ),
)


def report_of_own_photos(folder: Path) -> Path:
    samples = [made_sample(f"s{number}") for number in range(6)]
    write_files(folder, samples)
    own = {"tool_checks": (OWN_PHOTOS,)}
    wrongs = [end_to_end(sample, call("2*4"), answer="rows: 8") for sample in samples]
    wrong = write_run(folder / "run", wrongs, **own)
    oracle = {"model": "baseline:oracle", "privileged": True}
    best = write_run(folder / "oracle", map(right, samples), **oracle, **own)
    return build_report([wrong, best], folder / "report.html").path


async def test_the_page_of_own_photos_begins_with_a_photo_and_the_words_of_growers(tmp_path: Path):
    report = report_of_own_photos(tmp_path)
    async with browser() as chromium:
        page = await opened(chromium, report, width=1400, height=900)
        words = await page.evaluate("document.getElementById('overview').innerText")
        assert "a yardstick, not a model" in words
        assert "privileged" not in words
        assert "FAS" not in words
        columns = "[...document.querySelectorAll('.checks thead th')].map((each) => each.innerText)"
        assert await page.evaluate(columns) == ["named right", "named otherwise"]
        await page.evaluate("location.hash = '#compare'")
        await page.until("document.getElementById('compare').childElementCount > 0")
        for view in ("tables", "errors", "compare"):
            words = await page.evaluate(f"document.getElementById('{view}').textContent")
            assert words
            assert not re.search(r"\bFAS\b|privileged", words), view
        await page.evaluate("location.hash = '#overview'")
        photo = "document.querySelector('.worth img')"
        await page.until(f"{photo}.naturalWidth > 0")
        assert await page.evaluate(f"{photo}.getBoundingClientRect().bottom") < 900


LEAST_CONTRAST = 4.5
"""Ratio of the luminances of text and ground that WCAG 2.2 asks for (level AA)."""
FAINT_TEXTS = (Path(__file__).parent / "faint_texts.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("of_own_photos", [False, True])
async def test_every_text_stands_out_from_its_ground(tmp_path: Path, of_own_photos: bool):
    tasks = ("task_0", "task_1")
    report = report_of_own_photos(tmp_path) if of_own_photos else report_of_two(tmp_path, tasks)
    faint: dict[str, list[str]] = {}
    async with browser() as chromium:
        page = await chromium.open(width=1400, height=900)
        for scheme in ("light", "dark"):
            await page.prefer(scheme)
            for view in ("overview", "table", "samples", "compare", "tables", "errors", "setup"):
                await page.goto("about:blank")
                await page.goto(f"{report.as_uri()}#{view}")
                await page.until(READY)
                await page.until(
                    "document.body.dataset.view !== 'samples' || document.querySelector('#detail > *')"
                )
                found = await page.evaluate(f"({FAINT_TEXTS})({LEAST_CONTRAST})")
                assert found["texts"] > 10
                if found["faint"]:
                    faint[f"{scheme} {view}"] = found["faint"]
    assert faint == {}
