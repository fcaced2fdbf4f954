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
    from agrotools.scoring.predictions import compare_file, prediction_format

    form = prediction_format(format_)
    if len(files) != 1:
        raise UsageError("--format scores one prediction file", hint="give its path alone")
    given = {"embedder": embedder or embedder_path, "data": data, "judgements": judgements}
    for option, value in given.items():
        if value and option in form.refused:
            message, hint = form.refused[option]
            raise UsageError(message, hint=hint)
    chosen = None if "embedder" in form.refused else _embedder(embedder, embedder_path)
    compared = compare_file(format_, files[0], data=data, judgements=judgements, embedder=chosen)
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
