"""Columns of one stem: of two observers of one thing where headers and values say so, and else asked about."""

from pathlib import Path

import pytest
from PIL import Image

from agrotools.core import UsageError
from agrotools.core.readings import Readings
from agrotools_build.own_photos.answering import decide, with_answers
from agrotools_build.own_photos.plan import Plan
from agrotools_build.own_photos.proposal import propose_plan
from agrotools_build.own_photos.table import match_rows

FIRST = [4, 13, 9, 10, 9, 11, 17, 8, 11, 2]
SECOND = [4, 13, 9, 11, 9, 10, 17, 9, 11, 3]
OTHER = [9, 2, 3, 11, 4, 15, 1, 2, 7, 9]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(1, 11):
        Image.new("RGB", (40, 30), (30, 20 * number, 30)).save(folder / f"{number}.jpg")
    return folder


def _read(photos: Path, headers: list[str], columns: list[list], *words: str):
    path = photos.parent / "t.csv"
    values = zip(*columns, strict=True)
    rows = [f"{at}.jpg;{';'.join(map(str, row))}" for at, row in enumerate(values, start=1)]
    path.write_text("\n".join([f"photo;{';'.join(headers)}", *rows]), encoding="utf-8")
    seen, readings = match_rows(photos, path), Readings()
    plan = with_answers(propose_plan(seen, "farm").plan, words, seen)
    return decide(plan, seen, readings), readings


def _asked(plan: Plan) -> dict[str, tuple[str, str | None]]:
    return {each.column: (each.ask, each.second) for each in plan.columns if each.is_asked}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Apples (Ann)", "Apples (Ben)"),
        ("maçãs Ana", "maçãs José"),
        ("Äpfel Zählung 1", "Äpfel Zählung 2"),
        ("Ann: apples", "Ben: apples"),
        ("apples, observer A", "apples, observer B"),
    ],
)
def test_headers_that_differ_in_a_person_or_number_are_of_two_observers(photos, first, second):
    plan, readings = _read(photos, [first, second], [FIRST, SECOND])
    assert _asked(plan) == {first: ("count", second)}
    assert plan.columns[0].target == "apple"
    assert readings.questions == []


@pytest.mark.parametrize(
    ("first", "second", "values"),
    [
        ("apples_1", "apples_2", OTHER),
        ("Apples Gala", "Apples Fuji", OTHER),
        ("Apples left", "Apples right", SECOND),
        ("apples_ann", "apples_ben", SECOND),
        ("Apples", "Apples (Ben)", SECOND),
    ],
)
def test_two_columns_of_one_stem_are_one_question_where_they_may_be_two_things(
    photos, first, second, values
):
    plan, readings = _read(photos, [first, second], [FIRST, values])
    (question,) = readings.questions
    assert question.option == f"--set={first}.second"
    known = ["nothing", second, "apart", f"only {first}", f"only {second}"]
    assert sorted(choice.value for choice in question.choices) == sorted(known)
    assert question.proposed == ("apart" if values is OTHER else second)
    both = {first: ("count", None), second: ("count", None)}
    assert _asked(plan) == (both if values is OTHER else {first: ("count", second)})


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        ("Apples right", {"Apples left": "Apples right"}),
        ("apart", {"Apples left": None, "Apples right": None}),
        ("only Apples left", {"Apples left": None}),
        ("only Apples right", {"Apples right": None}),
        ("nothing", {}),
    ],
)
def test_one_answer_decides_both_columns(photos, answer, asked):
    headers = ["Apples left", "Apples right"]
    plan, readings = _read(photos, headers, [FIRST, SECOND], f"Apples left.second={answer}")
    assert readings.questions == []
    assert {header: second for header, (_, second) in _asked(plan).items()} == asked
    if answer == "apart":
        quantities = [each.quantity for each in plan.columns]
        assert quantities == ["the number of apples (left)", "the number of apples (right)"]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["Apples (Ben).ask=count"], {"Apples (Ann)": "Apples (Ben)"}),
        (["Apples (Ben).ask=nothing"], {"Apples (Ann)": None}),
        (["Apples (Ann).second=apart"], {"Apples (Ann)": None, "Apples (Ben)": None}),
        (["Apples (Ann).second=only Apples (Ben)"], {"Apples (Ben)": None}),
    ],
)
def test_what_was_read_as_two_observers_can_be_answered_otherwise(photos, words, asked):
    headers = ["Apples (Ann)", "Apples (Ben)"]
    plan, readings = _read(photos, headers, [FIRST, SECOND], *words)
    assert readings.questions == []
    assert {header: second for header, (_, second) in _asked(plan).items()} == asked
    with pytest.raises(UsageError, match="read as a second observer"):
        _read(photos, headers, [FIRST, SECOND], "Apples (Ben).unit=kg")


