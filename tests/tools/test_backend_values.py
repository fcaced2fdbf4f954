"""Back-ends that take a value: how they are declared, checked, and made part of a result's key."""

from pathlib import Path

import pytest

from agrotools.core import ToolError, UsageError
from agrotools.tools.cache import ResultCache
from agrotools.tools.contract import Tool, ToolDeclarationError, ToolResult, tool
from agrotools.tools.execution import check_backend


class Said(ToolResult):
    text: str
    """what was said"""


def made(folder: Path) -> "Tool[[], Said]":
    def files(backend: str) -> list[Path]:
        path = folder / backend.removeprefix("pack:")
        if not path.is_file():
            raise ToolError("backend_unavailable", f"there is no {path.name}", hint="train it")
        return [path]

    @tool(category="general", backends=("offline", "rules", "pack:"), backend_files=files)
    def say() -> Said:
        """Say something."""
        return Said(text="something")

    return say


def test_names_have_a_value_where_it_is_taken(tmp_path: Path) -> None:
    say = made(tmp_path)
    assert [say.has_backend(name) for name in ("offline", "rules", "pack:a", "pack:a:b")] == [True] * 4
    assert not any(say.has_backend(name) for name in ("pack", "pack:", "pack: ", "rules:x", "other:x", ""))
    with pytest.raises(UsageError) as caught:
        check_backend(say, "pack")
    assert caught.value.hint == "it has offline, rules, pack:VALUE"
    with pytest.raises(UsageError, match=r"back-end pack:a of say: there is no a \(train it\)"):
        check_backend(say, "pack:a")
    (tmp_path / "a").write_text("1")
    check_backend(say, "pack:a")
    with pytest.raises(ToolDeclarationError, match="default back-end"):

        @tool(category="general", backends=("pack:",))
        def say() -> Said:  # pyright: ignore[reportUnusedFunction]
            """Say something."""
            return Said(text="")


def test_files_of_the_value_are_in_the_key(tmp_path: Path) -> None:
    say = made(tmp_path)
    cache = ResultCache(tmp_path / "results")
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")

    def key(backend: str) -> str:
        return cache.key(say, backend, {}, {}, {})

    first = key("pack:a")
    assert first == key("pack:a")
    assert len({first, key("pack:b"), key("offline"), key("rules")}) == 4
    (tmp_path / "a").write_text("22")
    assert key("pack:a") != first
    assert say.files_for(None) == say.files_for("rules") == ()
