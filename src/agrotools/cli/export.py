"""``agrotools export``: export a benchmark to formats of other programs, or a run to a prediction file."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from agrotools.cli.output import count_text


def export(
    benchmark: Annotated[str, typer.Argument(help="Benchmark folder or name, or a run folder.")],
    format: Annotated[
        Literal["hf", "gta", "croissant", "predictions"],
        typer.Option(
            help="hf: parquet with pictures, for datasets.load_dataset. gta: GTA-shaped JSON. croissant: the folder"
            " itself, described by croissant.json and a card. predictions: of a run on gta, thinkgeo or agent-x, what"
            " their own scorers read."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write; an older export there is replaced. croissant writes in place by default."),
    ] = None,
) -> None:
    """Write a benchmark as a Hugging Face data set, as GTA-shaped JSON, or with Croissant metadata.

    hf and gta are read back by `agrotools build --source hf=DIR` (or gta=DIR). A folder that holds anything else is
    never overwritten.
    """
    from agrotools.benchmarks import load_benchmark
    from agrotools.build.export import copy_benchmark, describe_benchmark
    from agrotools.build.export.gta import export_gta
    from agrotools.build.export.huggingface import export_huggingface
    from agrotools.core import UsageError

    place = Path(benchmark).expanduser()
    is_run = (place / "records.jsonl").is_file()
    if format == "predictions":
        if not is_run or out is None:
            raise UsageError(
                "predictions are those of a run", hint="agrotools export RUN --format predictions --out DIR"
            )
        _export_predictions(place, out.expanduser())
        return
    if is_run:
        raise UsageError(
            f"{benchmark} is a run: {format} is a format of benchmarks",
            hint="--format predictions is one of runs; records.jsonl is JSON lines, `agrotools report` a page",
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
    typer.echo(f"{loaded.name} {loaded.version}: {count_text(len(loaded.samples), 'sample')} in {target}")
    if format == "croissant":
        _show_check(target)
    else:
        typer.echo(f"read back by: agrotools build --source {format}={target} --out BENCHMARK")
    typer.echo(f"Terms of use: {loaded.licence}")


def _export_predictions(run: Path, folder: Path) -> None:
    from agrotools.core import RunStoreError
    from agrotools.runner.predictions import write_predictions

    try:
        written = write_predictions(run, folder)
    except OSError as error:
        raise RunStoreError(
            f"{folder} cannot be written: {error.strerror or error}", hint="choose another --out"
        ) from error
    for each in written:
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
    from agrotools.build.export.croissant import check_croissant
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
