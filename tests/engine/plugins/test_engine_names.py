"""What the engine must not name: the packages that build on it, anywhere; and benchmarks, outside of docstrings."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import agrotools

ENGINE = (
    "core text models calling vision knowledge sandbox agents scoring formats runner report api.py plugin"
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


PACKAGES = ("agrotools", "agrotools_tools", "agrotools_build", "agrotools_benchmarks")
"""Each may name itself and those to its left."""
TEXTS = (".py", ".toml", ".json", ".csv", ".j2", ".js", ".css", ".txt", ".md", ".html")


@pytest.mark.parametrize("package", PACKAGES[:-1])
def test_a_package_names_none_to_its_right(package: str) -> None:
    """Neither in imports, which import-linter checks, too, nor in targets, texts and data files."""
    to_the_right = PACKAGES[PACKAGES.index(package) + 1 :]
    files = [path for path in (ROOT.parent / package).rglob("*") if path.suffix in TEXTS]
    assert files
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    found = [
        f"{path.relative_to(ROOT.parent)}: {name}"
        for path, text in texts.items()
        for name in to_the_right
        if name in text
    ]
    assert not found


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
