"""Plots of a cereal trial from the air: how much of the ground the ripe ones cover."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agrotools.calling.result import round_significant
from agrotools.core import SampleFile
from agrotools.vision.reading import read_labels
from agrotools_build.area_truth import Region, cut_out, halves
from agrotools_build.sources.part import Adapter, DataSet, Part, named
from agrotools_build.templates import Thing
from agrotools_build.templates.thing import Subject
from field_parts.kept import is_kept
from prepared import read_items


@partial(Adapter, "field.trial_plots")
def trial_plots(data: DataSet) -> Part:
    """Shares of pictures that plots of ripe cereals cover, as wholes and by halves."""
    subjects: list[Subject] = []
    for item in read_items(data.folder, ("cluster",), ("image", "mask")):
        note = (
            "Trial plots of a cereal, seen from straight above by a drone; some are ripe and not cut yet, others are"
            " green or cut. Ripe plots that wind or rain has laid flat count as ripe."
        )
        file = data.originals.file(data.folder / item["image"], note=note)
        if not is_kept(data, file):
            continue
        standing = read_labels(data.folder / item["mask"]).classes > 0
        rows, columns = standing.shape
        across, down = halves(columns, rows)
        # Pictures are long strips: the halves are those that the longer side is cut into.
        along = across if columns >= rows else down
        name = f"plots-{item['id']}"
        own = [
            _plots(name, "trial_plots", file, [("the picture", None)], standing),
            _plots(f"{name}-halves", "trial_half", file, along, standing),
        ]
        subjects += [replace(each, cluster=str(item["cluster"])) for each in own]
    return data.part(subjects, ["trial_plots"])


def _plots(
    name: str,
    of: str,
    file: SampleFile,
    parts: Sequence[tuple[str, Region | None]],
    standing: NDArray[np.bool_],
) -> Subject:
    file = named(file, "image", 1)

    def shown(index: int, _: int) -> Thing:
        called, region = parts[index]
        inside = cut_out(standing, region)
        share = 100 * np.count_nonzero(inside) / inside.size
        truth = {
            "crop_pct": round_significant(share, 6),
            "crop_px": int(np.count_nonzero(inside)),
            "total_px": int(inside.size),
        }
        arguments: dict[str, Any] = {"image": file.name}
        if region is not None:
            arguments["region"] = [*region]
        thought = f"I need the ground under ripe plots in {called}."
        return Thing((file,), "measure_crop_weed_area", arguments, truth, called, thought)

    return Subject(name, len(parts), shown, {"picture": name}, of=of)
