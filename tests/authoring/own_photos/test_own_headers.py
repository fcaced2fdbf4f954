"""Numbers are known by their header and their values, names by their values; ordinary headers raise no question."""

from pathlib import Path

import pytest
from PIL import Image

from agrotools.text import cells
from agrotools_build.own_photos.answering import with_answers
from agrotools_build.own_photos.columns import ColumnReading, column_as, read_column
from agrotools_build.own_photos.headers import thing_named
from agrotools_build.own_photos.nearest import nearest_names
from agrotools_build.own_photos.plan import Column, measures
from agrotools_build.own_photos.proposal import (
    note_with_names,
    open_questions,
    open_questions_of_column,
    propose_plan,
)
from agrotools_build.own_photos.questions import ColumnNames
from agrotools_build.own_photos.table import DetectedTable, match_rows

COUNTS = [3, 5, 0, 7, 12, 4, 4, 9, 1, 0, 6, 2]
SHARES = [12, 30, 5, 7.5, 0, 80, 44, 21, 3, 9, 10, 60]
RATINGS = [0, 3, 9, 5, 1, 7, 2, 2, 4, 6, 8, 0]
IN_ORDER = list(range(1, 13))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(1, 13):
        Image.new("RGB", (40, 30), (30, 20 * number, 30)).save(folder / f"{number}.jpg")
    return folder


def _read(photos: Path, header: str, values: list) -> ColumnReading:
    rows = "".join(f"{number}.jpg|{value}\n" for number, value in enumerate(values, start=1))
    path = photos.parent / "t.csv"
    path.write_text(f"photo|{header}\n{rows}", encoding="utf-8")
    return read_column(header, match_rows(photos, path))


@pytest.mark.parametrize(
    "header",
    ["Apples", "Apple count", "AppleCount", "n_apples", "Number of apples", "No. of apples", "# apples", "Total apples",
     "Apples (n)", "Apples per photo", "How many apples do you see?",
     "Manzanas", "Número de manzanas", "numero de manzanas", "N° de manzanas",
     "Maçãs", "Contagem de maçãs", "Äpfel", "Anzahl Äpfel", "Pommes", "Nombre de pommes", "苹果", "苹果数量",
     "苹果个数", "苹果数"],
)  # fmt: skip
def test_headers_of_counts_in_six_languages_are_known(photos, header):
    for values in (COUNTS, IN_ORDER):
        reading = _read(photos, header, values)
        assert (reading.column.ask, reading.column.target, reading.doubt) == ("count", "apple", "")


@pytest.mark.parametrize(
    ("ask", "headers"),
    [
        ("severity", ["Severity", "Severity (%)", "severity_pct", "Disease severity (%)", "Rust severity (%)",
                      "Leaf severity", "% severity", "Leaf area affected (%)", "Severidad (%)", "Severidade (%)",
                      "Schweregrad (%)", "Befallsstärke (%)", "Sévérité (%)", "严重度(%)", "病情严重度"]),
        ("cover", ["Cover (%)", "Ground cover", "Canopy cover (%)", "Cobertura (%)", "Cobertura del suelo (%)",
                   "Deckungsgrad (%)", "Bodenbedeckung", "Couverture (%)", "植被盖度(%)"]),
        ("weed_cover", ["Weed cover (%)", "Cobertura de malezas", "Unkrautdeckungsgrad (%)", "杂草盖度"]),
        ("diameter", ["Fruit diameter (mm)", "Diámetro (mm)", "Durchmesser (mm)", "Diamètre (mm)", "果径(mm)"]),
        ("plant_height", ["Plant height (cm)", "Altura (cm)", "Höhe (cm)", "Hauteur (cm)", "株高(cm)"]),
    ],
)  # fmt: skip
def test_headers_of_measures_in_six_languages_are_known(photos, ask, headers):
    readings = [_read(photos, header, SHARES) for header in headers]
    assert [(reading.column.ask, reading.doubt) for reading in readings] == [(ask, "")] * len(
        headers
    )


