"""The runtime of the crop and weed net, on a net of a few numbers: sizes, strange pictures, damaged files."""

from pathlib import Path

import numpy as np
import pytest

from agrotools.core import ToolError
from agrotools.tools.crop_weed.net import crop_weed_net_files, load_crop_weed_net, read_crop_weed_net
from support.tiny_parter import write_parter

GREEN, RED = (60, 200, 40), (200, 60, 40)


def halves(height: int, width: int) -> np.ndarray:
    """Green on the left, red on the right."""
    picture = np.empty((height, width, 3), np.uint8)
    picture[:, : width // 2], picture[:, width // 2 :] = GREEN, RED
    return picture


@pytest.mark.parametrize("size", [(64, 64), (252, 336), (336, 252), (900, 2200), (70, 1500), (1, 700)])
def test_what_is_parted_lies_where_it_is_in_the_picture(tmp_path: Path, size: tuple[int, int]) -> None:
    net = read_crop_weed_net(write_parter(tmp_path))
    found = net.part(halves(*size))
    assert found.crop.shape == size
    middle, margin = size[1] // 2, max(2, size[1] // 100)
    assert found.crop[:, : middle - margin].all()
    assert not found.crop[:, middle + margin :].any()


def test_strangeness_is_what_the_net_says(tmp_path: Path) -> None:
    net = read_crop_weed_net(write_parter(tmp_path))
    blue = np.full((120, 160, 3), (0, 0, 204), np.uint8)
    assert net.part(blue).strangeness == pytest.approx(0.8, abs=0.01)
    assert net.part(halves(120, 160)).strangeness == pytest.approx(40 / 255, abs=0.01)


@pytest.mark.parametrize("fault", ["missing", "tampered", "no json", "other classes", "no description"])
def test_damaged_files_are_refused(tmp_path: Path, fault: str) -> None:
    description = write_parter(tmp_path)
    weights = tmp_path / "crop_weed.onnx"
    if fault == "missing":
        weights.unlink()
    elif fault == "tampered":
        weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    elif fault == "no json":
        description.write_text("{")
    elif fault == "no description":
        description.unlink()
    else:
        description = write_parter(tmp_path, classes=["crop", "soil", "weed"])
    with pytest.raises(ToolError) as raised:
        read_crop_weed_net(description)
    assert raised.value.kind == "backend_unavailable"
    assert raised.value.hint == "install agrotools again"


def test_the_shipped_net_names_its_licence_and_finds_a_drawn_picture_strange() -> None:
    description, weights = crop_weed_net_files()
    assert "CC BY-SA 4.0" in description.read_text()
    assert "CC BY-SA 4.0" in description.with_suffix(".md").read_text()
    assert weights.stat().st_size < 4_000_000
    net = load_crop_weed_net()
    assert net.part(halves(252, 336)).strangeness > net.info.strangeness.threshold
