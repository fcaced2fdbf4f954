"""``agrotools score --judge``: judges on an endpoint, their replies kept, nothing paid for twice, nothing lost."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
import tomli_w
from aiohttp import web

from agrotools.runner.config import EvalConfig, JudgeConfig
from agrotools.runner.evaluate import evaluate
from agrotools_benchmarks.agrieval.plugin import ReferenceTextSlot
from support.command import run_command
from support.eval_process import AGROTOOLS
from support.judges import judged_by
from support.openai_server import Body, completion, error, serving, text_of
from support.plain_sample import plain_sample

pytestmark = pytest.mark.process

SAMPLES = 24


def _write(folder: Path) -> Path:
    folder.mkdir()
    header = {
        "name": "open",
        "version": "1",
        "licence": "CC0-1.0",
        "toolset": [],
        "modes": ["no-tool"],
        "bare": True,
    }
    (folder / "benchmark.toml").write_text(tomli_w.dumps(header), encoding="utf-8")
    with (folder / "samples.jsonl").open("w", encoding="utf-8") as lines:
        for number in range(SAMPLES):
            slot = ReferenceTextSlot(name="answer", label="answer", value=f"Drain field {number}.")
            sample = plain_sample(
                f"q{number}", query=f"What of field {number}?", toolset=(), answer=(slot,)
            )
            lines.write(sample.model_dump_json(by_alias=True, exclude_none=True) + "\n")
    return folder


class Judges:
    """Answers questions as a candidate, and grades by the number of the field as several judges do."""

    def __init__(self) -> None:
        self.graded: Counter[str] = Counter()
        self.broken = False
        self.refused = 0

    def __call__(self, body: Body) -> web.Response:
        model = body["model"]
        if model == "candidate":
            return completion(
                "Drain field "
                + text_of(body["messages"][-1]).split("field ")[1].rstrip("?")
                + ", I think."
            )
        if self.broken:
            self.refused += 1
            return error(500, "out of order")
        asked = text_of(body["messages"][1])
        self.graded[model] += 1
        if "field " not in asked.lower() or "Drain field" not in asked:
            return completion('{"reason": "as labelled", "grade": 2}')
        number = int(asked.split("Drain field ")[1].split(".")[0])
        if model == "mute":
            return completion("I would rather not say.")
        grade = number % 3 if model == "strict" else min(number % 3 + 1, 2)
        return completion(json.dumps({"reason": "", "grade": grade}))


def agrotools(*arguments: object, expect: int = 0) -> "subprocess.CompletedProcess[str]":
    done = run_command(*arguments, OPENAI_API_KEY="sk-test")
    assert done.returncode == expect, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "sk-test" not in done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged")
    with serving(Judges()) as endpoint:
        out = folder / "run"
        agrotools(
            "eval",
            _write(folder / "open"),
            "-m",
            "candidate",
            "--base-url",
            endpoint.base_url,
            "--out",
            out,
        )
    return out


@pytest.fixture
def fresh(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the run that nobody has judged, and a cache of its own."""
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    return Path(shutil.copytree(run, tmp_path / "run"))


