"""The rubrics by which judges grade chains of reasoning on Agent-X: ours, or those of a file of the user's."""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from agrotools.core import FrozenModel, UsageError

OURS = Path(__file__).with_name("agent_x.toml")
_HINT = "the form: docs/gta-thinkgeo-agent-x.md"
_HOLE = "{rubric}"
_DIGITS = 12

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Part = Literal["task", "reference_steps", "reference_answer", "kind", "tools", "steps", "answer"]


class Criterion(FrozenModel):
    """Rubric of a criterion, and which texts a judge sees for it; None: those that ours shows."""

    rubric: Text
    shows: Annotated[tuple[Part, ...] | None, Field(min_length=1)] = None


class _File(FrozenModel):
    system: Text | None = None
    parts: dict[Part, Text] = {}
    criteria: Annotated[dict[str, Criterion], Field(min_length=1)]


@dataclass(frozen=True)
class Rubrics:
    """Instructions to a judge. ``criteria``: by name in Agent-X's files, the rubric and the texts it is shown.

    ``name`` and ``digest`` are those of the user's file (SHA-256, its first twelve digits); empty for ours.
    """

    system: str
    parts: Mapping[str, str]
    criteria: Mapping[str, tuple[str, tuple[str, ...]]]
    name: str = ""
    digest: str = ""
    content: bytes = b""

    @property
    def label(self) -> str:
        """Source of the rubrics, for whoever reads scores by them."""
        return f"rubrics of {self.name} ({self.digest})" if self.digest else "rubrics of ours"


@cache
def our_rubrics() -> Rubrics:
    """Those that ship."""
    file = _File.model_validate(tomllib.loads(OURS.read_text(encoding="utf-8")))
    assert file.system is not None
    criteria = {key: (each.rubric, tuple(each.shows or ())) for key, each in file.criteria.items()}
    return Rubrics(file.system, {**file.parts}, criteria)


def read_rubrics(path: Path, name: str = "") -> Rubrics:
    """The rubrics of a TOML file; what it leaves out of the words around them is as in ours. ``name``: what to call it.

    Raises:
        UsageError: it cannot be read, is of another form, or names a criterion that Agent-X has not.
    """
    from agrotools.scoring.reference.agent_x import COLUMNS

    try:
        content = path.read_bytes()
        file = _File.model_validate(tomllib.loads(content.decode("utf-8")))
    except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the rubrics {path}: {error}", hint=f"it must be a TOML file; {_HINT}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"the rubrics {path}: {where}: {first['msg'].lower()}", hint=_HINT) from error
    ours = our_rubrics()
    for key in file.criteria:
        if key not in ours.criteria:
            close = get_close_matches(key, COLUMNS, n=1)
            meant = f"did you mean {close[0]}? " if close else ""
            raise UsageError(
                f"the rubrics {path}: Agent-X has no criterion {key!r}", hint=f"{meant}known: {', '.join(COLUMNS)}"
            )
    system = file.system or ours.system
    if _HOLE not in system:
        raise UsageError(f"the rubrics {path}: system says nowhere where the rubric goes", hint=f"write {_HOLE} there")
    criteria = {key: (each.rubric, tuple(each.shows or ours.criteria[key][1])) for key, each in file.criteria.items()}
    digest = hashlib.sha256(content).hexdigest()[:_DIGITS]
    return Rubrics(system, {**ours.parts, **file.parts}, criteria, name or path.name, digest, content)
