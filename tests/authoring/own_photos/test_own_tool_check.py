"""The agreement of a tool with a grower's table, as a sentence and a table."""

import pytest

from agrotools.core import BenchmarkError
from agrotools.formats.table_use import TableUse, stored_use, stored_warnings
from agrotools.formats.tool_check import (
    LabelCount,
    PhotoCheck,
    ToolCheck,
    photos_csv,
    stored_checks,
)
from agrotools.formats.tool_labels import AskedLabel, ToolLabels, stored_labels
from agrotools.scoring.statistics import exact_share_interval
from agrotools_build.own_photos.plan import Column
from agrotools_build.own_photos.questions import ColumnNames
from agrotools_build.own_photos.tool_check import _name_in_words


def _check(**more) -> ToolCheck:
    facts = {"column": "Disease", "tool": "diagnose_pest_disease", "kind": "name", "n": 25}
    lower, upper = exact_share_interval(24, 25)
    return ToolCheck.model_validate({**facts, "agreed": 24, "lower": lower, "upper": upper, **more})


def test_names_in_a_sentence():
    assert _check(silent=("IMG_2013.jpg",)).sentence() == (
        "Disease: diagnose_pest_disease names 24 of 25 photos as you do (80 to 100 %); no name: IMG_2013.jpg"
    )
    both = _check(otherwise=("a.jpg",), silent=("b.jpg", "c.jpg")).sentence()
    assert both.endswith("; another name: a.jpg; no name: b.jpg, c.jpg")
    assert _check().sentence().endswith("(80 to 100 %)")
    of_pack = _check(backend="pack:mine").sentence()
    assert of_pack.startswith("Disease: diagnose_pest_disease (pack:mine) names 24 of 25 photos")


def test_checks_that_someone_changed_are_an_error_with_a_hint():
    assert stored_checks({}) == []
    with pytest.raises(BenchmarkError, match=r"metadata\.tool_check") as refused:
        stored_checks({"tool_check": [{"column": "Disease"}]})
    assert "build the benchmark again" in str(refused.value.hint)


def test_many_photos_are_counted():
    names = tuple(f"{number}.jpg" for number in range(40))
    assert _check(silent=names).sentence().endswith("11.jpg and 28 more")


def test_numbers_in_a_sentence():
    check = _check(
        column="Severity",
        tool="analyze_lesions",
        kind="number",
        abs_tol=2,
        rel_tol=0.2,
        unit="%",
        mean_difference=3.141,
    )
    assert check.sentence() == (
        "Severity: analyze_lesions agrees with you on 24 of 25 photos (80 to 100 %), within 2 percentage points, "
        "or within 20 % of the value, whichever is more; it differs by 3.14 percentage points on average"
    )


def test_the_table_has_a_row_for_each_label():
    labels = [
        LabelCount(label="healthy", right=5, otherwise=0, not_named=1),
        LabelCount(label="rust", right=4, otherwise=2, not_named=0),
    ]
    head, *rows = _check(labels=labels).table()
    assert head.split("  ")[0].strip() == "label"
    assert [row.split() for row in rows] == [["healthy", "5", "0", "1"], ["rust", "4", "2", "0"]]
    assert _check(labels=labels[:1]).table() == []


def test_each_photo_has_a_row_and_those_that_differ_come_first():
    photos = (
        PhotoCheck(photo="a.jpg", table=4.5, tool=4.6, agrees=True, difference=0.1),
        PhotoCheck(photo="b.jpg", table=0.8, tool=2.194, agrees=False, difference=1.394),
        PhotoCheck(photo="c.jpg", table=3.0, agrees=False, reason="there is no leaf"),
    )
    check = _check(column="Severity", kind="number", unit="%", photos=photos)
    assert check.photo_rows() == [
        ["b.jpg", "0.8 %", "2.194 %", "off by +1.39 percentage points"],
        ["c.jpg", "3 %", "-", "no answer: there is no leaf"],
        ["a.jpg", "4.5 %", "4.6 %", "agrees"],
    ]
    head, *rows = photos_csv([check])
    assert head[1:4] == ("photo", "table", "tool")
    assert [row[5] for row in rows] == ["agrees", "differs", "no answer"]


