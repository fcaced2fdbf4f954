"""The bench of tools on pictures that they are not made for."""

import json
from pathlib import Path

import numpy as np
import pytest
from cross_domain import CALLS, measure, read_contents, read_outcomes, summarise, write_sums
from PIL import Image

from agrotools.calling import TOOLS
from agrotools.core import UsageError


def test_calls_and_folders_are_known() -> None:
    assert all(call.tool in TOOLS for call in CALLS.values())
    known = read_contents()
    assert all(one.made_for <= set(CALLS) for folders in known.values() for one in folders.values())


def test_a_stored_result_is_not_measured_again(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "ocr_text"
    (folder / "images").mkdir(parents=True)
    green = np.random.default_rng(0).integers(0, 60, (90, 120, 3), np.uint8)
    green[..., 1] += 120
    green[:, :30] = (110, 80, 60)
    for name in ("one", "two"):
        Image.fromarray(green).save(folder / "images" / f"{name}.png")
    items = [
        {"id": name, "image": f"images/{name}.png", "source": {"repo": "r"}}
        for name in ("one", "two")
    ]
    (folder / "truth.json").write_text(json.dumps(items))
    results = tmp_path / "results.jsonl"
    chosen = {"calls": ["plant_cover", "marks", "same_picture"], "folders": ["ocr_text"]}
    outcomes = measure(tmp_path / "data", None, results, **chosen)
    assert len(outcomes) == len(results.read_text().splitlines()) == 6
    cover = [one for one in outcomes if one.call == "plant_cover"]
    assert all(one.wrong for one in cover)  # the folder is declared to show no plants
    assert not any(one.wrong for one in outcomes if one.call == "same_picture")
    assert all(one.status == "refused" for one in outcomes if one.call == "marks")
    stored = results.read_text().replace(cover[0].answer, "stored")
    results.write_text(stored)
    again = measure(tmp_path / "data", None, results, **chosen)
    assert results.read_text() == stored
    assert any(one.answer == "stored" for one in again)
    row = next(row for row in summarise(outcomes) if row[:2] == ("all", "all strangers"))
    assert (row[2], row[7]) == (
        "6",
        str(sum(one.wrong and one.status == "answered" for one in cover)),
    )


def test_none_where_there_are_some_is_wrong_on_pictures_that_a_tool_is_made_for_too(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data" / "cwfid"  # plants certainly cover some of its pictures
    (folder / "images").mkdir(parents=True)
    soil = np.random.default_rng(0).normal((120, 95, 75), 5, (120, 160, 3)).astype(np.uint8)
    Image.fromarray(soil).save(folder / "images" / "one.png")
    items = [{"id": "one", "image": "images/one.png", "source": {"repo": "r"}}]
    (folder / "truth.json").write_text(json.dumps(items))
    (outcome,) = measure(
        tmp_path / "data",
        None,
        tmp_path / "results.jsonl",
        calls=["plant_count"],
        folders=["cwfid"],
    )
    assert outcome.answer == "0"
    assert (outcome.wrong, outcome.made_for) == (True, False)


def test_sums_of_a_file_of_results(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    outcome = {
        "call": "weed",
        "folder": "streets",
        "picture": "a.jpg",
        "subject": "a",
        "made_for": False,
    }
    outcome |= {"status": "answered", "wrong": True, "flags": [], "answer": "lantana"}
    results.write_text(json.dumps(outcome) + "\n")
    write_sums(tmp_path / "sums.csv", read_outcomes(results))
    row = "weed,identify_weed,names a weed that is not there,all strangers,1,1,0,0,1,1,100.0 % (2.5 to 100.0)"
    assert row in (tmp_path / "sums.csv").read_text(encoding="utf-8").splitlines()
    results.write_text(json.dumps(outcome) + '\n{"call": "we')
    with pytest.raises(UsageError, match="line 2"):
        read_outcomes(results)
