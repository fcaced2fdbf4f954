"""Calibrations of open models: their fit on synthetic shares, and the tools with a stand-in for the model."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

from agrotools.cli.packs import app
from agrotools.core import ToolError, UsageError
from agrotools.knowledge.kb_names import kb_names
from agrotools.runner.plan import tool_data
from agrotools.tools import get_tool
from agrotools.tools.cache import ResultCache
from agrotools.tools.recognition.calibration import Calibration, read_calibration
from agrotools.tools.recognition.calibration_fitting import (
    Answers,
    calibrate,
    conformal_threshold,
    cross_fitted_figures,
    fit,
)
from agrotools.tools.recognition.diagnose_pest_disease import HEALTHY, names_to_choose
from agrotools.tools.recognition.identify_weed import WeedIdentity, identify_weed
from agrotools.tools.recognition.labelled_pictures import LabelledImage, pictures_below, read_labelled
from agrotools.tools.recognition.net import Floats, probabilities
from agrotools.tools.services.vision import MOST_NAMES
from agrotools.tools.workspace import artifacts_in
from agrotools.vision.learned import description, weights
from agrotools.vision.strangeness import Vector, unit_rows

WEEDS = ["lantana", "parkinsonia", "parthenium", "siam weed"]
TRUE_TEMPERATURE = 1.5


def synthetic(number: int, seed: int, names: int = 10, temperature: float = 1.0) -> Answers:
    """Answers that are perfect probabilities at this temperature, each of its own subject."""
    draw = np.random.default_rng(seed)
    logits = draw.normal(0, 3, (number, names))
    directions = unit_rows(draw.normal(3, 1, (number, 8)).astype(np.float32))
    classes = np.array([draw.choice(names, p=shares) for shares in probabilities(logits, temperature)])
    return Answers(np.log(probabilities(logits, 1.0)), classes, np.arange(number), {"embedding": directions})


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_that_makes_the_shares_probabilities_is_found(temperature: float) -> None:
    """Perfect probabilities (temperature 1) therefore stay as they are."""
    answers = synthetic(1500, 1, temperature=temperature)
    assert fit(answers).temperature == pytest.approx(temperature, rel=0.1)
    figures, chance = cross_fitted_figures(answers)
    assert chance > 0.01
    assert figures.calibration_error < figures.error_by_chance * 2
    if temperature != 1:
        assert figures.calibration_error < figures.uncalibrated_error


@pytest.mark.parametrize("number", [40, 100])
def test_the_threshold_keeps_new_pictures(number: int) -> None:
    shares: list[float] = []
    for seed in range(40):
        answers, new = synthetic(number, seed), synthetic(300, 1000 + seed)
        shares.append(float(fit(answers).judge(new.logits, new.described, answers.described)[1].mean()))
    assert np.mean(shares) >= 0.95 - 2 * np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) < 0.99


def test_pictures_of_a_subject_are_not_references_of_each_other() -> None:
    """Copies of a picture would be at no distance, and the threshold would refuse every other picture."""
    one = synthetic(100, 9)
    twice = Answers(
        np.repeat(one.logits, 4, axis=0),
        np.repeat(one.classes, 4),
        np.repeat(one.subjects, 4),
        {"embedding": np.repeat(one.described["embedding"], 4, axis=0)},
    )
    figures, _ = cross_fitted_figures(twice)
    assert (figures.pictures, figures.subjects) == (400, 100)
    assert figures.kept > 0.9


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=90),
    st.randoms(use_true_random=False),
    st.sampled_from([0.8, 0.9, 0.95]),
)
def test_the_threshold_is_the_conformal_quantile_of_subjects(sizes: list[int], draw: Any, keep: float) -> None:
    subjects = np.repeat(np.arange(len(sizes)), sizes)
    scores = np.array([draw.choice([0.1, 0.2, 0.3, draw.random()]) for _ in subjects])
    by_subject = 1 / np.array(sizes, np.float64)[subjects]
    threshold, room = conformal_threshold(scores, by_subject, keep), (1 - keep) * (len(sizes) + 1)
    assert by_subject[scores > threshold].sum() + 1 <= room + 1e-6 or threshold == np.inf
    if (below := scores[scores < threshold]).size:
        assert by_subject[scores > below.max()].sum() + 1 > room - 1e-6


def shares_of(pixels: np.ndarray, names: int) -> Floats:
    """Shares that depend on the picture alone; those of a dark one are even."""
    draw = np.random.default_rng(int(pixels.astype(np.int64).sum()))
    return probabilities(draw.normal(0, 0.3 if pixels.max() < 100 else 3, (1, names)), 1.0)[0]


def write_picture(path: Path, seed: int, brightest: int = 255) -> np.ndarray:
    pixels = np.random.default_rng(seed).integers(0, brightest, (16, 16, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return pixels


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Back-end of a folder of weights whose model is :func:`shares_of`; names in another order get the same shares."""
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "open_clip_config.json").write_text("{}")
    (folder / "open_clip_model.safetensors").write_bytes(b"weights")

    def similarity_shares(pixels: np.ndarray, names: list[str], _: weights.Weights) -> tuple[Floats, Vector]:
        direction = unit_rows(pixels.mean(axis=(0, 1), dtype=np.float32)[None])[0]
        return shares_of(pixels, len(names))[np.argsort(np.argsort(names))], direction

    monkeypatch.setattr(description, "similarity_shares", similarity_shares)
    monkeypatch.setitem(weights.KINDS, "open_clip", weights.ModelKind("imageomics/bioclip", ()))
    return f"learned:{folder}"


