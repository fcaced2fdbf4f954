"""Callback for the progress of work on many items."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called between the steps of work, with its name, the number of items done, and the total number of items.

An error that it raises ends the work.
"""


def no_progress(what: str, done: int, total: int) -> None:
    """Ignore the progress."""
