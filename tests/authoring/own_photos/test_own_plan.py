"""What columns are taken for, what is asked of their owner, and the plan that keeps it."""

from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from agrotools.core import BenchmarkError, ExactSlot, Observation, SampleFile
from agrotools.core.readings import Readings
from agrotools.scoring.steps import implied_slot
from agrotools.text import cells
from agrotools_build.choosing import ask_subject
from agrotools_build.own_photos.answering import decide, with_answers
from agrotools_build.own_photos.building import (
    _why_unused,
    agreed_answers,
    answers_of,
    build_from_photos,
    compare_with_tool,
    range_text,
)
from agrotools_build.own_photos.plan import Column, Plan, SkippedRows, read_plan, write_plan
from agrotools_build.own_photos.proposal import open_questions, propose_plan
from agrotools_build.own_photos.questions import (
    ColumnNames,
    Pictured,
    compared_columns,
    grouped,
    right_text,
    subjects_of,
    templates_for,
)
from agrotools_build.own_photos.table import match_rows
from agrotools_build.templates import load_templates
from agrotools_build.templates.slot_draft import evaluated


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(1, 7):
        Image.new("RGB", (40, 30), (30, 20 * number, 30)).save(folder / f"{number}.jpg")
    return folder


def _table(photos: Path, header: str, rows: list[str]) -> Path:
    path = photos.parent / "t.csv"
    lines = [f"{number}.jpg;{row}" for number, row in enumerate(rows, start=1)]
    path.write_text("\n".join([f"photo;{header}", *lines]) + "\n", encoding="utf-8")
    return path


def _column(photos: Path, header: str, rows: list[str]) -> Column:
    seen = match_rows(photos, _table(photos, header, rows))
    (column,) = propose_plan(seen, "my farm").plan.columns
    return column


@pytest.mark.parametrize(
    ("header", "rows", "ask", "more"),
    [
        ("Apples", ["3", "5"], "count", {"target": "apple", "objects": "apples"}),
        ("number of trees", ["3", "5"], "count", {"target": "tree"}),
        ("苹果数量", ["3个", "5个"], "count", {"target": "apple"}),
        ("Severity (%)", ["3", "0.5"], "severity", {"unit": "%"}),
        ("severity", ["35%", "12 %"], "severity", {"unit": "%"}),
        ("severity", ["0.35", "0.1"], "severity", {"unit": None}),
        ("病情严重度", ["3,5", "12"], "severity", {"decimal": ",", "unit": "%"}),
        ("fruit diameter_mm", ["71", "75"], "diameter", {"unit": "mm", "target": "fruit"}),
        ("Kaliber", ["71 mm", "75 mm"], "diameter", {"unit": "mm"}),
        ("plant height", ["12", "14"], "plant_height", {"unit": None}),
        ("ground cover", ["40", "60"], "cover", {"unit": "%"}),
        ("weed cover [%]", ["4", "6"], "weed_cover", {"unit": "%"}),
        ("disease", ["rust", "healthy", "rust"], "disease", {}),
        ("病害", ["叶锈病", "白粉病"], "disease", {}),
        ("insect", ["aphid", "thrips"], "pest", {}),
        ("species", ["Lantana", "none"], "weed", {}),
        ("label", ["thrips", "Beet Armyworm", "healthy", "leaf roller"], "pest", {}),
        ("label", ["leaf_spot", "rust", "bean_healthy"], "disease", {}),
        ("species", ["Scopula emissaria", "maize"], "class", {}),
        ("diseased", ["yes", "no"], "diseased", {"yes_means": "the leaf is diseased"}),
        ("healthy?", ["1", "0"], "diseased", {"yes": cells.NO, "no": cells.YES}),
        ("leaf count", ["7", "9"], "leaves", {}),
        ("plant height (cm)", ["3,755", "2,120"], "plant_height", {"decimal": ""}),
        ("plant height (cm)", ["3,755", "2,1"], "plant_height", {"decimal": ","}),
        ("ground cover", ["35,5", "12,25"], "cover", {"decimal": ",", "unit": "%"}),
        ("yield", ["7.5", "9"], "", {}),
        ("observer", ["Ann", "Bob"], "", {}),
        ("answer", ["thrips", "Beet Armyworm", "healthy", "leaf roller"], "pest", {}),
    ],
)  # fmt: skip
def test_columns_are_taken_for_what_their_header_and_cells_say(photos, header, rows, ask, more):
    column = _column(photos, header, rows)
    assert column.ask == ask
    assert {key: getattr(column, key) for key in more} == more