@pytest.mark.parametrize(
    ("header", "values", "proposed"),
    [
        ("Severity (0-9)", RATINGS, "rating"), ("Severity", RATINGS, "rating"),
        ("Severity", [0.5, 1, 4.5] * 4, "rating"), ("Cover class", RATINGS, "rating"),
        ("Braun-Blanquet cover", RATINGS, "rating"), ("Schweregrad (1-9)", RATINGS, "rating"),
        ("Escala de severidad", RATINGS, "rating"), ("严重度等级", RATINGS, "rating"),
        ("Lesion count", COUNTS, "nothing"), ("Plants per m2", COUNTS, "nothing"), ("Plants/m2", COUNTS, "nothing"),
        ("Apples x1000", COUNTS, "nothing"),
        ("Apples (log10)", [0.3, 1.2] * 6, "nothing"), ("Apples", [0.3, 1.2] * 6, "nothing"),
        ("Ripe apples", COUNTS, "nothing"),
        ("Apples and pears", COUNTS, "nothing"), ("Tree no", COUNTS, "nothing"), ("Tree", COUNTS, "nothing"),
        ("Severity reduction (%)", SHARES, "nothing"), ("Weed control cover", SHARES, "nothing"),
        ("Trunk diameter (cm)", SHARES, "nothing"), ("Severity", [250] * 6 + [12] * 6, "nothing"),
        ("infected neighbour", ["yes", "no"] * 6, "nothing"), ("Disease", ["yes", "no"] * 6, "nothing"),
    ],
)  # fmt: skip
def test_further_words_and_values_that_do_not_fit_are_a_question(photos, header, values, proposed):
    reading = _read(photos, header, values)
    assert (reading.column.ask, reading.proposed) == ("", proposed)
    assert reading.doubt


@pytest.mark.parametrize(
    ("header", "values"),
    [
        ("Tree no", IN_ORDER), ("Tree", IN_ORDER), ("Plant ID", IN_ORDER), ("Plant ID", COUNTS), ("Baum-Nr.", IN_ORDER),
        ("Tree no", IN_ORDER[::-1]),
        ("tree", [1, 1, 2, 2, 2, 3, 4, 4, 5, 5, 6, 6]),
        ("Árbol", IN_ORDER), ("Número de árbol ID", IN_ORDER), ("树号", IN_ORDER),
        ("植株编号", IN_ORDER), ("Apple weight (g)", SHARES), ("Apples (kg)", SHARES), ("Apple yield", SHARES),
        ("Apples", ["3 kg", "4 kg"] * 6), ("Fruit set (%)", SHARES), ("Lat", SHARES), ("yield", SHARES),
        ("N rate (kg/ha)", SHARES),
        ("Observer", ["Ann", "Bob"] * 6), ("Variety", ["Gala", "Fuji"] * 6), ("Crop", ["apple", "maize"] * 6),
        ("Pest control", ["none", "spinosad"] * 6), ("Weather", ["wet", "dry"] * 6), ("Irrigated", ["yes", "no"] * 6),
        ("Severity", ["low", "high"] * 6),
    ],
)  # fmt: skip
def test_names_of_things_and_other_quantities_are_left_without_a_question(photos, header, values):
    reading = _read(photos, header, values)
    assert (reading.column.ask, reading.doubt) == ("nothing", "")


@pytest.mark.parametrize(
    "header",
    ["Disease", "Enfermedad", "Diagnóstico", "Diagnostico", "Doença", "Krankheit", "Diagnose", "Befund", "Maladie",
     "Diagnostic", "病害", "诊断", "Label", "x"],
)  # fmt: skip
def test_labels_are_known_by_their_values_whatever_the_header(photos, header):
    reading = _read(photos, header, ["rust", "leaf miner", "healthy"] * 4)
    assert (reading.column.ask, reading.column.crop, reading.doubt) == ("disease", "coffee", "")


@pytest.mark.parametrize(
    ("header", "names", "ask"),
    [
        ("Plaga", ["aphid", "thrips"], "pest"), ("Hallazgo", ["aphid", "thrips", "Beet Armyworm"], "pest"),
        ("Unkraut", ["Lantana", "Parthenium"], "weed"), ("Art", ["Lantana", "Parthenium"], "weed"),
        ("Treatment", ["rust", "control", "mock"], ""),
    ],
)  # fmt: skip
def test_names_of_pests_and_weeds_are_told_apart(photos, header, names, ask):
    assert _read(photos, header, names * 4).column.ask == ask


