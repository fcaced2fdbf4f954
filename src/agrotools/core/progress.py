"""Progress of long work, as a callback."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many are done, and how many there are."""


def no_progress(what: str, done: int, total: int) -> None:
    """Report nothing."""
