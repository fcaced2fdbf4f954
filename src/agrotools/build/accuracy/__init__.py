"""Accuracy of the tools, measured against images whose truth is known.

One module per tool says what is measured on which folder; :mod:`agrotools.build.accuracy.studies` runs them, each in a
process of its own, and :mod:`agrotools.build.accuracy.table` prints and writes what came out.
"""

from typing import TYPE_CHECKING

from agrotools.core import Registry

if TYPE_CHECKING:
    from agrotools.build.accuracy.study import Study

STUDIES: Registry["tuple[Study, ...]"] = Registry(
    "accuracy study",
    "agrotools.accuracy",
    {
        "analyze_lesions": "agrotools.build.accuracy.fruit_and_leaves:LEAF_STUDIES",
        "count_objects": "agrotools.build.accuracy.count_objects:STUDIES",
        "estimate_canopy_height": "agrotools.build.accuracy.count_objects:CANOPY_STUDIES",
        "describe_region": "agrotools.build.accuracy.extract_marked_region:REGION_STUDIES",
        "extract_marked_region": "agrotools.build.accuracy.extract_marked_region:STUDIES",
        "detect_change": "agrotools.build.accuracy.detect_change:STUDIES",
        "measure_fruit_size": "agrotools.build.accuracy.fruit_and_leaves:FRUIT_STUDIES",
        "lookup_agronomy": "agrotools.build.accuracy.general:LOOKUP_STUDIES",
        "calculate": "agrotools.build.accuracy.general:CALCULATE_STUDIES",
        "plot": "agrotools.build.accuracy.general:PLOT_STUDIES",
        "measure_crop_weed_area": "agrotools.build.accuracy.measure_crop_weed_area:STUDIES",
        "measure_weed_phenotype": "agrotools.build.accuracy.measure_weed_phenotype:STUDIES",
        "identify_weed": "agrotools.build.accuracy.recognition:WEED_STUDIES",
        "diagnose_pest_disease": "agrotools.build.accuracy.recognition:PEST_DISEASE_STUDIES",
    },
)
"""By name of the tool: what is measured of it. Packages of others add theirs for their own tools."""

__all__ = ["STUDIES"]
