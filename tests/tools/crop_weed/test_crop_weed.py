"""Heads: what they learn, and that they are never used on pictures they have seen."""

import io
import json
import pickle
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from agrotools.calling import get_tool
from agrotools.calling.workspace import artifacts_in
from agrotools.core import BenchmarkError
from agrotools.core.files import fold_of, sha256_of_file
from agrotools_tools.crop_weed import training
from agrotools_tools.crop_weed.heads import applicable_heads, list_heads, load_head, separate_crop
from agrotools_tools.crop_weed.result import heads_folder
from agrotools_tools.crop_weed.training import plants_of, train_crop_weed_heads
from agrotools_tools.vision import nets
from support.picture_files import field, planted_rows
from support.tool_errors import tool_error


def plant_picture(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Red and infrared as false colour: crop has thin leaflets, weeds broad leaves. Picture and class mask."""
    draw = np.random.default_rng(seed)
    height, width = 288, 384
    y, x = np.mgrid[0:height, 0:width]
    classes = np.zeros((height, width), np.uint8)
    for centre_x in (70, 190, 310):
        for centre_y in (70, 210):
            cx, cy = centre_x + draw.uniform(-20, 20), centre_y + draw.uniform(-20, 20)
            if draw.random() < 0.5:
                for angle in np.arange(0, np.pi, np.pi / 6) + draw.uniform(0, 1):
                    across = np.abs((x - cx) * np.sin(angle) - (y - cy) * np.cos(angle))
                    classes[(across < 1.8) & (np.hypot(x - cx, y - cy) < 34)] = 1
            else:
                for angle in draw.uniform(0, 2 * np.pi) + np.arange(3) * 2.1:
                    leaf = np.hypot(x - cx - 15 * np.cos(angle), y - cy - 15 * np.sin(angle)) < 13
                    classes[leaf] = 2
    clods = cv2.resize(draw.normal(0, 12, (18, 24)), (width, height), interpolation=cv2.INTER_CUBIC)
    red = np.where(classes > 0, 40, 95 + clods) + draw.normal(0, 5, classes.shape)
    infrared = np.where(classes > 0, 180, 100 + clods) + draw.normal(0, 7, classes.shape)
    return np.clip(np.dstack([red, infrared, red]), 0, 255).astype(np.uint8), classes


def write_data(root: Path, count: int) -> Path:
    folder = root / "cwfid"
    folder.mkdir(parents=True)
    items = []
    for number in range(count):
        picture, classes = plant_picture(number)
        for name, content in (
            ("image", picture),
            ("mask", classes),
            ("vegetation", (classes > 0).astype(np.uint8)),
        ):
            Image.fromarray(content).save(folder / f"{number}_{name}.png")
        items.append(
            {"id": f"{number}"} | {k: f"{number}_{k}.png" for k in ("image", "mask", "vegetation")}
        )
    (folder / "truth.json").write_text(json.dumps(items))
    return root


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory):
    """Data and heads, small and quick; the heads lie in a cache of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGROTOOLS_CACHE", str(tmp_path_factory.mktemp("heads")))
        patch.setattr(training, "ROWS", 1500)
        patch.setattr(training, "LANDMARKS", 60)
        patch.setattr(training, "SCALES", (1.0,))
        data = write_data(tmp_path_factory.mktemp("data"), 8)
        yield data, train_crop_weed_heads(data)


def pictures(data: Path) -> list[tuple[Path, np.ndarray]]:
    return [
        (path, np.asarray(Image.open(path)))
        for path in sorted((data / "cwfid").glob("*_image.png"))
    ]


def test_two_folds_and_all(trained) -> None:
    data, heads = trained
    assert [head.name for head in heads] == ["cwfid-fold-0", "cwfid-fold-1", "cwfid-all"]
    folds = fold_of(sha256_of_file(path) for path, _ in pictures(data))
    for number in (0, 1):
        seen = {image.sha256 for image in heads[number].training}
        assert seen == {sha for sha, fold in folds.items() if fold == number}
    assert len(heads[2].training) == 8
    assert all("non-commercial" in head.licence_note for head in heads)
    assert all(head.false_colour for head in heads)
    assert list_heads() == (sorted(heads, key=lambda head: head.name), [])


def test_no_picture_and_no_copy_gets_a_head_that_has_seen_it(trained, tmp_path: Path) -> None:
    data, heads = trained
    for path, pixels in pictures(data):
        usable = applicable_heads(heads, sha256_of_file(path), pixels)
        assert len(usable) == 1
        assert sha256_of_file(path) not in {image.sha256 for image in usable[0].training}
    path, pixels = pictures(data)[0]
    own = {head.name for head in applicable_heads(heads, sha256_of_file(path), pixels)}
    for number, turn in enumerate((0, 90, 180)):
        copy = tmp_path / f"{number}.jpg"
        Image.fromarray(pixels).resize((300, 225)).rotate(turn, expand=True).save(copy, quality=70)
        assert sha256_of_file(copy) != sha256_of_file(path)
        again = applicable_heads(heads, sha256_of_file(copy), np.asarray(Image.open(copy)))
        assert {head.name for head in again} == own
    _, heads = trained
    names = [head.name for head in applicable_heads(heads, "0" * 64, plant_picture(99)[0])]
    assert names == ["cwfid-all", "cwfid-fold-0", "cwfid-fold-1"]


def test_a_head_parts_crop_from_weeds_it_has_never_seen_and_knows_what_is_unfamiliar(
    trained,
) -> None:
    _, heads = trained
    right = total = 0
    for seed in range(100, 106):
        pixels, classes = plant_picture(seed)
        crop, is_familiar = separate_crop(pixels, plants_of(pixels), load_head(heads[2]), heads[2])
        assert is_familiar
        named = classes > 0
        right += np.count_nonzero((crop == (classes == 1))[named])
        total += np.count_nonzero(named)
    assert right / total > 0.9
    draw = np.random.default_rng(0)
    pixels = draw.integers(0, 256, (288, 384, 3), np.uint8)
    assert not separate_crop(pixels, pixels[..., 1] > 100, load_head(heads[2]), heads[2])[1]


def test_a_head_says_how_a_picture_differs_from_those_it_learnt_from(
    trained, tmp_path: Path
) -> None:
    image = tmp_path / "field.png"
    Image.fromarray(field(planted_rows()[0])).save(image)
    with artifacts_in(tmp_path / "made"):
        result = get_tool("measure_crop_weed_area")(image, separation="model")
    assert "out_of_distribution" in result.flags
    reasons = [note for note in result.notes if note.startswith("unlike the pictures that head")]
    assert ["natural colours, not false ones" in reason for reason in reasons] == [True]

    pixels, _ = plant_picture(200)
    Image.fromarray(pixels).save(image)
    with artifacts_in(tmp_path / "made"):
        result = get_tool("measure_crop_weed_area")(image, separation="model")
    assert "out_of_distribution" not in result.flags
    assert "unlike" not in " ".join(result.notes)


def npz(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"), (npz(a=np.ones(3)), "damaged"), (npz(a=np.array([np.nan])), "not all are numbers"),
        (b"PK no zip", "damaged"), (npz(mean=np.array([print])), "damaged"), (pickle.dumps({"a": 1}), "damaged"),
    ],
)  # fmt: skip
def test_weights_that_are_not_those_saved_are_refused(
    trained, monkeypatch, content: bytes | None, said: str
) -> None:
    head = trained[1][0]
    path = heads_folder() / f"{head.name}.npz"
    whole = path.read_bytes()
    try:
        path.unlink()
        if content is not None:
            path.write_bytes(content)
            assert "not those that its description names" in tool_error(load_head, head).message
            head = head.model_copy(update={"weights_sha256": sha256_of_file(path)})
        error = tool_error(load_head, head)
        assert error.kind == "backend_unavailable"
        assert said in error.message
    finally:
        path.write_bytes(whole)
    monkeypatch.setattr(nets, "LARGEST_WEIGHTS", 10)
    assert "more than" in tool_error(load_head, head).message


def test_descriptions_that_cannot_be_used_are_named(trained) -> None:
    _, heads = trained
    folder = heads_folder()
    old = heads[0].model_copy(update={"name": "old", "features_version": "0"})
    for name, text in (
        ("broken", "{"),
        ("old", old.model_dump_json()),
        ("other", heads[0].model_dump_json()),
    ):
        (folder / f"{name}.json").write_text(text)
    try:
        found, faults = list_heads()
        assert len(found) == 3
        assert len(faults) == 3
    finally:
        for name in ("broken", "old", "other"):
            (folder / f"{name}.json").unlink()


@pytest.mark.parametrize("content", ["{", "[1, 2]", '[{"id": "1"}]', "[]"])
def test_data_of_another_form_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "cwfid").mkdir()
    (tmp_path / "cwfid" / "truth.json").write_text(content)
    with pytest.raises(BenchmarkError):
        train_crop_weed_heads(tmp_path)
    with pytest.raises(BenchmarkError):
        train_crop_weed_heads(tmp_path / "nowhere")
