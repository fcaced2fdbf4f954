import math

import numpy as np
import pytest

from agrotools_build.area_truth import TOLERANCES, AreaTruth, count_area

_MASK = np.array([[0, 1, 2, 2], [0, 0, 1, 2], [0, 0, 0, 0]], np.uint8)
_PLANTS = np.array([[1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]], bool)


def test_counts_of_a_mask_leave_out_pixels_without_data():
    area = count_area(_MASK, _PLANTS)
    assert (area.crop_px, area.weed_px, area.unnamed_px, area.total_px) == (2, 3, 2, 12)
    assert (area.veg_px, area.soil_px) == (7, 5)
    assert area.weed_pct == 25.0
    assert area.as_result()["weed_share_of_veg_pct"] == 60.0
    assert [(each.crop_px, each.weed_px, each.veg_px) for each in area.readings()] == [
        (2, 3, 7),
        (2, 5, 7),
        (4, 3, 7),
    ]
    area = count_area(_MASK, _PLANTS, (1, 0, 3, 2))
    assert (area.crop_px, area.weed_px, area.unnamed_px, area.total_px) == (2, 1, 0, 4)
    valid = np.ones(_MASK.shape, bool)
    valid[0, 2:] = valid[2, 3] = False
    area = count_area(_MASK, _PLANTS, valid=valid)
    assert (area.crop_px, area.weed_px, area.unnamed_px, area.total_px) == (2, 1, 1, 9)
    area = count_area(_MASK, _PLANTS, (2, 0, 4, 2), valid)
    assert (area.crop_px, area.weed_px, area.unnamed_px, area.total_px) == (1, 1, 0, 2)
    nothing = count_area(_MASK, region=(2, 0, 4, 1), valid=valid)
    assert nothing.total_px == 0
    assert np.isnan([nothing.veg_pct, nothing.weed_pct]).all()


def test_a_result_reads_as_the_tool_gives_it():
    result = count_area(_MASK).as_result()
    assert (result["weed_to_crop_ratio"], result["veg_pct"]) == (1.5, 41.6667)
    assert AreaTruth(0, 3, 0, 10).as_result()["weed_to_crop_ratio"] is None
    assert AreaTruth(0, 0, 0, 10).as_result()["weed_share_of_veg_pct"] is None
    assert AreaTruth(1, 3, 0, 10).as_result(0.5)["area_m2"] == {
        "total": 2.5, "veg": 1.0, "crop": 0.25, "weed": 0.75, "soil": 1.5,
    }  # fmt: skip


def test_worked_examples():
    # Parents of 5 % and 2 % cover: each within 10 % (2 points would be 40 % and 100 %), together 14.1 %; 5 % beyond.
    assert TOLERANCES["quotient"](5.0, 2.0).rel_tol == pytest.approx(0.191, abs=5e-4)
    # A parent of 40 % cover: 2 points are 5 %, less than 10 %.
    assert TOLERANCES["product"](40.0).rel_tol == pytest.approx(0.10)
    # 8 % and 6 %: 0.8 and 0.6 points make 1.0, and 5 % of the difference of 2.
    assert TOLERANCES["difference"](8.0, 6.0).abs_tol == pytest.approx(1.1)
    # Half of the plants: 25 % of 14.1 %, and 5 % of 50 points.
    assert TOLERANCES["share"](3.0, 3.0).abs_tol == pytest.approx(
        100 * (0.25 * math.sqrt(0.02) + 0.025), abs=0.01
    )
    assert TOLERANCES["sum"](0.3, 0.4).abs_tol == pytest.approx(0.05 + 0.035)
    # Half of what is covered or bare, at most 2 points, and never past a limit.
    assert [TOLERANCES["cover"](cover).abs_tol for cover in (1.6, 30.0, 98.4)] == pytest.approx(
        [0.8, 2.0, 0.8]
    )
    assert TOLERANCES["cover"](3.6, 2.0, 5.0).abs_tol == pytest.approx(1.4)
    assert [TOLERANCES["larger"](value, 1.0, 0.2).abs_tol for value in (3.0, 8.0)] == pytest.approx(
        [1.0, 1.6]
    )
