"""Questions that describe what one sees: hosts, sentences on looks, and when a description is believed."""

from datetime import date

import numpy as np
import pytest

from agrotools.knowledge.entries import Entry
from agrotools.knowledge.evidence import by_looks
from agrotools.knowledge.retrieval import KnowledgeIndex
from agrotools.knowledge.text_index import FEATURES, AppearanceIndex
from agrotools.knowledge.words import folded, hosts_named, hosts_of, terms


def entry(key: str, crops: tuple[str, ...], *described: str) -> Entry:
    kind, _, slug = key.partition(".")
    return Entry.model_validate(
        {
            "id": key, "kind": kind, "coverage": "stub", "last_reviewed": date(2026, 11, 20), "crops": crops,
            "described_as": described, "names": {"en": slug.replace("_", " ")},
        }
    )  # fmt: skip


ENTRIES = (
    entry("disease.apple_scab", ("apple",), "olive velvety smudges on the leaves", "crusty cracked fruit"),
    entry("disease.vine_mildew", ("grape",), "white flour on leaves and berries", "musty smell in the rows"),
    entry("disease.gourd_mildew", ("cucurbit",), "white flour on leaves and stalks", "dull film that rubs off"),
    entry("pest.leaf_beetle", ("potato",), "round striped beetle eats the leaves bare", "slimy larvae in groups"),
    entry("weed.bindweed", (), "twining creeper with white funnel flowers"),
    entry("crop.apple", ()),
)
INDEX = KnowledgeIndex(ENTRIES)


def features(query: str) -> dict[str, dict[str, float]]:
    found = AppearanceIndex(ENTRIES).features([terms(word) for word in folded(query).split()], query)
    return {one.id: dict(zip(FEATURES, row.tolist(), strict=True)) for one, row in zip(ENTRIES, found, strict=True)}


@pytest.mark.parametrize(
    ("query", "hosts"),
    [
        ("my apple trees", {"apple"}), ("sweet corn and courgettes", {"maize", "squash"}),
        ("orange powder on leaves", set()), ("our oranges drop", {"citrus"}),
        ("leaf of an orange tree", {"citrus"}), ("a climbing vine", set()),
        ("the vines in our vineyard", {"grape"}), ("rose bushes and box hedge", {"rose", "boxwood"}),
    ],
)  # fmt: skip
def test_hosts_are_told_from_colours_and_parts(query, hosts):
    assert hosts_named(query)[0] == hosts


def test_hosts_choose_between_entries_that_look_alike():
    assert "cucumber" in hosts_of("cucurbit")
    assert hosts_of("bell pepper") == hosts_of("chilli") == {"pepper"}
    assert INDEX.search("white flour on the leaves of my grapes")[0].entry.id == "disease.vine_mildew"
    assert INDEX.search("white flour on the leaves of my cucumbers")[0].entry.id == "disease.gourd_mildew"
    found = features("white flour on the leaves of my roses")
    assert (found["disease.vine_mildew"]["other_host"], found["weed.bindweed"]["other_host"]) == (1.0, 0.0)


def test_pairs_of_words_and_animals_count_and_remarks_do_not():
    found = features("white flour on brown berries")
    assert (
        found["disease.vine_mildew"]["pairs"] > features("berries brown, flowers white")["disease.vine_mildew"]["pairs"]
    )
    found = features("striped beetle on leaves")
    assert found["pest.leaf_beetle"]["other_creature"] == 0.0
    assert found["disease.apple_scab"]["other_creature"] == 1.0
    hits = INDEX.search("olive velvety smudges on the leaves of an apple tree", top_k=5)
    assert hits[0].entry.id == "disease.apple_scab"
    assert {hit.document.section for hit in hits} == {"names"}
    assert not any(features("crusty cracked apple fruit")["crop.apple"].values())


def test_the_chance_falls_with_what_fits_less_and_stays_one_of_the_allowed():
    rows = np.zeros((3, len(FEATURES)))
    rows[0, :5] = 1.0
    rows[1, :5] = 0.5
    order, chances = by_looks(rows, np.ones(3, bool))
    assert order[0] > order[1] > order[2] == 0.0
    assert 1 >= chances[0] > chances[1] > chances[2] == 0.0
    assert by_looks(rows, np.array([False, True, True]))[1][0] == 0.0
    assert not by_looks(rows, np.zeros(3, bool))[1].any()
