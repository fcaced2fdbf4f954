"""Building of benchmarks from drawn scenes, public data sets or a user's own photographs; checks, export and review.

Public names: ``Env``, ``PictureEnv`` and ``env_rows``, the environment to train agents in and the rows of a data set
for it; and what a package needs that adds a source of pictures.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agrotools_build.env import Env, PictureEnv, env_rows
    from agrotools_build.sources.assembling import assembled
    from agrotools_build.sources.land import fruit_subjects
    from agrotools_build.sources.part import Originals, Part
    from agrotools_build.templates import load_templates

_HOMES = {
    "Env": "env",
    "Originals": "sources.part",
    "Part": "sources.part",
    "PictureEnv": "env",
    "assembled": "sources.assembling",
    "env_rows": "env",
    "fruit_subjects": "sources.land",
    "load_templates": "templates",
}
"""Module of each public name, from which it is imported on first use."""

__all__ = [
    "Env",
    "Originals",
    "Part",
    "PictureEnv",
    "assembled",
    "env_rows",
    "fruit_subjects",
    "load_templates",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from agrotools.core.libraries import public_name

        return public_name(__name__, name, f"{__name__}.{_HOMES[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
