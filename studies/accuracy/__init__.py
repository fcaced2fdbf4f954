"""Accuracy of the tools, measured on images with known truth (``python studies/measure_accuracy.py``).

One module per tool defines its studies: the measures and the folder of images that they need.
:mod:`accuracy.studies` runs the studies, each in its own process, :mod:`accuracy.table` prints and stores the
results, and :mod:`accuracy.page` writes the page about them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from agrotools.core import UsageError

if TYPE_CHECKING:
    from accuracy.study import Study

STUDIES = {
    "analyze_lesions": "fruit_and_leaves:LEAF_STUDIES",
    "count_objects": "count_objects:STUDIES",
    "estimate_canopy_height": "count_objects:CANOPY_STUDIES",
    "describe_region": "extract_marked_region:REGION_STUDIES",
    "extract_marked_region": "extract_marked_region:STUDIES",
    "detect_change": "detect_change:STUDIES",
    "measure_fruit_size": "fruit_and_leaves:FRUIT_STUDIES",
    "lookup_agronomy": "lookup_agronomy:STUDIES",
    "measure_crop_weed_area": "measure_crop_weed_area:STUDIES",
    "measure_weed_phenotype": "measure_weed_phenotype:STUDIES",
    "identify_weed": "recognition:WEED_STUDIES",
    "diagnose_pest_disease": "recognition:PEST_DISEASE_STUDIES",
}
"""Module and name of the studies of each tool; a study imports the module of its own tool alone."""


def studies_of(tool: str) -> "tuple[Study, ...]":
    """Return the studies of a tool; UsageError if it has none."""
    if tool not in STUDIES:
        raise UsageError(f"no study measures {tool!r}", hint=f"known: {', '.join(sorted(STUDIES))}")
    module, _, name = STUDIES[tool].partition(":")
    return getattr(import_module(f"accuracy.{module}"), name)
