"""``agrotools report`` and ``score``: what they print and warn of."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import agrotools as at
from agrotools.cli.main import app
from agrotools.core import Record, RunStoreError, Step, Trajectory, UsageError
from agrotools.report.html.page import build_report
from support.made_runs import end_to_end, made_sample, right, write_files, write_run
from support.plain_sample import plain_sample
from support.report_page import read_report


@pytest.fixture
def run(tmp_path: Path) -> Path:
    samples = [made_sample(f"s{number}") for number in range(3)]
    write_files(tmp_path, samples)
    return write_run(tmp_path / "run", [right(sample) for sample in samples])


def report(*arguments: object) -> Result:
    done = CliRunner().invoke(app, ["report", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_the_report_of_a_run_lies_in_its_folder(run: Path, tmp_path: Path):
    done = report(run)
    assert done.exit_code == 0
    assert (run / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "3 records with 3 images" in done.stdout
    (tmp_path / "benchmark").rename(tmp_path / "moved")
    assert "3 images could not be embedded" in report(run).stderr
    assert "could not be shown" not in report(run, "--data-root", tmp_path / "moved").stderr


def test_json_says_what_was_written(run: Path, tmp_path: Path):
    out = tmp_path / "r.html"
    written = json.loads(
        report(run, shutil.copytree(run, tmp_path / "copy"), "--out", out, "--json").stdout
    )
    assert written == {
        "path": str(out),
        "bytes": out.stat().st_size,
        "runs": 2,
        "records": 6,
        "shown": 6,
        "pictures": 3,
        "missing_pictures": 0,
        "notes": [],
        "damaged": False,
    }


def test_scores_are_printed_as_tables(run: Path):
    assert "| m | 100.0" in " ".join(report(run, "--format", "md").stdout.split())
    lines = report(run, "--format", "csv").stdout.splitlines()
    assert lines[0] == "run,mode,metric,task,value,lower,upper,n,clusters"
    assert any(",end-to-end,fas,organ_counting,1.0," in line for line in lines)
    assert r"\begin{tabular}" in report(run, "--format", "latex").stdout
    with pytest.raises(UsageError, match="no such format"):
        report(run, "--format", "pdf")


def test_tables_that_a_study_wrote_beside_its_runs_are_skipped_and_named(run: Path, tmp_path: Path):
    page = tmp_path / "study.html"
    page.write_text("<!doctype html>")
    done = report(run, page, "--format", "md")
    assert done.stdout == report(run, "--format", "md").stdout
    assert "skipped: study.html" in done.stderr
    with pytest.raises(RunStoreError, match="not a run folder"):
        report(page)


def test_a_damaged_line_is_named_and_ends_with_the_code_of_damaged_files(run: Path):
    records = run / "records.jsonl"
    records.write_bytes(records.read_bytes() + b"{\n")
    done = report(run)
    assert done.exit_code == 3
    assert "1 line cannot be read (line 4" in done.stderr
    assert "3 records with 3 images" in done.stdout
    with pytest.raises(RunStoreError, match="line 4"):
        list(at.read_run(run).rows())
    with pytest.raises(RunStoreError, match="line 4"):
        report(run, "--format", "md")


@pytest.mark.parametrize(
    "content", [b"\0\xff\n\x01\n", b'{"a": 1}\n[2]\n'], ids=["binary", "other JSON"]
)
def test_a_file_without_any_record_is_named_with_its_first_bad_line(run: Path, content: bytes):
    (run / "records.jsonl").write_bytes(content)
    with pytest.raises(
        RunStoreError, match=r"no finished sample: .*jsonl: 2 lines cannot be read \(line 1: not"
    ):
        report(run)
    assert isinstance(CliRunner().invoke(app, ["explain", str(run)]).exception, RunStoreError)


def test_an_invalid_record_with_steps_is_shown(run: Path):
    records = run / "records.jsonl"
    lines = [
        json.loads(line) | {"invalid": "it was withdrawn"}
        for line in records.read_text().splitlines()
    ]
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert report(run, "--allow-invalid").exit_code == 0


def timed_out(number: int) -> Record:
    sample = made_sample(f"s{number}", cluster=f"c{number}")
    return Record(sample=sample, mode="end-to-end", trajectory=Trajectory(termination="timeout"))


def answered(number: int) -> Record:
    return end_to_end(made_sample(f"s{number}", cluster=f"c{number}"))


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def words(text: str) -> str:
    return " ".join(text.split())


LINE = "end-to-end: 24 of 24 samples (100.0 %) ended by timeout"


def test_where_all_ended_by_timeout_the_first_line_says_so_and_the_code_is_3(
    tmp_path: Path,
) -> None:
    run = write_run(tmp_path / "run", [timed_out(number) for number in range(24)], model="slow one")
    done = command("score", run)
    assert done.exit_code == 3
    assert LINE in words(done.stdout)
    assert done.stdout.index("ended by") < done.stdout.index("FAS")
    assert "more than half" in done.stderr
    assert command("score", run, "--allow-invalid").exit_code == 0
    (data,) = json.loads(command("score", run, "--json").stdout)
    assert data["warnings"][0].startswith(LINE)
    assert data["modes"]["end-to-end"]["endings"] == {"timeout": 24}
    page = read_report(build_report([run], tmp_path / "page.html").path)
    assert page.head["notes"][0].startswith(LINE)
    whole = write_run(
        tmp_path / "b", [timed_out(0), *(answered(n) for n in range(1, 24))], model="quick one"
    )
    (data,) = json.loads(command("score", whole, "--json").stdout)
    assert not data["warnings"], "one in twenty is no matter"
    done = command("score", run, whole)
    assert f"slow one, {LINE}" in words(done.stdout)
    assert done.exit_code == 3


def test_where_no_reply_could_be_read_the_score_says_so(tmp_path: Path) -> None:
    steps = tuple(
        Step(turn=turn, kind="unparseable", text="hm", reason="the output is empty.")
        for turn in range(3)
    )
    unread = Trajectory(steps=steps, termination="unparseable")
    samples = [made_sample(f"s{number}", cluster=f"c{number}") for number in range(24)]
    run = write_run(
        tmp_path / "run",
        [Record(sample=each, mode="end-to-end", trajectory=unread) for each in samples],
    )
    said = words(command("score", run).stdout)
    assert "neither a call nor an answer: the score says nothing about answers." in said
    assert said.index("says nothing") < said.index("FAS")


def test_records_that_are_gone_are_missed(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [answered(n) for n in range(24)], planned={"end-to-end": 24})
    assert command("score", run).exit_code == 0
    records = run / "records.jsonl"
    half = records.read_bytes()[: records.stat().st_size // 2]
    records.write_bytes(half)
    held = half.count(b"\n")
    assert 8 < held < 16
    done = command("score", run)
    assert done.exit_code == 1
    assert f"end-to-end: {24 - held} of 24 planned records are missing" in words(done.stdout)
    (data,) = json.loads(command("score", run, "--json").stdout)
    assert data["missing"] == {"end-to-end": 24 - held}


@pytest.mark.process
def test_an_evaluation_plans_what_it_will_hold_and_a_smaller_one_after_it_plans_no_less(
    tmp_path: Path,
) -> None:
    benchmark = tmp_path / "benchmark"
    benchmark.mkdir()
    (benchmark / "benchmark.toml").write_text(
        'name = "b"\nversion = "1"\nlicence = "CC0-1.0"\ntoolset = ["calculate"]\nmodes = ["no-tool", "end-to-end"]\n'
    )
    samples = [
        plain_sample(f"s{n}", toolset=("calculate",), no_tool_eligible=n > 0) for n in range(4)
    ]
    lines = [sample.model_dump_json(by_alias=True, exclude_none=True) + "\n" for sample in samples]
    (benchmark / "samples.jsonl").write_text("".join(lines))
    (tmp_path / "script.json").write_text('["Final Answer: yes"]')

    def planned(*options: str) -> dict[str, int]:
        model = f"scripted:{tmp_path / 'script.json'}"
        done = command("eval", benchmark, "--model", model, "--out", tmp_path / "run", *options)
        assert done.exit_code == 0, done.output
        assert "missing" not in done.stdout
        return json.loads((tmp_path / "run" / "manifest.json").read_bytes())["planned"]

    assert planned("--mode", "end-to-end", "--epochs", "2") == {"end-to-end": 8}
    assert planned("--mode", "end-to-end", "--limit", "3") == {"end-to-end": 8}
    assert planned("--mode", "all") == {"end-to-end": 8, "no-tool": 3}
