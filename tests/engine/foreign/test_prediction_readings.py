"""Files of predictions of other programs: what is read of them, what is left, and what is asked."""

import csv
import io
import json
from importlib.util import find_spec

import pytest
from typer.testing import CliRunner

import agrotools as at
from agrotools.cli.main import app
from agrotools.cli.output import UNDECIDED, code_of
from agrotools.core import RunStoreError, UndecidedError, UsageError
from agrotools.core.readings import Readings
from agrotools.foreign.prediction_columns import ColumnAnswers
from agrotools.foreign.prediction_names import column_kind, snake_case
from agrotools.foreign.predictions import import_predictions
from agrotools.foreign.reply_objects import NoReply, replies_in, stored_replies
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


def message(text):
    blocks = [{"type": "thinking", "thinking": "mean: 1"}, {"type": "text", "text": text}]
    return {"id": "m1", "type": "message", "role": "assistant", "content": blocks}


def candidates(text):
    parts = [{"text": "mean: 1", "thought": True}, {"text": text}]
    return {"candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP"}]}


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
    ("columns", "values", "column", "score"),
    [
        (["id", "answer", "model_output"], (IDS, GOLD, WRONG), "model_output", 0),
        (["id", "answer", "llava"], (IDS, GOLD, WRONG), "llava", 0),
        (["id", "answer", "llava"], (IDS[:3], GOLD[:3], WRONG[:3]), "llava", 0),
        (["id", "target", "Model Output"], (IDS, GOLD, WRONG), "model output", 0),
        (["id", "label", "predicted_label"], (IDS, GOLD, WRONG), "predicted_label", 0),
        (["id", "expected_output", "actualOutput"], (IDS, GOLD, WRONG), "actualoutput", 0),
        (["id", "output", "prediction"], (IDS, MEANS, WRONG), "prediction", 0),
        (["id", "response", "prediction"], (IDS, RIGHT, RIGHT), "prediction", 1),
        (["id", "output_tokens", "output"], (IDS, NUMBERS, RIGHT), "output", 1),
        (["id", "text"], (IDS, RIGHT), "text", 1),
    ],
)
def test_the_column_of_predictions_is_found_and_said(
    tmp_path, sums, columns, values, column, score
):
    run, readings, _ = read(tmp_path, sums, table(columns, *values), "p.csv")
    assert fas(run) == score
    assert readings.taken == [f"column {column}", "ids by id"]


@pytest.mark.parametrize(
    ("columns", "values", "proposed"),
    [
        (["id", "response", "prediction"], (IDS, RIGHT, WRONG), "prediction"),
        (["id", "answer", "llava"], (IDS, RIGHT, WRONG), "llava"),
        (["id", "llava", "qwen"], (IDS, RIGHT, WRONG), "llava"),
        (["id", "model_a", "model_b"], (IDS, RIGHT, WRONG), "model_a"),
        (["id", "output", "completion"], (IDS, GOLD, WRONG), "completion"),
    ],
)
def test_several_columns_that_may_hold_predictions_are_asked_about(
    tmp_path, sums, columns, values, proposed
):
    content = table(columns, *values)
    assert asked(tmp_path, sums, content) == (f"--column={proposed}",)
    right, readings, _ = read(tmp_path, sums, content, "p.csv", column=columns[1])
    accepted, _, _ = read(tmp_path, sums, content, "p.csv", accept=True)
    assert (fas(right), fas(accepted)) == (1, int(proposed == columns[1]))
    assert any(columns[2] in each for each in readings.left)
    with pytest.raises(UsageError, match="has no column bard") as raised:
        read(tmp_path, sums, content, "p.csv", column="bard")
    assert columns[1] in raised.value.hint


def test_a_column_that_is_the_reference_is_scored_only_if_the_user_names_it(tmp_path, sums):
    content = table(["id", "answer"], IDS, MEANS)
    with pytest.raises(UsageError, match="equals the right answer") as raised:
        read(tmp_path, sums, content, "p.csv")
    assert "--column" in raised.value.hint
    assert fas(read(tmp_path, sums, content, "p.csv", column="answer")[0]) == 1
    with pytest.raises(UsageError, match="no column of predictions"):
        read(tmp_path, sums, table(["id", "ground_truth"], IDS, GOLD), "p.csv")


