"""The ``agrotools`` command: one file per sub-command, imported when it runs."""

import gc
import select
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from agrotools.cli.output import code_of

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter  # click as typer brings it

COMMANDS = {
    "eval": "eval_command:evaluate",
    "score": "score:score",
    "explain": "explain:explain",
    "report": "report:report",
    "validate": "validate:validate",
    "build": "build:build",
    "scenes": "scenes:scenes",
    "review": "review:review",
    "export": "export:export",
    "doctor": "doctor:doctor",
    "benchmarks": "benchmarks:app",
    "tools": "tools:app",
    "packs": "packs:app",
    "kb": "kb:app",
}
"""Module and function of each command, or the group of its sub-commands."""


class PanelCommand(TyperCommand):
    """A command whose help lists its options by panel (``rich_help_panel``), those without one first."""

    def format_options(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            panel = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if row := parameter.get_help_record(ctx):
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or panel, []).append(row)
        for panel in sorted(panels, key=lambda name: ("Arguments", "Options", name).index(name)):
            with formatter.section(panel):
                formatter.write_dl(panels[panel])


class LazyCommands(TyperGroup):
    """The commands by name, each imported when it runs or when help lists it."""

    def invoke(self, ctx: "Context") -> Any:
        """Run a command. A reader of its output that has gone (``| head``) ends it quietly."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            if not _has_no_reader(sys.stdout):
                raise
            from agrotools.runner.progress import redirect_to_null

            redirect_to_null(sys.stdout)
            raise typer.Exit from None

    def list_commands(self, ctx: "Context") -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: "Context", cmd_name: str) -> "Command | None":  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        target = getattr(import_module(f"agrotools.cli.{module}"), name)
        if isinstance(target, typer.Typer):
            command = typer.main.get_group(target)
        else:
            alone = typer.Typer(**SETTINGS)
            alone.command(cmd_name, cls=PanelCommand)(target)
            command = typer.main.get_command(alone)
        command.name = cmd_name
        return command


def _has_no_reader(stream: TextIO | None) -> bool:
    """True if the stream is a pipe whose reader has closed it."""
    poll = select.poll()
    try:
        poll.register(stream.fileno() if stream else -1, 0)
    except (OSError, ValueError):
        return False
    return any(event & select.POLLERR for _, event in poll.poll(0))


SETTINGS: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "add_completion": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}

app = typer.Typer(
    name="agrotools",
    help="How well do models use tools to solve agricultural problems? Evaluate, build benchmarks, run the tools.",
    no_args_is_help=True,
    cls=LazyCommands,
    **SETTINGS,
)


def _print_version(requested: bool) -> None:
    if requested:
        from agrotools import __version__

        typer.echo(f"agrotools {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """How well do models use tools to solve agricultural problems? Evaluate, build benchmarks, run the tools."""


def main() -> None:
    """Entry point. Errors that a user can fix are one or two lines, never a stack trace.

    Exit codes: :mod:`agrotools.cli.output`.
    """
    # Looking for cycles after every 700 objects takes an eighth of a long run, and finds next to none.
    gc.set_threshold(100_000, 20, 20)
    warnings.showwarning = _show_warning
    try:
        app()
    except SystemExit as end:
        if end.code == 1 and _has_no_reader(sys.__stdout__):  # of help, which is printed before a command runs
            sys.exit(0)
        raise
    except Exception as error:
        # Imported here because --help must not wait for pydantic.
        from agrotools.core.base import AgrotoolsError

        if (code := code_of(error)) is None:
            raise
        if isinstance(error, AgrotoolsError):
            _print_error(error.message, error.hint)
        elif isinstance(error, OSError):
            # A disk that is full or a file that may not be read can meet any command anywhere.
            where = f"{error.filename}: " if error.filename else ""
            _print_error(
                f"{where}{error.strerror or error}", "check that it can be read and written, and that there is space"
            )
        sys.exit(code)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    """Write a warning as the other messages are written, without a place in the source."""
    sys.stderr.write(f"warning: {message}\n" if category.__module__.startswith("agrotools") else f"{message}\n")


def _print_error(message: str, hint: str | None) -> None:
    # A message may quote what stands in a file.
    from agrotools.report.layout import harmless

    sys.stderr.write(harmless(f"error: {message}\n"))
    if hint:
        sys.stderr.write(harmless(f"hint: {hint}\n"))
