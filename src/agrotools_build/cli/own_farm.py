"""``agrotools build --images DIR --answers TABLE``: the wizard that turns photos and a spreadsheet into a benchmark."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agrotools.cli.output import command_line, count_text
from agrotools.cli.reading import new_readings, print_readings

if TYPE_CHECKING:
    from agrotools.core.progress import Progress
    from agrotools.formats.benchmark import BenchmarkHeader
    from agrotools.formats.tool_check import ToolCheck
    from agrotools_build.own_photos.building import BuiltBenchmark
    from agrotools_build.own_photos.plan import Column, Plan
    from agrotools_build.own_photos.table import DetectedTable

PLAN_ENDING = ".plan.toml"
_PHOTOS_LISTED = 30
"""Photos of a column that the output lists: about as many as fit on a screen."""


def build_from_table(
    images: Path,
    answers: Path,
    out: Path,
    plan_file: Path | None,
    *,
    yes: bool,
    given: Sequence[str] = (),
    backends: Sequence[str] = (),
    strangers: Path | None = None,
    progress: "Progress",
) -> "BenchmarkHeader":
    """Build a benchmark from photos and a table, by an existing plan or a new one.

    ``given``: values of the plan, ``KEY=VALUE`` or ``COLUMN.KEY=VALUE``. Open questions are put on the terminal; in a
    script the build stops with one command that answers them all, unless ``yes`` takes the readings that are printed.
    ``backends``: of tools, ``TOOL=KIND``. ``strangers``: folder of pictures that show none of the names in the table.
    The plan is written once nothing is open.
    """
    from agrotools.calling.execution import check_backends
    from agrotools.formats.picture_folder import Images
    from agrotools.runner.config_file import tool_backends
    from agrotools_build.own_photos.answering import (
        decide,
        say_what_is_read,
        split_settings,
        with_answers,
    )
    from agrotools_build.own_photos.building import build_from_photos
    from agrotools_build.own_photos.pack_names import packs_of, with_packs
    from agrotools_build.own_photos.plan import read_plan, write_plan
    from agrotools_build.own_photos.proposal import name_of_benchmark
    from agrotools_build.own_photos.sheets import choose_sheet, sheets_together
    from agrotools_build.own_photos.table import match_rows
    from agrotools_build.own_photos.tolerances import with_tolerances

    _check_target(out)
    others = Images(strangers, "--strangers") if strangers is not None else None
    answers = answers.resolve() if answers.is_dir() else answers
    plan_path = plan_file or answers.with_name(f"{answers.stem}{PLAN_ENDING}")
    if plan_file is not None and not plan_file.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {plan_file.parent}", param_hint="--plan")
    settings, words = split_settings(given)
    by_tool = tool_backends(backends)
    check_backends(by_tool, has_vision=False)
    readings = new_readings(yes=yes)
    stored = read_plan(plan_path) if plan_path.is_file() else None
    if stored is not None:
        typer.echo(f"plan: {plan_path}")
        _refuse_another(settings, stored, plan_path)
        settings |= {"sheet": stored.sheet} if stored.sheet else {}
    given_settings = dict(settings)
    sheet = choose_sheet(images, answers, settings, readings)
    settings |= {"sheet": sheet} if sheet is not None else {}
    together = sheets_together(images, answers, settings, readings)
    seen = match_rows(images, answers, stored, readings, settings, together)
    packs = packs_of(by_tool)
    labels = [label for pack in packs.values() for label in pack.classes]
    seen = replace(seen, pack_labels=frozenset(labels))
    _print_table(seen)
    plan = (
        with_answers(stored.model_copy(update=given_settings), words, seen)
        if stored
        else _proposed_plan(seen, out, words)
    )
    plan = with_packs(plan, seen, packs, readings)
    plan = decide(plan, seen, readings)
    if stored is None:
        plan, lines = with_tolerances(plan, seen)
        for line in lines:
            typer.echo(line)
    say_what_is_read(plan, seen, readings)
    print_readings(readings)
    # Before open questions end the command, so that it is known what the decided columns ask.
    _print_plan(plan, seen)
    readings.settle()
    name_of_folder = name_of_benchmark(out.name)
    if stored is not None and stored.name == plan.name != name_of_folder:
        typer.echo(
            f"name: the benchmark is named {plan.name}, as {plan_path.name} says; "
            f"--set name={name_of_folder} names it as its folder"
        )
    built = build_from_photos(seen, plan, out, progress, others, by_tool)
    # A plan is kept once its benchmark is there, and never replaces that of another benchmark.
    if stored is not None and plan != stored and stored.name != name_of_folder:
        typer.echo(
            f"plan: {plan_path} is the plan of {stored.name} and was not changed; "
            f"--plan NAME{PLAN_ENDING} keeps these answers"
        )
    elif plan != stored:
        write_plan(plan_path, plan)
        typer.echo(f"plan: written to {plan_path}; edit it and run the same command again")
    _print_built(built, out)
    return built.header


def _refuse_another(settings: dict[str, str], plan: "Plan", file: Path) -> None:
    """Refuse settings with which a plan does not read its table: it has other columns, and would be lost.

    Raises:
        UsageError: there are such settings.
    """
    from agrotools.core import UsageError

    for key, value in settings.items():
        of_plan = getattr(plan, key)
        if of_plan not in (None, value):
            raise UsageError(
                f"{file} is the plan for {key} {of_plan}, not {value}; it was not changed",
                hint=f"--plan NAME{PLAN_ENDING} writes another plan; or remove that file",
            )


def _print_built(built: "BuiltBenchmark", out: Path) -> None:
    cleaned = f"place, names, dates and descriptions in the metadata of {count_text(built.n_cleaned, 'photo')}"
    if built.use is not None and (warning := built.use.warning()):
        typer.echo(f"{built.header.name} {warning}; the lines below say why")
    said = {
        "observers": built.agreements,
        "copies": [built.copies] * bool(built.copies),
        "used": [f"{column}, {count} photos" for column, count in built.used.items()],
        "dropped": built.skipped.lines(),
        "removed": [f"{cleaned} (in the copies)"] * bool(built.n_cleaned),
        "warning": built.warnings,
        "labels": built.label_checks,
    }
    for word, lines in said.items():
        for line in lines:
            typer.echo(f"{word}: {line}")
    for check in built.tool_checks:
        typer.echo(check.sentence())
        for line in check.table():
            typer.echo(f"  {line}")
    _print_photos(built.tool_checks, out)


def _print_photos(checks: "Sequence[ToolCheck]", out: Path) -> None:
    """Print a row for each photo of each column; of many photos, those on which table and tool differ come first."""
    from agrotools.formats.tool_check import PHOTO_COLUMNS
    from agrotools.formats.writing import AGREEMENT_FILE
    from agrotools.report.layout import TableColumn, harmless, new_table
    from agrotools.report.terminal import print_parts

    if not checks:
        return
    columns = [TableColumn((heading,), "words") for heading in PHOTO_COLUMNS[1:]]
    for check in checks:
        table = new_table(f"{check.column}, photo by photo", columns)
        rows = check.photo_rows()
        for row in rows[:_PHOTOS_LISTED]:
            table.add_row(*map(harmless, row))
        if len(rows) > _PHOTOS_LISTED:
            table.notes.append(f"and {len(rows) - _PHOTOS_LISTED} more")
        print_parts([table])
    typer.echo(f"photo by photo: all rows are in {out / AGREEMENT_FILE}")


def print_next_steps(out: Path) -> None:
    """Print the next step after the build."""
    from agrotools.core.texts import install_command
    from agrotools_build.review import missing_package

    extra = f" (first: {install_command('review')})" if missing_package() else ""
    typer.echo(f"Next, review the questions: {command_line('review', out)}{extra}")


def _proposed_plan(seen: "DetectedTable", out: Path, words: Sequence[str]) -> "Plan":
    """Return a new plan with the answers in ``words``, and print how each column was interpreted."""
    from agrotools_build.own_photos.answering import with_answers
    from agrotools_build.own_photos.plan import NOTHING, UNDECIDED
    from agrotools_build.own_photos.proposal import note_with_names, propose_plan

    proposal = propose_plan(seen, out.name)
    plan = with_answers(proposal.plan, words, seen)
    shown = {NOTHING: "ignored", UNDECIDED: "not decided"}
    for column in proposal.plan.columns:
        now = plan.column(column.column) or column
        taken_as = shown.get(now.ask, now.ask)
        note = note_with_names(proposal.notes[column.column], now)
        typer.echo(f"  {column.column}: {note} -> {taken_as}")
        is_said = any(word.startswith(f"{column.column}.ask=") for word in words)
        if column.column in proposal.loose and column.ask not in shown and not is_said:
            typer.echo(_reading_of(column, proposal.loose[column.column]))
    return plan


def _reading_of(column: "Column", quantity: str) -> str:
    """Return the line that says as what a column is read whose header may also stand above something else."""
    from agrotools_build.own_photos.columns import choices_of
    from agrotools_build.own_photos.plan import NOTHING, measures

    others = [
        each for each in choices_of(measures()[column.ask].kind, NOTHING) if each != column.ask
    ]
    return (
        f'    column "{column.column}" is read as {quantity} in the photo, and may mean something else; '
        f"to change it: --set '{column.column}.ask=WHAT' ({', '.join(others)})"
    )


_NO_CROP = (
    "for no crop; if all photos show one, crop in the plan makes the names of the tool comparable"
)


def _lacks_crop(column: "Column") -> bool:
    return column.ask in ("disease", "diseased") and not column.crop


def _print_table(seen: "DetectedTable") -> None:
    from agrotools_build.own_photos.plan import listed

    table = seen.table
    rows_of: dict[Path, int] = {}
    for each in seen.matched:
        rows_of[each.image] = rows_of.get(each.image, 0) + 1
    repeated = [seen.images.shown_name(image) for image, n_rows in rows_of.items() if n_rows > 1]
    several = f" of {len(rows_of)} photos (several rows: {listed(repeated)})" if repeated else ""
    typer.echo(
        f"{table.path.name}: {seen.rows} rows, {len(table.columns)} columns, {table.described}\n"
        f"photos: {len(seen.images)} in {seen.images.folder}, named by column {seen.images_column!r}\n"
        f"rows with a photo: {len(seen.matched)}{several}"
    )


def _print_plan(plan: "Plan", seen: "DetectedTable") -> None:
    """Say of each column what is asked, which answers are right, and where both are changed."""
    from agrotools_build.own_photos.building import range_text
    from agrotools_build.own_photos.proposal import may_have_rows_behind
    from agrotools_build.own_photos.questions import right_text

    asked = [column for column in plan.columns if column.is_asked]
    for column in asked:
        details = _details_shown(column)
        more = f" ({', '.join(details)})" if details else ""
        typer.echo(f"asking: {column.column} as {column.ask}{more}")
        values = range_text(seen, column)
        beside = f" (the table has {values})" if values else ""
        typer.echo(f"  right: {right_text(column)}{beside}")
        if may_have_rows_behind(column):
            things = column.objects or column.target
            typer.echo(
                f"  rows behind: the questions do not say whether {things} of the rows behind count, and the tool does "
                f"not count them; --set '{column.column}.rows_behind=counted' or =not-counted says it"
            )
    _print_where_to_change(asked)


def _details_shown(column: "Column") -> list[str]:
    """Return the keys of a column that are not the usual ones, in words."""
    from agrotools.text import cells

    usual = {"column", "ask", "yes", "no", "decimal", "abs_tol", "rel_tol"}
    usual |= {"names", "unknown_names"}  # said in words below
    fields = column.model_dump(exclude_none=True, exclude_defaults=True, exclude=usual)
    details = [f"{key} {value}" for key, value in fields.items()]
    if column.decimal == ",":
        details.append('decimal mark ","')
    if column.yes == cells.NO:
        details.append("a yes in the table means the contrary, as its header names healthy plants")
    details += [f"{name!r} {_meaning(name, meant)}" for name, meant in column.names.items()]
    if column.unknown_names:
        details.append(f"names that the knowledge base does not have are {column.unknown_names}")
    if _lacks_crop(column):
        details.append(_NO_CROP)
    return details


def _meaning(name: str, meant: str) -> str:
    """Return what a name of the table means in the plan, in words."""
    from agrotools_build.own_photos.plan import NOTHING

    if meant == NOTHING:
        return "is left out"
    return "as it is" if meant == name else f"means {meant!r}"


def _print_where_to_change(asked: "Sequence[Column]") -> None:
    """Say how the tolerance of numbers is changed, with the first column of numbers as the example."""
    from agrotools_build.own_photos.plan import measures

    numbers = [column for column in asked if measures()[column.ask].kind == "number"]
    if not numbers:
        return
    name = numbers[0].column
    typer.echo(
        f"To change what is right: --set '{name}.abs_tol=NUMBER' in the unit of the answer and "
        f"--set '{name}.rel_tol=SHARE' (0.2 is 20 % of the true value), or abs_tol and rel_tol in the plan. "
        "If one is given, the other is 0 unless it is given too."
    )


def _check_target(out: Path) -> None:
    """Raise an error early if the target cannot be written, rather than after an hour of work."""
    from agrotools.core import BenchmarkError
    from agrotools.formats.writing import check_replaceable

    check_replaceable(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out.parent).close()
    except OSError as error:
        raise BenchmarkError(
            f"{out.parent} cannot be written: {error.strerror}", hint="choose another --out"
        ) from error
