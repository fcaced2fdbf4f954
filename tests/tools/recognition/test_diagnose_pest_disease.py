"""diagnose_pest_disease with small nets made here: names, crops, kinds, evidence, refusals, other back-ends."""

import json
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from agrotools.calling import get_tool
from agrotools.calling.workspace import artifacts_in
from agrotools.core import ToolError
from agrotools.knowledge.kb_names import kb_names
from agrotools_tools.recognition.diagnose_pest_disease import HEALTHY, Diagnosis, symptoms_of
from agrotools_tools.recognition.labelled_pictures import read_labelled
from agrotools_tools.recognition.pack_training import train_pack
from agrotools_tools.recognition.packs import pack_path
from support.labelled_pictures import PLANTS, plant_picture, write_table
from support.tiny_nets import Colour, use_tiny_strangers, write_tiny_net
from support.tool_errors import tool_error
from support.vision_model import Eye

ROOT = Path(__file__).resolve().parents[3]
LEAVES: dict[str, Colour] = {
    "bean_healthy": (40, 160, 40),
    "bean_bean_rust": (170, 90, 40),
    "coffee_rust": (230, 160, 40),
    "coffee_leaf_miner": (120, 60, 120),
}
CROPS = {
    "bean": ["bean_healthy", "bean_bean_rust"],
    "coffee": ["coffee_rust", "coffee_leaf_miner"],
    "blackgram": [],
}
BOARD, GREEN, BROWN = (225, 225, 230), (70, 130, 50), (110, 65, 35)


@pytest.fixture(autouse=True)
def net_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "nets"
    write_tiny_net(folder, "leaves", LEAVES, threshold=0.55, crops=CROPS)
    monkeypatch.setattr("agrotools_tools.vision.nets.nets_folder", lambda: folder)
    use_tiny_strangers(monkeypatch, folder)
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    return folder


def saved(folder: Path, colour: Colour, name: str = "leaf.png") -> Path:
    Image.fromarray(plant_picture(colour, 1, 96)).save(folder / name)
    return folder / name


def diagnosed(image: Path, backend: str | None = None, **arguments: Any) -> Diagnosis:
    with artifacts_in(image.parent / "made", backend=backend):
        return get_tool("diagnose_pest_disease")(image=image, **arguments)


fault = partial(tool_error, diagnosed)


def test_diseases_get_the_names_of_the_knowledge_base_beside_health_and_pests(
    tmp_path: Path,
) -> None:
    found = diagnosed(saved(tmp_path, LEAVES["coffee_rust"]), top_k=2)
    best = found.candidates[0]
    assert found.best == best.kb_id == "disease.coffee_leaf_rust"
    assert (best.label, best.kind, best.scientific_name) == (
        "coffee_rust",
        "disease",
        "Hemileia vastatrix",
    )
    assert len(found.candidates) == 2
    assert not found.abstained
    assert (tmp_path / "made" / found.overlay.name).is_file()
    healthy = diagnosed(saved(tmp_path, LEAVES["bean_healthy"]))
    assert healthy.best == "bean_healthy"
    assert (healthy.candidates[0].kind, healthy.candidates[0].kb_id) == ("healthy", None)
    assert healthy.candidates[0].common_name == "healthy bean leaf"
    miner = diagnosed(saved(tmp_path, LEAVES["coffee_leaf_miner"]), kind="disease")
    assert (miner.best, miner.candidates[0].kind) == ("pest.coffee_leaf_miner", "pest")
    assert any("damage by a pest" in note for note in miner.notes)