@pytest.mark.parametrize(
    ("header", "rows", "asks"),
    [
        ("Block;设备;apples", ["1;phone;3", "2;drone;4"], ["slice", "slice", "count"]),
        ("date;time;lot;pears", ["01.05.2026;10:31;1-1;2", "2026-05-02 00:00:00;11:00;2-1;3"],
         ["slice", "nothing", "nothing", "count"]),
        ("apples_1;apples_2;apples_3", ["3;4;5", "1;1;1"], ["count", "count", "count"]),
        ("Apples;apples;pears", ["3;4;1", "5;6;2"], ["", "", "count"]),
    ],
)  # fmt: skip
def test_columns_of_groups_dates_and_namesakes_are_no_answers(photos, header, rows, asks):
    seen = match_rows(photos, _table(photos, header, rows))
    plan = propose_plan(seen, "my farm").plan
    assert [column.ask for column in plan.columns] == asks
    assert ["several columns" in need.question for need in open_questions(plan, seen)] == [
        True
    ] * asks.count("")


def test_a_table_without_answers_says_so(photos):
    with pytest.raises(BenchmarkError, match="column 'answer' is empty"):
        propose_plan(
            match_rows(photos, _table(photos, "day;answer", ["2026-05-03;", "2026-05-04;"])),
            "my farm",
        )


@pytest.mark.parametrize(("table", "folder", "ask"), [
    ("t.csv", "photos", ""), ("pests.csv", "photos", "pest"), ("t.csv", "cotton_pests", "pest"),
    ("t.csv", "weeds", "weed"), ("diseases.csv", "pests", ""),
])  # fmt: skip
def test_names_of_the_files_say_what_labels_are_of(photos, table, folder, ask):
    """Otherwise the owner is asked, because no pack has these names as labels."""
    photos = photos.rename(photos.with_name(folder))
    answers = _table(photos, "label", ["Blobus magnus", "brown hopping"])
    (column,) = propose_plan(
        match_rows(photos, answers.rename(answers.with_name(table))), "my farm"
    ).plan.columns
    assert (column.ask, column.crop) == (ask, None)


@pytest.mark.parametrize(
    ("ask", "crop", "names", "ids", "unclear"),
    [
        ("disease", None, "healthy, leaf miner, rust, brown spot", "coffee_healthy, pest.coffee_leaf_miner, "
         "disease.coffee_leaf_rust, disease.coffee_phoma_leaf_spot", ""),
        ("disease", None, "angular_leaf_spot, bean_rust, healthy",
         "disease.bean_angular_leaf_spot, disease.bean_rust, bean_healthy", ""),
        ("disease", None, "Apple___Black_rot, Tomato___Late_blight, Tomato___healthy",
         "disease.apple_black_rot, disease.late_blight, tomato_healthy", ""),
        ("disease", None, "rust, healthy", "rust, healthy", "rust"),
        ("disease", None, "rust, brown spot", "rust, brown spot", "brown spot, rust"),
        ("disease", None, "leaf splash, brown spot, healthy", "leaf splash, brown spot, healthy", "brown spot"),
        ("disease", "rice", "brown spot, healthy", "disease.rice_brown_spot, rice_healthy", ""),
        ("disease", "coffee", "leaf splash, coffee rust", "leaf splash, disease.coffee_leaf_rust", ""),
        ("disease", "coffee", "anthracnose, rust", "anthracnose, disease.coffee_leaf_rust", "anthracnose"),
        ("disease", "guava", "anthracnose, rust", "anthracnose, rust", ""),
        ("class", None, "caterpillar, beetle", "caterpillar, beetle", ""),
        ("pest", None, "Beet Armyworm, Gall Beetle", "pest.beet_army_worm, Gall Beetle", ""),
        ("disease", "black gram", "healthy", "black_gram_healthy", ""),
        ("weed", None, "Negative, lantana, maize", "negative, weed.lantana, crop.maize", ""),
        ("pest", "coffee", "healthy", "coffee_healthy", ""),
        ("class", None, "healthy leaf", "healthy", ""),
        ("pest", None, "bean rust", "disease.bean_rust", ""),
        ("pest", None, "Termite odontotermes (Rambur)", "Termite odontotermes (Rambur)", ""),
    ],
)  # fmt: skip
def test_names_of_a_column_have_entries_of_one_crop_or_none(ask, crop, names, ids, unclear):
    given = names.split(", ")
    known = ColumnNames.of(Column(column="v", ask=ask, crop=crop), given)
    assert [known.ids_of(name)[0] for name in given] == ids.split(", ")
    assert list(known.labels.unclear) == [name for name in unclear.split(", ") if name]


