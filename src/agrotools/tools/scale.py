"""How many metres a pixel is: what was given, what is known of the file, what the file says, in this order."""

from dataclasses import dataclass

_WORTH_SAYING = 0.02


@dataclass(frozen=True)
class Scale:
    """``gsd_m``: metres per pixel, None where nobody knows."""

    gsd_m: float | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


def chosen_scale(given: float | None, known: float | None, in_file: float | None = None) -> Scale:
    """The ground sampling distance to use.

    Args:
        given: the caller's argument, which wins.
        known: what the sample or a sidecar says of the file.
        in_file: what the raster's own coordinate reference system says.

    Returns:
        With flag ``gsd_differs_from_file`` where the caller's value differs from what else is known by over 2 %.
    """
    elsewhere = known or in_file
    if given is None:
        return Scale(elsewhere)
    if elsewhere and abs(given / elsewhere - 1) > _WORTH_SAYING:
        note = f"gsd_m is {given:g}, while the file says {elsewhere:.6g}; gsd_m was used"
        return Scale(given, (note,), ("gsd_differs_from_file",))
    return Scale(given)
