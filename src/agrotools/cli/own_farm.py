"""``agrotools build --images DIR --answers TABLE``: the wizard that turns photos and a spreadsheet into a benchmark."""

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agrotools.cli.output import NOT_DONE, command_line, count_text

if TYPE_CHECKING:
    from agrotools.build.own_photos.plan import Column, Plan
    from agrotools.build.own_photos.proposal import OpenQuestion
    from agrotools.build.own_photos.table import DetectedTable
    from agrotools.core.base import Progress
    from agrotools.formats.benchmark import BenchmarkHeader

PLAN_ENDING = ".plan.toml"


def build_from_table(
    images: Path,
    answers: Path,
    out: Path,
    plan_file: Path | None,
    *,
    yes: bool,
    progress: "Progress",
) -> "BenchmarkHeader":
    """Build a benchmark from photos and a table, by an existing plan or a new one.

    On a terminal, the user is asked for missing information. Otherwise the new plan is written with a list of missing
    entries, and the build stops unless ``yes`` accepts the plan unchanged.
    """
    from agrotools.build.own_photos.building import build_from_photos
    from agrotools.build.own_photos.plan import read_plan
    from agrotools.build.own_photos.proposal import open_questions
    from agrotools.build.own_photos.table import match_rows

    _check_target(out)
    answers = answers.resolve() if answers.is_dir() else answers
    plan_path = plan_file or answers.with_name(f"{answers.stem}{PLAN_ENDING}")
    if plan_path.is_file():
        plan = read_plan(plan_path)
        typer.echo(f"plan: {plan_path}")
        seen = match_rows(images, answers, plan)
        _print_table(seen)
        of_plan = {
            seen.images_column,
            *(name for each in plan.columns for name in (each.column, each.second)),
        }
        if others := [column for column in seen.table.columns if column not in of_plan]:
            typer.echo(f"columns that the plan does not name, not asked about: {', '.join(others)}")
        if not yes and (lacking := open_questions(plan, seen)):
            _print_needs(lacking)
            typer.echo(
                "Complete the plan and run the same command again, or add --yes to leave these columns out, and rows"
                " with unknown names."
            )
            raise typer.Exit(NOT_DONE)
    else:
        if plan_file is not None and not plan_file.parent.is_dir():
            raise typer.BadParameter(f"there is no folder {plan_file.parent}", param_hint="--plan")
        seen = match_rows(images, answers)
        _print_table(seen)
        plan = _new_plan(seen, out, plan_path, yes=yes)
    _print_plan(plan)
    built = build_from_photos(seen, plan, out, progress)
    cleaned = f"place, names, dates and descriptions in the metadata of {count_text(built.n_cleaned, 'photo')}"
    said = {
        "observers": built.agreements,
        "used": [f"{column}, {count} photos" for column, count in built.used.items()],
        "dropped": built.skipped.lines(),
        "removed": [f"{cleaned} (in the copies)"] * bool(built.n_cleaned),
        "warning": built.warnings,
        "labels": built.label_checks,
    }
    for word, lines in said.items():
        for line in lines:
            typer.echo(f"{word}: {line}")
    return built.header


def print_next_steps(out: Path) -> None:
    """Print the next step after the build."""
    from agrotools.build.review import missing_package
    from agrotools.core.base import install_command

    extra = f" (first: {install_command('review')})" if missing_package() else ""
    typer.echo(f"Next, review the questions: {command_line('review', out)}{extra}")


def _new_plan(seen: "DetectedTable", out: Path, plan_path: Path, *, yes: bool) -> "Plan":
    """Propose a plan, let the user complete it if the session is interactive, and write it to ``plan_path``."""
    from agrotools.build.own_photos.plan import NOTHING, UNDECIDED, write_plan
    from agrotools.build.own_photos.proposal import open_questions, propose_plan

    proposal = propose_plan(seen, out.name)
    plan = proposal.plan
    shown = {NOTHING: "ignored", UNDECIDED: "not decided"}
    for column in plan.columns:
        typer.echo(
            f"  {column.column}: {proposal.notes[column.column]} -> {shown.get(column.ask, column.ask)}"
        )
    interactive = not yes and _is_terminal()
    if interactive:
        plan = _asked_of_owner(plan, seen)
    write_plan(plan_path, plan)
    typer.echo(f"plan: written to {plan_path}")
    lacking = open_questions(plan, seen)
    if lacking and not interactive:
        _print_needs(lacking)
    if not yes and not interactive:
        typer.echo(
            f"{_step_before_build(plan, needs=bool(lacking))}, or add --yes to accept it as it is."
        )
        raise typer.Exit(NOT_DONE)
    return plan


