"""``agrotools build``: make a benchmark from a data set on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agrotools.cli.output import count_text, stop_message, terminal_progress

if TYPE_CHECKING:
    from agrotools.formats.benchmark import BenchmarkHeader


_FEWEST_DRAWN = 20
"""Fewest questions about drawn scenes that have the shares of ``embedded``."""
_WITH = {
    "--scenes": ("--queries", "--language"),
    "--choose": ("--images", "--by"),
    "--answers": ("--images", "--plan", "--yes"),
    "--source": ("--queries", "--allow-missing"),
    "--all-sources": ("--queries", "--allow-missing"),
}
"""Options that name the source of a benchmark, each with the options that go with it."""


def build(
    out: Annotated[Path, typer.Option(help="Folder of the benchmark (an older one is replaced); table of --choose.")],
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="Data set and its folder, NAME=DIR, e.g. clcd=data; agml:NAME=DIR for a data set of AgML."
            " Repeat it to join public data sets; docs/building.md lists the real files that their adapters have read."
        ),
    ] = None,
    all_sources: Annotated[
        Path | None, typer.Option(help="Folder with one folder per public data set, named as for --source.")
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of samples of public data sets (default: 539) or of drawn scenes (as in embedded)."
        ),
    ] = None,
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing", help="Use the files that exist if a data set is incomplete, and count the others."
        ),
    ] = False,
    images: Annotated[Path | None, typer.Option(help="Your own photos, used with --answers or --choose.")] = None,
    answers: Annotated[
        Path | None, typer.Option(help="Table of photos and ground truth (.csv, .xlsx), or annotations (COCO...).")
    ] = None,
    choose: Annotated[int | None, typer.Option(min=1, help="Write a table of this many photos to label.")] = None,
    by: Annotated[str | None, typer.Option(help="Groups for --choose: block (folder), day, device.")] = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="File that says what the columns mean. Default: TABLE.plan.toml, written on the first run."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Accept the proposed plan without questions.")] = False,
    scenes: Annotated[
        int | None, typer.Option(min=0, metavar="SEED", help="Ask the questions of embedded about new drawn scenes.")
    ] = None,
    language: Annotated[
        Literal["en", "zh"] | None, typer.Option(help="Language of questions about drawn scenes.", show_default="en")
    ] = None,
) -> None:
    """Build a benchmark folder from a data set, from your own photos and a table, or from drawn scenes.

    Runs the reference calls, checks the result and prints its terms of use.

    A failed build leaves nothing behind. A folder that holds anything but a benchmark is never overwritten.
    """
    import time

    from agrotools.build.sources import build_sources
    from agrotools.build.sources.public import folders_in
    from agrotools.core import UsageError

    started = time.monotonic()
    stop = stop_message("no benchmark is written, finished measurements are kept")
    given = {
        "--scenes": scenes, "--choose": choose, "--answers": answers, "--source": source, "--all-sources": all_sources,
        "--images": images, "--by": by, "--plan": plan, "--yes": yes or None, "--queries": queries,
        "--language": language, "--allow-missing": allow_missing or None,
    }  # fmt: skip
    _check_options([name for name, value in given.items() if value is not None])
    if scenes is not None:
        if queries is not None and queries < _FEWEST_DRAWN:
            raise UsageError(f"--queries {queries} is too few for --scenes", hint=f"{_FEWEST_DRAWN} or more")
        with stop_message("no benchmark is written, drawn scenes are kept"):
            header = _draw_scenes(out.expanduser(), scenes, queries, language or "en")
    elif images is not None and choose is not None:
        from agrotools.build.own_photos.selection import write_choice

        for line in write_choice(images, choose, by, out.expanduser()):
            typer.echo(line)
        return
    elif images is not None and answers is not None:
        from agrotools.cli.own_farm import build_from_table, print_next_steps

        with stop:
            header = build_from_table(images, answers, out.expanduser(), plan, yes=yes, progress=terminal_progress())
        print_result(header, out, started)
        print_next_steps(out)
        return
    else:
        if all_sources is not None:
            source = [f"{name}={folder}" for name, folder in folders_in(all_sources.expanduser()).items()]
        with stop:
            header = build_sources(source or [], out, terminal_progress(), queries, allow_missing)
    print_result(header, out, started)


def _check_options(given: list[str]) -> None:
    """Raise UsageError unless ``given`` are one of :data:`_WITH` and options that go with it."""
    from agrotools.core import UsageError

    kinds = [name for name in given if name in _WITH]
    if len(kinds) != 1:
        raise UsageError(
            f"{' and '.join(kinds)} cannot be given together" if kinds else "it is not said what to build from",
            hint="--source NAME=DIR, --all-sources DIR, --scenes SEED, --images DIR --answers TABLE, or --images DIR"
            " --choose N; TABLE is a table image,label with a row for each photo (agrotools tools packs train also"
            " takes a folder for each class)",
        )
    own = _WITH[kinds[0]]
    if others := [name for name in given if name not in (*kinds, *own)]:
        raise UsageError(f"{others[0]} does not apply to {kinds[0]}", hint=f"it goes with: {', '.join(own)}")
    if "--images" in own and "--images" not in given:
        raise UsageError(f"{kinds[0]} needs the folder of the photos", hint="add --images DIR")


def _draw_scenes(out: Path, seed: int, queries: int | None, language: Literal["en", "zh"]) -> "BenchmarkHeader":
    """Build a benchmark of the questions of ``embedded`` about new scenes, in the same shares."""
    from dataclasses import replace

    from agrotools.benchmarks.loading import Loading, load_as
    from agrotools.build.sources.drawn.fresh import share_of, write_fresh

    embedded = load_as("embedded", Loading(files_later=True))
    wanted = replace(embedded, samples=share_of(embedded.samples, queries or len(embedded.samples)))
    return write_fresh(wanted, seed, out, name="scenes", language=language, progress=terminal_progress())


def print_result(header: "BenchmarkHeader", out: Path, started: float) -> None:
    """Check the benchmark in ``out`` and print its content, faults, terms of use and doubtful samples.

    Raises:
        typer.Exit: code 1, the benchmark has faults.
    """
    import time

    from agrotools.benchmarks import load_folder
    from agrotools.benchmarks.describing import count_samples
    from agrotools.benchmarks.validate import validate_folder
    from agrotools.build.quality import check_quality
    from agrotools.build.references import build_notes
    from agrotools.build.review.agreement import REVIEW_FILE
    from agrotools.cli.folder_check import print_findings
    from agrotools.core.base import benchmark_title
    from agrotools.scoring.statistics import MIN_CLUSTERS

    faults = validate_folder(out)
    for fault in faults:
        typer.echo(f"{fault.where}: {fault.code}: {fault.message} ({fault.hint})", err=True)
    benchmark = load_folder(out)
    clusters = len({sample.cluster for sample in benchmark.samples})
    samples = count_text(len(benchmark.samples), "sample")
    title = benchmark_title(header.name, header.version)
    typer.echo(f"{title}: {samples} ({count_text(clusters, 'cluster')}) in {out}")
    shown = [file.path for sample in benchmark.samples for file in sample.files]
    typer.echo(f"  files: {len(set(shown))} unique ones, shown {len(shown)} times")
    counted = count_samples(benchmark.samples)
    for what, counts in {
        "task types": counted["task_types"],
        "answer types": counted["answer_types"],
        "slots": counted["slots"],
        "number of reference calls": counted["steps_per_question"],
        "can be asked without tools": {"yes" if can else "no": n for can, n in counted["no_tool"].items()},
    }.items():
        typer.echo(f"  {what}: {', '.join(f'{name} ({count})' for name, count in sorted(counts.items()))}")
    if clusters < MIN_CLUSTERS:
        typer.echo(f"  intervals need {MIN_CLUSTERS} clusters (groups of samples that share pictures): add pictures")
    if (out / REVIEW_FILE).is_file():
        typer.echo(
            f"  {REVIEW_FILE} of the replaced benchmark was kept: decisions count for samples that are unchanged"
        )
    for line in build_notes(header.metadata):
        typer.echo(f"  {line}")
    typer.echo(f"  content: {benchmark.content_hash[:16]}, {time.monotonic() - started:.0f} s")
    if note := header.metadata.get("note"):
        typer.echo(str(note))
    typer.echo(f"Terms of use: {header.licence}")
    print_findings(out, check_quality(out, terminal_progress()), brief=True)
    if faults:
        typer.echo(f"{count_text(len(faults), 'fault')}; please report this", err=True)
        raise typer.Exit(1)
