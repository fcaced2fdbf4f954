"""The released AgroTools questions: forms that they may have, and reports on what the field map does not read."""

import io
import json
import tomllib
from pathlib import Path

import pytest
from PIL import Image

from agrotools import evaluate
from agrotools.calling.declared import chart_of
from agrotools.core import BenchmarkError, UsageError
from agrotools.core.progress import no_progress
from agrotools.loading.benchmarks import load_benchmark
from agrotools.loading.checking import propose_map_of
from agrotools_benchmarks.released.load import check_released

pyarrow = pytest.importorskip("pyarrow")


def _picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), (90, 140, 60)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "agrotools/image").mkdir(parents=True)
    (tmp_path / "agrotools/image/1.png").write_bytes(_picture())
    return tmp_path


def _in_dialogs(count: int = 2) -> dict:
    function = {"name": "count_objects", "arguments": {"image": "image/1.png", "target": "tree"}}
    call = {"type": "function", "function": function}
    return {
        str(number): {
            "tools": [{"name": "count_objects"}, {"name": "calculate"}],
            "files": [{"type": "image", "path": "image/1.png", "sensor": "RGB"}],
            "dialogs": [
                {"role": "user", "content": f"How many trees are in part {number}?"},
                {"role": "assistant", "tool_calls": [call], "thought": "I count."},
                {
                    "role": "tool",
                    "name": "count_objects",
                    "content": {"type": "text", "content": '{"count": 3}'},
                },
                {"role": "assistant", "content": "3"},
            ],
            "gt_answer": {"whitelist": [["3"]], "blacklist": None},
            "task": "tree_counting",
            "season": "spring",
        }
        for number in range(count)
    }


def test_the_form_of_gta_is_read_and_unknown_fields_are_reported(root):
    (root / "agrotools/data.json").write_text(json.dumps(_in_dialogs()))
    benchmark = load_benchmark("agrotools", root)
    assert [sample.task_type for sample in benchmark.samples] == ["tree_counting"] * 2
    first = benchmark.samples[0]
    assert [step.tool for step in first.reference.steps] == ["count_objects"]
    assert first.reference.steps[0].observation.result == {"count": 3}
    notes = str(benchmark.header.metadata["notes"])
    assert "season (2)" in notes
    assert "files: sensor (2)" in notes
    assert load_benchmark("agrotools", root).content_hash == benchmark.content_hash


def test_flat_rows_of_parquet_with_pictures_inside_are_read(root):
    import pyarrow.parquet

    steps = [
        {
            "tool": "count_objects",
            "arguments": {"image": "a.png", "target": "tree"},
            "observation": {"count": 3},
        }
    ]
    common = {
        "images": [{"bytes": _picture(), "path": "a.png"}],
        "steps": json.dumps(steps),
        "difficulty": 0.5,
    }
    common["answer"] = json.dumps({"type": "exact", "value": 3, "name": "trees"})
    rows = [
        {"query_id": f"q{n}", "question": f"How many trees are in part {n}?", **common}
        for n in (1, 2)
    ]
    (root / "agrotools/image/1.png").unlink()
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist(rows), root / "agrotools/test-00000.parquet"
    )
    benchmark = load_benchmark("agrotools", root)
    assert [sample.id for sample in benchmark.samples] == ["q1", "q2"]
    sample = benchmark.samples[0]
    assert sample.reference.steps[0].arguments["image"] == sample.files[0].name
    assert sample.reference.steps[0].observation.result == {"count": 3}
    assert sample.toolset == ("count_objects",), "all tools of the files"
    assert "difficulty (2)" in str(benchmark.header.metadata["notes"])


def test_what_cannot_be_read_is_named_and_a_map_corrects_it(root):
    entries = [{"ask": "How many trees?", **entry} for entry in _in_dialogs().values()]
    for entry in entries:
        entry["dialogs"][0]["content"] = ""
    (root / "agrotools/data.json").write_text(json.dumps(entries))
    with pytest.raises(BenchmarkError, match="there is no question at") as caught:
        load_benchmark("agrotools", root)
    assert "([sample] query)" in caught.value.message
    assert "ask, tools" in str(caught.value.hint)
    corrected = root / "agrotools/agrotools-map.toml"
    corrected.write_text(text := '[sample]\nquery = "ask"\n')
    assert len(load_benchmark("agrotools", root).samples) == 2
    corrected.unlink()
    (elsewhere := Path(root / "map.toml")).write_text(text)
    assert len(load_benchmark("agrotools", root, options={"map": str(elsewhere)}).samples) == 2