def _step_before_build(plan: "Plan", *, needs: bool) -> str:
    """Return what the owner of a new plan should do before the same command builds the benchmark."""
    if needs:
        return "Complete the plan and run the same command again"
    if not any(column.is_asked for column in plan.columns):
        return "All columns are ignored: set ask for one of them in the plan and run the same command again"
    first = (
        _NO_CROP.capitalize()
        if any(map(_lacks_crop, plan.columns))
        else "Nothing has to be filled in"
    )
    return f"{first}. Check the plan and run the same command again to build the benchmark"


_NO_CROP = "which crop is it? Without it, the tool's names (rust, leaf miner) cannot be compared with yours: set crop"


def _lacks_crop(column: "Column") -> bool:
    return column.ask in ("disease", "diseased") and not column.crop


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _print_table(seen: "DetectedTable") -> None:
    table = seen.table
    typer.echo(
        f"{table.path.name}: {seen.rows} rows, {len(table.columns)} columns, {table.described}\n"
        f"photos: {len(seen.images)} in {seen.images.folder}, named by column {seen.images_column!r}\n"
        f"rows with a photo: {len(seen.matched)}"
    )


def _print_needs(lacking: "list[OpenQuestion]") -> None:
    typer.echo("to fill in:")
    for need in lacking:
        other = f" (or {need.or_key})" if need.or_key else ""
        other += f" of {need.part!r}" if need.part else ""
        choices = f" One of: {', '.join(need.choices)}." if need.choices else ""
        typer.echo(f"  {need.column}: {need.key}{other}: {need.question}{choices}")


def _print_plan(plan: "Plan") -> None:
    for column in (column for column in plan.columns if column.is_asked):
        fields = column.model_dump(
            exclude_none=True, exclude_defaults=True, exclude={"column", "ask", "yes", "no"}
        )
        more = ", ".join(
            [
                *(f"{key} {value}" for key, value in fields.items()),
                *[_NO_CROP] * _lacks_crop(column),
            ]
        )
        typer.echo(f"asking: {column.column} as {column.ask}{f' ({more})' if more else ''}")


def _asked_of_owner(plan: "Plan", seen: "DetectedTable") -> "Plan":
    """Complete the plan on the terminal: content of each column, then missing entries. Enter accepts a default."""
    from agrotools.build.own_photos.plan import NOTHING, Column, measures
    from agrotools.build.own_photos.proposal import open_questions_of_column

    typer.echo("Press Enter to accept the value in brackets.")
    choices = ", ".join((*measures(), *Column.UNASKED))
    for column in plan.columns:
        if column.ask != NOTHING:
            plan = _reply(
                plan,
                f"{column.column!r} contains ({choices})",
                "ask",
                column.ask or NOTHING,
                column.column,
            )
    for column in list(plan.columns):
        while needs := open_questions_of_column(plan.column(column.column) or column, seen):
            need = needs[0]
            if need.part is None:
                typer.echo(f"(type {NOTHING!r} to leave this column out)")
            more, default = (
                (f" ({', '.join(need.choices)})", need.choices[0]) if need.choices else ("", None)
            )
            question = f"{need.question}{more}"
            plan = _reply(plan, question, need.key, default, need.column, need.part)
    for key, question in (
        ("name", "Name of the benchmark"),
        ("licence", "Terms of use of the photos"),
    ):
        plan = _reply(plan, question, key, getattr(plan, key))
    return plan


def _reply(
    plan: "Plan",
    question: str,
    key: str,
    default: str | None,
    column: str | None = None,
    part: str | None = None,
) -> "Plan":
    """Return the plan with a value typed for a key of it, of a column, or of a ``part`` of that key.

    Invalid values are asked for again.
    """
    from pydantic import ValidationError

    from agrotools.build.own_photos.plan import NOTHING
    from agrotools.core.base import plain_message

    def changed_column(of_column: dict[str, Any], reply: str) -> dict[str, Any]:
        if part is not None:
            return of_column | {key: of_column[key] | {part: reply}}
        return of_column | {"ask" if reply == NOTHING else key: reply}

    def changed(typed: str) -> "Plan":
        reply = typed.strip()
        fields = plan.model_dump()
        if column is None:
            fields[key] = reply
        else:
            fields["columns"] = [
                changed_column(each, reply) if each["column"] == column else each
                for each in fields["columns"]
            ]
        try:
            return type(plan).model_validate(fields)
        except ValidationError as error:
            raise typer.BadParameter(plain_message(error.errors()[0])) from error

    return typer.prompt(question, default=default, value_proc=changed)


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
