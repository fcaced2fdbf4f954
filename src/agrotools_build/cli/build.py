"""``agrotools build``, ``init`` and ``export``: make a benchmark, start one as a package, write it in other formats."""

import keyword
import re
import sys
from collections import Counter
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from agrotools.cli.output import command_line, count_text, stop_message, terminal_progress
from agrotools.cli.reading import new_readings
from agrotools.exit_codes import FAULTS

if TYPE_CHECKING:
    from agrotools.formats.benchmark import BenchmarkHeader


_FEWEST_DRAWN = 20
"""Fewest questions about drawn scenes that have the shares of ``embedded``."""
_WITH = {
    "--scenes": ("--queries", "--language"),
    "--choose": ("--images", "--by"),
    "--answers": ("--images", "--plan", "--set", "--yes", "--backend", "--strangers"),
    "--source": ("--queries", "--allow-missing"),
    "--all-sources": ("--queries", "--allow-missing"),
}
"""Options that name the source of a benchmark, each with the options that go with it."""


def build(
    out: Path,
    source: list[str] | None = None,
    all_sources: Path | None = None,
    queries: int | None = None,
    allow_missing: bool = False,
    images: Path | None = None,
    answers: Path | None = None,
    choose: int | None = None,
    by: str | None = None,
    plan: Path | None = None,
    settings: list[str] | None = None,
    yes: bool = False,
    backends: list[str] | None = None,
    strangers: Path | None = None,
    scenes: int | None = None,
    language: Literal["en", "zh"] | None = None,
) -> None:
    """Build a benchmark folder from a data set, from your own photos and a table, or from drawn scenes.

    Runs the reference calls, checks the result and prints its terms of use.

    A failed build leaves nothing behind. A folder that holds anything but a benchmark is never overwritten.
    """
    import time

    from agrotools.core import UsageError
    from agrotools_build.sources import build_sources
    from agrotools_build.sources.public import folders_in

    started = time.monotonic()
    stop = stop_message("no benchmark is written, finished measurements are kept")
    given = {
        "--scenes": scenes, "--choose": choose, "--answers": answers, "--source": source, "--all-sources": all_sources,
        "--images": images, "--by": by, "--plan": plan, "--set": settings, "--yes": yes or None, "--queries": queries,
        "--backend": backends, "--strangers": strangers,
        "--language": language, "--allow-missing": allow_missing or None,
    }  # fmt: skip
    _check_options([name for name, value in given.items() if value is not None])
    if scenes is not None:
        if queries is not None and queries < _FEWEST_DRAWN:
            raise UsageError(
                f"--queries {queries} is too few for --scenes", hint=f"{_FEWEST_DRAWN} or more"
            )
        with stop_message("no benchmark is written, drawn scenes are kept"):
            header = _draw_scenes(out.expanduser(), scenes, queries, language or "en")
    elif images is not None and choose is not None:
        from agrotools_build.own_photos.selection import write_choice

        for line in write_choice(images, choose, by, out.expanduser()):
            typer.echo(line)
        return
    elif images is not None and answers is not None:
        from agrotools_build.cli.own_farm import build_from_table, print_next_steps

        with stop:
            header = build_from_table(
                images,
                answers,
                out.expanduser(),
                plan,
                yes=yes,
                given=settings or (),
                backends=backends or (),
                strangers=strangers.expanduser() if strangers is not None else None,
                progress=terminal_progress(),
            )
        print_result(header, out, started)
        print_next_steps(out)
        return
    else:
        if all_sources is not None:
            source = [
                f"{name}={folder}" for name, folder in folders_in(all_sources.expanduser()).items()
            ]
        with stop:
            header = build_sources(source or [], out, terminal_progress(), queries, allow_missing)
    print_result(header, out, started)


def _check_options(given: list[str]) -> None:
    """Raise UsageError unless ``given`` are one of :data:`_WITH` and options that go with it."""
    from agrotools.core import UsageError

    kinds = [name for name in given if name in _WITH]
    if len(kinds) != 1:
        raise UsageError(
            f"{' and '.join(kinds)} cannot be given together"
            if kinds
            else "it is not said what to build from",
            hint="--source NAME=DIR, --all-sources DIR, --scenes SEED, --images DIR --answers TABLE, or --images DIR"
            " --choose N; TABLE is a table image,label with a row for each photo (agrotools tools packs train also"
            " takes a folder for each class)",
        )
    own = _WITH[kinds[0]]
    if others := [name for name in given if name not in (*kinds, *own)]:
        raise UsageError(
            f"{others[0]} does not apply to {kinds[0]}", hint=f"it goes with: {', '.join(own)}"
        )
    if "--images" in own and "--images" not in given:
        raise UsageError(f"{kinds[0]} needs the folder of the photos", hint="add --images DIR")


