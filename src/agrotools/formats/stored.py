"""Values that a build stores in the metadata of a benchmark's header."""

from typing import TypeVar

from pydantic import ValidationError

from agrotools.core import BenchmarkError, FrozenModel

Stored = TypeVar("Stored", bound=FrozenModel)


def read_stored(kind: type[Stored], stored: object, key: str) -> Stored:
    """Return a value stored under ``key``.

    Raises:
        BenchmarkError: the metadata were changed, and are no such value.
    """
    try:
        return kind.model_validate(stored)
    except ValidationError as error:
        raise BenchmarkError(
            f"metadata.{key} of the benchmark is not what agrotools build writes there",
            hint="remove this key, or build the benchmark again",
        ) from error
