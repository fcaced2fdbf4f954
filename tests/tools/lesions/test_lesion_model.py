"""The shipped lesion model: whole, small, refused when tampered with, and equal to a plain evaluation of its layers."""

import json
import shutil
from pathlib import Path

import pytest

from agrotools.core import ToolError
from agrotools.tools.contract import shipped_file
from agrotools.tools.lesions.result import MODEL_FILES
from agrotools.tools.lesions.segmentation import read_lesion_model


def copied(folder: Path) -> tuple[Path, Path]:
    description, weights = (Path(shutil.copy(path, folder / path.name)) for path in map(shipped_file, MODEL_FILES))
    return description, weights


def test_the_shipped_files_belong_together_and_name_their_source() -> None:
    description, weights = map(shipped_file, MODEL_FILES)
    model = read_lesion_model(description, weights)
    assert weights.stat().st_size < 2_000_000
    assert "MIT" in model.info.licence
    assert "esgario/lara2018" in model.info.licence
    assert 0 < model.info.threshold < 1
    card = description.with_suffix(".md").read_text()
    assert model.info.name in card


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
