import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agrotools.core import UndecidedError
from agrotools_tools.cli.packs import app
from agrotools_tools.cli.tools import app as tools_app
from agrotools_tools.crop_weed.heads import HeadInfo, save_head
from agrotools_tools.crop_weed.result import heads_folder
from agrotools_tools.recognition import pack_training
from agrotools_tools.recognition.packs import PackInfo, packs_folder
from support.labelled_pictures import write_folders, write_kind

RUN = CliRunner()
needs_training = pytest.mark.skipif(
    find_spec("sklearn") is None, reason="needs scikit-learn (the extra train)"
)


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path))


def kept_head() -> HeadInfo:
    import numpy as np

    info = HeadInfo(
        name="mine",
        features_version="1",
        source="2 pictures",
        licence_note="for non-commercial research only",
        training=(),
        false_colour=False,
        threshold=0.5,
        familiar=0.1,
        metrics={"cross_validated_crop_iou": 0.61},
        weights_sha256="",
    )
    ones = np.ones(3, np.float32)
    arrays = {
        "mean": ones,
        "scale": ones,
        "landmarks": np.ones((2, 3), np.float32),
        "weights": ones[:2],
    }
    return save_head(
        info, arrays | {"gamma": np.array(0.1, np.float32), "bias": np.array(0.0, np.float32)}
    )


def test_without_heads_it_says_how_to_get_them() -> None:
    result = RUN.invoke(app, ["list"])
    assert result.exit_code == 0
    assert "packs train crop-weed --data DIR" in result.output
    assert "packs train --images DIR" in result.output
    assert json.loads(RUN.invoke(app, ["list", "--json"]).output) == {
        "packs": [],
        "crop-weed": [],
        "faults": [],
    }


def test_heads_are_listed_with_their_terms() -> None:
    kept_head()
    result = RUN.invoke(app, ["list"])
    assert "mine" in result.output
    assert "0.610" in result.output
    assert "non-commercial" in result.output
    listed = json.loads(RUN.invoke(app, ["list", "--json"]).output)
    assert [head["name"] for head in listed["crop-weed"]] == ["mine"]
    weights = heads_folder() / "mine.npz"
    weights.write_bytes(weights.read_bytes() + b" ")
    assert "fault: the weights of head mine" in RUN.invoke(app, ["list"]).output


@needs_training
def test_a_pack_of_own_pictures_is_trained_and_listed(tmp_path: Path) -> None:
    pictures = write_folders(tmp_path / "pictures", each=5)
    made = RUN.invoke(
        app,
        [
            "train",
            "--images",
            str(pictures),
            "--shows",
            "any",
            "--out",
            "mine",
            "--licence",
            "CC0, made up",
        ],
    )
    assert made.exit_code == 0, made.output
    assert "looked at 15 of 15 pictures" in made.output
    assert "brown leaf: 5 pictures, recall" in made.output
    assert "--backend pack:mine" in made.output
    assert "not tested against look-alikes" in made.output
    assert (packs_folder() / "mine" / "pack.json").is_file()
    listed = RUN.invoke(app, ["list"]).output
    assert "mine: crop any, 3 classes, 15 pictures in 15 groups; out of fold: accuracy" in listed
    assert "own pictures named" in listed
    assert "CC0, made up" in listed
    (packs_folder() / "mine" / "weights.npz").write_bytes(b"")
    found = json.loads(RUN.invoke(app, ["list", "--json"]).output)
    assert found["packs"] == []
    assert "mine" in found["faults"][0]
    table = tmp_path / "labels.csv"
    rows = [
        f"{path.parent.name}/{path.name},{path.parent.name}"
        for path in sorted(pictures.rglob("*.png"))
    ]
    table.write_text("\n".join(["image,label", *rows]))
    out = tmp_path / "here" / "pack"
    write_kind(tmp_path / "neighbours" / "ochre leaf", (165, 145, 58), range(70, 75))
    made = RUN.invoke(
        app,
        [
            "train",
            "--images",
            str(pictures),
            "--labels",
            str(table),
            "--shows",
            "any",
            "--out",
            str(out),
            "--other",
            str(tmp_path / "neighbours"),
            "--json",
        ],
    )
    assert made.exit_code == 0, made.output
    written = json.loads(made.stdout)
    assert written["path"] == str(out)
    assert list(written["figures"]["strangers"]["look_alikes"]) == ["ochre leaf"]
    assert "ImageNet" in written["rests_on"]
    assert (out / "weights.npz").is_file()