def test_the_crop_is_asked_for_where_names_do_not_tell_it(photos, tmp_path: Path):
    seen = match_rows(photos, _table(photos, "disease", ["rust", "healthy"]))
    plan = propose_plan(seen, "x").plan
    (need,) = open_questions(plan, seen)
    assert (need.key, "apple" in need.question, "'rust'" in need.question) == ("crop", True, True)
    with pytest.raises(BenchmarkError, match="Which crop do the photos of 'disease' show"):
        build_from_photos(seen, plan, tmp_path / "out")
    (column,) = plan.columns
    decided = plan.model_copy(update={"columns": (column.model_copy(update={"crop": "coffee"}),)})
    assert open_questions(decided, seen) == []
    classes = plan.model_copy(
        update={"columns": (column.model_copy(update={"ask": "class", "quantity": "disease"}),)}
    )
    assert open_questions(classes, seen) == []


_LISTS = "fungi oomycetes bacteria viruses of_sought_cause"
"""Words of templates that are lists of identifiers."""


@pytest.mark.parametrize("file", ["leaf_disease", "pest", "pest_group", "plant_disease", "weed"])
def test_a_name_that_is_no_option_gives_no_answer(file: str):
    class Words(dict[str, str]):
        def __missing__(self, word: str) -> str:
            return (
                "['a']" if word in _LISTS.split() else "0" if word.endswith("at") else f"a {word}"
            )

        def __contains__(self, word: object) -> bool:
            return True

    other = {
        "best": "disease.other",
        "candidates": [{"common_name": "other"}],
        "hits": [{"text": "of an order"}],
    }
    drafts = [(each.template, draft) for each in load_templates(file) for draft in each.slots]
    chosen = [
        (name, draft)
        for name, draft in drafts
        if draft.type in ("exact", "file") and " else " in draft.from_
    ]
    assert chosen
    assert [
        name for name, draft in chosen if evaluated(draft.from_, Words(), [other] * 8) != ""
    ] == []


def test_every_choice_has_the_names_of_the_table_whichever_is_right():
    """A form that has other names of the right choice alone would tell it."""
    meant = "mango leaf-cutting weevil"
    column = Column(column="disease", ask="disease", crop="mango", names={"cutting weevil": meant})
    plan = Plan(images_column="p", columns=(column,))
    names = ("healthy", meant, "anthracnose", "Anthracnose")
    pictured = [
        Pictured(
            SampleFile(name="p.jpg", path=f"{k}.jpg", kind="image", sha256=f"{k:064x}"),
            names[k % 4],
        )
        for k in range(8)
    ]
    subjects = subjects_of(column, 0, pictured, [[str(each.file.sha256)] for each in pictured])
    seen: set[tuple[str, ...]] = set()
    for template in templates_for(column, 0, plan, [], counted_per_area=False):
        for subject in subjects:
            item = ask_subject(subject, template, 1)
            slot = item.instance.slots[-1] if item else None
            if not isinstance(slot, ExactSlot) or not slot.choices:
                continue
            for choice, name in (("a healthy leaf", "healthy"), (meant, "cutting weevil")):
                assert name in slot.aliases[choice]
            seen.add(slot.names)
    assert len(seen) == 3


