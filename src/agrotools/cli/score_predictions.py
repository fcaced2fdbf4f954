"""``agrotools score --format``: a prediction file of another benchmark, scored as published and corrected."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agrotools.cli.json_output import print_json

if TYPE_CHECKING:
    from agrotools.scoring.embedders import Embedder


def score_predictions(
    files: Sequence[Path],
    format_: str,
    *,
    data: Path | None,
    judgements: Path | None,
    embedder: str | None,
    embedder_path: Path | None,
    as_json: bool,
) -> int:
    """Score one prediction file and print both columns. Returns 0.

    Raises:
        UsageError: an option does not fit; BenchmarkError: a file cannot be read.
    """
    from agrotools.core import UsageError
    from agrotools.report.predictions import as_data, print_compared
    from agrotools.scoring.predictions.comparing import FORMATS, Format, compare_file

    known: Format | None = next((name for name in FORMATS if name == format_), None)
    if known is None:
        raise UsageError(f"--format {format_}: no such format", hint=f"known: {', '.join(FORMATS)}")
    if len(files) != 1:
        raise UsageError("--format scores one prediction file", hint="give its path alone")
    if known in ("agentx", "agrieval") and (embedder or embedder_path):
        name = "Agent-X" if known == "agentx" else "AgriEval"
        raise UsageError(
            f"{name} compares no texts by cosines: --embedder is for gta and thinkgeo", hint="leave it out"
        )
    if known == "agrieval" and (data or judgements):
        raise UsageError("AgriEval's result files hold the answers, and have no judge", hint="give the file alone")
    if known == "gta" and judgements is not None:
        raise UsageError("GTA has no judge: --judgements is for thinkgeo and agentx", hint="leave it out")
    chosen = _embedder(embedder, embedder_path) if known in ("gta", "thinkgeo") else None
    compared = compare_file(known, files[0], data=data, judgements=judgements, embedder=chosen)
    if as_json:
        print_json(as_data(compared))
    else:
        print_compared(compared, files[0].name)
    return 0


def _embedder(name: str | None, folder: Path | None) -> "Embedder | None":
    """The embedder asked for; all-MiniLM-L6-v2 where nothing is, and it is installed."""
    from agrotools.core import UsageError
    from agrotools.scoring.embedders import chosen_embedder

    try:
        return chosen_embedder(name, folder)
    except UsageError:
        if name is None and folder is None:
            return None
        raise
