"""Files of predictions of other programs: what is read of them, what is left, and what is asked."""

import csv
import io
import json
from importlib.util import find_spec

import pytest
from typer.testing import CliRunner

import agrotools as at
from agrotools.cli.main import app
from agrotools.core import RunStoreError, UndecidedError, UsageError
from agrotools.core.readings import Readings
from agrotools.exit_codes import UNDECIDED, code_of
from agrotools.foreign.batch_output import batch_replies
from agrotools.foreign.prediction_columns import ColumnAnswers
from agrotools.foreign.predictions import import_predictions
from agrotools.loading import load_benchmark
from support.sums_benchmark import write_sums

COUNT = 10
NUMBERS = range(COUNT)
IDS = [f"sum-{n:04d}" for n in NUMBERS]
MEANS = [(7.5 + n / 100) / 2 for n in NUMBERS]
GOLD = [f"mean: {mean} t/ha" for mean in MEANS]
RIGHT = [f"I add both and halve.\nmean: {mean} t/ha" for mean in MEANS]
WRONG = ["mean: 99 t/ha"] * COUNT


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    return load_benchmark(write_sums(tmp_path_factory.mktemp("benchmark") / "sums", COUNT))


@pytest.fixture(scope="module")
def queries(sums):
    return [sample.query for sample in sums.samples]


def table(columns, *values):
    text = io.StringIO()
    csv.writer(text).writerows([columns, *zip(*values, strict=True)])
    return text.getvalue()


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def read(folder, sums, content, name="p.jsonl", *, accept=False, **chosen):
    """The run of a file, its readings, and its counts."""
    file = folder / name
    file.write_text(content)
    readings = Readings(accept=accept)
    out = folder / f"run {len([*folder.iterdir()])}"
    run, counts = import_predictions(
        file, sums, "sums", out=out, readings=readings, chosen=ColumnAnswers(**chosen)
    )
    return at.read_run(run), readings, counts


def fas(run):
    return run.scores["fas"].value


def asked(folder, sums, content, name="p.csv"):
    """The words that answer the questions on a file."""
    with pytest.raises(UndecidedError) as raised:
        read(folder, sums, content, name)
    assert not [each for each in folder.iterdir() if each.name.startswith("run")]
    return raised.value.answers


def chat(text):
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "c1", "object": "chat.completion", "choices": [choice], "usage": {"total": 5}}


def response(text):
    said = {"type": "output_text", "text": text, "annotations": []}
    items = [
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": [said]},
    ]
    form = {"format": {"type": "text"}}
    return {"id": "r1", "object": "response", "error": None, "output": items, "text": form}


def inspect_sample(n, text, epoch=1, **more):
    choice = {"message": {"role": "assistant", "content": text}, "stop_reason": "stop"}
    return {
        "id": IDS[n],
        "epoch": epoch,
        "input": "q",
        "target": "x",
        "messages": [{"role": "user", "content": "q"}, choice["message"]],
        "output": {"model": "m", "choices": [choice], "completion": text},
        "scores": {"match": {"value": "C"}},
        **more,
    }


def inspect_log(samples):
    return json.dumps(
        {"version": 2, "status": "success", "eval": {"task": "x"}, "samples": samples}
    )


# --- the column that is scored ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns",
    [
        ["id", "answer", "prediction"],
        ["id", "output", "Prediction"],
        ["sample_id", "mean", "prediction"],
        ["sample", "expected_output", "prediction"],
    ],
)
def test_the_column_prediction_is_scored_and_others_are_said(tmp_path, sums, columns):
    run, readings, _ = read(tmp_path, sums, table(columns, IDS, MEANS, WRONG), "p.csv")
    assert fas(run) == 0
    assert readings.taken == ["column prediction", f"ids by {columns[0]}"]
    assert readings.left == [f"column {columns[1]}"]


@pytest.mark.parametrize("name", ["model_output", "response", "llava", "answer"])
def test_any_other_column_is_scored_only_if_the_user_names_it(tmp_path, sums, name):
    content = table(["id", name], IDS, RIGHT)
    with pytest.raises(UsageError, match=f"no column prediction.* it has id, {name}") as raised:
        read(tmp_path, sums, content, "p.csv")
    assert "--column NAME" in raised.value.hint
    assert '{"id": name, "prediction": text}' in raised.value.hint
    assert fas(read(tmp_path, sums, content, "p.csv", column=name)[0]) == 1
    with pytest.raises(UsageError, match="has no column bard") as raised:
        read(tmp_path, sums, content, "p.csv", column="bard")
    assert name in raised.value.hint