def test_an_empty_column_of_predictions_is_not_replaced_by_the_reference(tmp_path, sums):
    for name, values in (("answer", GOLD), ("mean", MEANS)):
        content = table(["id", name, "prediction"], IDS[:3], values[:3], [""] * 3)
        run, readings, counts = read(tmp_path, sums, content, "p.csv")
        assert (run.valid, readings.taken[0]) == (0, "column prediction")
        assert len(counts.problems["rows without a prediction (invalid, not wrong)"]) == 3


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("generated_text", "prediction"),
        ("modelAnswer", "prediction"),
        ("raw-output", "prediction"),
        ("response_time_s", "fact"),
        ("prediction_id", "fact"),
        ("reference_answer", "reference"),
        ("correct_response", "reference"),
        ("user_input", "prompt"),
        ("input_tokens", "fact"),
        ("Epoch", "repeat"),
        ("model", "setting"),
        ("gpt-4o", ""),
    ],
)
def test_names_tell_what_a_column_holds(name, kind):
    assert column_kind(snake_case(name)) == kind


# --- several models, modes and repeats --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model", "mode", "Provider", "temperature", "shots"])
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
    rows = [(IDS[0], "a", RIGHT[0]), (IDS[0], "b", WRONG[0])]
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


@pytest.mark.parametrize(
    ("name", "values"), [("epoch", (1, 2, 3)), ("run", (7, 3, 5)), ("seed", (0, 42, 1))]
)
def test_a_column_of_repeats_makes_epochs(tmp_path, sums, name, values):
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


def test_random_seeds_number_the_repeats_of_each_sample(tmp_path, sums):
    rows = [(one, 1000 * at + n, texts[n]) for at, texts in enumerate((RIGHT, WRONG)) for n, one in
            enumerate(IDS)]  # fmt: skip
    content = table(["id", "seed", "prediction"], *zip(*rows, strict=True))
    run, _, _ = read(tmp_path, sums, content, "p.csv")
    assert (run.manifest.epochs, run.valid, fas(run)) == (2, 2 * COUNT, 0.5)
    named = [(one, seed, "nan" if seed < 1000 else 2, text) for one, seed, text in rows]
    content = table(["id", "seed", "epoch", "prediction"], *zip(*named, strict=True))
    run, _, _ = read(tmp_path, sums, content, "p.csv")
    assert (run.manifest.epochs, run.valid, fas(run)) == (2, 2 * COUNT, 0.5)


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
    rows = [(IDS[n], model, f"{MEANS[n] + 1:.3f}".replace(".", ","), "It is so.") for n in NUMBERS
            for model in "ab"]  # fmt: skip
    rows[0] = (*rows[0][:2], "3,7", "2,500")
    rows[1] = (*rows[1][:2], "1.5", "2,500")
    content = table(["id", "model", "response", "output"], *zip(*rows, strict=True))
    assert asked(tmp_path, sums, content) == ("--column=response", "--only=model=a")
    done = CliRunner().invoke(
        app, ["score", "--benchmark", str(sums.root), "--predictions", str(tmp_path / "p.csv")]
    )
    assert code_of(done.exception) == UNDECIDED


# --- objects in place of texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stored",
    [
        chat,
        response,
        message,
        candidates,
        lambda text: chat(text)["choices"][0]["message"],
        lambda text: {"choices": [{"text": text, "index": 0}]},
        lambda text: {"status_code": 200, "body": chat(text)},
        lambda text: {"type": "succeeded", "message": message(text)},
        lambda text: [{"role": "user", "content": "q"}, {"role": "assistant", "content": text}],
    ],
)
def test_an_object_of_a_program_is_read_in_any_column_and_as_json_in_a_cell(tmp_path, sums, stored):
    for name in ("response", "raw"):
        rows = [{"id": one, name: stored(text)} for one, text in zip(IDS, RIGHT, strict=True)]
        assert fas(read(tmp_path, sums, lines(rows))[0]) == 1
    cells = [json.dumps(stored(text)) for text in RIGHT]
    if cells[0][0] == "{":
        assert fas(read(tmp_path, sums, table(["id", "response"], IDS, cells), "p.csv")[0]) == 1


@pytest.mark.parametrize(
    "stored",
    [
        lambda text: {"completion": text, "model": "m"},
        lambda text: {"content": text, "tokens": 3},
        lambda text: {"message": {"content": text}},
        lambda text: {"text": text},
        lambda text: [{"generated_text": text}],
        lambda text: {"output": {"message": {"role": "assistant", "content": [{"text": text}]}}},
        lambda text: {"outputs": [{"index": 0, "text": text, "finish_reason": "stop"}]},
    ],
)
def test_an_object_in_the_column_of_predictions_is_read(tmp_path, sums, stored):
    rows = [{"id": one, "output": stored(text)} for one, text in zip(IDS, RIGHT, strict=True)]
    assert fas(read(tmp_path, sums, lines(rows))[0]) == 1