def write_weeds(folder: Path, number: int = 120, labels: list[str] = WEEDS) -> Path:
    """Pictures in folders by their labels, drawn so that the shares are probabilities at :data:`TRUE_TEMPERATURE`."""
    for seed in range(number):
        pixels = write_picture(folder / "one.png", seed)
        logits = np.log(shares_of(pixels, len(WEEDS)))[None]
        place = np.random.default_rng(seed).choice(len(WEEDS), p=probabilities(logits, TRUE_TEMPERATURE)[0])
        target = folder / labels[place] / f"{seed}.png"
        target.parent.mkdir(exist_ok=True)
        (folder / "one.png").rename(target)
    return folder


def calibrated(model: str, pictures: Path, **more: Any) -> Calibration:
    return calibrate(model, "identify_weed", read_labelled(pictures, to_learn=False), {"candidates": WEEDS}, **more)


def identified(model: str, image: Path, names: list[str] = WEEDS, **more: Any) -> WeedIdentity:
    with artifacts_in(image.parent / "out", backend=model):
        return identify_weed(image, candidates=names, **more)


def test_without_a_calibration_names_are_ranked_without_scores(model: str, tmp_path: Path) -> None:
    shares = shares_of(write_picture(tmp_path / "a.png", 4), len(WEEDS))
    found = identified(model, tmp_path / "a.png")
    assert [one.label for one in found.candidates] == [WEEDS[place] for place in np.argsort(-shares)[:3]]
    assert [one.score for one in found.candidates] == [None] * 3
    assert (found.best is None) is bool(shares.max() < 0.5)
    assert "not_calibrated" in found.flags
    assert any("agrotools tools packs calibrate" in note for note in found.notes)


def test_with_a_calibration_names_have_scores_and_strange_pictures_are_refused(model: str, tmp_path: Path) -> None:
    pictures = write_weeds(tmp_path / "pictures")
    for seed in range(20):
        write_picture(tmp_path / "strangers" / f"{seed}.png", seed, brightest=90)
    made = calibrated(model, pictures, strangers=tmp_path / "strangers")
    assert made.temperature == pytest.approx(TRUE_TEMPERATURE, rel=0.3)
    assert made.figures.subjects == 120
    assert (made.figures.strangers, made.figures.named_strangers) == (20, 0)
    assert (made.figures.refused_strangers or 0) > 0.5
    assert read_calibration(made.path) == made

    shares = shares_of(write_picture(tmp_path / "a.png", 4), len(WEEDS))
    found = identified(model, tmp_path / "a.png", WEEDS[::-1], top_k=4)
    expected = probabilities(np.log(shares)[None], made.temperature)[0]
    assert {one.label: one.score for one in found.candidates} == pytest.approx(dict(zip(WEEDS, expected, strict=True)))
    assert "not_calibrated" not in found.flags
    assert any("calibrated on 120 subjects" in note for note in found.notes)

    write_picture(tmp_path / "dark.png", 3, brightest=90)
    with pytest.raises(ToolError, match="so nothing is named") as caught:
        identified(model, tmp_path / "dark.png")
    assert caught.value.kind == "low_confidence"
    assert len(caught.value.candidates) == 3