def test_the_gold_scores_all_points_whatever_follows_from_the_calls(root):
    answers = [
        {"whitelist": [["3", "three"], ["trees"]], "blacklist": None},
        ["three trees", "3 trees"],
        {"type": "exact", "value": "oak", "name": "species"},
        {
            "type": "exact",
            "value": 3,
            "name": "trees",
        },  # the only one that is in the result of the call
    ]
    entries = [
        entry | {"gt_answer": answer}
        for entry, answer in zip(_in_dialogs(4).values(), answers, strict=True)
    ]
    (root / "agrotools/data.json").write_text(json.dumps(entries))
    options = {
        "data_root": root,
        "mode": "end-to-end",
        "out": root / "run",
        "progress": io.StringIO(),
    }
    found = evaluate("agrotools", "baseline:perfect-tools", **options).summary.modes["end-to-end"]
    assert (found.n_samples, found.n_underivable) == (4, 3)
    assert found.metrics["fas"].overall.value == 1


def _load(root):
    benchmark = load_benchmark("agrotools", root)
    return benchmark, {sample.id: sample for sample in benchmark.samples}


def test_messages_with_schemas_of_their_own_are_read(root):
    """Names of tools that are also ours, calls at once, options in the question, a type for each part of the answer."""
    schema = {
        "type": "object",
        "properties": {"image": {"type": "string"}, "kind": {"type": "string"}},
    }
    tools = [
        {
            "type": "function",
            "function": {"name": "count_objects", "description": "Count.", "parameters": schema},
        }
    ]
    functions = {
        n: {"name": "count_objects ", "arguments": f"{{'image': '{n}.png', 'kind': 'pod'}}"}
        for n in (1, 2)
    }
    calls = [{"id": f"c{n}", "function": function} for n, function in functions.items()]
    replies = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": [{"type": "text", "text": str(n)}]}
        for n in (2, 1)
    ]
    (root / "agrotools/image/2.png").write_bytes(_picture())

    def row(name, question, truth):
        user = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": question}]}
        messages = [
            {"role": "system", "content": "Help."},
            user,
            {"role": "assistant", "tool_calls": calls},
            *replies,
        ]
        messages.append({"role": "assistant", "content": "There are 3 pods on 12.5 % of it."})
        images = [{"bytes": None, "path": f"/srv/x/image/{n}.png"} for n in (1, 2)]
        facts = {
            "id": name,
            "images": images,
            "task_type": "fruit and crop organ counting",
            "ground_truth": truth,
        }
        return {**facts, "messages": messages, "tools": json.dumps(tools)}

    rel = {"type": "number", "tolerance": 0.1, "tolerance_kind": "rel"}
    rows = [
        row(
            "n",
            "How many?",
            [{"key": "pods", "value": "3 ", **rel}, {"key": "share", "value": "12.5", **rel}],
        ),
        row("c", "Which? (A) wheat; (B) barley", [{"key": "crop", "type": "choice", "value": "B"}]),
        row("s", "Which pictures?", [{"key": "which", "type": "set", "value": '["1.png"]'}]),
        row("u", "How deep?", [{"key": "depth", "type": "abstain", "value": None}]),
        row("bad", "How many?", [{"key": "pods", "type": "number", "value": "many"}]),
    ]
    (root / "agrotools/test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    benchmark, samples = _load(root)
    assert list(samples) == ["n", "c", "s", "u"]
    assert "1 of 5 entries could not be read. its answer 'many'" in str(
        benchmark.header.metadata["note"]
    )
    counted = samples["n"]
    assert (counted.family, counted.task_type, counted.toolset) == (
        "CM",
        "organ_counting",
        ("count_objects",),
    )
    assert counted.declared[0].parameters["properties"].keys() == {"image", "kind"}, (
        "the schema of the files, not ours"
    )
    shown = [
        (step.arguments["image"], step.observation.result["text"], step.group)
        for step in counted.reference.steps
    ]
    assert shown == [("1.png", "1", 0), ("2.png", "2", 0)], "by the ids of the calls"
    parts = [(each.name, each.unit, each.rel_tol) for each in counted.answer]
    assert parts == [("pods", None, 0.1), ("share", "%", 0.1)]
    assert samples["c"].answer[0].names[:2] == ("B", "barley")
    assert (samples["s"].answer[0].value, samples["s"].answer[0].choices) == (
        ("1.png",),
        ("1.png", "2.png"),
    )
    assert not samples["u"].answerable
    assert all(sample.may_abstain for sample in benchmark.samples)


@pytest.mark.process
def test_steps_with_answers_in_words_are_read_and_played_back(root):
    schemas = {
        "weed_share": ["image", "stat"],
        "calc": ["expr"],
        "draw chart": ["kind", "x", "series"],
    }
    inputs = {
        name: [{"name": each, "optional": each == "stat"} for each in names]
        for name, names in schemas.items()
    }
    listed = {name: {"inputs": each} for name, each in inputs.items()}
    (root / "agrotools/toolmeta.json").write_text(json.dumps(listed))
    weeds = {
        "action": "weed_share",
        "action_input": {"image": "image/1.png "},
        "observation": "{'weed': 12.4}",
    }
    done = {"action": "Finish", "action_input": {"answer": "12.4 %"}}
    draw = {"kind": "bar", "x": ["a", "b"], "series": {"weed": [1, 2]}}
    chart = {"action": "draw chart", "action_input": draw, "observation": "x.png"}
    rows = [
        ("n", [weeds], "12.4 ± 1.0 %", "num", "weedCropArea"),
        ("r", [{**weeds, "observation": None}], "NDVI > RGB", "rank", "weed_crop_area"),
        ("p", [chart], {"chart": "bar", **draw}, "plot", "Plotting"),
        (
            "c",
            [{"action": "calc", "action_input": {"expr": "6 / 2"}, "observation": "3"}],
            "3 m",
            "num",
            "weed crop",
        ),
        ("odd", [weeds], "12 to 13", "interval", "Plotting"),
    ]
    names = ("qid", "steps", "gold", "gold_type", "task")
    lines = [{"q": "What?", "img": "1.png", **dict(zip(names, row, strict=True))} for row in rows]
    lines = [{**line, "steps": [*line["steps"], done]} for line in lines]
    (root / "agrotools/all.jsonl").write_text("\n".join(map(json.dumps, lines)))
    benchmark, samples = _load(root)
    assert (
        "its answer is of the type 'interval': add it under [answer_types]"
        in benchmark.header.metadata["note"]
    )
    assert {sample.task_type for sample in samples.values()} == {"weed_crop_area", "plotting"}
    (share,) = samples["n"].answer
    assert (share.value, share.unit, share.abs_tol) == (12.4, "%", 1.0)
    assert "first > second" in samples["r"].answer[0].label
    assert samples["r"].reference.steps[0].observation.result == {"value": None}, (
        "null is shown as null"
    )
    assert benchmark.toolset == ("weed_share", "calc", "draw_chart"), (
        "Finish is no tool, and names have no spaces"
    )
    assert benchmark.header.backends == {"weed_share": "recorded"}, "calculations and charts run"
    options = {"data_root": root, "out": root / "run", "progress": io.StringIO()}
    found = evaluate("agrotools", "baseline:perfect-tools", mode="all", **options).summary.modes
    assert {
        found["step-by-step"].metrics[name].overall.value for name in ("arg_acc", "summ_acc")
    } == {1}
    assert found["end-to-end"].metrics["css"].overall.value == 1
    assert found["end-to-end"].metrics["plot"].overall.value == pytest.approx(0.8), (
        "the chart has no labels"
    )
    ran = evaluate(
        "agrotools", "baseline:oracle", mode="end-to-end", **{**options, "out": root / "ran"}
    )
    (calculated,) = (
        record.trajectory.calls[0] for record in ran.samples() if record.sample.id == "c"
    )
    assert (calculated.call.tool, calculated.observation.result["value"]) == ("calc", 3), (
        "by our tool"
    )


def test_questions_calls_and_answers_in_files_of_their_own_are_joined_by_id(root):
    """Calls are messages of a role; a line of the map replaces an answer; a picture of another folder is not taken."""
    talk = [
        {"from": "human", "value": "<image>How many?"},
        {
            "from": "function_call",
            "value": json.dumps({"name": "count", "arguments": {"image": "1.png"}}),
        },
        {"from": "observation", "value": "7 figs"},
        {"from": "gpt", "value": "There are 7 figs."},
    ]
    questions = [
        {"id": name, "question": "How many?", "image": f"{name}/1.png"} for name in ("a", "b")
    ]
    (root / "agrotools/a").mkdir()
    (root / "agrotools/a/1.png").write_bytes(_picture())
    (root / "agrotools/questions.json").write_text(json.dumps(questions))
    (root / "agrotools/talks.json").write_text(
        json.dumps([{"id": name, "conversations": talk} for name in ("a", "b")])
    )
    gold = {"a": {"ground_truth": None}, "b": {"ground_truth": 7}}
    (root / "agrotools/gold.json").write_text(json.dumps(gold))
    with pytest.raises(BenchmarkError, match=r"\[answers\], ID = .* there is no file 'b/1.png'"):
        _load(root)
    (root / "agrotools/agrotools-map.toml").write_text(
        '[answers]\na = { type = "numeric", value = 7 }\n'
    )
    _, samples = _load(root)
    assert list(samples) == ["a"]
    step = samples["a"].reference.steps[0]
    assert (step.tool, step.arguments, step.observation.result) == (
        "count",
        {"image": "1.png"},
        {"text": "7 figs"},
    )
    assert (samples["a"].answer[0].value, samples["a"].answer[0].abs_tol) == (7, 0)


def test_a_folder_for_each_question_is_read_and_a_map_is_proposed(root):
    for number in (1, 2):
        folder = root / f"agrotools/samples/CM_{number}"
        folder.mkdir(parents=True)
        (folder / "a.png").write_bytes(_picture() + bytes(number))
        images = [f"/srv/samples/CM_{number}/a.png"]
        task = {"instruction": "How many?", "images": images, "task": "Fruit & Organ Counting"}
        inputs = {"image": images[0], "object": "fig"}
        call = {"tool": "Object Counter", "inputs": inputs, "output": {"count": 3}}
        fields = [{"key": "figs", "match": "abs", "ref": "3", "tol": "1", "weight": 0.5}]
        (folder / "task.json").write_text(json.dumps({**task, "rank": number}))
        (folder / "trajectory.json").write_text(
            json.dumps([call] if number == 1 else {"steps": [call]})
        )
        (folder / "eval.json").write_text(json.dumps({"scoring": "closed", "fields": fields}))
    (root / "agrotools/tools").mkdir()
    schema = {
        "type": "object",
        "properties": {"image": {"type": "string"}, "object": {"type": "string"}},
    }
    declared = {"name": "Object Counter", "description": "Counts.", "parameters": schema}
    (root / "agrotools/tools/counter.json").write_text(json.dumps(declared))
    _, samples = _load(root)
    assert samples["CM_1"].files[0].sha256 != samples["CM_2"].files[0].sha256
    for sample in samples.values():
        assert (sample.task_type, sample.family) == ("organ_counting", "CM")
        assert sample.reference.tools == ("Object_Counter",)
        assert (sample.answer[0].value, sample.answer[0].abs_tol) == (3.0, 1.0)
    lines = "\n".join(propose_map_of("agrotools", root))
    assert "tool Object Counter(image, object): count_objects" in lines
    assert "answer tolerance: 2" in lines
    proposed = root / "agrotools/agrotools-map.toml"
    assert tomllib.loads(proposed.read_text())["arguments"] == {"count_objects": {"object": ""}}
    benchmark, _ = _load(root)
    assert (benchmark.header.declared[0].runs, benchmark.header.backends) == ("count_objects", {})
    with pytest.raises(UsageError, match="exists already"):
        propose_map_of("agrotools", root)


def _one(root, steps, gold="oak"):
    (root / "agrotools/image/2.png").write_bytes(_picture() + b"2")
    row = {
        "id": "a b",
        "question": "<image>\nWhich?",
        "images": [{"path": "1.png", "id": "f9"}, "image\\2.png"],
    }
    (root / "agrotools/rows.json").write_text(json.dumps([{**row, "steps": steps, "gold": gold}]))
    return load_benchmark("agrotools", root).samples[0]


_SAID = 'Thought: t\nAction: count\nAction Input: {"image": "2"}'
_CALLS = [
    {"id": n, "function": json.dumps({"name": "count", "arguments": {"image": n}})}
    for n in ("f9", "image_2")
]


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ({"action": "count(image='image_2')"}, ["2.png"]),
        ({"action": "count('2.png')"}, "is a whole call, with arguments without names"),
        ({"role": "assistant", "content": _SAID}, ["2.png"]),
        ({"role": "assistant", "tool_calls": json.dumps(_CALLS)}, ["1.png", "2.png"]),
        ({"tool": "count", "arguments": {"image": "f8"}}, "has the file 'f8', which is not listed"),
        (
            {"role": "tool", "tool_call_id": "c2", "content": "3"},
            "there is a result without a call, c2",
        ),
    ],
)
def test_calls_are_read_from_text_and_their_files_by_id_place_or_name(root, message, found):
    if isinstance(found, str):
        with pytest.raises(BenchmarkError, match=found):
            _one(root, [message])
        return
    sample = _one(root, [message])
    assert (sample.id, sample.query, {*sample.reference.tools}) == ("a_b", "Which?", {"count"})
    assert [step.arguments["image"] for step in sample.reference.steps] == found


