"""``agrotools kb index`` and ``agrotools kb search --index``: search in any corpus of text."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.json_output import print_json


def index(
    corpus: Annotated[
        Path, typer.Argument(help="A file or folder: .txt, .md, .jsonl, .xml, .xml.bz2.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Folder of the index, outside the corpus.")],
    tokens: Annotated[str, typer.Option(help='bigrams, or jieba (extra "zh").')] = "bigrams",
    memory_mb: Annotated[int, typer.Option(help="Memory limit of the process, MB.")] = 300,
    text_field: Annotated[str | None, typer.Option(help="JSONL field that holds the text.")] = None,
    title_field: Annotated[str | None, typer.Option(help="JSONL field that holds the title.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an index of another corpus.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Index a corpus of text for kb search --index. Run again, the same command reuses a finished index.

    Reads a Wikipedia dump (pages-articles.xml.bz2) directly. A build that was stopped starts again from the beginning.
    """
    import sys
    import time

    from agrotools.knowledge.corpus import build_index, known_tokens
    from agrotools.runner.progress import stage_progress

    started = time.monotonic()
    built = build_index(
        corpus,
        out,
        tokens=known_tokens(tokens),
        memory_mb=memory_mb,
        text_field=text_field,
        title_field=title_field,
        replace=replace,
        progress=stage_progress(sys.stderr),
    )
    manifest = built.manifest
    if as_json:
        print_json(manifest.model_dump(mode="json"))
        return
    took = time.monotonic() - started
    typer.echo(f"{manifest.passages:,} passages of {manifest.documents:,} documents in {out}, {took:.0f} s")
    for reason, number in manifest.passed_over.items():
        typer.echo(f"skipped, {reason}: {number:,}")
    typer.echo(f"search it: agrotools kb search QUESTION --index {out}")


def search_index(query: str, folder: Path, count: int, *, as_json: bool) -> None:
    """Print the passages of an index that match a question best."""
    from dataclasses import asdict

    from agrotools.knowledge.corpus import CorpusIndex

    opened = CorpusIndex.open(folder)
    found = opened.search(query, count)
    notes = [opened.stale] if opened.stale else []
    if as_json:
        print_json({"index": opened.identity(), "passages": [asdict(passage) for passage in found], "notes": notes})
        return
    if not found:
        typer.echo("no passage contains a word of this question")
    for passage in found:
        title = f"  {passage.title}" if passage.title else ""
        typer.echo(f"{passage.source}{title}  [at {passage.position}, {passage.score:.2f}]")
        typer.echo("  " + passage.text.replace("\n", "\n  "))
    for note in notes:
        typer.echo(f"note: {note}")
