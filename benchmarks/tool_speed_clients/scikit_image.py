"""The jobs by scikit-image: threshold, components, region properties, watershed."""

from pathlib import Path
from typing import Any

import numpy as np
from clock import run
from skimage import io
from skimage.color import rgb2hsv, rgb2lab
from skimage.feature import peak_local_max
from skimage.filters import gaussian, threshold_otsu
from skimage.measure import label, regionprops_table
from skimage.morphology import remove_small_objects
from skimage.segmentation import mark_boundaries, watershed

SMALLEST_PX = 40
FIELDS = ("area", "bbox", "centroid")


def _reported(picture: Any, labels: Any, path: Path) -> int:
    table = regionprops_table(labels, properties=FIELDS)
    io.imsave(path, (255 * mark_boundaries(picture, labels)).astype(np.uint8), check_contrast=False)
    return len(table["area"])


def _without_specks(mask: Any) -> Any:
    try:
        return remove_small_objects(mask, max_size=SMALLEST_PX)
    except TypeError:  # before scikit-image 0.26
        return remove_small_objects(mask, SMALLEST_PX)


def vegetation(image: Path, made: Path) -> tuple[int, float]:
    picture = io.imread(image)
    redness = gaussian(rgb2lab(picture)[..., 1], 1)
    plants = _without_specks(redness < threshold_otsu(redness))
    return _reported(picture, label(plants), made / "vegetation.png"), plants.size / 1e6


def lesions(image: Path, made: Path) -> tuple[int, float]:
    picture = io.imread(image)
    hsv = rgb2hsv(picture)
    leaf = _without_specks(hsv[..., 1] > threshold_otsu(hsv[..., 1]))
    hue = 360 * hsv[..., 0]
    sick = _without_specks(leaf & ((hue < 60) | (hue > 320)))
    labels = label(sick)
    return _reported(picture, labels, made / "lesions.png"), leaf.size / 1e6


def crowns(image: Path, made: Path) -> tuple[int, float]:
    import rasterio

    with rasterio.open(image) as file:
        heights = file.read(1)
    smooth = gaussian(heights, 1)
    tops = peak_local_max(smooth, min_distance=5, threshold_abs=2)
    markers = np.zeros(heights.shape, np.int32)
    markers[tuple(tops.T)] = np.arange(1, len(tops) + 1)
    labels = watershed(-smooth, markers, mask=heights > 2)
    return _reported(heights / heights.max(), labels, made / "crowns.png"), heights.size / 1e6


run({"vegetation": vegetation, "lesions": lesions, "crowns": crowns})
