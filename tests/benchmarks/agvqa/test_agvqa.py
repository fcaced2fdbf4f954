"""Sets of questions on agricultural pictures: forms of rows, images and answers, and reports on what is left out."""

import base64
import io
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from agrotools import read_run
from agrotools.cli.main import app
from agrotools.core import BenchmarkError, UsageError
from agrotools.core.installed import plugin_of
from agrotools.loading.benchmarks import load_benchmark
from agrotools.loading.checking import check_benchmark
from agrotools.scoring.predictions import compare_file
from agrotools.scoring.slots import score_slot
from agrotools.text.answer_form import format_answer
from agrotools_benchmarks.agvqa.field_map import FieldMap, Row, RowFault, read_map, read_question
from agrotools_benchmarks.agvqa.plugin import MAPS, LetteredSlot, NumberListSlot
from agrotools_benchmarks.agvqa.score import score_letters, score_numbers
from support.command import run_command

MAP = """
title = "Mine"
licence = "CC0"
question = "ask"
images = ["picture"]
options = "choices"
answer = "right"
category = "topic"
"""


def picture(red=90):
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), (red, 140, 60)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def root(tmp_path):
    (tmp_path / "agvqa-map.toml").write_text(MAP)
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/weed_thistle.png").write_bytes(picture())
    return tmp_path


def row(**more):
    fields = {"ask": "Which weed?", "choices": ["Thistle", "Dock"], "right": "A", "topic": "weeds"}
    return {**fields, "picture": "pictures/weed_thistle.png", **more}


def write(root, *rows, name="rows.jsonl"):
    (root / name).write_text("\n".join(map(json.dumps, rows)))


def load(root, **options):
    return load_benchmark("agvqa", root, options=options)


def question(data, **fields):
    columns = {"question": "ask", "options": "choices", "answer": "right", **fields}
    return read_question(Row(data, Path("f.json"), 1), FieldMap(**columns), {})


def test_a_row_becomes_a_question_with_letters_and_an_image_of_neutral_name(root):
    write(
        root,
        row(),
        row(right="Dock", picture=["pictures/weed_thistle.png", "pictures/weed_thistle.png"]),
    )
    one, two = load(root).samples
    assert one.query == "Which weed?\nA. Thistle\nB. Dock"
    assert [file.name for file in (*one.files, *two.files)] == [
        "image_1.png",
        "image_1.png",
        "image_2.png",
    ]
    assert [one.answer[0].right_text, two.answer[0].right_text] == ["A", "B"]
    assert one.groups == {"category": "weeds"}
    assert one.cluster == two.cluster == one.id  # they share a picture
    assert load_benchmark("agvqa", str(root)).content_hash == load(root).content_hash


def test_what_cannot_be_used_is_counted_by_reason_and_unknown_fields_are_named(root):
    faulty = (
        {},
        {"right": "C"},
        {"right": "Rose"},
        {"right": None},
        {"ask": ""},
        {"choices": ["x", "x"]},
        {"new": 1},
    )
    write(root, *(row(**changes) for changes in faulty))
    notes = load(root).header.metadata["notes"]
    reasons = (
        "the answer is a letter of no option",
        "the answer is no option",
        "no answer",
        "no question",
    )
    left_out = dict.fromkeys((*reasons, "fewer than two different options"), 1)
    assert load(root).header.metadata["left_out"] == left_out
    assert any("the answer is no option: 1 of 7 rows (rows-3: Rose)" in note for note in notes)
    assert any(note.endswith("their number: new (1)") for note in notes)
    checked = check_benchmark("agvqa", root)
    assert (checked.entries, checked.usable, len(checked.faults)) == (7, 2, 5)
    (root / "agvqa-map.toml").write_text(MAP + 'anwser = "x"\n')
    with pytest.raises(BenchmarkError, match="anwser"):
        load(root)
    with pytest.raises(BenchmarkError, match="there is no field map"):
        load(root, map="nowhere.toml")


