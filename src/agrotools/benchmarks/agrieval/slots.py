"""Slots of examination questions: letters of options, and texts that are compared with a reference text."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agrotools.core import Slot

OptionKind = Literal["single", "multiple", "true_false"]


class OptionsSlot(Slot):
    """The right options of an examination question, by their letters. ``options``: letter to text, as shown."""

    scored_apart: ClassVar[bool] = True
    type: Literal["options"] = "options"
    kind: OptionKind
    value: Annotated[tuple[str, ...], Field(min_length=1)]
    options: dict[str, str]

    @property
    def expected_text(self) -> str:
        return f"{', '.join(self.value)} (of {', '.join(f'{key} {text}' for key, text in self.options.items())})"

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(self.options)

    @property
    def takes_several(self) -> bool:
        return self.kind == "multiple"

    @property
    def right_text(self) -> str:
        return "".join(self.value)

    @property
    def comparable_value(self) -> str:
        return "".join(self.value)


class ReferenceTextSlot(Slot):
    """Free text, scored by its overlap with the text ``value``."""

    scored_apart: ClassVar[bool] = True
    free_text: ClassVar[bool] = True
    type: Literal["reference_text"] = "reference_text"
    value: Annotated[str, Field(min_length=1)]

    @property
    def right_text(self) -> str:
        return self.value