@pytest.mark.parametrize("crop", ["bean", "Beans", "Phaseolus vulgaris", "crop bean"])
def test_a_crop_narrows_the_choice(tmp_path: Path, crop: str) -> None:
    image = saved(tmp_path, LEAVES["coffee_rust"])
    if crop == "crop bean":
        assert fault(image, crop=crop).kind == "backend_unavailable"
        return
    found = diagnosed(image, crop=crop)
    assert {one.label for one in found.candidates} == set(CROPS["bean"])
    assert sum(one.score for one in found.candidates) == pytest.approx(1)
    assert "contradicts_crop" in found.flags
    right = diagnosed(saved(tmp_path, LEAVES["bean_bean_rust"]), crop=crop)
    assert (right.best, right.flags) == ("disease.bean_rust", ())


def test_unknown_crops_and_pests_need_a_pack(tmp_path: Path) -> None:
    error = fault(leaf_with_spots(tmp_path), crop="apple")
    assert (error.kind, error.argument) == ("backend_unavailable", "crop")
    assert error.candidates == ("bean", "coffee", "blackgram")
    assert "% of the leaf has lost its green" in error.message
    assert "packs train --images DIR" in (error.setup or "")
    error = fault(saved(tmp_path, LEAVES["coffee_rust"]), kind="pest")
    assert (error.kind, error.argument) == ("backend_unavailable", "kind")


def test_an_unknown_leaf_is_refused_with_candidates(tmp_path: Path, net_folder: Path) -> None:
    write_tiny_net(net_folder, "leaves", LEAVES, threshold=0.99, crops=CROPS)
    between: Any = tuple(
        int(np.mean(p))
        for p in zip(LEAVES["bean_bean_rust"], LEAVES["coffee_leaf_miner"], strict=True)
    )
    error = fault(saved(tmp_path, between))
    assert error.kind == "low_confidence"
    assert set(error.candidates) >= {"disease.bean_rust", "pest.coffee_leaf_miner"}
    write_tiny_net(net_folder, "leaves", LEAVES, threshold=0.5, crops={"bean": CROPS["bean"]})
    image = saved(tmp_path, LEAVES["coffee_rust"])
    for given in ({}, {"crop": "bean"}):
        error = fault(image, **given)
        assert (error.kind, any("coffee" in name for name in error.candidates)) == (
            "low_confidence",
            False,
        )
    assert fault(image, crop="coffee").kind == "backend_unavailable"


def test_a_pack_of_pests(tmp_path: Path) -> None:
    names = {
        "aphids": PLANTS["green leaf"],
        "beetle": PLANTS["brown leaf"],
        "Myzus persicae": PLANTS["yellow leaf"],
    }
    rows = []
    for number, (label, colour) in enumerate(names.items()):
        for place in range(6):
            Image.fromarray(plant_picture(colour, 100 * number + place)).save(
                tmp_path / f"{number}{place}.png"
            )
            rows.append((f"{number}{place}.png", label))
    train_pack(
        read_labelled(tmp_path, write_table(tmp_path / "labels.csv", rows)), pack_path("pests")
    )
    image = tmp_path / "new.png"
    Image.fromarray(plant_picture(PLANTS["brown leaf"], 900)).save(image)
    found = diagnosed(image, "pack:pests", kind="pest")
    assert (found.best, found.candidates[0].kind) == ("beetle", "other")
    assert (found.evidence.lesion_pct, found.box) == (None, None)
    by_label = {one.label: one for one in found.candidates}
    assert by_label["aphids"].kb_id == "pest.aphids"


def test_a_pack_of_leaves_asks_for_the_crop_and_one_of_pests_does_not(tmp_path: Path) -> None:
    image = tmp_path / "new.png"
    for name, labels in (
        ("leaves", ("bean rust", "bean healthy")),
        ("pests", ("aphids", "whiteflies")),
    ):
        folder = tmp_path / name
        for number, (label, colour) in enumerate(zip(labels, PLANTS.values(), strict=False)):
            for place in range(6):
                (folder / label).mkdir(parents=True, exist_ok=True)
                picture = Image.fromarray(plant_picture(colour, 100 * number + place))
                picture.save(folder / label / f"{place}.png")
        train_pack(read_labelled(folder), pack_path(name))
    Image.fromarray(plant_picture(PLANTS["green leaf"], 900)).save(image)
    train_pack(read_labelled(tmp_path / "pests"), pack_path("of_mango"), shows=("mango", "soil"))
    assert "crop_not_checked" not in diagnosed(image, "pack:of_mango", crop="mango").flags
    with pytest.raises(ToolError, match="knows no leaves of coffee, but of mango"):
        diagnosed(image, "pack:of_mango", crop="coffee")
    assert "crop_not_given" in diagnosed(image, "pack:leaves").flags
    assert "crop_not_given" not in diagnosed(image, "pack:leaves", crop="bean").flags
    assert "crop_not_given" not in diagnosed(image, "pack:pests", kind="pest").flags