def test_the_reference_in_a_column_for_a_value_is_scored_only_if_the_user_names_it(tmp_path, sums):
    content = table(["id", "mean"], IDS, MEANS)
    with pytest.raises(UsageError, match="equals the right answer") as raised:
        read(tmp_path, sums, content, "p.csv")
    assert "--column" in raised.value.hint
    assert fas(read(tmp_path, sums, content, "p.csv", column="mean")[0]) == 1
    few = table(["id", "mean"], IDS[:4], MEANS[:4])
    assert fas(read(tmp_path, sums, few, "p.csv")[0]) == 1


def test_a_prediction_beside_a_conversation_is_asked_about(tmp_path, sums):
    said = [{"role": "assistant", "content": WRONG[0]}]
    rows = [
        {"id": one, "prediction": text, "messages": said}
        for one, text in zip(IDS, RIGHT, strict=True)
    ]
    assert asked(tmp_path, sums, lines(rows), "p.jsonl") == ("--column=prediction",)
    scores = {
        column: fas(read(tmp_path, sums, lines(rows), column=column)[0])
        for column in ("prediction", "messages")
    }
    assert scores == {"prediction": 1, "messages": 0}


def test_an_empty_column_of_predictions_is_not_replaced_by_the_reference(tmp_path, sums):
    content = table(["id", "mean", "prediction"], IDS[:3], MEANS[:3], [""] * 3)
    run, readings, counts = read(tmp_path, sums, content, "p.csv")
    assert (run.valid, readings.taken[0]) == (0, "column prediction")
    assert len(counts.problems["rows without a prediction (invalid, not wrong)"]) == 3


# --- several models, modes and repeats --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model", "mode", "Provider", "shots"])
def test_rows_of_several_settings_are_asked_about(tmp_path, sums, name):
    rows = [(one, setting, texts[n]) for n, one in enumerate(IDS) for setting, texts in
            (("0", RIGHT), ("1", WRONG))]  # fmt: skip
    content = table(["id", name, "prediction"], *zip(*rows, strict=True))
    assert asked(tmp_path, sums, content) == (f"--only={name.lower()}=0",)
    for setting, score in (("0", 1), ("1", 0)):
        run, readings, _ = read(tmp_path, sums, content, "p.csv", only={name: setting})
        assert (fas(run), len(run)) == (score, COUNT)
        assert readings.left == [f"rows with {name.lower()} {1 - int(setting)}"]
    with pytest.raises(UsageError, match="has 2 in column"):
        read(tmp_path, sums, content, "p.csv", only={name: "2"})
    with pytest.raises(UsageError, match="has no column x"):
        read(tmp_path, sums, content, "p.csv", only={"x": "2"})


def test_runs_of_two_models_of_one_file_are_two_runs(tmp_path, sums, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(one, model, texts[n]) for n, one in enumerate(IDS[:2]) for model, texts in
            (("a", RIGHT), ("b", WRONG))]  # fmt: skip
    file = tmp_path / "p.csv"
    file.write_text(table(["id", "model", "prediction"], *zip(*rows, strict=True)))
    runs = [
        import_predictions(file, sums, "sums", chosen=ColumnAnswers(only={"model": each}))[0]
        for each in "ab"
    ]
    assert [at.read_run(run).manifest.model for run in runs] == ["a", "b"]
    with pytest.raises(RunStoreError, match="another configuration"):
        import_predictions(
            file, sums, "sums", out=runs[0], chosen=ColumnAnswers(only={"model": "b"})
        )


