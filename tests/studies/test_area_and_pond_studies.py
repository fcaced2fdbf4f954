from pathlib import Path

import numpy as np
import pytest

from accuracy import detect_change, measure_crop_weed_area
from accuracy.measure_crop_weed_area import among_best, both_halves, compare_masks, cross_validate
from accuracy.study import Bench, estimate


def test_a_mask_compared_by_hand() -> None:
    truth = np.array([[1, 1, 2, 2, 0, 0]])
    plants = np.array([[1, 1, 1, 1, 1, 0]], bool)
    predicted = np.array([[1, 2, 2, 2, 1, 0]], np.uint8)
    figures = compare_masks(predicted, truth, plants)
    assert (figures["vegetation_iou"], figures["crop_iou_named"]) == (1.0, pytest.approx(1 / 2))
    assert figures["crop_iou_strict"] == pytest.approx(1 / 3)
    assert figures["weed_iou_named"] == figures["weed_iou_strict"] == pytest.approx(2 / 3)
    assert figures["weed_share_error_pct"] == pytest.approx(25.0)
    none = compare_masks(predicted, np.array([[1, 1, 1, 1, 0, 0]]), plants)
    assert none["weed_iou_named"] is None


def test_a_reference_tells_useful_bands_from_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_crop_weed_area, "BLOCK_PX", 32)
    draw = np.random.default_rng(0)
    truth = np.kron(draw.integers(0, 3, (12, 12)), np.ones((32, 32))).astype(np.uint8)
    bands = draw.normal(3000, 300, (4, *truth.shape))
    bands[:3] += 2000 * np.stack([truth == 1, truth == 2, truth == 0])
    halves = cross_validate(bands.astype(np.uint16), truth)
    counts = both_halves(halves)
    assert counts.accuracy()[0] > 0.99
    assert among_best(counts, strict=True).sum() == 2
    assert counts.total.sum() == (truth.shape[0] // 3) ** 2
    assert 0 < halves[0].total.sum() < counts.total.sum()
    noise = both_halves(
        cross_validate(draw.normal(3000, 300, (3, *truth.shape)).astype(np.uint16), truth)
    )
    assert noise.accuracy()[0] == pytest.approx(1 / 3, abs=0.04)


@pytest.mark.parametrize("study", detect_change.POND_STUDIES[:2], ids=lambda study: study.folder)
def test_pond_studies_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study) -> None:
    monkeypatch.setattr(detect_change, "PAIRS", 2)
    bench = Bench(study.tool, tmp_path, tmp_path)
    figures = {
        figure.metric: estimate(figure) for figure in study.measure(bench) if len(figure.rows)
    }
    assert figures["water, IoU of pictures with water"].value > 0.7
    assert 0 <= figures["event right, share of all pairs"].value <= 1
    assert len(bench.call_ms) == 2
    assert bench.overlays
