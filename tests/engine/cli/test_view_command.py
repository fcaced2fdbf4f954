"""``agrotools view`` and ``agrotools view --list`` as a user runs them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import AbstainSlot, Record
from agrotools.report.html.data import record_data
from agrotools.report.html.server import Viewer
from agrotools.report.run_list import list_runs, runs_table
from agrotools.runner.rescore import rescore
from support.axe import serious_faults
from support.browser import NO_BROWSER, browser, find_browser
from support.made_runs import call, end_to_end, made_sample, right, write_files, write_run
from support.report_page import read_report
from support.shown import cells_of

SAMPLES = [made_sample(f"s{number}") for number in range(4)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs, one of them in a folder of its own, half done, and one that cannot be read."""
    write_files(tmp_path, SAMPLES)
    wrong = [end_to_end(sample, call("2*4"), answer="rows: 8") for sample in SAMPLES]
    done = write_run(tmp_path / "runs" / "done", [right(SAMPLES[0]), *wrong[1:]], model="one")
    rescore(done)
    write_run(
        tmp_path / "runs" / "more" / "half",
        [right(SAMPLES[0])],
        model="two",
        planned={"end-to-end": 4},
    )
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "manifest.json").write_text("{")
    return tmp_path / "runs"


def test_the_list_has_names_as_they_are_score_and_progress(folder: Path):
    for name in ("run[red]", "run[/b]"):
        run = write_run(
            folder / name, [right(sample) for sample in SAMPLES], model="vendor/model[/v2]"
        )
        rescore(run)
        (run / "records.jsonl").touch()  # as by a copy: the times do not tell
    with (folder / "run[red]" / "records.jsonl").open("ab") as file:
        file.write(
            (
                write_run(folder.parent / "other", [right(made_sample("s9"))]) / "records.jsonl"
            ).read_bytes()
        )
    (folder / "done" / "manifest.json").unlink()  # its copy is there
    rows = {
        name: row
        for name, row in cells_of(runs_table([*list_runs(folder)], folder)).items()
        if name != "broken"
    }
    assert {name: row["score"].text for name, row in rows.items()} == {
        "done": "FAS 25.0", "more/half": "not scored", "run[red]": "not scored", "run[/b]": "FAS 100.0",
    }  # fmt: skip
    assert rows["more/half"]["records"].text == "1 of 4"
    assert (rows["done"]["protocol"].text, rows["done"]["mode"].text) == ("react", "end-to-end")
    narrow = CliRunner(env={"COLUMNS": "40"}).invoke(
        app, ["view", "--list", str(folder)], catch_exceptions=False
    )
    assert "vendor/model[/v2]" in narrow.stdout, "no name is broken"
    done = CliRunner(env={"COLUMNS": "140"}).invoke(
        app, ["view", "--list", str(folder)], catch_exceptions=False
    )
    assert all(text in done.stdout for text in ("5 runs in ", "run[/b]", "vendor/model[/v2]"))
    entries = json.loads(CliRunner().invoke(app, ["view", "--list", str(folder), "--json"]).stdout)
    assert {entry["name"]: entry["score"] for entry in entries if entry["score"]} == {
        "done": 0.25,
        "run[/b]": 1.0,
    }
    assert next(entry for entry in entries if entry["name"] == "broken")["problem"]
    assert CliRunner().invoke(app, ["view", "--list", str(folder / "nowhere")]).exit_code != 0


def test_the_list_of_a_folder_without_runs_is_empty(tmp_path: Path):
    shown = CliRunner().invoke(app, ["view", "--list", str(tmp_path)], catch_exceptions=False)
    assert "0 runs in " in shown.stdout


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "agrotools", "view", str(folder), "--json"]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert server.stdout is not None
    try:
        text = ""
        while not text.endswith("\n}\n"):
            line = server.stdout.readline()
            assert line, "the server has ended"
            text += line
        started = json.loads(text)
        assert {each["name"] for each in started["runs"]} == {"done", "more/half", "broken"}
        yield started["address"]
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0
        server.stdout.close()


def answer(
    address: str, path: str, host: str | None = None, method: str = "GET"
) -> tuple[int, str]:
    place = urlsplit(address)
    connection = HTTPConnection(place.netloc, timeout=60)
    connection.request(method, path, headers={"Host": host} if host else {})
    reply = connection.getresponse()
    return reply.status, reply.read().decode()


@pytest.mark.process
def test_only_this_machine_with_the_printed_address_is_answered(address: str, folder: Path):
    path = urlsplit(address).path
    status, text = answer(address, path)
    assert status == 200
    assert "more/half" in text
    assert answer(address, path, method="HEAD") == (200, "")
    assert answer(address, path, "evil.example")[0] == 403
    assert answer(address, "/")[0] == 403
    assert answer(address, "/page?run=done")[0] == 403
    assert answer(address, f"{path}page?run=../../etc")[0] == 404
    assert answer(address, f"{path}page?run=nowhere")[0] == 404
    assert answer(address, f"{path}done/manifest.json")[0] == 404
    status, text = answer(address, f"{path}page?run=done&run=more/half")
    assert status == 200
    assert "connect-src &#39;self&#39;" in text or "connect-src 'self'" in text
    assert not (folder / "done" / "report.html").exists()


