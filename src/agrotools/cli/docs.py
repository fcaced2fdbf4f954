"""``agrotools docs``: the pages of the documentation, which a wheel holds too."""

from difflib import get_close_matches
from pathlib import Path

import typer

from agrotools.cli.output import print_json

_IN_WHEEL = Path(__file__).resolve().parent.parent / "docs"
_IN_CLONE = Path(__file__).resolve().parents[3] / "docs"
PAGES = _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CLONE
"""Folder of the pages."""


def docs(page: str | None = None, as_json: bool = False) -> None:
    """Print a page of the documentation, e.g. glossary; without a name, list the pages."""
    from agrotools.cli.docs_reference import with_references
    from agrotools.core import UsageError

    files = {file.stem: file for file in sorted(PAGES.glob("*.md"))}
    if page is None:
        titles = {name: _title(file.read_text(encoding="utf-8")) for name, file in files.items()}
        _list_pages(titles, as_json=as_json)
        return
    if linked := _linked_file(page):
        text = linked.read_text(encoding="utf-8")
        if as_json:
            print_json({"page": page, "title": linked.name, "text": text})
        else:
            typer.echo(text, nl=False)
        return
    name = Path(page).stem  # docs/glossary.md is understood, too
    if name not in files:
        close = get_close_matches(name, files, n=3)
        hint = f"e.g. {', '.join(close)}" if close else "agrotools docs lists all pages"
        raise UsageError(f"there is no page {page!r}", hint=hint)
    text = with_references(files[name].read_text(encoding="utf-8"))
    if as_json:
        print_json({"page": name, "title": _title(text), "text": text})
    else:
        _print_page(text)


def _linked_file(name: str) -> Path | None:
    """Return the file of a schema or an interface that pages link to, such as schemas/result.schema.json."""
    files = [*PAGES.glob("*.yaml"), *PAGES.glob("schemas/*.json")]
    return next((file for file in files if file.name == Path(name).name), None)


def _title(text: str) -> str:
    """Return the heading of a page."""
    return text.partition("\n")[0].removeprefix("# ")


def _list_pages(titles: dict[str, str], *, as_json: bool) -> None:
    """Print the names of all pages with their titles."""
    if as_json:
        print_json([{"page": name, "title": title} for name, title in titles.items()])
        return
    width = max(map(len, titles), default=0)
    for name, title in titles.items():
        typer.echo(f"{name:{width}}  {title}")


def _print_page(text: str) -> None:
    """Print a page: formatted on a terminal, as Markdown into a file or a pipe."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    if console.is_terminal:
        console.print(Markdown(text, hyperlinks=False))
    else:
        typer.echo(text)