def test_missing_images_stop_the_run_unless_they_may_be_missing(root):
    write(root, row(), row(picture="pictures/none.png"), row(picture="https://x.org/a.png"))
    with pytest.raises(
        BenchmarkError, match=r"1 of 3 rows name an image that is not there \(rows-2: pictures/none"
    ):
        load(root)
    left = load(root, allow_missing=True)
    assert len(left.samples) == 1
    assert (
        left.header.metadata["left_out"]["an image is only an address, and nothing is downloaded"]
        == 1
    )
    assert [sample.files for sample in load(root, images="none").samples] == [(), (), ()]
    write(root, row(picture="pictures/none.png"))
    with pytest.raises(BenchmarkError, match="no row of 1 files can be used") as error:
        load(root, allow_missing=True)
    assert "images=DIR" in str(error.value.hint)
    for name, words in (
        ("agrobench", "agrotools benchmarks get agrobench"),
        ("agmmu", "they are at https:"),
    ):
        with pytest.raises(BenchmarkError, match=f"contains no .* of {name}") as raised:
            load_benchmark(name, root)
        assert words in (raised.value.hint or "")


def test_images_lie_elsewhere_or_inside_rows_and_parquet(root, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "b.png").write_bytes(picture(10))
    uri = "data:image/png;base64," + base64.b64encode(picture(20)).decode()
    write(
        root,
        row(picture="b.png"),
        row(picture=uri),
        row(picture="../" + root.name + "/agvqa-map.toml"),
    )
    benchmark = load(root, images=str(elsewhere))
    assert len(benchmark.samples) == 2
    assert "an image cannot be read" in benchmark.header.metadata["left_out"]
    paths = [benchmark.file_path(sample.files[0]) for sample in benchmark.samples]
    assert [path.read_bytes() for path in paths] == [picture(10), picture(20)]
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [row(picture={"bytes": picture(shade), "path": "dock.png"}) for shade in (1, 2, 2)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), root / "part-0.parquet")
    benchmark = load(root)
    assert [sample.files[0].width_px for sample in benchmark.samples] == [40] * 3
    assert len({sample.cluster for sample in benchmark.samples}) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(UsageError, match="needs pyarrow"):
            load(root)


@pytest.mark.parametrize(
    ("choices", "right", "letters"),
    [
        ({"A": "Rust", "B": "Rot", "C": None}, ["A", "B"], "AB"),
        ("['Rust', 'Rot']", 1, "B"), ("A. Rust\nB. Rot\nC. Both", "(c)", "C"),
        (["A. Rust", "B. Rot"], "B. Rot", "B"),
        ({"first": "Rust", "second": "Rot"}, "Rot", "B"),
        (["x", "y"], "5", None),
        (["x", "y"], 0.5, None), (["x", "x"], "x", None),
    ],
)  # fmt: skip
def test_forms_of_options_and_answers(choices, right, letters):
    data = {"ask": "?", "choices": choices, "right": right}
    if letters is None:
        with pytest.raises(RowFault):
            question(data)
    else:
        assert question(data, kinds={"*": "several"}, kind_by="ask").slots[0].right_text == letters


def test_options_in_single_fields():
    found = question(
        {"ask": "?", "o1": None, "o2": "Maize", "o3": "Rye", "right": "B"},
        options=("o1", "o2", "o3"),
    )
    assert found.options == {"B": "Maize", "C": "Rye"}
    with pytest.raises(RowFault, match="no options"):
        question(
            {"ask": "?", "choices": "rice or maize", "right": "A"},
            kind_by="ask",
            kinds={"*": "single"},
        )
    with pytest.raises(RowFault, match="name different options"):
        question({"ask": "?", "choices": ["x", "y"], "right": 0, "text": "y"}, answer_text="text")


@pytest.mark.parametrize(
    ("right", "kind", "type_"),
    [
        ("12", None, "tolerance"), ("Yes", None, "boolean"), ([0.1, 0.2, 0.5, 0.9], "box", "number_list"),
        ([1, 2], None, "number_list"), ("Upper left,3", "parts", "exact"), ("powdery mildew", None, "exact"),
        ("Remove the infected leaves and keep the soil dry until the weather is better.", None, "reference_texts"),
    ],
)  # fmt: skip
def test_answers_without_options_and_their_gold_is_right(right, kind, type_):
    how = {"kind_by": "ask", "kinds": {"*": kind}} if kind else {}
    found = question({"ask": "?", "right": right}, options="", **how)
    assert found.slots[0].type == type_
    gold = {
        slot.name: slot.right_text or getattr(slot, "value", None) or right for slot in found.slots
    }
    answer = format_answer(found.slots, gold)
    assert [score_slot(slot, found.slots, answer).value for slot in found.slots] == [1.0] * len(
        found.slots
    )