@pytest.mark.parametrize(("name", "values"), [("epoch", (1, 2, 3)), ("Epoch", (7, 3, 5))])
def test_the_column_epoch_makes_epochs(tmp_path, sums, name, values):
    texts = dict(zip(sorted(values), (WRONG, RIGHT, RIGHT), strict=True))
    rows = [(one, value, texts[value][n]) for value in values for n, one in enumerate(IDS)]
    content = table(["id", name, "prediction"], *zip(*rows, strict=True))
    run, readings, _ = read(tmp_path, sums, content, "p.csv")
    assert (run.manifest.epochs, len(run), run.valid) == (3, 3 * COUNT, 3 * COUNT)
    assert fas(run) == pytest.approx(2 / 3)
    assert {row["epoch"] for row in run.rows() if row["fas"] == 0} == {0}
    assert "3 epochs" in readings.taken
    short = table(["id", name, "prediction"], *zip(*rows[:-1], strict=True))
    run, _, counts = read(tmp_path, sums, short, "p.csv")
    assert counts.problems["samples without a row (invalid, left out of the scores)"] == [
        f"sum-0009, epoch {sorted(values).index(values[-1])}"
    ]


def test_a_second_try_is_no_epoch(tmp_path, sums):
    rows = [
        {"id": one, "attempt": 1, "prediction": text} for one, text in zip(IDS, RIGHT, strict=True)
    ]
    failed = {**rows[3], "prediction": None, "error": "timeout"}
    rows[3]["attempt"] = 2
    run, _, counts = read(tmp_path, sums, lines([*rows[:3], failed, *rows[3:]]))
    assert (run.manifest.epochs, fas(run), run.valid) == (1, 1, COUNT)
    assert [*counts.problems.values()] == [["row 4 (id sum-0003)"]]


def test_repeated_rows_that_nothing_tells_apart_are_asked_about(tmp_path, sums):
    content = table(["id", "prediction"], IDS * 2, RIGHT + WRONG)
    assert asked(tmp_path, sums, content) == ("--repeated=epochs",)
    scores = {
        repeated: fas(read(tmp_path, sums, content, "p.csv", repeated=repeated)[0])
        for repeated in ("epochs", "first", "last")
    }
    assert scores == {"epochs": 0.5, "first": 1, "last": 0}
    with pytest.raises(UsageError, match="--repeated=all"):
        read(tmp_path, sums, content, "p.csv", repeated="all")
    alone = tmp_path / "alone"
    alone.mkdir()
    one = table(["id", "prediction"], [*IDS, IDS[0]], [*RIGHT, WRONG[0]])
    assert asked(alone, sums, one) == ("--repeated=last",)


def test_all_questions_come_in_one_error(tmp_path, sums):
    said = [{"role": "assistant", "content": WRONG[0]}]
    rows = [
        {"id": IDS[n], "model": model, "prediction": texts[n], "messages": said}
        for n in NUMBERS
        for model, texts in (("a", RIGHT), ("b", WRONG))
    ]
    answers = ("--column=prediction", "--only=model=a")
    assert asked(tmp_path, sums, lines(rows), "p.jsonl") == answers
    done = CliRunner().invoke(
        app, ["score", "--benchmark", str(sums.root), "--predictions", str(tmp_path / "p.jsonl")]
    )
    assert code_of(done.exception) == UNDECIDED


# --- objects in place of texts ----------------------------------------------------------------------------------------


def test_an_object_of_values_is_an_answer(tmp_path, sums):
    rows = [
        {"id": one, "prediction": {"mean": f"{mean} t/ha"}}
        for one, mean in zip(IDS, MEANS, strict=True)
    ]
    assert fas(read(tmp_path, sums, lines(rows))[0]) == 1


@pytest.mark.parametrize("written", [dict, json.dumps])
def test_other_keys_of_an_object_are_named_and_not_read(tmp_path, sums, written):
    others = {"mean_alt": 99, "explanation": "a guess"}
    rows = [
        {"id": one, "prediction": written({"mean": mean, **others})}
        for one, mean in zip(IDS, MEANS, strict=True)
    ]
    run, readings, _ = read(tmp_path, sums, lines(rows))
    assert fas(run) == 1
    assert readings.left == ["in column prediction: keys mean_alt, explanation"]


def test_null_in_an_object_is_the_answer_unknown(tmp_path, sums):
    rows = [{"id": one, "prediction": {"mean": None}} for one in IDS]
    run, _, counts = read(tmp_path, sums, lines(rows))
    assert (fas(run), run.valid, counts.problems) == (0, COUNT, {})
    assert run.samples()[0].trajectory.answer_text == "mean: unknown"


