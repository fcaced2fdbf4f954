import csv
import json
import zipfile

import pytest
from typer.testing import CliRunner

import agrotools as at
from agrotools.cli.main import app
from agrotools.core import BenchmarkError, RunStoreError, UndecidedError, UsageError
from agrotools.core.readings import Readings
from agrotools.exit_codes import UNDECIDED, code_of
from agrotools.foreign.prediction_columns import ColumnAnswers
from agrotools.foreign.prediction_samples import name_of_row
from agrotools.foreign.predictions import import_predictions
from agrotools.loading import load_benchmark
from agrotools.loading.benchmarks import Loading, load_as
from agrotools.report.html.page import build_report
from agrotools.runner.yardsticks import Yardsticks
from support.caches import separate_cache
from support.command import run_command
from support.sums_benchmark import write_sums
from support.text_benchmark import write_text_benchmark


@pytest.fixture
def benchmark(tmp_path):
    return load_benchmark(write_text_benchmark(tmp_path / "questions", 20))


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def imported(file, benchmark, **options):
    run, counts = import_predictions(
        file, benchmark, "questions", out=file.with_suffix(".run"), **options
    )
    return at.read_run(run), counts


def named(counts, problem):
    """What the problem that begins with these words names."""
    return next(
        (tuple(entries) for kind, entries in counts.problems.items() if kind.startswith(problem)),
        (),
    )


def test_a_run_of_predictions_has_the_scores_of_the_run_that_they_come_from(tmp_path, benchmark):
    first = at.evaluate(benchmark, "baseline:random", mode="no-tool", out=tmp_path / "run")
    rows = [{"id": row["sample"], "prediction": row["answer"]} for row in first.rows()]
    second, counts = imported(write_lines(tmp_path / "p.jsonl", rows), benchmark, model="mine")
    assert (counts.rows, counts.matched, counts.by, counts.problems) == (20, 20, {"id": 20}, {})
    assert second.manifest.protocol == "predictions"
    assert {name: score.value for name, score in second.scores.items()} == {
        name: score.value for name, score in first.scores.items()
    }
    assert at.compare(first, second)[0].value == 0
    file = write_lines(tmp_path / "q.jsonl", [{"id": "q0", "prediction": "value: 0"}])
    assert len(imported(file, benchmark)[0]) == len(imported(file, benchmark)[0]) == 20
    write_lines(file, [{"id": "q0", "prediction": "value: 1"}])
    with pytest.raises(RunStoreError, match="another configuration: content of the model"):
        imported(file, benchmark)


def test_answers_to_drawn_questions_are_scored_without_their_pictures(tmp_path, monkeypatch):
    cache = separate_cache(monkeypatch, tmp_path / "cache")
    quick = load_as("embedded", Loading(files_later=True)).header.quick
    file = write_lines(
        tmp_path / "p.jsonl", [{"id": each, "prediction": "value: 1"} for each in quick]
    )
    scored = run_command(
        *("score", "--benchmark", "embedded", "--predictions", file, "--out", tmp_path / "run")
    )
    assert f"p.jsonl: {len(quick)} rows" in scored.stdout
    assert not (cache / "benchmarks").exists()


@pytest.mark.process
def test_the_page_of_imported_answers_draws_what_it_shows(tmp_path, monkeypatch):
    separate_cache(monkeypatch, tmp_path / "cache")
    embedded = load_as("embedded", Loading(files_later=True))
    # Drawing a scene of leaves takes the least time.
    leaf = next(each for each in embedded.samples if each.id.startswith("leaf_lesions"))
    row = {"id": leaf.id, "messages": [{"role": "assistant", "content": "value: 1"}]}
    file = write_lines(tmp_path / "p.jsonl", [row])
    run, _counts = import_predictions(file, embedded, "embedded", out=tmp_path / "run")
    page = build_report([run], tmp_path / "page.html", yardsticks=Yardsticks(), allow_invalid=True)
    assert page.pictures
    assert not page.missing_pictures


