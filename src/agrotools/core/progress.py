"""Callback for the progress of work on many items."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the name of the work, the number of items done, and the total number of items."""


def no_progress(what: str, done: int, total: int) -> None:
    """Ignore the progress."""
