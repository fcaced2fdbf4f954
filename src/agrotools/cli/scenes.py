"""``agrotools scenes``: build a benchmark of drawn scenes."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from agrotools.cli.helping import with_helper_models
from agrotools.cli.options import HelperOptions, with_option_groups
from agrotools.cli.output import stop_message, terminal_progress


@with_option_groups
def scenes(
    out: Annotated[Path, typer.Option(help="Folder of the benchmark. An older benchmark there is replaced.")],
    helpers: HelperOptions,
    count: Annotated[int, typer.Option(min=20, max=2000, help="Number of questions (samples).")] = 539,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the scenes.")] = 20261120,
    language: Annotated[Literal["en", "zh"], typer.Option(help="Language of the questions.")] = "en",
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Number of processes that draw scenes and run tools.")
    ] = 2,
) -> None:
    """Build a benchmark from drawn scenes of fields, trees, fruit, leaves and ponds.

    Generates the questions, in the proportions of the AgroTools benchmark as closely as --count allows, and runs the
    reference calls. All images are synthetic: they test how tools are used, not how well models see. Run the same
    command again to resume.
    """
    import time

    from agrotools.build.sources.drawn.benchmark import build_scenes
    from agrotools.cli.build import print_result

    started = time.monotonic()
    with with_helper_models(out, helpers), stop_message("no benchmark is written, drawn scenes are kept"):
        header = build_scenes(
            out.expanduser(),
            count,
            seed=seed,
            language=language,
            progress=terminal_progress(),
            workers=workers,
        )
    missed = header.metadata.get("marginals_missed")
    if isinstance(missed, dict) and missed:
        differences_text = ", ".join(
            f"{name} {number:+d}" for name, number in missed.items() if isinstance(number, int)
        )
        typer.echo(f"Differences from the published composition: {differences_text}", err=True)
    print_result(header, out, started)
