"""The ``agrotools`` command. Each sub-command has its own file, which is imported when the command runs."""

import gc
import os
import re
import sys
import warnings
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from agrotools.cli.output import (
    ARGUMENTS,
    BAD_USAGE,
    NOT_DONE,
    UNDECIDED,
    code_of,
    end_stopped,
    make_streams_safe,
    redirect_unread_streams,
)
from agrotools.packages import CommandEntry, package_tables

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter  # the copy of click bundled with typer

_HERE = __name__.rpartition(".")[0]
_COMMANDS = {
    "Run": {
        "eval": CommandEntry(
            f"{_HERE}.eval_command:evaluate", "Run a benchmark with models and score it."
        ),
        "study": CommandEntry(
            f"{_HERE}.eval_command:study", "Run all combinations of a study file in one table."
        ),
        "score": CommandEntry(f"{_HERE}.score:score", "Score runs again and print their tables."),
        "merge": CommandEntry(
            f"{_HERE}.score:merge", "Merge the shards of a run (eval --shard) into one."
        ),
    },
    "Understand": {
        "compare": CommandEntry(
            f"{_HERE}.compare:compare", "Compare runs: overall, by task, by cause, by sample."
        ),
        "explain": CommandEntry(
            f"{_HERE}.explain:explain", "Show one sample of a run, from question to score."
        ),
        "attribute": CommandEntry(
            f"{_HERE}.explain:attribute", "Split the points that a run lost by their cause."
        ),
        "gate": CommandEntry(
            f"{_HERE}.compare:gate", "Fail if a run is worse than an older one (for CI)."
        ),
        "report": CommandEntry(f"{_HERE}.report:report", "Write an HTML report of runs."),
        "view": CommandEntry(
            f"{_HERE}.report:view", "Show the runs in a folder on a local page, live."
        ),
    },
    "Own data": {},
    "Tools": {},
    "Admin": {
        "benchmarks": CommandEntry(
            f"{_HERE}.benchmarks:app", "List, download, check and describe benchmarks."
        ),
        "doctor": CommandEntry(
            f"{_HERE}.doctor:doctor",
            "Check the installation, the sandbox, plug-ins, or an endpoint.",
        ),
    },
}
"""Commands of the engine by the group of the help that they stand in, groups in their order."""


@cache
def command_groups() -> dict[str, dict[str, CommandEntry]]:
    """Return all commands by the group of the help that they stand in: the engine's, then those of other packages."""
    groups = {group: dict(commands) for group, commands in _COMMANDS.items()}
    for table in package_tables():
        for group, commands in table.commands.items():
            groups[group].update(commands)
    return groups


def all_commands() -> dict[str, CommandEntry]:
    """Return all commands by name."""
    return {name: command for group in command_groups().values() for name, command in group.items()}


ELSEWHERE = {
    "data": "benchmarks",
    "download": "benchmarks get",
    "validate": "benchmarks check",
    "scenes": "build --scenes",
    "runs": "view --list",
    "packs": "tools packs",
    "train": "tools packs train",
    "kb": "tools kb",
    "probe": "doctor --model",
    "mcp": "serve",
    "run": "eval",
}
"""Other words for a command, which the error for an unknown command names."""


USUAL = {
    *(
        "benchmark",
        "model",
        "mode",
        "out",
        "quick",
        "limit",
        "data_root",
        "protocol",
        "base_url",
        "api_key_env",
    ),
    *("images", "yes", "dry_run", "budget", "judge", "as_json"),
}
"""Options of ``eval`` that its help shows without ``all``."""