def test_judges_grade_once_and_plain_scoring_shows_it_ever_after(fresh: Path):
    judges = Judges()
    with serving(judges) as endpoint:
        judge = judged_by(fresh.parent, "strict", "mild", at=endpoint.base_url, judge_votes=2)
        first = agrotools("score", fresh, *judge)
        assert judges.graded == {"strict": 2 * SAMPLES, "mild": 2 * SAMPLES}
        assert all(body["temperature"] > 0 for body in endpoint.requests), (
            "votes of one judge may differ"
        )
        again = agrotools("score", fresh, *judge)
        assert judges.graded == {"strict": 2 * SAMPLES, "mild": 2 * SAMPLES}, (
            "nothing is asked twice"
        )
        assert f"{2 * SAMPLES} known before" in again.stderr
    assert f"strict gave {2 * SAMPLES} replies" in first.stderr
    offline = agrotools("score", fresh)
    assert offline.stdout == first.stdout
    assert "Judge by strict" in offline.stdout
    told = agrotools("explain", fresh, "q1").stdout
    assert "Judge\n  Judge 75.0\n  mild: " in told
    assert "strict, vote 2: " in told
    agrotools("report", fresh, "--out", fresh / "page.html")
    assert "Judge by strict" in (fresh / "page.html").read_text(encoding="utf-8")
    assert f"{SAMPLES} of {SAMPLES} answers graded" in offline.stdout
    assert "the judges agree: alpha 0.45" in offline.stdout
    (scores,) = json.loads(agrotools("score", fresh, "--json").stdout)
    assert scores["modes"]["no-tool"]["metrics"]["agrieval.judge"]["overall"][
        "value"
    ] == pytest.approx((0.5 + 5 / 6) / 2)
    rows = [
        row
        for row in json.loads((fresh / "scores.json").read_text())["scores"]
        if row["metric"] == "agrieval.judge"
    ]
    assert len(rows) == SAMPLES
    assert {row["judge"] for row in rows} == {"mild, strict"}
    assert len({row["judge_prompt_hash"] for row in rows}) == 1
    kept = [json.loads(line) for line in (fresh / "judgements.jsonl").read_text().splitlines()]
    assert len(kept) == 4 * SAMPLES
    assert all(json.loads(line["reply"]).keys() == {"reason", "grade"} for line in kept), (
        "raw replies"
    )


def test_judges_are_asked_while_a_run_is_executed_and_the_caller_gets_what_they_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    judges = Judges()
    with serving(judges) as endpoint:
        config = EvalConfig.of(
            benchmark=str(_write(tmp_path / "open")),
            model="candidate",
            base_url=endpoint.base_url,
            out=tmp_path / "run",
        )
        panel = JudgeConfig(judge=("strict", "mild"), judge_base_url=endpoint.base_url)
        first = evaluate(config, StringIO(), judges=panel)
        again = evaluate(config, StringIO(), judges=panel)
        judges.broken = True
        broken = JudgeConfig(judge=("other",), judge_base_url=endpoint.base_url)
        unreachable = evaluate(config, StringIO(), judges=broken)
    assert capfd.readouterr() == ("", "")
    assert [(each.judge, each.replies, each.known) for each in first.judged] == [
        ("strict", SAMPLES, 0),
        ("mild", SAMPLES, 0),
    ]
    assert [(each.replies, each.known) for each in again.judged] == [(0, SAMPLES)] * 2
    (other,) = unreachable.judged
    assert (other.replies, other.missing) == (0, SAMPLES)
    assert other.error is not None


def test_merged_shards_have_the_grades_of_the_run_without_shards(
    fresh: Path, run: Path, tmp_path: Path
):
    judges, benchmark = Judges(), run.with_name("open")
    with serving(judges) as endpoint:
        judge = judged_by(fresh.parent, "strict", "mild", at=endpoint.base_url)
        agrotools("score", fresh, *judge)
        parts = [tmp_path / f"part-{number}" for number in (1, 2, 3)]
        for number, part in enumerate(parts, 1):
            shard = ("--shard", f"{number}/3", "--out", part)
            agrotools("eval", benchmark, "-m", "candidate", "--base-url", endpoint.base_url, *shard)
            agrotools("score", part, *judge)
        merged = tmp_path / "merged"
        agrotools("merge", *parts, "--out", merged)
        judges.graded.clear()
        told = agrotools("score", merged, *judge)
        assert not judges.graded, "no reply was lost"
    assert f"{SAMPLES} known before" in told.stderr
    assert len((merged / "judgements.jsonl").read_text().splitlines()) == 2 * SAMPLES, (
        "no reply is there twice"
    )
    tables = [
        json.loads(agrotools("score", run, "--json").stdout)[0]["modes"] for run in (fresh, merged)
    ]
    assert tables[0]["no-tool"]["metrics"]["agrieval.judge"]["overall"]["n"] == SAMPLES
    assert tables[0]["no-tool"]["metrics"] == tables[1]["no-tool"]["metrics"]

    (parts[0] / "judge-rubrics-mine.toml").touch()
    for others in (parts[1:], parts[:0:-1]):
        refused = agrotools(
            "merge", parts[0], *others, "--out", tmp_path / "mixed", expect=2
        ).stderr
        assert "shards were judged by different rubrics" in refused
        assert "judge-rubrics-mine.toml / the built-in ones" in " ".join(refused.split())


