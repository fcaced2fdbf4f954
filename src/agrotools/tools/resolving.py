"""What a call comes to: its arguments as its tool reads them, so that two calls can be compared without running them.

A tool declares it beside itself, ``@tool(..., resolves=function)``, with the very code that decides when it runs.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import cast

from pydantic import JsonValue

from agrotools.core import Arguments, SampleFile, ToolError

_PHOTO_ENDINGS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp"})


@dataclass(frozen=True)
class Known:
    """What a record holds of a reference call. No file is opened.

    ``files``: those of the sample by name; ``reference``: arguments of the reference call, defaults filled in;
    ``result``: what that call gave, empty where that is not known or it failed.
    """

    files: Mapping[str, SampleFile] = field(default_factory=dict[str, SampleFile])
    reference: Arguments = field(default_factory=Arguments)
    result: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def file(self, name: JsonValue) -> SampleFile | None:
        return self.files.get(name) if isinstance(name, str) else None

    def size(self, name: JsonValue) -> tuple[int, int] | None:
        """Width and height of a file, pixels, where the sample says it."""
        file = self.file(name)
        return (file.width_px, file.height_px) if file and file.width_px and file.height_px else None

    def gsd_m(self, given: JsonValue, *names: JsonValue) -> JsonValue:
        """The scale that was given, else that of the first of these files that has one, metres per pixel."""
        if given is not None:
            return given
        return next((file.gsd_m for file in map(self.file, names) if file and file.gsd_m), None)

    def is_photo(self, name: JsonValue) -> bool:
        """Whether a file is no raster, which may have bands of its own and a scale inside."""
        return isinstance(name, str) and PurePath(name).suffix.lower() in _PHOTO_ENDINGS

    def left_open(self, argument: str, value: JsonValue) -> bool:
        """Whether the reference call gave ``argument`` this value, so that its result says what that came to."""
        return bool(self.result) and self.reference.get(argument) == value

    def said(self, name: str) -> tuple[JsonValue, ...]:
        """A list of the result (``flags``, ``notes``...); empty where it has none."""
        value = self.result.get(name)
        return tuple(value) if isinstance(value, list) else ()

    def bands(self, given: JsonValue, image: JsonValue) -> JsonValue:
        """A band dictionary by role and number, where the names of the file's bands are known; else as it was given."""
        file = self.file(image)
        if not isinstance(given, dict) or file is None or not file.bands:
            return given
        from agrotools.vision.band_roles import chosen_roles

        try:
            return cast(JsonValue, chosen_roles(cast("dict[str, int | str]", given), file.bands, file=file.name))
        except ToolError:
            return given


Resolves = Callable[[Arguments, Known], Arguments]
"""From arguments that passed the schema to what they come to. What makes no difference is left out. A ToolError says
that the tool would refuse the call."""


def without(arguments: Arguments, *names: str) -> Arguments:
    """The arguments without some that make no difference."""
    return {name: value for name, value in arguments.items() if name not in names}


def as_set(value: JsonValue, everything: Iterable[str] = ()) -> JsonValue:
    """A list whose order says nothing; null where it is null, empty, or holds all there is."""
    members = {str(item) for item in value} if isinstance(value, list) else set[str]()
    if not members or (everything and members >= {*everything}):
        return None
    return cast(JsonValue, sorted(members))


def short(number: float) -> float:
    """A converted number without the last digits, which conversion spoils."""
    return float(f"{number:.9g}")