def test_own_questions_of_names_have_no_answer_after_a_result_that_is_none_of_the_names():
    column, names = (
        Column(column="weed", ask="weed"),
        ("lantana", "siam weed", "rubber vine", "parthenium"),
    )
    plan = Plan(images_column="p", columns=(column,))
    pictured = [
        Pictured(
            SampleFile(name="p.jpg", path=f"{k}.jpg", kind="image", sha256=f"{k:064x}"),
            names[k % 4],
        )
        for k in range(8)
    ]
    subjects = subjects_of(column, 0, pictured, [[str(each.file.sha256) for each in pictured]])
    for template in templates_for(column, 0, plan, [], counted_per_area=False):
        asked = next(
            item.instance
            for each in subjects
            if (item := ask_subject(each, template, 1)) is not None
        )
        truths = [call.truth for call in asked.calls]
        slots = [
            slot for slot in asked.slots if slot.name != "same"
        ]  # two equal names are the same, whatever they are
        assert not any(implied_slot(slot, truths).differs for slot in slots), template.template
        assert all(
            implied_slot(slot, [{"best": "weed.other"}] * 2).slot is None for slot in slots
        ), template.template


def test_what_only_the_owner_knows_is_asked(photos):
    header = "yield;diameter;plant height;severity"
    seen = match_rows(photos, _table(photos, header, ["1;71 mm;12;0.2", "2;7 cm;14;0.1"]))
    plan = propose_plan(seen, "x").plan
    needs = [(need.column, need.key) for need in open_questions(plan, seen)]
    assert needs == [
        ("diameter", "distance_mm"), ("diameter", "fx_px"), ("plant height", "unit"),
        ("plant height", "px_per_cm"), ("severity", "unit"),
    ]  # fmt: skip


def test_numbers_that_may_be_thousands_or_shares_are_asked_about(photos):
    rows = ["2.000;0.07;4,0;0.2", "12.000;0.11;1.000;0.3"]
    seen = match_rows(
        photos, _table(photos, "trees;severity %;apples;plant cover (fraction)", rows)
    )
    plan = propose_plan(seen, "x").plan
    assert {need.column: need.key for need in open_questions(plan, seen)} == {
        "trees": "decimal",
        "severity %": "unit",
    }
    assert "Is 2.000 in 'trees' 2 (" in open_questions(plan, seen)[0].question
    assert plan.columns[2].decimal == ",", "4,0 tells that 1.000 is a thousand"
    assert plan.columns[3].unit == "fraction"
    write_plan(photos / "p.toml", plan)
    assert read_plan(photos / "p.toml") == plan
    seen = match_rows(photos, _table(photos, ";cover %", ["0;2.013", "1;3.452"]))
    plan, notes, _ = propose_plan(seen, "x")
    assert [column.ask for column in plan.columns] == ["nothing", "cover"], (
        "the first column numbers the rows"
    )
    assert "2.013 is 2.013 " in notes["cover %"]


def test_text_beside_number_cells_of_a_workbook_is_read_whatever_the_mark(photos):
    openpyxl = pytest.importorskip("openpyxl", reason="extra build")
    book = openpyxl.Workbook()
    values = [1.9, 5.375, "0,8 %", 8.1, "2-5 %", 0.4]
    for row in [("photo", "Severity (%)"), *enumerate(values, start=1)]:
        name = f"{row[0]}.jpg" if isinstance(row[0], int) else row[0]
        book.active.append([name, row[1]])
    book.save(photos.parent / "t.xlsx")
    seen = match_rows(photos, photos.parent / "t.xlsx")
    (column,) = propose_plan(seen, "x").plan.columns
    for decimal in (".", ","):
        found = answers_of(seen, column.model_copy(update={"decimal": decimal}), SkippedRows())
        assert [*found.values()] == pytest.approx([1.9, 5.375, 0.8, 8.1, 0.4])


@pytest.mark.parametrize(
    ("rows", "offers_sum"),
    [
        (["1.jpg,3", "1.jpg,4", "2.jpg,5"], False),
        (["1.jpg,3", "1.jpg,4", "2.jpg,5", "2.jpg,1"], True),
    ],
)
def test_a_sum_is_offered_only_where_most_photos_have_several_rows(photos, rows, offers_sum):
    table = photos.parent / "t.csv"
    table.write_text("\n".join(["photo,apples", *rows]), encoding="utf-8")
    skipped = SkippedRows()
    answers_of(match_rows(photos, table), Column(column="apples", ask="count"), skipped)
    (line,) = skipped.lines()
    assert "--set 'apples.repeated=mean'" in line
    assert ("repeated=sum" in line) is offers_sum


