"""Slot of a grade of ripeness."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agrotools.plugin import Slot


class GradeSlot(Slot):
    """A grade of ripeness from 1 (green) to 5 (overripe); the next grade is half right."""

    scored_apart: ClassVar[bool] = True
    type: Literal["ripeness_grade"] = "ripeness_grade"
    value: Annotated[int, Field(ge=1, le=5)]

    @property
    def form_value(self) -> str:
        return "<grade from 1 to 5>"

    @property
    def comparable_value(self) -> int:
        return self.value
