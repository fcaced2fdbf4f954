"""The ``agrotools`` command. Each sub-command has its own file, which is imported when the command runs."""

import gc
import json
import os
import re
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from agrotools.cli.failures import CommandFailure, failure_of
from agrotools.cli.output import (
    end_stopped,
    keep_typed_arguments,
    make_streams_safe,
    redirect_unread_streams,
    typed_arguments,
)
from agrotools.packages import CommandEntry, package_tables

if TYPE_CHECKING:
    from typer._click import (  # the copy of click bundled with typer
        Command,
        Context,
        HelpFormatter,
        Parameter,
    )

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
        "docs": CommandEntry(
            f"{_HERE}.docs:docs", "Print a page of the documentation, e.g. docs glossary."
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
    "next": "eval",  # its screen ends in what to run next
    "help": "docs",
    "glossary": "docs glossary",
    "terms": "docs glossary",
}
"""Other words for a command, which the error for an unknown command names."""


USUAL = {
    "benchmark",
    "model",
    "mode",
    "out",
    "quick",
    "task_types",
    "limit",
    "data_root",
    "protocol",
    "base_url",
    "api_key_env",
    "images",
    "yes",
    "dry_run",
    "budget",
    "judge",
    "as_json",
}
"""Options of ``eval`` that its help shows without ``all``."""

ONLY_IN_FILE = (
    "Options of judges, of the vision model of tools, rates and time limits: keys of the file of --config "
    "(agrotools docs running)."
)

_WITHOUT_WITH = "--embedder all-MiniLM-L6-v2 compares texts by the same model"
GONE = {
    (
        "eval",
        "--degrade",
    ): "degrade copies of your photos, and build a benchmark of them: agrotools build",
    ("eval", "--with"): _WITHOUT_WITH,
    ("score", "--with"): _WITHOUT_WITH,
    ("report", "--share"): "agrotools report RUN writes the page; read it before you pass it on",
}
"""Options of version 0.2.0 that no longer exist, by command, with what to do instead."""


NOT_A_NUMBER = {
    "Input should be a valid number": "a number is needed",
    "Input should be a valid integer": "a whole number is needed",
}
"""First words of typer's message on a value that is no number, and ours."""


def _plain_fault(message: str) -> str:
    """Return the fault of a value of an option in our words."""
    ours = (plain for theirs, plain in NOT_A_NUMBER.items() if message.startswith(theirs))
    return next(ours, message)


def _repeated_option(parameters: "Sequence[Parameter]", args: Sequence[str]) -> str | None:
    """Return the first option with one value that is given twice; None if there is none."""
    names = [arg.partition("=")[0] for arg in takewhile(lambda arg: arg != "--", args)]
    for parameter in parameters:
        if getattr(parameter, "multiple", True) or getattr(parameter, "is_flag", True):
            continue
        if sum(name in parameter.opts for name in names) > 1:
            return parameter.opts[0]
    return None


