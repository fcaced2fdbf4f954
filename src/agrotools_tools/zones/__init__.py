"""Measurements per zone of a field trial. Enter at :func:`agrotools_tools.zones.measure.measure_zones`."""
