"""Nets of the package as OpenCV runs them: outputs of ONNX Runtime, also when several threads ask at once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from agrotools_tools.vision.nets import Graph, nets_folder

OUTPUTS = {
    "weeds": ("logits", "embedding"),
    "leaves": ("logits", "embedding", "likeness"),
    "fruits": ("heat", "distances"),
}
SIDES = {"weeds": (144, 144), "leaves": (160, 160), "fruits": (96, 160)}
ROUNDING = 1e-5
"""Largest difference of two engines, in units of the larger of 1 and the output: sums are taken in another order."""


def content(name: str) -> bytes:
    return (nets_folder() / f"{name}.onnx").read_bytes()


def graph(name: str) -> Graph:
    return Graph(content(name), what=name, hint="")


def picture(seed: int, sides: tuple[int, int]) -> NDArray[np.float32]:
    """Patches of random colours, which excite a net more than noise does."""
    patches = np.random.default_rng(seed).random((1, 3, -(-sides[0] // 8), -(-sides[1] // 8)))
    return (
        patches.repeat(8, axis=2).repeat(8, axis=3)[..., : sides[0], : sides[1]].astype(np.float32)
    )


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_are_those_of_onnx_runtime(name: str):
    runtime = pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    session = runtime.InferenceSession(content(name), providers=["CPUExecutionProvider"])
    net = graph(name)
    for seed in range(3):
        image = picture(seed, SIDES[name])
        expected = session.run(list(OUTPUTS[name]), {"image": image})
        for output, other in zip(net.run(OUTPUTS[name], image), expected, strict=True):
            assert output.shape == other.shape
            assert output.dtype == np.float32
            assert np.abs(output - other).max() <= ROUNDING * max(1.0, np.abs(other).max())


def test_threads_that_ask_at_once_get_their_own_outputs():
    net = graph("fruits")
    images = [picture(seed, (64 + 32 * (seed % 2), 96)) for seed in range(8)]
    alone = [net.run(OUTPUTS["fruits"], image) for image in images]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda image: net.run(OUTPUTS["fruits"], image), images))
    for one, other in zip(alone, together, strict=True):
        assert all(map(np.array_equal, one, other))
