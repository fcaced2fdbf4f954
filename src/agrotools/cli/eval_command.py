"""``agrotools eval``: run a benchmark with a model or baseline, score it, print the screen."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from agrotools.cli.options import AllowInvalid, Details, JudgeOptions, TextOptions, with_option_groups
from agrotools.cli.output import command_line, stop_message

if TYPE_CHECKING:
    from agrotools.runner.config import EvalConfig


@dataclass(frozen=True)
class RunOptions:
    """Benchmark, models, mode and folder of a run."""

    benchmark: Annotated[str | None, typer.Argument(help="Name or folder of a benchmark.", show_default="embedded")] = (
        None
    )
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="Model name on the endpoint, baseline:NAME, replay:RUN, scripted:FILE, or an agent: "
            "python:MODULE:FUNCTION, mcp:COMMAND or http://SERVER (repeatable).",
            show_default="baseline:planner, baseline:oracle and baseline:guess",
        ),
    ] = None
    mode: Annotated[
        str | None,
        typer.Option(
            help="no-tool, step-by-step, end-to-end, several joined by commas, or all.",
            show_default="all; with --quick end-to-end",
        ),
    ] = None
    out: Annotated[Path | None, typer.Option(help="Run folder.", show_default="runs/BENCHMARK-MODEL-HASH")] = None


@dataclass(frozen=True)
class SampleOptions:
    """Selection of the samples."""

    PANEL: ClassVar = "Samples"
    options: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="Benchmark option, NAME=VALUE (repeatable).")
    ] = None
    quick: Annotated[
        bool | None,
        typer.Option("--quick", help="Run the quick part: a fixed selection for a first look; eval alone does."),
    ] = None
    fresh_seed: Annotated[
        int | None,
        typer.Option(min=0, help="Draw the benchmark anew, from other scenes (embedded, frontier), and run that."),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(help="Run a fixed random subset of this many samples in each mode."),
    ] = None
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="N/COUNT",
            help="Run one of COUNT parts, e.g. 3/16 on the third of 16 machines; see agrotools merge.",
        ),
    ] = None
    degrade: Annotated[
        list[str] | None,
        typer.Option(
            help="Degrade the pictures, e.g. gsd=2,blur=1.5,jpeg=30,haze=.3,noise=2 (repeatable: a run for each; none: "
            "the original files).",
        ),
    ] = None
    faults: Annotated[
        list[str] | None,
        typer.Option(
            help="Chances of faults in tool calls, e.g. timeout=.1,error=.1,empty=.1,noise=.1,label=.1,stale=.1 "
            "(repeatable: a run for each; none: a run without).",
        ),
    ] = None
    epochs: Annotated[int | None, typer.Option(help="Repeats of every sample.", show_default="1")] = None
    repeat_until: Annotated[
        float | None,
        typer.Option(
            metavar="WIDTH",
            help="Repeat all samples until the 95 % interval of re-run noise is narrower than WIDTH points.",
        ),
    ] = None
    max_epochs: Annotated[
        int | None, typer.Option(help="With --repeat-until: maximum number of epochs, 2 to 16.", show_default="10")
    ] = None
    seed: Annotated[int | None, typer.Option(help="Random seed.", show_default="0")] = None
    data_root: Annotated[Path | None, typer.Option(help="Folder of the benchmark's files.")] = None


@dataclass(frozen=True)
class ModelOptions:
    """Model, endpoint and protocol."""

    PANEL: ClassVar = "Model and endpoint"
    protocol: Annotated[
        str | None,
        typer.Option(
            help="react or tool-calling; lagent and agent-x on the benchmarks published with them.",
            show_default="as published, else react",
        ),
    ] = None
    base_url: Annotated[str | None, typer.Option(help="OpenAI-compatible endpoint, e.g. http://localhost:8000/v1.")] = (
        None
    )
    api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds the key.", show_default="OPENAI_API_KEY")
    ] = None
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="vllm|llama|transformers", help="Start this server of the model here, and end it after the run."
        ),
    ] = None
    serve_args: Annotated[
        str | None, typer.Option(help='Further arguments of that server, e.g. "--max-model-len 8192".')
    ] = None
    replicas: Annotated[
        int | None, typer.Option(help="Number of such servers, which share the requests.", show_default="1")
    ] = None
    serve_timeout: Annotated[
        float | None, typer.Option(help="Seconds until that server has to answer.", show_default="1800")
    ] = None
    max_steps: Annotated[
        int | None, typer.Option(help="Maximum model turns per sample.", show_default="as published, else 20")
    ] = None
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature.")] = None
    max_output_tokens: Annotated[int | None, typer.Option(help="Token limit of one reply.")] = None
    top_logprobs: Annotated[
        int | None, typer.Option(help="Request token probabilities, and score options by them as well.")
    ] = None
    images: Annotated[
        bool | None,
        typer.Option("--images/--no-images", help="Whether the model sees images.", show_default="set by the protocol"),
    ] = None


@dataclass(frozen=True)
class AgentOptions:
    """Isolation of an agent's program, and the model that it uses."""

    PANEL: ClassVar = "Agents (--model python:..., mcp:... or http:...)"
    agent_env: Annotated[
        list[str] | None,
        typer.Option(
            help="Environment variable that the agent gets, e.g. OPENAI_API_KEY (repeatable).", show_default="none"
        ),
    ] = None
    agent_path: Annotated[
        list[Path] | None,
        typer.Option(help="File or folder that the agent may read, besides its own module or package (repeatable)."),
    ] = None
    agent_model: Annotated[
        str | None,
        typer.Option(
            help="Model that the agent uses through an address of agrotools (OPENAI_BASE_URL), which keeps the key, "
            "counts tokens and cost, and enforces --budget."
        ),
    ] = None
    agent_base_url: Annotated[str | None, typer.Option(help="OpenAI-compatible endpoint of that model.")] = None
    agent_api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds its key.", show_default="OPENAI_API_KEY")
    ] = None


