"""Doses of a disturbance as options give them: ``NAME=DOSE,...``."""

from typing import Any, ClassVar, Self, cast

from pydantic import ValidationError

from agrotools.core import FrozenModel, UsageError, plain_message
from agrotools.core.base import suggestion

UNDISTURBED = "none"
"""Name of a run without any dose, beside others."""


class Doses(FrozenModel):
    """Doses by name; the defaults of the fields disturb nothing."""

    OPTION: ClassVar[str]
    EXAMPLE: ClassVar[str]

    @property
    def doses(self) -> dict[str, float]:
        """Doses that disturb something, by name."""
        given = ((name, getattr(self, name), info.default) for name, info in type(self).model_fields.items())
        return {name: value for name, value, default in given if value != default}

    def __str__(self) -> str:
        return doses_text(self.doses)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``NAME=DOSE,...``, such as ``gsd=2,blur=1.5``; empty or ``none`` for no dose.

        Raises:
            UsageError: unknown or repeated name, or a dose that is no number or out of range.
        """
        values: dict[str, str] = {}
        for part in text.split(",") if text.strip() not in ("", UNDISTURBED) else ():
            name, _, value = (piece.strip() for piece in part.partition("="))
            if name not in cls.model_fields:
                raise UsageError(f"{cls.OPTION}: unknown dose {name!r}", hint=suggestion(name, cls.model_fields))
            if name in values:
                raise UsageError(f"{cls.OPTION}: {name} is given twice", hint=f"repeat {cls.OPTION} for several runs")
            if "_" in value:
                raise UsageError(f"{cls.OPTION} {name}={value}: should be a valid number", hint=f"e.g. {cls.EXAMPLE}")
            values[name] = value
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else ""
            where = f" {name}={values[name]}" if name else ""
            wrong = plain_message(first).removeprefix("Input ")
            raise UsageError(f"{cls.OPTION}{where}: {wrong}", hint=f"e.g. {cls.EXAMPLE}") from error


def given_doses(option: str, given: Any) -> list[Any]:
    """Return the doses of an option that may be repeated, a text for each run; UsageError if one is empty."""
    several = cast("list[Any]", given) if isinstance(given, list) else [given]
    if isinstance(given, list) and not all(str(each).strip() for each in several):
        raise UsageError(f"{option} is empty", hint=f"omit it, or {option} none for a run without")
    return several


def doses_text(doses: dict[str, float]) -> str:
    """Return doses as options give them; empty if there are none."""
    return ",".join(f"{name}={value:g}" for name, value in doses.items())