def _draw_scenes(
    out: Path, seed: int, queries: int | None, language: Literal["en", "zh"]
) -> "BenchmarkHeader":
    """Build a benchmark of the questions of ``embedded`` about new scenes, in the same shares."""
    from dataclasses import replace

    from agrotools.loading.benchmarks import Loading, load_as
    from agrotools_build.sources.drawn.fresh import share_of, write_fresh

    embedded = load_as("embedded", Loading(files_later=True))
    wanted = replace(embedded, samples=share_of(embedded.samples, queries or len(embedded.samples)))
    return write_fresh(
        wanted, seed, out, name="scenes", language=language, progress=terminal_progress()
    )


def print_result(header: "BenchmarkHeader", out: Path, started: float) -> None:
    """Check the benchmark in ``out`` and print its content, faults, terms of use and doubtful samples."""
    import time

    from agrotools.core.texts import benchmark_title
    from agrotools.loading import load_folder
    from agrotools.loading.describing import count_samples
    from agrotools.loading.validate import validate_folder
    from agrotools.scoring.statistics import MIN_CLUSTERS
    from agrotools_build.cli.findings import print_findings
    from agrotools_build.quality import check_quality
    from agrotools_build.references import build_notes
    from agrotools_build.review.agreement import REVIEW_FILE

    faults = validate_folder(out)
    benchmark = load_folder(out)
    clusters = len({sample.cluster for sample in benchmark.samples})
    title, samples = (
        benchmark_title(header.name, header.version),
        count_text(len(benchmark.samples), "sample"),
    )
    typer.echo(f"{title}: {samples} ({count_text(clusters, 'cluster')}) in {out}")
    shown = [file.path for sample in benchmark.samples for file in sample.files]
    typer.echo(f"  files: {len(set(shown))} unique ones, shown {len(shown)} times")
    counted = count_samples(benchmark.samples)
    for what, counts in {
        "task types": counted["task_types"],
        "questions by answer type": counted["answer_types"],
        "parts of answers (slots) by type": counted["slots"],
        "number of reference calls": counted["steps_per_question"],
        "can be asked without tools": {
            "yes" if can else "no": n for can, n in counted["no_tool"].items()
        },
    }.items():
        typer.echo(
            f"  {what}: {', '.join(f'{name} ({count})' for name, count in sorted(counts.items()))}"
        )
    if clusters < MIN_CLUSTERS:
        typer.echo(
            f"  intervals need {MIN_CLUSTERS} clusters (groups of samples that share a file): add pictures"
        )
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
        counts = Counter(fault.code for fault in faults).most_common()
        codes = ", ".join(f"{code} ({count})" for code, count in counts)
        listing = command_line("benchmarks", "check", out)
        typer.echo(f"{count_text(len(faults), 'error')} of the check: {codes}", err=True)
        typer.echo(f"hint: list them with {listing}", err=True)
        raise typer.Exit(FAULTS)


_TEMPLATE = "my_field"


