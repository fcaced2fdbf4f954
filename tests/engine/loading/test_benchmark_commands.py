import json

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from support.benchmark_folders import number_sample, write_folder


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(app, ["benchmarks", *map(str, arguments)])


def test_check_says_what_is_wrong_and_where_as_text_and_json(run, tmp_path):
    sample = number_sample(tmp_path)
    sample["answer"][0]["unit"] = " "
    write_folder(tmp_path, [sample, "{"])
    assert "samples.jsonl:1, sample tiny-1, answer[0].unit" in run("check", tmp_path).stdout
    result = run("check", tmp_path, "--json")
    assert result.exit_code == 1
    faults = [(fault["code"], fault["line"]) for fault in json.loads(result.stdout)["faults"]]
    assert faults == [("unreadable_unit", 1), ("broken_json", 2)]


def test_check_prints_the_schema(run):
    result = run("check", "--schema")
    assert result.exit_code == 0
    assert "samples.jsonl" in json.loads(result.stdout)["properties"]


def test_check_tells_a_run_from_a_drawn_benchmark(run, tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    refused = run("check", tmp_path)
    assert "is a run folder" in str(refused.exception)
    write_folder(tmp_path, [number_sample(tmp_path)])
    assert run("check", tmp_path).exit_code == 0
