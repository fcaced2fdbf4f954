"""Studies as a developer runs them: each on two images of its folder, and the command with its rows and CSV file."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from accuracy import STUDIES, studies_of, study
from accuracy.studies import Row, plan
from accuracy.study import Bench, Figure, estimate
from accuracy.table import read_rows, write_csv
from accuracy.truth import read_truth
from measure_accuracy import main
from support.labelled_pictures import plant_picture

TOOL, FOLDER = "identify_weed", "apple_leaf_class"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two pictures, in a folder whose images are of others."""
    folder = tmp_path / "data" / FOLDER
    folder.mkdir(parents=True)
    items = [{"id": str(number), "image": f"{number}.png", "label": "scab"} for number in range(2)]
    for item in items:
        Image.fromarray(plant_picture((40, 160, 40), int(item["id"]), 96)).save(
            folder / item["image"]
        )
    (folder / "truth.json").write_text(json.dumps(items))
    return tmp_path / "data"


LEARNT = "cwfid"
"""Folder whose study learns heads from all its pictures."""


def with_few_to_learn_from(field_data: Path, to: Path) -> Path:
    """Return a folder with the real images, in which a study that learns has eight pictures to learn from."""
    to.mkdir()
    for folder in field_data.iterdir():
        if folder.name != LEARNT:
            (to / folder.name).symlink_to(folder)
    learnt = to / LEARNT
    learnt.mkdir()
    for each in (field_data / LEARNT).iterdir():
        if each.is_dir():
            (learnt / each.name).symlink_to(each)
    pictures = json.loads((field_data / LEARNT / "truth.json").read_text(encoding="utf-8"))
    (learnt / "truth.json").write_text(json.dumps(pictures[:8]), encoding="utf-8")
    return to


@pytest.mark.data
@pytest.mark.parametrize("tool", STUDIES)
def test_the_studies_of_a_tool_run(
    tool: str, field_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
        most = (
            24 if folder.name == "bean_leaf_class" else 2
        )  # a pack needs some pictures of each class
        return read_truth(folder)[0][:most], []

    monkeypatch.setattr(study, "read_truth", few)
    field_data = with_few_to_learn_from(field_data, tmp_path / "real images")
    on_folders = [each for each in studies_of(tool) if each.needs_folder]
    figures: list[Figure] = []
    for number, each in enumerate(on_folders):
        if (field_data / each.folder / "truth.json").is_file():
            figures += each.measure(Bench(tool, field_data / each.folder, tmp_path / str(number)))
    measured = [
        figure for figure in figures if len(figure.rows) and math.isfinite(estimate(figure).value)
    ]
    assert measured or not on_folders


@pytest.mark.slow
def test_real_apples_against_callipers(field_data: Path, tmp_path: Path) -> None:
    folder = field_data / "rgbd_apples"
    if not (folder / "truth.json").is_file():
        pytest.skip(f"no real frames at {folder}")
    first, *_ = studies_of("measure_fruit_size")
    figures = {
        figure.metric: figure for figure in first.measure(Bench(first.tool, folder, tmp_path))
    }
    error = figures["diameter in given boxes: mean absolute error, mm"]
    assert len(error.rows) >= 50, "26 apples in two frames"
    assert error.statistic(error.rows) < 8.0
    mean = figures["mean diameter of fruits found: absolute error, percent"]
    assert mean.statistic(mean.rows) < 5.0


@pytest.mark.process
def test_rows_replace_those_of_the_same_folder(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "measured.csv"
    write_csv(
        table,
        [Row(TOOL, folder, "of before", 0.5, n=1) for folder in (FOLDER, "deepweeds")],
        "2026-01-02",
    )
    code = main(
        [
            "--data",
            str(data),
            "--tool",
            TOOL,
            "--json",
            "--out",
            str(table),
            "--overlays",
            str(tmp_path),
        ]
    )
    shown = capsys.readouterr()
    rows = json.loads(shown.out)
    assert code == 0, shown.err
    assert "studies on drawn scenes" not in shown.err
    assert {(row["tool"], row["folder"], row["n"], row["note"]) for row in rows} == {
        (TOOL, FOLDER, 2, "")
    }
    assert all(row["low"] is None and 50 < row["peak_mb"] < 1000 for row in rows)
    written = read_rows(table)
    assert [row["folder"] for row in written if row["metric"] == "of before"] == ["deepweeds"]
    assert ("refused as unknown", "2") in {(row["metric"], row["n"]) for row in written}
    assert str(tmp_path) not in table.read_text(encoding="utf-8")


def test_a_tool_whose_studies_need_no_folder_is_measured_beside_any_data(data: Path) -> None:
    assert plan(data, ["lookup_agronomy"]).studies
    assert not plan(data, ["count_objects"]).studies, (
        "drawn scenes say nothing of the data of others"
    )


@pytest.mark.process
def test_what_fails_is_a_row(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--data", str(data), "--tool", TOOL, "--folder", FOLDER]
    assert main([*command, "--time-limit", "0.1"]) == 1
    assert "it took more than 0.1 s and was stopped" in capsys.readouterr().out
    (data / FOLDER / "truth.json").write_text('[{"id": "0", "image": "0.png"}]')
    assert main(command) == 1
    shown = capsys.readouterr()
    assert f"{FOLDER}/truth.json, item '0' lacks the field 'label'" in shown.out
    assert "nothing could be measured" in shown.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--tool", "measure_nothing"],
            "no study measures 'measure_nothing'; known: analyze_lesions",
        ),
        (["--tool", TOOL, "--folder", "nothing"], "known: "),
        (["--data", "nowhere"], "nowhere is not a folder"),
    ],
)
def test_unknown_names_are_usage_errors(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert said in capsys.readouterr().err
