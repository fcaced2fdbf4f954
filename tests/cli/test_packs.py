import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agrotools.cli.packs import app
from agrotools.core import BenchmarkError
from agrotools.vision.crop_weed import HeadInfo, heads_folder, save_head

RUN = CliRunner()


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path))


def kept_head() -> HeadInfo:
    import numpy as np

    info = HeadInfo(
        name="mine",
        features_version="1",
        source="2 pictures",
        licence_note="for non-commercial research only",
        training=(),
        false_colour=False,
        threshold=0.5,
        familiar=0.1,
        metrics={"cross_validated_crop_iou": 0.61},
        weights_sha256="",
    )
    ones = np.ones(3, np.float32)
    arrays = {"mean": ones, "scale": ones, "landmarks": np.ones((2, 3), np.float32), "weights": ones[:2]}
    return save_head(info, arrays | {"gamma": np.array(0.1, np.float32), "bias": np.array(0.0, np.float32)})


def test_without_heads_it_says_how_to_get_them() -> None:
    result = RUN.invoke(app, ["list"])
    assert result.exit_code == 0
    assert "packs train crop-weed --data DIR" in result.output
    assert json.loads(RUN.invoke(app, ["list", "--json"]).output) == {"crop-weed": [], "faults": []}


def test_heads_are_listed_with_their_terms() -> None:
    kept_head()
    result = RUN.invoke(app, ["list"])
    assert "mine" in result.output
    assert "0.610" in result.output
    assert "non-commercial" in result.output
    listed = json.loads(RUN.invoke(app, ["list", "--json"]).output)
    assert [head["name"] for head in listed["crop-weed"]] == ["mine"]


def test_a_tampered_head_is_listed_as_a_fault() -> None:
    kept_head()
    weights = heads_folder() / "mine.npz"
    weights.write_bytes(weights.read_bytes() + b" ")
    assert "fault: the weights of head mine" in RUN.invoke(app, ["list"]).output


def test_training_needs_the_data(tmp_path: Path) -> None:
    result = RUN.invoke(app, ["train", "crop-weed", "--data", str(tmp_path)])
    assert isinstance(result.exception, BenchmarkError)
    assert "cwfid/truth.json" in str(result.exception)
