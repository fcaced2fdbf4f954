"""``agrotools eval``: run a benchmark with a model or baseline, score it, print the table."""

from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.output import STOPPED
from agrotools.cli.results import (
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
    ask_judges,
    check_judges,
    text_comparisons,
)

_SAMPLES = "Samples"
_MODEL = "Model and endpoint"
_COST = "Speed and cost"
_TOOLS = "Tools"
_OUTPUT = "Output"


def evaluate(
    benchmark: Annotated[
        str | None, typer.Argument(help="Name or folder of a benchmark.", show_default="embedded")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="Model name on the endpoint, baseline:NAME, replay:RUN or scripted:FILE (repeatable).",
            show_default="baseline:planner and baseline:oracle",
        ),
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="no-tool, step-by-step, end-to-end or all.", show_default="all")
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            help="react, tool-calling or one of a benchmark plug-in (an unknown name lists them all); for models.",
            show_default="as published, else react",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(help="OpenAI-compatible endpoint, e.g. http://localhost:8000/v1.", rich_help_panel=_MODEL),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            help="Environment variable that holds the key.", show_default="OPENAI_API_KEY", rich_help_panel=_MODEL
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", help="Benchmark option, NAME=VALUE (repeatable).", rich_help_panel=_SAMPLES),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            help="Run a fixed random subset of this many samples, of which a mode may exclude some.",
            rich_help_panel=_SAMPLES,
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Repeats of every sample.", show_default="1", rich_help_panel=_SAMPLES)
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option(
            help="Maximum model turns per sample.", show_default="as published, else 20", rich_help_panel=_MODEL
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.", show_default="0", rich_help_panel=_SAMPLES)] = None,
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature.", rich_help_panel=_MODEL)] = None,
    max_output_tokens: Annotated[
        int | None, typer.Option(help="Token limit of one reply.", rich_help_panel=_MODEL)
    ] = None,
    top_logprobs: Annotated[
        int | None,
        typer.Option(help="Request token probabilities, and score options by them as well.", rich_help_panel=_MODEL),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            help="Concurrent requests.", show_default="adapts to the endpoint, up to 128", rich_help_panel=_COST
        ),
    ] = None,
    rpm: Annotated[int | None, typer.Option(help="Maximum requests per minute.", rich_help_panel=_COST)] = None,
    tpm: Annotated[int | None, typer.Option(help="Maximum tokens per minute.", rich_help_panel=_COST)] = None,
    timeout: Annotated[
        float | None,
        typer.Option(help="Request timeout in seconds.", show_default="600", rich_help_panel=_COST),
    ] = None,
    cache: Annotated[
        str | None, typer.Option(help="Name of a response cache to read and write.", rich_help_panel=_COST)
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Maximum total cost of the run in USD.", rich_help_panel=_COST)
    ] = None,
    price: Annotated[
        str | None, typer.Option(help="Price of the model, IN/OUT in USD per million tokens.", rich_help_panel=_COST)
    ] = None,
    images: Annotated[
        bool | None,
        typer.Option(
            "--images/--no-images",
            help="Whether the model sees images.",
            show_default="as the protocol has it",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option(
            help="Back-end of a tool, TOOL=KIND, or recorded for all tools (repeatable).", rich_help_panel=_TOOLS
        ),
    ] = None,
    vlm_model: Annotated[
        str | None, typer.Option(help="Vision model of tools with --backend TOOL=vlm.", rich_help_panel=_TOOLS)
    ] = None,
    vlm_base_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible endpoint of that model.", rich_help_panel=_TOOLS)
    ] = None,
    vlm_api_key_env: Annotated[
        str | None,
        typer.Option(
            help="Environment variable that holds its key.", show_default="OPENAI_API_KEY", rich_help_panel=_TOOLS
        ),
    ] = None,
    vlm_price: Annotated[
        str | None, typer.Option(help="Price of that model, IN/OUT in USD per million tokens.", rich_help_panel=_TOOLS)
    ] = None,
    data_root: Annotated[
        Path | None, typer.Option(help="Folder of the benchmark's files.", rich_help_panel=_SAMPLES)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder.", show_default="runs/BENCHMARK-MODEL-HASH")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with options of the run, e.g. limit = 20.")] = None,
    judge: Judges = None,
    judge_base_url: JudgeBaseUrl = None,
    judge_api_key_env: JudgeApiKeyEnv = None,
    judge_votes: JudgeVotes = 1,
    judge_calibration: JudgeCalibration = None,
    judge_rubrics: JudgeRubrics = None,
    judge_budget: JudgeBudget = None,
    judge_price: JudgePrice = None,
    judge_concurrency: JudgeConcurrency = None,
    extra: Extra = None,
    embedder: EmbedderName = None,
    embedder_path: EmbedderPath = None,
    allow_invalid: Annotated[
        bool,
        typer.Option(
            "--allow-invalid",
            help="Report scores even if more than 1 % of samples are invalid.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Also show scores by task and answer type, and statistics of the run.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.", rich_help_panel=_OUTPUT)] = False,
) -> None:
    """Run a benchmark, score it and print the table. Run the same command again to resume."""
    import sys

    from agrotools.api import Run, evaluate_config
    from agrotools.cli.results import show_evaluations
    from agrotools.core import AgrotoolsError
    from agrotools.runner.config import benchmark_options, read_config, tool_backends

    options = {
        "benchmark": benchmark,
        "mode": mode,
        "protocol": protocol,
        "base_url": base_url,
        "api_key_env": api_key_env,
        "limit": limit,
        "epochs": epochs,
        "max_steps": max_steps,
        "seed": seed,
        "temperature": temperature,
        "max_output_tokens": max_output_tokens,
        "top_logprobs": top_logprobs,
        "concurrency": concurrency,
        "rpm": rpm,
        "tpm": tpm,
        "timeout_s": timeout,
        "cache": cache,
        "budget": budget,
        "price": price,
        "images": images,
        "vlm_model": vlm_model,
        "vlm_base_url": vlm_base_url,
        "vlm_api_key_env": vlm_api_key_env,
        "vlm_price": vlm_price,
        "data_root": data_root,
        "out": out,
    }
    if option:
        options["options"] = benchmark_options(option)
    if backend:
        options["backends"] = tool_backends(backend)
    configs = read_config(config, {name: value for name, value in options.items() if value is not None}, model or [])
    judging = JudgeOptions(
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
    check_judges(judging, [each.benchmark for each in configs])
    compared = text_comparisons(extra, embedder, embedder_path)
    runs: list[Run] = []
    failure: AgrotoolsError | None = None
    try:
        for each in configs:
            runs.append(evaluate_config(each, sys.stderr))
    except AgrotoolsError as error:
        if not runs:
            raise
        failure = error  # shown below the tables of the previous models
    except KeyboardInterrupt:
        typer.echo("\nstopped: finished samples are kept; run the same command again to resume", err=True)
        raise typer.Exit(STOPPED) from None
    missing = ask_judges([each.path for each in runs], judging)
    code = show_evaluations(
        runs,
        allow_invalid=allow_invalid,
        details=details,
        as_json=as_json,
        comparisons=compared,
    )
    if failure:
        raise failure
    raise typer.Exit(code or int(missing))