def test_a_calibration_holds_for_its_weights_and_names_alone(model: str, tmp_path: Path) -> None:
    calibrated(model, write_weeds(tmp_path / "pictures"))
    write_picture(tmp_path / "a.png", 4)
    assert "not_calibrated" in identified(model, tmp_path / "a.png", WEEDS[:3]).flags
    Path(model.removeprefix("learned:"), "open_clip_model.safetensors").write_bytes(b"other weights")
    assert "not_calibrated" in identified(model, tmp_path / "a.png").flags


def test_a_calibration_is_part_of_cache_keys_and_manifests(model: str, tmp_path: Path) -> None:
    tool = get_tool("identify_weed")
    call = {"image": "a.png", "region": None, "candidates": WEEDS, "top_k": 3}
    write_picture(tmp_path / "a.png", 4)

    def identity() -> tuple[str, dict[str, str]]:
        paths: Mapping[str, Path] = {"a.png": tmp_path / "a.png"}
        return ResultCache().key(tool, model, call, paths, {}), tool_data([tool.name], {tool.name: model})

    pictures = write_weeds(tmp_path / "pictures")
    seen = [identity()]
    calibrated(model, pictures)
    seen.append(identity())
    calibrate(model, "identify_weed", read_labelled(pictures, to_learn=False)[:80], {"candidates": WEEDS})
    seen.append(identity())
    assert len({key for key, _ in seen}) == len({data[tool.name] for _, data in seen}) == 3


def test_scores_are_withheld_where_the_calibration_says_so_but_not_the_refusal(model: str, tmp_path: Path) -> None:
    made = calibrated(model, write_weeds(tmp_path / "pictures"))
    made.path.write_text(made.model_copy(update={"withheld": "too far off"}).model_dump_json())
    write_picture(tmp_path / "a.png", 4)
    found = identified(model, tmp_path / "a.png")
    assert [one.score for one in found.candidates] == [None] * 3
    assert {"not_calibrated"} <= set(found.flags)
    assert "no scores: too far off" in found.notes
    write_picture(tmp_path / "dark.png", 3, brightest=90)
    with pytest.raises(ToolError, match="so nothing is named"):
        identified(model, tmp_path / "dark.png")


def test_copies_of_a_picture_are_one_subject(model: str, tmp_path: Path) -> None:
    pictures = write_weeds(tmp_path / "pictures", 50)
    for path in list(pictures_below(pictures))[:10]:
        path.with_name(f"copy-{path.name}").write_bytes(path.read_bytes())
    figures = calibrated(model, pictures).figures
    assert (figures.pictures, figures.subjects) == (60, 50)


def test_a_damaged_calibration_is_an_error_and_listed_as_a_fault(model: str, tmp_path: Path) -> None:
    made = calibrated(model, write_weeds(tmp_path / "pictures"))
    listed = CliRunner().invoke(app, ["list"]).output
    assert "identify_weed, 4 names, 120 pictures of 120 subjects" in listed
    write_picture(tmp_path / "a.png", 4)
    references = made.references_path.read_bytes()
    made.references_path.write_bytes(references[:-1])
    with pytest.raises(ToolError, match=r"pictures of the calibration .* are not those"):
        identified(model, tmp_path / "a.png")
    assert "fault: the pictures of the calibration" in CliRunner().invoke(app, ["list"]).output
    made.references_path.write_bytes(references)
    made.path.write_text(made.model_copy(update={"traits_version": 0}).model_dump_json())
    with pytest.raises(ToolError, match="another version of agrotools"):
        identified(model, tmp_path / "a.png")
    made.path.write_text("{}")
    with pytest.raises(ToolError, match=r"calibration-.*faulty description") as caught:
        identified(model, tmp_path / "a.png")
    assert caught.value.kind == "backend_unavailable"
    assert "fault: the calibration" in CliRunner().invoke(app, ["list"]).output
    other = made.model_copy(update={"tool": "diagnose_pest_disease"})
    made.path.write_text(other.model_dump_json())
    with pytest.raises(ToolError, match="another model, tool or list of names"):
        identified(model, tmp_path / "a.png")


