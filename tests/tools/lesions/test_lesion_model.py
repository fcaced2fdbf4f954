"""The shipped lesion model: refused when tampered with, and equal to a plain evaluation of its layers."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from agrotools.core import ToolError
from agrotools.tools.contract import shipped_file
from agrotools.tools.lesions.result import MODEL_FILES
from agrotools.tools.lesions.segmentation import load_lesion_model, read_lesion_model


def copied(folder: Path) -> tuple[Path, Path]:
    description, weights = (Path(shutil.copy(path, folder / path.name)) for path in map(shipped_file, MODEL_FILES))
    return description, weights


@pytest.mark.parametrize("what", ["weights", "version", "json", "missing"])
def test_other_files_are_refused(tmp_path: Path, what: str) -> None:
    description, weights = copied(tmp_path)
    if what == "weights":
        content = bytearray(weights.read_bytes())
        content[len(content) // 2] ^= 1
        weights.write_bytes(content)
    elif what == "version":
        said = json.loads(description.read_text())
        description.write_text(json.dumps({**said, "features_version": 0}))
    elif what == "json":
        description.write_text("{}")
    else:
        weights.unlink()
    with pytest.raises(ToolError) as caught:
        read_lesion_model(description, weights)
    assert caught.value.kind == "backend_unavailable"
    assert str(tmp_path) not in str(caught.value)


def test_probabilities_are_those_of_the_layers() -> None:
    model = load_lesion_model()
    rows = np.random.default_rng(0).normal(model.mean, model.scale, (7, len(model.mean))).astype(np.float32)
    expected = np.zeros(7)
    for layers in model.members:
        values = (rows.astype(np.float64) - model.mean) / model.scale
        for number, (weights, bias) in enumerate(layers):
            values = values @ weights + bias
            if number < len(layers) - 1:
                values = np.maximum(values, 0)
        expected += 1 / (1 + np.exp(-values[:, 0])) / len(model.members)
    assert model.probability(rows) == pytest.approx(expected, abs=1e-4)
