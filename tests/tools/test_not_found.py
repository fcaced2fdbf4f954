"""What is suggested for a file that is not there."""

from pathlib import Path

import pytest

from agrotools.core import ToolError
from agrotools.tools.workspace import host_file


def test_only_files_of_the_kind_that_was_named_are_suggested(tmp_path: Path) -> None:
    for name in ("nbloop.py", "nope.txt", "nape.png", "nope.jpg.json"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "nope2.jpg").mkdir()
    with pytest.raises(ToolError, match="no file") as raised:
        host_file(str(tmp_path / "nope.jpg"))
    assert raised.value.candidates == ("nape.png",)


def test_nothing_is_suggested_where_nothing_of_the_kind_is_there(tmp_path: Path) -> None:
    (tmp_path / "nbloop.py").write_bytes(b"")
    with pytest.raises(ToolError, match="no file") as raised:
        host_file(str(tmp_path / "nope.jpg"))
    assert raised.value.candidates == ()
    assert raised.value.hint is None