def test_a_column_said_to_be_a_count_keeps_its_decimal_mark(photos):
    seen = match_rows(photos, _table(photos, "apples ripe", ["4,0", "13,0", "9,0"]))
    plan = with_answers(propose_plan(seen, "x").plan, ["apples ripe.ask=count"], seen)
    (column,) = plan.columns
    assert [*answers_of(seen, column, SkippedRows()).values()] == [4, 13, 9]


def test_numbers_with_and_without_unit_are_told(photos):
    seen = match_rows(photos, _table(photos, "fruit diameter", ["71 mm", "7.2 cm", "70", "69 mm"]))
    plan, notes, _ = propose_plan(seen, "x")
    (column,) = plan.columns
    assert column.unit is None
    assert "2 in mm, 1 in cm, 1 without a unit" in notes["fruit diameter"]
    skipped = SkippedRows()
    found = answers_of(seen, column, skipped)
    assert {path.name: value for path, value in found.items()} == {
        "1.jpg": pytest.approx(71), "2.jpg": pytest.approx(72), "4.jpg": pytest.approx(69)
    }  # fmt: skip
    assert skipped.lines() == [
        "fruit diameter: 1 x '70' (row 4) has no unit: "
        "--set 'fruit diameter.unit=mm' or the unit that they have"
    ]


@pytest.mark.parametrize(
    ("column", "cell", "says"),
    [
        (Column(column="v", ask="severity", unit="%"), "120", "above 100"),
        (Column(column="v", ask="severity", unit="%"), "12 mm", "cannot be converted"),
        (Column(column="v", ask="severity", unit="%"), "12 apples", "where a unit is expected"),
        (Column(column="v", ask="count", target="apple"), "3.5", "not a whole number"),
        (Column(column="v", ask="count", target="apple"), "3 cm", "is in cm"),
        (Column(column="v", ask="count", target="apple"), "-3", "below 0"),
        (Column(column="v", ask="count", target="apple"), "1e400", "too large"),
        (
            Column(column="v", ask="diseased", yes_means="it is ill"),
            "perhaps",
            "neither yes nor no",
        ),
        (Column(column="v", ask="disease"), "<script>alert(1)</script>", "HTML"),
    ],
)
def test_cells_that_cannot_be_used_are_counted_with_their_row(photos, column, cell, says):
    seen = match_rows(photos, _table(photos, "v", [cell, "-"]))
    skipped = SkippedRows()
    assert answers_of(seen, column, skipped) == {}
    (line,) = skipped.lines()
    assert says in line
    assert "(row 2)" in line


@pytest.mark.parametrize(("repeated", "expected"), [("refuse", None), ("mean", 6), ("sum", 12)])
def test_two_answers_for_one_picture(photos, repeated, expected):
    (photos.parent / "t.csv").write_text("photo,v\n1.jpg,4\n1.jpg,8\n2.jpg,5\n2,5\n")
    seen = match_rows(photos, photos.parent / "t.csv")
    skipped = SkippedRows()
    found = answers_of(
        seen, Column(column="v", ask="count", target="apple", repeated=repeated), skipped
    )
    values = {path.name: value for path, value in found.items()}
    assert values.get("1.jpg") == expected
    # Nothing tells whether a row with the same number is a double or another part.
    assert values.get("2.jpg") == {"refuse": None, "mean": 5, "sum": 10}[repeated]
    if repeated == "refuse":
        assert "4.0 (row 2) and 8.0 (row 3)" in skipped.lines()[0]


_SIDES = ["1.jpg,east,16", "1.jpg,west,16", "2.jpg,east,14", "2.jpg,west,9", "3.jpg,east,7"]


