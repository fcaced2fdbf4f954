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
    count: Annotated[
        int | None,
        typer.Option(
            min=20, help="Number of questions with the unanswerable ones; at most and by default, as in embedded."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the scenes.")] = 0,
    language: Annotated[Literal["en", "zh"], typer.Option(help="Language of the questions.")] = "en",
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Number of processes that draw scenes and run tools.")
    ] = 2,
) -> None:
    """Build a benchmark from drawn scenes of fields, trees, fruit, leaves and ponds.

    Asks the questions of embedded about new scenes, in the same shares, and runs the reference calls. They are of
    classes that the tools of the package can solve. All images are synthetic: they test how tools are used, not how
    well models see. A few questions may be lost where a scene gives no clear answer. Run the same command again to
    resume.
    """
    import time
    from dataclasses import replace

    from agrotools.benchmarks.loading import Loading, load_as
    from agrotools.build.sources.drawn.fresh import share_of, write_fresh
    from agrotools.cli.build import print_result

    started = time.monotonic()
    embedded = load_as("embedded", Loading(files_later=True))
    wanted = replace(embedded, samples=share_of(embedded.samples, count or len(embedded.samples)))
    with with_helper_models(out, helpers), stop_message("no benchmark is written, drawn scenes are kept"):
        header = write_fresh(
            wanted,
            seed,
            out.expanduser(),
            name="scenes",
            language=language,
            progress=terminal_progress(),
            workers=workers,
        )
    print_result(header, out, started)
