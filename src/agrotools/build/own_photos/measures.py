"""What columns may hold, from ``measures.toml``, and what is counted, from ``objects.toml``."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import JsonValue

from agrotools.core import FrozenModel

Kind = Literal["number", "name", "yes", "advice"]


class Measure(FrozenModel):
    """A thing to ask of photos; see the text of ``measures.toml``. ``least``, ``most``: values that make sense."""

    name: str
    tool: str
    answer: str
    kind: Kind
    task_type: str
    unit: str | None = None
    abs_tol: float = 0.0
    rel_tol: float = 0.0
    least: float | None = None
    most: float | None = None
    quantity: str
    quantity_zh: str
    arguments: dict[str, JsonValue] = {}
    words: tuple[str, ...]


class Countable(FrozenModel):
    """What is counted: its plural, its name in Chinese, and the words of a header that mean it."""

    objects: str
    objects_zh: str
    words: tuple[str, ...]


@cache
def measures() -> dict[str, Measure]:
    """All measures by name."""
    return {name: Measure.model_validate({"name": name, **body}) for name, body in _data("measures.toml").items()}


@cache
def countables() -> dict[str, Countable]:
    """What is counted, by what the counting tool calls it."""
    return {name: Countable.model_validate(body) for name, body in _data("objects.toml").items()}


def _data(file: str) -> dict[str, dict[str, JsonValue]]:
    return tomllib.loads(files("agrotools.build.own_photos").joinpath(file).read_text("utf-8"))
