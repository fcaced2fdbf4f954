"""What the tools make of drawn trees, heights, farmland and ponds, by difficulty.

Run: python benchmarks/land_scenes.py [SCENES]. Prints a line per tool and kind of scene, a column per difficulty. What
the tools reach on real images stands in docs/accuracy.md; these figures say nothing of it.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from agrotools.build.scenes.farmland import make_farmland_pair
from agrotools.build.scenes.ponds import make_pond_pair
from agrotools.build.scenes.saving import save_heights, save_picture
from agrotools.build.scenes.scene import Difficulty
from agrotools.build.scenes.stands import make_block, make_tract
from agrotools.tools import count_objects, detect_change, estimate_canopy_height

FIRST_SEED = 40_000
DIFFICULTIES: tuple[Difficulty, ...] = (0, 1, 2, 3)
Row = dict[str, float]


def trees(folder: Path, seed: int, difficulty: Difficulty) -> Row:
    kind = "orchard" if seed % 2 else "forest"
    scene = make_block(seed, difficulty, kind)
    save_picture(folder / "rgb.jpg", scene.images["rgb"])
    save_heights(folder / "chm.tif", scene.images["chm"], scene.sidecar["chm_gsd_m"])
    true = len(scene.truth["trees"])
    gsd_m = scene.sidecar["gsd_m"]
    in_picture = count_objects(image=folder / "rgb.jpg", target="tree", gsd_m=gsd_m).count
    in_heights = count_objects(image=folder / "rgb.jpg", chm=folder / "chm.tif", target="tree", gsd_m=gsd_m).count
    return {
        f"{kind}: count in the picture off by %": 100 * abs(in_picture - true) / true,
        f"{kind}: count in the height model off by %": 100 * abs(in_heights - true) / true,
    }


def heights(folder: Path, seed: int, difficulty: Difficulty) -> Row:
    scene = make_tract(seed, difficulty)
    save_heights(folder / "chm.tif", scene.images["chm"], scene.sidecar["gsd_m"])
    found = estimate_canopy_height(chm=folder / "chm.tif")
    known = scene.masks["heights"].astype(np.float64)
    return {
        "canopy mean off by m": abs(found.mean_canopy_m - known[known >= 2].mean()),
        "canopy cover off by points": abs(found.cover_pct - 100 * (known >= 2).mean()),
        "top height off by m": abs(found.max_m - known.max()),
    }


def farmland(folder: Path, seed: int, difficulty: Difficulty) -> Row:
    scene = make_farmland_pair(seed, difficulty, "satellite" if seed % 2 else "aerial")
    for name in ("before", "after"):
        save_picture(folder / f"{name}.jpg", scene.images[name])
    found = detect_change(
        before=folder / "before.jpg", after=folder / "after.jpg", target="farmland", gsd_m=scene.sidecar["gsd_m"]
    )
    true = 100 * float((scene.masks["lost"] > 0).mean())
    said = {} if found.changed is None else {"changed rightly said, of those said": float(found.changed == (true > 0))}
    kind = "built over" if scene.truth["becomes"] == "building" else "other or none"
    return {f"{kind}: lost area off by points": abs(found.change_pct - true), **said}


def ponds(folder: Path, seed: int, difficulty: Difficulty) -> Row:
    scene = make_pond_pair(seed, difficulty)
    for name in ("before", "after"):
        save_picture(folder / f"{name}.jpg", scene.images[name])  # pyright: ignore[reportArgumentType]
    gsd_m: Any = scene.sidecar["gsd_m"]
    found = detect_change(before=folder / "before.jpg", after=folder / "after.jpg", target="pond", gsd_m=gsd_m).pond
    row: Row = {"event right": float(found.event == scene.truth["event"])}
    true: Any = scene.truth["area_after_px"]
    if true >= 600:
        row["water after off by %"] = 100 * abs(found.area_after_px - true) / true
    return row


def main(scenes: int) -> None:
    kinds: tuple[tuple[str, Callable[[Path, int, Difficulty], Row]], ...] = (
        ("count_objects", trees),
        ("estimate_canopy_height", heights),
        ("detect_change", farmland),
        ("detect_change", ponds),
    )
    for tool, measure in kinds:
        rows: dict[str, list[list[float]]] = {}
        for difficulty in DIFFICULTIES:
            for number in range(scenes):
                with tempfile.TemporaryDirectory(prefix="agrotools-") as folder:
                    for name, value in measure(Path(folder), FIRST_SEED + number, difficulty).items():
                        rows.setdefault(name, [[], [], [], []])[difficulty].append(value)
        for name, found in rows.items():
            by_level = "  ".join(f"{np.mean(one):8.3g} ({len(one)})" if one else "       - (0)" for one in found)
            print(f"{tool:24s} {name:46s} {by_level}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