def test_tolerances_in_the_forms_of_files(root):
    call, number = {"tool": "count"}, {"type": "number", "value": 40}
    forms = {
        "tolerance": {"±5%": 2, "± 2": 2, "": 0, "{'abs': '±3'}": 3, "{'percent': 5}": 2},
        "rel_tol": {"5%": 2},
    }
    for key, size, margin in (
        (key, *item) for key, sizes in forms.items() for item in sizes.items()
    ):
        assert _one(root, [call], {**number, key: size}).answer[0].margin == margin
    assert _one(root, [call], {**number, "tolerance": 2}).answer[0].abs_tol == 2
    with pytest.raises(BenchmarkError, match="its tolerance 2 is relative, 1 or more"):
        _one(root, [call], {**number, "rel_tol": 2})


def test_what_the_user_has_to_decide_is_noted(root):
    chart = {
        "tool": "plot",
        "arguments": {"style": "bar", "x": ["a", "b"], "y": [1, 2]},
        "observation": "x.png",
    }
    assert len(_one(root, [chart], {"type": "exact", "value": ["Oak", "oak "]}).answer) == 1
    _one(root, [chart], {"type": "exact", "value": ["oak", "elm"]})
    notes = {note[:22] for note in check_released(root, no_progress).notes}
    assert notes > {"1 exact answers are li", "1 figures have no data"}
    text = '[defaults]\nany = true\n[tools]\nplott = "plot"\n[arguments.plot]\nstyle = "kind"\n'
    (root / "agrotools/agrotools-map.toml").write_text(text)
    check = check_released(root, no_progress)
    assert check.samples[0].answer[0].names == ("oak", "elm")
    assert "lines without effect under [tools]: plott" in check.notes
    assert "figures" not in str(check.notes)


def test_charts_are_read_from_objects():
    (series,) = chart_of({"kind": "line", "data": {"year": [1, 2], "a": [3, 4]}}).series
    assert (series.name, series.x, series.y) == ("a", (1, 2), (3, 4))
    assert chart_of({"kind": "bar", "data": {"u": 3, "v": 4}}).series[0].x == ("u", "v")
    assert chart_of({"kind": "bar", "data": [{"week": 1, "height": 2}]}).series[0].y == (2,)
    assert chart_of({"kind": "bar", "data": "u"}) is None
