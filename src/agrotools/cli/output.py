"""Functions that all commands share: standard streams, JSON output, typed arguments, and what Ctrl-C says."""

import io
import os
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from agrotools.exit_codes import STOPPED

if TYPE_CHECKING:
    from pathlib import Path

    from typer._click import Context  # the copy of click bundled with typer

    from agrotools.core.progress import Progress

_TYPED = "agrotools.typed"
"""Key of the arguments in the data that the contexts of a command line share."""


@contextmanager
def allow_closed_pipe() -> Generator[None]:
    """Skip the rest of the block if the reader of standard output closes the pipe (``| head``), then continue.

    For output that is followed by other work or by an exit code.
    """
    try:
        yield
    except (BrokenPipeError, SystemExit) as error:  # Rich replaces the error by SystemExit.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        redirect_unread_streams()


def make_streams_safe() -> None:
    """Let stdout and stderr show a question mark for a character that their encoding lacks, and be open."""
    # A stream that the shell has closed (``>&-``) is None.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def redirect_unread_streams() -> bool:
    """Redirect standard streams that are pipes without a reader; return true if standard output is one of them."""
    from agrotools.runner.progress import redirect_to_null

    unread = [stream for stream in (sys.stdout, sys.stderr) if _has_no_reader(stream)]
    for stream in unread:
        redirect_to_null(stream)
    return sys.stdout in unread


def _has_no_reader(stream: TextIO | None) -> bool:
    """True if the stream is a pipe whose reader has closed it."""
    from agrotools.core.systems import has_no_reader

    try:
        return stream is not None and has_no_reader(stream.fileno())
    except (OSError, ValueError):
        return False


def address_printer(about: str) -> Callable[[str], None]:
    """Return a function that prints ``about`` and the address of a page."""

    def printed(address: str) -> None:
        typer.echo(f"{about}\nopen: {address}")
        typer.echo("Press Ctrl-C to stop; run the same command again to resume")
        sys.stdout.flush()

    return printed


def count_text(count: int, noun: str, plural: str = "") -> str:
    """Return :func:`agrotools.core.texts.count_text`, imported on first use."""
    from agrotools.core import texts

    return texts.count_text(count, noun, plural)


def command_line(*words: object) -> str:
    """Return :func:`agrotools.core.texts.command_line`, imported on first use."""
    from agrotools.core import texts

    return texts.command_line(*words)


def keep_typed_arguments(context: "Context", arguments: Sequence[str]) -> None:
    """Keep the arguments of a command, as the user typed them, for :func:`typed_arguments`."""
    context.meta[_TYPED] = tuple(arguments)


def typed_arguments(context: "Context") -> tuple[str, ...]:
    """Return the arguments of the running command as the user typed them; empty if none were kept."""
    return context.meta.get(_TYPED, ())


def terminal_progress() -> "Progress":
    """Return a callback that shows the progress of a command on standard error."""
    from agrotools.runner.progress import stage_progress

    return stage_progress(sys.stderr)


@contextmanager
def stop_message(text: str, again: str = "to resume") -> Generator[None]:
    """Within the block, Ctrl-C says what is kept and what the same command does (``again``), and ends the command."""
    try:
        yield
    except KeyboardInterrupt:
        raise end_stopped(f": {text}", f" {again}".rstrip()) from None


def end_stopped(text: str = " before it was done", again: str = "") -> typer.Exit:
    """Say that the command was stopped and what is kept, and return the end of the command."""
    with suppress(OSError):  # the terminal may be gone
        typer.echo(f"\nstopped{text}; run the same command again{again}", err=True)
    return typer.Exit(STOPPED)


def print_json(value: Any) -> None:
    """Print indented JSON on standard output. Lone surrogates, which cannot be encoded, are written as escapes."""
    import json

    text = json.dumps(value, indent=2, ensure_ascii=False)
    typer.echo(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def warn_of_hidden(tables: Iterable[Path]) -> None:
    """Print a warning for each workbook with rows or columns that it hides, but that are read."""
    from agrotools.text.tables import open_table

    for path in tables:
        if path.suffix.lower() not in (".xlsx", ".xlsm") or not path.is_file():
            continue
        if hidden := open_table(path, allow_formulas=True).hidden:
            typer.echo(f"warning: {path.name}: {hidden}", err=True)
