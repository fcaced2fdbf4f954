"""``agrotools view`` and ``agrotools runs`` as a user runs them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.runner.rescore import rescore
from support.browser import NO_BROWSER, Page, browser, find_browser
from support.made_runs import call, end_to_end, made_sample, right, write_files, write_run

SAMPLES = [made_sample(f"s{number}") for number in range(4)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs, one of them in a folder of its own, half done, and one that cannot be read."""
    write_files(tmp_path, SAMPLES)
    wrong = [end_to_end(sample, call("2*4"), answer="rows: 8") for sample in SAMPLES]
    done = write_run(tmp_path / "runs" / "done", [right(SAMPLES[0]), *wrong[1:]], model="one")
    rescore(done)
    write_run(tmp_path / "runs" / "more" / "half", [right(SAMPLES[0])], model="two", planned={"end-to-end": 4})
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "manifest.json").write_text("{")
    return tmp_path / "runs"


def test_runs_lists_score_and_progress(folder: Path):
    done = CliRunner().invoke(app, ["runs", str(folder)])
    assert done.exit_code == 0
    words = " ".join(done.stdout.split())
    assert "3 runs in " in words
    assert "1 of 4" in words
    assert "not scored" in words
    assert "25.0" in words
    entries = json.loads(CliRunner().invoke(app, ["runs", str(folder), "--json"]).stdout)
    assert {entry["name"]: entry["done"] for entry in entries} == {"done": 4, "more/half": 1, "broken": 0}
    assert {entry["name"]: entry["score"] for entry in entries} == {"done": 0.25, "more/half": None, "broken": None}
    assert next(entry for entry in entries if entry["name"] == "broken")["problem"]
    missing = CliRunner().invoke(app, ["runs", str(folder / "nowhere")])
    assert missing.exit_code != 0


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "agrotools", "view", str(folder), "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert server.stdout is not None
    try:
        text = ""
        while not text.rstrip().endswith("}"):
            line = server.stdout.readline()
            assert line, "the server has ended"
            text += line
        yield json.loads(text)["address"]
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0
        server.stdout.close()


def answer(address: str, path: str, host: str | None = None) -> tuple[int, str]:
    place = urlsplit(address)
    connection = HTTPConnection(place.netloc, timeout=60)
    connection.request("GET", path, headers={"Host": host} if host else {})
    reply = connection.getresponse()
    return reply.status, reply.read().decode()


@pytest.mark.process
def test_only_this_machine_with_the_printed_address_is_answered(address: str, folder: Path):
    path = urlsplit(address).path
    status, text = answer(address, path)
    assert status == 200
    assert "more/half" in text
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


async def shows(page: Page, expression: str, value: object) -> None:
    """Wait for the value of an expression on a page that may be loaded again meanwhile."""
    shown = None
    async with asyncio.timeout(60):
        while shown != value:
            await asyncio.sleep(0.2)
            with suppress(AssertionError):
                shown = await page.evaluate(expression)


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER)
async def test_the_page_shows_new_records_while_a_run_goes_on(address: str, folder: Path):
    run = folder / "more" / "half"
    figure = "document.querySelector('.figure b')?.textContent"
    async with browser() as chromium:
        page = await chromium.open(address)
        await page.click("a[href*='half']")
        assert await page.until(figure) == "100"
        assert "3 missing" in await page.evaluate("document.querySelector('.run:not(.heads) .spent').textContent")
        other = write_run(folder.parent / "other", [end_to_end(SAMPLES[1], call("2*4"), answer="rows: 8")])
        with (run / "records.jsonl").open("ab") as file:
            file.write((other / "records.jsonl").read_bytes())
        await shows(page, figure, "50")
        assert page.errors == []
        await page.goto(address)
        await page.click("input[value=done]")
        await page.click("input[value='more/half']")
        await page.click("form button")
        await shows(page, "document.querySelectorAll('.runs .run .name button').length", 2)
        assert page.errors == []
