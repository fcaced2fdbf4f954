"""Entries: what a file must be, what the rules refuse, and that all that ships obeys them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.knowledge import entries as base
from agrotools.knowledge.entries import (
    LONGEST_FILE,
    SHIPPED,
    KnowledgeEntry,
    KnowledgeFault,
    load,
    parse,
    read_entry,
    toml_files,
)
from agrotools_tools.lookup.checking import check_files, forbidden

GOOD = """
id = "pest.moon_moth"
kind = "pest"
coverage = "partial"
last_reviewed = 2026-11-20
crops = ["apple"]

[names]
en = "moon moth"
sci = "Luna ficta"
aliases = ["night eater"]
zh = ["月蛾"]

[[claims]]
section = "symptoms"
text = "Round windows in the leaves, open to the sky."
sources = ["g"]

[[claims]]
section = "management"
type = "chemical"
text = "Treat young larvae in the evening."
sources = ["g"]

[sources.g]
title = "General agronomic knowledge"
publisher = "agrotools"
licence = "Apache-2.0"
checked = 2026-11-20
how = "general knowledge, not verified"
"""
CLAIM = 'text = "Round windows in the leaves, open to the sky."'


def faults_of(text: str, tmp_path: Path) -> list[KnowledgeFault]:
    path = tmp_path / "entry.toml"
    path.write_text(text, encoding="utf-8")
    return check_files([path])[1]


def test_a_good_entry_has_no_faults(tmp_path):
    assert faults_of(GOOD, tmp_path) == []
    entry = parse(GOOD.encode(), "x.toml")
    assert entry.title == "moon moth (Luna ficta)"
    assert entry.names.all() == ("moon moth", "Luna ficta", "night eater", "月蛾")


@pytest.mark.parametrize(
    ("before", "after", "field", "said"),
    [
        ('en = "moon moth"', 'en = "moon moth"\nsize = "big"', "names.size", "no such key"),
        ('en = "moon moth"', "", "names.en", "missing"),
        ('kind = "pest"', 'kind = "weed"', "id", "kind weed"),
        ('crops = ["apple"]', 'crops = ["aple"]', "crops[0]", "no crop is known as 'aple'"),
        ('zh = ["月蛾"]', 'zh = ["moon"]', "names.zh[0]", "not written in Chinese"),
        (
            'sources = ["g"]\n\n[[claims]]',
            "sources = []\n\n[[claims]]",
            "claims[0].sources",
            "at least one source",
        ),
        (
            'sources = ["g"]\n\n[[claims]]',
            'sources = ["h"]\n\n[[claims]]',
            "claims[0].sources",
            "no source 'h'",
        ),
        ('type = "chemical"\n', "", "claims[1].type", "says its type"),
        ('coverage = "partial"', 'coverage = "verified"', "coverage", "no page was read"),
        (CLAIM, CLAIM + "\nvalue = nan", "claims[0].value", "finite"),
    ],
)
def test_a_fault_names_its_field(tmp_path, before, after, field, said):
    assert GOOD.count(before) == 1
    found = faults_of(GOOD.replace(before, after), tmp_path)
    matching = [fault for fault in found if fault.field == field and said in fault.message]
    assert matching, found
    assert matching[0].where.endswith(f"entry.toml {field}")


def test_verified_entries_and_thresholds_say_what_they_rest_on(tmp_path):
    page = '\n[sources.p]\ntitle = "A page"\npublisher = "A school"\nurl = "https://example.org/a"\nlicence = "facts"\n'
    page += 'checked = 2026-11-20\nhow = "page read"\n'
    mixed = GOOD.replace('coverage = "partial"', 'coverage = "verified"') + page
    said = [fault.message for fault in faults_of(mixed, tmp_path)]
    assert sum("general knowledge" in message for message in said) == 2
    sound = mixed.replace('sources = ["g"]', 'sources = ["p"]')
    start = sound.index("[sources.g]")
    assert faults_of(sound[:start] + sound[sound.index("[sources.p]") :], tmp_path) == []
    text = GOOD.replace('section = "symptoms"', 'section = "thresholds"')
    fields = {fault.field for fault in faults_of(text, tmp_path)}
    assert {f"claims[0].{name}" for name in ("value", "unit", "condition", "region")} <= fields


FORBIDDEN = (
    "Apply 2-3 L per acre.", "Mix 20 ml in 10 litres of water.", "Dilute 1:1000 and spray the solution.",
    "A 25 EC product works.", "每亩用 20 克/亩。", "Spray Admire in spring.", "Treat with SuperKill® now.",
)  # fmt: skip
PLAIN = (
    "Treat when 250 aphids per plant are found on 80 % of plants.", "Farmers admire tall plants in spring.",
    "Keep the soil at pH 7 and rotate for 4 years.", "Losses reach 40 % in wet years.",
)  # fmt: skip


def test_doses_and_brands_are_refused_and_plain_advice_passes():
    assert [text for text in (*FORBIDDEN, *PLAIN) if any(forbidden(text))] == [*FORBIDDEN]


def test_ids_are_unique_and_figures_per_area_may_stand_outside_management(tmp_path):
    assert list(forbidden("A crop yields 5 kg per m2.", "reference_values")) == []
    (tmp_path / "a.toml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "b.toml").write_text(GOOD, encoding="utf-8")
    entries, faults = check_files(sorted(tmp_path.glob("*.toml")))
    assert len(entries) == 2
    assert [(Path(fault.file).name, fault.field) for fault in faults] == [("b.toml", "id")]
    loaded = load(sorted(tmp_path.glob("*.toml")))
    assert len(loaded.entries) == 1
    assert "already" in loaded.faults[0].message


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00binary\x00" * 50, b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 10, b"", b"a = [" * 5000,
        b"a." * 30_000 + b"b = 1", b"x = {" + b"y = {" * 3000, b"#" * (LONGEST_FILE + 1),
        GOOD.replace("partial", "par\u0000tial").encode(),
        GOOD.replace("last_reviewed = 2026-11-20", "last_reviewed = 2026-11-20T10:00:00").encode() + b"\n" * 10,
    ],
)  # fmt: skip
def test_hostile_files_are_faults(tmp_path, content):
    path = tmp_path / "hostile.toml"
    path.write_bytes(content)
    found = read_entry(path)
    if isinstance(
        found, KnowledgeEntry
    ):  # a time of day on a date is dropped or refused, never a crash
        assert found.last_reviewed.isoformat() == "2026-11-20"
    else:
        assert found
        assert all(fault.file == str(path) and fault.message for fault in found)


@given(st.binary(max_size=400))
def test_any_bytes_give_an_entry_or_faults(content):
    assert parse(content, "x.toml")


def test_broken_user_files_cost_only_themselves(tmp_path, monkeypatch):
    monkeypatch.setenv("AGROTOOLS_KB", str(tmp_path))
    assert base.user_folders() == (tmp_path,)
    shipped = len(load().entries)
    (tmp_path / "good.toml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "broken.toml").write_text("id = ", encoding="utf-8")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "gone.toml").symlink_to(tmp_path / "nowhere")
    loaded = load()
    assert len(loaded.entries) == shipped + 1
    assert {Path(fault.file).name for fault in loaded.faults} == {"broken.toml", "gone.toml"}
    broken = next(fault for fault in loaded.faults if fault.file.endswith("broken.toml"))
    assert "not valid TOML" in broken.message


def test_all_that_ships_obeys_the_rules():
    entries, faults = check_files(toml_files(SHIPPED))
    assert [f"{fault.where}: {fault.message}" for fault in faults] == []
    assert len(entries) >= 300
    assert sum(entry.coverage == "verified" for entry in entries) >= 60
