"""The examples of docs/retrieval.md and docs/sandbox.md run as they are written, and import public modules alone."""

import re
from pathlib import Path
from typing import Any

import pytest

from agrotools.sandbox.probe import available_runners

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PUBLIC = {"agrotools", "agrotools.tools", "agrotools.plugin"}
PAGES = [
    *(DOCS / name for name in ("retrieval.md", "sandbox.md", "tools.md", "python.md")),
    *ROOT.glob("examples/*.py"),
]


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


@pytest.mark.skipif(not available_runners(), reason="no sandbox here")
def test_the_example_of_the_sandbox_draws():
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "sandbox.md").read_text(encoding="utf-8"), re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(compile(block, "sandbox.md", "exec"), namespace)
    assert namespace["result"].termination == "ok"
    assert len(namespace["result"].artifacts) == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_and_examples_import_public_modules_alone(page: Path):
    modules = re.findall(r"^ *(?:from|import) (agrotools[.\w]*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(modules) <= PUBLIC
