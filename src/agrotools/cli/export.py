"""``agrotools export``: export a benchmark to formats of other programs, or a run to a prediction file."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import typer

from agrotools.cli.options import with_option_groups
from agrotools.cli.output import count_text


@dataclass(frozen=True)
class EveryEvalEverOptions:
    """Facts for Every Eval Ever that no run knows."""

    PANEL: ClassVar = "Every Eval Ever (--format eee)"

    model_id: Annotated[
        str, typer.Option(metavar="DEVELOPER/MODEL", help="Id of the model; by default that of the run, by provider.")
    ] = ""
    organization: Annotated[str, typer.Option(help="Name of the organization that evaluated.")] = "unknown"
    relationship: Annotated[
        Literal["first_party", "third_party", "collaborative", "other"],
        typer.Option(help="Relationship of the evaluating organization to the model's developer."),
    ] = "other"
    deployment_type: Annotated[
        Literal["self_deployed", "externally_managed", "unknown"],
        typer.Option(help="self_deployed: on machines under your control; externally_managed: behind an API."),
    ] = "unknown"
    model_availability: Annotated[
        Literal["open_weights", "closed_weights", "unknown"], typer.Option(help="Whether the weights can be obtained.")
    ] = "unknown"


@with_option_groups
def export(
    benchmark: Annotated[str, typer.Argument(help="Benchmark folder or name, or a run folder.")],
    format: Annotated[
        Literal["hf", "gta", "croissant", "predictions", "inspect", "eee", "parquet", "scores"],
        typer.Option(
            help="Of a benchmark. hf: parquet with pictures, for datasets.load_dataset. gta: GTA-shaped JSON."
            " croissant: the folder itself, described by croissant.json and a card. Of a run. predictions: on gta,"
            " thinkgeo or agent-x, what their own scorers read. inspect: logs for inspect view. eee: Every Eval Ever"
            " 0.3. parquet: a row per sample, and per step. scores: a row per score, as JSON Lines and parquet."
        ),
    ],
    publication: EveryEvalEverOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write; an older export there is replaced. By default, croissant writes in place, and"
            " inspect, eee, parquet and scores write to RUN/export."
        ),
    ] = None,
    images: Annotated[bool, typer.Option("--images", help="With --format inspect: include the pictures.")] = False,
) -> None:
    """Write a benchmark or a run in a format of other programs.

    A folder with other content is never overwritten.
    """
    from agrotools.benchmarks import load_benchmark
    from agrotools.build.export.folder import copy_benchmark, describe_benchmark
    from agrotools.build.export.gta import export_gta
    from agrotools.build.export.huggingface import export_huggingface
    from agrotools.core import UsageError
    from agrotools.core.base import benchmark_title

    place = Path(benchmark).expanduser()
    is_run = (place / "records.jsonl").is_file()
    if format in ("inspect", "eee", "parquet", "scores"):
        _export_run(place, format, out.expanduser() if out else place / "export", images, publication)
        return
    if format == "predictions":
        if not is_run or out is None:
            raise UsageError(
                "only a run can be exported as predictions", hint="agrotools export RUN --format predictions --out DIR"
            )
        _export_predictions(place, out.expanduser())
        return
    if is_run:
        raise UsageError(
            f"{benchmark} is a run: {format} is a format of benchmarks",
            hint="--format inspect, eee, parquet, scores or predictions; agrotools report makes a page",
        )
    loaded = load_benchmark(benchmark)
    in_place = out is None or out.expanduser().resolve() == loaded.root
    if in_place and (format != "croissant" or not place.is_dir()):
        raise UsageError("name another folder to write", hint="--out FOLDER")
    target = loaded.root if out is None or in_place else out.expanduser()
    if format == "hf":
        export_huggingface(loaded.root, loaded.header, loaded.samples, target)
    elif format == "gta":
        export_gta(loaded.root, loaded.header, loaded.samples, target)
    elif in_place:
        describe_benchmark(loaded.root, loaded.header, loaded.samples)
    else:
        copy_benchmark(loaded.root, loaded.header, loaded.samples, target)
    title = benchmark_title(loaded.name, loaded.version)
    typer.echo(f"{title}: {count_text(len(loaded.samples), 'sample')} in {target}")
    if format == "croissant":
        _show_check(target)
    typer.echo(f"Terms of use: {loaded.licence}")


def _export_run(run: Path, format_: str, folder: Path, images: bool, publication: EveryEvalEverOptions) -> None:
    from agrotools.core import UsageError
    from agrotools.report.every_eval_ever import write_every_eval_ever
    from agrotools.report.inspect_log import write_inspect_logs
    from agrotools.report.transcript import write_scores, write_tables

    if images and format_ != "inspect":
        raise UsageError(f"--images is not for {format_}", hint="--format inspect --images")
    if publication != EveryEvalEverOptions() and format_ != "eee":
        raise UsageError(f"options of Every Eval Ever are not for {format_}", hint="--format eee")
    writers: dict[str, Callable[[], list[Path]]] = {
        "inspect": lambda: write_inspect_logs(run, folder, images=images),
        "eee": lambda: write_every_eval_ever(run, folder, **asdict(publication)),
        "parquet": lambda: write_tables(run, folder),
        "scores": lambda: write_scores(run, folder),
    }
    for path in writers[format_]():
        typer.echo(f"{path}: {path.stat().st_size / 1e6:.2f} MB")
    if format_ == "inspect":
        typer.echo(f"opened by: inspect view --log-dir {folder}")
    elif format_ == "eee":
        typer.echo(f"checked by: cd {folder} && every_eval_ever validate 'data/*/*/*/*'")


def _export_predictions(run: Path, folder: Path) -> None:
    from agrotools.runner.predictions import write_predictions

    for each in write_predictions(run, folder):
        typer.echo(f"{each.path}: {count_text(each.predictions, 'prediction')}, {each.mode}")
        if each.invalid:
            typer.echo(f"warning: {count_text(each.invalid, 'sample')} without a reply left out", err=True)
        if each.questions and each.predictions < each.questions:
            typer.echo(
                f"warning: a part of {each.questions} questions; predictions are paired with the data set by place,"
                " so that they can be scored with the same part of it alone",
                err=True,
            )


def _show_check(folder: Path) -> None:
    from agrotools.build.export.folder import check_croissant
    from agrotools.core.base import install_command
    from agrotools.formats.benchmark import CROISSANT_FILE

    issues = check_croissant(folder / CROISSANT_FILE)
    if issues is None:
        typer.echo(f"{CROISSANT_FILE} was not checked: {install_command('croissant')}")
        return
    for issue in issues:
        typer.echo(f"{CROISSANT_FILE}: {issue}", err=True)
    typer.echo(f"{CROISSANT_FILE}: {len(issues)} issues found by mlcroissant")
    if issues:
        raise typer.Exit(1)
