"""How well fruit is measured and counted, and disease on leaves measured, on drawn scenes, by difficulty."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agrotools.build.accuracy.figures import Figure, mean_of, median_of
from agrotools.build.accuracy.study import Bench, Study
from agrotools.core import ToolError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agrotools.build.scenes.scene import Difficulty

SCENES = 10
"""Of each difficulty. No tool was fitted on any of them."""
FIRST_SEED = 60_000
_DIFFICULTIES: "tuple[Difficulty, ...]" = (0, 1, 2, 3)
_NOTE = "drawn scenes, fresh seeds; says nothing of real ones"
_COLOURFUL = ("red", "dark", "striped")


def _sizes(bench: Bench) -> list[Figure]:
    """Of boxed fruit that is seen well; and means of whole pictures where the variety has a colour of its own."""
    from agrotools.build.scenes.orchard import WELL_SEEN, make_orchard

    figures: list[Figure] = []
    for difficulty in _DIFFICULTIES:
        errors: list[float] = []
        means: list[float] = []
        for number in range(SCENES):
            scene = make_orchard(FIRST_SEED + number, difficulty)
            files = {"image": _jpeg(bench, scene.images["rgb"]), "depth": _png(bench, scene.images["depth"])}
            camera = {"fx_px": scene.sidecar["fx_px"], "depth_unit_mm": 1.0}
            seen = [fruit for fruit in scene.truth["fruits"] if fruit["visibility"] >= WELL_SEEN]
            for fruit in seen:
                found = _called(bench, **files, **camera, boxes=[fruit["box"]])
                if found is not None and found.fruits:
                    errors.append(abs(found.fruits[0].diameter_mm - fruit["diameter_mm"]))
            if scene.truth["skin"] in _COLOURFUL and seen:
                found = _called(bench, **files, **camera)
                mean = sum(fruit["diameter_mm"] for fruit in seen) / len(seen)
                if found is not None and found.mean_diameter_mm is not None:
                    means.append(abs(found.mean_diameter_mm - mean))
        for what, values in (("boxed fruit", errors), ("mean of coloured fruit", means)):
            if values:
                metric = f"{what}, median absolute error, mm, difficulty {difficulty}"
                figures.append(median_of(metric, values, higher_is_better=False, note=_NOTE))
    return figures


def _counts(bench: Bench) -> list[Figure]:
    from agrotools.build.scenes.fruits import KINDS
    from agrotools.build.scenes.orchard import LEAST_SEEN, make_orchard

    figures: list[Figure] = []
    for difficulty in _DIFFICULTIES:
        for kind in ("apple", "tomato", "orange"):
            errors: list[float] = []
            for number in range(SCENES):
                scene = make_orchard(FIRST_SEED + number, difficulty, kind)
                there = sum(fruit["visibility"] >= LEAST_SEEN for fruit in scene.truth["fruits"])
                found = _called(bench, image=_jpeg(bench, scene.images["rgb"]), target=kind)
                errors.append(abs((0 if found is None else found.count) - there))
            metric = f"{KINDS[kind].plural}, mean absolute error of counts, difficulty {difficulty}"
            figures.append(mean_of(metric, errors, higher_is_better=False, note=_NOTE))
    return figures


def _ears(bench: Bench) -> list[Figure]:
    from agrotools.build.scenes.wheat import make_wheat

    shares: list[float] = []
    for number in range(SCENES):
        scene = make_wheat(FIRST_SEED + number, _DIFFICULTIES[number % len(_DIFFICULTIES)])
        image = _jpeg(bench, scene.images["rgb"])
        found = _called(bench, image=image, target="wheat head", mode="blob", expected_size_px=30)
        shares.append((0 if found is None else found.count) / scene.truth["count"])
    return [median_of("ears counted as round spots, found over true, median", shares, note=_NOTE)]


def _severities(bench: Bench) -> list[Figure]:
    from agrotools.build.scenes.leaf_photo import make_leaf_photo

    figures: list[Figure] = []
    for difficulty in _DIFFICULTIES:
        errors: list[float] = []
        true: list[float] = []
        for number in range(3 * SCENES):
            scene = make_leaf_photo(FIRST_SEED + number, difficulty)
            mode = "field" if scene.truth["ground"] == "soil" else "leaf"
            found = _called(bench, image=_jpeg(bench, scene.images["rgb"]), mode=mode)
            true.append(scene.truth["leaves"][0]["severity_pct"])
            errors.append(abs((0.0 if found is None else found.severity_pct) - true[-1]))
        note = f"{_NOTE}; mean true severity {sum(true) / len(true):.1f} %"
        metric = f"severity, mean absolute error, points, difficulty {difficulty}"
        figures.append(mean_of(metric, errors, higher_is_better=False, note=note))
    return figures


def _called(bench: Bench, **arguments: Any) -> Any:
    """The result; None where the tool finds nothing."""
    try:
        return bench.call(**arguments)
    except ToolError as error:
        if error.kind not in ("nothing_found", "region_empty"):
            raise
        return None


def _jpeg(bench: Bench, photo: "NDArray[np.uint8]") -> Path:
    from agrotools.build.sources.drawn.saving import save_photo

    path = bench.scratch / "drawn.jpg"
    save_photo(photo, path)
    return path


def _png(bench: Bench, plane: "NDArray[np.uint16]") -> Path:
    from agrotools.build.sources.drawn.saving import save_png

    path = bench.scratch / "drawn_depth.png"
    save_png(plane, path)
    return path


FRUIT_SIZE_STUDIES = (Study("measure_fruit_size", "drawn orchards", _sizes, needs_folder=False),)
COUNT_STUDIES = (
    Study("count_objects", "drawn orchards", _counts, needs_folder=False),
    Study("count_objects", "drawn wheat", _ears, needs_folder=False),
)
LESION_STUDIES = (Study("analyze_lesions", "drawn leaves", _severities, needs_folder=False),)
"""For the studies of those tools."""
