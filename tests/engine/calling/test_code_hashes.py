"""Hashes of code: stored results of tools, and drawn scenes, are not used again after what made them was edited."""

from pathlib import Path

import pytest

import agrotools
from agrotools.calling import get_tool
from agrotools.calling.cache import code_hash
from agrotools_build.sources.drawn.drawing import _code

SOURCE = Path(agrotools.__file__).parents[1]


def edit(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    """Let a source file read as if a line had been added."""
    edited = SOURCE / file
    assert edited.is_file()
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"#\n" * (path == edited))


@pytest.mark.parametrize(
    ("tool", "file", "changes"),
    [
        ("measure_fruit_size", "agrotools/vision/reading.py", True),
        ("measure_fruit_size", "agrotools/knowledge/words.py", True),
        ("measure_fruit_size", "agrotools_tools/fruit/measure.py", True),
        ("measure_fruit_size", "agrotools_tools/vision/nets.py", True),
        ("measure_fruit_size", "agrotools/report/layout.py", False),
        ("measure_fruit_size", "agrotools_benchmarks/_dialogs/tools.py", False),
        ("CountGivenObject", "agrotools_benchmarks/_dialogs/tools.py", True),
        ("CountGivenObject", "agrotools_tools/general/objects.py", True),
    ],
)
def test_an_edit_voids_the_results_of_the_tools_that_can_depend_on_it(
    monkeypatch: pytest.MonkeyPatch, tool: str, file: str, changes: bool
) -> None:
    module = get_tool(tool).function.__module__
    before = code_hash.__wrapped__(module)
    edit(monkeypatch, file)
    assert (code_hash.__wrapped__(module) != before) == changes


@pytest.mark.parametrize(
    ("kind", "file", "changes"),
    [
        ("apples", "agrotools_build/scenes/orchard.py", True),
        ("apples", "agrotools_build/cli/build.py", False),
    ],
)
def test_an_edit_of_what_draws_a_scene_draws_it_again(
    monkeypatch: pytest.MonkeyPatch, kind: str, file: str, changes: bool
) -> None:
    before = _code.__wrapped__(kind)
    edit(monkeypatch, file)
    assert (_code.__wrapped__(kind) != before) == changes
