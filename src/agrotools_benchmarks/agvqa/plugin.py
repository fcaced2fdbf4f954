"""Plug-ins of the sets of AG-VQA questions, one for each map in ``maps``, and their slots.

A set is its map and its name in the table of this package; no code names it.
"""

import operator
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agrotools.core import Slot
from agrotools.core.registry import deferred
from agrotools.loading.contract import BenchmarkPlugin
from agrotools.loading.facts import Facts, plugin_of


class LetteredSlot(Slot):
    """Correct options of a question, by their letters.

    ``options``: text of each option as shown, by letter; ``labels``: letters by the published names of the options,
    which answers may give instead.
    """

    closed: ClassVar[bool] = True
    type: Literal["lettered"] = "lettered"
    value: Annotated[tuple[str, ...], Field(min_length=1)]
    options: dict[str, str]
    several: bool = False
    labels: Annotated[dict[str, str], Field(exclude_if=operator.not_)] = {}

    @property
    def form_value(self) -> str:
        words = "the letters that apply of" if self.several else "the letter of one option"
        return f"<{words}: {', '.join(self.options)}>"

    @property
    def expected_text(self) -> str:
        return ", ".join(f"{letter}. {self.options[letter]}" for letter in self.value)

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(self.options)

    @property
    def takes_several(self) -> bool:
        return self.several

    @property
    def right_text(self) -> str:
        return "".join(self.value)

    @property
    def comparable_value(self) -> str:
        return self.right_text


class NumberListSlot(Slot):
    """Numbers in a fixed order. ``box``: corners x1, y1, x2, y2, correct with an overlap (IoU) above 0.5; other numbers
    are correct if each is within ``abs_tol``."""

    closed: ClassVar[bool] = True
    type: Literal["number_list"] = "number_list"
    value: Annotated[tuple[float, ...], Field(min_length=1)]
    box: bool = False
    abs_tol: Annotated[float, Field(ge=0)] = 0.0

    @property
    def form_value(self) -> str:
        return (
            "<x1, y1, x2, y2>" if self.box else f"<{len(self.value)} numbers with commas between>"
        )

    @property
    def right_text(self) -> str:
        return ", ".join(f"{number:g}" for number in self.value)


OWN = "agvqa"
"""Name of the plug-in that reads a user's own files with a map of their own."""
_ROOM = "agrotools_benchmarks.agvqa"
MAPS = Path(__file__).with_name("maps")
"""Folder of the maps of this package."""


def attribute_of(name: str) -> str:
    """Return the name of a set as an attribute of :data:`SETS`, and of its format in ``score.FORMATS``."""
    return name.replace("-", "_")


def _plugin(facts: Facts, slots: tuple[type[Slot], ...] = ()) -> BenchmarkPlugin:
    name = facts["name"]
    return plugin_of(
        {"takes_options": True, **facts},
        load=deferred(f"{_ROOM}.load:load_set", name),
        find=deferred(f"{_ROOM}.load:find_set", name),
        check=deferred(f"{_ROOM}.load:check_set", name),
        roots=deferred(f"{_ROOM}.load:image_roots", name),
        slots=slots,
    )


def _plugin_of_map(path: Path) -> BenchmarkPlugin:
    # The map is read as plain TOML, so that a list of benchmarks does not import its reader.
    name, fields = path.stem, tomllib.loads(path.read_text("utf-8"))
    place = f"DIR/{fields['folders'][0]}/{fields['files'][0]}"
    facts: dict[str, Any] = {
        "name": name,
        "about": f"{fields['about']} ({fields['checked']})",
        "needs": f"{place}, {fields['url'].removeprefix('https://')}",
    }
    if "download" in fields:
        facts["download"] = {
            "address": fields["download"],
            "licence": fields["licence"],
            "into": fields["download_into"],
        }
    if "predictions" in fields:
        target = f"{_ROOM}.score:FORMATS.{attribute_of(name)}"
        facts["targets"] = {"predictions": {name: target}}
    if questions := fields.get("questions"):
        facts["expected"] = [
            {"name": "questions", "published": questions, "decides": True, "count": "samples"}
        ]
    return _plugin(facts)


SETS = SimpleNamespace(
    **{attribute_of(path.stem): _plugin_of_map(path) for path in sorted(MAPS.glob("*.toml"))}
)
"""Plug-ins of the maps of this package."""
OWN_FILE = _plugin(
    {
        "name": OWN,
        "about": "your own questions on pictures, read from parquet, JSON, JSON Lines or CSV with a field map",
        "needs": "DIR with the files and agvqa-map.toml (or --option map=FILE)",
        "targets": {
            "scoring": f"{_ROOM}.score:SCORING",
            "predictions": {OWN: f"{_ROOM}.score:OWN_FILE"},
        },
    },
    slots=(LetteredSlot, NumberListSlot),
)
