"""``agrotools tools kb index`` and ``agrotools tools kb search --index``."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agrotools.cli.kb import app

RUN = CliRunner()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "rice.txt").write_text("水稻纹枯病由立枯丝核菌引起。", encoding="utf-8")
    (folder / "more.jsonl").write_text('{"title": "Wheat", "text": "Wheat rust is a fungus."}\n{"n": 1}\n')
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
    assert RUN.invoke(app, ["search", "qwertz", "--index", str(out)]).output.startswith("no passage contains")


def test_both_as_json(corpus: Path, tmp_path: Path):
    out = tmp_path / "index"
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


def test_a_passage_that_the_terminal_cannot_show_is_no_crash(tmp_path: Path):
    """A terminal of another encoding; text of every kind."""
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "rust 水稻 \ud800 \U0001f33e", "id": "\ud800"}))
    main = [sys.executable, "-m", "agrotools", "tools", "kb"]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    subprocess.run(
        [*main, "index", str(tmp_path / "a.jsonl"), "--out", str(tmp_path / "i")], check=True, env=environment
    )
    command = [*main, "search", "rust", "--index", str(tmp_path / "i")]
    found = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert "水稻".encode() in found.stdout