class PanelCommand(TyperCommand):
    """A command whose help groups options by panel (``rich_help_panel``), starting with those without a panel."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        ARGUMENTS[:] = args
        return super().parse_args(ctx, args)

    def format_options(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        shortened = ctx.info_name == "eval" and "all" not in ARGUMENTS
        for parameter in self.get_params(ctx):
            if shortened and parameter.name not in USUAL:
                continue
            panel = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if row := parameter.get_help_record(ctx):
                names = re.sub(r"<list\[(\w+)\]>", lambda kind: f"<{kind[1].lower()}>", row[0])
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or panel, []).append(
                    (names, row[1])
                )
        for panel in sorted(panels, key=lambda name: ("Arguments", "Options", name).index(name)):
            with formatter.section(panel):
                formatter.write_dl(panels[panel])
        if shortened:
            formatter.write_paragraph()
            formatter.write_text("All other options: agrotools eval -h all")


_EMPTY = re.compile(r"(?!--serve-args\0).*\0|.*\0--(?!serve-args)[a-z-]+=", re.DOTALL)
"""An argument without content, after the one before it; arguments of a server may be none."""


class LazyCommands(TyperGroup):
    """Group of commands that are imported when they run or when the help lists them."""

    def invoke(self, ctx: "Context") -> Any:
        """Run a command; exit quietly if the reader of its output has closed the pipe (``| head``).

        If the command had ended before its output was written, its exit code or error stands.
        """
        end: BaseException = typer.Exit()
        try:
            try:
                if not os.environ.get("HOME"):
                    from agrotools.core.files import provide_home

                    provide_home()
                return super().invoke(ctx)
            except BrokenPipeError:
                raise
            except BaseException as error:
                end = error
                # Python 3.11 raises CancelledError if tasks of the event loop fail when it is interrupted.
                if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "CancelledError":
                    end = end_stopped()
                    raise end from None
                raise
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            if not redirect_unread_streams():
                raise
            raise end from None

    def list_commands(self, ctx: "Context") -> list[str]:  # noqa: ARG002
        return list(all_commands())

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:  # noqa: ARG002
        for group, commands in command_groups().items():
            with formatter.section(group):
                formatter.write_dl(
                    [(f"{name:<10}", command.summary) for name, command in commands.items()]
                )

    def resolve_command(
        self, ctx: "Context", args: list[str]
    ) -> "tuple[str | None, Command | None, list[str]]":
        from difflib import get_close_matches

        commands = all_commands()
        if not package_tables():
            from agrotools.core.registry import known_packages

            known_packages()  # says what to do
        if args and args[0] not in commands and not args[0].startswith("-"):
            close = (
                [ELSEWHERE[args[0]]]
                if args[0] in ELSEWHERE
                else get_close_matches(args[0], commands, n=1)
            )
            ctx.fail(
                f"No such command {args[0]!r}.{f' Did you mean {close[0]!r}?' if close else ''}"
            )
        # An empty path would be that of the current folder, an empty address that of OpenAI.
        if any(_EMPTY.fullmatch(f"{before}\0{each}") for before, each in pairwise(["", *args])):
            ctx.fail("An argument is empty. Is a variable of the shell not set?")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: "Context", cmd_name: str) -> "Command | None":  # noqa: ARG002
        known = all_commands().get(cmd_name)
        if known is None:
            return None
        from agrotools.cli.options import documented
        from agrotools.core.registry import imported

        target = imported(known.target)
        if isinstance(target, typer.Typer):
            command = typer.main.get_group(target)
        else:
            alone = typer.Typer(**SETTINGS)
            alone.command(cmd_name, cls=PanelCommand)(documented(cmd_name, target))
            command = typer.main.get_command(alone)
        command.name, command.short_help = cmd_name, known.summary
        return command


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
        from importlib.metadata import version

        typer.echo(f"agrotools {version('agrotools')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """How well do models use tools to solve agricultural problems? Evaluate, build benchmarks, run the tools."""


def main() -> None:
    """Entry point. Errors that a user can fix are printed in one or two lines, without a stack trace.

    For exit codes see :mod:`agrotools.cli.output`.
    """
    # The default threshold of 700 objects costs an eighth of the time of a long run and finds almost no cycles.
    gc.set_threshold(100_000, 20, 20)
    warnings.showwarning = _show_warning
    make_streams_safe()
    try:
        app()
    except SystemExit as end:
        # Typer (for the help, before a command runs) and Rich exit with code 1 if a pipe is closed.
        if isinstance(end.__context__, BrokenPipeError):
            sys.exit(0)
        raise
    except Exception as error:
        if (told := _told(error)) is None:
            raise
        from agrotools.report.layout import harmless

        message, hint, code = told
        sys.stderr.write(harmless(f"error: {message}\n" + (f"hint: {hint}\n" if hint else "")))
        sys.exit(code)


def _told(error: Exception) -> tuple[str, str | None, int] | None:
    """Return message, hint and exit code for an error that a user can fix; None for a bug in the program."""
    # Imported here because --help must not wait for them.
    import sqlite3

    from agrotools.cli.reading import answering_hint
    from agrotools.core.errors import AgrotoolsError, UndecidedError, words_of
    from agrotools.core.files import remedy
    from agrotools.core.libraries import library_of, missing_libraries

    if module := library_of(error):
        missing = missing_libraries("this command", [module])
        return missing.message, missing.hint, BAD_USAGE
    if isinstance(error, UnicodeEncodeError) and error.object[error.start] in "".join(sys.argv):
        return (
            f"{error.object!r} is not a name in UTF-8",
            "rename it, or set a locale that uses UTF-8",
            BAD_USAGE,
        )
    if isinstance(error, RuntimeError) and "home directory" in words_of(
        error
    ):  # of Path.expanduser
        return (
            "a path begins with ~ and a name, but no user has that name",
            "write the path in full",
            BAD_USAGE,
        )
    if isinstance(error, sqlite3.OperationalError):
        return (
            f"temporary files: {error}",
            "free some space, or name another folder in TMPDIR",
            NOT_DONE,
        )
    code = code_of(error)
    if code is None and _lacks_memory(error):
        return (
            f"not enough memory or threads: {error}",
            "raise their limits (ulimit -v, ulimit -u)",
            NOT_DONE,
        )
    if isinstance(error, UndecidedError) and error.answers:
        return error.message, answering_hint(error), UNDECIDED
    if code is not None and isinstance(error, AgrotoolsError):
        return error.message, error.advice, code
    if code is not None and isinstance(
        error, OSError
    ):  # a full disk or an unreadable file can occur in any command
        return f"{_place_of(error)}: {error.strerror or error}", remedy(error), code
    return None


def _place_of(error: OSError) -> str:
    """Return what an error of the system is about; an error of an open file does not name it."""
    try:
        return error.filename or (Path.cwd() and "standard output or a file")
    except OSError:
        return "the current folder"


def _lacks_memory(error: BaseException | None) -> bool:
    """True if an error comes from a limit on memory or threads; libraries raise others while they are imported."""
    from agrotools.core.errors import words_of

    while error is not None and not isinstance(error, MemoryError):
        if re.search(
            "start new thread|before it is started|failed to map segment|allocate memory",
            words_of(error),
        ):
            return True
        error = error.__cause__ or error.__context__
    return error is not None


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    """Write a warning in the format of other messages, without its source location."""
    sys.stderr.write(
        f"warning: {message}\n" if category.__module__.startswith("agrotools") else f"{message}\n"
    )