@dataclass(frozen=True)
class CostOptions:
    """Speed and cost."""

    PANEL: ClassVar = "Speed and cost"
    concurrency: Annotated[
        int | None, typer.Option(help="Concurrent requests.", show_default="adapts to the endpoint, up to 128")
    ] = None
    rpm: Annotated[int | None, typer.Option(help="Maximum requests per minute.")] = None
    tpm: Annotated[int | None, typer.Option(help="Maximum tokens per minute.")] = None
    timeout_s: Annotated[
        float | None, typer.Option("--timeout", help="Request timeout in seconds.", show_default="600")
    ] = None
    yes: Annotated[bool, typer.Option("--yes", help="Start without asking if it may cost more than 1 USD.")] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would run, with requests, tokens, cost and time.")
    ] = False
    cache: Annotated[str | None, typer.Option(help="Name of a response cache to read and write.")] = None
    budget: Annotated[float | None, typer.Option(help="Maximum total cost of the run in USD.")] = None
    price: Annotated[str | None, typer.Option(help="Price of the model, IN/OUT in USD per million tokens.")] = None


@dataclass(frozen=True)
class ToolOptions:
    """Selection and back-ends of the tools."""

    PANEL: ClassVar = "Tools"
    tools: Annotated[
        str | None,
        typer.Option(
            metavar="all|needed|+N",
            help="Tools offered: all; needed (those of the reference calls, which hints at the solution); "
            "+N (needed and N others, the same for every model).",
            show_default="all",
        ),
    ] = None
    backends: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            help='Back-end of a tool, TOOL=KIND (repeatable); "recorded" alone: recorded results for all tools.',
        ),
    ] = None
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="local|ray", help="Where tool calls run: here, or on the Ray cluster of RAY_ADDRESS (extra ray)."
        ),
    ] = None
    vlm_model: Annotated[str | None, typer.Option(help="Vision model of tools with --backend TOOL=vlm.")] = None
    vlm_base_url: Annotated[str | None, typer.Option(help="OpenAI-compatible endpoint of that model.")] = None
    vlm_api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable that holds its key.", show_default="OPENAI_API_KEY")
    ] = None
    vlm_price: Annotated[str | None, typer.Option(help="Price of that model, IN/OUT in USD per million tokens.")] = None


