"""Predictions as people write them: words beside numbers, yes and no in other languages, photos in place of ids."""

import json

import pytest

import agrotools as at
from agrotools.benchmarks import load_benchmark
from agrotools.core.readings import Readings
from agrotools.runner.prediction_columns import Chosen
from agrotools.runner.predictions import import_predictions
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


def sample(name, photo, query, slots):
    return {
        "id": name, "query": query, "files": [], "family": "CM", "task_type": "tree_counting",
        "answer_type": "tolerance" if len(slots) == 1 else "exact", "template": "own",
        "source": "made up", "toolset": ["calculate"], "answer": slots, "metadata": {"photos": {f"sha-{photo}": photo}},
    }  # fmt: skip


@pytest.fixture(scope="module")
def orchard(tmp_path_factory):
    """Two questions about each photo: the number of apples (``a-N``), and whether it is above a limit (``b-N``)."""
    folder = tmp_path_factory.mktemp("orchard")
    (folder / "benchmark.toml").write_text(HEADER.replace('"sums"', '"orchard"'))
    rows = []
    for n, (photo, count) in enumerate(zip(PHOTOS, COUNTS, strict=True), start=1):
        value = {**VALUE, "value": count}
        above = {**LIMITS, "value": count > LIMIT}
        rows.append(sample(f"a-{n}", photo, f"How many apples? {n}", [value]))
        rows.append(sample(f"b-{n}", photo, f"More than {LIMIT}? {n}", [above, value]))
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_benchmark(folder)


def read(folder, benchmark, content, name="p.csv", **chosen):
    """Scores of the slots of each sample, the readings, and the counts of a file."""
    file = folder / name
    file.write_text(content)
    readings = Readings()
    out = folder / f"run {len([*folder.iterdir()])}"
    run, counts = import_predictions(
        file, benchmark, "orchard", out=out, readings=readings, chosen=Chosen(**chosen)
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
    ["13", "13,0", "about 13", "~13", "cerca de 13", "aprox. 13", "etwa 13", "environ 13", "13 (approx.)", "13 maçãs",
     "unas 13 manzanas", "13 Äpfel", "13 apples", "13 unidades", "13 苹果", "13 or so"],
)  # fmt: skip
def test_a_number_is_read_beside_words_that_change_nothing(tmp_path, orchard, written):
    content = csv_of("id;prediction", f"a-2;{written}")
    scores, _, counts = read(tmp_path, orchard, content)
    assert scores["a-2"] == [1]
    assert not [kind for kind in counts.problems if "not read" in kind]


@pytest.mark.parametrize(
    "written", ["13 folhas", "13 pears", "3 dozen", "more than 13", "13 or 14", "1O", "5 mortas", "13?"]
)  # fmt: skip
def test_what_may_mean_another_number_is_named(tmp_path, orchard, written):
    scores, _, counts = read(tmp_path, orchard, csv_of("id;prediction", f"a-2;{written}"))
    assert scores["a-2"] == [0]
    assert counts.problems["answers that are not read (they score 0)"] == [
        f"row 1 (id a-2): {written!r}"
    ]


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
    assert counts.problems[kind] == ["row 1 (id b-1): above_limit 'talvez'"]