def test_a_judge_is_checked_on_answers_with_known_grades(fresh: Path, tmp_path: Path):
    own = tmp_path / "own.jsonl"
    item = {"question": "q", "reference": "Drain field 7.", "answer": "no", "grade": 1}
    own.write_text(json.dumps(item) + "\n", encoding="utf-8")
    with serving(Judges()) as endpoint:
        judge = judged_by(fresh.parent, "strict", at=endpoint.base_url, judge_calibration="shipped")
        shipped = agrotools("score", fresh, *judge).stdout
        assert (
            "strict on 30 answers with known grades: 33.3 % graded exactly, +1.00 grades on average"
            in shipped
        )
        judge = judged_by(fresh.parent, "strict", at=endpoint.base_url, judge_calibration=str(own))
        mine = agrotools("score", fresh, *judge).stdout
        assert "strict on 31 answers with known grades" in mine
    own.write_text('{"question": "q"}\n', encoding="utf-8")
    wrong = agrotools("score", fresh, *judge, expect=2)
    assert "line 1: reference: Field required" in wrong.stderr


def test_a_judge_that_is_down_costs_nothing_and_the_same_command_goes_on(fresh: Path):
    judges = Judges()
    judges.broken = True
    with serving(judges) as endpoint:
        judge = judged_by(fresh.parent, "strict", at=endpoint.base_url, judge_concurrency=4)
        down = subprocess.Popen(
            [*AGROTOOLS, "score", str(fresh), *map(str, judge)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENAI_API_KEY": "sk-test"},
        )
        while not judges.refused:
            time.sleep(0.05)
        down.send_signal(signal.SIGINT)
        time.sleep(0.5)
        down.send_signal(signal.SIGINT)
        _, stderr = down.communicate(timeout=60)
        assert down.returncode == 130
        assert "stopped: judgements are kept" in stderr
        assert "Traceback" not in stderr
        judges.broken = False
        agrotools("score", fresh, *judge)
    assert judges.graded == {"strict": SAMPLES}


def test_killed_at_any_moment_no_reply_is_asked_for_again_but_those_in_flight(fresh: Path):
    judges = Judges()
    with serving(judges, latency_s=0.15) as endpoint:
        judge = judged_by(fresh.parent, "strict", at=endpoint.base_url, judge_concurrency=2)
        command = ["score", fresh, *judge]
        env = {
            **os.environ,
            "OPENAI_API_KEY": "sk-test",
            "AGROTOOLS_CACHE": str(fresh.parent / "none"),
        }
        process = subprocess.Popen(
            [*AGROTOOLS, *map(str, command)], env=env, stderr=subprocess.DEVNULL
        )
        while judges.graded["strict"] < 8:
            time.sleep(0.05)
        process.kill()
        process.wait()
        kept = (fresh / "judgements.jsonl").read_bytes().count(b"\n")
        assert kept >= 4
        with (fresh / "judgements.jsonl").open("ab") as file:
            file.write(b'{"metric": "agriev')  # torn by a power cut
        agrotools(*command)
    lines = (fresh / "judgements.jsonl").read_text().splitlines()
    assert len(lines) == SAMPLES
    assert judges.graded["strict"] <= SAMPLES + 4


def test_a_budget_bounds_the_judges_of_a_run(fresh: Path):
    judges = Judges()
    with serving(judges) as endpoint:
        paid = partial(
            judged_by, fresh.parent, "strict", at=endpoint.base_url, judge_price="10/100"
        )
        short = agrotools("score", fresh, *paid(judge_budget=0.25), expect=1)
        assert 0 < judges.graded["strict"] < SAMPLES
        assert "larger --budget" in short.stderr or "budget" in short.stderr
        assert "missing; run the same command again" in short.stderr
        agrotools("score", fresh, *paid(judge_budget=5))
    assert judges.graded["strict"] == SAMPLES


def test_a_line_that_is_no_judgement_is_named(fresh: Path):
    (fresh / "judgements.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    told = agrotools("score", fresh, expect=3).stderr
    assert "judgements.jsonl, line 1 is not a judgement" in told