@pytest.mark.parametrize(
    ("header", "yes", "no", "means_healthy"),
    [
        ("Diseased", "yes", "no", False), ("Enferma", "sí", "no", False), ("Sana", "sí", "no", True),
        ("Doente", "sim", "não", False), ("Krank", "ja", "nein", False), ("Gesund", "ja", "nein", True),
        ("Malade", "oui", "non", False), ("有病", "是", "否", False),
    ],
)  # fmt: skip
def test_yes_and_no_in_six_languages(photos, header, yes, no, means_healthy):
    column = _read(photos, header, [yes, no, no] * 4).column
    assert (column.ask, column.yes == cells.NO) == ("diseased", means_healthy)


def test_faults_of_formulas_are_no_labels(photos):
    reading = _read(photos, "Disease", ["#N/A", "coffee rust", "healthy", "#¡REF!"] * 3)
    assert reading.column.ask == "disease"
    assert "2 different" in reading.note


def test_a_column_tree_beside_a_count_names_the_tree(photos):
    rows = "".join(f"{n}.jpg,{n % 3 + 1},{n},{COUNTS[n - 1]}\n" for n in range(1, 13))
    path = photos.parent / "t.csv"
    path.write_text(f"photo,Row,Tree,Number of apples\n{rows}", encoding="utf-8")
    reading = read_column("Tree", match_rows(photos, path))
    assert (reading.column.ask, reading.doubt) == ("nothing", "")


def test_columns_of_observers_are_pairs(photos):
    rows = "".join(f"{n}.jpg,{COUNTS[n - 1]},{COUNTS[n - 1]}\n" for n in range(1, 13))
    path = photos.parent / "t.csv"
    path.write_text(f"photo,apples_obs1,apples_obs2\n{rows}", encoding="utf-8")
    seen = match_rows(photos, path)
    (column,) = propose_plan(seen, "farm").plan.columns
    assert (column.column, column.second) == ("apples_obs1", "apples_obs2")
    reading = read_column("apples_obs1", seen, "apples_obs2")
    assert (reading.column.ask, reading.column.target, reading.doubt) == ("count", "apple", "")


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("Äpfel", "apple"),
        ("maçãs", "apple"),
        ("manzanas", "apple"),
        ("pommes", "apple"),
        ("mele", "apple"),
        ("Wheat heads", "wheat head"),
        ("ripe apples", None),
        ("nail", None),
    ],
)
def test_things_are_known_in_other_languages(text, thing):
    assert thing_named(text) == thing


def _seen(photos, header: str) -> DetectedTable:
    _read(photos, header, COUNTS)
    return match_rows(photos, photos.parent / "t.csv")


def test_what_a_foreign_header_counts_is_asked_where_it_has_further_words(photos):
    _read(photos, "maçãs maduras", COUNTS)
    seen = match_rows(photos, photos.parent / "t.csv")
    column = column_as("maçãs maduras", "count", seen)
    (question,) = open_questions_of_column(column, seen)
    assert (question.key, question.choices, question.suggested) == ("target", ("apple",), "apple")


@pytest.mark.parametrize(
    ("header", "choices"), [("aantal appels", ()), ("obs apples", ("apple",)), ("grubs", ())]
)
def test_what_a_header_of_unknown_words_counts_is_only_known_to_its_owner(photos, header, choices):
    seen = _seen(photos, header)
    column = column_as(header, "count", seen)
    assert (column.target, column.objects) == (None, None)
    (question,) = open_questions_of_column(column, seen)
    assert (question.key, question.choices, question.suggested) == ("target", choices, "TARGET")
    assert column_as("ripe apples", "count", _seen(photos, "ripe apples")).target == "ripe apple"


def test_a_range_of_0_to_1_is_a_fraction(photos):
    shares = [0.03 * n for n in range(1, 13)]
    for header in ("severity (0-1)", "Severidade [0–1]", "cover (0 to 1)"):
        reading = _read(photos, header, shares)
        assert (reading.doubt, reading.column.unit) == ("", "fraction")
    assert _read(photos, "severity (0-1)", IN_ORDER).doubt
    assert _read(photos, "Severity (0-10)", RATINGS).doubt


