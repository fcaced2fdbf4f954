"""Items of ``truth.json``: faults are named by folder, item and field, unreadable pictures are left out."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from accuracy.studies import Row, run_study
from accuracy.study import Bench
from accuracy.table import format_table

_GOOD = {"id": "a", "image": "a.png", "boxes": "a.csv", "label": "rust", "count": 1}


def _folder(tmp_path: Path, content: Any, name: str = "orchard_pears") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    Image.new("RGB", (40, 30), (20, 90, 30)).save(folder / "a.png")
    (folder / "a.csv").write_text("1,2,3,4\n")
    (folder / "b.png").write_bytes((folder / "a.png").read_bytes()[:60])
    (folder / "truth.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": 7}, "field 'label' is 7; expected text"),
        ({"label": None}, "field 'label' is None; expected text"),
        ({"image": None}, "field 'image' is None; expected a file in orchard_pears"),
        ({"image": "../a.png"}, "expected a file in orchard_pears"),
        ({"boxes": "gone.csv"}, "field 'boxes' is 'gone.csv'; expected a file"),
        *(
            ({"count": count}, "expected a whole number from 0")
            for count in (10**18, -5, "four", True)
        ),
        ({"stats": []}, "field 'stats' is []; expected an object"),
        ({"stats": {"mean": "x"}}, "item 'a', stats, field 'mean' is 'x'; expected a number"),
        ({"fruits": [{"box": [1, 2]}]}, "fruit 0, field 'box' is [1, 2]; expected four numbers"),
        ({"gsd_m": 0}, "field 'gsd_m' is 0; expected metres per pixel"),
    ],
)
def test_an_odd_value_names_folder_item_and_field(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    result = run_study(
        "count_objects", 3, _folder(tmp_path, [_GOOD | change]), tmp_path / "scratch"
    )
    assert result["error"].startswith("orchard_pears/truth.json, item 'a', ")
    assert said in result["error"]


def test_unreadable_pictures_and_those_without_label_are_left_out_and_named(tmp_path: Path) -> None:
    items = [
        _GOOD,
        _GOOD | {"id": "b", "image": "b.png"},
        _GOOD | {"id": "c", "label": ""},
        _GOOD | {"id": "d"},
    ]
    del items[3]["label"]
    bench = Bench("count_objects", _folder(tmp_path, items), tmp_path / "s")
    assert [item["id"] for item in bench.items()] == ["a"]
    assert bench.unreadable == ["b.png", "c (no label)", "d (no label)"]
    row = Row("count_objects", "orchard_pears", "m", 1.0, unreadable=bench.unreadable)
    said = "3 pictures without a label or not readable: b.png, c (no label), d (no label)"
    assert f"orchard_pears: count_objects left out {said}" in format_table([row, row])
