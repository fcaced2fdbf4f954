"""Predictions as people write them: words beside numbers, yes and no in other languages, photos in place of ids."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest

import agrotools as at
from agrotools.core import UndecidedError, UsageError
from agrotools.core.readings import Readings
from agrotools.foreign.prediction_columns import ColumnAnswers
from agrotools.foreign.predictions import import_predictions
from agrotools.loading import load_benchmark
from agrotools.loading.photos import samples_of_photos
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from agrotools.scoring.slots import answer_of, score_slot
from support.sums_benchmark import HEADER

COUNTS = [4, 13, 9, 20, 7, 11]
PHOTOS = [f"plot_{n:02}.jpg" for n in range(1, len(COUNTS) + 1)]
LIMIT = 10
VALUE = {"type": "tolerance", "name": "value", "label": "the number of apples", "abs_tol": 1}
LIMITS = {
    "type": "boolean",
    "name": "above_limit",
    "label": "whether there are more apples than the limit",
}


def sample(folder, name, photo, query, slots):
    content = photo.encode()
    digest = sha256(content).hexdigest()
    (folder / "files").mkdir(exist_ok=True)
    (folder / "files" / f"{digest}.csv").write_bytes(content)
    picture = {
        "name": "image_1.csv",
        "path": f"files/{digest}.csv",
        "kind": "table",
        "sha256": digest,
    }
    return {
        "id": name, "query": query, "files": [picture], "family": "CM", "task_type": "tree_counting",
        "answer_type": "tolerance" if len(slots) == 1 else "exact", "template": "own",
        "source": "made up", "toolset": ["calculate"], "answer": slots,
        "metadata": {"photos": {digest: photo}},
    }  # fmt: skip


def built(folder, name, rows):
    """The benchmark of these samples, which :func:`sample` has made in the folder."""
    (folder / "benchmark.toml").write_text(HEADER.replace('"sums"', f'"{name}"'))
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_benchmark(folder)


@pytest.fixture(scope="module")
def orchard(tmp_path_factory):
    """Two questions about each photo: the number of apples (``a-N``), and whether it is above a limit (``b-N``)."""
    folder = tmp_path_factory.mktemp("orchard")
    rows = []
    for n, (photo, count) in enumerate(zip(PHOTOS, COUNTS, strict=True), start=1):
        value = {**VALUE, "value": count}
        above = {**LIMITS, "value": count > LIMIT}
        rows.append(sample(folder, f"a-{n}", photo, f"How many apples? {n}", [value]))
        rows.append(sample(folder, f"b-{n}", photo, f"More than {LIMIT}? {n}", [above, value]))
    return built(folder, "orchard", rows)


def read(folder, benchmark, content, name="p.csv", **chosen):
    """Scores of the slots of each sample, the readings, and the counts of a file."""
    file = folder / name
    file.write_text(content)
    readings = Readings()
    out = folder / f"run {len([*folder.iterdir()])}"
    run, counts = import_predictions(
        file, benchmark, "orchard", out=out, readings=readings, chosen=ColumnAnswers(**chosen)
    )
    records = at.read_run(run).samples()
    return {record.sample.id: scores_of(record) for record in records}, readings, counts


def scores_of(record):
    """Scores of the slots of a record; None for an invalid one."""
    answer = answer_of(record)
    slots = record.sample.answer
    return None if answer is None else [score_slot(slot, slots, answer).value for slot in slots]


def csv_of(head, *rows):
    return "\n".join([head, *rows]) + "\n"


# --- words beside values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    ["13", "13,0", "~13", "13 maçãs", "13 manzanas", "13 Äpfel", "13 apples", "13 unidades", "13 苹果"],
)  # fmt: skip
def test_a_number_is_read_beside_words_that_change_nothing(tmp_path, orchard, written):
    content = csv_of("id;prediction", f"a-2;{written}")
    scores, _, counts = read(tmp_path, orchard, content)
    assert scores["a-2"] == [1]
    assert not [kind for kind in counts.problems if "not read" in kind]


@pytest.mark.parametrize(
    "written",
    ["13 folhas", "13 pears", "3 dozen", "more than 13", "about 13", "cerca de 13", "thirteen", "13 or 14", "1O",
     "5 mortas", "13?"],
)  # fmt: skip
def test_what_may_mean_another_number_is_named(tmp_path, orchard, written):
    scores, _, counts = read(tmp_path, orchard, csv_of("id;prediction", f"a-2;{written}"))
    assert scores["a-2"] == [0]
    assert counts.problems["answers that are not read (they score 0)"] == [
        f"row 2 (id a-2): {written!r}"
    ]


@pytest.mark.parametrize("header", ["prediction", "value"])
@pytest.mark.parametrize(
    ("label", "unit", "written", "score"),
    [
        ("number of peaches that can be seen", None, "13 peaches", 1),
        ("number of peaches that can be seen", None, "13 pcs", 1),
        ("number of peaches that can be seen", None, "value: 13", 1),
        ("number of peaches that can be seen", None, "value: 13 or 14", 0),
        ("number of peaches that can be seen", None, "13 leaves", 0),
        ("share of the leaf that is diseased", "%", "13,0 %", 1),
        ("share of the leaf that is diseased", "%", "13 percent", 1),
        ("share of the leaf that is diseased", "%", "13 por cento", 0),
    ],
)
def test_a_prediction_and_a_column_for_the_value_are_read_alike(
    tmp_path, header, label, unit, written, score
):
    slot = {**VALUE, "label": label, "unit": unit, "value": 13}
    rows = [sample(tmp_path, "s", "x.jpg", "How much?", [slot])]
    scores, _, _ = read(
        tmp_path, built(tmp_path, "own", rows), csv_of(f"id;{header}", f"s;{written}")
    )
    assert scores["s"] == [score]


@pytest.mark.parametrize(
    ("yes", "no"),
    [("yes", "no"), ("sim", "não"), ("Sí", "No"), ("oui", "non"), ("ja", "nein"), ("是", "否"), ("VERDADEIRO", "FALSO"),
     ("S", "N"), ("1", "0"), ("1.0", "0.0"), ("да", "нет")],
)  # fmt: skip
def test_yes_and_no_are_read_in_other_languages(tmp_path, orchard, yes, no):
    rows = [
        f"b-{n};{count};{yes if count > LIMIT else no}" for n, count in enumerate(COUNTS, start=1)
    ]
    wrong = f"b-1;4;{yes}"
    right, _, counts = read(
        tmp_path, orchard, csv_of("id;value;above_limit", *rows), column="value"
    )
    assert [right[f"b-{n}"] for n in range(1, len(COUNTS) + 1)] == [[1, 1]] * len(COUNTS)
    assert not [kind for kind in counts.problems if "score 0" in kind]
    others, _, _ = read(tmp_path, orchard, csv_of("id;value;above_limit", wrong))
    assert others["b-1"] == [0, 1]


def test_a_yes_that_is_not_understood_is_named(tmp_path, orchard):
    rows = ["b-1;5;talvez", "b-2;12;sim"]
    scores, _, counts = read(tmp_path, orchard, csv_of("id;value;above_limit", *rows))
    assert scores["b-1"][0] == 0
    assert scores["b-2"] == [1, 1]
    kind = "values that are not read (they score 0)"
    assert counts.problems[kind] == ["row 2 (id b-1): above_limit 'talvez'"]


# --- photos -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spelt", [str, str.upper, lambda photo: f"C:\\photos\\{photo}", lambda photo: photo.partition(".")[0]]
)  # fmt: skip
@pytest.mark.parametrize("column", ["id", "photo", "foto"])
def test_rows_by_photo_belong_to_the_questions_that_they_can_answer(
    tmp_path, orchard, spelt, column
):
    rows = [f"{spelt(photo)};{count + 1}" for photo, count in zip(PHOTOS, COUNTS, strict=True)]
    content = csv_of(f"{column};prediction", *rows, "other.jpg;3")
    scores, readings, counts = read(tmp_path, orchard, content)
    assert scores == {f"a-{n}": [1] for n in range(1, len(PHOTOS) + 1)}
    assert f"photos by {column}" in readings.taken
    assert readings.left == ["6 samples that ask for above_limit, value"]
    row = f"row {len(PHOTOS) + 2}"
    assert [name.partition(" (")[0] for name in counts.problems["rows without a sample"]] == [row]


def test_rows_by_photo_that_may_answer_two_questions_ask_which(tmp_path, orchard):
    rows = [f"{photo};{count + 1};sim" for photo, count in zip(PHOTOS, COUNTS, strict=True)]
    content = csv_of("foto;value;above_limit", *rows)
    with pytest.raises(UndecidedError) as raised:
        read(tmp_path, orchard, content)
    assert raised.value.answers == ("--only=asks=above_limit, value",)
    both, _, _ = read(tmp_path, orchard, content, only={"asks": "above_limit, value"})
    assert both == {f"b-{n}": [count > LIMIT, 1] for n, count in enumerate(COUNTS, start=1)}
    values, _, _ = read(tmp_path, orchard, content, only={"asks": "value"})
    assert {*values} == {f"a-{n}" for n in range(1, len(COUNTS) + 1)}


@pytest.fixture(scope="module")
def farm(tmp_path_factory):
    """The number of apples (``a-N``), of pears (``p-N``), and of apples with a limit (``b-N``), from two columns."""
    folder = tmp_path_factory.mktemp("farm")
    rows = []
    for n, (photo, count) in enumerate(zip(PHOTOS, COUNTS, strict=True), start=1):
        value = {**VALUE, "value": count}
        above = {**LIMITS, "value": count > LIMIT}
        pears = {**VALUE, "label": "the number of pears", "value": count + 30}
        for name, column, slots in (
            ("a", "Apples", [value]),
            ("b", "Apples", [above, value]),
            ("p", "Pears", [pears]),
        ):
            row = sample(folder, f"{name}-{n}", photo, f"How many? {name} {n}", slots)
            row["metadata"]["column"] = column
            rows.append(row)
    return built(folder, "farm", rows)


@pytest.mark.parametrize("header", ["Pears", "pears", "Pears (pieces)", "predicted_pears"])
def test_a_column_of_the_table_that_the_benchmark_is_made_of_is_scored(tmp_path, farm, header):
    rows = [f"{photo};{count + 31}" for photo, count in zip(PHOTOS, COUNTS, strict=True)]
    for chosen in ({}, {"column": header}):
        scores, readings, _ = read(tmp_path, farm, csv_of(f"photo;{header}", *rows), **chosen)
        assert scores == {f"p-{n}": [1] for n in range(1, len(PHOTOS) + 1)}
        assert f"column {header.lower()}" in readings.taken
    by_id = csv_of(f"id;{header}", *(f"p-{n};{count + 31}" for n, count in enumerate(COUNTS, 1)))
    scores, _, _ = read(tmp_path, farm, by_id)
    assert [*scores.values()] == [[1]] * len(COUNTS)


def test_the_table_beside_predictions_of_its_values_is_the_reference(tmp_path, farm):
    rows = [
        f"{photo};{count + 30};{count + 31}" for photo, count in zip(PHOTOS, COUNTS, strict=True)
    ]
    scores, readings, _ = read(tmp_path, farm, csv_of("photo;Pears;predicted_pears", *rows))
    assert scores == {f"p-{n}": [1] for n in range(1, len(PHOTOS) + 1)}
    assert "column predicted_pears" in readings.taken


def test_several_columns_of_this_table_ask_which(tmp_path, farm):
    rows = [f"{photo};{count + 1};{count}" for photo, count in zip(PHOTOS, COUNTS, strict=True)]
    content = csv_of("photo;apples;pears", *rows)
    with pytest.raises(UndecidedError) as raised:
        read(tmp_path, farm, content)
    assert raised.value.answers == ("--only=asks=Apples: value",)
    scores, readings, _ = read(tmp_path, farm, content, only={"asks": "Pears: value"})
    assert scores == {f"p-{n}": [0] for n in range(1, len(PHOTOS) + 1)}
    assert "column pears" in readings.taken


@pytest.fixture(scope="module")
def leaves(tmp_path_factory):
    """What half of the photos show, with another name of one choice; and the number of leaves in the others."""
    folder = tmp_path_factory.mktemp("leaves")
    rows = []
    for n, photo in enumerate(PHOTOS, start=1):
        shown = "rust" if n % 4 else "a healthy leaf"
        name = {"type": "exact", "name": "name", "label": "disease", "value": shown,
                "choices": ["rust", "a healthy leaf"],
                "aliases": {"a healthy leaf": ["healthy"], "rust": ["leaf rust"]}}  # fmt: skip
        count = {**VALUE, "label": "the number of leaves", "value": n}
        column, slots = ("Disease", [name]) if n % 2 == 0 else ("Leaves", [count])
        row = sample(folder, f"s-{n}", photo, f"What? {n}", slots)
        row["metadata"]["column"] = column
        rows.append(row)
    return built(folder, "leaves", rows)


def test_other_names_of_a_label_are_right_and_labels_that_are_no_choice_are_named(tmp_path, leaves):
    rows = [f"{PHOTOS[1]};Leaf rust", f"{PHOTOS[3]};healthy", f"{PHOTOS[5]};Roost"]
    for header in ("disease", "prediction"):
        scores, _, counts = read(tmp_path, leaves, csv_of(f"photo;{header}", *rows))
        assert (scores["s-2"], scores["s-4"]) == ([1], [1])
        assert scores["s-6"] != [1]
        (named,) = counts.problems["labels that are none of the choices (they score 0)"]
        assert "row 4" in named
        assert "'Roost'" in named


def test_photos_with_other_questions_only_are_told_apart_from_unknown_ones(tmp_path, leaves):
    rows = [f"{photo};rust" for photo in PHOTOS]
    _, _, counts = read(tmp_path, leaves, csv_of("photo;prediction", *rows, "other.jpg;rust"))
    (kind,) = [kind for kind in counts.problems if "no such question" in kind]
    assert len(counts.problems[kind]) == 3
    assert len(counts.problems["rows without a sample"]) == 1


def test_the_table_itself_is_the_reference_unless_the_user_says_otherwise(tmp_path, farm):
    rows = [f"{photo};{count}" for photo, count in zip(PHOTOS, COUNTS, strict=True)]
    content = csv_of("photo;apples", *rows)
    with pytest.raises(UsageError, match="taken for the reference"):
        read(tmp_path, farm, content)
    scores, _, _ = read(tmp_path, farm, content, column="apples")
    assert scores == {f"a-{n}": [1] for n in range(1, len(PHOTOS) + 1)}


def test_samples_that_ask_the_same_about_one_photo_need_their_ids(
    tmp_path, orchard, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("crowded")
    value = {**VALUE, "value": 3}
    rows = [sample(folder, f"c-{n}", "x.jpg", f"How many? {n}", [value]) for n in (1, 2)]
    crowded = built(folder, "crowded", rows)
    with pytest.raises(UsageError, match="c-1, c-2") as raised:
        read(tmp_path, crowded, csv_of("photo;prediction", "x.jpg;3"))
    assert "benchmarks describe" in (raised.value.hint or "")


def test_the_description_lists_the_photo_and_the_question_of_each_sample(orchard):
    listed = samples_of_photos(orchard.samples)
    first = listed[0]
    assert (first.id, first.photos, first.question) == ("a-1", (PHOTOS[0],), "How many apples? 1")
    assert {each.asks for each in listed} == {"value", "above_limit, value"}


# --- repeated rows, remarks, numbers of rows --------------------------------------------------------------------------


REMARKS = ["a-1;4;", "a-1;9;second try", "a-2;13;windy", "a-3;9;", "a-3;3;second try", "a-4;21;"]


def test_a_column_of_remarks_is_no_setting(tmp_path, orchard):
    content = csv_of("id;prediction;remark of Ana", *REMARKS)
    with pytest.raises(UndecidedError) as raised:
        read(tmp_path, orchard, content)
    assert raised.value.answers == ("--repeated=last",)
    first, _, counts = read(tmp_path, orchard, content, repeated="first")
    assert [first[f"a-{n}"] for n in (1, 2, 3, 4)] == [[1]] * 4
    assert counts.problems["repeated rows (the first of a sample counts)"] == [
        "row 3 (id a-1)",
        "row 6 (id a-3)",
    ]


def test_repeated_answers_the_question_on_repeated_rows(tmp_path, orchard):
    """Also where a column of a few values, each for all samples, tells the rows apart."""
    rows = [f"a-{n};{count + more};{who}" for n, count in enumerate(COUNTS, start=1)
            for who, more in (("Ana", 1), ("Rui", 5))]  # fmt: skip
    content = csv_of("id;prediction;who", *rows)
    with pytest.raises(UndecidedError) as raised:
        read(tmp_path, orchard, content)
    assert raised.value.answers == ("--only=who=Ana",)
    first, _, _ = read(tmp_path, orchard, content, repeated="first")
    assert [first[f"a-{n}"] for n in range(1, len(COUNTS) + 1)] == [[1]] * len(COUNTS)


def test_rows_have_their_numbers_of_the_file(tmp_path, orchard):
    rows = ["a-1;4;x", "zz;4;y", "a-2;lots;x", "", "a-3;many;y"]
    content = csv_of("id;prediction;model", *rows)
    kind = "answers that are not read (they score 0)"
    for only, named in ({"model": "x"}, [4]), ({"model": "y"}, [6]), ({}, [4, 6]):
        _, _, counts = read(tmp_path, orchard, content, only=only)
        assert [int(each.split()[1]) for each in counts.problems[kind]] == named


# --- questions for several values -------------------------------------------------------------------------------------


def test_one_value_for_a_question_with_several_is_named_with_the_way_to_give_them(
    tmp_path, orchard
):
    rows = [f"b-{n};{count + 1}" for n, count in enumerate(COUNTS, start=1)] + ["a-1;4"]
    content = csv_of("id;prediction", *rows)
    _, _, counts = read(tmp_path, orchard, content)
    (kind,) = [kind for kind in counts.problems if "do not name" in kind]
    assert "above_limit, value" in kind
    assert "--only asks=value" in kind
    assert len(counts.problems[kind]) == len(COUNTS)
    alone, _, _ = read(tmp_path, orchard, content, only={"asks": "value"})
    assert alone["a-1"] == [1]
    assert {*alone} == {f"a-{n}" for n in range(1, len(COUNTS) + 1)}


def test_a_missing_value_of_a_question_is_named(tmp_path, orchard):
    _, _, counts = read(tmp_path, orchard, csv_of("id;value;above_limit", "b-1;4;", "b-2;5;no"))
    kind = "answers that lack a value where the question asks for above_limit, value (they score 0)"
    assert counts.problems[kind] == ["row 2 (id b-1): above_limit"]


def test_what_no_sample_asks_for_cannot_be_chosen(tmp_path, orchard):
    with pytest.raises(UsageError, match="there is no yield"):
        read(tmp_path, orchard, csv_of("id;prediction", "a-1;4"), only={"asks": "yield"})


# --- modes and parts --------------------------------------------------------------------------------------------------


def test_a_column_mode_says_that_answers_are_those_of_a_system_with_tools(tmp_path, orchard):
    rows = [f"a-{n};{count};{mode}" for n, count in enumerate(COUNTS, start=1)
            for mode in ("end-to-end", "no-tool")]  # fmt: skip
    content = csv_of("id;prediction;mode", *rows)
    file = tmp_path / "p.csv"
    file.write_text(content)
    run, counts = import_predictions(file, orchard, "orchard", out=tmp_path / "run")
    modes = [record.mode for record in iter_records(run)]
    assert modes.count("end-to-end") == modes.count("no-tool") == 2 * len(COUNTS)
    assert not [kind for kind in counts.problems if "mode" in kind]


def test_a_file_of_the_quick_part_is_a_run_of_the_quick_part(tmp_path, orchard):
    quick = tuple(f"a-{n}" for n in range(1, 5))
    benchmark = replace(orchard, header=orchard.header.model_copy(update={"quick": quick}))
    for ids, is_quick in (
        (quick, True),
        (quick[:2], True),
        (quick[:1], False),
        ((*quick, "b-1"), False),
    ):
        file = tmp_path / f"{len(ids)}.csv"
        file.write_text(csv_of("id;prediction", *(f"{name};4" for name in ids)))
        run, counts = import_predictions(
            file, benchmark, "orchard", out=tmp_path / f"run{len(ids)}"
        )
        assert read_manifest(run).quick == is_quick
        missing = counts.problems.get("samples without a row (invalid, left out of the scores)", [])
        assert len(missing) == (len(quick) if is_quick else 2 * len(COUNTS)) - len(ids)
