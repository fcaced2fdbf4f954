"""The ``agrotools`` command: one file per sub-command, imported when it runs."""

import gc
import sys

import typer

from agrotools.cli import (
    benchmarks,
    build,
    doctor,
    eval_command,
    explain,
    export,
    kb,
    packs,
    report,
    review,
    scenes,
    score,
    tools,
    validate,
)
from agrotools.cli.exit_codes import code_of

app = typer.Typer(
    name="agrotools",
    help="How well do models use tools to solve agricultural problems? Evaluate, build benchmarks, run the tools.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("eval")(eval_command.evaluate)
app.command("score")(score.score)
app.command("explain")(explain.explain)
app.command("report")(report.report)
app.command("validate")(validate.validate)
app.command("build")(build.build)
app.command("scenes")(scenes.scenes)
app.command("review")(review.review)
app.command("export")(export.export)
app.command("doctor")(doctor.doctor)
app.add_typer(benchmarks.app, name="benchmarks")
app.add_typer(tools.app, name="tools")
app.add_typer(packs.app, name="packs")
app.add_typer(kb.app, name="kb")


def main() -> None:
    """Entry point. Errors that a user can mend are one or two lines, never a stack trace.

    Exit codes: :mod:`agrotools.cli.exit_codes`.
    """
    # Looking for cycles after every 700 objects takes an eighth of a long run, and finds next to none.
    gc.set_threshold(100_000, 20, 20)
    try:
        app()
    except Exception as error:
        # Imported here because --help must not wait for pydantic.
        from agrotools.core.errors import AgrotoolsError

        if (code := code_of(error)) is None:
            raise
        if isinstance(error, AgrotoolsError):
            _say(error.message, error.hint)
        elif isinstance(error, OSError):
            # A disk that is full or a file that may not be read can meet any command anywhere.
            where = f"{error.filename}: " if error.filename else ""
            _say(f"{where}{error.strerror or error}", "check that it can be read and written, and that there is space")
        sys.exit(code)


def _say(message: str, hint: str | None) -> None:
    # A message may quote what stands in a file.
    from agrotools.report.layout import harmless

    sys.stderr.write(harmless(f"error: {message}\n"))
    if hint:
        sys.stderr.write(harmless(f"hint: {hint}\n"))
