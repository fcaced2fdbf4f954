"""``agrotools explain``: one sample of a run, from the question to the score."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.json_output import print_json


def explain(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    sample: Annotated[str, typer.Argument(help="Id of a sample.")],
    mode: Annotated[str | None, typer.Option(help="Only this mode.")] = None,
    epoch: Annotated[int, typer.Option(help="Epoch (repeat) to show.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print record and scores as JSON.")] = False,
) -> None:
    """Show question, steps and answer of a sample, and for each score the matched text and the reason."""
    from difflib import get_close_matches

    from agrotools.core import UsageError
    from agrotools.report.explain import print_explanation
    from agrotools.runner.judging import judged_rows
    from agrotools.runner.records import record_index
    from agrotools.runner.store import read_manifest
    from agrotools.runner.stored_scores import stored_version
    from agrotools.scoring import score_record
    from agrotools.scoring.version import SCORING_VERSION

    read_manifest(run)
    index = record_index(run)
    of_sample = [record for record in index.of_sample(sample) if record.epoch == epoch]
    chosen = [record for record in of_sample if mode in (None, record.mode)]
    if not chosen:
        known = sorted({name for _, name, _ in index.keys})
        close = get_close_matches(sample, known, n=3) or known[:3]
        has = f"it has {', '.join(record.mode for record in of_sample)}" if of_sample else f"e.g. {', '.join(close)}"
        raise UsageError(f"{run} holds no record of sample {sample!r} in {mode or 'any mode'}, epoch {epoch}", hint=has)
    judges = judged_rows(run)
    scored = [(record, [*score_record(record), *judges.rows(record)]) for record in chosen]
    if as_json:
        print_json(
            [
                {
                    "record": record.model_dump(mode="json", by_alias=True),
                    "scores": [score.model_dump(mode="json") for score in scores],
                }
                for record, scores in scored
            ]
        )
        return
    for record, scores in scored:
        print_explanation(record, scores, judges.of(record))
    if (stored := stored_version(run)) not in (None, SCORING_VERSION):
        typer.echo(
            f"scored by scoring version {SCORING_VERSION}; the scores stored with the run are of version {stored}"
        )