@pytest.mark.parametrize(
    ("repeated", "more", "expected"),
    [
        ("refuse", [], {"3.jpg": 7}),
        ("sum", [], {"1.jpg": 32, "2.jpg": 23, "3.jpg": 7}),
        ("sum", ["2.jpg,west,9", "3.jpg,east,7"], {"1.jpg": 32, "2.jpg": 23, "3.jpg": 7}),
        ("refuse", ["3.jpg,east,7"], {"3.jpg": 7}),
        ("sum", ["3.jpg,west,many"], {"1.jpg": 32, "2.jpg": 23}),
    ],
)
def test_rows_that_are_parts_of_a_photo_are_asked_about_once_for_all_photos(
    photos, repeated, more, expected
):
    table = photos.parent / "t.csv"
    table.write_text("\n".join(["photo,side,apples", *_SIDES, *more]), encoding="utf-8")
    seen = match_rows(photos, table)
    plan = propose_plan(seen, "x").plan
    readings = Readings()
    decide(plan, seen, readings)
    (question,) = readings.questions
    assert question.answered(question.proposed) == "--set=apples.repeated=refuse"
    assert {"sum", "mean"} < {choice.value for choice in question.choices}
    decided = with_answers(plan, [f"apples.repeated={repeated}"], seen)
    assert open_questions(decided, seen) == []
    column = decided.column("apples")
    assert column is not None
    found = answers_of(seen, column, SkippedRows())
    assert {path.name: value for path, value in found.items()} == expected


def test_photos_that_are_listed_twice_with_one_number_are_no_question(photos):
    table = photos.parent / "t.csv"
    table.write_text("photo,day,apples\n1.jpg,a,5\n1.jpg,b,5\n2.jpg,a,4\n", encoding="utf-8")
    seen = match_rows(photos, table)
    plan = propose_plan(seen, "x").plan
    assert open_questions(plan, seen) == []
    column = plan.column("apples")
    assert column is not None
    assert [*answers_of(seen, column, SkippedRows()).values()] == [5, 4]


def test_equal_rows_of_a_second_observer_are_left_out_where_the_first_counted_parts(photos):
    table = photos.parent / "t.csv"
    rows = ["1.jpg,east,16,8", "1.jpg,west,7,8", "2.jpg,east,9,9"]
    table.write_text("\n".join(["photo,side,apples_1,apples_2", *rows]), encoding="utf-8")
    seen = match_rows(photos, table)
    column = Column(column="apples_1", second="apples_2", ask="count", repeated="refuse")
    values, _ = agreed_answers(seen, column, SkippedRows())
    assert {path.name: value for path, value in values.items()} == {"2.jpg": 9}


@pytest.mark.parametrize(
    ("header", "rows", "values", "said"),
    [
        ("apples_1;apples_2", ["3;4", "10;30", "5;5", "7;", ";9"], [3, None, 5, 7, 9],
         "apples_1 and apples_2: mean difference -7, Lin's concordance 0.34, n = 3, 2 alike"),
        ("severity A (%);severity B (%)", ["10;11", "3,5;3,5", "40;20"], [10, 3.5, None],
         "severity A (%) and severity B (%): mean difference 6.33, Lin's concordance 0.60, n = 3, 2 alike"),
        ("disease 1;disease 2", ["Bean rust;bean_rust", "healthy;bean rust", "healthy;healthy"],
         ["Bean rust", None, "healthy"],
         "disease 1 and disease 2: Cohen's kappa 0.40, n = 3, 2 alike"),
        ("diseased_1;diseased_2", ["yes;1", "no;yes", "yes;yes"], [True, None, True],
         "diseased_1 and diseased_2: Cohen's kappa 0.00, n = 3, 2 alike"),
        ("apples_1;apples_2", ["3;", ";5"], [3, 5],
         "apples_1 and apples_2: mean difference 0, Lin's concordance undefined, n = 0, 0 alike"),
    ],
)  # fmt: skip
def test_a_photo_has_the_value_of_the_first_observer_where_two_agree(
    photos, header, rows, values, said
):
    seen = match_rows(photos, _table(photos, header, rows))
    (column,) = propose_plan(seen, "x").plan.columns
    assert column.second == header.split(";")[1]
    skipped = SkippedRows()
    found, agreement = agreed_answers(seen, column, skipped)
    assert [found.get(photos / f"{number}.jpg") for number in range(1, len(rows) + 1)] == values
    assert agreement.startswith(said)
    alone = [f"{n}.jpg" for n, row in enumerate(rows, start=1) if "" in row.split(";")]
    assert agreement.endswith(
        f"for {', '.join(alone)}"
        if alone
        else (
            "both agree",
            "within 1, or within 10 % of their mean, whichever is more",
            "within 2 percentage points, or within 20 % of their mean, whichever is more",
        )
    )
    lines = skipped.lines()
    assert len(lines) == (None in values)
    assert not lines or f"is another value in {column.second}" in lines[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "images_column = 'p'\n[[columns]]\ncolumn = 'a'\nask = 'colour'\n",
            "'colour' is not one of",
        ),
        ("images_column = 'p'\n[[columns]]\ncolumn = 'a'\ngsd = 3\n", "Extra inputs"),
        (
            "images_column = 'p'\n[[columns]]\ncolumn = 'a'\nquantity = '<b>x</b>'\n",
            "String should match",
        ),
        ("images_column = ", "is not TOML"),
        ("samples = 3", "Field required"),
    ],
)
def test_a_plan_that_cannot_be_used_says_where(text, says, tmp_path: Path):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(BenchmarkError) as told:
        read_plan(tmp_path / "p.toml")
    assert says in str(told.value)


