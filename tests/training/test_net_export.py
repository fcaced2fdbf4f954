"""Export of classifiers and detectors to ONNX, on tiny nets and generated images."""

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="training of nets needs torch: pip install --group train-nets"
)
pytest.importorskip("onnx", reason="export of nets needs onnx: pip install --group train-nets")

torch.set_num_threads(1)

from nets.detection import Decodable, Detector  # noqa: E402
from nets.model import Averaged, Classifier, Likened, Shape  # noqa: E402

TINY = Shape(stem=4, widths=(4, 6, 8, 8), depths=(1, 1, 1, 1), dropout=0.0)


def images(count: int, seed: int) -> torch.Tensor:
    """Brown images (count, 3, 48, 64) with a green and a red rectangle at random places."""
    draw = np.random.default_rng(seed)
    colours = np.array([[90, 70, 50], [40, 200, 40], [200, 40, 40]], np.uint8)
    classes = np.zeros((count, 48, 64), np.uint8)
    for plane in classes:
        for kind in (1, 2):
            top, left = draw.integers(0, 32), draw.integers(0, 44)
            plane[top : top + 16, left : left + 20] = kind
    return torch.from_numpy(colours[classes]).permute(0, 3, 1, 2).contiguous()


def test_a_classifier_is_written_so_that_mirroring_changes_nothing() -> None:
    torch.manual_seed(3)
    net = Averaged(Classifier(4, TINY)).eval()
    picture = torch.rand(2, 3, 32, 32)
    with torch.inference_mode():
        plain, seen = net(picture)
        for axes in ((3,), (2,), (2, 3)):
            logits, embedding = net(picture.flip(axes))
            assert torch.allclose(logits, plain, atol=1e-5)
            assert torch.allclose(embedding, seen, atol=1e-5)


def test_pictures_like_those_learnt_from_are_told_from_others() -> None:
    torch.manual_seed(3)
    learnt = images(30, 5)
    net = Likened(Averaged(Classifier(4, TINY)), learnt).eval()
    noise = torch.randint(
        0, 255, (6, 3, 48, 64), generator=torch.Generator().manual_seed(1), dtype=torch.uint8
    )
    with torch.inference_mode():
        _, embedding, own = net(learnt[:6].float() / 255)
        strange = net(noise.float() / 255)[2]
    assert own.shape == (6,)
    assert float(own.max()) <= 1 + 1e-5
    assert float(strange.max()) < float(own.min())
    cosines = torch.nn.functional.normalize(embedding) @ net.bank
    assert torch.allclose(own, cosines.sort(1).values[:, -10:].mean(1), atol=1e-6)


def test_a_detector_is_written_so_that_mirroring_mirrors_its_boxes() -> None:
    torch.manual_seed(3)
    net = Decodable(Detector(2, TINY, width=8)).eval()
    picture = torch.rand(1, 3, 64, 96)
    with torch.inference_mode():
        heat, distances = net(picture)
        mirrored, reach = net(picture.flip(3))
    assert torch.allclose(mirrored.flip(3), heat, atol=1e-5)
    assert torch.allclose(reach.flip(3)[:, [2, 1, 0, 3]], distances, atol=1e-4)
