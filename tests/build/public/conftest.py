"""What tests of all adapters need: a cache of tool results and a folder for made files, both of their own."""

from pathlib import Path

import pytest

from support.caches import separate_cache


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    separate_cache(monkeypatch, tmp_path / "cache")
    made = tmp_path / "scratch"
    made.mkdir()
    return made
