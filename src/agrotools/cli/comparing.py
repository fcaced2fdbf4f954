"""Options for text metrics that need an optional model or rule."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agrotools.plugin import TextComparisons

SIMILARITY = "similarity"

Extra = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        help="Additional text metric: similarity (all-MiniLM-L6-v2, extra embed) or rouge-l-lexeval (extra zh).",
    ),
]
EmbedderName = Annotated[
    str | None,
    typer.Option("--embedder", help="Embedding model for --with similarity, e.g. all-mpnet-base-v2."),
]
EmbedderPath = Annotated[
    Path | None, typer.Option(help="Folder of the embedding model's files; nothing is downloaded.")
]
Unadjusted = Annotated[
    bool,
    typer.Option(
        "--unadjusted", help="Mark significant differences without adjusting p-values for the number of comparisons."
    ),
]


def comparing(extra: list[str] | None, embedder: str | None, embedder_path: Path | None) -> "TextComparisons":
    """Settings of the three options.

    Raises:
        UsageError: no such metric, or a package that it needs is not installed.
    """
    from agrotools.core import UsageError
    from agrotools.plugin import TextComparisons, plugins
    from agrotools.scoring.embedders import chosen_embedder

    extras = frozenset(extra or ())
    if extras - {SIMILARITY}:
        known = [SIMILARITY, *(name for plugin in plugins() for name in plugin.scoring.comparisons)]
        if unknown := sorted(extras.difference(known)):
            hint = f"known: {', '.join(dict.fromkeys(known))}"
            raise UsageError(f"--with {unknown[0]}: no such metric", hint=hint)
    wanted = embedder or embedder_path or SIMILARITY in extras
    return TextComparisons(extras - {SIMILARITY}, chosen_embedder(embedder, embedder_path) if wanted else None)
