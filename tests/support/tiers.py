"""Test tiers: every test belongs to exactly one, and ``pytest -m TIER`` selects it.

==========  =======================================================================================================
unit        no process, no server, no real data; all of them in under a minute. The inner loop: ``pytest -m unit``
tools       tools and vision algorithms on pictures
process     starts interpreters, servers or the command line
data        reads the real images of ``AGROTOOLS_TEST_DATA``; skipped where they are absent
browser     drives a headless Chromium; skipped where there is none
slow        takes more than a few seconds
==========  =======================================================================================================

A marker on the test, its class or its module decides (``pytestmark = pytest.mark.process``), then the fixtures that
it requests, then its folder. What is left is ``unit``, and a unit test that starts a process or a server fails.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TIERS = ("unit", "tools", "process", "data", "browser", "slow")
OF_FIXTURES = {"field_data": "data"}
"""Tier by requested fixture."""
OF_FOLDERS = {
    "accuracy": "tools",
    "sandbox": "process",
    "serve": "process",
    "tools": "tools",
    "training": "slow",
    "vision": "tools",
}
"""Tier by folder below ``tests``, where it is not ``unit``. The longest match counts."""

_STARTS = {
    "subprocess.Popen": "started the process",
    "os.fork": "forked",
    "os.forkpty": "forked",
    "os.posix_spawn": "started the process",
    "os.exec": "became the process",
    "os.system": "started the process",
    "socket.bind": "opened a server at",
    "socket.connect": "connected to",
}


def tier_of(item: pytest.Item, tests: Path) -> str:
    """The tier of a test: by marker, else by fixture, else by folder, else ``unit``."""
    for mark in item.iter_markers():
        if mark.name in TIERS:
            return mark.name
    by_fixture = [OF_FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in OF_FIXTURES]
    if by_fixture:
        return max(by_fixture, key=TIERS.index)
    for folder in item.path.relative_to(tests).parents:
        if folder.as_posix() in OF_FOLDERS:
            return OF_FOLDERS[folder.as_posix()]
    return "unit"


class UnitGuard:
    """Recorder of the processes and servers that a unit test starts, by an audit hook."""

    def __init__(self) -> None:
        self._events: list[str] | None = None
        sys.addaudithook(self._record)

    def _record(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._events is not None and event in _STARTS:
            # Arguments of a socket begin with the socket itself, those of a process with its program.
            what = arguments[-1] if event.startswith("socket") else arguments[:1]
            self._events.append(f"{_STARTS[event]} {what}")

    def watch(self, item: pytest.Item) -> Iterator[None]:
        """Watch one phase of a test, and fail it if it is a unit test that started something."""
        self._events = [] if item.get_closest_marker("unit") else None
        try:
            result = yield
        finally:
            events, self._events = self._events, None
        if events:
            pytest.fail(
                f"this unit test {'; '.join(events)}: mark it (pytest.mark.process) or do without", pytrace=False
            )
        return result