def test_rows_without_a_sample_and_samples_without_a_row_are_counted(tmp_path, benchmark):
    rows = [
        {"sample": "q0", "prediction": None},
        {"sample": "q0", "prediction": "value: 0"},
        {"sample": "x", "prediction": 3},
    ]
    file = write_lines(
        tmp_path / "p.jsonl",
        [*rows, {"sample": "q1", "prediction": "Failed to obtain answer via API."}],
    )
    run, counts = imported(file, benchmark)
    assert named(counts, "rows without a sample") == ("row 3 (sample x)",)
    assert named(counts, "repeated rows (with the same answer, or with none)") == (
        "row 1 (sample q0)",
    )
    assert run.scores["fas"].value == 1
    assert named(counts, "samples without a row")[0] == "q2"
    assert len(named(counts, "samples without a row")) == 18
    assert run.valid == 1
    assert {record.invalid for record in run.samples() if record.invalid} == {
        "no prediction in p.jsonl",
        "no reply in p.jsonl: Failed to obtain answer via API",
    }
    arguments = [
        "score",
        "--benchmark",
        str(benchmark.root),
        "--predictions",
        str(file),
        "--out",
        str(run.path),
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 3  # almost nothing was answered
    assert "warning: samples without a row (invalid, left out of the scores): 18" in result.output
    assert "warning: rows without a sample: 1, namely row 3 (sample x)" in result.output


def test_a_row_is_named_by_its_index_also_by_the_first_one():
    assert name_of_row(12, {"index": 0, "prediction": "yes"}) == "row 12 (index 0)"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "p.jsonl",
            '{"id": "q0", "prediction": 0}\n{"id": "q1"}\n{"id": "q2", "prediction": null}\n',
        ),
        (
            "p.jsonl",
            '{"id": "q0", "prediction": 0}\n{"id": "q1", "prediction": "NaN"}\n{"id": "q2", "prediction":"null"}',
        ),
        (
            "p.jsonl",
            '{"id": "q0", "prediction": 0}\n{"id": "q1", "prediction": NaN}\n{"prediction":NaN,"id": "q2"}',
        ),
        ("p.csv", "id,prediction\nq0,0\nq1\nq2,\n"),
        ("p.csv", "id,prediction\nq0,0\nq1,nan\nq2,#REF!\n"),
        ("p.tsv", "id\tprediction\nq0\t0\nq1\nq2\t \n"),
    ],
)
def test_a_row_without_a_prediction_is_invalid_not_wrong(tmp_path, benchmark, name, content):
    (tmp_path / name).write_text(content)
    run, counts = imported(tmp_path / name, benchmark)
    header = 0 if name.endswith(".jsonl") else 1
    rows = (f"row {2 + header} (id q1)", f"row {3 + header} (id q2)")
    assert named(counts, "rows without a prediction") == rows
    assert (counts.matched, run.valid) == (3, 1)
    assert run.scores["fas"].value == 1


ERRORS = [  # as openai, anthropic, google-genai, httpx, requests, litellm, lmms-eval and programs write them
    "Error code: 429 - {'error': {'message': 'Rate limit reached', 'type': 'tokens'}}",
    "Request timed out.",
    "Request timed out or interrupted. This could be due to a network timeout",
    "RateLimitError(\"Error code: 429 - {'type': 'error'}\")",
    "429 RESOURCE_EXHAUSTED. {'error': {'code': 429, 'status': 'RESOURCE_EXHAUSTED'}}",
    "Client error '429 Too Many Requests' for url 'https://api.example.org'",
    "HTTPSConnectionPool(host='api.openai.com', port=443): Read timed out. (read timeout=600)",
    "litellm.InternalServerError: AnthropicException - Overloaded",
    "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Connection error.",
    "Error communicating with the API: Connection error.",
    "ERROR: CUDA out of memory",
    "API error",
    "<error>",
    'Traceback (most recent call last):\n  File "run.py", line 3, in <module>',
    "Failed to generate a response",
    "An error occurred while processing the request",
]
ANSWERS = [
    *(
        "Error: 3 %",
        "error: 0.12 m",
        "429 plants",
        '{"error": "0.2"}',
        "The error in the image is a torn leaf.",
    ),
    *(
        "An error in the image hides the row",
        "Human error",
        "Failed germination",
        "Error bars overlap",
        "failed",
    ),
]


def test_the_error_of_a_program_is_no_answer_and_an_item_called_error_is_one(tmp_path):
    benchmark = load_benchmark(write_text_benchmark(tmp_path / "more", 30))
    rows = [{"id": f"q{n}", "prediction": text} for n, text in enumerate([*ERRORS, *ANSWERS])]
    run, counts = imported(write_lines(tmp_path / "p.jsonl", rows), benchmark)
    assert len(named(counts, "rows with an error in place of a prediction")) == len(ERRORS)
    assert (run.valid, counts.matched) == (len(ANSWERS), len(rows))
    assert "no reply in p.jsonl: Error code: 429" in {record.invalid for record in run.samples()}