@pytest.mark.parametrize("stored", [{"foo": "1"}, chat("mean: 1"), [{"text": "mean: 1"}]])
def test_an_object_of_another_program_is_refused_with_the_form(tmp_path, sums, stored):
    with pytest.raises(UsageError, match=r"which is no reply and no answer") as raised:
        read(tmp_path, sums, lines([{"id": IDS[0], "prediction": stored}]))
    assert "row 1" in raised.value.message
    assert '{"id": name, "prediction": text}' in raised.value.hint


def test_values_that_a_model_names_otherwise_are_a_wrong_answer(tmp_path, sums):
    objects = [{"mean" if n else "foo": mean} for n, mean in enumerate(MEANS)]
    rows = [{"id": one, "prediction": each} for one, each in zip(IDS, objects, strict=True)]
    run, _, _ = read(tmp_path, sums, lines(rows))
    assert (fas(run), run.valid) == (0.9, COUNT)


# --- forms of programs ------------------------------------------------------------------------------------------------


def batch_line(n, body=None, **more):
    reply = {"status_code": 200, "request_id": "r", "body": body or chat(RIGHT[n])}
    return {"id": f"batch_req_{n}", "custom_id": IDS[n], "response": reply, "error": None, **more}


def lm_eval(n, replies, **more):
    return {
        "doc_id": n,
        "doc": {"id": IDS[n]},
        "target": GOLD[n],
        "resps": [replies],
        "filtered_resps": [WRONG[n]],
        "filter": "none",
        **more,
    }


FORMS = {
    "rows in a list": json.dumps(
        [{"id": one, "prediction": text} for one, text in zip(IDS, RIGHT, strict=True)]
    ),
    "log of Inspect": inspect_log([inspect_sample(n, RIGHT[n]) for n in NUMBERS]),
    "batch of OpenAI": lines(batch_line(n) for n in NUMBERS),
    "batch of OpenAI responses": lines(batch_line(n, response(RIGHT[n])) for n in NUMBERS),
    "lm-eval": lines(lm_eval(n, [RIGHT[n]]) for n in NUMBERS),
    # Where they are the same, lmms-eval writes one of them, without the lists around it.
    "lmms-eval": lines(
        {"doc_id": n, "doc": {"id": IDS[n]}, "target": GOLD[n], "filtered_resps": RIGHT[n]}
        for n in NUMBERS
    ),
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_files_of_programs_are_read_without_a_question(tmp_path, sums, content):
    run, readings, counts = read(tmp_path, sums, content, "p.json")
    assert (fas(run), run.valid, readings.questions) == (1, COUNT, [])
    assert readings.taken[:2] == [readings.taken[0], "ids by id"]
    assert not counts.problems


NOT_READ = {
    "texts by id": json.dumps(dict(zip(IDS, RIGHT, strict=True))),
    "lists under keys": json.dumps({"a": [{"id": IDS[0], "prediction": RIGHT[0]}]}),
    "columns of pandas": json.dumps({"id": dict(enumerate(IDS)), "prediction": dict(enumerate(RIGHT))}),
    "promptfoo": json.dumps({"results": {"results": [{"vars": {"id": IDS[0]}, "response": {"output": "x"}}]}}),
    "OpenCompass": json.dumps({"0": {"origin_prompt": "q", "prediction": RIGHT[0], "gold": "x"}}),
    "batch of Anthropic": lines([{"custom_id": IDS[0], "result": {"type": "succeeded", "message": {}}}] * 2),
    "batch of Gemini": lines([{"key": IDS[0], "response": {"candidates": []}}] * 2),
    "LLaMA-Factory": lines([{"prompt": "q", "predict": RIGHT[0], "label": "x"}] * 2),
}  # fmt: skip


@pytest.mark.parametrize("content", NOT_READ.values(), ids=NOT_READ)
def test_other_forms_are_refused_with_ours(tmp_path, sums, content):
    with pytest.raises(UsageError) as raised:
        read(tmp_path, sums, content, "p.json")
    assert '{"id": name, "prediction": text}' in raised.value.hint


def test_columns_that_name_different_samples_are_refused(tmp_path, sums, queries):
    rows = [{"id": IDS[n], "question": queries[9 - n], "prediction": RIGHT[n]} for n in NUMBERS]
    with pytest.raises(UsageError, match="sum-0000 by id, but to sum-0009 by question"):
        read(tmp_path, sums, lines(rows))


def test_failed_lines_of_a_batch_are_missing_replies(tmp_path, sums):
    failed = [
        batch_line(7, response=None, error={"code": "batch_expired", "message": "too late"}),
        batch_line(8, response={"status_code": 429, "body": {"error": {"message": "slow"}}}),
        batch_line(9, {"error": {"message": "overloaded"}}),
    ]
    run, _, counts = read(tmp_path, sums, lines([*map(batch_line, range(7)), *failed]))
    assert (fas(run), run.valid) == (1, 7)
    kind = "rows with an error in place of a prediction (invalid, not wrong)"
    assert len(counts.problems[kind]) == 3


def test_several_choices_of_a_batch_are_epochs(tmp_path, sums):
    both = [chat(RIGHT[n]) | {"choices": [chat(text)["choices"][0] for text in (RIGHT[n], WRONG[n])]}
            for n in NUMBERS]  # fmt: skip
    run, _, _ = read(tmp_path, sums, lines(batch_line(n, both[n]) for n in NUMBERS))
    assert (run.manifest.epochs, fas(run)) == (2, 0.5)


def test_a_batch_reply_that_only_calls_a_tool_or_refuses_is_an_answer():
    called = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}  # fmt: skip
    refused = {"role": "assistant", "content": None, "refusal": "I must not."}
    for said, text in ((called, ""), (refused, "I must not.")):
        body = {"choices": [{"message": said, "finish_reason": "stop"}]}
        assert batch_replies({"custom_id": "x", "response": {"body": body}}) == [text]


