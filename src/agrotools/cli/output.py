"""Output of all commands: exit codes (``docs/running.md`` says the same to users), and JSON for programs."""

from typing import Any

import typer

DONE = 0
FAULTS = 1
"""It was done, and something is wrong or missing: samples invalid, faults in a benchmark, figures that differ."""
BAD_USAGE = 2
"""What was asked for does not exist, is not of the kind that the command takes, or does not fit together."""
NOT_DONE = 3
"""It could not be done: a disk, an endpoint, a damaged file, something that another process holds."""
STOPPED = 130
"""Somebody stopped it (Ctrl-C, SIGTERM)."""

_OF_THE_CALLER = ("invalid_argument", "unknown_tool", "file_not_found", "path_outside_workspace")


def code_of(error: Exception) -> int | None:
    """The exit code for an error; None where it is a fault in the program, which is shown as it is."""
    # Imported here because --help must not wait for pydantic.
    from agrotools.core.base import AgrotoolsError, ToolError, UsageError

    if isinstance(error, ToolError):
        return BAD_USAGE if error.kind in _OF_THE_CALLER else NOT_DONE
    if isinstance(error, UsageError):
        return BAD_USAGE
    return NOT_DONE if isinstance(error, AgrotoolsError | OSError) else None


def count_text(count: int, noun: str, plural: str = "") -> str:
    """:func:`agrotools.core.base.count_text`, imported when it is first needed."""
    from agrotools.core import base

    return base.count_text(count, noun, plural)


def print_json(value: Any) -> None:
    """Indented JSON on standard output. A half of a surrogate pair, which no encoding has, is written as its escape."""
    import json

    text = json.dumps(value, indent=2, ensure_ascii=False)
    typer.echo(text.encode("utf-8", "backslashreplace").decode("utf-8"))
