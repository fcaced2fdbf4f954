"""Numbers of regions against what is known: classes of masks, plant cover, patches of known colour."""

import numpy as np
from numpy.typing import NDArray

from agrotools.build.accuracy.figures import Figure, mean_of
from agrotools.build.accuracy.study import Bench, Study
from agrotools.core import SampleFile
from agrotools.vision.colours import NAMED_COLOURS, lab_of_list

_PATCH_PICTURES = 40
_APART = 20.0
"""Distance in Lab between the colours of one drawn picture: closer ones are one colour to the eye."""


def _classes(bench: Bench) -> list[Figure]:
    """Class percent of every mask of the folder against a count of its values."""
    from PIL import Image

    worst: list[float] = []
    for item in bench.items():
        path = bench.folder / item["mask"]
        known = SampleFile(name=path.name, path=str(path), kind="mask", classes=item["mask_classes"])
        result = bench.call(infos={path: known}, image=path)
        with Image.open(path) as image:
            values = np.asarray(image)
        errors = [
            abs(result.class_pcts.get(name, 0.0) - 100 * float((values == int(number)).mean()))
            for number, name in item["mask_classes"].items()
        ]
        worst.append(max(errors))
    return [mean_of("class percent, largest error, points", worst, goal=0.0, higher_is_better=False)]


def _cover(bench: Bench) -> list[Figure]:
    from PIL import Image

    errors: list[float] = []
    for item in bench.items():
        result = bench.call(image=bench.folder / item["image"])
        with Image.open(bench.folder / item["vegetation"]) as image:
            true = 100 * float((np.asarray(image) > 0).mean())
        errors.append(abs((result.vegetation_pct or 0.0) - true))
    return [mean_of("vegetation percent, mean absolute error, points", errors, higher_is_better=False)]


def _patches(bench: Bench) -> list[Figure]:
    """Pictures of two to five patches of named colours, with sensor noise: shares by name."""
    from PIL import Image

    bench.scratch.mkdir(parents=True, exist_ok=True)
    errors: list[float] = []
    hits: list[float] = []
    for number in range(_PATCH_PICTURES):
        draw = np.random.default_rng(number)
        pixels, true = patches(draw)
        path = bench.scratch / f"patches-{number}.png"
        Image.fromarray(pixels).save(path)
        result = bench.call(image=path, attributes=["colour"])
        said = {colour.name: colour.pct for colour in result.dominant_colours}
        errors.append(max(abs(said.get(name, 0.0) - pct) for name, pct in true.items()))
        hits.append(float(said.keys() == true.keys()))
    return [
        mean_of("drawn colours, all named right and no other, share of pictures", hits, goal=1.0),
        mean_of("drawn colours, largest error of a share, points", errors, higher_is_better=False),
    ]


def patches(
    draw: np.random.Generator, shape: tuple[int, int] = (120, 200)
) -> tuple[NDArray[np.uint8], dict[str, float]]:
    """Side by side, two to five colours of the table of names, with noise (sd 3): the picture and percent by name."""
    names = list(NAMED_COLOURS)
    lab = lab_of_list(np.array(list(NAMED_COLOURS.values()), np.uint8))
    wanted, chosen = int(draw.integers(2, 6)), []
    for place in draw.permutation(len(names)).tolist():
        if all(np.linalg.norm(lab[place] - lab[other]) >= _APART for other in chosen):
            chosen.append(place)
        if len(chosen) == wanted:
            break
    height, width = shape
    edges = [0, *sorted((draw.permutation(9)[: len(chosen) - 1] + 1) * width // 10), width]
    pixels = np.empty((height, width, 3), np.float64)
    for place, start, end in zip(chosen, edges[:-1], edges[1:], strict=True):
        pixels[:, start:end] = NAMED_COLOURS[names[place]]
    noisy = np.clip(pixels + draw.normal(0, 3, pixels.shape), 0, 255).round().astype(np.uint8)
    shares = {
        names[place]: 100 * float(end - start) / width
        for place, start, end in zip(chosen, edges[:-1], edges[1:], strict=True)
    }
    return noisy, shares


STUDIES = (
    *(Study("describe_region", folder, _classes)
      for folder in ("cwfid", "coffee_lesions", "levir_cd", "dsifn_cd", "tree_canopy")),
    Study("describe_region", "cwfid", _cover),
    Study("describe_region", "drawn patches of colour", _patches, needs_folder=False),
)  # fmt: skip
