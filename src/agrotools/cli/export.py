"""``agrotools export``: a benchmark in the layouts that others read."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def export(
    benchmark: Annotated[str, typer.Argument(help="Benchmark folder, or the name of a benchmark.")],
    format: Annotated[
        Literal["hf", "gta", "croissant"],
        typer.Option(
            help="hf: parquet with pictures, for datasets.load_dataset. gta: GTA-shaped JSON. croissant: the folder"
            " itself, described by croissant.json and a card."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write; an older export there is replaced. croissant: without it, in place."),
    ] = None,
) -> None:
    """Write a benchmark as a Hugging Face data set, as GTA-shaped JSON, or with Croissant metadata.

    hf and gta are read back by `agrotools build --source hf=DIR` (or gta=DIR). A folder that holds something else is
    never touched.
    """
    from agrotools.benchmarks import load_benchmark
    from agrotools.construct.export import copy_benchmark, describe_benchmark
    from agrotools.construct.export.gta import export_gta
    from agrotools.construct.export.huggingface import export_huggingface
    from agrotools.core import UsageError

    place = Path(benchmark).expanduser()
    if (place / "records.jsonl").is_file():
        raise UsageError(
            f"{benchmark} is a run: these are formats of benchmarks",
            hint="export the benchmark it was made on; a run's records.jsonl is JSON lines, `agrotools report` a page",
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
    typer.echo(f"{loaded.name} {loaded.version}: {len(loaded.samples)} samples in {target}")
    if format == "croissant":
        _show_check(target)
    else:
        typer.echo(f"read back by: agrotools build --source {format}={target} --out BENCHMARK")
    typer.echo(f"Terms of use: {loaded.licence}")


def _show_check(folder: Path) -> None:
    from agrotools.construct.export.croissant import CROISSANT_FILE
    from agrotools.construct.export.croissant_check import check_croissant

    found = check_croissant(folder / CROISSANT_FILE)
    if found is None:
        typer.echo(f"{CROISSANT_FILE} was not checked: pip install 'agrotools[croissant]'")
        return
    for issue in found:
        typer.echo(f"{CROISSANT_FILE}: {issue}", err=True)
    typer.echo(f"{CROISSANT_FILE}: {len(found)} issues found by mlcroissant")
    if found:
        raise typer.Exit(1)
