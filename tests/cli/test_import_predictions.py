import csv
import json

import pytest
from typer.testing import CliRunner

import agrotools as at
from agrotools.benchmarks import load_benchmark
from agrotools.cli.main import app
from agrotools.core import BenchmarkError, RunStoreError, UsageError
from agrotools.runner.predictions import import_predictions
from support.text_benchmark import write_text_benchmark


@pytest.fixture
def benchmark(tmp_path):
    return load_benchmark(write_text_benchmark(tmp_path / "questions", 20))


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def imported(file, benchmark, **options):
    run, counts = import_predictions(file, benchmark, "questions", out=file.with_suffix(".run"), **options)
    return at.read_run(run), counts


def test_a_run_of_predictions_has_the_scores_of_the_run_that_they_come_from(tmp_path, benchmark):
    first = at.evaluate(benchmark, "baseline:random", mode="no-tool", out=tmp_path / "run")
    rows = [{"id": row["sample"], "prediction": row["answer"]} for row in first.rows()]
    second, counts = imported(write_lines(tmp_path / "p.jsonl", rows), benchmark, model="mine")
    assert (counts.rows, counts.matched, counts.by, counts.without_row) == (20, 20, {"id": 20}, ())
    assert second.manifest.protocol == "predictions"
    assert {name: score.value for name, score in second.scores.items()} == {
        name: score.value for name, score in first.scores.items()
    }
    assert at.compare(first, second)[0].value == 0


def test_every_command_opens_a_run_of_predictions(tmp_path, benchmark):
    file = write_lines(tmp_path / "p.jsonl", [{"id": f"q{n}", "prediction": f"value: {n}"} for n in range(20)])
    run = str(tmp_path / "out")
    for arguments, shown in (
        (["score", "--benchmark", str(benchmark.root), "--predictions", str(file), "--out", run], "100.0"),
        (["score", run], "100.0"),
        (["explain", run, "q3"], "value: 3"),
        (["report", run, "--out", str(tmp_path / "page.html")], "page.html"),
    ):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        assert shown in result.output


def test_rows_without_a_sample_and_samples_without_a_row_are_counted(tmp_path, benchmark):
    rows = [{"sample": "q0", "response": "value: 0"}, {"sample": "q0", "response": "2"}, {"sample": "x", "response": 3}]
    file = write_lines(tmp_path / "p.jsonl", [*rows, {"sample": "q1", "response": "Failed to obtain answer via API."}])
    run, counts = imported(file, benchmark)
    assert counts.without_sample == ("row 3 (sample x)",)
    assert counts.repeated == ("row 2 (sample q0)",)
    assert len(counts.without_row) == 18
    assert run.valid == 1
    assert {record.invalid for record in run.samples() if record.invalid} == {
        "no prediction in p.jsonl",
        "no reply in p.jsonl: Failed to obtain answer via API.",
    }
    arguments = ["score", "--benchmark", str(benchmark.root), "--predictions", str(file), "--out", str(run.path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 3  # almost nothing was answered
    assert "warning: 18 samples without a row" in result.output
    assert "warning: 1 rows without a sample: row 3 (sample x)" in result.output


@pytest.mark.parametrize("suffix", [".tsv", ".xlsx", ".csv"])
def test_tables_of_vlmevalkit_are_matched_by_their_question(tmp_path, benchmark, suffix):
    names = ["index", "image", "question", "A", "answer", "prediction"]
    rows = [[100 + n, "x" * 200_000, f"What is the  value of plot {n}?", "", 999, n] for n in range(20)]
    path = tmp_path / f"model{suffix}"
    if suffix == ".xlsx":
        book = pytest.importorskip("openpyxl", reason="extra build").Workbook()
        for row in [names, *rows]:
            book.active.append([cell if cell != rows[0][1] else "x" for cell in row])
        book.save(path)
    else:
        with path.open("w", newline="") as file:
            csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",").writerows([names, *rows])
    run, counts = imported(path, benchmark)
    assert counts.by == {"question": 20}
    assert run.scores["agrotools.fas"].value == 1


@pytest.mark.parametrize("first", [0, 1])
def test_an_index_counts_from_0_or_1(tmp_path, benchmark, first):
    rows = [{"index": n + first, "prediction": {"value": n}} for n in range(20)]
    run, counts = imported(write_lines(tmp_path / "p.jsonl", rows), benchmark)
    assert counts.by == {"position": 20}
    assert run.scores["agrotools.fas"].value == 1


def test_an_ambiguous_index_matches_nothing(tmp_path, benchmark):
    file = write_lines(tmp_path / "p.jsonl", [{"index": n, "prediction": n} for n in range(3, 9)])
    with pytest.raises(UsageError, match="belongs to a sample of questions"):
        imported(file, benchmark)


def test_the_same_file_resumes_and_another_is_refused(tmp_path, benchmark):
    file = write_lines(tmp_path / "p.jsonl", [{"id": "q0", "prediction": "value: 0"}])
    assert len(imported(file, benchmark)[0]) == len(imported(file, benchmark)[0]) == 20
    write_lines(file, [{"id": "q0", "prediction": "value: 1"}])
    with pytest.raises(RunStoreError, match="another configuration: model_hash"):
        imported(file, benchmark)


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("p.jsonl", '{"id": "q0", "text": "3"}', UsageError, "no column of predictions; it has id, text"),
        ("p.jsonl", "[1]", UsageError, "holds no rows with named fields"),
        ("p.csv", "", UsageError, "holds no rows"),
        ("p.json", "{", BenchmarkError, "is not JSON"),
        ("p.xlsx", "no zip", BenchmarkError, "cannot be read"),
        ("p.docx", "", UsageError, "not a table of predictions"),
    ],
)
def test_wrong_files_are_refused_with_a_hint(tmp_path, benchmark, name, content, error, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(error, match=message) as raised:
        imported(tmp_path / name, benchmark)
    assert raised.value.hint


def test_a_benchmark_whose_samples_all_need_tools_is_refused(tmp_path):
    folder = write_text_benchmark(tmp_path / "questions", 2, no_tool_eligible=False)
    file = write_lines(tmp_path / "p.jsonl", [{"id": "q0", "prediction": "0"}])
    with pytest.raises(UsageError, match="every sample of questions needs tools"):
        imported(file, load_benchmark(folder))


@pytest.mark.parametrize(
    "arguments", [["--benchmark", "embedded"], ["--predictions", "x"], ["--model", "x", "run"], []]
)
def test_options_that_do_not_fit_together_are_refused(arguments):
    result = CliRunner().invoke(app, ["score", *arguments])
    assert isinstance(result.exception, UsageError)
