"""Training of the nets, on tiny nets and pictures made here: it resumes, and writes what it learnt."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip(
    "torch", reason="training of nets needs torch: pip install --group train-nets"
)
pytest.importorskip("onnx", reason="export of nets needs onnx: pip install --group train-nets")

torch.set_num_threads(1)

from nets.augment import Changes, augmented  # noqa: E402
from nets.classifying import Known, Plan, learn_classes, predict  # noqa: E402
from nets.detection import Decodable, Detector, decode, detection_loss, draw, matches  # noqa: E402
from nets.export import export_onnx, run_onnx, session_of  # noqa: E402
from nets.model import Shape  # noqa: E402

from agrotools_tools.counting.measure import boxes_of_maps  # noqa: E402

TINY = Shape(stem=4, widths=(4, 6, 8, 8), depths=(1, 1, 1, 1), dropout=0.1)
SIDE = 32


def plan(epochs: int) -> Plan:
    return Plan(
        epochs=epochs, batch=16, rate=4e-3, seed=3, sides=((0.0, SIDE),), shape=TINY, mix_share=0.2
    )


def colours(count: int, seed: int) -> Known:
    """Two classes that anybody can tell apart: greenish and reddish noise."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.arange(count) % 2
    pictures = torch.randint(0, 90, (count, 3, SIDE, SIDE), generator=generator, dtype=torch.uint8)
    for number, kind in enumerate(classes.tolist()):
        pictures[number, 1 - kind] += 120
    return Known(pictures, classes)


def learnt(folder: Path, epochs: int, *, resume: bool = False, minutes: float | None = None):
    nothing = torch.empty(0, 3, SIDE, SIDE, dtype=torch.uint8)
    return learn_classes(
        plan(epochs), ("green", "red"), colours(64, 1), nothing, {"held": colours(32, 2)}, folder,
        resume=resume, minutes_cpu=minutes,
    )  # fmt: skip


@pytest.mark.slow
def test_training_goes_on_after_a_stop_as_if_there_had_been_none(tmp_path: Path) -> None:
    whole = learnt(tmp_path / "whole", 4)
    learnt(tmp_path / "cut", 4, minutes=0.0)  # stops after its first epoch
    assert len((tmp_path / "cut/log.jsonl").read_text().splitlines()) == 1
    again = learnt(tmp_path / "cut", 4, resume=True)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name


@pytest.mark.slow
def test_a_checkpoint_of_another_plan_is_refused(tmp_path: Path) -> None:
    learnt(tmp_path, 2, minutes=0.0)
    with pytest.raises(SystemExit, match="another plan"):
        learnt(tmp_path, 3, resume=True)


@pytest.mark.slow
def test_what_is_written_answers_as_what_was_learnt(tmp_path: Path) -> None:
    model, held = learnt(tmp_path, 8), colours(32, 5)
    exact = predict(model, held.pictures).double().numpy()
    export_onnx(model, (SIDE, SIDE), ("logits", "embedding"), tmp_path / "net.onnx")
    written = run_onnx(tmp_path / "net.onnx", held.pictures)
    assert (exact.argmax(1) == held.classes.numpy()).mean() > 0.95
    assert (
        np.abs(written - exact).max() < 0.02 * np.abs(exact).max()
    )  # weights are kept in half precision


def test_changed_pictures_stay_pictures_and_follow_their_seed() -> None:
    pictures = colours(8, 1).pictures
    one, two = (
        augmented(pictures, 24, Changes(), torch.Generator().manual_seed(9)) for _ in range(2)
    )
    assert one.shape == (8, 3, 24, 24)
    assert torch.equal(one, two)
    assert 0 <= float(one.min()) <= float(one.max()) <= 1


BOXES = np.array([[4, 8, 20, 24], [30, 30, 62, 54], [40, 2, 52, 16]], np.float32)


def perfect_maps() -> tuple[np.ndarray, np.ndarray]:
    """What a perfect net would answer: the drawn heat, and the distances to the drawn boxes' sides."""
    drawn = draw([BOXES], [np.array([0, 1, 0])], 2, 64)
    heat, boxes = drawn.heat[0].numpy(), drawn.boxes[0].numpy()
    middle = (np.arange(16) + 0.5) * 4
    x, y = np.meshgrid(middle, middle)
    distances = np.stack([x - boxes[0], y - boxes[1], boxes[2] - x, boxes[3] - y]).astype(
        np.float32
    )
    return np.where(heat >= 0.999, heat, 0).astype(np.float32), distances


def test_boxes_that_were_drawn_come_back() -> None:
    found = decode(*perfect_maps(), 0.5)
    assert matches(found, BOXES, 0.99).all()
    assert sorted(found.classes.tolist()) == [0, 0, 1]


def test_the_package_reads_the_maps_as_training_does() -> None:
    draw_of = np.random.default_rng(4)
    heat = np.where(draw_of.random((2, 16, 16)) > 0.93, draw_of.random((2, 16, 16)), 0).astype(
        np.float32
    )
    distances = draw_of.uniform(2, 20, (4, 16, 16)).astype(np.float32)
    here, there = boxes_of_maps(heat, distances, 0.2), decode(heat, distances, 0.2)
    assert (here.scores, here.boxes) == (
        pytest.approx(there.scores),
        pytest.approx(there.boxes, abs=1e-3),
    )
    assert here.classes.tolist() == there.classes.tolist()


def test_the_loss_falls_towards_what_was_drawn() -> None:
    drawn = draw([BOXES], [np.array([0, 1, 0])], 2, 64)
    heat, distances = (torch.from_numpy(part)[None] for part in perfect_maps())
    good = torch.where(drawn.heat >= 0.999, 8.0, -8.0), distances
    vague = torch.full_like(heat, -2.0), torch.full_like(distances, 8.0)
    assert detection_loss(good, drawn) < 0.2 * detection_loss(vague, drawn)


@dataclass
class _Pair:
    heat: np.ndarray
    distances: np.ndarray


@pytest.mark.slow
def test_a_detector_of_any_size_is_written(tmp_path: Path) -> None:
    torch.manual_seed(1)
    net = Decodable(Detector(2, TINY, width=8)).eval()
    export_onnx(net, (64, 64), ("heat", "distances"), tmp_path / "fruit.onnx", any_size=True)
    session = session_of(tmp_path / "fruit.onnx")
    for side in ((64, 64), (96, 160)):
        image = torch.rand(1, 3, *side)
        with torch.inference_mode():
            exact = _Pair(*(part.numpy() for part in net(image)))
        written = _Pair(*session.run(["heat", "distances"], {"image": image.numpy()}))
        assert written.heat.shape == (1, 2, side[0] // 4, side[1] // 4)
        assert np.abs(written.distances - exact.distances).max() < 0.1
