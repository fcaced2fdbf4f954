"""Accuracy of measure_weed_phenotype: leaf counts on photographs, and drawn pots of known size."""

import numpy as np
from PIL import Image

from accuracy.study import Bench, Columns, Figure, Study
from agrotools.core import ToolError
from agrotools_build.scenes.pot_plants import FORMS, make_pot

DRAWN = 48
"""Number of pots, a quarter of each difficulty."""
_FIRST_SEED = 90_000
_HEIGHTS_CM = (8.0, 45.0)


def _leaf_count(bench: Bench) -> list[Figure]:
    columns = Columns()
    for item in bench.items():
        found = bench.call(image=bench.folder / item["image"], view="top").plants[0].leaf_count_est
        columns.add(
            given=float(found is not None),
            error=None if found is None else abs(found - item["count"]),
        )
    figures = [columns.mean("leaves, count given, share", "given")]
    return figures + (
        [columns.mean_error("leaves, mean absolute error", "error", goal=1.0)]
        if columns["error"]
        else []
    )


def _drawn_pots(bench: Bench) -> list[Figure]:
    columns = Columns(
        note="side views by our own code, difficulties 0 to 3; scale by the disc beside the plant"
    )
    rng = np.random.default_rng(_FIRST_SEED)
    species = list(FORMS)
    for number in range(DRAWN):
        scene = make_pot(
            _FIRST_SEED + number,
            number % 4,  # pyright: ignore[reportArgumentType]
            species[number % len(species)],
            float(rng.uniform(*_HEIGHTS_CM)),
        )
        truth: dict[str, float] = scene.truth  # pyright: ignore[reportAssignmentType]
        path = bench.picture(f"pot_{number}.png", scene.images["rgb"])
        try:
            result = bench.call(
                image=path, scale_marker={"type": "circle", "size_cm": truth["disc_cm"]}
            )
        except ToolError:
            columns.add(found=0.0)
            continue
        with Image.open(bench.artifact_path(result.mask)) as opened:
            mask = np.asarray(opened) > 0
        plant, true = result.plants[0], scene.masks["plant"]
        columns.add(
            found=100.0,
            scale=100 * abs(result.scale_cm_px / truth["cm_px"] - 1),
            mask=(mask & true).sum() / (mask | true).sum(),
            area=100 * abs(plant.area_cm2 / truth["area_cm2"] - 1),
            height=100 * abs(plant.height_cm / truth["height_cm"] - 1),
            width=100 * abs(plant.width_cm / truth["width_cm"] - 1),
        )
    return [
        columns.mean("disc, found, %", "found", goal=95.0),
        columns.median_error("scale by the disc, median absolute error, %", "scale", goal=2.0),
        columns.mean("plant mask, IoU", "mask", goal=0.95),
        columns.median_error("area, median absolute error, %", "area", goal=3.0),
        columns.median_error("height, median absolute error, %", "height", goal=2.0),
        columns.median_error("width, median absolute error, %", "width", goal=2.0),
    ]


STUDIES = (
    Study("measure_weed_phenotype", "leaf_count", _leaf_count),
    Study("measure_weed_phenotype", "drawn pots", _drawn_pots, needs_folder=False),
)
