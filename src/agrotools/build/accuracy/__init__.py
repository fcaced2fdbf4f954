"""Accuracy of the tools, measured on images with known truth.

One module per tool defines its studies: the measures and the folder of images that they need.
:mod:`agrotools.build.accuracy.studies` runs the studies, each in its own process, and
:mod:`agrotools.build.accuracy.table` formats the results.
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
        "lookup_agronomy": "agrotools.build.accuracy.lookup_agronomy:STUDIES",
        "measure_crop_weed_area": "agrotools.build.accuracy.measure_crop_weed_area:STUDIES",
        "measure_weed_phenotype": "agrotools.build.accuracy.measure_weed_phenotype:STUDIES",
        "identify_weed": "agrotools.build.accuracy.recognition:WEED_STUDIES",
        "diagnose_pest_disease": "agrotools.build.accuracy.recognition:PEST_DISEASE_STUDIES",
    },
)
"""Studies by tool name. Other packages can register studies for their own tools."""

__all__ = ["STUDIES"]
