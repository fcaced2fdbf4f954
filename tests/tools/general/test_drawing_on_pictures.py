"""Frames and words on pictures: what changes where, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from agrotools.calling.workspace import artifacts_in
from agrotools.core import ToolError
from agrotools_tools.general.annotation import add_text, draw_box

RED = (255, 0, 0)


@pytest.fixture
def field(tmp_path: Path) -> Path:
    path = tmp_path / "field.png"
    Image.new("RGB", (400, 300), (60, 120, 60)).save(path)
    return path


def _pixels(path: Path) -> NDArray[np.uint8]:
    return np.asarray(Image.open(path).convert("RGB"))


def test_frames_and_labels_are_drawn_at_the_region(field: Path, tmp_path: Path) -> None:
    with artifacts_in(tmp_path / "out") as out:
        made = draw_box(image=field, region=(100, 80, 200, 160))
    drawn = _pixels(out / made.image.name)
    assert drawn.shape == (300, 400, 3)
    changed = (drawn != _pixels(field)).any(axis=2)
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    assert (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1) == (100, 80, 200, 160)
    assert tuple(drawn[80, 150]) == RED
    assert tuple(drawn[120, 150]) == (60, 120, 60)
    with artifacts_in(tmp_path / "out") as out:
        above = _pixels(
            out
            / draw_box(
                image=field, region=(100, 80, 200, 160), label="barn", colour="blue"
            ).image.name
        )
        top = _pixels(
            out
            / draw_box(
                image=field, region=(100, 0, 200, 160), label="barn", colour="blue"
            ).image.name
        )
    before = _pixels(field)
    assert (above[50:80, 100:180] != before[50:80, 100:180]).any()
    assert ((above == 255).all(axis=2)).any()  # white letters on blue
    assert (top[4:30, 100:180] != before[4:30, 100:180]).any()


def test_what_lies_outside_is_cut_off_or_refused(field: Path, tmp_path: Path) -> None:
    with artifacts_in(tmp_path / "out"):
        assert "region_clipped" in draw_box(image=field, region=(350, 250, 900, 900)).flags
        with pytest.raises(ToolError) as caught:
            draw_box(image=field, region=(500, 10, 600, 20))
        assert caught.value.kind == "region_empty"
        with pytest.raises(ToolError, match="is not a colour") as caught:
            draw_box(image=field, region=(10, 10, 20, 20), colour="blurple")
        assert caught.value.argument == "colour"


@pytest.mark.parametrize(
    ("position", "across", "down"),
    [("lt", 0, 0), ("mm", 1, 1), ("rb", 2, 2), ("tr", 2, 0), ("BL", 0, 2)],
)
def test_words_go_where_two_letters_say(
    field: Path, tmp_path: Path, position: str, across: int, down: int
) -> None:
    with artifacts_in(tmp_path / "out") as out:
        made = add_text(image=field, text="A", position=position)
    x0, y0, x1, y1 = made.box
    assert int(3 * (x0 + x1) / 2 / 400) == across
    assert int(3 * (y0 + y1) / 2 / 300) == down
    changed = (_pixels(out / made.image.name) != _pixels(field)).any(axis=2)
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    assert abs(columns[0] - x0) <= 2
    assert abs(rows[-1] + 1 - y1) <= 2


def test_letters_stand_at_their_corner_and_odd_ones_are_flagged(
    field: Path, tmp_path: Path
) -> None:
    with artifacts_in(tmp_path / "out"):
        made = add_text(image=field, text="Field 7\nwheat", position="(40, 200)", colour="#ffffff")
    assert (made.box[0], made.box[3]) == (40, 200)
    assert made.flags == ()
    with artifacts_in(tmp_path / "out"):
        assert "letters_missing" in add_text(image=field, text="a \U0001f33e", position="mm").flags
        assert "text_over_edge" in add_text(image=field, text="w" * 200, position="mm").flags
    with artifacts_in(tmp_path / "out"):
        plain = add_text(image=field, text="A[31m", position="mm", colour="rgb(255, 0, 0)")
        odd = add_text(
            image=field, text="A\x1b\x0b\x00[31m", position="mm", colour="rgb(99999999999, 0, 0)"
        )
    assert odd.image.sha256 == plain.image.sha256


@pytest.mark.parametrize(
    "position", ["ll", "tb", "xy", "(1)", "(900, 10)", "(10, -5)", "nowhere", "(1, 2, 3)"]
)
def test_other_positions_are_refused(field: Path, position: str) -> None:
    with pytest.raises(ToolError) as caught:
        add_text(image=field, text="A", position=position)
    assert (caught.value.kind, caught.value.argument) == ("invalid_argument", "position")
    assert caught.value.hint
