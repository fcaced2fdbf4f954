"""Degraded pictures: effect of the doses on pixels, who sees them, samples left out, and identity of the run."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from PIL import Image

import agrotools as at
from agrotools.core import Action, Answer, SampleFile, SampleView, Step, UsageError
from agrotools.formats.benchmark import load_folder
from agrotools.runner.config import EvalConfig
from agrotools.runner.config_file import read_config
from agrotools.runner.degradation import Degradation, degrade_benchmark, degrade_file
from support.benchmark_folders import number_sample, write_folder
from support.picture_files import write_raster

PHOTO = SampleFile(name="a.jpg", path="a", kind="image")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "degraded"


def photo(folder: Path, pixels: Any = None, name: str = "a.png") -> Path:
    if pixels is None:
        pixels = np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / name)
    return folder / name


def pixels_of(content: bytes) -> np.ndarray[Any, Any]:
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image.convert("RGB")).astype(float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("blr=2", "unknown dose 'blr'"),
        ("blur=x", "valid number"),
        ("haze=1", "less than 1"),
        ("noise=nan", "less than or equal to 128"),
        ("jpeg=30.5", "valid integer"),
        ("blur=1,blur=2", "given twice"),
        ("blur=1_0", "valid number"),
        ("blur=1,", "unknown dose ''"),
    ],
)
def test_a_dose_that_is_none_is_refused(text: str, message: str):
    with pytest.raises(UsageError, match=message):
        Degradation.parse(text)
    with pytest.raises(UsageError, match=message):
        EvalConfig.of(degrade=text)


@pytest.mark.parametrize("doses", ["", " "])
def test_an_empty_dose_on_the_command_line_is_refused(doses: str):
    with pytest.raises(UsageError, match="--degrade is empty"):
        read_config(None, {"benchmark": "embedded", "degrade": [doses]}, ())
    assert (
        read_config(None, {"benchmark": "embedded", "degrade": ["none"]}, ())[0].benchmark.degrade
        == ""
    )


def test_equal_doses_have_one_text():
    assert (
        EvalConfig.of(degrade=" jpeg=30, blur=1.50,haze=0").benchmark.degrade == "blur=1.5,jpeg=30"
    )
    assert EvalConfig.of(degrade="none").benchmark.degrade == ""


def test_doses_change_what_they_name(tmp_path: Path):
    path = photo(tmp_path)
    clean = pixels_of(path.read_bytes())

    def degraded(text: str) -> np.ndarray[Any, Any]:
        return pixels_of(degrade_file(path, PHOTO, Degradation.parse(text), 1))

    assert np.array_equal(degraded("none"), clean)
    assert degraded("blur=2").std() < degraded("blur=1").std() < clean.std()
    blocks = degraded("gsd=4")
    assert blocks.shape == clean.shape
    assert blocks.std() < clean.std() / 2
    assert blocks.mean() == pytest.approx(clean.mean(), abs=1)
    assert degraded("haze=0.5") == pytest.approx(clean / 2 + 115, abs=0.51)
    grey = photo(tmp_path, np.full((60, 80, 3), 128, np.uint8), "grey.png")
    noisy = pixels_of(degrade_file(grey, PHOTO, Degradation(noise=5), 1))
    assert noisy.std() == pytest.approx(5, rel=0.1)
    assert np.array_equal(noisy[..., 0], noisy[..., 2])  # a grey picture stays grey
    assert (
        np.abs(degraded("jpeg=10") - clean).mean() > np.abs(degraded("jpeg=90") - clean).mean() > 0
    )


def test_orientation_focal_length_and_transparency_are_kept(tmp_path: Path):
    exif = Image.Exif()
    exif[0x0112] = 6
    exif.get_ifd(0x8769)[0xA405] = 28
    Image.new("RGB", (80, 60)).save(tmp_path / "turned.jpg", exif=exif)
    for doses in ("blur=1", "jpeg=50"):
        with Image.open(
            io.BytesIO(degrade_file(tmp_path / "turned.jpg", PHOTO, Degradation.parse(doses), 1))
        ) as image:
            assert image.size == (60, 80)
            assert 0x0112 not in image.getexif()
            assert image.getexif().get_ifd(0x8769)[0xA405] == 28
    rgba = np.full((40, 40, 4), 200, np.uint8)
    rgba[:20, :, 3], rgba[20:, :, 3] = 0, 255
    with Image.open(
        io.BytesIO(degrade_file(photo(tmp_path, rgba), PHOTO, Degradation(blur=1, jpeg=50), 1))
    ) as image:
        assert np.array_equal(np.asarray(image)[..., 3], rgba[..., 3])


def test_a_raster_keeps_type_place_names_and_missing_data(tmp_path: Path):
    bands = np.random.default_rng(0).integers(1000, 4000, (5, 30, 40)).astype(np.uint16)
    bands[:, :5] = 0
    place = Affine(0.1, 0, 500000, 0, -0.1, 5000000)
    names = ("B", "G", "R", "RE", "NIR")
    path = write_raster(
        tmp_path / "a.tif", bands, names, nodata=0, crs="EPSG:32632", transform=place
    )
    file = SampleFile(name="a.tif", path="a", kind="raster", bands=names)
    (tmp_path / "b.tif").write_bytes(
        degrade_file(path, file, Degradation(blur=2, gsd=2, noise=3), 1)
    )
    with rasterio.open(tmp_path / "b.tif") as out:
        values = out.read()
        assert (out.dtypes[0], out.nodata, out.descriptions, out.transform) == (
            "uint16",
            0,
            names,
            place,
        )
        assert out.crs.to_epsg() == 32632
    assert not values[:, :5].any()
    assert values[:, 5:].min() > 1000  # missing data do not darken their neighbours
    assert values[:, 5:].std() < bands[:, 5:].std() / 2


def folder_of(tmp_path: Path) -> Path:
    """Five samples: a photograph, band selection, a table alone, a raster, and a marked photograph."""
    root = tmp_path / "tiny"
    samples = [number_sample(root, f"tiny-{number}", number) for number in range(1, 5)]
    samples[1]["task_type"] = "band_selection"
    samples[2]["files"][0]["kind"] = "table"
    samples.append(number_sample(root, "tiny-5", 5))
    samples[4]["toolset"].append("extract_marked_region")
    samples[4]["reference"]["steps"].insert(
        0, {"tool": "extract_marked_region", "arguments": {"image": "image_1.png"}}
    )
    write_raster(root / "files/r.tif", np.ones((4, 20, 20), np.float32))
    samples[3]["files"] = [
        {"name": "r.tif", "path": "files/r.tif", "kind": "raster", "bands": ["B", "G", "R", "NIR"]}
    ]
    return write_folder(root, samples)


def test_samples_whose_truth_or_files_do_not_fit_are_left_out_with_the_reason(tmp_path: Path):
    clean = load_folder(folder_of(tmp_path))
    blurred = degrade_benchmark(clean, Degradation(blur=1))
    assert [sample.id for sample in blurred.samples] == ["tiny-1", "tiny-4"]
    assert "pixel values" in blurred.left_out["tiny-2"]
    assert "no photograph" in blurred.left_out["tiny-3"]
    assert "marks drawn" in blurred.left_out["tiny-5"]
    assert "step-by-step" not in blurred.modes
    hazy = degrade_benchmark(clean, Degradation(haze=0.2))
    assert "haze is defined for 8-bit" in hazy.left_out["tiny-4"]
    hashes = {
        each.content_hash
        for each in (clean, blurred, hazy, degrade_benchmark(clean, Degradation(blur=1), 1))
    }
    assert len(hashes) == 4
    with pytest.raises(UsageError, match="no sample of tiny"):
        degrade_benchmark(
            load_folder(write_folder(tmp_path / "tiny", [json.dumps(_table(tmp_path))])),
            Degradation(blur=1),
        )


def test_twins_are_left_out_together(tmp_path: Path):
    root = tmp_path / "tiny"
    samples = [number_sample(root, f"tiny-{number}", number) for number in range(1, 4)]
    slots = samples[0]["answer"]
    samples[0]["answer"] = [
        {"type": "abstain", "name": "refusal", "label": "r", "reason": "unfit_image", "asks": slots}
    ]
    samples[0] |= {"twin": "tiny-2", "no_tool_eligible": False}
    samples[1]["twin"] = "tiny-1"
    for sample in samples:
        sample["may_abstain"] = True
    benchmark = degrade_benchmark(load_folder(write_folder(root, samples)), Degradation(blur=1))
    assert [sample.id for sample in benchmark.samples] == ["tiny-3"]
    assert len(set(benchmark.left_out.values())) == 1


def _table(tmp_path: Path) -> dict[str, Any]:
    sample = number_sample(tmp_path / "tiny")
    sample["files"][0]["kind"] = "table"
    return sample


class Looker:
    """A policy that keeps the files that it is shown."""

    name = "looker"

    def __init__(self) -> None:
        self.files: list[SampleFile] = []

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        self.files += view.files
        return Answer(text="mean_yield: 5.4 t/ha")


def test_a_run_shows_degraded_files_under_their_names_and_says_what_it_left_out(
    tmp_path: Path, own_cache: Path
):
    folder, looker = folder_of(tmp_path), Looker()
    run = at.evaluate(
        folder, looker, degrade="blur=2", out=tmp_path / "run", progress=io.StringIO()
    )
    assert {file.name for file in looker.files} == {"image_1.png", "r.tif"}
    assert all(Path(file.path).is_relative_to(own_cache) for file in looker.files)
    manifest = run.manifest
    assert (manifest.degrade, manifest.clean_hash) == ("blur=2", load_folder(folder).content_hash)
    assert sorted(name for names in manifest.left_out.values() for name in names) == [
        "tiny-2",
        "tiny-3",
        "tiny-5",
    ]
    assert set(manifest.modes) == {"no-tool", "end-to-end"}
    assert run.summary.benchmark_options == {"degrade": "blur=2"}
    before = {path: path.stat().st_mtime_ns for path in own_cache.rglob("*") if path.is_file()}
    again = at.evaluate(
        folder, Looker(), degrade="blur=2", out=tmp_path / "again", progress=io.StringIO()
    )
    assert len(again) == len(run)
    assert {path: path.stat().st_mtime_ns for path in before} == before  # read from the cache
    with pytest.raises(
        at.core.RunStoreError, match="degrade: blur=2 there, blur=3 in this command"
    ):
        at.evaluate(folder, looker, degrade="blur=3", out=tmp_path / "run", progress=io.StringIO())


def test_a_baseline_that_learns_from_other_samples_is_the_same_at_every_dose(tmp_path: Path):
    """The constant of a sample is the answer to the others, which are about tables and left out at a dose."""
    folder = tmp_path / "tiny"
    samples = [number_sample(folder, f"tiny-{place}", place) for place in range(1, 11)]
    for other in samples[1:]:
        other["files"][0]["kind"] = "table"
    options: dict[str, Any] = {"degrade": "blur=1", "mode": "no-tool", "progress": io.StringIO()}
    run = at.evaluate(
        write_folder(folder, samples), "baseline:constant", out=tmp_path / "run", **options
    )
    assert [record.trajectory and record.trajectory.answer for record in run.samples()] == [
        "mean_yield: 5.4 t/ha"
    ]


@pytest.mark.parametrize("options", [{"mode": "step-by-step"}, {"backends": {"*": "recorded"}}])
def test_what_was_recorded_on_the_original_files_is_refused(
    tmp_path: Path, options: dict[str, Any]
):
    with pytest.raises(UsageError, match="recorded on the original files"):
        at.evaluate(
            folder_of(tmp_path),
            "baseline:oracle",
            degrade="blur=1",
            progress=io.StringIO(),
            **options,
        )


def test_a_picture_that_cannot_be_decoded_stays_as_it_is(tmp_path: Path):
    root = tmp_path / "tiny"
    sample = number_sample(root)
    path = root / sample["files"][0]["path"]
    path.write_bytes(path.read_bytes()[:300])
    del sample["files"][0]["sha256"]
    benchmark = degrade_benchmark(load_folder(write_folder(root, [sample])), Degradation(blur=1))
    assert benchmark.file_path(benchmark.samples[0].files[0]) == path