@pytest.mark.parametrize(
    "late", [{"prediction": "ERROR: timeout"}, {"prediction": None}, {"messages": []}]
)
def test_a_row_without_an_answer_replaces_no_answer_of_the_same_sample(tmp_path, benchmark, late):
    rows = [{"id": "q3", "prediction": "value: 3"}, {"id": "q3", **late}, {"id": "q4", **late}]
    file = write_lines(tmp_path / "p.jsonl", [*rows, {"id": "q4", "prediction": "value: 4"}])
    run, counts = imported(file, benchmark)
    valid = {
        record.sample.id
        for record in run.samples()
        if not record.invalid and record.mode == "no-tool"
    }
    assert (valid, run.scores["fas"].value) == ({"q3", "q4"}, 1)
    if "messages" not in late:
        assert named(counts, "rows without an answer after one") == ("row 2 (id q3)",)
        assert named(counts, "repeated rows") == ("row 3 (id q4)",)


@pytest.mark.parametrize("replies", [("resps", [["value: {}"]]), ("filtered_resps", ["value: {}"])])
def test_samples_of_lm_eval_have_a_row_for_each_filter(tmp_path, benchmark, replies):
    def row(n, name):
        kept = {"resps": [], "filtered_resps": ["[invalid]"]} | {
            replies[0]: json.loads(json.dumps(replies[1]).format(n))
        }
        return {
            "doc_id": n,
            "doc": {"question": "x", "target": "9"},
            "target": "9",
            "filter": name,
            **kept,
        }

    rows = [row(n, name) for name in ("strict-match", "flexible-extract") for n in range(20)]
    run, counts = imported(write_lines(tmp_path / "samples_q.jsonl", rows), benchmark)
    assert (counts.rows, counts.by, run.scores["fas"].value) == (20, {"position": 20}, 1)


def test_likelihoods_of_lm_eval_are_no_answers(tmp_path, benchmark):
    likely = {
        "resps": [[["-1.2", "False"]], [["-2.0", "False"]]],
        "filtered_resps": [["-1.2", "False"]],
    }
    rows = [{"doc_id": n, "doc": {"id": f"q{n}"}, **likely} for n in range(20)]
    run, counts = imported(write_lines(tmp_path / "samples_q.jsonl", rows), benchmark)
    assert (len(named(counts, "rows without a prediction")), run.valid) == (20, 0)


def test_cells_of_excel_without_a_value_are_invalid_and_escaped_ones_are_read(tmp_path, benchmark):
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    book = openpyxl.Workbook()
    texts = {
        "id": "prediction",
        "q0": "note_x000D_\nvalue: 0",
        "q1": '="value: 1"',
        "q2": "#REF!",
        "q3": "3",
        "q4": None,
    }
    for row in texts.items():
        book.active.append(row)
    book.active.merge_cells("B5:B6")
    book.save(tmp_path / "p.xlsx")
    run, counts = imported(tmp_path / "p.xlsx", benchmark)
    assert named(counts, "rows without a prediction") == (
        "row 3 (id q1)",
        "row 4 (id q2)",
        "row 6 (id q4)",
    )
    assert (run.valid, run.scores["fas"].value) == (2, 1)
    with zipfile.ZipFile(tmp_path / "p.xlsx", "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/worksheets/sheet1.xml", b"0" * 301_000_000)
    with pytest.raises(BenchmarkError, match="has 301 MB unpacked"):
        imported(tmp_path / "p.xlsx", benchmark)


@pytest.mark.parametrize(
    ("encoding", "delimiter"),
    [("utf-8-sig", ";"), ("utf-16", "\t"), ("gb18030", ","), ("latin-1", ";")],
)
def test_tables_of_any_spreadsheet_are_read(tmp_path, benchmark, encoding, delimiter):
    note = "水稻纹枯病，叶片病斑面积" if encoding == "gb18030" else "größe"
    rows = [["id", "prediction", "note"], *([f"q{n}", str(n), note] for n in range(20))]
    (tmp_path / "p.csv").write_bytes(
        "\r\n".join(delimiter.join(row) for row in rows).encode(encoding)
    )
    run, _ = imported(tmp_path / "p.csv", benchmark)
    assert run.scores["fas"].value == 1


@pytest.mark.parametrize("suffix", [".tsv", ".xlsx", ".csv"])
def test_tables_of_vlmevalkit_are_matched_by_their_question(tmp_path, benchmark, suffix):
    names = ["index", "image", "question", "A", "answer", "prediction"]
    rows = [
        [100 + n, "x" * 200_000, f"What is the  value of plot {n}?", "", 999, n] for n in range(20)
    ]
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
    assert run.scores["fas"].value == 1


