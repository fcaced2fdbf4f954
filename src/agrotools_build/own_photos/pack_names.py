"""What the pack that a build is given says of the table: its labels are names, and its crop is that of the photos."""

from collections.abc import Mapping
from contextlib import suppress

from agrotools.core import ToolError
from agrotools.core.readings import Readings
from agrotools.knowledge.kb_names import kb_names
from agrotools.knowledge.words import folded
from agrotools_build.own_photos.plan import Column, Plan, measures
from agrotools_build.own_photos.proposal import names_in_cells
from agrotools_build.own_photos.table import DetectedTable
from agrotools_tools.recognition.candidates import PACK
from agrotools_tools.recognition.pack_subjects import crops_shown
from agrotools_tools.recognition.packs import PackInfo, load_pack


def packs_of(backends: Mapping[str, str]) -> dict[str, PackInfo]:
    """Return the packs among back-ends, by tool; the executor says what is wrong with one that cannot be read."""
    packs: dict[str, PackInfo] = {}
    for tool, backend in backends.items():
        if backend.startswith(PACK):
            with suppress(ToolError):
                packs[tool] = load_pack(backend.removeprefix(PACK)).info
    return packs


def with_packs(
    plan: Plan, seen: DetectedTable, packs: Mapping[str, PackInfo], readings: Readings
) -> Plan:
    """Return a plan with what packs say of its columns, where it says nothing itself."""
    columns = [_with_pack(column, seen, packs, readings) for column in plan.columns]
    return plan.model_copy(update={"columns": tuple(columns)})


def _with_pack(
    column: Column, seen: DetectedTable, packs: Mapping[str, PackInfo], readings: Readings
) -> Column:
    pack = packs.get(measures()[column.ask].tool) if column.is_asked else None
    if pack is None:
        return column
    crops = crops_shown(pack.shows, kb_names()) or ()
    if column.crop is None and len(crops) == 1 and column.ask in ("disease", "diseased", "class"):
        readings.take(f"crop {crops[0]} of column {column.column}, as the pack {pack.name} says")
        column = column.model_copy(update={"crop": crops[0]})
    if measures()[column.ask].kind != "name":
        return column
    label_of = {folded(label): label for label in pack.classes}
    spelt = {
        name: label_of[folded(name)]
        for name in names_in_cells(seen, column)
        if folded(name) in label_of and name not in pack.classes
    }
    return column.model_copy(update={"names": {**spelt, **column.names}})
