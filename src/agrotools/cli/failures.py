"""Errors that a user can fix, as the command prints them: in one or two lines, with an exit code."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agrotools.exit_codes import BAD_USAGE, NOT_DONE, code_of

if TYPE_CHECKING:
    import sqlite3

_NO_SUCH_USER = "home directory"
"""Words of the error of ``Path.expanduser`` for an unknown user, which has no class of its own."""
_LACK_OF_MEMORY = re.compile(
    "start new thread|before it is started|failed to map segment|allocate memory"
)
"""Words of errors that libraries raise, in place of MemoryError, where memory or threads are limited."""


class CommandFailure(NamedTuple):
    """What the command says of an error, and the exit code with which it ends."""

    message: str
    hint: str | None
    code: int


def failure_of(error: Exception) -> CommandFailure | None:
    """Return what is said of an error that a user can fix; None for a bug in the program."""
    # Imported here because --help must not wait for them.
    import sqlite3

    from agrotools.core.errors import AgrotoolsError
    from agrotools.core.libraries import library_of

    if module := library_of(error):
        return _missing_library(module)
    if isinstance(error, UnicodeEncodeError) and _is_in_arguments(error):
        return _argument_not_in_utf8(error)
    if isinstance(error, RuntimeError) and _names_unknown_user(error):
        return _unknown_user()
    if isinstance(error, sqlite3.OperationalError):
        return _no_temporary_files(error)
    code = code_of(error)
    if code is None:
        return _lack_of_memory(error) if _lacks_memory(error) else None
    if isinstance(error, AgrotoolsError):
        return CommandFailure(error.message, error.advice, code)
    # A full disk or an unreadable file can occur in any command.
    return _error_of_system(error, code) if isinstance(error, OSError) else None


def _missing_library(module: str) -> CommandFailure:
    from agrotools.core.libraries import missing_libraries

    missing = missing_libraries("this command", [module])
    return CommandFailure(missing.message, missing.hint, BAD_USAGE)


def _is_in_arguments(error: UnicodeEncodeError) -> bool:
    """True if the character that cannot be encoded is one that the user typed."""
    return error.object[error.start] in "".join(sys.argv)


def _argument_not_in_utf8(error: UnicodeEncodeError) -> CommandFailure:
    return CommandFailure(
        f"{error.object!r} is not a name in UTF-8",
        "rename it, or set a locale that uses UTF-8",
        BAD_USAGE,
    )


def _names_unknown_user(error: RuntimeError) -> bool:
    from agrotools.core.errors import words_of

    return _NO_SUCH_USER in words_of(error)


def _unknown_user() -> CommandFailure:
    return CommandFailure(
        "a path begins with ~ and a name, but no user has that name",
        "write the path in full",
        BAD_USAGE,
    )


def _no_temporary_files(error: "sqlite3.OperationalError") -> CommandFailure:
    return CommandFailure(
        f"temporary files: {error}",
        "free some space, or name another folder in TMPDIR",
        NOT_DONE,
    )


def _lacks_memory(error: BaseException) -> bool:
    """True if an error, or one that led to it, comes from a limit on memory or threads."""
    from agrotools.core.errors import words_of

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or _LACK_OF_MEMORY.search(words_of(cause)):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _lack_of_memory(error: Exception) -> CommandFailure:
    return CommandFailure(
        f"not enough memory or threads: {error}",
        "raise their limits (ulimit -v, ulimit -u)",
        NOT_DONE,
    )


def _error_of_system(error: OSError, code: int) -> CommandFailure:
    from agrotools.core.files import remedy

    return CommandFailure(f"{_place_of(error)}: {error.strerror or error}", remedy(error), code)


def _place_of(error: OSError) -> str:
    """Return what an error of the system is about; an error of an open file does not name it."""
    if error.filename:
        return error.filename
    try:
        Path.cwd()
    except OSError:
        return "the current folder"
    return "standard output or a file"