def test_other_quantities_of_one_thing_are_no_observers(photos):
    plan, readings = _read(photos, ["apples", "apples (kg)"], [FIRST, OTHER])
    assert (_asked(plan), readings.questions) == ({"apples": ("count", None)}, [])


def test_two_of_three_observers_are_chosen(photos):
    headers = ["Apples Ann", "Apples Ben", "Apples Cid"]
    columns = [FIRST, SECOND, SECOND]
    _, readings = _read(photos, headers, columns)
    assert [question.option for question in readings.questions] == ["--set=Apples Ann.second"]
    plan, readings = _read(photos, headers, columns, "Apples Ann.second=Apples Cid")
    assert (_asked(plan), readings.questions) == ({"Apples Ann": ("count", "Apples Cid")}, [])


def test_columns_of_other_words_and_one_question_are_asked_about(photos):
    """Each would be asked as the number of spots, with two answers of which one is wrong."""
    plan, readings = _read(photos, ["Spots", "Flecken gesamt"], [FIRST, OTHER])
    (question,) = readings.questions
    assert "'Spots' and 'Flecken gesamt'" in question.text
    assert "Each would be asked as 'the number of spots'" in question.text
    assert question.proposed == "apart"
    assert len({each.quantity for each in plan.columns}) == 2, "each is asked in words of its own"


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        ("apart", {"Spots": ("count", None), "Flecken gesamt": ("count", None)}),
        ("only Spots", {"Spots": ("count", None)}),
        ("only Flecken gesamt", {"Flecken gesamt": ("count", None)}),
        ("Flecken gesamt", {"Spots": ("count", "Flecken gesamt")}),
    ],
)
def test_one_answer_settles_columns_of_one_question(photos, answer, asked):
    plan, readings = _read(
        photos, ["Spots", "Flecken gesamt"], [FIRST, OTHER], f"Spots.second={answer}"
    )
    assert (_asked(plan), readings.questions) == (asked, [])
    if answer == "apart":
        quantities = [each.quantity for each in plan.columns]
        assert quantities == ["the number of spots (Spots)", "the number of spots (Flecken gesamt)"]


def test_columns_that_name_the_same_things_raise_no_question(photos):
    """An export of iNaturalist has the common and the scientific name of each plant."""
    common = ["lantana", "parkinsonia", "parthenium", "rubber vine", "snake weed"] * 2
    scientific = [
        "Lantana camara",
        "Parkinsonia aculeata",
        "Parthenium hysterophorus",
        "Cryptostegia grandiflora",
        "Stachytarpheta",
    ] * 2
    known = "scientific_name.names.Stachytarpheta=snake weed"
    headers = ["species_guess", "scientific_name"]
    words = ["species_guess.ask=weed", "scientific_name.ask=weed", known]
    _, readings = _read(photos, headers, [common, scientific], *words)
    assert readings.questions == []
    _, readings = _read(photos, headers, [common, scientific[::-1]], *words)
    assert [each.option for each in readings.questions] == ["--set=species_guess.second"]


def test_of_columns_that_name_the_same_things_in_other_words_one_is_asked(photos):
    """The column is asked of whose names the knowledge base has most; the note on the others says so."""
    common = ["beetle a", "Green peach aphid"] * 5
    scientific = ["Leptinotarsa decemlineata", "Myzus persicae"] * 5
    plan, readings = _read(photos, ["species_guess", "scientific_name"], [common, scientific])
    assert [*_asked(plan)] == ["scientific_name"]
    assert readings.questions == []
    mixed = ["Leptinotarsa decemlineata", *["Myzus persicae"] * 9]
    _, readings = _read(photos, ["first", "scientific_name"], [mixed, scientific])
    assert any("scientific_name" in each.text for each in readings.questions)


def test_columns_with_the_same_values_raise_no_question(photos):
    _, readings = _read(photos, ["Spots", "Flecken gesamt"], [FIRST, FIRST])
    assert readings.questions == []