@pytest.mark.parametrize(
    ("hits", "n", "lower", "upper"),
    [(24, 25, 0.796, 0.999), (0, 10, 0.0, 0.308), (10, 10, 0.692, 1.0), (5, 10, 0.187, 0.813)],
)
def test_the_interval_is_that_of_clopper_and_pearson(hits, n, lower, upper):
    assert exact_share_interval(hits, n) == pytest.approx((lower, upper), abs=1e-3)


@pytest.mark.parametrize(("hits", "n"), [(1, 0), (0, 0), (3, 2), (-1, 5)])
def test_no_share_is_refused(hits, n):
    with pytest.raises(ValueError, match="no share"):
        exact_share_interval(hits, n)


def test_what_the_tool_named_is_in_the_words_of_the_table_or_in_english():
    names = ColumnNames.of(Column(column="Disease", ask="disease", crop="coffee"), ["Rost", "Xyz"])
    assert _name_in_words("disease.coffee_leaf_rust", names) == "Rost"
    assert _name_in_words("pest.coffee_leaf_miner", names) == "coffee leaf miner"
    assert _name_in_words("black_sigatoka", names) == "black sigatoka"


def _labels(*labels: tuple[str, tuple[str, ...], int]) -> ToolLabels:
    asked = [AskedLabel(label=label, names=names, n=n) for label, names, n in labels]
    return ToolLabels(column="Disease", tool="diagnose_pest_disease", labels=tuple(asked))


SIGATOKA = ("black sigatoka", ("banana_black_sigatoka", "black sigatoka"), 16)
HEALTHY = ("healthy", ("banana_healthy", "healthy"), 4)


def test_labels_that_a_tool_cannot_give_are_said_with_the_nearest_that_it_can():
    asked = _labels(SIGATOKA, HEALTHY)
    pack = {"sigatoka": "sigatoka", "banana_healthy": "healthy", "panama": "panama"}
    assert [each.label for each in asked.unnamed_by(pack)] == ["black sigatoka"]
    said = asked.warning(pack, "the pack")
    assert "the pack cannot name 1 of 2 labels (16 of 20 photos)" in said
    assert "'healthy', 'panama', 'sigatoka'" in said
    assert said.endswith("--set 'Disease.names.black sigatoka=sigatoka'")
    assert asked.warning({**pack, "banana_black_sigatoka": "bs"}, "the pack") == ""
    far = asked.warning({"banana_healthy": "healthy", "panama": "panama"}, "the pack")
    assert "--set" not in far


def test_a_label_that_another_label_of_the_table_has_is_not_offered():
    asked = _labels(SIGATOKA, ("sigatoka", ("sigatoka",), 4))
    assert "--set" not in asked.warning({"sigatoka": "sigatoka"}, "the pack")


@pytest.mark.parametrize(
    ("used", "with_photo", "says"), [(16, 44, "16 of 44"), (36, 44, ""), (8, 10, ""), (0, 0, "")]
)
def test_a_benchmark_that_uses_few_rows_of_its_table_says_so(used, with_photo, says):
    use = TableUse(used=used, with_photo=with_photo)
    assert bool(use.warning()) is bool(says)
    assert says in use.warning()
    stored = {"table_use": use.model_dump()}
    assert stored_use(stored) == use
    assert len(stored_warnings(stored)) == bool(says)


def test_what_a_build_stored_and_someone_changed_is_an_error_with_a_hint():
    assert (stored_use({}), stored_warnings({}), stored_labels({})) == (None, [], [])
    for read, key in ((stored_use, "table_use"), (stored_labels, "tool_labels")):
        with pytest.raises(BenchmarkError, match=rf"metadata\.{key}") as refused:
            read({key: [{"used": 1}]})
        assert "build the benchmark again" in str(refused.value.hint)
