"""Nets: an answer as worked out by hand, and every way in which files can be wrong."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agrotools.core import ToolError
from agrotools_tools.recognition import net as nets
from agrotools_tools.recognition.net import (
    fit_temperature,
    probabilities,
    read_net,
    shipped_files,
    shipped_net,
    threshold_for_share,
    wilson,
)
from support.tiny_nets import mean_logits, tiny_onnx, write_tiny_net

WITH_LIKENESS = {"logits": 3, "embedding": 3, "likeness": 1}
COLOURS = {"red": (220, 30, 30), "green": (40, 180, 60), "blue": (20, 40, 200)}


def noisy_picture(
    colour: tuple[int, int, int], shape: tuple[int, int] = (64, 96), seed: int = 0
) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return np.clip(np.array(colour) + draw.normal(0, 10, (*shape, 3)), 0, 255).astype(np.uint8)


def test_an_answer_is_that_worked_out_by_hand(tmp_path: Path) -> None:
    net = read_net(write_tiny_net(tmp_path, "tiny", COLOURS))
    pixels = noisy_picture((60, 150, 80))
    seen = net.predict(pixels)
    assert seen.logits[0] == pytest.approx(mean_logits(pixels, list(COLOURS.values())), abs=0.2)
    assert seen.embedding[0] == pytest.approx(pixels.reshape(-1, 3).mean(axis=0) / 255, abs=0.005)
    judgement = net.judge(pixels)
    assert judgement.classes[int(judgement.probabilities().argmax())] == "green"
    assert judgement.is_known
    assert judgement.probabilities().sum() == pytest.approx(1)


def test_a_net_may_say_itself_how_like_a_picture_is_to_those_it_knows(tmp_path: Path) -> None:
    path = with_weights(
        write_tiny_net(
            tmp_path, "tiny", COLOURS, score="likeness", threshold=0.4, outputs=WITH_LIKENESS
        ),
        tiny_onnx(list(COLOURS.values()), likeness=True),
    )
    bright, dark = noisy_picture((200, 150, 180)), noisy_picture((20, 60, 30))
    assert read_net(path).judge(bright).score == pytest.approx(530 / 3 / 255, abs=0.01)
    assert read_net(path).judge(bright).is_known
    assert not read_net(path).judge(dark).is_known


def fault(path: Path) -> ToolError:
    with pytest.raises(ToolError) as caught:
        read_net(path).predict(noisy_picture((1, 2, 3)))
    assert caught.value.kind == "backend_unavailable"
    assert caught.value.advice
    return caught.value


def changed(path: Path, **fields: Any) -> Path:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return path


def with_weights(path: Path, content: bytes) -> Path:
    path.with_suffix(".onnx").write_bytes(content)
    return changed(path, sha256=hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"sha256": "no hash"}, "sha256"),
        ({"weights": "../../elsewhere.onnx"}, "weights"),
        ({"temperature": 0}, "temperature"),
        ({"abstention": {"score": "guess", "threshold": 1}}, "abstention.score"),
        ({"sha256": "0" * 64}, "not those"),
        ({"outputs": {"logits": 3, "embedding": 3, "likeness": 1}}, "cannot be run"),
    ],
)
def test_faulty_descriptions(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    assert said in fault(changed(write_tiny_net(tmp_path, "tiny", COLOURS), **fields)).message


def test_damaged_missing_and_strange_files_give_no_answer(tmp_path: Path) -> None:
    path = write_tiny_net(tmp_path, "tiny", COLOURS)
    good = path.with_suffix(".onnx").read_bytes()
    path.with_suffix(".onnx").write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    assert "not those" in fault(path).message
    assert "no graph" in fault(with_weights(path, good[: len(good) // 2])).message
    assert "no graph" in fault(with_weights(path, b"not at all")).message
    path.with_suffix(".onnx").unlink()
    assert "cannot be read" in fault(path).message
    path.write_text("{")
    assert "faulty description" in fault(path).message
    path.unlink()
    assert "cannot be read" in fault(path).message


@pytest.mark.parametrize("name", nets.SHIPPED)
def test_nets_of_the_package_are_whole(name: nets.NetName) -> None:
    description, weights = shipped_files(name)
    net = shipped_net(name)
    assert weights.stat().st_size < 4_000_000
    judgement = net.judge(noisy_picture((90, 140, 60), (300, 200)))
    assert judgement.probabilities().sum() == pytest.approx(1)
    assert len(judgement.logits) == len(net.info.classes)
    assert description.with_suffix(".md").is_file()


def test_scores_temperatures_and_thresholds_of_known_logits() -> None:
    draw = np.random.default_rng(3)
    logits = draw.normal(0, 1.5, (4000, 4))
    shares = probabilities(logits, 1.0)
    classes = np.array([draw.choice(4, p=row) for row in shares])
    assert fit_temperature(logits * 3, classes) == pytest.approx(3, rel=0.1)
    scores = np.arange(100.0)
    assert (scores >= threshold_for_share(scores, 0.9)).mean() == 0.9
    assert threshold_for_share(np.array([3.0]), 0.9) == 3.0
    assert wilson(8, 10) == pytest.approx((0.490, 0.943), abs=0.001)
    assert wilson(0, 0) == (0.0, 1.0)
