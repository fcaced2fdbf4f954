"""Exit codes of all commands (also described in ``docs/guarantees.md``), and that of an error."""

DONE = 0
FAULTS = 1
"""The command completed, but something is wrong or missing: invalid samples, benchmark faults, budget reached."""
BAD_USAGE = 2
"""An argument refers to something that does not exist or is of the wrong kind, or arguments do not fit together."""
NOT_DONE = 3
"""The command failed because of a disk, an endpoint, a damaged file, or a lock held by another process."""
UNDECIDED = 4
"""The command asks: data may mean two things, and it does not choose in silence. The hint says what settles it."""
STOPPED = 130
"""The command was interrupted (Ctrl-C, SIGTERM, SIGHUP)."""

_CALLER_ERRORS = frozenset(
    "invalid_argument unknown_tool missing_metadata file_not_found unreadable_file path_outside_workspace region_empty "
    "band_not_found shape_mismatch crs_mismatch".split()
)
"""Kinds of tool errors that other arguments or another file avoid."""


def code_of(error: Exception) -> int | None:
    """Return the exit code for an error; None for a bug in the program, which is shown with its stack trace."""
    # Commands read the codes when they start, long before an error, and core takes a fifth of a second to import.
    from agrotools.core.errors import (
        AgrotoolsError,
        BudgetReached,
        ToolError,
        UndecidedError,
        UsageError,
    )

    if isinstance(error, ToolError):
        return BAD_USAGE if error.kind in _CALLER_ERRORS else NOT_DONE
    if isinstance(error, UsageError):
        return BAD_USAGE
    if isinstance(error, UndecidedError):
        return UNDECIDED
    if isinstance(error, BudgetReached):
        return FAULTS
    return NOT_DONE if isinstance(error, AgrotoolsError | OSError) else None