class PanelCommand(TyperCommand):
    """A command whose help groups options by panel (``rich_help_panel``), starting with those without a panel."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        from typer._click.exceptions import BadParameter, NoSuchOption

        keep_typed_arguments(ctx, args)
        if repeated := _repeated_option(self.get_params(ctx), args):
            several = " Modes are joined by commas: --mode A,B." if repeated == "--mode" else ""
            ctx.fail(f"{repeated} is given twice, and only one of the two would count.{several}")
        try:
            return super().parse_args(ctx, args)
        except NoSuchOption as error:
            key = error.option_name.removeprefix("--").replace("-", "_")
            if key in keys_of_file(self):
                raise _only_in_file(
                    key, _typed_value(typed_arguments(ctx), error.option_name)
                ) from error
            if (self.name, error.option_name) in GONE:
                raise _gone(self.name, error.option_name) from error
            raise
        except BadParameter as error:
            error.message = _plain_fault(error.message)
            raise

    def format_options(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        shortened = ctx.info_name == "eval" and "all" not in typed_arguments(ctx)
        for parameter in self.get_params(ctx):
            if shortened and parameter.name not in USUAL:
                continue
            panel = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if row := parameter.get_help_record(ctx):
                names = re.sub(r"<list\[(\w+)\]>", lambda kind: f"<{kind[1].lower()}>", row[0])
                names = names.replace(" range>", ">")  # the limits stand behind the description
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or panel, []).append(
                    (names, row[1])
                )
        for panel in sorted(panels, key=lambda name: ("Arguments", "Options", name).index(name)):
            with formatter.section(panel):
                formatter.write_dl(panels[panel])
        if self.name == "eval":
            others = "All other options: agrotools eval -h all. " if shortened else ""
            formatter.write_paragraph()
            formatter.write_text(f"{others}{ONLY_IN_FILE}")


def keys_of_file(command: "Command") -> list[str]:
    """Return the keys that the configuration file of a command takes and its command line does not."""
    if command.name not in ("eval", "score"):
        return []
    from agrotools.runner.config import JUDGE_KEYS, OPTIONS

    keys = [*OPTIONS, *JUDGE_KEYS] if command.name == "eval" else JUDGE_KEYS
    options = {parameter.name for parameter in command.params}
    return sorted(key for key in keys if key not in options)


def _gone(command: str | None, option: str) -> Exception:
    """Return the error for an option that no longer exists."""
    from agrotools.core import UsageError

    return UsageError(f"{option} no longer exists", hint=GONE[command or "", option])


def _typed_value(args: Sequence[str], option: str) -> str:
    """Return the value of an option, behind it or after ``=``; empty if it has none."""
    for argument, following in pairwise([*args, ""]):
        name, _, value = argument.partition("=")
        if name == option:
            return value or following
    return ""


def _only_in_file(key: str, value: str) -> Exception:
    """Return the error for an option that is a key of the configuration file alone."""
    from agrotools.core import UsageError

    option = f"--{key.replace('_', '-')}"
    is_number = re.fullmatch(r"-?\d+(\.\d+)?", value) is not None
    line = f"{key} = {value if is_number else json.dumps(value or 'VALUE')}"
    return UsageError(
        f"{option} is a key of the configuration file, not an option",
        hint=f"write the line {line} in a file, and give it: --config FILE.toml (agrotools docs running)",
    )


_OPTION_WITHOUT_VALUE = re.compile(r"--(?!serve-args)[a-z-]+=")


def _is_empty(argument: str, before: str) -> bool:
    """True for an argument without content, after the argument ``before``; arguments of a server may be none."""
    if not argument:
        return before != "--serve-args"
    return _OPTION_WITHOUT_VALUE.fullmatch(argument) is not None


def _provide_home_if_missing() -> None:
    """Set ``HOME``, which containers and cron jobs may lack."""
    if not os.environ.get("HOME"):
        from agrotools.core.files import provide_home

        provide_home()


def _is_interruption(error: BaseException) -> bool:
    # Python 3.11 raises CancelledError if tasks of the event loop fail when it is interrupted.
    return isinstance(error, KeyboardInterrupt) or type(error).__name__ == "CancelledError"


def _error_of_last_output() -> BrokenPipeError | None:
    """Write what is left of the output; return the error if nobody reads it any more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError as error:
        return error
    return None


class LazyCommands(TyperGroup):
    """Group of commands that are imported when they run or when the help lists them."""

    def invoke(self, ctx: "Context") -> Any:
        """Run a command; exit quietly if the reader of its output has closed the pipe (``| head``).

        If the command had ended before its output was written, its exit code or error stands.
        """
        result: Any = None
        end: BaseException | None = None
        try:
            _provide_home_if_missing()
            result = super().invoke(ctx)
        except BaseException as error:
            end = end_stopped() if _is_interruption(error) else error
        unread = end if isinstance(end, BrokenPipeError) else _error_of_last_output()
        if unread is not None:
            if not redirect_unread_streams():
                raise unread
            end = typer.Exit() if end in (None, unread) else end
        if end is not None:
            raise end
        return result

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
        if any(_is_empty(each, before) for before, each in pairwise(["", *args])):
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
        command.name = cmd_name
        command.short_help = known.summary
        return command


SETTINGS: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "add_completion": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}

_ABOUT = (
    "How well do models use tools to solve agricultural problems? Evaluate, build benchmarks, run the tools. "
    "Begin with: agrotools eval (offline, one or two minutes)."
)

app = typer.Typer(
    name="agrotools",
    help=_ABOUT,
    no_args_is_help=True,
    cls=LazyCommands,
    **SETTINGS,
)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(f"agrotools {version('agrotools')}")
        raise typer.Exit


@app.callback(help=_ABOUT)
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Declare the options of the command itself."""


def main() -> None:
    """Entry point. Errors that a user can fix are printed in one or two lines, without a stack trace.

    For exit codes see :mod:`agrotools.exit_codes`.
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
        failure = failure_of(error)
        if failure is None:
            raise
        _print_failure(failure)
        sys.exit(failure.code)


def _print_failure(failure: CommandFailure) -> None:
    from agrotools.report.layout import harmless

    hint = f"hint: {failure.hint}\n" if failure.hint else ""
    sys.stderr.write(harmless(f"error: {failure.message}\n{hint}"))


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    """Write a warning in the format of other messages, without its source location."""
    sys.stderr.write(
        f"warning: {message}\n" if category.__module__.startswith("agrotools") else f"{message}\n"
    )
