"""``agrotools docs``: pages of the documentation, and what other output says about them."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest
from typer.testing import CliRunner

from agrotools.cli.docs import PAGES
from agrotools.cli.main import app
from agrotools.core import UsageError

SOURCES = Path(__file__).resolve().parents[3] / "src"
RUN = CliRunner()


def test_a_page_is_printed_as_it_is_written_and_all_are_listed():
    written = (PAGES / "glossary.md").read_text(encoding="utf-8")
    for name in ("glossary", "docs/glossary.md"):
        assert RUN.invoke(app, ["docs", name]).stdout.strip() == written.strip()
    listed = RUN.invoke(app, ["docs"]).stdout.splitlines()
    assert len(listed) == len([*PAGES.glob("*.md")])
    assert any(line.split() == ["glossary", "Glossary"] for line in listed)


def test_schemas_that_pages_link_to_are_printed_and_are_in_the_wheel():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES.glob("*.md"))
    linked = set(re.findall(r"\]\(([\w./-]+\.(?:json|yaml))\)", pages))
    linked = {target for target in linked if not target.startswith("../")}
    assert {"agent-server.openapi.yaml", "schemas/result.schema.json"} <= linked
    project = tomllib.loads((SOURCES.parent / "pyproject.toml").read_text(encoding="utf-8"))
    left_out = project["tool"]["hatch"]["build"]["targets"]["wheel"]["exclude"]
    for target in linked:
        written = (PAGES / target).read_text(encoding="utf-8")
        assert RUN.invoke(app, ["docs", target]).stdout == written
        assert not any(PurePath("docs", target).match(pattern) for pattern in left_out)
        assert not any(f"docs/{target}".startswith(f"{pattern}/") for pattern in left_out)


def test_json_holds_the_page_or_the_titles():
    page = json.loads(RUN.invoke(app, ["docs", "glossary", "--json"]).stdout)
    assert page["title"] == "Glossary"
    assert "| **FAS** |" in page["text"]
    titles = json.loads(RUN.invoke(app, ["docs", "--json"]).stdout)
    assert {"page": "glossary", "title": "Glossary"} in titles


def test_a_page_shows_signatures_and_docstrings_of_the_names_that_it_refers_to() -> None:
    written = (PAGES / "api.md").read_text(encoding="utf-8")
    names = re.findall(r"^::: (\S+)$", written, re.MULTILINE)
    assert "agrotools.loading.load_benchmark" in names
    shown = RUN.invoke(app, ["docs", "api"]).stdout
    assert ":::" not in shown
    assert re.findall(r"^### (\S+)$", shown, re.MULTILINE) == names
    assert "\ndef compare(*runs: str | Path | Run) -> Comparison:\n" in shown
    assert '    """Load a benchmark by its name or from its folder.\n' in shown
    run = shown.partition("class Run(path: str | Path, *, stopped: str | None = None):\n")[2]
    assert run.startswith('    """A run folder with its scores, records and report.')
    assert "\n    @property\n    def scores(self) -> Scores:\n" in run
    assert "    answer: tuple[Slot, ...],\n" in shown, "without the checks of its value"
    for stub in re.findall(r"^```python\n(def .*?)^```$", shown, re.MULTILINE | re.DOTALL):
        ast.parse(stub)
    page = json.loads(RUN.invoke(app, ["docs", "api", "--json"]).stdout)
    assert page["text"].strip() == shown.strip()


def test_an_unknown_page_is_refused_with_a_similar_one():
    with pytest.raises(UsageError) as refused:
        RUN.invoke(app, ["docs", "glosary"], catch_exceptions=False)
    assert refused.value.advice == "e.g. glossary"


def _shown_texts() -> Iterator[tuple[Path, str]]:
    """Yield the texts of the sources that a user may see, without docstrings and comments."""
    for file in SOURCES.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        shown = [node.value for node in constants if id(node) not in docstrings]
        yield from ((file, value) for value in shown if isinstance(value, str))
    for ending in ("toml", "js", "j2"):
        for file in SOURCES.rglob(f"*.{ending}"):
            lines = file.read_text(encoding="utf-8").splitlines()
            yield from ((file, line) for line in lines if not line.lstrip().startswith(("#", "//")))


def test_output_names_pages_by_the_command_that_prints_them():
    named = set[str]()
    of_help = {"lists"}  # "agrotools docs lists all pages"
    for file, text in _shown_texts():
        assert not re.search(r"(?<![/\w])docs/[\w-]+\.md", text), (
            f"{file}: a wheel has no docs/: name `agrotools docs PAGE`"
        )
        text = text.replace("\u00a0", " ")
        named.update(re.findall(r"agrotools docs ([a-z][\w-]*)", text))
    assert "glossary" in named
    assert named - of_help <= {page.stem for page in PAGES.glob("*.md")}
