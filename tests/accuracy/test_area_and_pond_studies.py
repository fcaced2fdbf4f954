from pathlib import Path

import numpy as np
import pytest

from agrotools.accuracy import STUDIES, measure_crop_weed_area, pond_change
from agrotools.accuracy.crop_weed_masks import compared
from agrotools.accuracy.figures import estimate
from agrotools.accuracy.study import Bench


def test_a_mask_compared_by_hand() -> None:
    truth = np.array([[1, 1, 2, 2, 0, 0]])
    plants = np.array([[1, 1, 1, 1, 1, 0]], bool)
    predicted = np.array([[1, 2, 2, 2, 1, 0]], np.uint8)
    figures, counts = compared(predicted, truth, plants)
    assert figures["vegetation_iou"] == 1.0
    assert figures["crop_iou_named"] == pytest.approx(1 / 2)
    assert figures["crop_iou_strict"] == pytest.approx(1 / 3)
    assert figures["weed_iou_named"] == figures["weed_iou_strict"] == pytest.approx(2 / 3)
    assert figures["weed_share_error_pct"] == pytest.approx(25.0)
    assert counts["crop_iou_named"].tolist() == [1, 2]
    none = compared(predicted, np.array([[1, 1, 1, 1, 0, 0]]), plants)[0]
    assert none["weed_iou_named"] is None


def test_held_out_accuracy_tells_useful_bands_from_noise() -> None:
    draw = np.random.default_rng(0)
    truth = np.kron(draw.integers(0, 3, (12, 12)), np.ones((16, 16))).astype(np.uint8)
    noise = draw.normal(3000, 300, (3, *truth.shape))
    useful = noise + 2000 * np.stack([truth == 1, truth == 2, truth == 0])
    for learn_from in (0, 1):
        assert measure_crop_weed_area._held_out_accuracy(useful.astype(np.uint16), truth, learn_from) > 0.99
        assert measure_crop_weed_area._held_out_accuracy(noise.astype(np.uint16), truth, learn_from) < 0.45


def test_studies_are_registered_and_name_their_folders() -> None:
    assert STUDIES.get("measure_crop_weed_area") is measure_crop_weed_area.STUDIES
    assert [study.folder for study in measure_crop_weed_area.STUDIES if study.needs_folder] == ["cwfid"]
    assert {study.tool for study in pond_change.POND_STUDIES} == {"detect_change"}


@pytest.mark.parametrize("study", pond_change.POND_STUDIES[:2], ids=lambda study: study.folder)
def test_pond_studies_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, study) -> None:
    monkeypatch.setattr(pond_change, "PAIRS", 2)
    bench = Bench(study.tool, tmp_path, tmp_path)
    figures = {figure.metric: estimate(figure) for figure in study.measure(bench) if len(figure.rows)}
    assert figures["water, IoU of pictures with water"].value > 0.7
    assert 0 <= figures["event right, share of all pairs"].value <= 1
    assert len(bench.call_ms) == 2
    assert bench.overlays


@pytest.mark.slow
def test_studies_of_drawn_rows_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_crop_weed_area, "SCENES", 3)
    monkeypatch.setattr(measure_crop_weed_area, "FIRST_SEED", 40)
    for study in measure_crop_weed_area.STUDIES[1:]:
        bench = Bench(study.tool, tmp_path, tmp_path)
        figures = {figure.metric: estimate(figure).value for figure in study.measure(bench) if len(figure.rows)}
        assert len(bench.call_ms) == 3
        assert figures.get("vegetation, IoU", 1.0) > 0.8
        assert figures.get("accuracy lost by taking the first triplet, points", 0.0) < 5.0
