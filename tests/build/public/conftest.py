"""What tests of all adapters need: a cache of tool results and a folder for made files, both of their own."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from data_sets import SMALL_WRITERS, WRITERS

from support.caches import separate_cache


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    separate_cache(monkeypatch, tmp_path / "cache")
    made = tmp_path / "scratch"
    made.mkdir()
    return made


@pytest.fixture(scope="session")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a data set, written once and not to be changed."""
    return cache(lambda name: WRITERS[name](tmp_path_factory.mktemp(name) / "set"))


@pytest.fixture(scope="session")
def _small_set(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return cache(lambda name: SMALL_WRITERS[name](tmp_path_factory.mktemp(name) / "small"))


@pytest.fixture
def own_set(_small_set: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A small copy of a data set, to be changed."""
    return lambda name: Path(shutil.copytree(_small_set(name), tmp_path / "set"))


@pytest.fixture
def folder(request: pytest.FixtureRequest, data_set: Callable[[str], Path]) -> Path:
    """The data set that the module is named after, not to be changed."""
    return data_set(request.module.__name__.removeprefix("test_"))


@pytest.fixture
def own(request: pytest.FixtureRequest, own_set: Callable[[str], Path]) -> Path:
    """A small copy of it, to be changed: every file is looked at where 20 samples are wanted."""
    return own_set(request.module.__name__.removeprefix("test_"))
