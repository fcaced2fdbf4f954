"""What a benchmark that is known by name is loaded with."""

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from agrotools.core import FrozenModel, UsageError
from agrotools.core.progress import Progress, no_progress
from agrotools.formats.benchmark import Benchmark

Settings = TypeVar("Settings", bound=FrozenModel)


class Loading(NamedTuple):
    """Where the files of benchmarks lie, the options that were given, and who is told how far loading is."""

    data_root: Path | None = None
    options: Mapping[str, str | int | bool] = MappingProxyType({})
    progress: Progress = no_progress


Loader = Callable[[Loading], Benchmark]


def settings_of(model: type[Settings], benchmark: str, options: Mapping[str, str | int | bool]) -> Settings:
    """``options`` as the settings of ``benchmark``.

    Raises:
        UsageError: an option that there is not (with the closest name), or a value that it cannot have.
    """
    known = list(model.model_fields)
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            meant = f"did you mean {close[0]}? " if close else ""
            raise UsageError(f"benchmark {benchmark} has no option {name!r}", hint=f"{meant}known: {', '.join(known)}")
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise UsageError(f"--option {name}={options.get(name, '')}: {first['msg'].lower()}") from error


def no_options(benchmark: str, loading: Loading) -> None:
    """Refuse options.

    Raises:
        UsageError: some were given.
    """
    for name in loading.options:
        raise UsageError(f"benchmark {benchmark} has no option {name!r}", hint="it has none at all")
