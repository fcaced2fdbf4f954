"""Folders of labelled photographs to a pack, a comparison, a benchmark and a score, as the commands run it."""

import csv
import json
import shlex
import sys
from pathlib import Path

import pytest
from PIL import Image

from agrotools.loading import load_folder
from agrotools_tools.recognition.packs import pack_path
from support.command import run_command
from support.labelled_pictures import plant_picture

pytestmark = pytest.mark.tools
CLASSES = {
    "flea_beetle__adult": (40, 40, 60),
    "moth (Rambur)": (190, 180, 60),
    "healthy": (60, 150, 60),
}


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for number, (name, colour) in enumerate(CLASSES.items()):
        folder = tmp_path / "pests" / name
        folder.mkdir(parents=True)
        for place in range(6):
            Image.fromarray(plant_picture(colour, 1000 * number + place)).save(
                folder / f"{place}.png"
            )
    return tmp_path / "pests"


def test_from_folders_of_photographs_to_a_score(photos: Path) -> None:
    trained = run_command(
        "tools",
        "packs",
        "train",
        "--images",
        "pests",
        "--shows",
        "any",
        "--out",
        "mine",
        "--held",
        "held.csv",
    )
    assert trained.returncode == 0, trained.stderr
    held = "held out: 6 of 18 pictures (flea_beetle__adult 2, healthy 2, moth (Rambur) 2), listed in held.csv"
    assert held in trained.stdout
    compared = run_command(
        "tools",
        "compare",
        "--backends",
        "offline,pack:mine",
        "--data",
        "pests",
        "--labels",
        "held.csv",
        "--json",
    )
    assert compared.returncode == 0, compared.stderr
    pack = json.loads(compared.stdout)[1]
    assert (pack["likeliest"], pack["seen"], pack["unknown"]) == (1.0, 0, [])

    built = run_command(
        "build", "--images", "pests", "--answers", "held.csv", "--yes", "--out", "bench"
    )
    assert built.returncode == 0, built.stderr
    assert "pest as the name of the table or folder says -> pest" in built.stdout
    samples = load_folder(Path("bench")).samples
    asked = " ".join(sample.query for sample in samples)
    assert "disease" not in asked
    assert "flea beetle adult" in asked
    assert "a healthy leaf" in asked
    assert {sample.task_type for sample in samples} == {"pest_diagnosis"}

    words = [
        "eval",
        "bench",
        "--model",
        "baseline:oracle",
        "--mode",
        "end-to-end",
        "--out",
        "run",
        "--json",
    ]
    scored = run_command(*words, "--backend", "diagnose_pest_disease=pack:mine")
    assert scored.returncode == 0, scored.stderr
    metrics = json.loads(scored.stdout)[0]["modes"]["end-to-end"]["metrics"]
    # Drawings are among the other things that packs know, so that not every held one gets a name.
    assert metrics["fas"]["overall"]["value"] > 0.6 > metrics["guess"]["overall"]["value"]


def test_nothing_is_written_if_the_training_cannot_begin(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    done = run_command(
        "tools",
        "packs",
        "train",
        "--images",
        "pests",
        "--shows",
        "any",
        "--out",
        "mine",
        "--held",
        "held.csv",
    )
    assert "scikit-learn" in done.stderr
    assert not Path("held.csv").exists()
    assert not pack_path("mine").exists()


def test_the_table_of_labels_names_the_kind_and_the_groups_and_is_not_overwritten(
    photos: Path,
) -> None:
    rows = [
        (
            f"{name}/{place}.png",
            "healthy" if name == "healthy" else "insect",
            f"{name} {place // 2}",
        )
        for name in CLASSES
        for place in range(6)
    ]
    with Path("labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("image", "pest", "group"), *rows])
    words = [
        "tools",
        "packs",
        "train",
        "--images",
        "pests",
        "--labels",
        "labels.csv",
        "--shows",
        "any",
        "--out",
        "mine",
        "--held",
    ]
    assert "labels.csv is the table of all labels" in run_command(*words, "labels.csv").stderr
    assert "cannot write no/held.csv" in run_command(*words, "no/held.csv").stderr
    assert run_command(*words, "held.csv").returncode == 0
    with Path("held.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [*table[0]] == ["image", "pest", "group"]
    assert {(row["image"], row["pest"], row["group"]) for row in table} <= {*rows}
    built = run_command(
        "build", "--images", "pests", "--answers", "held.csv", "--yes", "--out", "bench"
    )
    assert "asking: pest as pest" in built.stdout


def test_a_label_that_the_pack_calls_otherwise_is_said_by_the_build_and_before_a_run(
    photos: Path,
) -> None:
    """The knowledge base has black sigatoka; the pack was trained with photos named sigatoka."""
    photos.joinpath("flea_beetle__adult").rename(photos / "sigatoka")
    trained = run_command(
        "tools", "packs", "train", "--images", "pests", "--out", "mine", "--shows", "banana"
    )
    assert trained.returncode == 0, trained.stderr
    rows = [(f"{label}/{k}.png", label) for label in ("sigatoka", "healthy") for k in range(6)]
    written = {"sigatoka": "black sigatoka", "healthy": "healthy"}
    lines = [f"{file},{written[label]}" for file, label in rows]
    Path("t.csv").write_text("\n".join(["image,disease", *lines]))
    command = ["build", "--images", "pests", "--answers", "t.csv", "--out", "bench"]
    command += ["--set", "disease.crop=banana"]
    built = run_command(*command)
    assert built.returncode == 0, built.stderr
    renamed = "--set 'disease.names.black sigatoka=sigatoka'"
    assert "pack:mine cannot name 1 of 2 labels (6 of 12 photos)" in built.stdout
    assert renamed in built.stdout
    words = ["eval", "bench", "--model", "baseline:oracle", "--mode", "end-to-end", "--json"]
    words += ["--backend", "diagnose_pest_disease=pack:mine", "--out"]
    ran = run_command(*words, "run")
    before, _, _ = ran.stderr.partition("1/")
    assert renamed in before, "before the first sample is done"
    (summary,) = json.loads(ran.stdout)
    assert any(renamed in line for line in summary["warnings"])
    lost = summary["modes"]["end-to-end"]["metrics"]["fas"]["overall"]["value"]
    Path("t.plan.toml").unlink()
    again = run_command(*command, *shlex.split(renamed))
    assert again.returncode == 0, again.stderr
    assert "cannot name" not in again.stdout
    summary = json.loads(run_command(*words, "other").stdout)[0]
    assert not any("cannot name" in line for line in summary["warnings"])
    assert summary["modes"]["end-to-end"]["metrics"]["fas"]["overall"]["value"] > lost
