"""The fruit net's runtime, on a net of a few numbers: scales, tiles, thresholds, damaged files."""

from pathlib import Path

import numpy as np
import pytest

from agrotools.core import ToolError
from agrotools.tools.counting.methods import ORCHARD_SCALE, TYPICAL_PX, find_fruit, read_fruit_net
from support.tiny_detector import HALF_SIDE_PX, write_detector


def spots(width: int, height: int, places: list[tuple[int, int, int]], radius: float = 6.0) -> np.ndarray:
    """Soft spots on black: x, y and the channel (0 red, 1 green) of each."""
    y, x = np.mgrid[:height, :width]
    picture = np.zeros((height, width, 3), np.float64)
    for cx, cy, channel in places:
        picture[..., channel] += 255 * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * radius**2))
    return np.clip(picture, 0, 255).astype(np.uint8)


def test_kinds_scales_and_intervals(tmp_path: Path) -> None:
    net = read_fruit_net(write_detector(tmp_path))
    picture = spots(200, 160, [(40, 50, 0), (120, 90, 1)])
    apples, scales, others = find_fruit(net, picture, ("apple",), TYPICAL_PX["apple"])
    assert scales == (1.0,)
    assert others == pytest.approx(0.5, abs=0.05)
    assert apples.centres == pytest.approx(np.array([[40, 50]]), abs=3)
    assert apples.boxes[0, 2] - apples.boxes[0, 0] == pytest.approx(2 * HALF_SIDE_PX, abs=0.5)
    both, _, others = find_fruit(net, picture, ("apple", "pear"), 32.0)
    assert sorted(both.classes.tolist()) == [0, 1]
    assert others == 0
    picture = spots(600, 400, [(300, 200, 0)], radius=18)
    found, scales, _ = find_fruit(net, picture, ("apple",), 3 * TYPICAL_PX["apple"])
    assert scales == (pytest.approx(1 / 3),)
    assert found.centres == pytest.approx(np.array([[300, 200]]), abs=8)
    assert find_fruit(net, picture, ("apple",), None)[1] == (ORCHARD_SCALE,)
    small, large = (300, 300, 0), (1500, 1000, 0)
    picture = np.maximum(spots(2400, 1600, [small], 8), spots(2400, 1600, [large], 40))
    found, scales, _ = find_fruit(net, picture, ("apple",), None)
    assert scales == (ORCHARD_SCALE, ORCHARD_SCALE / 2)
    for x, y, _ in (small, large):
        assert np.hypot(*(found.centres - (x, y)).T).min() < 20
    assert net.count_interval("apple", 98, unsure=8) == (95, 101)
    assert net.count_interval("apple", 98, unsure=9) == (95, 101), "fruits are whole"
    assert net.count_interval("apple", 1, unsure=8) == (0, 4)
    assert net.count_interval("cherry", 98, unsure=8) is None


@pytest.mark.parametrize("fault", ["missing", "tampered", "no graph", "no json", "other class"])
def test_damaged_files_are_refused(tmp_path: Path, fault: str) -> None:
    description = write_detector(tmp_path)
    weights = tmp_path / "fruits.onnx"
    if fault == "missing":
        weights.unlink()
    elif fault == "tampered":
        weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    elif fault == "no graph":
        import hashlib

        weights.write_bytes(b"no graph")
        description = write_detector(tmp_path / "again", sha256=hashlib.sha256(b"no graph").hexdigest())
        (tmp_path / "again/fruits.onnx").write_bytes(b"no graph")
    elif fault == "no json":
        description.write_text("{")
    else:
        description = write_detector(tmp_path, classes=["apple", "grape"])
    with pytest.raises(ToolError) as raised:
        read_fruit_net(description)
    assert raised.value.kind == "backend_unavailable"
