import csv
import json
import zipfile

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


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.jsonl", '{"id": "q0", "prediction": 0}\n{"id": "q1"}\n{"id": "q2", "prediction": null}\n'),
        (
            "p.jsonl",
            '{"id": "q0", "prediction": 0}\n{"id": "q1", "prediction": "NaN"}\n{"id": "q2", "prediction": "null"}',
        ),
        ("p.csv", "id,prediction\nq0,0\nq1\nq2,\n"),
        ("p.csv", "id,prediction\nq0,0\nq1,nan\nq2,#REF!\n"),
        ("p.tsv", "id\tprediction\nq0\t0\nq1\nq2\t \n"),
    ],
)
def test_a_row_without_a_prediction_is_invalid_not_wrong(tmp_path, benchmark, name, content):
    (tmp_path / name).write_text(content)
    run, counts = imported(tmp_path / name, benchmark)
    assert counts.empty == ("row 2 (id q1)", "row 3 (id q2)")
    assert (counts.matched, run.valid) == (3, 1)
    assert run.scores["agrotools.fas"].value == 1


def test_cells_of_excel_without_a_value_are_invalid_and_escaped_ones_are_read(tmp_path, benchmark):
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    book = openpyxl.Workbook()
    for row in [
        ["id", "prediction"],
        ["q0", "note_x000D_\nvalue: 0"],
        ["q1", '="value: 1"'],
        ["q2", "#REF!"],
        ["q3", "3"],
    ]:
        book.active.append(row)
    book.active.append(["q4", None])
    book.active.merge_cells("B5:B6")
    book.save(tmp_path / "p.xlsx")
    run, counts = imported(tmp_path / "p.xlsx", benchmark)
    assert counts.empty == ("row 2 (id q1)", "row 3 (id q2)", "row 5 (id q4)")
    assert (run.valid, run.scores["agrotools.fas"].value) == (2, 1)


def test_a_workbook_that_unpacks_to_gigabytes_is_refused(tmp_path, benchmark):
    with zipfile.ZipFile(tmp_path / "p.xlsx", "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/worksheets/sheet1.xml", b"0" * 301_000_000)
    with pytest.raises(BenchmarkError, match="has 301 MB unpacked"):
        imported(tmp_path / "p.xlsx", benchmark)


@pytest.mark.parametrize(
    ("encoding", "delimiter"), [("utf-8-sig", ";"), ("utf-16", "\t"), ("gb18030", ","), ("latin-1", ";")]
)
def test_tables_of_any_spreadsheet_are_read(tmp_path, benchmark, encoding, delimiter):
    note = "水稻纹枯病，叶片病斑面积" if encoding == "gb18030" else "größe"
    rows = [["id", "prediction", "note"], *([f"q{n}", str(n), note] for n in range(20))]
    (tmp_path / "p.csv").write_bytes("\r\n".join(delimiter.join(row) for row in rows).encode(encoding))
    run, _ = imported(tmp_path / "p.csv", benchmark)
    assert run.scores["agrotools.fas"].value == 1


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
    with pytest.raises(RunStoreError, match="another configuration: content of the model"):
        imported(file, benchmark)


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("p.jsonl", '{"id": "q0", "text": "3"}', UsageError, "no column of predictions; it has id, text"),
        ("p.jsonl", "[1]", UsageError, "holds no rows with named fields"),
        ("p.csv", "", BenchmarkError, "p.csv is empty"),
        ("p.csv", "id,prediction\n", UsageError, "holds no rows"),
        ("p.json", "{", BenchmarkError, "is not JSON: line 1"),
        ("p.jsonl", '{"id": "q0", "prediction": "3"}\n{"id": "q1", "pred', BenchmarkError, "is not JSON: line 2"),
        (
            "p.jsonl",
            '{"id": "q0", "prediction": "3"}\n{"id": "é"}'.encode("latin-1"),
            BenchmarkError,
            "not in UTF-8 .line 2",
        ),
        ("p.jsonl", '{"id": "q0", "prediction": "3"}'.encode("utf-16"), BenchmarkError, "perhaps in utf-16"),
        ("p.csv", 'id,prediction\nq0,"3\nq1,"4"\n', BenchmarkError, "row 2 is not a row of a table"),
        ("p.csv", "id,prediction\nq0,3\nq1,4,5\n", BenchmarkError, "row 3 has 3 cells, but there are 2 columns"),
        ("p.xlsx", "no zip", BenchmarkError, "cannot be read"),
        ("p.docx", "", UsageError, "not a table of predictions"),
    ],
)
def test_wrong_files_are_refused_with_a_hint(tmp_path, benchmark, name, content, error, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
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


def test_rows_of_samples_that_need_tools_are_refused_as_such(tmp_path):
    folder = write_text_benchmark(tmp_path / "questions", 4)
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    lines[0]["no_tool_eligible"] = False
    (folder / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    file = write_lines(tmp_path / "p.jsonl", [{"id": lines[0]["id"], "prediction": "0"}])
    with pytest.raises(UsageError, match="asked without tools; of others: 1"):
        import_predictions(file, load_benchmark(folder), "questions", out=tmp_path / "run")
