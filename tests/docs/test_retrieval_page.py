"""The example of docs/retrieval.md runs as it is written."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_example_finds_a_passage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "rice.txt").write_text("水稻纹枯病由立枯丝核菌引起。", encoding="utf-8")
    text = (DOCS / "retrieval.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(block, "retrieval.md", "exec"), {})
    assert "rice.txt" in capsys.readouterr().out
