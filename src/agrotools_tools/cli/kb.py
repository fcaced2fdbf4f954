"""``agrotools tools kb``: search, check and extend the knowledge base; index and search a corpus."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.options import command_group, sub_command
from agrotools.cli.output import allow_closed_pipe, count_text, print_json, terminal_progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agrotools.knowledge.entries import KnowledgeFault

app = command_group(
    "The knowledge base behind lookup_agronomy: search, check, add entries. Any corpus of text: index, search."
)


@sub_command(app, "tools kb search")
def search(
    query: str,
    topic: str = "any",
    kind: str = "any",
    crop: str | None = None,
    top_k: int = 3,
    index: Path | None = None,
    as_json: bool = False,
) -> None:
    """Search the knowledge base as the tool lookup_agronomy does, or an index of your own corpus.

    Exit code 0, also if nothing is found.
    """
    from agrotools.core import ToolError, UsageError

    if index is not None:
        if (topic, kind, crop) != ("any", "any", None):
            raise UsageError(
                "--topic, --kind and --crop apply to the knowledge base, not to an index",
                hint="omit them",
            )
        _search_index(query, index, top_k, as_json=as_json)
        return

    from agrotools.calling import get_tool

    arguments = {"query": query, "topic": topic, "kind": kind, "crop": crop, "top_k": top_k}
    try:
        result = get_tool("lookup_agronomy")(**arguments)
    except ToolError as error:
        if error.kind != "invalid_argument":
            raise
        raise UsageError(error.message, hint=error.advice) from None
    if as_json:
        print_json(result.model_dump(mode="json"))
        return
    if result.not_found:
        typer.echo("not found: the knowledge base does not hold this")
    for hit in result.hits:
        typer.echo(f"{hit.kb_id}  {hit.title}  [{hit.section}, {hit.coverage}, {hit.score:.2f}]")
        typer.echo(f"  {hit.text}")
        if hit.note:
            typer.echo(f"  {hit.note}")
        for source in hit.sources:
            cited = ", ".join(str(part) for part in (source.title, source.year, source.url) if part)
            typer.echo(
                f"  source: {f'none ({source.how})' if source.how.startswith('general') else cited}"
            )
    for note in result.notes:
        typer.echo(f"note: {note}")


@sub_command(app, "tools kb check")
def check(paths: list[Path] | None = None, as_json: bool = False) -> None:
    """Check entries and list all errors: form, sources, doses, product names, ids.

    Exit code 0: no errors; 1: errors; 2: no such file.
    """
    from agrotools.knowledge.entries import SHIPPED, kb_files, load, toml_files
    from agrotools_tools.lookup.checking import check_files

    if paths:
        files = [file for path in paths for file in (toml_files(path) if path.is_dir() else [path])]
        given_files = {file.resolve() for file in files}
        shipped = load([file for file in toml_files(SHIPPED) if file.resolve() not in given_files])
        entries, faults = check_files(files, among=shipped.entries)
    else:
        files = list(kb_files())
        entries, faults = check_files(files)
    with allow_closed_pipe():
        if as_json:
            rows = [{"where": fault.where, **fault.model_dump(mode="json")} for fault in faults]
            print_json({"files": len(files), "entries": len(entries), "faults": rows})
        else:
            _print_faults(faults)
            found = count_text(len(faults), "fault") if faults else "no faults"
            typer.echo(f"{count_text(len(files), 'file')}: {found}")
    raise typer.Exit(1 if faults else 0)


@sub_command(app, "tools kb add")
def add(file: Path, replace: bool = False) -> None:
    """Check an entry and copy it into your own knowledge base, where lookup_agronomy finds it.

    Exit code 0: added; 1: errors, nothing added; 2: no such file, or the id exists already.
    """
    from agrotools.core import UsageError
    from agrotools.core.files import write_whole
    from agrotools.knowledge.entries import FOLDER_OF_KIND, SHIPPED, load, toml_files, user_folders
    from agrotools_tools.lookup.checking import check_files

    entries, faults = check_files([file], among=load(toml_files(SHIPPED)).entries)
    if faults:
        _print_faults(faults)
        typer.echo(f"{file}: {count_text(len(faults), 'fault')}, not added")
        raise typer.Exit(1)
    entry = entries[0]
    present = load([path for folder in user_folders() for path in toml_files(folder)])
    known = present.files.get(entry.id)
    if known is not None and not replace:
        raise UsageError(
            f"{entry.id} is already in your knowledge base: {known}",
            hint="give --replace to replace it",
        )
    target = known or user_folders()[0] / FOLDER_OF_KIND[entry.kind] / f"{entry.slug}.toml"
    if target.exists() and known is None:
        raise UsageError(
            f"{target} already exists and holds another entry", hint="fix or remove that file"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, file.read_bytes())
    typer.echo(f"{entry.id} added: {target}")


@sub_command(app, "tools kb index")
def index_corpus(corpus: Path, out: Path, replace: bool = False, as_json: bool = False) -> None:
    """Index a corpus of text for tools kb search --index. Run again, the same command reuses a finished index.

    A build that was stopped starts again from the beginning.
    """
    import time

    from agrotools.knowledge.corpus import build_index

    started = time.monotonic()
    manifest = build_index(corpus, out, replace=replace, progress=terminal_progress()).manifest
    if as_json:
        print_json(manifest)
        return
    took = time.monotonic() - started
    typer.echo(
        f"{manifest['passages']:,} passages of {manifest['documents']:,} documents in {out}, {took:.0f} s"
    )
    for reason, number in manifest["skipped"].items():
        typer.echo(f"skipped, {reason}: {number:,}")
    typer.echo(f"search it: agrotools tools kb search QUESTION --index {out}")


def _search_index(query: str, path: Path, count: int, *, as_json: bool) -> None:
    """Print the best matching passages of an index."""
    from agrotools.knowledge.corpus import CorpusIndex

    opened = CorpusIndex(path)
    passages = opened.search(query, count)
    notes = [opened.stale] if opened.stale else []
    if as_json:
        print_json(
            {
                "index": opened.manifest,
                "passages": [each._asdict() for each in passages],
                "notes": notes,
            }
        )
        return
    if not passages:
        typer.echo("no passage contains a word of this question")
    for passage in passages:
        title = f"  {passage.title}" if passage.title else ""
        typer.echo(f"{passage.source}{title}  [at {passage.position}, {passage.score:.2f}]")
        typer.echo("  " + passage.text.replace("\n", "\n  "))
    for note in notes:
        typer.echo(f"note: {note}")


def _print_faults(faults: "Iterable[KnowledgeFault]") -> None:
    for fault in faults:
        typer.echo("\n  ".join(filter(None, (fault.where, fault.message, fault.hint))))
