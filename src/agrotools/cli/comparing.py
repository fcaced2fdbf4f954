"""Options for text metrics that need an optional model or rule."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from agrotools.scoring.embedders import Embedder

SIMILARITY, ROUGE = _EXTRAS = ("similarity", "rouge-l-lexeval")

Extra = Annotated[
    list[str] | None,
    typer.Option(
        "--with", help="Also by similarity (of texts, by all-MiniLM-L6-v2: extra embed) or rouge-l-lexeval (extra zh)."
    ),
]
EmbedderName = Annotated[
    str | None,
    typer.Option(
        "--embedder", help="Compare texts by this model, such as all-mpnet-base-v2: as --with similarity, but by it."
    ),
]
EmbedderPath = Annotated[Path | None, typer.Option(help="Folder of its files; nothing is downloaded.")]
Unadjusted = Annotated[
    bool, typer.Option("--unadjusted", help="Mark differences by the p-value of each alone, not of all in the table.")
]


class Comparing(NamedTuple):
    """``rouge``: open questions by LexEval's ROUGE-L. ``embedder``: what compares texts where a metric needs that."""

    rouge: bool = False
    embedder: "Embedder | None" = None


def comparing(extra: list[str] | None, embedder: str | None, embedder_path: Path | None) -> Comparing:
    """Settings of the three options.

    Raises:
        UsageError: no such metric, or a package that it needs is not installed.
    """
    from agrotools.core import UsageError
    from agrotools.scoring.embedders import chosen_embedder

    extras = extra or []
    if unknown := [name for name in extras if name not in _EXTRAS]:
        raise UsageError(f"--with {unknown[0]}: no such metric", hint=f"known: {', '.join(_EXTRAS)}")
    wanted = embedder or embedder_path or SIMILARITY in extras
    return Comparing(ROUGE in extras, chosen_embedder(embedder, embedder_path) if wanted else None)
