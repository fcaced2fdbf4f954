"""Bands of which a vegetation index is computed: the rule that all tools share.

A band that the caller names goes first, then one whose name says its colour alone (``Red``), then the only one whose
name holds that colour (``B04 red``), then the one with the nearest wavelength. Where several bands may have a colour
(``Red-650`` and ``Red-668``) none is taken.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from agrotools.calling.pictures import KnownRoles, known_roles, raster_roles, refuse_unsure
from agrotools.core import SampleFile, ToolError
from agrotools.vision import Role
from agrotools.vision.rasters import RasterSource
from agrotools_tools.vision import Index
from agrotools_tools.vision.vegetation import INDICES, choose_index


@dataclass(frozen=True)
class IndexBands:
    """Bands of an index.

    ``roles``: number by role of all bands that are known. ``used``: those of the index. ``unsure``: bands that may have
    a role of the index, where several may. ``said``: a note on the bands that are used. ``assumed``: notes on what was
    assumed of them.
    """

    index: Index
    roles: dict[Role, int]
    used: dict[Role, int]
    unsure: dict[Role, tuple[int, ...]]
    said: str
    assumed: tuple[str, ...]


def find_index_bands(
    source: RasterSource,
    index: Literal["auto"] | Index,
    bands: Mapping[str, int | str] | None,
    info: SampleFile | None,
) -> IndexBands:
    """Return the index (for ``auto``, the best one) and its bands, which may be unsure. Roles that the caller leaves
    out are those of the file. ToolError ``band_not_found``."""
    given = raster_roles(source, bands, info)
    roles: dict[Role, int] = {**given.roles}
    unsure: dict[Role, tuple[int, ...]] = {**given.unsure}
    if bands is not None and not _has_bands_of(index, roles):
        in_file = _roles_in_file(source, info)
        taken = {*roles.values()}
        left: dict[Role, int] = {role: n for role, n in in_file.roles.items() if n not in taken}
        roles = left | roles
        unsure = {role: numbers for role, numbers in in_file.unsure.items() if role not in roles}
    able: dict[Role, object] = {**unsure, **roles}
    chosen = choose_index(index, able)
    needed = INDICES[chosen].bands
    used: dict[Role, int] = {role: roles[role] for role in needed if role in roles}
    said = f"{chosen} of {bands_in_words(source, used, given.names)}"
    doubtful: dict[Role, tuple[int, ...]] = {
        role: unsure[role] for role in needed if role in unsure
    }
    return IndexBands(chosen, roles, used, doubtful, said, given.notes)


def index_bands(
    source: RasterSource,
    index: Literal["auto"] | Index,
    bands: Mapping[str, int | str] | None,
    info: SampleFile | None,
) -> IndexBands:
    """Return the index and its bands; ToolError ``band_not_found``, also if several bands may have one of its roles."""
    found = find_index_bands(source, index, bands, info)
    if found.unsure:
        refuse_unsure(source, _roles_in_file(source, info), INDICES[found.index].bands)
    return found


def bands_in_words(
    source: RasterSource, used: Mapping[Role, int], names: Sequence[str | None] | None = None
) -> str:
    """Return bands by role as a note says them: ``the bands NIR = 10 NIR, R = 6 Red``. ``names``: else of the file."""
    titles = [f"{role} = {source.band_title(number, names)}" for role, number in used.items()]
    return f"the bands {', '.join(titles)}"


def _has_bands_of(index: Literal["auto"] | Index, roles: Mapping[Role, int]) -> bool:
    with suppress(ToolError):
        choose_index(index, roles)
        return True
    return False


def _roles_in_file(source: RasterSource, info: SampleFile | None) -> KnownRoles:
    return known_roles(source, None, info)