@pytest.mark.parametrize(
    ("header", "note"), [("Severity (%)", "12 in %"), ("size (mm)", "12 in mm")]
)
def test_the_unit_of_a_header_is_that_of_its_numbers(photos, header, note):
    assert note in _read(photos, header, SHARES).note


@pytest.mark.parametrize(
    ("header", "value", "ask"),
    [
        ("Datum", "12.05.2026", "slice"),
        ("Fecha", "2026-05-12", "slice"),
        ("Data", "12/05/2026", "slice"),
        ("Data", "rust", "nothing"),
    ],
)
def test_dates_are_groups_in_other_languages(photos, header, value, ask):
    path = photos.parent / "t.csv"
    rows = "".join(f"{n}.jpg;{value};{COUNTS[n - 1]}\n" for n in range(1, 13))
    path.write_text(f"photo;{header};apples\n{rows}", encoding="utf-8")
    assert (read_column(header, match_rows(photos, path)).column.ask == "slice") is (ask == "slice")


def test_a_name_that_is_english_too_stays_in_questions():
    names = ColumnNames.of(Column(column="d", ask="disease", crop="coffee"), ["cercospora", "roya"])
    assert [names.english(name) for name in ("cercospora", "roya")] == [
        "cercospora",
        "coffee leaf rust",
    ]


def test_an_answer_on_a_name_holds_for_its_other_spellings(photos):
    _read(photos, "Disease", ["rust", "sadiah", "Sadiah", "bicho-xyz", "Bicho Xyz", "rust"] * 2)
    seen = match_rows(photos, photos.parent / "t.csv")
    words = ["Disease.crop=café", "Disease.names.sadiah=healthy"]
    words.append("Disease.names.bicho-xyz=leaf miner")
    proposal = propose_plan(seen, "farm")
    plan = with_answers(proposal.plan, words, seen)
    assert (plan.columns[0].crop, open_questions(plan, seen)) == ("coffee", [])
    note = note_with_names(proposal.notes["Disease"], plan.columns[0])
    assert "Sadiah (4, healthy; also written sadiah)" in note
    assert "Bicho Xyz (4, leaf miner; also written bicho-xyz)" in note


def test_numbers_that_are_nearly_all_zero_have_no_questions(photos):
    rows = "".join(f"{n}.jpg,{COUNTS[n - 1]},{int(n == 3)}\n" for n in range(1, 13))
    path = photos.parent / "t.csv"
    path.write_text(f"photo,apples,trees\n{rows}", encoding="utf-8")
    proposal = propose_plan(match_rows(photos, path), "farm")
    assert [each.ask for each in proposal.plan.columns] == ["count", "nothing"]
    assert "within 1 of 0 on 12 of 12 photos" in proposal.notes["trees"]


@pytest.mark.parametrize(
    ("header", "values", "quantity"),
    [
        ("Spots", COUNTS, "the number of spots"),
        ("Flecken gesamt", COUNTS, "the number of spots"),
        ("Apples", COUNTS, "the number of apples"),
        ("Leaf count", COUNTS, "the number of leaves of the largest plant"),
        ("Affected (%)", SHARES, "the share of the leaf area with symptoms"),
        ("Befall", SHARES, "the share of the leaf area with symptoms"),
        ("Cover", SHARES, "the share of the ground covered by plants"),
        ("Diameter (mm)", SHARES, "the mean diameter of the fruits"),
        ("Height (cm)", SHARES, "the height of the largest plant"),
        ("Number of spots", COUNTS, None),
        ("Apple count", COUNTS, None),
        ("Severity (%)", SHARES, None),
        ("Affected leaf area (%)", SHARES, None),
        ("Ground cover", SHARES, None),
        ("Apple diameter (mm)", SHARES, None),
        ("Plant height (cm)", SHARES, None),
    ],
)
def test_a_header_that_may_stand_above_something_else_is_told(photos, header, values, quantity):
    rows = "".join(f"{n}.jpg|{value}\n" for n, value in enumerate(values, start=1))
    path = photos.parent / "t.csv"
    path.write_text(f"photo|{header}\n{rows}", encoding="utf-8")
    proposal = propose_plan(match_rows(photos, path), "farm")
    assert proposal.loose == ({header: quantity} if quantity else {})


