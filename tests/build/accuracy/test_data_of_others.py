"""Data of other people: folders that no study knows are named, and drawn scenes are measured only when asked for."""

import json
from pathlib import Path

import pytest
from PIL import Image

from agrotools.build.accuracy.studies import plan
from support.command import run_command


def _folder(data: Path, name: str, repository: str = "") -> None:
    (data / name).mkdir()
    Image.new("RGB", (40, 30), (20, 90, 30)).save(data / name / "a.png")
    item = {"id": "a", "image": "a.png", "label": "healthy", "source": {"repo": repository}}
    (data / name / "truth.json").write_text(json.dumps([item]))


def test_folders_without_a_study_are_named_and_nothing_drawn_is_measured(tmp_path: Path) -> None:
    _folder(tmp_path, "my_leaves")
    ended = run_command("tools", "bench", "--data", tmp_path, "--out", tmp_path / "page.md")
    assert ended.returncode == 3
    line = next(line for line in ended.stderr.splitlines() if line.startswith("ignored"))
    assert "my_leaves" in line
    assert "bean_leaf_class" in line
    assert "studies on drawn scenes" in ended.stderr
    assert "Truth is what people drew" not in (tmp_path / "page.md").read_text()


@pytest.mark.parametrize(("repository", "drawn"), [("", False), ("ai-agriculture-circuits-and-systems/Pear640", True)])
def test_drawn_studies_go_with_our_pictures(tmp_path: Path, repository: str, drawn: bool) -> None:
    _folder(tmp_path, "orchard_pears", repository)
    found = plan(tmp_path)
    assert any(study.drawn for study in found.studies) is drawn
    assert bool(found.drawn_left_out) is not drawn
    assert any(study.folder == "orchard_pears" for study in found.studies)
    assert all(study.drawn for study in plan(tmp_path, (), ["drawn wheat"]).studies)
