"""Questions on a user's files, put on the terminal or in a hint, and the lines that say how a file was read."""

import sys
from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from agrotools.cli.output import command_line

if TYPE_CHECKING:
    from agrotools.core.errors import UndecidedError
    from agrotools.core.readings import ReadingQuestion, Readings
    from agrotools.formats.benchmark import Benchmark


def new_readings(*, yes: bool) -> "Readings":
    """Return the readings of a command, whose questions are put on the terminal if there is one.

    ``yes``: the proposed readings are taken.
    """
    from agrotools.core.readings import Readings

    is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return Readings(_ask_on_terminal if is_terminal else None, accept=yes)


def _ask_on_terminal(question: "ReadingQuestion") -> str:
    values = [choice.value for choice in question.choices]

    def checked(typed: str) -> str:
        if typed in values or question.is_open:
            return typed
        raise typer.BadParameter(f"one of: {', '.join(values)}")

    return typer.prompt(str(question), default=values[0], value_proc=checked, err=True)


def print_readings(readings: "Readings") -> None:
    """Say on standard error what was read, and what was not."""
    if readings.taken:
        typer.echo(f"read: {', '.join(readings.taken)}", err=True)
    if readings.left:
        typer.echo(f"not read: {', '.join(readings.left)}", err=True)


def readings_of(benchmark: "Benchmark") -> "Readings":
    """Return how the files of a loaded benchmark were read, as its header says; nothing for a known form."""
    from agrotools.core.readings import Readings

    readings = Readings()
    metadata = benchmark.header.metadata
    for key, say in (("read", readings.take), ("not_read", readings.leave)):
        listed = metadata.get(key)
        for what in listed if isinstance(listed, list) else ():
            say(str(what))
    return readings


def answered_options(readings: "Readings") -> dict[str, str]:
    """Return the answers that the user gave, or ``--yes``, as options of the benchmark (``--option``)."""
    from agrotools.runner.config_file import benchmark_options

    return benchmark_options([answer.removeprefix("--option=") for answer in readings.answers])


@contextmanager
def answers_in_hint(parameters: Collection[str]) -> Generator[None]:
    """Within the block, the hint of an error with questions becomes the command that answers them.

    ``parameters``: names of all parameters that the running command has.
    """
    try:
        yield
    except Exception as error:
        from agrotools.core.errors import UndecidedError  # not at the top: --help must not wait

        if isinstance(error, UndecidedError) and error.answers:
            error.hint = _answering_hint(error, parameters)
        raise


def _answering_hint(error: "UndecidedError", parameters: Collection[str]) -> str | None:
    """Return the hint with the command that answers all questions of ``error`` with the proposed values.

    A command without ``--option`` cannot answer questions on the files of a benchmark: the hint of the error stays.
    """
    are_of_benchmark = any(answer.startswith("--option=") for answer in error.answers)
    takes_options = "option" in parameters or "options" in parameters
    if are_of_benchmark and not takes_options:
        return error.hint
    answered = command_line(*sys.argv[1:], *error.answers)
    hint = f"answer them in one command (change the values): {answered}"
    if error.placeholders:
        words = ", ".join(dict.fromkeys(error.placeholders))
        return f"{hint}\n  only you know what to write for {words}"
    return f"{hint}\n  or add --yes to accept these answers" if "yes" in parameters else hint
