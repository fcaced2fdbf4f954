"""Text that we write into pictures ourselves, and real pages where they are there."""

import importlib.util
import json
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from agrotools.calling.workspace import artifacts_in
from agrotools.core import ToolError
from agrotools.core.texts import install_command
from agrotools_benchmarks._dialogs.tools import OCR
from agrotools_tools.general import text as module
from agrotools_tools.general import text as ocr
from agrotools_tools.general.text import read_text, reading_order

needs_ocr = pytest.mark.skipif(
    importlib.util.find_spec("rapidocr") is None, reason="needs rapidocr (the extra ocr)"
)


@pytest.fixture
def label(tmp_path: Path) -> Path:
    """A seed label: three lines, two of them beside each other."""
    picture = Image.new("RGB", (900, 300), "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=40)
    draw.text((40, 30), "WINTER WHEAT", fill="black", font=font)
    draw.text((40, 150), "Net weight", fill="black", font=font)
    draw.text((600, 150), "25.5 kg", fill="black", font=font)
    path = tmp_path / "label.png"
    picture.save(path)
    return path


def test_without_the_extra_it_says_what_to_install(label, tmp_path, monkeypatch):
    monkeypatch.setattr(ocr, "find_spec", lambda _name: None)
    ocr._engine.cache_clear()
    with (
        artifacts_in(tmp_path / "out"),
        pytest.raises(ToolError, match="rapidocr, which is not installed") as caught,
    ):
        read_text(image=label)
    assert caught.value.kind == "backend_unavailable"
    assert caught.value.setup == install_command("ocr")
    assert ocr.ocr_files() == ()


@needs_ocr
def test_lines_are_read_where_they_stand(label: Path, tmp_path: Path) -> None:
    with artifacts_in(tmp_path / "out") as out:
        found = read_text(image=label)
    assert [line.text for line in found.lines] == ["WINTER WHEAT", "Net weight", "25.5 kg"]
    assert found.text == "WINTER WHEAT\nNet weight\n25.5 kg"
    x0, y0, x1, y1 = found.lines[2].box
    assert 585 <= x0 <= 610
    assert 140 <= y0 <= 165
    assert 700 <= x1 <= 790
    assert 180 <= y1 <= 210
    assert all(line.score > 0.8 for line in found.lines)
    assert (out / found.overlay.name).is_file()


@needs_ocr
def test_a_region_is_read_in_pixels_of_the_whole(label: Path, tmp_path: Path) -> None:
    with artifacts_in(tmp_path / "out"):
        found = read_text(image=label, region=(500, 100, 900, 300))
    assert found.text == "25.5 kg"
    assert found.lines[0].box[0] > 580


@needs_ocr
def test_a_picture_without_text_has_none(tmp_path: Path) -> None:
    Image.new("RGB", (300, 300), (90, 140, 70)).save(tmp_path / "field.png")
    with artifacts_in(tmp_path / "out"):
        found = read_text(image=tmp_path / "field.png")
        published = OCR(image=tmp_path / "field.png")
    assert (found.text, found.lines) == ("", ())
    assert "no_text_found" in found.flags
    assert published.text == ""


@needs_ocr
@pytest.mark.slow
def test_a_real_page_is_read_with_few_wrong_letters(field_data: Path, tmp_path: Path) -> None:
    """The goal on clean pages is 3 % of letters; performance/text_reading.py gives all figures."""
    folder = field_data / "ocr_text"
    if not (folder / "truth.json").is_file():
        pytest.skip("no folder ocr_text among the real images")
    pages = [item for item in json.loads((folder / "truth.json").read_text()) if "text" in item]
    page = min(pages, key=lambda item: (folder / item["text"]).stat().st_size)
    wanted = "".join((folder / page["text"]).read_text(encoding="utf-8").split())
    with artifacts_in(tmp_path):
        found = "".join(read_text(image=folder / page["image"]).text.split())
    alike = sum(
        block.size
        for block in SequenceMatcher(None, wanted, found, autojunk=False).get_matching_blocks()
    )
    assert alike >= 0.97 * max(len(wanted), len(found))


def test_shrunk_letters_are_flagged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("RGB", (4000, 100), "white").save(tmp_path / "wide.png")
    small = [ocr.TextLine((10, 10, 200, 28), "small", 0.9)]
    monkeypatch.setattr("agrotools_tools.general.text.read_lines", lambda _pixels: small)
    with artifacts_in(tmp_path / "out"):
        assert "large_picture_shrunk" in module.read_text(image=tmp_path / "wide.png").flags


@pytest.mark.parametrize(("rows", "columns"), [(2000, 20), (4000, 2), (2, 4000), (20, 2000)])
def test_a_strip_is_not_enlarged_beyond_measure(
    rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the size in a damaged file, or a region, comes to: enlarged to 736 pixels at its shorter side."""
    seen: list[tuple[int, ...]] = []

    class Nothing:
        txts = None

    def look(pixels: np.ndarray, **_: bool) -> Nothing:
        seen.append(pixels.shape)
        return Nothing()

    monkeypatch.setattr(ocr, "_engine", lambda: look)
    assert ocr.read_lines(np.full((rows, columns, 3), 200, np.uint8)) == []
    for height, width, _ in seen:
        assert height <= 4.1 * width
        assert width <= 61 * height


@needs_ocr
def test_a_line_in_a_narrow_picture_stays_where_it_is(tmp_path: Path) -> None:
    picture = Image.new("RGB", (90, 450), "white")
    ImageDraw.Draw(picture).text(
        (4, 200), "BARLEY", fill="black", font=ImageFont.load_default(size=20)
    )
    [line] = ocr.read_lines(np.asarray(picture))
    assert line.text == "BARLEY"
    assert 0 <= line.box[0] < line.box[2] <= 90
    assert 180 < line.box[1] < line.box[3] < 240


edges = st.floats(0, 1000, allow_nan=False)


def _boxes(*rows: tuple[float, float, float, float]) -> NDArray[np.float64]:
    return np.array(rows, np.float64)


def _column(
    left: float, right: float, top: float, lines: int
) -> list[tuple[float, float, float, float]]:
    return [(left, top + 30 * number, right, top + 30 * number + 24) for number in range(lines)]


def test_columns_receipts_and_quotations_are_read_in_their_order() -> None:
    heading, left, right = (
        (100.0, 0.0, 900.0, 40.0),
        _column(0, 480, 60, 10),
        _column(520, 1000, 65, 10),
    )
    shuffled = [*right[::-1], *left[::2], heading, *left[1::2]]
    order = reading_order(_boxes(*shuffled))
    assert [shuffled[index] for index in order] == [heading, *left, *right]
    goods = [(0.0, 30.0 * row, 120.0, 30.0 * row + 24) for row in range(6)]
    prices = [(300.0, 30.0 * row + 3, 350.0, 30.0 * row + 26) for row in range(6)]
    every = [*goods, *prices]
    pairs = [each for pair in zip(goods, prices, strict=True) for each in pair]
    assert [every[index] for index in reading_order(_boxes(*every))] == pairs
    left, right = _column(0, 480, 0, 12), _column(520, 1000, 0, 12)
    left[4:8] = [(x0, y0, 380, y1) for x0, y0, _, y1 in left[4:8]]
    right[4:8] = [(620, y0, x1, y1) for _, y0, x1, y1 in right[4:8]]
    inset = [(400.0, y0, 600.0, y1) for _, y0, _, y1 in left[5:7]]
    every = [*left, *inset, *right]
    assert [every[index] for index in reading_order(_boxes(*every))] == [*left, *right, *inset]