@pytest.mark.parametrize("is_cell", [False, True])
def test_an_object_of_no_known_form_is_refused(tmp_path, sums, is_cell):
    objects = [{"foo": text} for text in RIGHT]
    if is_cell:
        content = table(["id", "output"], IDS, map(json.dumps, objects))
    else:
        content = lines({"id": one, "output": each} for one, each in zip(IDS, objects, strict=True))
    row = 2 if is_cell else 1  # a table counts its header
    with pytest.raises(UsageError, match=f"holds an object with foo in row {row}") as raised:
        read(tmp_path, sums, content, "p.csv" if is_cell else "p.jsonl")
    assert "column output" in raised.value.message


def test_values_that_a_model_names_otherwise_are_a_wrong_answer(tmp_path, sums):
    objects = [{"mean" if n else "foo": mean} for n, mean in enumerate(MEANS)]
    rows = [{"id": one, "output": each} for one, each in zip(IDS, objects, strict=True)]
    run, _, _ = read(tmp_path, sums, lines(rows))
    assert (fas(run), run.valid) == (0.9, COUNT)


def test_several_replies_of_a_row_are_epochs(tmp_path, sums):
    both = [*zip(RIGHT, WRONG, strict=True)]
    choices = [{"choices": [chat(text)["choices"][0] for text in texts]} for texts in both]
    for replies in (choices, both):
        rows = [{"id": one, "response": each} for one, each in zip(IDS, replies, strict=True)]
        run, _, _ = read(tmp_path, sums, lines(rows))
        assert (run.manifest.epochs, fas(run)) == (2, 0.5)


def test_replies_in_objects():
    refused = {"role": "assistant", "content": None, "refusal": "I must not."}
    assert replies_in({"choices": [{"message": refused}]}) == ("I must not.",)
    called = {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}
    assert replies_in(called) == ("",)
    assert replies_in({"status_code": 429, "body": {"error": {"message": "slow down"}}}) == (
        NoReply("HTTP status 429: slow down"),
    )
    assert replies_in({"type": "expired"}) == (NoReply("expired"),)
    assert replies_in({"candidates": []}) == ()
    assert replies_in({"foo": 1}) is None
    deep = {"output": "x"}
    for _ in range(5000):
        deep = {"output": deep}
    assert replies_in(deep) is None
    assert stored_replies('{"mean": 3.75}') is None
    assert stored_replies("no object") is None
    assert stored_replies(repr(chat("mean: 1"))) == ("mean: 1",)


# --- forms of programs ------------------------------------------------------------------------------------------------


def batch_line(n, body=None, **more):
    reply = {"status_code": 200, "request_id": "r", "body": body or chat(RIGHT[n])}
    return {"id": f"batch_req_{n}", "custom_id": IDS[n], "response": reply, "error": None, **more}


