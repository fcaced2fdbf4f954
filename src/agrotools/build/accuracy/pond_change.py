"""How well detect_change finds the water of farm ponds, and what became of them, on drawn pairs; and what it makes of
real pairs without any."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from agrotools.build.accuracy.figures import Figure, mean_of, median_of
from agrotools.build.accuracy.study import Bench, Study

if TYPE_CHECKING:
    from agrotools.build.scenes.ponds import PondScene

PAIRS = 80
"""A quarter of each difficulty. The tests were fitted on seeds 1000 to 1359 and tried on 2000 to 2079."""
FIRST_SEED = 12_000


def _colours(bench: Bench) -> list[Figure]:
    return _measured(bench, infrared=False)


def _with_infrared(bench: Bench) -> list[Figure]:
    return _measured(bench, infrared=True)


def _measured(bench: Bench, infrared: bool) -> list[Figure]:
    """Event through the tool; water from the very function that the tool calls, since it returns no water masks."""
    from agrotools.build.scenes.ponds import make_pond_pair
    from agrotools.tools.change.ponds import pond_change

    save = _save_bands if infrared else _save_photos
    overlaps: list[float] = []
    errors: list[float] = []
    events: list[float] = []
    said: list[float] = []
    told: list[float] = []
    false: list[float] = []
    for number in range(PAIRS):
        scene = make_pond_pair(FIRST_SEED + number, number % 4)  # pyright: ignore[reportArgumentType]
        gsd_m = cast(float, scene.sidecar["gsd_m"])
        files = save(bench, scene, number)
        result = bench.call(before=files["before"], after=files["after"], target="pond", gsd_m=gsd_m)
        event, truth = result.pond.event, cast(str, scene.truth["event"])
        events.append(float(event == truth))
        if event is not None:
            said.append(float(event == truth))
        same_side = {"constructed": "wetted", "wetted": "constructed", "demolished": "dried", "dried": "demolished"}
        if event in (truth, same_side.get(truth)) and truth != "none":
            told.append(float(event == truth))
        (before, after), nir = _arrays(scene, infrared)
        there = np.ones(before.shape[:2], np.bool_)
        found = pond_change(before, after, there, nir_before=nir[0], nir_after=nir[1], gsd_m=gsd_m)
        for name, mask in (("before", found.water_before), ("after", found.water_after)):
            true = scene.masks[f"water_{name}"] > 0
            if true.any():
                overlaps.append(float((mask & true).sum() / (mask | true).sum()))
                errors.append(100 * abs(int(mask.sum()) / int(true.sum()) - 1))
            else:
                false.append(float(mask.any()))
    drawn = "drawn pairs, fresh seeds; says nothing of real ponds"
    return [
        mean_of("water, IoU of pictures with water", overlaps, goal=0.88, note=drawn),
        median_of("water area, median absolute error, %", errors, higher_is_better=False, note=drawn),
        mean_of("false water in pictures without, share", false, higher_is_better=False, note=drawn),
        mean_of("event right, share of all pairs", events, note=f"{drawn}; an event left unsaid counts as wrong"),
        mean_of("event right, share of those said", said, note=drawn),
        mean_of("built told from filled, filled in from dried, share", told, note=drawn),
    ]


def _without_ponds(bench: Bench) -> list[Figure]:
    """Real pairs of settlements and fields in which nobody sees a pond: what is said to have happened is false."""
    claimed: list[float] = []
    unsaid: list[float] = []
    for item in bench.items():
        event = bench.call(
            before=bench.folder / item["before"], after=bench.folder / item["after"], target="pond"
        ).pond.event
        claimed.append(float(event not in ("none", None)))
        unsaid.append(float(event is None))
    seen = "no pond to be seen by eye; looked at while the test was made, so not unseen"
    return [
        mean_of("pond event claimed where there is no pond, share", claimed, higher_is_better=False, note=seen),
        mean_of("pond event left unsaid where there is no pond, share", unsaid, higher_is_better=False, note=seen),
    ]


def _arrays(scene: "PondScene", infrared: bool) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.float32] | None]]:
    names = ("before", "after")
    if not infrared:
        return [cast(NDArray[np.uint8], scene.images[name]) for name in names], [None, None]
    colours: list[NDArray[np.uint8]] = []
    nir: list[NDArray[np.float32] | None] = []
    for name in names:
        bands = scene.images[f"{name}_bands"].astype(np.float32)
        scaled = bands * (255 / float(np.percentile(bands[:3], 99.9)))
        colours.append(np.clip(scaled[[2, 1, 0]], 0, 255).round().astype(np.uint8).transpose(1, 2, 0))
        nir.append(scaled[3])
    return colours, nir


def _save_photos(bench: Bench, scene: "PondScene", number: int) -> dict[str, Path]:
    from PIL import Image

    paths: dict[str, Path] = {}
    for name, pixels in zip(("before", "after"), _arrays(scene, False)[0], strict=True):
        path = bench.scratch / f"pond_{number}_{name}.png"
        Image.fromarray(pixels).save(path)
        paths[name] = path
    return paths


def _save_bands(bench: Bench, scene: "PondScene", number: int) -> dict[str, Path]:
    import rasterio
    from rasterio.transform import from_origin

    gsd_m = cast(float, scene.sidecar["gsd_m"])
    paths: dict[str, Path] = {}
    for name in ("before", "after"):
        bands = scene.images[f"{name}_bands"]
        path = bench.scratch / f"pond_{number}_{name}.tif"
        profile = {
            "driver": "GTiff", "count": 4, "height": bands.shape[1], "width": bands.shape[2], "dtype": "uint16",
            "crs": "EPSG:32643", "transform": from_origin(500_000, 2_000_000, gsd_m, gsd_m),
        }  # fmt: skip
        with rasterio.open(path, "w", **profile) as target:
            target.write(bands)
            target.scales = (1e-4,) * 4
            for band, role in enumerate(cast("list[str]", scene.sidecar["bands"]), start=1):
                target.set_band_description(band, role)
        paths[name] = path
    return paths


POND_STUDIES = (
    Study("detect_change", "drawn pairs of ponds", _colours, needs_folder=False),
    Study("detect_change", "drawn pairs of ponds with infrared", _with_infrared, needs_folder=False),
    Study("detect_change", "levir_cd", _without_ponds),
    Study("detect_change", "dsifn_cd", _without_ponds),
)
"""For the studies of detect_change."""
