"""Test tiers: every test belongs to exactly one, and ``pytest -m TIER`` selects it.

==========  =======================================================================================================
unit        no process, no server, no real data; all of them in under a minute. The inner loop: ``pytest -m unit``
tools       tools and vision algorithms on pictures
process     starts interpreters, servers or the command line
data        reads the real images of ``AGROTOOLS_TEST_DATA``; skipped where they are absent
browser     drives a headless Chromium; skipped where there is none
slow        takes more than a few seconds
==========  =======================================================================================================

The folder decides, unless the test, its class or its module has a marker (``pytestmark = pytest.mark.process``). What
is left is ``unit``, and a unit test that starts a process or a server fails.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).resolve().parent.parent
TIERS = ("unit", "tools", "process", "data", "browser", "slow")
OF_FOLDERS = {
    "authoring": "tools", "engine/calling": "tools", "engine/sandbox": "process", "engine/vision": "tools",
    "studies": "tools", "tools": "tools", "training": "slow",
}  # fmt: skip
"""Tier by folder below ``tests``, where it is not ``unit``. The longest match counts."""

_STARTS = {
    "subprocess.Popen": "started the process", "os.fork": "forked", "os.forkpty": "forked",
    "os.posix_spawn": "started the process", "os.exec": "became the process", "os.system": "started the process",
    "socket.bind": "opened a server at", "socket.connect": "connected to",
}  # fmt: skip


def tier_of(item: pytest.Item) -> str:
    """The tier of a test: by marker, else by folder, else ``unit``."""
    marked = next((mark.name for mark in item.iter_markers() if mark.name in TIERS), None)
    return marked or _tier_of_folder(item.path)


def may_hold_unit_tests(file: Path) -> bool:
    """False for a file of tests in a folder of another tier that does not mark any of them as ``unit``."""
    return _tier_of_folder(file) == "unit" or "mark.unit" in file.read_text(encoding="utf-8")


@cache
def _tier_of_folder(file: Path) -> str:
    for folder in file.relative_to(_TESTS).parents:
        if folder.as_posix() in OF_FOLDERS:
            return OF_FOLDERS[folder.as_posix()]
    return "unit"


def load_libraries_that_start_processes() -> None:
    """Import what starts a process the first time it is imported, so that no test is blamed for it.

    numpy 2.0 calls ``lscpu``; matplotlib, where its cache is empty, lists the fonts with ``fc-list``.
    """
    for library in ("numpy", "matplotlib.font_manager"):
        with suppress(ImportError):
            import_module(library)


class UnitGuard:
    """Recorder of the processes and servers that a unit test starts, by an audit hook."""

    def __init__(self) -> None:
        self._events: list[str] | None = None
        self._older: set[int | None] = set()
        """Threads of earlier tests, which may still start a process (a pool that replaces a worker)."""
        sys.addaudithook(self._record)

    def _record(self, event: str, arguments: tuple[Any, ...]) -> None:
        if (
            self._events is not None
            and event in _STARTS
            and threading.get_ident() not in self._older
        ):
            # Arguments of a socket begin with the socket itself, those of a process with its program.
            what = arguments[-1] if event.startswith("socket") else arguments[:1]
            self._events.append(f"{_STARTS[event]} {what}")

    def watch(self, item: pytest.Item) -> Iterator[None]:
        """Watch one phase of a test, and fail it if it is a unit test that started something."""
        self._older = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
        self._events = [] if item.get_closest_marker("unit") else None
        try:
            result = yield
        finally:
            events, self._events = self._events, None
        if events:
            pytest.fail(
                f"this unit test {'; '.join(events)}: mark it (pytest.mark.process) or do without",
                pytrace=False,
            )
        return result