def test_the_command_prints_figures(model: str, tmp_path: Path) -> None:
    labels = ["bean rust", "bean_angular_leaf_spot", "healthy", "disease.bean_common_mosaic"]
    pictures = write_weeds(tmp_path / "pictures", 60, labels)
    call = ["calibrate", model, "--images", str(pictures), "--tool", "diagnose_pest_disease", "-a", "crop=bean"]
    shown = CliRunner().invoke(app, call)
    assert shown.exit_code == 0, shown.output
    for part in ("60 pictures of 60 subjects", "first candidate right 0.", "kept ", "calibration error 0."):
        assert part in shown.output
    found = json.loads(CliRunner().invoke(app, [*call, "--json"]).stdout)
    assert found["figures"]["subjects"] == 60
    assert "healthy leaf" in found["names"]
    assert Path(found["path"]).is_file()
    write_picture(tmp_path / "a.png", 4)
    with artifacts_in(tmp_path / "out", backend=model):
        diagnosed = get_tool("diagnose_pest_disease")(image=tmp_path / "a.png", crop="bean", kind="auto")
        assert "not_calibrated" not in diagnosed.flags
        diagnosed = get_tool("diagnose_pest_disease")(image=tmp_path / "a.png", crop="bean", kind="disease")
        assert "not_calibrated" in diagnosed.flags


def _spoil(pictures: Path) -> dict[str, Any]:
    next(pictures_below(pictures)).write_bytes(b"no picture")
    return {}


def _add_unknown(pictures: Path) -> dict[str, Any]:
    write_picture(pictures / "triffid" / "a.png", 1)
    return {}


def _remove_most(pictures: Path) -> dict[str, Any]:
    for path in list(pictures_below(pictures))[39:]:
        path.unlink()
    return {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_spoil, "1 of 45 pictures cannot be read"),
        (_add_unknown, "none of the 4 names means triffid"),
        (_remove_most, "39 subjects to calibrate on, and 40 are needed"),
        (lambda _: {"tool": "count_objects"}, "count_objects gives no names"),
        (lambda _: {"backend": "pack:mine"}, "pack:mine is not an open model"),
        (lambda _: {"backend": "learned:owner/missing"}, "are not on this machine"),
        (lambda _: {"arguments": {"top_k": 1}}, "top_k does not decide on the names of identify_weed"),
        (lambda folder: {"strangers": folder / "nowhere"}, "nowhere is not a folder"),
        (lambda folder: {"strangers": folder.parent / "cache"}, "is not a folder"),
    ],
)
def test_what_cannot_be_calibrated_is_one_error_with_a_hint(
    model: str, tmp_path: Path, change: Callable[[Path], dict[str, Any]], message: str
) -> None:
    pictures = write_weeds(tmp_path / "pictures", 45)
    call: dict[str, Any] = {"backend": model, "tool": "identify_weed", "arguments": {"candidates": WEEDS}}
    call |= change(pictures)
    with pytest.raises(UsageError) as caught:
        calibrate(pictures=read_labelled(pictures, to_learn=False), **call)
    assert message in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert not (tmp_path / "cache" / "packs").exists()


def test_an_ambiguous_label_is_an_error(model: str, tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png", 1)
    pictures = [LabelledImage(tmp_path / "a.png", "angular leaf spot", str(number)) for number in range(40)]
    with pytest.raises(UsageError, match=r"angular leaf spot may mean angular leaf spot of bean .* or ") as caught:
        calibrate(model, "diagnose_pest_disease", pictures, {})
    assert "crop" in str(caught.value.hint)


def test_a_healthy_leaf_is_among_the_names_however_many_there_are() -> None:
    names = names_to_choose("auto", None, kb_names())
    assert len(names) == MOST_NAMES
    assert HEALTHY in names
    assert HEALTHY not in names_to_choose("pest", None, kb_names())
