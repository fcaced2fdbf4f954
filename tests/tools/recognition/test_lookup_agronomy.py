"""The tool lookup_agronomy on the base that ships: typed hits, honest "not found", notes, faults of users' files."""

import pytest

from agrotools.calling import get_tool
from agrotools.core import ToolError
from agrotools.knowledge.entries import load
from agrotools_tools import lookup_agronomy
from agrotools_tools.recognition.lookup_agronomy import LABEL_NOTE


@pytest.fixture(autouse=True)
def _no_user_entries(tmp_path, monkeypatch):
    monkeypatch.setenv("AGROTOOLS_KB", str(tmp_path / "kb"))


def test_a_name_brings_its_entry_with_sources():
    found = lookup_agronomy("apple scab", topic="symptoms")
    assert not found.not_found
    hit = found.hits[0]
    assert (hit.kb_id, hit.kind, hit.section) == ("disease.apple_scab", "disease", "symptoms")
    assert hit.sources
    assert all(source.how and source.licence for source in hit.sources)
    assert 0 < hit.score <= 1
    assert hit.last_reviewed.startswith("20")


@pytest.mark.parametrize(
    "query", ["Venturia inaequalis", "aple scbab", "苹果黑星病", "Apple___Apple_scab"]
)
def test_names_of_all_kinds(query):
    assert lookup_agronomy(query).hits[0].kb_id == "disease.apple_scab"


def test_what_the_base_lacks_is_not_found():
    found = lookup_agronomy("capital of France")
    assert found.not_found
    assert found.hits == ()


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("rust", "disease.coffee_leaf_rust"),
        ("blight", "disease.bean_halo_blight"),
        ("how is mildew treated", "disease.apple_powdery_mildew"),
        ("rust in wheat", "disease.wheat_stem_rust"),
    ],
)
def test_a_name_that_many_share_brings_their_names(query: str, named: str):
    found = lookup_agronomy(query)
    assert found.not_found
    assert found.flags == ("several_entries",)
    assert named in found.notes[0]


@pytest.mark.slow
def test_every_entry_is_found_under_its_own_names():
    missed = []
    for entry in load().entries[::4]:
        for name in (entry.names.en, entry.names.sci):
            if name and entry.id not in {hit.kb_id for hit in lookup_agronomy(name, top_k=5).hits}:
                missed.append((name, entry.id))
    assert missed == []


@pytest.mark.slow
def test_every_entry_is_read_by_its_id():
    for entry in load().entries[::4]:
        found = lookup_agronomy("what is it", kb_id=entry.id, top_k=5)
        assert {hit.kb_id for hit in found.hits} == {entry.id}
        assert found.hits[0].coverage == entry.coverage


def test_chemical_control_carries_a_note_and_thresholds_their_region():
    chemical = [
        entry for entry in load().entries if any(claim.type == "chemical" for claim in entry.claims)
    ]
    assert chemical
    for entry in chemical[::3]:
        (hit,) = lookup_agronomy(entry.names.en, kb_id=entry.id, topic="management").hits
        assert hit.note == LABEL_NOTE
    with_thresholds = [entry for entry in load().entries if entry.claims_of("thresholds")]
    assert with_thresholds
    for entry in with_thresholds[::2]:
        (hit,) = lookup_agronomy(entry.names.en, kb_id=entry.id, topic="thresholds").hits
        for claim, value in zip(entry.claims_of("thresholds"), hit.values, strict=True):
            assert (value.value, value.unit, value.region) == (
                claim.value,
                claim.unit,
                claim.region,
            )
            assert claim.region in hit.text
            assert claim.condition in hit.text


def test_topics_not_covered_and_entries_not_verified_are_flagged():
    entry = next(
        entry
        for entry in load().entries
        if entry.claims and not entry.claims_of("reference_values")
    )
    found = lookup_agronomy(entry.names.en, kb_id=entry.id, topic="reference_values")
    assert "topic_not_covered" in found.flags
    assert [hit.section for hit in found.hits] == ["names"]
    assert "nothing on reference values" in found.notes[0]
    asked_in_words = lookup_agronomy("Colorado potato beetle threshold")
    assert "nothing on thresholds" in asked_in_words.notes[0]
    assert not lookup_agronomy("what does damage by the Colorado potato beetle look like").notes
    for entry in load().entries[::20]:
        found = lookup_agronomy(entry.names.en, kb_id=entry.id, top_k=1)
        assert ("not_verified" in found.flags) == (entry.coverage != "verified")


def test_entries_are_filtered_and_an_unknown_id_names_the_closest():
    with pytest.raises(ToolError) as caught:
        lookup_agronomy("scab", kb_id="disease.aple_scab")
    assert (caught.value.kind, caught.value.argument) == ("invalid_argument", "kb_id")
    assert (len(caught.value.candidates), caught.value.candidates[0]) == (3, "disease.apple_scab")
    assert all(hit.kind == "weed" for hit in lookup_agronomy("lantana", kind="weed").hits)
    assert lookup_agronomy("lantana", kind="pest").not_found
    found = lookup_agronomy("orange powder on the underside of leaves", crop="coffee")
    assert found.hits[0].kb_id == "disease.coffee_leaf_rust"


def test_broken_files_of_the_user_are_said(tmp_path):
    folder = tmp_path / "kb"
    folder.mkdir()
    (folder / "broken.toml").write_text("id = ", encoding="utf-8")
    found = lookup_agronomy("apple scab")
    assert found.hits[0].kb_id == "disease.apple_scab"
    assert "broken_entries" in found.flags
    assert folder / "broken.toml" in get_tool("lookup_agronomy").data_files
    (folder / "broken.toml").unlink()
    assert "broken_entries" not in lookup_agronomy("apple scab").flags