def test_a_table_without_pictures_says_what_it_looked_for(photos):
    (photos.parent / "t.csv").write_text("plot,apples\nnorth,3\nsouth,4\n")
    with pytest.raises(BenchmarkError, match="no column of t\\.csv names a picture") as told:
        match_rows(photos, photos.parent / "t.csv")
    assert "1.jpg" in str(told.value)
    for text, says in (
        ("photo,apples\nx.jpg,3\n", "no row of t\\.csv belongs to a picture"),
        ("a.jpg,12\nb.jpg,13\n", "the name of a picture"),
    ):
        (photos.parent / "t.csv").write_text(text)
        with pytest.raises(BenchmarkError, match=says):
            match_rows(photos, photos.parent / "t.csv")


def test_columns_of_one_kind_share_no_wording():
    columns = tuple(Column(column=name, ask="count", target="apple") for name in "ab")
    plan = Plan(images_column="p", columns=columns, languages=("en", "zh"))
    first, second = (
        templates_for(column, place, plan, [1, 5, 9], counted_per_area=True)
        for place, column in enumerate(columns)
    )
    assert not {t.template for t in first} & {t.template for t in second}
    assert not {w for t in first for w in t.wordings} & {w for t in second for w in t.wordings}
    assert {"own_density_1", "own_density_1_zh"} <= {t.template for t in first}


def test_pictures_of_the_same_columns_are_grouped_and_ten_clusters_come_first():
    leaf, apple = frozenset({"severity", "disease"}), frozenset({"apples"})
    few = {f"{number:02d}": leaf if number % 2 else apple for number in range(30)}
    groups = grouped(few, leaf | apple)
    assert max(map(len, groups)) == 2
    assert len(groups) >= 10
    assert all(len({few[digest] for digest in group}) == 1 for group in groups)
    assert sorted(digest for group in groups for digest in group) == sorted(few)
    assert max(map(len, grouped({str(number): leaf for number in range(40)}, leaf))) == 4


def test_each_picture_is_a_group_unless_its_column_is_compared():
    leaf, apple = frozenset({"disease"}), frozenset({"apples"})
    both = {f"{number:02d}": leaf if number % 2 else apple for number in range(20)}
    assert sorted(grouped(both)) == [[digest] for digest in sorted(both)]
    sizes = Counter(len(group) for group in grouped(both, {"apples"}))
    assert sizes == {1: 10, 2: 5}


@pytest.mark.parametrize(("pairs", "compared"), [(False, {"ill"}), (True, {"ill", "Disease"})])
def test_only_yes_and_no_are_compared_unless_the_plan_asks_for_pairs(pairs, compared):
    columns = (
        Column(column="Disease", ask="disease"),
        Column(column="ill", ask="diseased"),
        Column(column="Field", ask="slice"),
    )
    assert compared_columns(Plan(images_column="p", columns=columns, pairs=pairs)) == compared


MEASURED = [4.0, 30.0, 12.0, 21.0, 8.0, 26.0, 16.0, 9.0]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"ask": "severity", "unit": "%"},
         "within 2 percentage points, or within 20 % of the true value, whichever is more"),
        ({"ask": "severity", "unit": "fraction", "abs_tol": 1}, "within 1 percentage point"),
        ({"ask": "cover", "rel_tol": 0.05}, "within 5 % of the true value"),
        ({"ask": "diameter"}, "within 5 mm, or within 8 % of the true value, whichever is more"),
        ({"ask": "count"}, "within 1, or within 10 % of the true value, whichever is more"),
        ({"ask": "disease"}, "the name in the table, or another name of the same thing"),
        ({"ask": "diseased"}, "the same yes or no as in the table"),
    ],
)  # fmt: skip
def test_each_kind_of_question_says_what_is_right(changes, says):
    assert right_text(Column(column="x", **changes)) == says


