"""What tests of all adapters need: a cache of tool results and a folder for made files, both of their own."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from data_sets import DATA_SETS, written

from support.caches import separate_cache


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    separate_cache(monkeypatch, tmp_path / "cache")
    made = tmp_path / "scratch"
    made.mkdir()
    return made


@pytest.fixture(scope="session")
def told() -> dict[str, dict[str, Any]]:
    """What samples must say, by data set and name of the file that tells it."""
    return {}


@pytest.fixture(scope="session")
def data_set(
    tmp_path_factory: pytest.TempPathFactory, told: dict[str, dict[str, Any]]
) -> Callable[[str], Path]:
    """The folder of a data set, written once and not to be changed."""
    return cache(
        lambda name: written(
            tmp_path_factory.mktemp(name) / "set", DATA_SETS[name][0](), told.setdefault(name, {})
        )
    )


@pytest.fixture(scope="session")
def _small_set(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return cache(
        lambda name: written(tmp_path_factory.mktemp(name) / "small", DATA_SETS[name][1]())
    )


@pytest.fixture
def own_set(_small_set: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A small copy of a data set, to be changed."""
    return lambda name: Path(shutil.copytree(_small_set(name), tmp_path / "set"))
