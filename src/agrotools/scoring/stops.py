"""Where a published scorer ends with an exception, its port raises one typed error that says so."""

import re
from collections.abc import Generator
from contextlib import contextmanager

from agrotools.core import BenchmarkError

_ENDS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    re.error,
)


class PublishedScorerStops(BenchmarkError):
    """The published scorer ends with ``exception`` (the name of a Python class) at ``where``: it has no figures."""

    def __init__(self, exception: str, where: str, reason: str) -> None:
        super().__init__(
            f"the published scorer stops with {exception} at {where}: {reason}",
            hint="the corrected figures do not depend on it",
        )
        self.exception = exception
        self.where = where


@contextmanager
def published(where: str) -> Generator[None]:
    """Lines that follow a published scorer so closely that they fail where it fails.

    Raises:
        PublishedScorerStops: instead of the exception of the original.
    """
    try:
        yield
    except _ENDS as error:
        raise PublishedScorerStops(type(error).__name__, where, str(error)[:200] or "no reason given") from error