def init(name: str) -> None:
    """Write a benchmark as a package for pip: one tool, three questions and a test.

    It runs as it is. Replace the tool and the questions by yours.
    """
    from agrotools.core import BENCHMARKS, UsageError

    folder = Path(name)
    if not re.fullmatch("[a-z][a-z0-9_]{0,40}", name):
        raise UsageError(f"{name!r} is no name of a Python module", hint="use a to z, 0 to 9 and _")
    if folder.exists() or name in BENCHMARKS:
        what = f"{folder} exists" if folder.exists() else f"there is a benchmark {name}"
        raise UsageError(f"{what} already", hint="choose another name")
    if keyword.iskeyword(name):
        why = f"{name!r} is a keyword of Python, which cannot be imported"
        raise UsageError(why, hint="choose another name, such as my_field")
    if name in sys.stdlib_module_names or find_spec(name) is not None:
        why = f"there is a Python module {name} already, which the new one would hide"
        raise UsageError(why, hint=f"choose another name, such as {name}_field")
    folder.mkdir()
    for file in files("agrotools_build").joinpath("data", "template").iterdir():
        if file.is_file():
            text = file.read_text(encoding="utf-8").replace(_TEMPLATE, name)
            (folder / file.name.replace(_TEMPLATE, name)).write_text(text, encoding="utf-8")
    typer.echo(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    typer.echo(f"next: cd {folder} && pip install -e . && {command_line('eval', name)}")


def export(
    benchmark: str,
    format: Literal["hf", "croissant", "predictions", "parquet", "scores", "result", "messages"],
    out: Path | None = None,
    min_score: float | None = None,
) -> None:
    """Write a benchmark or a run in a format of other programs.

    A folder with other content is never overwritten.
    """
    from agrotools.core import UsageError
    from agrotools.core.texts import benchmark_title
    from agrotools.loading.benchmarks import Loading, load_as
    from agrotools_build.export.folder import copy_benchmark, describe_benchmark
    from agrotools_build.export.huggingface import export_huggingface

    place = Path(benchmark).expanduser()
    is_run = (place / "records.jsonl").is_file()
    folder = out.expanduser() if out else place / "export"
    if min_score is not None and format != "messages":
        raise UsageError("--min-score is for --format messages", hint="omit it")
    if format in ("parquet", "scores", "result"):
        _export_files(place, format, folder)
        return
    if format == "messages":
        _export_messages(place, folder, min_score)
        return
    if format == "predictions":
        if not is_run or out is None:
            hint = "agrotools export RUN --format predictions --out DIR"
            raise UsageError("only a run can be exported as predictions", hint=hint)
        _export_predictions(place, out.expanduser())
        return
    if is_run:
        hint = "--format parquet, scores, result, messages or predictions; agrotools report makes a page"
        raise UsageError(f"{benchmark} is a run: {format} is a format of benchmarks", hint=hint)
    loaded = load_as(benchmark, Loading(readings=new_readings(yes=False)))
    in_place = out is None or out.expanduser().resolve() == loaded.root
    if in_place and (format != "croissant" or not place.is_dir()):
        raise UsageError("name another folder to write", hint="--out FOLDER")
    target = loaded.root if out is None or in_place else out.expanduser()
    if format == "hf":
        export_huggingface(loaded.root, loaded.header, loaded.samples, target)
    elif in_place:
        describe_benchmark(loaded.root, loaded.header, loaded.samples)
    else:
        copy_benchmark(loaded.root, loaded.header, loaded.samples, target)
    title = benchmark_title(loaded.name, loaded.version)
    typer.echo(f"{title}: {count_text(len(loaded.samples), 'sample')} in {target}")
    typer.echo(f"Terms of use: {loaded.licence}")


def _export_files(run: Path, format_: Literal["parquet", "scores", "result"], folder: Path) -> None:
    from agrotools.report.exports import write_scores, write_tables
    from agrotools.report.results import write_result

    if format_ == "parquet":
        paths = write_tables(run, folder)
    elif format_ == "scores":
        paths = write_scores(run, folder)
    else:
        paths = [write_result(run, folder)]
    for path in paths:
        typer.echo(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


def _export_messages(run: Path, folder: Path, min_score: float | None) -> None:
    from agrotools_build.export.messages import write_messages

    written = write_messages(run, folder, min_score)
    for path in written.paths:
        typer.echo(f"{path}: {count_text(written.conversations, 'conversation')}")
    for reason, n in written.left_out.items():
        typer.echo(f"left out, {reason}: {n}", err=True)


def _export_predictions(run: Path, folder: Path) -> None:
    from agrotools.foreign.predictions import write_predictions

    part = "paired with the data set by place, so that they can be scored with the same part of it alone"
    for each in write_predictions(run, folder):
        typer.echo(f"{each.path}: {count_text(each.predictions, 'prediction')}, {each.mode}")
        if each.invalid:
            typer.echo(
                f"warning: {count_text(each.invalid, 'sample')} without a reply left out", err=True
            )
        if each.questions and each.predictions < each.questions:
            typer.echo(
                f"warning: a part of {each.questions} questions; predictions are {part}", err=True
            )
