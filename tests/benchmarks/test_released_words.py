"""Released rows with names and answers in words: in Chinese, as phrases of the paper, as text of several lines."""

import csv
import hashlib
import json

import pytest

from agrotools.core import BenchmarkError
from agrotools.core.errors import UndecidedError
from agrotools.core.progress import no_progress
from agrotools.core.readings import Readings
from agrotools.loading.benchmarks import Loading, load_benchmark
from agrotools.loading.checking import propose_map_of
from agrotools_benchmarks.released.fields import task_of, task_table
from agrotools_benchmarks.released.gold_words import Beside, chart_in_words, in_words
from agrotools_benchmarks.released.load import MAP, check_released, load_released
from agrotools_benchmarks.released.traces import english_call, named_in_text, read_trace
from agrotools_build.export.gta_entries import read_map
from support.released_forms import picture


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "agrotools").mkdir()
    return tmp_path / "agrotools"


_STEPS = [{"tool": "count", "arguments": {"image": "a.png"}, "observation": "14"}]


def _loaded(folder, rows, files=("a.png",)):
    """Return the benchmark of rows, with the readings that were said; no question may be open."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture(name))
    (folder / "rows.json").write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
    readings = Readings()
    benchmark = load_released(Loading(folder.parent, readings=readings))
    assert readings.questions == []
    return benchmark, readings


def _row(**fields):
    return {"question": "How many trees are there?", "image": "a.png", "steps": _STEPS, **fields}


_CHINESE = [
    {
        "题号": "果-1",
        "任务类型": "果实与器官计数",
        "图片": ["果_1.png", "果_2.png"],
        "问题": "两张图中一共有多少个苹果？",
        "参考步骤": [
            {"工具": "目标计数", "输入": "图像：果_1.png；目标：苹果", "输出": "7个"},
            {"工具": "目标计数", "输入": "图像：果_2.png；目标：苹果", "输出": "5个"},
            {"工具": "数值计算", "输入": "算式：7+5", "输出": "12"},
        ],
        "答案类型": "容差",
        "标准答案": "12",
        "单位": "个",
        "允许误差": "±1",
    },
    {
        "题号": "果-2",
        "任务类型": "病斑掩膜与严重度分析",
        "图片": ["果_1.png"],
        "问题": "病斑和黄化的面积比例各是多少？",
        "参考步骤": [{"工具": "病斑分析", "输入": "图像：果_1.png", "输出": "8%"}],
        "答案类型": "容差",
        "标准答案": "病斑：8；黄化：3",
        "单位": "%",
        "允许误差": "病斑：2个百分点；黄化：10%的相对误差",
    },
    {
        "题号": "果-3",
        "任务类型": "农田坑塘变化分析",
        "图片": ["果_1.png", "果_2.png"],
        "问题": "坑塘是否扩大？",
        "参考步骤": [{"工具": "甲工具", "输入": "前期：果_1.png；后期：果_2.png", "输出": "是"}],
        "答案类型": "精确",
        "标准答案": "否",
    },
]


def test_rows_with_chinese_names_are_read_and_the_tools_have_english_ones(folder):
    benchmark, readings = _loaded(folder, _CHINESE, ("果_1.png", "果_2.png"))
    assert benchmark.header.metadata["unread"] == {}
    first, second, third = benchmark.samples
    assert [len(sample.files) for sample in benchmark.samples] == [2, 1, 2]
    assert first.query == "两张图中一共有多少个苹果？"
    assert first.reference.tools == ("Object_Counting", "Object_Counting", "Numerical_Calculation")
    assert first.reference.steps[0].arguments == {"image": first.files[0].name, "target": "苹果"}
    assert first.reference.steps[2].arguments == {"expression": "7+5"}
    tasks = [sample.task_type for sample in benchmark.samples]
    assert tasks == ["organ_counting", "lesion_severity", "farm_pond_change"]
    assert (first.answer[0].value, first.answer[0].abs_tol) == (12, 1)
    assert [(slot.label, slot.value) for slot in second.answer] == [("病斑", 8), ("黄化", 3)]
    assert [round(slot.margin, 6) for slot in second.answer] == [2, 0.3]
    assert third.answer[0].value is False
    assert len({sample.id for sample in benchmark.samples}) == 3
    assert "tool 目标计数 as Object Counting" in readings.taken
    # A tool that nobody knows stays a tool, under a name that models can call.
    (unknown,) = (tool for tool in third.declared if "甲工具" in tool.description)
    assert third.reference.tools == (unknown.name,)
    assert unknown.name.isascii()
    lines = propose_map_of("agrotools", folder.parent)
    assert any("Object Counting(image, target): count_objects" in line for line in lines)
    again = load_benchmark("agrotools", folder.parent).samples
    assert [sample.answer for sample in again] == [each.answer for each in benchmark.samples]
    with (folder / "agrotools-map.toml").open("a", encoding="utf-8") as file:
        file.write('\n[answers]\n"果-3" = true\n')
    check = check_released(folder.parent, no_progress)
    assert check.samples[2].answer[0].value is True
    assert not any("without effect" in note for note in check.notes)


def _calls(text, inputs=()):
    trace = read_trace(text, read_map(MAP).calls, dict(inputs))
    calls = map(english_call, trace.calls)
    return [(call.tool, call.arguments, str(call.returned)) for call in calls], trace.answer


@pytest.mark.parametrize(
    "text",
    [
        "Step 1: call Object Counting(image='a.png') -> 14",
        "Object Counting(image=a.png) => 14",
        "Action: Object Counting(image='a.png')\nObservation: 14",
        "Action: Object Counting\nAction Input: image = a.png\nObservation: 14",
        "1. Tool: Object Counting\nInput: image = a.png\nOutput: 14",
        "Thought: I count.\nAction: Object Counting(image=a.png) → 14",
        "步骤1：调用目标计数(图像=a.png) → 14",
        "步骤1\n工具：目标计数\n输入：图像=a.png\n输出：14",
    ],
)
def test_tools_in_text_may_have_names_of_several_words(text):
    calls, _ = _calls(text)
    assert calls == [("Object Counting", {"image": "a.png"}, "14")]


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("Step 1: call count(image='a.png') -> 14\nStep 2: call add(x=1) -> 15\nAnswer: 15", 2),
        ("1) Calling count(image='a.png') => 14\n2) Use add(x=1) => 15\nAnswer: 15", 2),
        ("Action: count(image=a.png) -> 14\nFinal Answer: 15", 1),
        ("步骤1：调用count(image='a.png') → 14\n最终答案：15", 1),
        ("动作：count\n动作输入：图像 = a.png\n观察：14\n答案：15", 1),
    ],
)
def test_steps_are_read_from_lines(text, tools):
    calls, answer = _calls(text)
    assert calls[0] == ("count", {"image": "a.png"}, "14")
    assert (len(calls), answer) == (tools, "15")


def test_a_result_may_run_over_several_lines():
    calls, answer = _calls(
        "Step 1: call look_up(query='lantana') -> toxic;\n   also red\nAnswer: no"
    )
    assert (calls[0][2].split(), answer) == (["toxic;", "also", "red"], "no")


@pytest.mark.parametrize(
    ("text", "names", "wanted"),
    [
        ("image = a.png; object = tree", (), {"image": "a.png", "object": "tree"}),
        ("image=a.png, object=tree", (), {"image": "a.png", "object": "tree"}),
        ("focal length = 26; depth = d.png", (), {"focal_length": 26, "depth": "d.png"}),
        ("expression = (1+2)/2", (), {"expression": "(1+2)/2"}),
        (
            "类型：柱状图；横轴：甲、乙；纵轴：1、2",
            (),
            {"type": "柱状图", "x": ["甲", "乙"], "y": [1, 2]},
        ),
        ("y_0 = 2*t", (), {}),  # an equation
        ("y_0 = 2*t", ("y_0",), {"y_0": "2*t"}),
        ("scab of apple, control", (), {}),
        ("https://example.org/a;b", (), {}),
    ],
)
def test_arguments_are_read_from_texts(text, names, wanted):
    assert named_in_text(text, names) == wanted


def test_accepted_values_of_arguments_are_calls():
    listed = [{"agro.count": {"image": ["a.png"], "gsd_m": ["", 0.25]}}, {"add": {"x": [1, 2]}}]
    calls, _ = _calls(listed)
    assert [call[:2] for call in calls] == [("agro.count", {"image": "a.png"}), ("add", {"x": 1})]


@pytest.mark.parametrize(
    ("text", "kind", "wanted"),
    [
        ("12±1 trees", "tolerance", [("12", 1.0, "trees")]),
        ("12 (±1)", "tolerance", [("12", 1.0, None)]),
        ("12（±1）棵", "tolerance", [("12", 1.0, "棵")]),
        ("1.2 m ± 5 cm", "tolerance", [("1.2", 0.05, "m")]),
        ("12 trees ± 1 tree", "tolerance", [("12", 1.0, "trees")]),
        ("15%±2个百分点", "tolerance", [("15", 2.0, "%")]),
        ("12±1 trees; 14.2 ± 0.5 m", "tolerance", [("12", 1.0, "trees"), ("14.2", 0.5, "m")]),
        ("trees: 12 +/- 1; height: 14 m", "tolerance", [("12", 1.0, None), ("14 m", None, None)]),
    ],
)
def test_numbers_are_read_from_words(text, kind, wanted):
    read = in_words(text, Beside(kind))
    parts = read if isinstance(read, list) else [read]
    assert [(each["value"], each.get("abs_tol"), each.get("unit")) for each in parts] == wanted


def test_names_of_parts_are_those_beside_the_answer():
    read = in_words("12±1; 14±2 m", Beside("tolerance", ("tree count", "height")))
    assert [each["name"] for each in read] == ["tree count", "height"]


@pytest.mark.parametrize(
    "text", ["14", "about 14", "1.2 m ± 5 kg", "There are 14 trees.", "scab", "a: b; c"]
)
def test_what_is_no_list_of_numbers_stays(text):
    assert in_words(text, Beside("tolerance")) == text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("scab", "scab"),
        ("是", "yes"),
        (["scab"], "scab"),
        ("第2张（b.png）", "images/b.png"),
        ("scab / Venturia", {"value": "scab", "aliases": ["Venturia", "scab / Venturia"]}),
        ("unanswerable", {"type": "abstain"}),
        ("1 / 2", "1 / 2"),
        ("A / C", "A / C"),
        ("Yes; the pond grew", "Yes; the pond grew"),
    ],
)
def test_exact_answers_are_read_from_words(text, wanted):
    files = {"a.png": "images/a.png", "b.png": "images/b.png"}
    read = in_words(text, Beside("exact", files=files))
    if isinstance(wanted, dict):
        assert read.items() >= wanted.items()
    else:
        assert read == wanted


@pytest.mark.parametrize(
    "text", ["Bar chart: leaf 1 = 8.4 %, leaf 2 = 3 %", "柱状图：leaf 1 8.4，leaf 2 3"]
)
def test_charts_are_read_from_words(text):
    assert chart_in_words(text) == {"kind": "bar", "x": ["leaf 1", "leaf 2"], "y": [8.4, 3.0]}


def test_a_text_without_points_is_no_chart():
    assert chart_in_words("bar chart: see figure.png") is None


@pytest.mark.parametrize(
    ("question", "gold", "margin"),
    [
        ("By what percentage did it grow?", "40±5 %", 5),
        ("How many trees are there?", "40±5 %", 2),
        ("How many trees are there?", "40 trees ± 5%", 2),
    ],
)
def test_a_margin_in_percent_is_of_the_answer_or_points_by_the_question(
    folder, question, gold, margin
):
    row = _row(question=question, gold=gold, answer_type="tolerance")
    slot = _loaded(folder, [row])[0].samples[0].answer[0]
    assert (slot.value, slot.margin) == (40, margin)


@pytest.mark.parametrize("gold", ["40±5 %", "40 % ± 5 %"])
def test_a_margin_in_percent_of_an_answer_in_percent_is_asked_about(folder, gold):
    row = _row(question="How much did the pond grow?", gold=gold, answer_type="tolerance")
    with pytest.raises(UndecidedError) as caught:
        _loaded(folder, [row])
    assert caught.value.answers == ("--option=percent=relative",)


_OF_PEOPLE = {"answer_annotator1": "14", "answer_annotator2": "15"}


@pytest.mark.parametrize("name", ["answer_final", "consensus_answer", "majority"])
def test_the_answer_that_annotators_agreed_on_is_right(folder, name):
    benchmark, readings = _loaded(folder, [_row(**_OF_PEOPLE, **{name: "16"})])
    assert benchmark.samples[0].answer[0].value == "16"
    assert "field answer_annotator1" in readings.left


def test_numbered_answers_are_those_of_people_if_they_agree_with_the_final_one(folder):
    numbered = {"answer_1": "14", "answer_2": "15"}
    benchmark, _ = _loaded(folder, [_row(**numbered, answer_final="15")])
    assert benchmark.samples[0].answer[0].value == "15"
    with pytest.raises(UndecidedError, match="the right answer is in the field"):
        _loaded(folder, [_row(**numbered, answer_final="29")])


def test_a_sentence_with_another_number_is_another_answer(folder):
    with pytest.raises(UndecidedError):
        _loaded(folder, [_row(gold="14", gt="There are 15 trees.")])
    with pytest.raises(UndecidedError):
        _loaded(folder, [_row(gold="There are 14 trees.", gt="There are 15 trees.")])


def test_names_with_a_slash_are_a_list_where_several_are_asked_for(folder):
    row = _row(question="Which two diseases are these?", gold="scab / rust", answer_type="exact")
    (sample,) = _loaded(folder, [row])[0].samples
    assert [slot.value for slot in sample.answer] == ["scab", "rust"]


def test_answers_of_annotators_alone_are_asked_about(folder):
    with pytest.raises(UndecidedError) as caught:
        _loaded(folder, [_row(**_OF_PEOPLE)])
    assert caught.value.answers == ("--option=answer=answer_annotator1",)


def test_a_short_answer_comes_before_the_sentences_that_say_it(folder):
    said = {"answer_en": "There are 14 trees.", "answer_zh": "有14棵树。", "answer_value": "14"}
    benchmark, _ = _loaded(folder, [_row(**said, answer_type="exact")])
    assert benchmark.samples[0].answer[0].value == "14"


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("Canopy Height Mask Analysis", "canopy_height"),
        ("Farm Pond Change Detection", "farm_pond_change"),
        ("Weed-Crop Area Analysis", "weed_crop_area"),
        ("耕地变化检测", "farmland_change"),
        ("果园", "果园"),
    ],
)
def test_tasks_are_known_by_the_words_that_tell_them_apart(name, task):
    assert task_of(name, task_table(read_map(MAP))) == task


def _pictures(folder, there, named):
    """Return the pictures of two rows, by the paths in the rows, and the benchmark."""
    rows = [
        _row(image=path, gold="14", question=f"How many trees are in {path}?") for path in named
    ]
    benchmark, _ = _loaded(folder, rows, there)
    hashes = [[file.sha256 for file in sample.files] for sample in benchmark.samples]
    of_files = {hashlib.sha256(picture(name)).hexdigest(): name for name in there}
    return [of_files[digest] for (digest,) in hashes], benchmark.header.metadata


@pytest.mark.parametrize(
    ("there", "named", "found"),
    [
        # the folder of the authors' machine in front of it
        (
            ["pics/A/1.png", "pics/B/1.png"],
            ["/home/a/pics/A/1.png", "C:\\x\\pics\\B\\1.png"],
            [0, 1],
        ),
        # folders in between have other names
        (["pics/A/1.png", "pics/B/1.png"], ["/d/img/A/1.png", "/d/img/B/1.png"], [0, 1]),
        (["1.png", "old/1.png"], ["1.png", "old/1.png"], [0, 1]),
        (["x/y/1.png", "1.png"], ["y/1.png", "1.png"], [0, 1]),
    ],
)
def test_pictures_are_found_by_the_longest_end_of_their_path(folder, there, named, found):
    pictures, metadata = _pictures(folder, there, named)
    assert metadata["unread"] == {}
    assert pictures == [there[at] for at in found]


@pytest.mark.parametrize(
    ("there", "named"),
    [
        (["pics/A/1.png"], ["/d/A/1.png", "/d/B/1.png"]),  # B/1.png is not there
        (["a/1.png", "b/1.png"], ["a/1.png", "/d/c/1.png"]),  # either may be meant
        (["pics/A/1.png"], ["pics/A/1.png", "/d/A/1.png"]),
    ],
)
def test_a_picture_that_may_be_another_is_refused(folder, there, named):
    pictures, metadata = _pictures(folder, there, named)
    assert pictures == there[:1]
    assert [*metadata["unread"].values()] == [["1"]]


def test_calls_name_pictures_of_one_name_by_their_folders(folder):
    steps = [{"tool": "change", "arguments": {"before": "A/1.png", "after": "B/1.png"}}]
    row = _row(
        gold="no", image=["/d/A/1.png", "/d/B/1.png"], steps=[{**steps[0], "observation": "no"}]
    )
    (sample,) = _loaded(folder, [row], ["A/1.png", "B/1.png"])[0].samples
    names = [file.name for file in sample.files]
    assert [*sample.reference.steps[0].arguments.values()] == names


@pytest.mark.parametrize(
    ("gold", "language"),
    [({"answer": "14"}, "en"), ({"answer": "十四棵", "answer_type": "exact"}, "zh")],
)
def test_of_a_question_in_two_languages_that_of_the_answers_is_read(folder, gold, language):
    texts = {"question_en": "How many trees are there?", "question_zh": "有多少棵树？"}
    row = {**_row(**gold), **texts}
    del row["question"]
    benchmark, readings = _loaded(folder, [row])
    assert benchmark.samples[0].query == texts[f"question_{language}"]
    assert f"question from question_{language}, the language of the answers" in readings.taken


def test_a_list_in_a_text_is_a_list_of_required_items(folder):
    (sample,) = _loaded(folder, [_row(gold="A; C", answer_type="exact")])[0].samples
    assert [slot.value for slot in sample.answer] == ["A", "C"]
    named = _row(gold="A; C", answer_type="exact", **{"Answer item(s)": "left; right"})
    (sample,) = _loaded(folder, [named])[0].samples
    assert [(slot.name, slot.value) for slot in sample.answer] == [("left", "A"), ("right", "C")]


_BOOK = {
    "Questions": [
        ["ID", "Question", "Image(s)", "Answer item(s)", "Gold answer", "Answer type"],
        [
            "T-1",
            "How many trees, and how tall?",
            "a.png",
            "trees; height",
            "12±1; 14±2 m",
            "tolerance",
        ],
        ["T-2", "What disease is it?", "a.png", None, "scab", "exact-match"],
    ],
    "Steps": [
        ["ID", "Step", "Tool", "Arguments", "Output"],
        ["T-1", 1, "Object Counting", "image = a.png; object = tree", "12"],
        [None, 2, "Canopy Height Estimation", "image = a.png", "14 m"],
        ["T-2", 1, "Lesion Analysis", "image = a.png", "scab"],
    ],
    "Words": [["Column", "Meaning"], ["ID", "number of the question"]],
}


def _check_book(folder):
    """Check that the questions and steps of the book are read; return the readings."""
    (folder / "a.png").write_bytes(picture("a.png"))
    readings = Readings()
    samples = load_released(Loading(folder.parent, readings=readings)).samples
    assert readings.questions == []
    assert [sample.id for sample in samples] == ["T-1", "T-2"]
    first = [(slot.name, slot.value, slot.margin) for slot in samples[0].answer]
    assert first == [("trees", 12, 1), ("height", 14, 2)]
    tools = ("Object_Counting", "Canopy_Height_Estimation")
    assert [sample.reference.tools for sample in samples] == [tools, ("Lesion_Analysis",)]
    assert samples[0].reference.steps[0].arguments == {"image": "a.png", "object": "tree"}
    return readings


def test_a_column_with_a_dot_in_its_name_is_named_as_not_read(folder):
    _, readings = _loaded(folder, [_row(gold="14", **{"Rem.": "late"})])
    assert "field Rem." in readings.left


def test_two_tables_of_steps_are_asked_about(folder):
    _write_table(folder / "questions.csv", _BOOK["Questions"])
    _write_table(folder / "steps.csv", _BOOK["Steps"])
    other = [[*row[:2], "Change Detection", *row[3:]] for row in _BOOK["Steps"][1:]]
    _write_table(folder / "steps_old.csv", [_BOOK["Steps"][0], *other])
    with pytest.raises(UndecidedError, match="the reference calls are in the field: steps"):
        _check_book(folder)


def _write_table(path, rows):
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows(rows)


@pytest.mark.parametrize("is_merged", [False, True])
@pytest.mark.parametrize("with_table", [False, True])
def test_a_workbook_has_the_steps_in_another_sheet(folder, is_merged, with_table):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in _BOOK.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    if is_merged:
        book["Steps"].merge_cells("A2:A3")
    book.save(folder / "annotation.xlsx")
    if with_table:  # which the card names, and the viewer shows
        _write_table(folder / "questions.csv", _BOOK["Questions"])
        card = "---\nconfigs:\n- config_name: default\n  data_files: questions.csv\n---\n"
        (folder / "README.md").write_text(card)
    readings = _check_book(folder)
    assert "annotation.xlsx, sheet Words" in readings.left
    assert any("annotation.xlsx, sheet Steps" in line for line in readings.taken)


def test_a_table_of_steps_completes_one_of_questions(folder):
    _write_table(folder / "questions.csv", _BOOK["Questions"])
    _write_table(folder / "steps.csv", _BOOK["Steps"])
    _check_book(folder)


@pytest.mark.parametrize("has_calls", [False, True])
def test_a_file_that_the_card_does_not_name_is_read_for_calls_alone(folder, has_calls):
    own = {"steps": _STEPS} if has_calls else {}
    (folder / "a.png").write_bytes(picture("a.png"))
    rows = [{"id": f"q{at}", "question": "How many?", "image": "a.png", **own} for at in range(2)]
    calls = [{"see": {"image": ["a.png"]}}]
    answers = [{"id": f"q{at}", "gold": "14", "reference_calls": calls} for at in range(2)]
    (folder / "truth").mkdir()
    for name, listed in {"rows.jsonl": rows, "truth/rows.jsonl": answers}.items():
        (folder / name).write_text("\n".join(map(json.dumps, listed)))
    (folder / "README.md").write_text("---\ndata_files: rows.jsonl\n---\n")
    readings = Readings()
    if has_calls:
        with pytest.raises(BenchmarkError, match="there is no answer"):
            load_released(Loading(folder.parent, readings=readings))
        assert "file truth/rows.jsonl" in readings.left
        return
    samples = load_released(Loading(folder.parent, readings=readings)).samples
    assert [sample.reference.tools for sample in samples] == [("see",)] * 2
    assert [sample.answer[0].value for sample in samples] == ["14"] * 2


_OF_ANY = {"values": ["hopper", "N. lugens"], "match": "any_of"}
_OF_ALL = {"values": ["NIR", "RE"], "match": "all_of"}


@pytest.mark.parametrize(
    ("gold", "kind", "wanted"),
    [
        ([{"slot": "n", "values": ["14"], "tolerance": {"value": 2}}], "tolerance", {"n": 14}),
        (
            [{"slot": "n", "values": ["14"]}, {"slot": "event", "values": ["grown"]}],
            "tolerance",
            {"n": 14, "event": "grown"},
        ),
        ([{"slot": "pest", **_OF_ANY}], "exact", {"pest": "hopper"}),
        ([{"slot": "band", **_OF_ALL}], "exact", {"band_1": "NIR", "band_2": "RE"}),
        (
            {"bands": {"value": ["NIR", "RE"]}},
            "unordered_list",
            {"bands_1": "NIR", "bands_2": "RE"},
        ),
        (
            {"n": {"value": 14, "atol": 2}, "m": {"value": 3, "rtol": 0.1}},
            "multi_slot",
            {"n": 14, "m": 3},
        ),
        (["14 mm"], "tolerance", {"answer": 14}),
    ],
)
def test_answers_that_list_values(folder, gold, kind, wanted):
    (sample,) = _loaded(folder, [_row(gold=gold, checker=kind)])[0].samples
    assert {slot.name: slot.value for slot in sample.answer} == wanted


def test_other_answers_in_full_are_other_words_for_the_same(folder):
    others = "Take them out; then burn the lot in a safe place || Prune"
    gold = {"advice": {"value": "Remove the leaves.", "also_ok": others}}
    (slot,) = _loaded(folder, [_row(gold=gold, answer_type="open")])[0].samples[0].answer
    (fact,) = slot.facts
    assert [*fact.phrases] == ["Remove the leaves.", *others.split(" || ")]


def test_labels_of_an_arrow_file_have_their_names(folder):
    arrow = pytest.importorskip("pyarrow")
    row = _row(gold="14", answer_type=1, task_type=0)
    kinds, tasks = {"names": ["exact", "tolerance"]}, {"names": ["Farm Pond Change Detection"]}
    features = {"info": {"features": {"answer_type": kinds, "task_type": tasks}}}
    table = arrow.Table.from_pylist([row])
    table = table.replace_schema_metadata({"huggingface": json.dumps(features)})
    with (
        arrow.OSFile(str(folder / "data.arrow"), "wb") as file,
        arrow.ipc.new_stream(file, table.schema) as stream,
    ):
        stream.write_table(table)
    (folder / "a.png").write_bytes(picture("a.png"))
    (sample,) = load_released(Loading(folder.parent)).samples
    assert (sample.answer_type, sample.task_type) == ("tolerance", "farm_pond_change")


@pytest.mark.parametrize(("place", "at"), [("image_2", 1), ("<image 1>", 0)])
def test_a_picture_is_named_by_its_place(folder, place, at):
    steps = [{"tool": "height", "arguments": {"chm": place}, "observation": "9 m"}]
    row = _row(question="Which is young?", image=["a.png", "b.png"], steps=steps, gold=place)
    (sample,) = _loaded(folder, [{**row, "answer_type": "exact"}], ["a.png", "b.png"])[0].samples
    name = sample.files[at].name
    assert sample.reference.steps[0].arguments == {"chm": name}
    assert (sample.answer[0].type, sample.answer[0].value) == ("file", name)


def test_a_list_that_may_be_names_of_one_answer_is_asked_about(folder):
    rows = [
        _row(question="Which pest is it?", gold=["hopper", "N. lugens"], answer_type="exact"),
        _row(question="Which two are right?", gold=["B", "C"], answer_type="exact"),
        _row(question="Which crop is it?", gold=["rice"], answer_type="exact"),
    ]
    with pytest.raises(UndecidedError) as caught:
        _loaded(folder, rows)
    assert caught.value.answers == ("--option=lists=any",)
    values = {"any": ["hopper"], "all": ["hopper", "N. lugens"]}
    for given, wanted in values.items():
        samples = load_benchmark("agrotools", folder.parent, options={"lists": given}).samples
        assert [slot.value for slot in samples[0].answer] == wanted
        assert [slot.value for slot in samples[1].answer] == ["B", "C"]
    propose_map_of("agrotools", folder.parent)
    first, second, _ = load_benchmark("agrotools", folder.parent).samples
    assert [slot.value for slot in second.answer] == ["B", "C"]
    assert [slot.value for slot in first.answer] == ["hopper"]
    assert "N. lugens" in first.answer[0].names


def test_a_chart_stands_in_a_list_of_values(folder):
    chart = {"type": "bar", "x": ["a", "b"], "y": [1, 2]}
    gold = [{"slot": "chart", "values": [json.dumps(chart)], "match": "any_of"}]
    (slot,) = _loaded(folder, [_row(gold=gold, answer_type="plot")])[0].samples[0].answer
    assert [*slot.value["series"][0]["x"]] == ["a", "b"]


def test_a_part_of_an_answer_may_be_a_picture(folder):
    gold = [{"name": "tile", "value": "image_2"}]
    row = _row(gold=gold, question="Which is young?", image=["a.png", "b.png"])
    (sample,) = _loaded(folder, [row], ["a.png", "b.png"])[0].samples
    assert (sample.answer[0].type, sample.answer[0].value) == ("file", "b.png")