@pytest.mark.parametrize("first", [0, 1])
def test_an_index_counts_from_0_or_1(tmp_path, benchmark, first):
    rows = [{"index": n + first, "prediction": {"value": n}} for n in range(20)]
    run, counts = imported(write_lines(tmp_path / "p.jsonl", rows), benchmark)
    assert counts.by == {"position": 20}
    assert run.scores["fas"].value == 1


def test_an_index_that_pandas_stored_as_a_float_is_found_and_an_ambiguous_one_refused(
    tmp_path, benchmark
):
    (tmp_path / "p.csv").write_text(
        "index,prediction\n" + "".join(f"{n}.0,{n}\n" for n in range(20)) + ",9\n"
    )
    run, counts = imported(tmp_path / "p.csv", benchmark)
    assert (counts.by, run.scores["fas"].value) == ({"position": 20}, 1)
    assert named(counts, "rows without a sample") == ("row 22",)
    file = write_lines(tmp_path / "p.jsonl", [{"index": n, "prediction": n} for n in range(3, 9)])
    with pytest.raises(UsageError, match=r"belongs to a sample of questions.* from 1 and has 20"):
        imported(file, benchmark)


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        (
            "p.jsonl",
            '{"id": "q0", "seconds": 3}',
            UsageError,
            "no column prediction.* it has id, seconds",
        ),
        ("p.jsonl", "[1]", UsageError, "has no form of predictions"),
        ("p.csv", "", BenchmarkError, "p.csv is empty"),
        ("p.csv", "id,prediction\n", UsageError, "has no form of predictions"),
        ("p.json", "{", BenchmarkError, "is not JSON: line 1"),
        (
            "p.jsonl",
            '{"id": "q0", "prediction": "3"}\n{"id": "q1", "pred',
            BenchmarkError,
            "is not JSON: line 2",
        ),
        (
            "p.jsonl",
            '{"id": "q0", "prediction": "3"}\n{"id": "é"}'.encode("latin-1"),
            BenchmarkError,
            "not in UTF-8 .line 2",
        ),
        (
            "p.jsonl",
            '{"id": "q0", "prediction": "3"}'.encode("utf-16"),
            BenchmarkError,
            "perhaps in utf-16",
        ),
        (
            "p.csv",
            'id,prediction\nq0,"3\nq1,"4"\n',
            BenchmarkError,
            "row 2 is not a row of a table",
        ),
        (
            "p.csv",
            "id,prediction\nq0,3\nq1,4,5\n",
            BenchmarkError,
            "row 3 has 3 cells, but there are 2 columns",
        ),
        ("p.docx", "", UsageError, "is not a file of predictions"),
    ],
)
def test_wrong_files_are_refused_with_a_hint(tmp_path, benchmark, name, content, error, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(error, match=message) as raised:
        imported(tmp_path / name, benchmark)
    assert raised.value.hint


def test_a_damaged_workbook_is_refused_with_a_hint(tmp_path, benchmark):
    pytest.importorskip("openpyxl", reason="extra build")
    (tmp_path / "p.xlsx").write_text("no zip")
    with pytest.raises(BenchmarkError, match="cannot be read") as raised:
        imported(tmp_path / "p.xlsx", benchmark)
    assert raised.value.hint


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
    with pytest.raises(UsageError, match="asks in no-tool; of others: 1"):
        import_predictions(file, load_benchmark(folder), "questions", out=tmp_path / "run")


@pytest.fixture
def sums(tmp_path):
    return load_benchmark(write_sums(tmp_path / "sums", 10))


def mean_of(number):
    return (7.5 + number / 100) / 2


@pytest.mark.parametrize(
    "row",
    [
        lambda name, mean: {"id": name, "prediction": f"The mean follows.\nmean: {mean} t/ha"},
        lambda name, mean: {
            "id": name,
            "prediction": {"Mean yield": {"value": mean, "unit": "t/ha"}},
        },
        lambda name, mean: {"id": name, "prediction": json.dumps({"mean": mean})},
        lambda name, mean: {"id": name, "prediction": f"{mean} t/ha"},
        lambda name, mean: {"id": name, "mean": mean + 1e-6},  # the gold itself is refused
        lambda name, mean: {"Sample": name, "Mean Yield": f"{1000 * mean} kg/ha", "answer": "gold"},
    ],
)
def test_every_form_of_an_answer_gives_fas(tmp_path, sums, row):
    rows = [row(f"sum-{number:04d}", mean_of(number)) for number in range(10)]
    run, counts = imported(write_lines(tmp_path / "p.jsonl", rows), sums)
    assert (counts.matched, named(counts, "samples without a row")) == (10, ())
    assert run.scores["fas"].value == 1
    assert run.summary.modes["no-tool"].no_form.n == 0


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
def test_a_table_may_have_a_column_for_each_value(tmp_path, sums, suffix):
    rows = [
        ["id", "mean yield", "seconds"],
        *([f"sum-{n:04d}", str(mean_of(n) + 1e-6), "3"] for n in range(9)),
    ]
    rows.append(["sum-0009", "", "3"])
    path = tmp_path / f"p{suffix}"
    if suffix == ".xlsx":
        book = pytest.importorskip("openpyxl", reason="extra build").Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)
    else:
        path.write_text("\n".join(("\t" if suffix == ".tsv" else ",").join(row) for row in rows))
    run, counts = imported(path, sums)
    assert named(counts, "rows without a prediction") == ("row 11 (id sum-0009)",)
    assert (run.valid, run.scores["fas"].value) == (9, 1)