def test_loose_words_are_words_of_their_measure():
    for measure in measures().values():
        assert {*measure.loose} <= {*measure.words}, measure.name


def test_a_header_with_words_of_two_measures_is_asked_about(photos):
    reading = _read(photos, "Lesion count", COUNTS)
    assert (reading.column.ask, reading.is_loose) == ("", False)
    assert reading.doubt == "its header has words of 'severity' and of 'count'"


@pytest.mark.parametrize("header", ["Lesions", "lesões", "Lésions"])
def test_whole_numbers_below_lesions_may_be_counts(photos, header):
    reading = _read(photos, header, [12, 30, 5, 7, 0, 80, 44, 21, 3, 9, 10, 60])
    assert reading.column.ask == ""
    assert reading.doubt.startswith("its whole numbers may be numbers of")
    assert _read(photos, f"{header} (%)", COUNTS).column.ask == "severity"
    assert _read(photos, header, SHARES).column.ask == "severity"


def test_fractions_are_compared_with_0_in_percent(photos):
    """0.35 of a leaf is 35 %: it is not within 2 percentage points of 0."""
    rows = "".join(f"{n}.jpg,{COUNTS[n - 1]},{SHARES[n - 1] / 100}\n" for n in range(1, 13))
    path = photos.parent / "t.csv"
    path.write_text(f"photo,apples,severity\n{rows}", encoding="utf-8")
    seen = match_rows(photos, path)
    plan = propose_plan(seen, "farm").plan
    assert [each.ask for each in plan.columns] == ["count", "severity"]
    assert [need.key for need in open_questions(plan, seen)] == ["unit"]
    said = with_answers(plan, ["severity.unit=fraction"], seen)
    assert said.columns[1].unit == "fraction"


def test_a_rating_that_counts_up_names_nothing(photos):
    reading = _read(photos, "Vigour rating (0-9)", IN_ORDER[:9])
    assert "they name things" not in reading.note


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("Doença do café", "{}"),
        ("Cultura;Doença", "café;{}"),
        ("Crop;Disease", "coffee;{}"),
    ],
)
def test_the_crop_is_that_of_the_header_or_of_a_column_of_crops(photos, header, cells):
    names = ["ferrugem", "sadia"] * 6
    lines = [f"{at}.jpg;{cells.format(name)}" for at, name in enumerate(names, start=1)]
    table = photos.parent / "crops.csv"
    table.write_text("\n".join([f"photo;{header}", *lines]), encoding="utf-8")
    seen = match_rows(photos, table)
    plan = propose_plan(seen, "farm").plan
    assert (plan.columns[-1].ask, plan.columns[-1].crop) == ("disease", "coffee")
    assert open_questions(plan, seen) == []


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("miner?", ["coffee leaf miner"]),
        ("healty", ["healthy"]),
        ("ferrugen", ["coffee leaf rust"]),
        ("CLR", ["coffee leaf rust"]),
        ("ojo de gallo", []),
        ("xyz", []),
    ],
)
def test_only_names_that_may_be_meant_are_offered(name, near):
    assert nearest_names(name, "disease", "coffee") == near


@pytest.mark.parametrize(
    ("names", "suggested"),
    [
        (["rust", "leaf miner", "healty"], {"names": "healthy"}),
        (["hongo", "xyz"], {"ask": "class"}),
    ],
)
def test_the_printed_command_keeps_the_rows(photos, names, suggested):
    table = photos.parent / "unknown.csv"
    rows = [f"{at}.jpg,{name}" for at, name in enumerate(names * 2, start=1)]
    table.write_text("\n".join(["photo,Disease", *rows]), encoding="utf-8")
    seen = match_rows(photos, table)
    questions = open_questions(propose_plan(seen, "farm").plan, seen)
    assert {each.key: each.suggested for each in questions} == suggested


@pytest.mark.parametrize("header", ["Vigour (0-9)", "Rating 0-9", "Vigour score"])
def test_small_steps_below_a_scale_are_ratings(photos, header):
    assert _read(photos, header, RATINGS).column.ask == "rating"


def test_a_word_of_a_measure_with_its_unit_is_asked_about(photos):
    assert _read(photos, "Damage (%)", SHARES).doubt
    assert _read(photos, "Área lesionada (%)", SHARES).column.ask == "severity"
