"""``agrotools score``: score a finished run again, from what its folder holds."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.scoring_options import (
    EmbedderName,
    EmbedderPath,
    Extra,
    JudgeApiKeyEnv,
    JudgeBaseUrl,
    JudgeBudget,
    JudgeCalibration,
    JudgeConcurrency,
    JudgeOptions,
    JudgePrice,
    JudgeRubrics,
    Judges,
    JudgeVotes,
    Unadjusted,
    ask_judges,
    comparing,
)


def score(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or one prediction file with --format.")],
    extra: Extra = None,
    allow_invalid: Annotated[
        bool, typer.Option(help="Report scores even if more than 1 % of samples are invalid.")
    ] = False,
    details: Annotated[
        bool, typer.Option(help="Also show scores by task and answer type, and statistics of the run.")
    ] = False,
    paper: Annotated[
        bool,
        typer.Option("--paper", help="Also print the tables of the benchmark's paper, with its figures."),
    ] = False,
    judge: Judges = None,
    judge_base_url: JudgeBaseUrl = None,
    judge_api_key_env: JudgeApiKeyEnv = None,
    judge_votes: JudgeVotes = 1,
    judge_calibration: JudgeCalibration = None,
    judge_rubrics: JudgeRubrics = None,
    judge_budget: JudgeBudget = None,
    judge_price: JudgePrice = None,
    judge_concurrency: JudgeConcurrency = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="Score a prediction file in this benchmark's format."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="With --format: the data set that holds the reference answers.")
    ] = None,
    judgements: Annotated[Path | None, typer.Option(help="With --format: replies of a judge (JSON or CSV).")] = None,
    embedder: EmbedderName = None,
    embedder_path: EmbedderPath = None,
    unadjusted: Unadjusted = False,
    rescore: Annotated[
        bool, typer.Option("--rescore", help="Score runs of an older scoring version with the current one.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Score runs again and print the table, offline unless --judge is given. Several runs are shown side by side.

    Scores of an older scoring version are shown as they are stored, unless --rescore is given.
    """
    from agrotools.cli.results import show_runs
    from agrotools.core import UsageError
    from agrotools.runner.rescore import shown_as_stored

    if format_ is None and (data or judgements):
        raise UsageError("--data and --judgements go with --format", hint="--format gta|thinkgeo|agentx")
    if format_ is not None:
        from agrotools.cli.score_predictions import score_predictions

        of_runs = {"--rescore": rescore, "--judge": judge, "--with": extra, "--details": details, "--paper": paper}
        if wrong := [name for name, value in of_runs.items() if value]:
            hint = "a file is compared with --embedder, and what a judge said is read from --judgements FILE"
            raise UsageError(f"{wrong[0]} is for runs, not for --format", hint=hint)
        given = {"data": data, "judgements": judgements, "embedder": embedder, "embedder_path": embedder_path}
        raise typer.Exit(score_predictions(runs, format_, **given, as_json=as_json))
    compared = comparing(extra, embedder, embedder_path)
    options = JudgeOptions(
        tuple(judge or ()),
        base_url=judge_base_url,
        api_key_env=judge_api_key_env,
        votes=judge_votes,
        calibration=judge_calibration,
        rubrics=judge_rubrics,
        budget=judge_budget,
        price=judge_price,
        concurrency=judge_concurrency,
    )
    if not rescore:
        # Before a judge is paid for what stored scores cannot take in.
        wanted = {"--judge": judge, "--with": extra, "--embedder": embedder, "--embedder-path": embedder_path}
        wanted |= {"--paper": paper, "--allow-invalid": allow_invalid}
        shown_as_stored(runs, [name for name, value in wanted.items() if value])
    missing = ask_judges(runs, options)
    code = show_runs(
        runs,
        allow_invalid=allow_invalid,
        details=details,
        as_json=as_json,
        comparisons=compared,
        paper=paper,
        unadjusted=unadjusted,
        again=rescore,
    )
    raise typer.Exit(code or int(missing))
