"""``agrotools score``: score a finished run again, from what its folder holds."""

from pathlib import Path
from typing import Annotated

import typer

_SIMILARITY, _ROUGE = _EXTRAS = ("similarity", "rouge-l-lexeval")


def score(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or one prediction file with --format.")],
    extra: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            help="Also by similarity (of texts, by all-MiniLM-L6-v2: extra embed) or rouge-l-lexeval (extra zh).",
        ),
    ] = None,
    allow_invalid: Annotated[bool, typer.Option(help="Print headlines with more than 1 % invalid samples.")] = False,
    details: Annotated[bool, typer.Option(help="Also by task and answer type, and what happened in the run.")] = False,
    paper: Annotated[
        bool,
        typer.Option("--paper", help="Also in the tables of the paper, beside its figures (agrieval)."),
    ] = False,
    judge: Annotated[
        list[str] | None,
        typer.Option(help="Let this model grade open answers; may be given several times. Its replies are kept."),
    ] = None,
    judge_base_url: Annotated[str | None, typer.Option(help="OpenAI-compatible endpoint of the judges.")] = None,
    judge_api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds its key.", show_default="OPENAI_API_KEY")
    ] = None,
    judge_votes: Annotated[int, typer.Option(min=1, max=25, help="How often each judge grades an answer.")] = 1,
    judge_calibration: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|shipped", help="Also have judges grade answers with known grades, and tell how they did."
        ),
    ] = None,
    judge_budget: Annotated[float | None, typer.Option(help="USD that the judges of a run may cost in all.")] = None,
    judge_price: Annotated[str | None, typer.Option(help="IN/OUT of a judge, USD per million tokens.")] = None,
    judge_concurrency: Annotated[
        int | None, typer.Option(min=1, help="Requests in flight.", show_default="as many as the endpoint bears")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", metavar="gta|thinkgeo|agentx", help="Score a prediction file of that form."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="With --format: the data set, which holds the answers.")] = None,
    judgements: Annotated[Path | None, typer.Option(help="With --format: what a judge said (JSON or CSV).")] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="Compare texts by this model, such as all-mpnet-base-v2: as --with similarity, but by it."),
    ] = None,
    embedder_path: Annotated[Path | None, typer.Option(help="Folder of its files; nothing is downloaded.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Score runs again and print the table; offline, unless a judge is asked. Several runs stand side by side."""
    from agrotools.cli.judging import JudgeOptions, ask_judges
    from agrotools.cli.results import show_runs
    from agrotools.core import UsageError
    from agrotools.scoring.embedders import chosen_embedder

    if format_ is None and (data or judgements):
        raise UsageError("--data and --judgements go with --format", hint="--format gta|thinkgeo|agentx")
    if format_ is not None:
        from agrotools.cli.score_predictions import score_predictions

        given = {"data": data, "judgements": judgements, "embedder": embedder, "embedder_path": embedder_path}
        raise typer.Exit(score_predictions(runs, format_, **given, as_json=as_json))
    extras = extra or []
    if unknown := [name for name in extras if name not in _EXTRAS]:
        raise UsageError(f"--with {unknown[0]}: no such metric", hint=f"known: {', '.join(_EXTRAS)}")
    compares = embedder or embedder_path or _SIMILARITY in extras
    chosen = chosen_embedder(embedder, embedder_path) if compares else None
    options = JudgeOptions(
        tuple(judge or ()),
        base_url=judge_base_url,
        api_key_env=judge_api_key_env,
        votes=judge_votes,
        calibration=judge_calibration,
        budget=judge_budget,
        price=judge_price,
        concurrency=judge_concurrency,
    )
    missing = ask_judges(runs, options)
    code = show_runs(
        runs,
        allow_invalid=allow_invalid,
        details=details,
        as_json=as_json,
        rouge=_ROUGE in extras,
        embedder=chosen,
        paper=paper,
    )
    raise typer.Exit(code or int(missing))