def pack_of(folder: Path, name: str, labels: tuple[str, ...], shows: tuple[str, ...] = ()) -> str:
    """Train a pack with a colour per label, of which the first is green, and return its back-end."""
    rows = []
    for number, (label, colour) in enumerate(zip(labels, PLANTS.values(), strict=False)):
        for place in range(6):
            image = f"{name}{number}{place}.png"
            Image.fromarray(plant_picture(colour, 100 * number + place)).save(folder / image)
            rows.append((image, label))
    table = write_table(folder / f"{name}.csv", rows)
    train_pack(read_labelled(folder, table), pack_path(name), shows=shows)
    return f"pack:{name}"


@pytest.fixture
def green(tmp_path: Path) -> Path:
    image = tmp_path / "new.png"
    Image.fromarray(plant_picture(PLANTS["green leaf"], 900)).save(image)
    return image


@pytest.mark.parametrize(
    ("labels", "shows"),
    [
        (("healthy", "anthracnose"), ("banana",)),
        (("banana_healthy", "banana sigatoka"), ()),
        (("folha de bananeira saudável", "sigatoka amarela da bananeira"), ()),
        (("healthy", "anthracnose"), ("dragon fruit",)),
        (("banana_healthy", "dragon fruit rot"), ("banana", "dragon fruit")),
    ],
)
def test_a_pack_refuses_a_crop_that_its_pictures_do_not_show(
    tmp_path: Path, green: Path, labels: tuple[str, ...], shows: tuple[str, ...]
) -> None:
    backend = pack_of(tmp_path, "mine", labels, shows)
    with pytest.raises(ToolError, match="knows no leaves of tomato, but of") as refusal:
        diagnosed(green, backend, crop="tomato")
    assert refusal.value.argument == "crop"
    own = "dragon fruit" if shows == ("dragon fruit",) else "banana"
    found = diagnosed(green, backend, crop=own)
    assert found.candidates[0].label == labels[0]
    assert "crop_not_checked" not in found.flags


@pytest.mark.parametrize(
    ("labels", "shows"),
    [
        (("healthy", "anthracnose"), ()),  # nothing says the crop, as in packs of earlier versions
        (("healthy", "anthracnose"), ("any",)),
        (("green leaf", "brown leaf"), ("any",)),
    ],
)
def test_a_pack_that_does_not_know_its_crop_says_so(
    tmp_path: Path, green: Path, labels: tuple[str, ...], shows: tuple[str, ...]
) -> None:
    backend = pack_of(tmp_path, "mine", labels, shows)
    assert "crop_not_checked" in diagnosed(green, backend, crop="tomato").flags
    assert "crop_not_checked" not in diagnosed(green, backend).flags


def test_labels_of_another_crop_are_no_candidates(tmp_path: Path, green: Path) -> None:
    backend = pack_of(tmp_path, "mine", ("potato_healthy", "tomato_healthy", "tomato wilt"))
    assert diagnosed(green, backend, crop="potato").best == "potato_healthy"
    on_tomato = diagnosed(green, backend, crop="tomato")
    assert "potato_healthy" not in {one.label for one in on_tomato.candidates}
    assert "contradicts_crop" in on_tomato.flags
    colours = pack_of(tmp_path, "colours", ("orange rust", "brown rust"), shows=("wheat",))
    assert diagnosed(green, colours, crop="wheat").candidates[0].label == "orange rust"


