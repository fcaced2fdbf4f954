"""Roles of the bands of a raster: red, green, blue, red edge, near infrared."""

import re
from collections.abc import Mapping, Sequence
from typing import get_args

from agrotools.core import ToolError
from agrotools.vision import Role

ROLES: tuple[Role, ...] = get_args(Role)

_WORDS: dict[Role, frozenset[str]] = {
    "B": frozenset({"b", "blue"}),
    "G": frozenset({"g", "green"}),
    "R": frozenset({"r", "red"}),
    "RE": frozenset({"re", "rededge"}),
    "NIR": frozenset({"n", "nir", "nearinfrared", "infrared"}),
}
_WAVELENGTHS_NM: dict[Role, tuple[float, float]] = {
    "B": (470, 30),
    "G": (555, 25),
    "R": (660, 25),
    "RE": (717, 17),
    "NIR": (840, 60),
}
"""Centre of the range that counts as this band, and how far from it one may be."""


def role_of(name: str) -> Role | None:
    """The role that a band's name states (``NIR``, ``B02 blue``, ``red_edge``...), or None. A code alone (``B4``)
    states none: it means different bands on different satellites."""
    words = [word.rstrip("0123456789") for word in re.split(r"[^a-z0-9]+", name.strip().lower())]
    joined = "".join(words)
    if "rededge" in joined:
        return "RE"
    if "nearinfrared" in joined:
        return "NIR"
    if len(words) == 1 and re.fullmatch(r"[a-z]\d+", name.strip().lower()):
        return None
    matches: set[Role] = {role for role in ROLES if _WORDS[role].intersection(words)}
    spelled_out: set[Role] = {
        role for role in matches if any(len(word) > 1 for word in _WORDS[role].intersection(words))
    }
    candidates = sorted(spelled_out or matches)
    return candidates[0] if len(candidates) == 1 else None


def roles_by_name(names: Sequence[str | None]) -> dict[Role, int]:
    """Roles to 1-based band numbers, by the bands' names; the first of several bands of a role."""
    roles: dict[Role, int] = {}
    for number, name in enumerate(names, start=1):
        role = role_of(name) if name else None
        if role is not None:
            roles.setdefault(role, number)
    return roles


def roles_by_wavelength(wavelengths_nm: Sequence[float | None]) -> dict[Role, int]:
    """Roles to the 1-based number of the band nearest to the role's centre wavelength, where one is near enough."""
    roles: dict[Role, int] = {}
    for role, (centre, reach) in _WAVELENGTHS_NM.items():
        distances = {
            number: abs(value - centre) for number, value in enumerate(wavelengths_nm, start=1) if value is not None
        }
        best = min(distances, key=distances.__getitem__, default=None)
        if best is not None and distances[best] <= reach:
            roles[role] = best
    return roles


def chosen_roles(
    bands: Mapping[str, int | str], names: Sequence[str | None], *, file: str, argument: str = "bands"
) -> dict[Role, int]:
    """The band dictionary of a caller as roles to 1-based band numbers.

    Args:
        bands: role (``R``, ``G``, ``B``, ``RE``, ``NIR`` or a word for it) to a band's number, from 1, or its name.
        names: the names of the file's bands in order.

    Raises:
        ToolError: ``invalid_argument`` for an unknown role or one given twice; ``band_not_found`` with what exists.
    """
    roles: dict[Role, int] = {}
    for key, selector in bands.items():
        role = role_of(key)
        if role is None:
            raise ToolError(
                "invalid_argument",
                f"{argument}: {key!r} is no band that is used here",
                argument=argument,
                hint=f"use {', '.join(ROLES)}, e.g. {{'R': 3, 'NIR': 4}}",
            )
        if role in roles:
            raise ToolError("invalid_argument", f"{argument}: {role} is given twice", argument=argument)
        roles[role] = _number_of(selector, names, file, argument)
    return roles


def _number_of(selector: int | str, names: Sequence[str | None], file: str, argument: str) -> int:
    if isinstance(selector, str):
        same = [n for n, name in enumerate(names, start=1) if name and name.strip().lower() == selector.strip().lower()]
        if len(same) == 1:
            return same[0]
        if selector.strip().isdigit():
            selector = int(selector)
    if isinstance(selector, int) and 1 <= selector <= len(names):
        return selector
    raise ToolError(
        "band_not_found",
        f"{file} has no band {selector!r}; it has {listed_bands(names)}",
        argument=argument,
        hint="give the number of the band, counted from 1, or its name",
        candidates=tuple(name for name in names if name)[:20],
    )


def listed_bands(names: Sequence[str | None]) -> str:
    """The bands of a file in words, e.g. ``3 bands: 1 red, 2 green, 3 (no name)``."""
    band_labels = [f"{number} {name or '(no name)'}" for number, name in enumerate(names[:12], start=1)]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"{len(names)} band{'s' if len(names) != 1 else ''}: {', '.join(band_labels)}{more}"