def test_a_log_of_inspect_has_epochs_and_errors(tmp_path, sums):
    samples = [inspect_sample(n, (RIGHT, WRONG)[at][n], at + 1) for at in (0, 1) for n in NUMBERS]
    no_output = {"model": "", "choices": [], "completion": ""}
    samples[0] = inspect_sample(0, "", output=no_output, error={"message": "Timeout"})
    run, readings, counts = read(tmp_path, sums, inspect_log(samples), "p.json")
    assert (run.manifest.epochs, run.valid) == (2, 2 * COUNT - 1)
    assert readings.taken == ["column output", "ids by id", "log of Inspect", "2 epochs"]
    assert len(counts.problems) == 1
    (tmp_path / "p.eval").write_text("PK")
    with pytest.raises(UsageError) as raised:
        import_predictions(tmp_path / "p.eval", sums, "sums")
    is_read_here = find_spec("inspect_ai") is not None
    assert ("inspect eval wrote" if is_read_here else "inspect log convert") in raised.value.hint


def test_samples_of_lm_eval_have_repeats_and_filters(tmp_path, sums):
    repeats = lines(lm_eval(n, [RIGHT[n], WRONG[n]]) for n in NUMBERS)
    run, readings, _ = read(tmp_path, sums, repeats)
    assert (run.manifest.epochs, fas(run), readings.left) == (2, 0.5, ["column filtered_resps"])
    filtered = lines(
        lm_eval(n, [RIGHT[n]], filter=name, filtered_resps=[texts[n]])
        for name, texts in (("strict", WRONG), ("loose", RIGHT))
        for n in NUMBERS
    )
    assert fas(read(tmp_path, sums, filtered)[0]) == 1
    chosen = {"column": "filtered_resps", "only": {"filter": "strict"}}
    assert fas(read(tmp_path, sums, filtered, **chosen)[0]) == 0


@pytest.mark.parametrize(
    "asked",
    [
        lambda query: {"input": query},
        lambda query: {"input": f"{query}\nAnswer with one line."},
        lambda query: {"arguments": {"gen_args_0": {"arg_0": query, "arg_1": {"until": []}}}},
    ],
)
def test_the_prompt_of_lm_eval_tells_the_sample_where_the_position_is_another(
    tmp_path, sums, queries, asked
):
    rows = [lm_eval(COUNT - 1 - n, [RIGHT[n]], doc={}, **asked(queries[n])) for n in NUMBERS]
    run, readings, _ = read(tmp_path, sums, lines(rows))
    assert (fas(run), run.valid) == (1, COUNT)
    assert "ids by input" in readings.taken
    assert "doc_id as position" in readings.left