def test_each_record_is_processed_once_while_a_run_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    run, processed = folder / "more" / "half", list[str]()

    def counted(record: Record, *rest: Any) -> Any:
        processed.append(record.sample.id)
        return record_data(record, *rest)

    monkeypatch.setattr("agrotools.report.html.page.record_data", counted)
    monkeypatch.setattr("agrotools.report.html.server._REST", 0)
    viewer, names = Viewer(folder), ["more/half"]
    lost = Record(sample=SAMPLES[1], mode="end-to-end", invalid="no reply")
    (run / "records.jsonl").unlink()
    write_run(run, [right(SAMPLES[0]), lost], planned={"end-to-end": 4})
    (first,) = read_report(viewer.page(names)).head["runs"]
    assert (first["score"][0], first["records"], first["invalid"], first["missing"]) == (1, 2, 1, 2)
    for record in (
        end_to_end(SAMPLES[1], call("2*4"), answer="rows: 8"),
        right(SAMPLES[2]),
        right(SAMPLES[3]),
    ):
        with (run / "records.jsonl").open("a") as file:
            file.write(f"{record.model_dump_json()}\n")
        before = viewer.state(names)
        shown = read_report(viewer.page(names))
        assert viewer.page(names) is viewer.page(names)
        assert viewer.state(names) == before == shown.head["live"]["stamp"]
    assert processed == ["s0", "s1", "s1", "s2", "s3"], "s1 was run again"
    assert [(row["sample"], row["value"]) for row in shown.records] == [
        ("s0", 1),
        ("s1", 0),
        ("s2", 1),
        ("s3", 1),
    ]
    assert shown.head["runs"][0]["score"][0] == 0.75
    assert (shown.head["runs"][0]["invalid"], shown.head["runs"][0]["missing"]) == (0, 0)
    assert all(viewer.part(names, f"b{row['block']}") for row in shown.records)
    rescore(run)
    viewer.page(names)
    assert len(processed) == 5
    fresh = read_report(Viewer(folder).page(names))
    assert [row["value"] for row in fresh.records] == [1, 0, 1, 1]


def test_a_sample_is_scored_once_the_record_of_its_twin_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agrotools.report.html.server._REST", 0)
    yes = SAMPLES[0].model_copy(update={"id": "yes", "twin": "no", "may_abstain": True})
    refusal = AbstainSlot(name="refusal", label="no answer", reason="no_scale", asks=yes.answer)
    no = yes.model_copy(update={"id": "no", "twin": "yes", "answer": (refusal,)})
    records = [end_to_end(each, answer="cannot be determined: no scale") for each in (no, yes)]
    run = write_run(folder / "pair", records[:1], planned={"end-to-end": 2})
    viewer = Viewer(folder)
    assert [row["value"] for row in read_report(viewer.page(["pair"])).records] == [None]
    with (run / "records.jsonl").open("a") as file:
        file.write(f"{records[1].model_dump_json()}\n")
    shown = read_report(viewer.page(["pair"]))
    assert {row["sample"]: row["value"] for row in shown.records} == {"no": 0, "yes": 0}
    assert shown.head["runs"][0]["score"][0] == 0


def test_the_list_is_due_when_a_run_begins_or_ends_and_pages_when_a_run_goes_on(
    folder: Path, tmp_path: Path
):
    viewer = Viewer(folder)
    text = viewer.run_list().decode()
    shown = viewer.state([])
    assert f'data-stamp="{shown}"' in text
    viewer._list = viewer._list._replace(rests_until=0)
    assert viewer.state([]) == shown
    begun = write_run(
        folder / "begun", [right(SAMPLES[0])], model="three", planned={"end-to-end": 4}
    )
    records = (begun / "records.jsonl").read_bytes()
    (begun / "records.jsonl").write_bytes(b"")
    assert viewer.state([]) != shown
    assert viewer.without_records(["begun", "done"]) == ["begun"]
    (begun / "records.jsonl").write_bytes(records)
    assert viewer.without_records(["begun", "done"]) == []
    assert b"three" in viewer.page(["begun"])


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER)
async def test_the_page_shows_new_records_while_a_run_goes_on(address: str, folder: Path):
    run = folder / "more" / "half"
    figure = "document.querySelector('.figure b')?.textContent"
    async with browser() as chromium:
        page = await chromium.open(address)
        await page.click("a[href*='half']")
        assert await page.until(figure) == "100"
        assert "3 missing" in await page.evaluate(
            "document.querySelector('.run:not(.heads) .spent').textContent"
        )
        await page.evaluate("window.untouched = true")
        other = write_run(
            folder.parent / "other", [end_to_end(SAMPLES[1], call("2*4"), answer="rows: 8")]
        )
        with (run / "records.jsonl").open("ab") as file:
            file.write((other / "records.jsonl").read_bytes())
        await page.until(f"{figure} === '50'")
        assert await page.evaluate("window.untouched"), "the page was not loaded again"
        await page.evaluate("location.hash = 'samples'")
        await page.until("document.querySelector('#detail h2')?.textContent.includes('s1')")
        await page.evaluate("document.getElementById('list').scrollTop = 0")
        open_sample = await page.evaluate("document.querySelector('#detail h2').textContent")
        third = write_run(folder.parent / "third", [right(SAMPLES[2])])
        with (run / "records.jsonl").open("ab") as file:
            file.write((third / "records.jsonl").read_bytes())
        await page.until("document.getElementById('found').textContent.startsWith('3 of 3')")
        assert await page.evaluate("document.querySelectorAll('#list .row').length") == 3
        assert (
            await page.evaluate("document.querySelector('#detail h2').textContent") == open_sample
        )
        assert await page.evaluate("window.untouched")
        assert page.errors == []
        await page.goto(address)
        await page.click("input[value=done]")
        await page.click("input[value='more/half']")
        await page.click("form button")
        n_runs = "document.querySelectorAll('.runs .run .name button').length"
        await page.until(f"{n_runs} === 2")
        assert page.errors == []


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER)
async def test_the_list_of_runs_has_no_serious_fault(address: str):
    async with browser() as chromium:
        page = await chromium.open(address)
        assert await serious_faults(page) == []