@with_option_groups
def evaluate(
    run: RunOptions,
    samples: SampleOptions,
    endpoint: ModelOptions,
    agent: AgentOptions,
    cost: CostOptions,
    tools: ToolOptions,
    judging: JudgeOptions,
    texts: TextOptions,
    config: Annotated[Path | None, typer.Option(help="TOML file with options of the run, e.g. limit = 20.")] = None,
    allow_invalid: AllowInvalid = False,
    details: Details = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Run a benchmark, score it and print where it stands between floor and ceiling. Run it again to resume."""
    import sys
    from contextlib import nullcontext

    from agrotools.cli.planning import ask_before_spending, planned_run, print_plans
    from agrotools.cli.results import Evaluated, ask_judges, check_judges, show_runs
    from agrotools.core import AgrotoolsError
    from agrotools.models.endpoint import without_keys
    from agrotools.runner.config import benchmark_options, check_models, read_config, tool_backends
    from agrotools.runner.evaluate import Evaluation, load_for_run
    from agrotools.runner.evaluate import evaluate as execute

    groups = (
        run,
        samples,
        endpoint,
        agent,
        cost,
        tools,
    )  # the names of their fields are the keys of the configuration file
    values = [item for group in groups for item in vars(group).items()]
    options: dict[str, Any] = {name: value for name, value in values if value not in (None, [])}
    models, dry_run, yes = options.pop("model", []), options.pop("dry_run"), options.pop("yes")
    if run.benchmark is None and not models and config is None:
        options = {"quick": True, **options}
    if samples.options:
        options["options"] = benchmark_options(samples.options)
    if tools.backends:
        options["backends"] = tool_backends(tools.backends)
    fresh_seed = options.pop("fresh_seed", None)
    configs = read_config(config, options, models)
    with without_keys() if dry_run else nullcontext():
        check_models(configs)
        check_judges(judging, [each.benchmark for each in configs])
    if fresh_seed is not None:
        folder = str(fresh_benchmark(configs[0], fresh_seed, () if dry_run else configs))
        configs = [each.model_copy(update={"benchmark": folder}) for each in configs]
    compared = texts.comparisons()
    first = configs[0]
    with stop_message("finished samples are kept"):
        runs: list[Evaluation] = []
        failure: AgrotoolsError | None = None
        with stop_message("no sample was run", ""):
            benchmark = load_for_run(first, sys.stderr, () if dry_run else configs)
        if first.quick and "mode" not in first.model_fields_set and "end-to-end" in benchmark.modes:
            configs = [each.model_copy(update={"mode": "end-to-end"}) for each in configs]
        if dry_run:
            configs = [
                each.model_copy(update={"epochs": each.max_epochs}) if each.repeat_until else each for each in configs
            ]
            raise typer.Exit(print_plans([planned_run(each, benchmark) for each in configs], configs))
        try:
            for each in configs:
                confirm = None if yes else ask_before_spending(each)
                runs.append(execute(each, sys.stderr, benchmark=benchmark, confirm=confirm))
        except AgrotoolsError as error:
            if not runs:
                raise
            failure = error  # shown below the scores of the previous models
        folders = [each.run for each in runs]
        missing = ask_judges(folders, judging)
        code = show_runs(
            folders,
            compared,
            allow_invalid=allow_invalid,
            details=details,
            as_json=as_json,
            evaluated=Evaluated(configs[0], benchmark, runs),
        )
        if len({(each.degrade, each.faults) for each in configs}) > 1:
            typer.echo(f"score against dose: {command_line('curve', *folders)}", err=as_json)
        if failure:
            raise failure
        raise typer.Exit(code or int(missing))


def fresh_benchmark(config: "EvalConfig", seed: int, checked: Sequence["EvalConfig"]) -> Path:
    """Return the folder of the benchmark from other scenes, which is drawn unless it is in the cache already.

    The endpoints of ``checked`` answer a tiny request while scenes are drawn.
    """
    import sys

    from agrotools.benchmarks import load_benchmark
    from agrotools.build.sources.drawn.fresh import fresh_version, write_fresh
    from agrotools.core.files import cache_dir
    from agrotools.runner.config import contacting_progress

    with stop_message("no sample was run, drawn scenes are kept"):
        published = load_benchmark(config.benchmark, config.data_root, options=config.options)
        part = "-quick" if config.quick else ""
        folder = cache_dir("fresh") / f"{published.name}-{fresh_version(published.version, seed)}{part}"
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            write_fresh(published, seed, folder, quick=config.quick, progress=contacting_progress(checked, sys.stderr))
    return folder