def test_positions_count_beside_prompts_of_several_questions_only_if_no_prompt_contradicts(
    tmp_path, sums, queries
):
    examples = "\n".join(queries[:3])
    prompts = [queries[n] if n % 2 else examples for n in NUMBERS]
    in_order = [lm_eval(n, [RIGHT[n]], doc={}, input=prompts[n]) for n in NUMBERS]
    run, readings, _ = read(tmp_path, sums, lines(in_order))
    assert (fas(run), run.valid) == (1, COUNT)
    assert "ids by position, input" in readings.taken
    moved = [lm_eval((n + 1) % COUNT, [RIGHT[n]], doc={}, input=prompts[n]) for n in NUMBERS]
    run, _, counts = read(tmp_path, sums, lines(moved))
    assert len(counts.problems["rows without a sample"]) == COUNT // 2
    assert run.valid == COUNT // 2


def test_a_prompt_of_another_sample_than_the_id_is_refused(tmp_path, sums, queries):
    rows = [lm_eval(n, [RIGHT[n]], input=queries[9 - n]) for n in NUMBERS]
    with pytest.raises(UsageError, match="sum-0000 by id, but to sum-0009 by input"):
        read(tmp_path, sums, lines(rows))


def workbook(path, sheets, hidden=()):
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        sheet.sheet_state = "hidden" if name in hidden else "visible"
        for row in rows:
            sheet.append(row)
    book.save(path)


def read_workbook(folder, sums, **chosen):
    readings = Readings()
    run, _ = import_predictions(
        folder / "p.xlsx",
        sums,
        "sums",
        out=folder / f"run {len([*folder.iterdir()])}",
        readings=readings,
        chosen=ColumnAnswers(**chosen),
    )
    return at.read_run(run), readings


def test_sheets_of_a_workbook_are_read_or_named(tmp_path, sums):
    def sheet(texts, ids=IDS):
        return [["id", "prediction"], *map(list, zip(ids, texts, strict=True))]

    notes = [["what", "who"], ["made in May", "A"]]
    workbook(tmp_path / "p.xlsx", {"Notes": notes, "2026": sheet(RIGHT)})
    run, readings = read_workbook(tmp_path, sums)
    assert (fas(run), readings.left) == (1, ['sheet "Notes"'])
    assert 'sheet "2026"' in readings.taken
    workbook(tmp_path / "p.xlsx", {"A": sheet(RIGHT[:5], IDS[:5]), "B": sheet(RIGHT[5:], IDS[5:])})
    run, readings = read_workbook(tmp_path, sums)
    assert (fas(run), run.valid) == (1, COUNT)
    workbook(tmp_path / "p.xlsx", {"A": sheet(RIGHT), "B": sheet(WRONG)})
    with pytest.raises(UndecidedError) as raised:
        read_workbook(tmp_path, sums)
    assert raised.value.answers == ("--only=sheet=A",)
    assert fas(read_workbook(tmp_path, sums, only={"sheet": "B"})[0]) == 0
    workbook(tmp_path / "p.xlsx", {"old": sheet(WRONG), "new": sheet(RIGHT)}, hidden=["old"])
    run, readings = read_workbook(tmp_path, sums)
    assert (fas(run), readings.left) == (1, ['sheet "old" (hidden)'])


# --- what the command says --------------------------------------------------------------------------------------------


def test_the_command_says_what_it_scored(tmp_path, sums):
    file = tmp_path / "p.csv"
    file.write_text(table(["id", "answer", "prediction"], IDS, GOLD, RIGHT))
    command = ["score", "--benchmark", str(sums.root), "--predictions", str(file)]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "run"), "--json"])
    readings = json.loads(done.stdout)[0]["readings"]
    assert readings["read"] == ["column prediction", "ids by id"]
    assert readings["not_read"] == ["column answer"]
    assert "read: column prediction, ids by id\n" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["--column", "x", "run"], ["--only", "a=b", "run"], ["--yes", "run"], ["--repeated", "last"]],
)
def test_options_of_predictions_are_refused_without_them(arguments):
    done = CliRunner().invoke(app, ["score", *arguments])
    assert isinstance(done.exception, UsageError)


def test_a_value_of_only_needs_a_column(sums, tmp_path):
    command = ["score", "--benchmark", str(sums.root), "--predictions", str(tmp_path / "p.csv")]
    done = CliRunner().invoke(app, [*command, "--only", "gpt-4o"])
    assert isinstance(done.exception, UsageError)
    assert done.exception.hint == "--only COLUMN=VALUE"
