"""``agrotools report`` as a user runs it."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import agrotools as at
from agrotools.cli.main import app
from agrotools.core import RunStoreError, UsageError
from support.made_runs import made_sample, right, write_files, write_run


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
    assert "For sharing, removed: " in report(run, "--share").stdout
    (tmp_path / "benchmark").rename(tmp_path / "moved")
    assert "3 images could not be embedded" in report(run).stderr
    assert "could not be shown" not in report(run, "--data-root", tmp_path / "moved").stderr


def test_json_says_what_was_written(run: Path, tmp_path: Path):
    out = tmp_path / "r.html"
    written = json.loads(report(run, shutil.copytree(run, tmp_path / "copy"), "--out", out, "--json").stdout)
    assert written == {
        "path": str(out),
        "bytes": out.stat().st_size,
        "runs": 2,
        "records": 6,
        "shown": 6,
        "pictures": 3,
        "missing_pictures": 0,
        "removed": "",
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


@pytest.mark.parametrize("content", [b"\0\xff\n\x01\n", b'{"a": 1}\n[2]\n'], ids=["binary", "other JSON"])
def test_a_file_without_any_record_is_named_with_its_first_bad_line(run: Path, content: bytes):
    (run / "records.jsonl").write_bytes(content)
    with pytest.raises(RunStoreError, match=r"no finished sample: .*jsonl: 2 lines cannot be read \(line 1: not"):
        report(run)
    assert isinstance(CliRunner().invoke(app, ["explain", str(run)]).exception, RunStoreError)


def test_an_invalid_record_with_steps_is_shown(run: Path):
    records = run / "records.jsonl"
    lines = [json.loads(line) | {"invalid": "it was withdrawn"} for line in records.read_text().splitlines()]
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert report(run, "--allow-invalid").exit_code == 0