@pytest.mark.parametrize(
    ("unit", "cells", "says"),
    [
        ("fraction", ["0.35", "0,1", "70 %"], "10 to 70 %"),
        ("%", ["0.5", "", "n/a"], "0.5 to 0.5 %"),
    ],
)
def test_the_range_of_a_column_is_in_the_unit_of_its_answers(photos, unit, cells, says):
    seen = match_rows(photos, _table(photos, "severity", cells))
    column = Column(column="severity", ask="severity", unit=unit)
    assert range_text(seen, column) == says
    assert range_text(seen, Column(column="severity", ask="disease")) == ""


SMALL = [1.0, 0.5, 1.5, 1.2, 0.8, 0.6, 1.4, 1.1]


def said(labels: list[float], measured: list[float]) -> str:
    column = Column(column="Severity", ask="severity", unit="%")
    files = [
        SampleFile(name="image_1.jpg", path=f"{k}.jpg", kind="image", sha256=f"{k:064x}")
        for k in range(8)
    ]
    observed = {
        str(file.sha256): Observation.model_validate({"result": {"severity_pct": value}})
        for file, value in zip(files, measured, strict=True)
    }
    named = zip(files, labels, [f"IMG_{k}.jpg" for k in range(8)], strict=True)
    pictured = [Pictured(file, label, name=name) for file, label, name in named]
    (line,) = compare_with_tool({"Severity": observed}, [column], {"Severity": pictured})
    return line


@pytest.mark.parametrize(
    ("labels", "measured", "line"),
    [
        (MEASURED, MEASURED, "agrees with the table on 8 of 8 photos"),
        ([*MEASURED[1:], MEASURED[0]], MEASURED, "8 values fit the photo of the next row"),
        ([*MEASURED[:4], 0.08, 0.26, 0.16, 0.09], MEASURED, "4 values are 100 times smaller than measured"),
        # All within the tolerance of 2 percentage points.
        ([value / 100 for value in SMALL], SMALL, "8 values are 100 times smaller than measured"),
        ([MEASURED[0], 3.0, *MEASURED[2:]], MEASURED, "either may be wrong: IMG_1.jpg 3 (measured 30)"),
        (MEASURED, [value * 1.7 + 6 for value in MEASURED],
         "agrees with the table on 0 of 8 photos, within 2 percentage points, or within 20 % of the table's value, "
         "whichever is more; it is 17 percentage points too high on average; it measures"),
    ],
)  # fmt: skip
def test_the_build_names_the_slip_that_explains_most(
    labels: list[float], measured: list[float], line: str
):
    assert line in said(labels, measured)


@pytest.mark.parametrize(
    ("value", "others", "pairs", "reached", "says"),
    [
        (0.5, (), False, 0, "of 0"),
        (50.0, (20.0,), False, 10, "has its 10 questions"),
        (50.0, (20.0,), True, 0, "those of other photos"),
        # More questions would not help: the tolerance is the reason.
        (50.0, (51.0,), True, 10, "those of other photos"),
        # Photos that are never compared may have like values.
        (50.0, (51.0,), False, 10, "has its 10 questions"),
        (3.0, (), False, 0, "less than twice the tolerance"),
    ],
)
def test_a_photo_without_a_question_has_one_reason(value, others, pairs, reached, says):
    column = Column(column="s", ask="severity", unit="%")
    plan = Plan(name="x", images_column="photo", samples=10, pairs=pairs, columns=(column,))
    reason, _ = _why_unused(value, others, plan, "s", reached)
    assert says in reason


def test_no_tolerance_is_proposed_for_a_value_of_0():
    column = Column(column="s", ask="severity", unit="%")
    plan = Plan(name="x", images_column="photo", samples=10, columns=(column,))
    assert "abs_tol" in _why_unused(0.4, (), plan, "s", 0)[1]
    assert "abs_tol" not in _why_unused(0.0, (), plan, "s", 0)[1]
