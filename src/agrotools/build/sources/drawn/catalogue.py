"""The kinds of scenes that benchmarks are drawn of, in their order."""

MODULES: tuple[str, ...] = (
    "blocks",
    "tracts",
    "farmland_aerial",
    "farmland_satellite",
    "pond_pairs",
    "apples",
    "fruit_counts",
    "leaf_lesions",
    "pests",
    "weeds",
    "pots",
    "rows",
)
