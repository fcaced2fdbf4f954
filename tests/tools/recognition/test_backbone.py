"""Encoders of users: packs that learn from their embeddings, and files that are none."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from agrotools.core import ToolError, UsageError
from agrotools_tools.recognition.backbone import NORMALISATIONS, open_backbone
from agrotools_tools.recognition.labelled_pictures import read_labelled
from agrotools_tools.recognition.pack_training import train_pack
from agrotools_tools.recognition.packs import read_pack
from support.command import run_command
from support.labelled_pictures import PLANTS, plant_picture, write_folders
from support.tiny_nets import tiny_onnx, use_tiny_pack_nets

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (extra onnx)")
pytestmark = pytest.mark.tools


@pytest.fixture(autouse=True)
def _tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    use_tiny_pack_nets(monkeypatch, tmp_path / "nets")


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    path = tmp_path / "encoder.onnx"
    path.write_bytes(tiny_onnx([(10, 20, 30), (30, 20, 10), (0, 200, 0), (0, 0, 200)]))
    return path


def test_the_embedding_is_that_of_the_normalised_picture(encoder: Path) -> None:
    pixels = plant_picture((60, 150, 60), 3)
    for name, (mean, deviation) in NORMALISATIONS.items():
        opened = open_backbone(encoder, name)
        assert (opened.info.side, opened.info.output) == ((32, 32), "logits")
        classes = np.array([(10, 20, 30), (30, 20, 10), (0, 200, 0), (0, 0, 200)]) / 255
        colour = (pixels.reshape(-1, 3).mean(axis=0) / 255 - mean) / np.array(deviation)
        expected = 40 * (classes @ colour - (classes**2).sum(axis=1) / 2)
        row = opened.embedding(pixels)
        # Resizing changes the mean of these stripes a little.
        assert row == pytest.approx(expected / np.linalg.norm(expected), abs=0.02)


def test_a_pack_learns_from_an_encoder_and_finds_it_again(tmp_path: Path, encoder: Path) -> None:
    pictures = read_labelled(write_folders(tmp_path / "pictures"))
    info = train_pack(pictures, tmp_path / "pack", backbone=open_backbone(encoder, "imagenet"))
    assert info.backbone is not None
    assert (info.backbone.width, info.backbone.normalisation) == (4, "imagenet")
    pack = read_pack(tmp_path / "pack")
    assert len(pack.head.names.mean) == 3 + 3 + 101 + 4
    judged = [
        (name, pack.judge(plant_picture(colour, 900 + n)))
        for name, colour in PLANTS.items()
        for n in range(4)
    ]
    assert all(one.classes[int(one.logits.argmax())] == name for name, one in judged)
    assert np.mean([one.is_known for _, one in judged]) >= 0.6


def test_an_encoder_that_is_gone_or_changed_is_named(tmp_path: Path, encoder: Path) -> None:
    pictures = read_labelled(write_folders(tmp_path / "pictures"))
    train_pack(pictures, tmp_path / "pack", backbone=open_backbone(encoder, "clip"))
    shutil.copytree(tmp_path / "pack", tmp_path / "gone")
    shutil.copytree(tmp_path / "pack", tmp_path / "changed")
    encoder.write_bytes(tiny_onnx([(1, 2, 3), (3, 2, 1), (0, 20, 0), (0, 0, 20)]))
    with pytest.raises(ToolError, match="another file than"):
        read_pack(tmp_path / "changed")
    encoder.unlink()
    with pytest.raises(ToolError, match=r"encoder\.onnx, which is not there") as caught:
        read_pack(tmp_path / "gone")
    assert caught.value.kind == "backend_unavailable"
    assert "put the file back" in (caught.value.setup or "")


def test_files_that_are_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        open_backbone(tmp_path / "absent.onnx", "imagenet")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no graph")
    with pytest.raises(UsageError, match="cannot be opened"):
        open_backbone(broken, "imagenet")


def test_the_command_says_how_the_encoder_is_read(tmp_path: Path, encoder: Path) -> None:
    folder = write_folders(tmp_path / "pictures")
    options = ("--images", str(folder), "--out", "mine", "--backbone", str(encoder))
    more = ("--shows", "any", "--normalisation", "clip")
    run = run_command("tools", "packs", "train", *options, *more)
    assert run.returncode == 0, run.stderr
    said = "encoder.onnx: input 32 x 32, normalised as for clip, output logits (one row an image, 4 numbers)"
    assert said in run.stderr
    assert said in run.stdout