@pytest.mark.parametrize(("formless", "is_shown"), [(2, True), (3, False)])
def test_above_20_percent_of_answers_without_a_form_there_is_no_fas(
    tmp_path, sums, formless, is_shown
):
    texts = [
        f"I looked at both and got {mean_of(n)} t/ha." if n < formless else f"mean: {mean_of(n)}"
        for n in range(10)
    ]
    rows = [{"id": f"sum-{n:04d}", "prediction": text} for n, text in enumerate(texts)]
    file = write_lines(tmp_path / "p.jsonl", rows)
    command = [
        "score",
        "--benchmark",
        str(sums.root),
        "--predictions",
        str(file),
        "--out",
        str(tmp_path / "run"),
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == int(not is_shown), result.output
    assert (
        f"no_form {10 * formless}.0 %: {10 - formless} of 10 answers in a complete form"
        in result.output
    )
    assert ("FAS text, of the words, is 100.0" in " ".join(result.output.split())) == (not is_shown)
    part = at.read_run(tmp_path / "run").summary.modes["no-tool"]
    assert part.headline == is_shown
    assert part.metrics["fas_text"].overall.value == 1
    assert CliRunner().invoke(app, [*command, "--allow-invalid"]).exit_code == 0


def called(*calls):
    functions = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in calls]
    listed = [
        {"id": f"c{n}", "type": "function", "function": each} for n, each in enumerate(functions)
    ]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def told(number, result):
    return {"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps(result)}


def said(text, role="assistant"):
    return {"role": role, "content": text}


ADD, HALVE = ("calculate", {"expression": "3 + 4.5"}), ("calculate", {"expression": "7.5 / 2"})


def transcripts(messages, **more):
    return [{"id": f"sum-{n:04d}", "messages": messages, **more} for n in range(10)]


def test_a_conversation_becomes_an_ordinary_run(tmp_path, sums):
    messages = [
        said("Answer.", "system"),
        said("What is the mean?", "user"),
        said("First the sum."),
        said("Go on.", "user"),
        called(ADD, ("nonsense", {})),
        told(1, {"error": "no such tool"}),
        told(0, {"value": 7.5}),
        said('Action: calculate\nAction Input: {"expression": "7.5 / 2"}'),
        said(
            'Observation: <observation>{"tool": "calculate", "result": {"value": 3.75}}</observation>',
            "user",
        ),
        said([{"type": "text", "text": "It is 3.75 t/ha."}]),
        said("Copy it.", "user"),
        said("mean: 3.75"),
    ]
    usage = {"prompt_tokens": 900, "completion_tokens": 40}
    run, counts = imported(
        write_lines(tmp_path / "p.jsonl", transcripts(messages, usage=usage)), sums
    )
    assert (named(counts, "invalid transcripts"), run.manifest.modes) == ((), ("end-to-end",))
    record = run.samples()[0]
    steps = record.trajectory.steps
    assert [step.kind for step in steps] == ["call", "call", "call", "answer"]
    assert [step.observation.result for step in steps[:3]] == [
        {"value": 7.5},
        None,
        {"value": 3.75},
    ]
    assert (steps[0].thought, steps[1].observation.error.message) == (
        "First the sum.",
        "no such tool",
    )
    assert record.spending[:2] == (900, 40)
    assert run.scores["fas"].value == 0.8  # 3.75 is right for the first eight questions
    assert run.scores["fas_text"].value == 0.8
    assert run.summary.modes["end-to-end"].no_form.share == 0
    page = str(tmp_path / "page.html")
    for command, *more in (["score"], ["explain", "sum-0000"], ["report", "--out", page]):
        result = CliRunner().invoke(app, [command, str(run.path), *more])
        assert result.exit_code == 0, result.output
    other, _ = imported(write_lines(tmp_path / "q.jsonl", transcripts([said("3.75")])), sums)
    assert at.compare(run, other)[0].value == 0


@pytest.mark.parametrize(
    ("messages", "termination", "calls"),
    [
        ([called(ADD), told(0, {"value": 7.5})], "max_steps", 1),
        ([called(ADD)], "max_steps", 1),
        ([said("")], "unparseable", 0),
        ([said("The mean cannot be told.")], "answered", 0),
    ],
)
def test_a_conversation_without_a_form_scores_nothing(tmp_path, sums, messages, termination, calls):
    run, counts = imported(write_lines(tmp_path / "p.jsonl", transcripts(messages)), sums)
    trajectory = run.samples()[0].trajectory
    assert (
        trajectory.termination,
        len(trajectory.calls),
        named(counts, "invalid transcripts"),
    ) == (
        termination,
        calls,
        (),
    )
    assert run.scores["fas"].value == 0


def test_messages_of_each_step_give_process_metrics(tmp_path, sums):
    arguments = {"expression": "x + y", "variables": {"x": 3, "y": 4.5}}
    rows = [
        {
            "id": f"sum-{n:04d}",
            "steps": [called(("calculate", arguments)), said("3.75"), said(f"mean: {mean_of(n)}")],
        }
        for n in range(10)
    ]
    run, _ = imported(write_lines(tmp_path / "p.jsonl", rows), sums)
    values = {name: score.value for name, score in run.scores.items()}
    assert values["tool_acc"] == 0.5
    assert values["ear"] == 0.5
    assert values["arg_acc"] == 0.05  # the first question alone has these numbers
    assert values["st_acc"] == pytest.approx(2 / 3)
    assert values["summ_acc"] == 1
    for row in rows:
        row["steps"][2] = said("It is in the text.")
    run, _ = imported(write_lines(tmp_path / "q.jsonl", rows), sums)
    assert "summ_acc" not in run.scores
    assert run.scores["tool_acc"].value == 0.5
    assert run.summary.modes["step-by-step"].headline


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            {"steps": [said("3.75")]},
            "1 steps, not 3: one for each reference call, and one for the answer",
        ),
        ({"messages": "mean: 3.75"}, "messages is not a list of messages"),
        ({"messages": [said("What?", "user")]}, "it has no message of the assistant"),
        (
            {"messages": [called(ADD), said("Error: Request timed out.")]},
            "an error in place of a reply, Error: Request",
        ),
        (
            {"messages": [{"role": "assistant", "content": {"mean": 3}}]},
            "the content of the message is no text: dict",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{}]}]},
            "a call of the message has no name",
        ),
        (
            {"messages": [called(ADD), {"role": "tool", "content": 7.5}, said("x")]},
            "content of the message is no text",
        ),
    ],
)
def test_a_damaged_transcript_is_invalid_and_named(tmp_path, sums, row, reason):
    rows = [{"id": "sum-0000", **row}, {"id": "sum-0001", "messages": [said("mean: 3.755")]}]
    run, counts = imported(write_lines(tmp_path / "p.jsonl", rows), sums)
    assert len(named(counts, "invalid transcripts")) == 1
    assert named(counts, "invalid transcripts")[0].startswith("sum-0000")
    assert reason in named(counts, "invalid transcripts")[0]
    assert run.valid == 1