def promptfoo(n, text, provider="openai:gpt-4o", **more):
    variables = {"id": IDS[n], "answer": GOLD[n]}
    return {
        "id": f"uuid-{n}",
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": "What is the mean?", "label": "{{question}}"},
        "response": {"output": text, "tokenUsage": {"total": 5}},
        "testCase": {"vars": variables},
        "vars": variables,
        "testIdx": n,
        **more,
    }


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
    "texts by id": json.dumps(dict(zip(IDS, RIGHT, strict=True))),
    "texts by id, inside": json.dumps({"model": "m", "predictions": dict(zip(IDS, RIGHT, strict=True))}),
    "texts by id, in lines": lines({one: text} for one, text in zip(IDS, RIGHT, strict=True)),
    "replies by id": json.dumps({one: chat(text) for one, text in zip(IDS, RIGHT, strict=True)}),
    "values by id": json.dumps({one: {"mean": mean + 1e-6} for one, mean in zip(IDS, MEANS, strict=True)}),
    "log of Inspect": inspect_log([inspect_sample(n, RIGHT[n]) for n in NUMBERS]),
    "samples of Inspect": lines(inspect_sample(n, RIGHT[n]) for n in NUMBERS),
    "batch of OpenAI": lines(batch_line(n) for n in NUMBERS),
    "batch of OpenAI responses": lines(batch_line(n, response(RIGHT[n])) for n in NUMBERS),
    "batch of Anthropic": lines(
        {"custom_id": IDS[n], "result": {"type": "succeeded", "message": message(RIGHT[n])}}
        for n in NUMBERS
    ),
    "batch of Gemini": lines({"key": IDS[n], "response": candidates(RIGHT[n])} for n in NUMBERS),
    "batch of Bedrock": lines(
        {"recordId": IDS[n], "modelInput": {"prompt": "q"}, "modelOutput": message(RIGHT[n])}
        for n in NUMBERS
    ),
    "results of promptfoo": json.dumps(
        {"evalId": "e", "results": {"version": 3, "results": [promptfoo(n, RIGHT[n]) for n in NUMBERS]}}
    ),
    "lines of promptfoo": lines(promptfoo(n, RIGHT[n]) for n in NUMBERS),
    "OpenCompass": json.dumps(
        {str(n): {"origin_prompt": "", "prediction": RIGHT[n], "gold": "x"} for n in NUMBERS}
    ),
    "lm-eval": lines(lm_eval(n, [RIGHT[n]]) for n in NUMBERS),
    "columns of pandas": json.dumps({"id": dict(enumerate(IDS)), "output": dict(enumerate(RIGHT))}),
    "columns as lists": json.dumps({"id": IDS, "output": RIGHT}),
    "table of MLflow": json.dumps(
        {"columns": ["id", "ground_truth", "outputs"], "data": [[*each] for each in zip(IDS, GOLD, RIGHT, strict=True)]}
    ),
    "FastChat": lines(
        {"question_id": IDS[n], "model_id": "m", "choices": [{"index": 0, "turns": [RIGHT[n]]}]}
        for n in NUMBERS
    ),
    "generated_text": lines({"id": IDS[n], "generated_text": RIGHT[n]} for n in NUMBERS),
    "ids in metadata": lines({"metadata": {"name": IDS[n]}, "output": RIGHT[n]} for n in NUMBERS),
    "ids under another name": lines({"uid": IDS[n], "output": RIGHT[n]} for n in NUMBERS),
    "prompts of a chat beside the response": lines(
        {"id": IDS[n], "messages": [{"role": "user", "content": "q"}], "response": RIGHT[n]}
        for n in NUMBERS
    ),
}  # fmt: skip


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_files_of_programs_are_read_without_a_question(tmp_path, sums, content):
    run, readings, counts = read(tmp_path, sums, content, "p.json")
    assert (fas(run), run.valid, readings.questions) == (1, COUNT, [])
    assert readings.taken[0].startswith("column ")
    assert readings.taken[1].startswith("ids by ")
    assert not counts.problems


def test_a_question_in_the_prompt_identifies_its_sample(tmp_path, sums, queries):
    backwards = [*reversed(NUMBERS)]
    rows = {
        "LLaMA-Factory": [
            {"prompt": f"user\n{queries[n]}\nassistant", "predict": RIGHT[n], "label": "x"}
            for n in backwards
        ],
        "vLLM": [{"prompt": queries[n], "outputs": [{"text": RIGHT[n]}]} for n in backwards],
        "Vertex": [
            {
                "request": {"contents": [{"role": "user", "parts": [{"text": queries[n]}]}]},
                "response": candidates(RIGHT[n]),
            }
            for n in backwards
        ],
        "ragas": [{"user_input": queries[n], "response": RIGHT[n]} for n in backwards],
    }
    for each in rows.values():
        assert fas(read(tmp_path, sums, lines(each))[0]) == 1
    shuffled = {
        str(at): {
            "origin_prompt": [{"role": "HUMAN", "prompt": queries[n]}],
            "prediction": RIGHT[n],
        }
        for at, n in enumerate(backwards)
    }
    run, readings, _ = read(tmp_path, sums, json.dumps(shuffled), "p.json")
    assert (fas(run), readings.taken[1]) == (1, "ids by origin_prompt")


def test_columns_that_name_different_samples_are_refused(tmp_path, sums, queries):
    rows = [{"id": IDS[n], "question": queries[9 - n], "output": RIGHT[n]} for n in NUMBERS]
    with pytest.raises(UsageError, match="sum-0000 by id, but to sum-0009 by question"):
        read(tmp_path, sums, lines(rows))
    numbered = json.dumps(dict(zip(map(str, NUMBERS), RIGHT, strict=True)))
    with pytest.raises(UsageError, match="contains no rows"):
        read(tmp_path, sums, numbered, "p.json")