@needs_training
def test_what_the_pictures_show_is_asked_unless_the_labels_say_it(tmp_path: Path) -> None:
    pictures = write_folders(tmp_path / "pictures", each=5)
    words = ["train", "--images", str(pictures), "--out", "mine"]
    asked = RUN.invoke(app, words)
    assert isinstance(asked.exception, UndecidedError)
    assert "Which crop do your pictures show?" in str(asked.exception)
    assert asked.exception.answers == ("--shows=CROP",)
    assert not (packs_folder() / "mine").exists()
    for label in ("green leaf", "brown leaf", "yellow leaf"):
        (pictures / label).rename(pictures / f"banana {label}")
    told = RUN.invoke(app, [*words, "--json"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["shows"] == ["banana"]
    assert "the pictures show banana, as the labels say" in told.stderr


@needs_training
@pytest.mark.parametrize(("named", "is_warned"), [(0.7, True), (0.47, False)])
def test_own_pictures_that_look_like_a_shipped_crop_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: float, *, is_warned: bool
) -> None:
    train_pack = pack_training.train_pack

    def train_with_bean_nearest(*given: Any, **options: Any) -> PackInfo:
        info = train_pack(*given, **options)
        strangers = info.figures.strangers
        shares = {**strangers.by_kind, "leaves of bean": named}
        strangers = strangers.model_copy(update={"nearest": "leaves of bean", "by_kind": shares})
        figures = info.figures.model_copy(update={"strangers": strangers})
        return info.model_copy(update={"figures": figures})

    monkeypatch.setattr(pack_training, "train_pack", train_with_bean_nearest)
    pictures = write_folders(tmp_path / "pictures", ("green leaf", "brown leaf"), each=4)
    words = ["train", "--images", str(pictures), "--shows", "fagiulo", "--out=mine"]
    monkeypatch.setattr("sys.argv", ["agrotools", "tools", "packs", *words])
    made = RUN.invoke(app, words)
    assert made.exit_code == 0, made.output
    assert "warning: the knowledge base has no crop fagiulo" in made.stderr
    assert ("warning: your pictures look like leaves of bean" in made.stdout) == is_warned
    again = f"tools packs train --images {pictures} --shows bean --out mine-bean"
    assert (again in made.stdout) == is_warned


@needs_training
def test_pictures_held_out_are_not_learnt_and_back_ends_are_compared_on_them(
    tmp_path: Path,
) -> None:
    pictures = write_folders(tmp_path / "pictures", each=8)
    held = tmp_path / "held.csv"
    made = RUN.invoke(
        app,
        [
            "train",
            "--images",
            str(pictures),
            "--shows",
            "any",
            "--out",
            "mine",
            "--held",
            str(held),
        ],
    )
    assert made.exit_code == 0, made.output
    assert (
        "held out: 6 of 24 pictures (brown leaf 2, green leaf 2, yellow leaf 2), listed in"
        in made.output
    )
    assert "looked at 18 of 18 pictures" in made.output
    rows = held.read_text().splitlines()
    assert rows[0] == "image,label"
    assert sorted(row.split(",")[1] for row in rows[1:]) == 2 * ["brown leaf"] + 2 * [
        "green leaf"
    ] + 2 * ["yellow leaf"]
    call = [
        "compare",
        "--backends",
        "offline,pack:mine",
        "--data",
        str(pictures),
        "--labels",
        str(held),
        "--json",
    ]
    result = RUN.invoke(tools_app, call)
    assert result.exit_code == 0, result.output
    offline, pack = json.loads(result.stdout)
    assert (offline["backend"], offline["difference"]) == ("offline", None)
    assert pack["likeliest"] == 1.0
    assert pack["better"] - pack["worse"] == pytest.approx(6 * pack["difference"]["value"])
    alone = RUN.invoke(tools_app, ["compare", "--backends", "offline", "--data", str(pictures)])
    assert "nothing to compare" in str(alone.exception)
    named = RUN.invoke(
        tools_app, [*call[:-1], "--tool", "count_objects", "--backends", "offline,rules"]
    )
    assert "not a count" in str(named.exception)