def test_a_chart_counts_if_the_transcript_has_its_spec(tmp_path):
    spec = {
        "kind": "bar",
        "series": [{"name": "area", "x": ["a", "b"], "y": [1.0, 2.0]}],
        "title": "area",
    }
    slot = {"type": "plot", "name": "chart", "label": "chart", "value": spec}
    folder = write_sums(tmp_path / "charts", 2)
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    changes = {"answer": [slot], "answer_type": "plot", "toolset": ["calculate", "plot"]}
    write_lines(folder / "samples.jsonl", [line | changes for line in lines])
    header = (
        (folder / "benchmark.toml").read_text().replace('["calculate"]', '["calculate", "plot"]')
    )
    (folder / "benchmark.toml").write_text(header)
    drawn = [
        called(("plot", {"kind": "bar"})),
        told(0, {"figure": "plot_1.png", "spec": spec}),
        said("Drawn."),
    ]
    own = [
        called(("python", {"code": "plt.bar(...)"})),
        told(0, {"file": "plot_1.png"}),
        said("Drawn."),
    ]
    rows = [{"id": f"sum-{n:04d}", "messages": messages} for n, messages in enumerate((drawn, own))]
    run, counts = imported(write_lines(tmp_path / "p.jsonl", rows), load_benchmark(folder))
    assert named(counts, "transcripts without a result") == ("sum-0001",)
    assert run["sum-0000"].scores[0].value > 0.8
    assert run["sum-0001"].scores[0].value == 0
    assert run["sum-0001"].scores[0].reading["rule"] == "no figure came from a successful call"


