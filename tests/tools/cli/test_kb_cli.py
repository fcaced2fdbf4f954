"""``agrotools tools kb``: search, check, add; index a corpus and search it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agrotools.core import UsageError
from agrotools_tools.cli.kb import app

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
    found = json.loads(
        RUN.invoke(app, ["search", "apple scab", "--topic", "symptoms", "--json"]).output
    )
    assert found["not_found"] is False
    assert found["hits"][0]["kb_id"] == "disease.apple_scab"
    assert RUN.invoke(app, ["search", "capital of France"]).output.startswith("not found")


def test_add_then_found(entry: Path, kb: Path):
    result = RUN.invoke(app, ["add", str(entry)])
    assert result.exit_code == 0, result.output
    assert (kb / "pests" / "moon_moth.toml").read_text(encoding="utf-8") == ENTRY
    assert "pest.moon_moth" in RUN.invoke(app, ["search", "silver moon mooth"]).output
    assert RUN.invoke(app, ["check"]).exit_code == 0
    assert isinstance(RUN.invoke(app, ["add", str(entry)]).exception, UsageError)
    entry.write_text(ENTRY.replace("silver moon", "golden moon"), encoding="utf-8")
    assert RUN.invoke(app, ["add", str(entry), "--replace"]).exit_code == 0
    assert "golden" in (kb / "pests" / "moon_moth.toml").read_text(encoding="utf-8")


def test_add_refuses_faults_and_the_id_of_a_shipped_entry(entry: Path, kb: Path):
    entry.write_text(
        ENTRY.replace('"stub"', '"verified"').replace("en =", "eng ="), encoding="utf-8"
    )
    result = RUN.invoke(app, ["add", str(entry)])
    assert result.exit_code == 1
    assert "names.eng" in result.output
    assert "not added" in result.output
    assert not kb.exists()
    entry.write_text(ENTRY.replace("pest.moon_moth", "pest.aphids"), encoding="utf-8")
    result = RUN.invoke(app, ["add", str(entry)])
    assert result.exit_code == 1
    assert "pest.aphids" in result.output
    assert not kb.exists()


def test_check_lists_all_faults_at_once(tmp_path: Path):
    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "a.toml").write_text("id = ", encoding="utf-8")
    (folder / "b.toml").write_text(
        ENTRY.replace("stub", "partial") + 'zh = ["x"]\n', encoding="utf-8"
    )
    result = RUN.invoke(app, ["check", str(folder)])
    assert result.exit_code == 1
    assert "2 files: 3 faults" in result.output
    found = json.loads(RUN.invoke(app, ["check", str(folder), "--json"]).output)
    assert [Path(fault["file"]).name for fault in found["faults"]] == ["a.toml", "b.toml", "b.toml"]
    assert all(fault["field"] for fault in found["faults"][1:])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "rice.txt").write_text("水稻纹枯病由立枯丝核菌引起。", encoding="utf-8")
    (folder / "more.jsonl").write_text(
        '{"title": "Wheat", "text": "Wheat rust is a fungus."}\n{"n": 1}\n'
    )
    return folder


def test_index_then_search(corpus: Path, tmp_path: Path):
    out = tmp_path / "index"
    built = RUN.invoke(app, ["index", str(corpus), "--out", str(out)])
    assert built.exit_code == 0
    assert "2 passages of 2 documents" in built.output
    assert "skipped, without text: 1" in built.output
    found = RUN.invoke(app, ["search", "纹枯病的病原", "--index", str(out)])
    assert found.exit_code == 0
    assert found.output.startswith("rice.txt  [at 0, ")
    assert "立枯丝核菌" in found.output
    assert "more.jsonl:1  Wheat" in RUN.invoke(app, ["search", "rust", "--index", str(out)]).output
    assert RUN.invoke(app, ["search", "qwertz", "--index", str(out)]).output.startswith(
        "no passage contains"
    )
    built = json.loads(RUN.invoke(app, ["index", str(corpus), "--out", str(out), "--json"]).stdout)
    assert (built["passages"], built["skipped"]) == (2, {"without text": 1})
    (corpus / "new.txt").write_text("new")
    command = ["search", "rust 纹枯病", "--index", str(out), "--top-k", "1", "--json"]
    found = json.loads(RUN.invoke(app, command).stdout)
    assert len(found["passages"]) == 1
    assert set(found["passages"][0]) == {"text", "source", "title", "score", "position"}
    assert found["index"] == built
    assert "has changed since" in found["notes"][0]
    assert "note: the corpus" in RUN.invoke(app, [*command[:-1]]).output


@pytest.mark.process
def test_a_passage_that_the_terminal_cannot_show_is_no_crash(tmp_path: Path):
    """A terminal of another encoding; text of every kind."""
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"text": "rust 水稻 \ud800 \U0001f33e", "id": "\ud800"})
    )
    main = [sys.executable, "-m", "agrotools", "tools", "kb"]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    subprocess.run(
        [*main, "index", str(tmp_path / "a.jsonl"), "--out", str(tmp_path / "i")],
        check=True,
        env=environment,
    )
    command = [*main, "search", "rust", "--index", str(tmp_path / "i")]
    found = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert "水稻".encode() in found.stdout
