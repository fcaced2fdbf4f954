"""Names of benchmarks in the engine: none in its code and in the keys of its data (docstrings may cite a paper)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import agrotools

ENGINE = (
    "core text models tools vision knowledge sandbox agents scoring formats runner report serve api.py plugin"
).split()
NAMES = r"agent[-_]?x|agrieval|gta|gta-?2|thinkgeo|cmmlu|image_?calls(?:slot)?"
BENCHMARK_ID = re.compile(rf"(?<![A-Za-z])(?:{NAMES})(?![A-Za-z])", re.IGNORECASE)
ANY_ID = re.compile(NAMES, re.IGNORECASE)
"""Of files in which this is not found nothing needs to be parsed."""
ROOT = Path(agrotools.__file__).parent


def words_of_code(path: Path) -> Iterator[tuple[int, str]]:
    """Names and texts of a module, less docstrings, each with its line."""
    text = path.read_text(encoding="utf-8")
    if not ANY_ID.search(text):
        return
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            yield line, node.value
        elif isinstance(node, ast.Name):
            yield line, node.id
        elif isinstance(node, ast.Attribute):
            yield line, node.attr
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield line, node.name
        elif isinstance(node, ast.ImportFrom | ast.Import):
            yield line, getattr(node, "module", None) or ""
            yield from ((line, each.name) for each in node.names)
        elif isinstance(node, ast.arg):
            yield line, node.arg


@pytest.mark.parametrize("room", ENGINE)
def test_the_engine_names_no_benchmark(room: str) -> None:
    place = ROOT / room
    files = (
        [place] if place.is_file() else sorted(each for each in place.rglob("*") if each.is_file())
    )
    assert files
    found: list[str] = []
    for path in files:
        if path.suffix == ".py":
            words = words_of_code(path)
        elif path.suffix in (".toml", ".json", ".csv", ".j2", ".js", ".css", ".txt"):
            words = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        else:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{line}: {word[:80]}"
            for line, word in words
            if BENCHMARK_ID.search(word)
        ]
    assert not found