def numbers(write, name="mean"):
    """A row for each sum, with the mean as ``write`` writes it."""
    return [{"id": f"sum-{n:04d}", name: write(n, mean_of(n))} for n in range(10)]


def test_a_comma_that_may_mean_two_things_is_asked_about(tmp_path, sums):
    def both(n, mean):  # thousands of kg/ha, and tonnes with a decimal comma
        return f"{1000 * mean:,.0f} kg/ha" if n % 2 else f"{mean:.3f} t/ha".replace(".", ",")

    for name in ("mean", "prediction"):
        file = write_lines(tmp_path / f"{name}.jsonl", numbers(both, name))
        with pytest.raises(UndecidedError, match=r"3750.*3\.75") as raised:
            imported(file, sums)
        assert raised.value.answers == ("--decimal=point",)
        right = {}
        for mark in ("point", "comma", ","):
            run, _ = import_predictions(
                file,
                sums,
                "sums",
                out=tmp_path / f"{name} {mark}",
                chosen=ColumnAnswers(decimal=mark),
            )
            scores = at.read_run(run).rows()
            right[mark] = [row["sample"][-1] for row in scores if row["fas"] == 1]
        assert right == {"point": [*"13579"], "comma": [*"02468"], ",": [*"02468"]}
    done = CliRunner().invoke(
        app, ["score", "--benchmark", str(tmp_path / "sums"), "--predictions", str(file)]
    )
    assert code_of(done.exception) == UNDECIDED
    assert "decimal mark" in done.exception.message


def test_decimal_commas_are_read_where_the_column_settles_them(tmp_path, sums):
    def comma(n, mean):
        return f"{mean:.{3 if n else 2}f} t/ha".replace(".", ",")  # 3,75 is no thousand

    said = numbers(comma, "prediction")
    for place, rows in enumerate(
        (
            numbers(comma),
            said,
            [{**row, "prediction": f"<s>{row['prediction']}</s>"} for row in said],
            [{**row, "prediction": {"mean": row["prediction"]}} for row in said],
        )
    ):
        run, _ = imported(write_lines(tmp_path / f"{place}.jsonl", rows), sums)
        assert run.scores["fas"].value == 1


def test_thousands_and_sentences_stay_as_they_are(tmp_path, sums):
    thousand = numbers(lambda n, mean: f"{1000 * (mean + n):,.1f} kg/ha")
    spoken = numbers(lambda n, mean: f"mean: {1000 * mean:,.0f} kg/ha", "prediction")
    assert imported(write_lines(tmp_path / "a.jsonl", thousand), sums)[0].scores["fas"].value < 1
    readings = Readings()
    run, _ = imported(write_lines(tmp_path / "b.jsonl", spoken), sums, readings=readings)
    assert run.scores["fas"].value == 1
    assert any("marks between thousands" in what for what in readings.taken)


def test_the_reference_is_not_scored_as_predictions(tmp_path, sums):
    gold = numbers(lambda n, mean: mean)
    with pytest.raises(
        UsageError, match=r"column mean of a\.jsonl equals the right answer in \(nearly\) all 10"
    ):
        imported(write_lines(tmp_path / "a.jsonl", gold), sums)
    rounded = [{"id": row["id"], "mean": f"{row['mean']:.1f}"} for row in gold]
    rounded[3]["mean"] = "99.5"  # another version
    with pytest.raises(UsageError, match=r"column mean of r\.jsonl equals the right answer"):
        imported(write_lines(tmp_path / "r.jsonl", rounded), sums)
    few = [{"id": row["id"], "mean": row["mean"]} for row in gold[:4]]
    assert imported(write_lines(tmp_path / "c.jsonl", few), sums)[0].scores["fas"].value == 1
    named_so = [{"id": row["id"], "prediction": row["mean"]} for row in gold]
    run, _ = imported(write_lines(tmp_path / "d.jsonl", named_so), sums)
    assert run.scores["fas"].value == 1


