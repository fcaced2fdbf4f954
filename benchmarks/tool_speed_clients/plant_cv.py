"""The jobs by PlantCV 4, as its tutorials do them."""

from pathlib import Path

import cv2
import numpy as np
from clock import run
from plantcv import plantcv as pcv

pcv.params.debug = None
pcv.params.verbose = False
SMALLEST_PX = 40


def vegetation(image: Path, made: Path) -> tuple[int, float]:
    picture, _, _ = pcv.readimage(filename=str(image))
    redness = pcv.rgb2gray_lab(rgb_img=picture, channel="a")
    plants = pcv.fill(bin_img=pcv.threshold.otsu(gray_img=redness, object_type="dark"), size=SMALLEST_PX)
    labels, count = pcv.create_labels(mask=plants)
    shown = pcv.analyze.size(img=picture, labeled_mask=labels, n_labels=count)
    pcv.print_image(img=shown, filename=str(made / "vegetation.png"))
    return count, plants.size / 1e6


def lesions(image: Path, made: Path) -> tuple[int, float]:
    picture, _, _ = pcv.readimage(filename=str(image))
    saturation = pcv.rgb2gray_hsv(rgb_img=picture, channel="s")
    leaf = pcv.fill(bin_img=pcv.threshold.otsu(gray_img=saturation, object_type="light"), size=SMALLEST_PX)
    hue = pcv.rgb2gray_hsv(rgb_img=picture, channel="h")
    low = pcv.threshold.binary(gray_img=hue, threshold=30, object_type="dark")
    high = pcv.threshold.binary(gray_img=hue, threshold=160, object_type="light")
    sick = pcv.logical_and(bin_img1=leaf, bin_img2=pcv.logical_or(bin_img1=low, bin_img2=high))
    labels, count = pcv.create_labels(mask=pcv.fill(bin_img=sick, size=SMALLEST_PX))
    shown = pcv.analyze.size(img=picture, labeled_mask=labels, n_labels=count)
    pcv.print_image(img=shown, filename=str(made / "lesions.png"))
    return count, leaf.size / 1e6


def crowns(image: Path, made: Path) -> tuple[int, float]:
    """Its watershed grows around the maxima of the distance to the mask's edge, not around tree tops."""
    heights = cv2.imread(str(image), cv2.IMREAD_UNCHANGED)
    grey = np.clip(heights * (255 / heights.max()), 0, 255).astype(np.uint8)
    mask = pcv.threshold.binary(gray_img=grey, threshold=int(2 * 255 / heights.max()), object_type="light")
    picture = np.dstack([grey] * 3)
    labels = pcv.watershed_segmentation(rgb_img=picture, mask=mask, distance=5)
    count = int(labels.max())
    shown = pcv.visualize.colorize_label_img(label_img=labels)
    pcv.print_image(img=shown, filename=str(made / "crowns.png"))
    return count, mask.size / 1e6


run({"vegetation": vegetation, "lesions": lesions, "crowns": crowns})