def test_letters_and_numbers_are_read_from_the_form_or_the_text():
    slot = LetteredSlot(
        name="answer", label="the answer", value=("B",), options={"A": "Thistle", "B": "Dock"}
    )
    for answer in (
        "B",
        "answer: B",
        "It is not A.\n**Answer:** B. Dock",
        "The answer is dock.",
        '{"answer": "B"}',
    ):
        assert score_letters(slot, (), answer).value == 1.0, answer
    for answer in ("A", "answer: A", "A or B", "", "neither", "It looks like dock to me."):
        assert score_letters(slot, (), answer).value == 0.0, answer
    box = NumberListSlot(name="answer", label="the answer", value=(0.0, 0.0, 1.0, 0.5), box=True)
    assert [
        score_numbers(box, (), text).value for text in ("[0, 0, 1, 0.4]", "0, 0, 0.2, 0.2", "0.5")
    ] == [1, 0, 0]


def test_predictions_are_scored_with_the_options_of_the_set(root):
    write(root, row(id="one", picture="gone.png"), row(id="two", picture="gone.png"))
    rows = [{"id": "one", "prediction": "A"}, {"id": "two", "prediction": "B"}]
    (root / "replies.txt.jsonl").write_text("\n".join(map(json.dumps, rows)))
    out = root / "run"
    command = [
        "score",
        "--benchmark",
        "agvqa",
        "--data",
        str(root),
        "--predictions",
        str(root / "replies.txt.jsonl"),
    ]
    command += ["-o", "images=none", "-o", "files=rows.jsonl", "--out", str(out), "--json"]
    printed = CliRunner().invoke(app, command)
    assert printed.exit_code == 0, printed.output
    run = read_run(out)
    assert run.manifest.benchmark_options == {"images": "none", "files": "rows.jsonl"}
    assert run.mode_scores("no-tool")["fas"].value == 0.5


CHAT = """\
question = "turns.0.value"
images = ["image"]
labels = { "<Clarify>" = "ask first", "<Respond>" = "answer now" }
answer = "turns.1.value.decision"
ignored = ["turns"]
"""


def test_the_answer_in_a_chat_file_is_json_in_a_text_and_is_given_by_letter_or_label(root):
    (root / "agvqa-map.toml").write_text(CHAT)
    turns = [
        {"value": "<image>\nUser: why?"},
        {"value": json.dumps({"decision": "<Respond>", "utterance": "So."})},
    ]
    write(
        root, {"image": [], "turns": turns}, {"image": [], "turns": [turns[0], {"value": "none"}]}
    )
    benchmark = load(root)
    (sample,) = benchmark.samples
    assert sample.query == "User: why?\nA. ask first\nB. answer now"
    assert benchmark.header.metadata["left_out"] == {"no answer": 1}
    assert benchmark.header.metadata["unread_fields"] == {}
    for answer, score in {
        "answer: B": 1.0,
        "answer: A": 0.0,
        "<Reasoning>\n<Clarify> or <Respond>?\n</Reasoning>\n<Decision>\n<Respond>\n</Decision>\n<Utterance>Ask!": 1.0,
        '<output>{"goal_state": {}, "decision": "<Clarify>", "utterance": "Which A?"}</output>': 0.0,
        "decision: respond\nutterance: B is fine": 1.0,
    }.items():
        assert score_slot(sample.answer[0], sample.answer, answer).value == score, answer


def test_replies_of_models_beside_the_scores_in_the_file(root):
    (root / "agvqa-map.toml").write_text(
        MAP + '[predictions]\nreply = "said.*"\npublished = "score.*"\n'
    )
    score = {"m": 1, "n": 0}
    said = (
        row(said={"m": "A", "n": "Dock"}, score=score),
        row(said={"m": "B", "n": None}, score=score),
    )
    write(root, *said, row(right="Rose", said={"m": "A"}))
    scored = compare_file("agvqa", root / "rows.jsonl")
    assert scored.published.metrics["agvqa.accuracy (m)_published"].value == 100.0
    ours = {name: figure.value for name, figure in scored.corrected.metrics.items()}
    assert ours == {"agvqa.accuracy (m)": 50.0, "agvqa.accuracy (n)": 0.0}
    assert scored.extra["scores of replies beside those in the file"] == {"same": 3, "different": 1}
    assert scored.extra["rows that are not scored"] == {"the answer is no option": 1}


