"""What several test folders share."""

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import settings

from support.tiers import (
    UnitGuard,
    load_libraries_that_start_processes,
    may_hold_unit_tests,
    tier_of,
)

# Wall time says nothing on a shared machine, and the first example of a test pays for its lazy imports.
# Whoever works here searches for new examples each time; a check that decides about somebody's change repeats the same.
settings.register_profile(
    "agrotools",
    deadline=None,
    derandomize=bool(os.environ.get("AGROTOOLS_SAME_EXAMPLES")),
    max_examples=int(os.environ.get("AGROTOOLS_EXAMPLES", "25")),
)
settings.load_profile("agrotools")

# A shell ignores Ctrl-C for what it runs in the background, and so would the commands that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

ROOT = Path(__file__).resolve().parent.parent
_COLOUR_WISHES = ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE")
"""Variables by which rich, typer and pytest write colours into a pipe, or none to a terminal."""
_GUARD = UnitGuard()


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where unit tests alone are wanted, leave the files out that can have none: they cost a third of collection."""
    if config.option.markexpr == "unit" and collection_path.suffix == ".py":
        return not may_hold_unit_tests(collection_path) or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Keep what collection makes, a million objects that stay, out of all later garbage collections."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test the marker of its tier, before ``-m`` selects."""
    for item in items:
        tier = tier_of(item)
        if not item.get_closest_marker(tier):
            item.add_marker(getattr(pytest.mark, tier))
    if any(item.get_closest_marker("unit") for item in items):
        load_libraries_that_start_processes()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    return (yield from _GUARD.watch(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    return (yield from _GUARD.watch(item))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write what ``check.py --coverage`` has measured now: xdist kills workers that take long to end."""
    if (
        "coverage" in sys.modules
        and (measured := sys.modules["coverage"].Coverage.current()) is not None
    ):
        measured.save()


@pytest.fixture(scope="session")
def field_data() -> Path:
    """The folder of real images (``AGROTOOLS_TEST_DATA``). Tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("AGROTOOLS_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "cwfid" / "truth.json").is_file():
        pytest.skip(f"no real images at {folder}: set AGROTOOLS_TEST_DATA")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's own cache. All processes of a session share one, so scenes are drawn once.

    Nor do the user's wishes for colours count: the tests read what a pipe receives.
    """
    own = tmp_path_factory.getbasetemp()
    session = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with pytest.MonkeyPatch.context() as patch:
        for wish in _COLOUR_WISHES:
            patch.delenv(wish, raising=False)
        patch.setenv("AGROTOOLS_CACHE", str(session / "agrotools-cache"))
        patch.setenv(
            "AGROTOOLS_SANDBOX_WORKERS", "1"
        )  # each imports half a second's worth of packages, used or not
        yield


@pytest.fixture(scope="session")
def small_benchmark(_own_cache: None) -> Path:
    """A benchmark folder of eight questions on drawn crop rows: photos, bands and class maps; made once, not to be
    changed."""
    from agrotools.core.progress import no_progress
    from agrotools.formats.benchmark import BenchmarkHeader
    from agrotools_build.choosing import choose
    from agrotools_build.export.folder import write_benchmark
    from agrotools_build.scenes.processes import Order
    from agrotools_build.sources.drawn.drawing import SCENE_KINDS, draw_all
    from agrotools_build.sources.drawn.fresh import scene_samples
    from agrotools_build.sources.part import Originals
    from agrotools_build.templates import load_templates
    from agrotools_tools import AGROTOOLS

    made = Path(os.environ["AGROTOOLS_CACHE"]) / "small-of-tests"
    made.mkdir(parents=True, exist_ok=True)
    with FileLock(made / "lock"):
        if not (made / "benchmark").is_dir():
            shutil.rmtree(made / "unfinished", ignore_errors=True)
            kind = SCENE_KINDS["rows"]
            scenes = draw_all(
                [Order("rows", 20_000_000 + number, number) for number in range(4)],
                made,
                no_progress,
            )
            originals = Originals()
            subjects = [subject for scene in scenes for subject in kind.subjects(scene, originals)]
            questions = [template for file in kind.templates for template in load_templates(file)]
            chosen = {"rows": choose(subjects, questions, 8, 1)}
            samples, _ = scene_samples(
                made / "unfinished", chosen, originals, AGROTOOLS, no_progress
            )
            header = BenchmarkHeader(
                name="embedded",
                version="1",
                licence="Apache-2.0",
                synthetic=True,
                toolset=AGROTOOLS,
                backends=dict(kind.backends),
            )
            write_benchmark(made / "unfinished", header, samples)
            (made / "unfinished").rename(made / "benchmark")
    return made / "benchmark"
