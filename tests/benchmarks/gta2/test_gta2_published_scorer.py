"""GTA-2's aggregation and reading of replies, against vectors worked out by hand."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import pytest

from agrotools.scoring.predictions import PublishedScorerStops
from agrotools_benchmarks.gta2.score import published_grade, root_score

INNER = {
    "id": "1",
    "weight": 3,
    "sub_tasks": [{"id": "1.1", "weight": 2, "grade": 10}, {"id": "1.2", "grade": 4}],
}


@pytest.mark.parametrize(
    ("tree", "score"),
    [
        (INNER, 8.0),
        ([INNER, {"id": "2", "weight": 1, "grade": 6}], 7.5),
        ([{"grade": 7}], 7.0),
        ({"grade": 7, "weight": 5}, 7.0),
        ([{"grade": 10}, {"grade": 5}, {"grade": 0}], 5.0),
        ([{"grade": 10, "weight": 0}, {"grade": 4, "weight": 0}], 0.0),
        (
            [{"weight": 1, "sub_tasks": [{"grade": 10, "weight": 0}]}, {"grade": 8, "weight": 1}],
            4.0,
        ),
        ([{"grade": 9, "sub_tasks": []}, {"grade": 5, "sub_tasks": None}], 7.0),
    ],
)
def test_nodes_are_weighted_means_of_what_is_below_them(tree: Any, score: float) -> None:
    assert root_score(tree, itemgetter("grade")) == pytest.approx(score)


def test_leaves_are_asked_in_written_order_and_an_empty_tree_is_a_leaf() -> None:
    asked: list[str] = []

    def leaf(node: Mapping[str, Any]) -> float:
        asked.append(node["id"])
        return 1

    root_score([INNER, {"id": "2"}], leaf)
    assert asked == ["1.1", "1.2", "2"]
    assert root_score([], lambda node: 3.0 if node["id"] == "root" else 0.0) == 3.0


@pytest.mark.parametrize(
    "tree", [None, "text", 3, [3], [None], [{"weight": None, "grade": 1}], [{"sub_tasks": 3}]]
)
def test_trees_at_which_the_published_scorer_stops_are_named(tree: Any) -> None:
    with pytest.raises(PublishedScorerStops):
        root_score(tree, lambda _: 1.0)


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"score": 7, "analysis": "fine"}', 7.0), ('{"score": 12}', 10.0), ('{"score": -3}', 0.0),
        ('{"score": true}', 1.0), ('{"score": NaN}', 10.0), ('{"analysis": "8 of 10"}', 0.0),
        ('{"score": null, "analysis": "4 files"}', 4.0), ("-3", 3.0), ("[9]", 9.0), ("Out of 10 I give 4.", 10.0),
        ('```json\n{"score": 8.5}\n```', 8.5), ("", 0.0),
    ],
)  # fmt: skip
def test_replies_are_read_as_published(reply: str, score: float) -> None:
    assert published_grade(reply) == score