@pytest.mark.parametrize(
    ("said", "is_missing"),
    [
        ("None", True),
        ("I'm sorry, the server is busy", True),
        ("The service is temporarily unavailable. Please try again later.", True),
        ("Error: 500 Internal Server Error", True),
        ("HTTP 503", True),
        ("Rate limit exceeded", True),
        ("The model is overloaded. Please try again later.", True),
        ("Engine overloaded", True),
        ("Server overloaded, please retry", True),
        ("please wait a moment, the system is busy", True),
        ("upstream connect error or disconnect/reset before headers", True),
        ("ReadTimeout", True),
        ("ServiceUnavailableError", True),
        ("429 RESOURCE_EXHAUSTED", True),
        ("[ERROR] 429", True),
        ("The model is linear.", False),
        ("The system is drip irrigation", False),
        ("I'm sorry, I cannot see a mean.", False),
        ("500 kg/ha", False),
        ("Error: 12 t/ha", False),
    ],
)
def test_a_text_that_is_plainly_no_reply_is_missing(tmp_path, sums, said, is_missing):
    rows = [{"id": "sum-0000", "prediction": said}, {"id": "sum-0001", "prediction": "1 t/ha"}]
    _, counts = imported(write_lines(tmp_path / "p.jsonl", rows), sums)
    missing = named(counts, "rows without a prediction") + named(counts, "rows with an error")
    assert missing == (("row 1 (id sum-0000)",) if is_missing else ())


@pytest.mark.parametrize(
    "said",
    [
        "<s>{} t/ha</s>",
        "<think>It may be\nmean: 1 t/ha</think>\nmean: {} t/ha",
        "It may be\nmean: 1 t/ha</think>mean: {} t/ha<|im_end|>",
        "<|im_start|>assistant\nmean: {} t/ha<|im_end|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\nmean: {} t/ha<|eot_id|>",
        "<start_of_turn>model\nmean: {} t/ha<end_of_turn>",
    ],
)
def test_thinking_and_special_tokens_are_no_part_of_a_prediction(tmp_path, sums, said):
    rows = numbers(lambda n, mean: said.format(mean), "prediction")
    run, _ = imported(write_lines(tmp_path / "p.jsonl", rows), sums)
    assert run.scores["fas"].value == 1


def test_a_reply_that_ends_inside_its_thinking_is_no_answer(tmp_path, sums):
    rows = numbers(lambda n, mean: f"<think>mean: {mean} t/ha", "prediction")
    run, _ = imported(write_lines(tmp_path / "p.jsonl", rows), sums)
    assert run.summary.modes["no-tool"].no_form.n == 10


@pytest.mark.parametrize(
    "row",
    [
        {"id": "q0", "prediction": "0", "Prediction": "1"},
        {"id": "q0", "ID": "q1", "prediction": "0"},
        {"id": "q0", "value": "0", "Value": "1"},
        {"id": "q0", "prediction": {"value": "0", "VALUE": "1"}},
    ],
)
def test_two_keys_of_one_name_are_refused(tmp_path, benchmark, row):
    with pytest.raises(UsageError, match=r"several columns of one name: '.*', '.*' in row 1"):
        imported(write_lines(tmp_path / "p.jsonl", [row]), benchmark)


@pytest.mark.parametrize("header", ["id,prediction,prediction", "id,prediction,Prediction"])
def test_two_columns_of_predictions_are_refused(tmp_path, benchmark, header):
    file = tmp_path / "p.csv"
    file.write_text(f"{header}\nq0,0,1\n")
    with pytest.raises(UsageError, match=r"'prediction' \(column 2\), '[pP]rediction"):
        imported(file, benchmark)
    file.write_text("id,prediction,note,note\nq0,0,x,y\n")
    assert imported(file, benchmark)[1].matched == 1


def test_hidden_rows_of_predictions_are_said(tmp_path, benchmark):
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    book = openpyxl.Workbook()
    for row in (["id", "prediction"], ["q0", "0"], ["q1", "1"]):
        book.active.append(row)
    book.active.row_dimensions[3].hidden = True
    book.save(tmp_path / "p.xlsx")
    assert imported(tmp_path / "p.xlsx", benchmark)[1].hidden.startswith("1 hidden row (row 3)")
