"""The surroundings of a study: what a sample says of a file reaches the tool, and the clock runs."""

from pathlib import Path

import pytest
from PIL import Image

from agrotools.build.accuracy.study import Bench
from agrotools.core import BenchmarkError, SampleFile


def picture(folder: Path) -> Path:
    folder.mkdir(parents=True)
    image = Image.new("RGB", (60, 40), (120, 95, 75))
    image.paste((60, 150, 50), (10, 10, 30, 30))
    image.save(folder / "field.png")
    return folder / "field.png"


@pytest.mark.parametrize("way", ["plain", "roundabout", "linked"])
def test_what_a_sample_says_of_a_file_is_known_by_whatever_path(tmp_path: Path, way: str):
    folder = picture(tmp_path / "data" / "fields").parent
    if way == "roundabout":
        folder = folder / ".." / "fields"
    elif way == "linked":
        (tmp_path / "link").symlink_to(folder)
        folder = tmp_path / "link"
    path = folder / "field.png"
    bench = Bench("measure_crop_weed_area", folder, tmp_path / "scratch")
    known = SampleFile(name="field.png", path="field.png", kind="image", gsd_m=0.5)
    result = bench.call(infos={path: known}, image=path)
    assert result.gsd_m == 0.5
    assert bench.artifact_path(result.mask).is_file()
    assert [overlay.is_file() for overlay in bench.overlays] == [True]
    assert (len(bench.call_ms), bench.call_megapixels) == (1, [pytest.approx(0.0024)])


@pytest.mark.parametrize("content", [None, "{", "{}", "[1]", '"x"'])
def test_a_truth_that_is_none_is_said(tmp_path: Path, content: str | None):
    if content is not None:
        (tmp_path / "truth.json").write_text(content)
    with pytest.raises(BenchmarkError, match=r"truth\.json"):
        Bench("calculate", tmp_path, tmp_path / "scratch").items()