@pytest.mark.parametrize(
    "failed",
    [
        [
            batch_line(7, response=None, error={"code": "batch_expired", "message": "too late"}),
            batch_line(8, response={"status_code": 429, "body": {"error": {"message": "slow"}}}),
            batch_line(9, {"error": {"message": "overloaded"}}),
        ],
        [
            {"custom_id": IDS[7], "result": {"type": "errored", "error": {"type": "error"}}},
            {"custom_id": IDS[8], "result": {"type": "expired"}},
            {"custom_id": IDS[9], "result": {"type": "canceled"}},
        ],
        [{"recordId": IDS[n], "error": {"errorCode": 400, "errorMessage": "x"}} for n in (7, 8, 9)],
    ],
    ids=["OpenAI", "Anthropic", "Bedrock"],
)
def test_a_failed_line_of_a_batch_is_a_missing_reply(tmp_path, sums, failed):
    form = {
        "response": "batch of OpenAI",
        "result": "batch of Anthropic",
        "error": "batch of Bedrock",
    }
    key = next(key for key in form if key in failed[0])
    good = FORMS[form[key]].splitlines(keepends=True)[:7]
    run, _, counts = read(tmp_path, sums, "".join(good) + lines(failed))
    assert (fas(run), run.valid) == (1, 7)
    kind = "rows with an error in place of a prediction (invalid, not wrong)"
    assert len(counts.problems[kind]) == 3


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


def test_results_of_promptfoo_have_providers_and_errors(tmp_path, sums):
    results = [
        promptfoo(n, texts[n], provider)
        for n in NUMBERS
        for provider, texts in (("a", RIGHT), ("b", WRONG))
    ]
    results[0] |= {"error": "Expected output to contain 3", "failureReason": 1}
    results[2] |= {"response": {"error": "timeout"}, "error": "timeout", "failureReason": 2}
    content = json.dumps({"results": {"version": 3, "results": results}})
    assert asked(tmp_path, sums, content, "p.json") == ("--only=provider=a",)
    run, _, _ = read(tmp_path, sums, content, "p.json", only={"provider": "a"})
    assert (fas(run), run.valid) == (1, COUNT - 1)


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


def test_lists_of_rows_under_several_keys_are_asked_about(tmp_path, sums):
    rows = {
        name: [{"id": one, "prediction": text} for one, text in zip(IDS, texts, strict=True)]
        for name, texts in (("a", RIGHT), ("b", WRONG))
    }
    by_id = {name: {row["id"]: row["prediction"] for row in each} for name, each in rows.items()}
    for content in (rows, by_id):
        assert asked(tmp_path, sums, json.dumps(content), "p.json") == ("--only=list=a",)
    more = {"config": [{"key": "x"}], "results": rows["a"]}
    assert fas(read(tmp_path, sums, json.dumps(more), "p.json")[0]) == 1


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
    assert "rows with sheet A, B" in readings.taken
    workbook(tmp_path / "p.xlsx", {"A": sheet(RIGHT), "B": sheet(WRONG)})
    with pytest.raises(UndecidedError) as raised:
        read_workbook(tmp_path, sums)
    assert raised.value.answers == ("--only=sheet=A",)
    assert fas(read_workbook(tmp_path, sums, only={"sheet": "B"})[0]) == 0
    workbook(tmp_path / "p.xlsx", {"old": sheet(WRONG), "new": sheet(RIGHT)}, hidden=["old"])
    run, readings = read_workbook(tmp_path, sums)
    assert (fas(run), readings.left) == (1, ['sheet "old" (hidden)'])


def test_an_id_twice_in_one_object_is_refused(tmp_path, sums):
    content = f'{{"{IDS[0]}": "mean: 1", "{IDS[1]}": "mean: 1", "{IDS[0]}": "mean: 3.75"}}'
    with pytest.raises(UsageError, match="several entries of sample sum-0000"):
        read(tmp_path, sums, content, "p.json")
    with pytest.raises(UsageError, match="several entries of sample sum-0000"):
        read(tmp_path, sums, f'{{"predictions": {content}}}', "p.json")


def test_replies_in_parquet_are_read(tmp_path, sums):
    arrow = pytest.importorskip("pyarrow", reason="extra build")
    parquet = pytest.importorskip("pyarrow.parquet", reason="extra build")
    rows = [
        {"custom_id": IDS[n], "response": {"status_code": 200, "body": chat(RIGHT[n])}}
        for n in NUMBERS
    ]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "p.parquet")
    run, _ = import_predictions(tmp_path / "p.parquet", sums, "sums", out=tmp_path / "run")
    assert fas(at.read_run(run)) == 1


# --- what the command says --------------------------------------------------------------------------------------------


def test_the_command_says_what_it_scored(tmp_path, sums):
    file = tmp_path / "p.csv"
    file.write_text(table(["id", "answer", "model_output"], IDS, GOLD, RIGHT))
    command = ["score", "--benchmark", str(sums.root), "--predictions", str(file)]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "run"), "--json"])
    readings = json.loads(done.stdout)[0]["readings"]
    assert readings["read"] == ["column model_output", "ids by id"]
    assert readings["not_read"] == [
        "column answer (it equals the right answer in nearly every row)"
    ]
    assert "read: column model_output, ids by id\n" in done.stderr


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
