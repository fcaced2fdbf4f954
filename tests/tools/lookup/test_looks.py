"""Questions that describe what one sees: hosts, sentences on looks, and when a description is believed."""

from datetime import date

import pytest

from agrotools.knowledge.entries import KnowledgeEntry
from agrotools.knowledge.words import hosts_named, hosts_of
from agrotools_tools.lookup.retrieval import KnowledgeIndex


def entry(key: str, crops: tuple[str, ...], *described: str) -> KnowledgeEntry:
    kind, _, slug = key.partition(".")
    return KnowledgeEntry.model_validate(
        {
            "id": key, "kind": kind, "coverage": "stub", "last_reviewed": date(2026, 11, 20), "crops": crops,
            "described_as": described, "names": {"en": slug.replace("_", " ")},
        }
    )  # fmt: skip


ENTRIES = (
    entry(
        "disease.apple_scab",
        ("apple",),
        "olive velvety smudges on the leaves",
        "crusty cracked fruit",
    ),
    entry(
        "disease.vine_mildew",
        ("grape",),
        "white flour on leaves and berries",
        "musty smell in the rows",
    ),
    entry(
        "disease.gourd_mildew",
        ("cucurbit",),
        "white flour on leaves and stalks",
        "dull film that rubs off",
    ),
    entry(
        "pest.leaf_beetle",
        ("potato",),
        "round striped beetle eats the leaves bare",
        "slimy larvae in groups",
    ),
    entry("weed.bindweed", (), "twining creeper with white funnel flowers"),
    entry("crop.apple", ()),
)
INDEX = KnowledgeIndex(ENTRIES)


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
    assert (
        INDEX.search("white flour on the leaves of my grapes")[0].entry.id == "disease.vine_mildew"
    )
    assert (
        INDEX.search("white flour on the leaves of my cucumbers")[0].entry.id
        == "disease.gourd_mildew"
    )
    hits = INDEX.search("olive velvety smudges on the leaves of an apple tree", top_k=5)
    assert hits[0].entry.id == "disease.apple_scab"
    assert {hit.document.section for hit in hits} == {"names"}