def test_a_pack_of_weeds_says_that_it_is_of_no_diseases(tmp_path: Path, green: Path) -> None:
    backend = pack_of(tmp_path, "weeds", ("lantana", "parthenium"))
    assert "not_of_diseases_or_pests" in diagnosed(green, backend).flags


def leaf_with_spots(folder: Path, spots: int = 6, name: str = "spots.png") -> Path:
    picture = Image.new("RGB", (480, 320), BOARD)
    draw = ImageDraw.Draw(picture)
    draw.ellipse((60, 60, 420, 260), fill=GREEN)
    for number in range(spots):
        x, y = 130 + 60 * (number % 4), 120 + 60 * (number // 4)
        draw.ellipse((x, y, x + 28, y + 28), fill=BROWN)
    noise = np.random.default_rng(0).normal(0, 3, (320, 480, 3))
    Image.fromarray(np.clip(np.asarray(picture) + noise, 0, 255).astype(np.uint8)).save(
        folder / name
    )
    return folder / name


def test_evidence_counts_what_was_drawn(tmp_path: Path) -> None:
    pixels = np.asarray(Image.open(leaf_with_spots(tmp_path)))
    seen, box = symptoms_of(pixels)
    true_pct = 100 * 6 * 14**2 / (180 * 100)
    assert (seen.lesion_pct, seen.lesion_shape) == (pytest.approx(true_pct, abs=2), "spots")
    assert any("brown" in colour for colour in seen.symptom_colours)
    assert box is not None
    assert np.abs(np.array(box) - (60, 60, 421, 261)).max() <= 6
    clean, _ = symptoms_of(np.asarray(Image.open(leaf_with_spots(tmp_path, 0))))
    assert (clean.lesion_shape, clean.symptom_colours) == ("none", ())
    assert symptoms_of(np.full((50, 50, 3), 128, np.uint8))[1] is None


def test_box_and_evidence_are_of_the_region(tmp_path: Path, net_folder: Path) -> None:
    write_tiny_net(net_folder, "leaves", LEAVES, threshold=0.0, crops=CROPS)
    image = leaf_with_spots(tmp_path)
    whole = diagnosed(image)
    part = diagnosed(image, region=[30, 30, 460, 290])
    assert whole.box is not None
    assert part.box is not None
    assert np.abs(np.array(whole.box) - part.box).max() <= 6


def test_a_large_photograph_gets_the_answer_of_a_small_one(
    tmp_path: Path, net_folder: Path
) -> None:
    """It is decoded smaller; the box is in pixels of the file all the same."""
    write_tiny_net(net_folder, "leaves", LEAVES, threshold=0.0, crops=CROPS)
    small = Image.open(leaf_with_spots(tmp_path)).convert("RGB")
    large = tmp_path / "large.jpg"
    small.resize((8 * small.width, 8 * small.height), Image.Resampling.NEAREST).save(large)
    small.save(tmp_path / "small.jpg", quality=95)
    found, expected = diagnosed(large), diagnosed(tmp_path / "small.jpg")
    assert found.box is not None
    assert expected.box is not None
    assert np.abs(np.array(found.box) - 8 * np.array(expected.box)).max() <= 8 * 6
    assert [one.label for one in found.candidates] == [one.label for one in expected.candidates]
    part = diagnosed(large, region=[240, 240, 3680, 2320])
    assert part.box is not None
    assert np.abs(np.array(part.box) - found.box).max() <= 8 * 6


def said(image: Path, model: Eye, **arguments: Any) -> Diagnosis:
    with artifacts_in(image.parent / "made", backend="vlm", vision=model):
        return get_tool("diagnose_pest_disease")(image=image, **arguments)


def test_a_vision_model_chooses_from_the_knowledge_base_or_none(tmp_path: Path) -> None:
    title = next(entry.title for entry in kb_names().entries if entry.id == "disease.bean_rust")
    model = Eye({"candidates": [{"name": title, "score": 0.8}, {"name": HEALTHY, "score": 0.1}]})
    found = said(saved(tmp_path, LEAVES["coffee_rust"]), model, crop="bean")
    assert (found.best, found.candidates[0].score) == ("disease.bean_rust", 0.8)
    assert found.candidates[1].kind == "healthy"
    assert "model_opinion" in found.flags
    assert "Hemileia" not in model.asked[0].text
    assert "bean rust" in model.asked[0].text
    image = saved(tmp_path, LEAVES["coffee_rust"])
    assert tool_error(said, image, Eye({"candidates": []})).kind == "low_confidence"
    assert (
        tool_error(said, image, Eye("It looks sick.", {"candidates": [{"name": "x"}]})).kind
        == "tool_failed"
    )


def test_every_label_of_the_pool_has_an_entry() -> None:
    names = kb_names()
    labels = (
        "bean_angular_leaf_spot bean_bean_rust bean_healthy blackgram_anthracnose blackgram_healthy "
        "blackgram_leaf_crinkle blackgram_powdery_mildew blackgram_yellow_mosaic chilli_cercospora chilli_healthy "
        "chilli_leaf_curl_mites_thrips chilli_nutrient_deficiency chilli_powdery_mildew citrus_black_spot "
        "citrus_canker citrus_greening citrus_healthy citrus_melanose coffee_brown_spot_phoma coffee_cercospora "
        "coffee_healthy coffee_leaf_miner coffee_rust chinee_apple lantana parkinsonia parthenium prickly_acacia "
        "rubber_vine siam_weed snake_weed"
    ).split()
    assert [label for label in labels if names.of_shipped(label) is None] == []
    assert names.of_shipped("negative") is None
    rust = names.of_shipped("bean_bean_rust")
    assert rust is not None
    assert names.is_on(rust, "common beans") or names.is_on(rust, "bean")
    assert names.of_name("angular leaf spot", ("disease",), "bean") is not None
    assert names.of_name("no such thing", ("disease",)) is None


def test_scores_of_a_crop_that_are_not_calibrated_are_withheld(
    tmp_path: Path, net_folder: Path
) -> None:
    reasons = {"bean": "4 groups to calibrate them on"}
    write_tiny_net(net_folder, "leaves", LEAVES, threshold=0.55, crops=CROPS, uncalibrated=reasons)
    few = diagnosed(saved(tmp_path, LEAVES["bean_bean_rust"]))
    assert few.flags == ("crop_not_given", "not_calibrated", "uncertain")
    assert "No score for bean: 4 groups to calibrate them on." in few.notes
    assert few.best is not None
    assert [one.score for one in few.candidates] == [None] * len(few.candidates)
    enough = diagnosed(saved(tmp_path, LEAVES["coffee_rust"]))
    assert not {"not_calibrated", "uncertain"} & set(enough.flags)
    assert all(one.score is not None for one in enough.candidates)


def test_the_shipped_net_says_where_it_is_calibrated_and_on_how_many_subjects() -> None:
    shipped = json.loads(
        (files("agrotools_tools") / "data/nets/leaves.json").read_text(encoding="utf-8")
    )
    counted = json.loads(
        (ROOT / "studies/accuracy/calibration_subjects.json").read_text(encoding="utf-8")
    )
    subjects = counted["calibrated_on"]["leaves"]["subjects_by_crop"]
    assert shipped["calibration_subjects"] == {crop: subjects[crop] for crop in shipped["crops"]}
    assert set(shipped["uncalibrated"]) == {"bean", "chilli"}
    assert shipped["calibration_subjects"]["bean"] < 40
    assert shipped["figures"]["chilli, crop known"]["ece_chance"] < 0.01
