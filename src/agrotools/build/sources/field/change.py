"""Pairs of aerial pictures of two dates with a mask of what changed, drawn by people."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.build.asking import Subject
from agrotools.build.picture_parts import Region, halves
from agrotools.build.sources.part import Originals, Part
from agrotools.build.sources.prepared import read_items
from agrotools.build.templates import Thing, load_templates
from agrotools.core import Arguments, SampleFile
from agrotools.core.benchmark_header import SourceNote
from agrotools.tools.result import round_significant
from agrotools.vision import read_labels

SAMPLES = 24
_NOTE = "Questions, reference calls and tolerances are by agrotools; images and masks are the authors'."
_LEVIR = SourceNote(
    name="LEVIR-CD",
    licence="academic use only, as its authors say; the tiles come from the ChangeFormer repository (MIT)",
    url="https://github.com/wgcban/ChangeFormer",
    citation="Chen, H. and Shi, Z.: A Spatial-Temporal Attention-Based Method and a New Dataset for Remote Sensing"
    " Image Change Detection. Remote Sensing 12, 2020.",
    note=_NOTE,
)
_DSIFN = SourceNote(
    name="DSIFN-CD",
    licence="terms of the data are not stated; the tiles come from the ChangeFormer repository (MIT)",
    url="https://github.com/wgcban/ChangeFormer",
    citation="Zhang, C. et al.: A deeply supervised image fusion network for change detection in high resolution"
    " bi-temporal remote sensing images. ISPRS Journal of Photogrammetry and Remote Sensing 166, 2020.",
    note=_NOTE,
)
LEVIR_GSD_M = 0.5
"""Chen and Shi 2020. That of the DSIFN tiles, which were cut and resized, is not known."""
_DIGITS = 6


def buildings(folder: Path) -> Part:
    """LEVIR-CD: new buildings. Raises BenchmarkError: the data set is incomplete."""
    return _part(folder, "buildings", _LEVIR, "newly covered by buildings", LEVIR_GSD_M)


def land_use(folder: Path) -> Part:
    """DSIFN-CD: lasting changes of the surface, mostly fields built over. Raises BenchmarkError: incomplete."""
    return _part(folder, "landuse", _DSIFN, "built over or otherwise changed for good", None)


def _part(folder: Path, name: str, source: SourceNote, changed: str, gsd_m: float | None) -> Part:
    originals = Originals()
    subjects: list[Subject] = []
    for number, item in enumerate(read_items(folder, files=("before", "after", "mask"))):
        files = tuple(
            originals.file(folder / item[date], gsd_m=gsd_m, note=f"Seen from the air, {order} date.").model_copy(
                update={"name": f"{date}{Path(item[date]).suffix}"}
            )
            for date, order in (("before", "first"), ("after", "second"))
        )
        mask = read_labels(folder / item["mask"]).classes > 0
        subjects += change_subjects(f"{name}-{number}", files, mask, changed, gsd_m)
    return Part(name, source, subjects, load_templates("change"), SAMPLES, originals.files)


def change_subjects(
    name: str, files: tuple[SampleFile, ...], mask: NDArray[np.bool_], changed: str, gsd_m: float | None
) -> list[Subject]:
    """A pair of pictures (``files``: before, after) as a whole and by its halves, for the questions about change.

    ``changed`` is what happened where ``mask`` is true, as it is said after "was".
    """
    across, down = halves(mask.shape[1], mask.shape[0])

    def shown(parts: list[tuple[str, Region | None]]) -> Callable[[int, int], Thing]:
        def thing(index: int, _: int) -> Thing:
            called, region = parts[index]
            arguments: Arguments = {"before": files[0].name, "after": files[1].name, "target": "farmland"}
            if region is not None:
                arguments["region"] = [*region]
            where = "" if region is None else f" in the {called} half"
            thought = f"I need to know how much of the ground{where} was {changed}."
            words = {"changed": changed, "before": files[0].name, "after": files[1].name}
            return Thing(files, "detect_change", arguments, _truth(mask, region, gsd_m), called, thought, words)

        return thing

    return [
        Subject(name, 1, shown([("the scene", None)]), {"pair": name}, of="change"),
        Subject(f"{name}-across", 2, shown([*across]), {"pair": name}, of="change_half"),
        Subject(f"{name}-down", 2, shown([*down]), {"pair": name}, of="change_half"),
    ]


def _truth(mask: NDArray[np.bool_], region: Region | None, gsd_m: float | None) -> dict[str, Any]:
    x0, y0, x1, y1 = region or (0, 0, mask.shape[1], mask.shape[0])
    inside = mask[y0:y1, x0:x1]
    change = int(np.count_nonzero(inside))
    area_m2 = None if gsd_m is None else round_significant(change * gsd_m**2, _DIGITS)
    return {
        "changed": change > 0,
        "change_px": change,
        "change_pct": round_significant(100 * change / inside.size, _DIGITS),
        "change_area_m2": area_m2,
        "change_area_ha": None if area_m2 is None else round_significant(area_m2 / 10_000, _DIGITS),
        "total_px": inside.size,
        "gsd_m": gsd_m,
    }