@pytest.mark.parametrize("path", sorted(MAPS.glob("*.toml")), ids=lambda path: path.stem)
def test_a_set_is_its_map_and_the_list_says_what_it_was_run_on(path):
    """A map that nobody ran on a real file would mislead."""
    fields = read_map(path)
    assert fields.checked.startswith("run on ")
    assert fields.checked in plugin_of(path.stem).about


@pytest.fixture
def real(field_data):
    folder = field_data / "ag_vqa"
    if not folder.is_dir():
        pytest.skip(f"no pieces of published sets at {folder}")
    return folder


@pytest.mark.data
def test_real_pieces_of_the_sets(real):
    sizes = {"agrobench": 6, "agmmu": 7, "agromind": 2150, "mirage": 50, "mirage-mmst": 16}
    for name, size in sizes.items():
        benchmark = load_benchmark(name, real, options={"images": "none"})
        assert len(benchmark.samples) == size, name
        assert benchmark.header.metadata["unread_fields"] == {}, name
        if name == "mirage":
            assert {sample.groups["category"] for sample in benchmark.samples} == {
                "<Clarify>",
                "<Respond>",
            }
    chats = load_benchmark(
        "mirage", real, options={"images": "none", "files": "MMMT/data/dev_*chat*.json"}
    )
    assert Counter(sample.groups["category"] for sample in chats.samples) == {
        "<Respond>": 31,
        "<Clarify>": 19,
    }
    shown = load_benchmark("mirage-mmst", real, options={"allow_missing": True})
    assert [len(sample.files) for sample in shown.samples] == [2, 1, 2]


@pytest.mark.data
def test_real_replies_score_as_their_authors_have_it(real):
    scored = compare_file(
        "agmmu", real / "agmmu-dimaermakov/scoring_eval_pipeline/output_file.first100.json"
    )
    assert scored.corrected.metrics["agmmu.accuracy (qwen2.5-vl)"].value == pytest.approx(79.0)
    assert scored.extra["scores of replies beside those in the file"] == {
        "same": 100,
        "different": 0,
    }


def test_the_folder_of_the_files_may_be_a_link(root, tmp_path_factory):
    write(root, row())
    elsewhere = tmp_path_factory.mktemp("links")
    (elsewhere / "data").symlink_to(root)
    (elsewhere / "parent").symlink_to(root.parent)
    for linked in (elsewhere / "data", elsewhere / "parent" / root.name):
        loaded = load_benchmark("agvqa", linked)
        assert [file.path for file in loaded.samples[0].files] == ["pictures/weed_thistle.png"]
        assert loaded.root == root
        assert check_benchmark("agvqa", linked).usable == 1


def test_a_picture_behind_a_link_out_of_the_folder_is_named_as_such(root, tmp_path_factory):
    write(root, row())
    (root / "pictures").rename(pictures := tmp_path_factory.mktemp("other") / "pictures")
    (root / "pictures").symlink_to(pictures)
    with pytest.raises(BenchmarkError, match=r"pictures/weed_thistle.png leads out of the folder"):
        load(root)
    assert load(root, images=str(pictures)).samples[0].files


def test_eval_without_a_model_runs_baselines_that_need_no_reference_calls(
    root, tmp_path, monkeypatch
):
    """Only the loaded questions tell that there are no reference calls; models that the user names stay."""
    monkeypatch.chdir(tmp_path)
    write(root, row(), row(ask="Which crop?"))
    ended = run_command("eval", "agvqa", "--data-root", root, "--json")
    assert ended.returncode == 0, ended.stderr
    models = [summary["model"] for summary in json.loads(ended.stdout)]
    assert models == ["baseline:constant", "baseline:random"]
    named = run_command("eval", "agvqa", "--data-root", root, "-m", "baseline:oracle")
    assert named.returncode == 2
    (tmp_path / "eval.toml").write_text('model = "baseline:guess"\n')
    of_file = run_command("eval", "agvqa", "--data-root", root, "--config", "eval.toml", "--json")
    assert [each["model"] for each in json.loads(of_file.stdout)] == ["baseline:guess"]
