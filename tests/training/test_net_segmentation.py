"""The net that names pixels, and how classifiers and detectors are written: on tiny nets and pictures made here."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training of nets needs torch: pip install --group train-nets")
pytest.importorskip("onnx", reason="export of nets needs onnx: pip install --group train-nets")

torch.set_num_threads(1)

from nets.augment import Changes  # noqa: E402
from nets.detection import Decodable, Detector  # noqa: E402
from nets.export import export_onnx, session_of  # noqa: E402
from nets.model import Averaged, Classifier, Likened, Shape  # noqa: E402
from nets.segmentation import (  # noqa: E402
    Masked,
    Segmenter,
    Strangeness,
    Windows,
    cut,
    padded,
    segmentation_loss,
    windows_of,
)

TINY = Shape(stem=4, widths=(4, 6, 8, 8), depths=(1, 1, 1, 1), dropout=0.0)
COLOURS = torch.tensor([[90, 70, 50], [40, 200, 40], [200, 40, 40]], dtype=torch.uint8)


def fields(count: int, seed: int, size: tuple[int, int] = (48, 64)) -> Masked:
    """Soil with a rectangle of crop and one of weeds; every pixel's class shows in its colour."""
    draw = np.random.default_rng(seed)
    masks = np.zeros((count, *size), np.uint8)
    for mask in masks:
        for kind in (1, 2):
            top, left = draw.integers(0, size[0] - 16), draw.integers(0, size[1] - 20)
            mask[top : top + 16, left : left + 20] = kind
    classes = torch.from_numpy(masks)
    return Masked(COLOURS[classes.long()].permute(0, 3, 1, 2).contiguous(), classes)


def test_a_window_of_the_picture_is_the_same_window_of_the_mask() -> None:
    some = fields(12, 1)
    images, classes = cut(some, Windows(zoom=(1.0, 2.0)), 40, torch.Generator().manual_seed(4))
    assert images.shape == (12, 3, 40, 40)
    assert classes.shape == (12, 40, 40)
    shown = COLOURS.float()[classes].permute(0, 3, 1, 2) / 255
    apart = (images - shown).abs().amax(1) > 0.02
    assert float(apart.float().mean()) < 0.25  # borders alone, where the picture is interpolated
    assert sorted(classes.unique().tolist()) == [0, 1, 2]


def test_an_epoch_cuts_every_picture_as_often_as_asked_and_follows_its_seed() -> None:
    some, plan = fields(10, 2), Windows(rounds=3, changes=Changes())
    one, two = (list(windows_of(some, plan, 8, 32, torch.Generator().manual_seed(7))) for _ in range(2))
    assert sum(len(images) for images, _ in one) == 30
    assert all(torch.equal(a, b) and torch.equal(c, d) for (a, c), (b, d) in zip(one, two, strict=True))


@pytest.mark.slow
def test_it_learns_to_name_pixels_and_which_pictures_are_strange(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, generator = Segmenter(3, TINY, width=8), torch.Generator().manual_seed(1)
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-2)
    some = fields(40, 3)
    for _ in range(25):
        for images, classes in windows_of(some, Windows(rounds=1), 20, 32, generator):
            loss = segmentation_loss(net(images), classes, (0.5, 1.0, 2.0))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    net.eval()
    others = fields(8, 9)
    with torch.inference_mode():
        said = torch.cat([net(padded(picture))[0][:, :, :48, :64] for picture in others.pictures]).argmax(1)
        known = torch.cat([net(padded(picture))[1] for picture in some.pictures])
    assert float((said == others.masks).float().mean()) > 0.9
    export_onnx(Strangeness(net, known), (64, 64), ("chances", "strange"), tmp_path / "net.onnx", any_size=True)
    session = session_of(tmp_path / "net.onnx")
    answers = [session.run(["chances", "strange"], {"image": padded(one).numpy()}) for one in others.pictures]
    assert all(np.abs(chances.sum(1) - 1).max() < 1e-3 for chances, _ in answers)
    assert answers[0][0].shape == (1, 3, 64, 64)
    noise = torch.randint(0, 255, (3, 48, 64), generator=generator, dtype=torch.uint8)
    strange = session.run(["strange"], {"image": padded(noise).numpy()})[0][0]
    assert strange > 1.5 * max(float(one[1][0]) for one in answers)


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
    learnt = fields(30, 5).pictures
    net = Likened(Averaged(Classifier(4, TINY)), learnt).eval()
    noise = torch.randint(0, 255, (6, 3, 48, 64), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
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
