"""Retrieval on a small base made here: names, slips, symptoms, filters, and above all "not found"."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.knowledge.entries import KnowledgeEntry
from agrotools_tools.lookup.retrieval import KnowledgeIndex


def entry(
    key: str, sci: str | None = None, aliases=(), zh=(), crops=(), claims=(), datasets=None
) -> KnowledgeEntry:
    kind, _, slug = key.partition(".")
    names = {"en": slug.replace("_", " "), "sci": sci, "aliases": tuple(aliases), "zh": tuple(zh)}
    return KnowledgeEntry.model_validate({
        "id": key, "kind": kind, "coverage": "partial" if claims else "stub", "last_reviewed": date(2026, 11, 20),
        "crops": tuple(crops), "names": names | {"datasets": datasets or {}},
        "claims": tuple({"section": section, "text": text, "sources": ("g",)} for section, text in claims),
    })  # fmt: skip


ENTRIES = (
    entry("disease.apple_scab", "Venturia inaequalis", zh=["苹果黑星病"], crops=["apple"], claims=[
        ("symptoms", "Olive velvety spots on leaves; corky cracked patches on fruit."),
        ("management", "Rake up fallen leaves in autumn and choose resistant cultivars."),
    ]),
    entry("disease.bean_rust", "Uromyces appendiculatus", crops=["bean"], datasets={"pool": ["bean_bean_rust"]},
          claims=[("symptoms", "Reddish brown pustules full of powder on the underside of leaves.")]),
    entry("disease.cucumber_mildew", crops=["cucumber"],
          claims=[("symptoms", "White powder covers leaves and stems, later they dry.")]),
    entry("pest.soybean_aphid", "Aphis glycines", ["soya aphid"], ["大豆蚜"], ["soybean"]),
    entry("crop.apple", "Malus domestica", zh=["苹果"]),
    entry("crop.soybean", "Glycine max", ["soya"], ["大豆"]),
    entry("weed.field_bindweed", "Convolvulus arvensis",
          claims=[("identification", "A climbing weed with white trumpet flowers.")]),
)  # fmt: skip
INDEX = KnowledgeIndex(ENTRIES)


def first(query: str, **more) -> str | None:
    hits = INDEX.search(query, **more)
    return hits[0].entry.id if hits else None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("apple scab", "disease.apple_scab"),
        ("aplpe scba", "disease.apple_scab"),
        ("bean_bean_rust", "disease.bean_rust"),
        ("soya aphids", "pest.soybean_aphid"),
        ("what can I do about soybean aphid near the river", "pest.soybean_aphid"),
        ("大豆蚜怎么防治？", "pest.soybean_aphid"),
        ("苹果", "crop.apple"),
        ("corky patches on apples, olive velvety blotches on the foliage", "disease.apple_scab"),
        ("floury white coating on leaves and stalks of cucumber", "disease.cucumber_mildew"),
    ],
)
def test_what_is_in_the_base_is_found(query, found):
    assert first(query) == found


@pytest.mark.parametrize(
    "query",
    ["capital of France", "beet rust", "banana weevil", "apple watch", "xqzzt mvrp",
     "disease", "what is it", "leaf leaf leaf",
     "苹果树腐烂病", "北京天气", "!!!", "powdery", "emerald ash borer", "apple"[:2]],
)  # fmt: skip
def test_what_is_not_in_the_base_is_not_found(query):
    assert first(query) is None


def test_entries_are_found_by_id_and_narrowed_by_names_and_topics():
    assert {hit.entry.id for hit in INDEX.search("apple scab", top_k=5)} == {"disease.apple_scab"}
    assert INDEX.search("how do I manage apple scab")[0].document.section == "management"
    assert INDEX.search("symptoms of apple scab")[0].document.section == "symptoms"
    assert [hit.document.section for hit in INDEX.search("apple scab", topic="management")] == [
        "management"
    ]
    assert [hit.document.section for hit in INDEX.search("bean rust", topic="management")] == [
        "names"
    ]
    assert first("apple", kind="disease") is None
    assert first("apple scab", kind="weed") is None
    assert first("white powder covers leaves and stems", crop="apple") is None
    assert (
        first("white powder covers leaves and stems", crop="Cucumbers") == "disease.cucumber_mildew"
    )
    assert first("soybean aphid", crop="soya") == "pest.soybean_aphid"
    hits = INDEX.search("nonsense zzz", kb_id="disease.apple_scab", top_k=5)
    assert {hit.entry.id for hit in hits} == {"disease.apple_scab"}
    assert {hit.document.section for hit in hits} == {"names", "symptoms", "management"}
    empty = KnowledgeIndex(())
    assert empty.search("apple scab") == []
    assert empty.get("pest.x") is None
    other = KnowledgeIndex(tuple(reversed(ENTRIES)))
    for query in ("aplpe scba", "white powder on cucumber leaves", "bean rust", "banana weevil"):
        assert [hit.entry.id for hit in other.search(query)] == [
            hit.entry.id for hit in INDEX.search(query)
        ]


@given(st.text(max_size=300))
def test_any_question_is_answered_or_not_found(query):
    for hit in INDEX.search(query, top_k=5):
        assert 0.3 < hit.score <= 1
