"""Measurements per zone of a field trial. Enter at :func:`agrotools_tools.zones.measure.measure_zones`."""

from functools import partial

from agrotools.core.lazy import import_of_extra

import_of_zones = partial(
    import_of_extra, extra="zones", message="zones need the packages pyogrio and shapely"
)
"""Function that imports a package of the extra ``zones``."""
