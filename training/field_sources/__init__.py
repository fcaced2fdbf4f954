"""Readers of public repositories for the benchmark ``field``, by the name of the data set's folder."""

from field_sources.buildings import LEVIR_CD
from field_sources.deepweeds import DEEPWEEDS
from field_sources.land import BUILT_OVER, CHIAPAS_BANDS, COTTON_SEASON, TOWN_BANDS
from field_sources.mango import MANGO_LEAVES
from field_sources.orchards import ORCHARD_APPLES, ORCHARD_CHERRIES
from field_sources.plots import TRIAL_PLOTS
from field_sources.r_packages import (
    AMAZON_SCENES,
    CHABLAIS_TREES,
    FOREST_GAPS,
    LONGLEAF_PINES,
)
from field_sources.rasters import (
    AMAZON_BANDS,
    FOREST_HEIGHTS,
    SINOP_SEASON,
    SOYBEAN_HEIGHTS,
    STAND_METRICS,
)
from field_sources.rice_pests import RICE_PESTS
from field_sources.snapshot import Reader
from field_sources.trees import DATE_PALMS, OIL_PALMS, TOWN_TREES, TREE_CROWNS
from field_sources.weeds import BEET_WEEDS, POTATO_WEEDS, SESAME_WEEDS

READERS: dict[str, Reader] = {
    "town_trees": TOWN_TREES,
    "oil_palms": OIL_PALMS,
    "date_palms": DATE_PALMS,
    "tree_crowns": TREE_CROWNS,
    "sinop_season": SINOP_SEASON,
    "soybean_heights": SOYBEAN_HEIGHTS,
    "forest_heights": FOREST_HEIGHTS,
    "stand_metrics": STAND_METRICS,
    "amazon_bands": AMAZON_BANDS,
    "forest_gaps": FOREST_GAPS,
    "longleaf_pines": LONGLEAF_PINES,
    "chablais_trees": CHABLAIS_TREES,
    "amazon_scenes": AMAZON_SCENES,
    "chiapas_bands": CHIAPAS_BANDS,
    "town_bands": TOWN_BANDS,
    "built_over": BUILT_OVER,
    "cotton_season": COTTON_SEASON,
    "trial_plots": TRIAL_PLOTS,
    "potato_weeds": POTATO_WEEDS,
    "beet_weeds": BEET_WEEDS,
    "sesame_weeds": SESAME_WEEDS,
    "mango_leaves": MANGO_LEAVES,
    "rice_pests": RICE_PESTS,
    "deepweeds": DEEPWEEDS,
    "levir_cd": LEVIR_CD,
    "orchard_apples": ORCHARD_APPLES,
    "orchard_cherries": ORCHARD_CHERRIES,
}
