"""The studies of marks and of regions, run on photographs made up on the spot."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from accuracy import extract_marked_region
from accuracy.extract_marked_region import draw_mark_on, find_photos
from accuracy.study import Bench, estimate
from agrotools.text.agreement_values import box_iou
from agrotools_tools.marks import MarkShape
from support.picture_files import discs, field


def data_folder(folder: Path, count: int = 4) -> Path:
    for number in range(count):
        where = folder / f"source_{number % 2}" / "images"
        where.mkdir(parents=True, exist_ok=True)
        plants = discs((180, 220), [(40 + 30 * number, 60), (150, 120)], 20)
        Image.fromarray(field(plants, number)).save(where / f"{number}.png")
    return folder


def test_the_truth_of_a_drawn_mark_is_where_pixels_changed() -> None:
    plain = field(discs((180, 220), [(100, 80)], 30))
    for number, shape in enumerate(("box", "ellipse", "polygon", "arrow")):
        picture, drawn = draw_mark_on(plain, "magenta", shape, 4, np.random.default_rng(number))
        changed = (picture != plain).any(axis=2)
        rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
        there = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
        assert box_iou(drawn.box, there) > 0.9


@pytest.mark.parametrize("stroke_px", [2, 3, 6])
@pytest.mark.parametrize("shape", ["box", "ellipse"])
def test_lines_are_as_wide_as_they_say(shape: MarkShape, stroke_px: int) -> None:
    plain = np.full((400, 500, 3), 90, np.uint8)
    picture, drawn = draw_mark_on(plain, "white", shape, stroke_px, np.random.default_rng(0))
    x0, y0, x1, y1 = drawn.box
    across = picture[(y0 + y1) // 2, x0 - 2 : (x0 + x1) // 2].astype(float).max(axis=1) - 90
    assert across.sum() / across.max() == pytest.approx(stroke_px, abs=0.5)


def test_marks_on_made_up_photographs(tmp_path: Path) -> None:
    data = data_folder(tmp_path / "data")
    assert len(find_photos(data)) == 4
    found = {}
    for study in extract_marked_region.STUDIES:
        bench = Bench("extract_marked_region", data / study.folder, tmp_path / study.folder)
        found |= {figure.metric: estimate(figure) for figure in study.measure(bench)}
    assert (
        found["box IoU of drawn marks, mean"].n,
        found["box IoU of drawn marks, mean"].independent,
    ) == (8, 4)
    assert found["box IoU of drawn marks, mean"].value > 0.9
    assert found["colour right where found, share"].value == 1
    assert found["unmarked photographs with a false mark, share"].value == 0
    assert found["box IoU on half 0, mean"].n == found["box IoU on half 1, mean"].n == 2


def test_patches_of_known_colour_are_all_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract_marked_region, "_PATCH_PICTURES", 4)
    bench = Bench("describe_region", tmp_path / "patches", tmp_path / "scratch")
    named, error = extract_marked_region.REGION_STUDIES[-1].measure(bench)
    assert estimate(named).value == 1
    assert estimate(error).value < 1
