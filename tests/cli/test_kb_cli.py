"""``agrotools tools kb``: search, check, add."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agrotools.cli.kb import app
from agrotools.core import UsageError

RUN = CliRunner()
ENTRY = """
id = "pest.moon_moth"
kind = "pest"
coverage = "stub"
last_reviewed = 2026-11-20

[names]
en = "silver moon moth"
"""


@pytest.fixture(autouse=True)
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGROTOOLS_KB", str(tmp_path / "kb"))
    return tmp_path / "kb"


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(ENTRY, encoding="utf-8")
    return path


def test_search_prints_hits_and_sources():
    result = RUN.invoke(app, ["search", "aple scab"])
    assert result.exit_code == 0
    assert "disease.apple_scab" in result.output
    assert "source: " in result.output
    unsourced = RUN.invoke(app, ["search", "Colorado potato beetle"]).output
    assert "source: none (general knowledge, not verified)" in unsourced


def test_search_as_json():
    found = json.loads(RUN.invoke(app, ["search", "apple scab", "--topic", "symptoms", "--json"]).output)
    assert found["not_found"] is False
    assert found["hits"][0]["kb_id"] == "disease.apple_scab"


def test_search_that_finds_nothing_says_so():
    result = RUN.invoke(app, ["search", "capital of France"])
    assert result.exit_code == 0
    assert result.output.startswith("not found")


def test_add_then_found(entry: Path, kb: Path):
    result = RUN.invoke(app, ["add", str(entry)])
    assert result.exit_code == 0, result.output
    assert (kb / "pests" / "moon_moth.toml").read_text(encoding="utf-8") == ENTRY
    assert "pest.moon_moth" in RUN.invoke(app, ["search", "silver moon mooth"]).output
    assert RUN.invoke(app, ["check"]).exit_code == 0


def test_add_twice_asks_to_replace(entry: Path, kb: Path):
    RUN.invoke(app, ["add", str(entry)])
    assert isinstance(RUN.invoke(app, ["add", str(entry)]).exception, UsageError)
    entry.write_text(ENTRY.replace("silver moon", "golden moon"), encoding="utf-8")
    assert RUN.invoke(app, ["add", str(entry), "--replace"]).exit_code == 0
    assert "golden" in (kb / "pests" / "moon_moth.toml").read_text(encoding="utf-8")


def test_add_refuses_what_has_faults(entry: Path, kb: Path):
    entry.write_text(ENTRY.replace('"stub"', '"verified"').replace("en =", "eng ="), encoding="utf-8")
    result = RUN.invoke(app, ["add", str(entry)])
    assert result.exit_code == 1
    assert "names.eng" in result.output
    assert "not added" in result.output
    assert not kb.exists()


def test_add_refuses_the_id_of_a_shipped_entry(entry: Path, kb: Path):
    entry.write_text(ENTRY.replace("pest.moon_moth", "pest.aphids"), encoding="utf-8")
    result = RUN.invoke(app, ["add", str(entry)])
    assert result.exit_code == 1
    assert "pest.aphids" in result.output
    assert not kb.exists()


def test_check_lists_all_faults_at_once(tmp_path: Path):
    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "a.toml").write_text("id = ", encoding="utf-8")
    (folder / "b.toml").write_text(ENTRY.replace("stub", "partial") + 'zh = ["x"]\n', encoding="utf-8")
    result = RUN.invoke(app, ["check", str(folder)])
    assert result.exit_code == 1
    assert "2 files: 3 faults" in result.output
    found = json.loads(RUN.invoke(app, ["check", str(folder), "--json"]).output)
    assert [Path(fault["file"]).name for fault in found["faults"]] == ["a.toml", "b.toml", "b.toml"]
    assert all(fault["field"] for fault in found["faults"][1:])
