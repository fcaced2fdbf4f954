"""Quality checks find what a reviewer would, and leave alone what is sound."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.core import BenchmarkError, ExactSlot, SampleFile, ToleranceSlot
from agrotools.loading.leaks import names_tool, revealed_answer, step_words
from agrotools_build.quality import (
    check_implicit,
    check_near_duplicates,
    check_quality,
    check_revealed,
    near_pairs,
    picture_features,
    write_findings,
)
from support.benchmark_folders import number_sample, write_folder
from support.plain_sample import plain_sample

HEIGHT = ToleranceSlot(name="height", label="height", value=34.5, unit="cm", abs_tol=2)
RUST = ExactSlot(
    name="disease",
    label="disease",
    value="leaf rust",
    aliases={"leaf rust": ("锈病",)},
    choices=("leaf rust", "mildew"),
)


def _picture(seed: int) -> Image.Image:
    """A scene of its own: patches of colour, as fields have."""
    patches = np.random.default_rng(seed).integers(0, 255, (9, 12, 3), dtype=np.uint8)
    return Image.fromarray(patches).resize((320, 240), Image.Resampling.BICUBIC)


def _look(picture: Image.Image):
    look = picture_features(np.asarray(picture.convert("RGB")))
    assert look is not None
    return look


def _file(path: str, **more: Any) -> SampleFile:
    return SampleFile(name="image_1.jpg", path=path, kind="image", **more)


def _checks(findings: Any) -> list[str]:
    return [finding.check for finding in findings]


@pytest.mark.parametrize(
    "altered",
    [
        lambda picture: picture.resize((100, 75)),
        lambda picture: picture.point(lambda value: min(255, round(value * 1.1))),
        lambda picture: ImageOps.crop(picture, 4),
        ImageOps.mirror,
    ],
    ids=["smaller", "brighter", "trimmed", "mirrored"],
)
def test_altered_copies_of_a_picture_are_near_duplicates(altered):
    looks = [_look(_picture(1)), _look(_picture(2)), _look(altered(_picture(1)))]
    assert [(first, second) for first, second, _ in near_pairs(looks)] == [(0, 2)]


def test_different_scenes_are_no_near_duplicates_and_a_blank_one_is_compared_with_nothing():
    assert list(near_pairs([_look(_picture(seed)) for seed in range(40)])) == []
    assert picture_features(np.full((50, 60, 3), 200, np.uint8)) is None


def test_near_duplicates_count_between_clusters_only(tmp_path: Path):
    _picture(1).save(tmp_path / "a.jpg", quality=95)
    _picture(1).save(tmp_path / "b.jpg", quality=40)
    _picture(2).save(tmp_path / "c.jpg")
    samples = [
        plain_sample(name, files=(_file(f"{name}.jpg"),), cluster=cluster)
        for name, cluster in (("a", "a"), ("b", "b"), ("c", "c"))
    ]
    found = list(check_near_duplicates(samples, tmp_path))
    assert [finding.id for finding in found] == ["a", "b"]
    assert "image_1.jpg of b" in found[0].message
    together = [sample.model_copy(update={"cluster": "one"}) for sample in samples]
    assert list(check_near_duplicates(together, tmp_path)) == []


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("Segment the leaf and tell me its share.", True), ("First find the trees, then count them.", True),
        ("Use object detection for the apples.", True), ("请调用合适的工具数一数树。", True),
        ("先找出树冠，然后数一数。", True),
        ("请分割图中的叶片。", True), ("第一步量叶片，第二步求平均。", True),
        ("How many trees stand here, and what share of the ground do they cover?", False),
        ("Which tractor tooling marks are these?", False), ("The first row looks dry. Is it?", False),
        ("Is there any segment of the field without weeds?", False), ("这片果园里有多少棵树？", False),
        ("两片叶子哪一片病得更重？画成柱状图。", False), ("今年先旱后涝，这片叶子还健康吗？", False),
    ],
)  # fmt: skip
def test_steps_and_methods_are_named(query, named):
    assert bool(step_words(query)) is named


def test_tools_are_named_in_chinese_questions_too():
    assert names_tool("用count_objects数一下图里的苹果", "count_objects")
    assert names_tool("请用plot画出来", "plot")
    assert not names_tool("画出两块地的产量", "plot")
    sample = plain_sample(query="用count_objects数一下", toolset=("count_objects",))
    assert _checks(check_implicit([sample])) == ["not_implicit"]


def test_answers_are_found_in_questions_and_notes():
    assert revealed_answer(RUST, "这片叶子得了锈病吗？") == "锈病"
    assert revealed_answer(RUST, "Is it leaf rust or mildew?") is None
    sample = plain_sample(
        query="The label says leaf rust. What is it?",
        files=(_file("x.jpg", note="锈病叶片"),),
        answer=(RUST,),
    )
    assert _checks(check_revealed([sample], Path("nowhere"))) == [
        "answer_in_query",
        "answer_in_note",
    ]


def test_a_side_of_a_box_is_no_measured_value_and_a_number_by_itself_is_one():
    height = HEIGHT.model_copy(update={"value": 35.2})
    assert revealed_answer(height, "How tall is the plant in the box (35, 120, 80, 214)?") is None
    assert (
        revealed_answer(height, "How tall is the plant in x0, y0, x1, y1 = 80, 120, 210, 35?")
        is None
    )
    assert (
        revealed_answer(height, "It was 35 cm at (12, 120, 80, 214): how tall is it now?") == "35"
    )


def test_findings_are_kept_in_the_folder_and_printed(tmp_path: Path):
    query = "The mean yield is 5.4 t/ha. What is the mean yield?"
    folder = write_folder(
        tmp_path, [number_sample(tmp_path), number_sample(tmp_path, "tiny-2", 2) | {"query": query}]
    )
    findings = check_quality(folder)
    assert [(finding.id, finding.check) for finding in findings] == [("tiny-2", "answer_in_query")]
    lines = [json.loads(line) for line in (folder / "quality.jsonl").read_text().splitlines()]
    assert lines == [finding.model_dump() for finding in findings]
    assert set(lines[0]) == {"id", "check", "severity", "message"}
    done = CliRunner().invoke(app, ["benchmarks", "check", str(folder), "--quality"])
    assert "answer_in_query, 1 sample" in done.stdout
    with pytest.raises(BenchmarkError, match="cannot be written"):
        write_findings(Path("/proc"), findings)
    told = json.loads(
        CliRunner().invoke(app, ["benchmarks", "check", str(folder), "--quality", "--json"]).stdout
    )
    assert told["findings"] == lines


def test_a_folder_that_cannot_be_loaded_is_only_validated(tmp_path: Path):
    folder = write_folder(tmp_path / "b", ["{broken"])
    done = CliRunner().invoke(app, ["benchmarks", "check", str(folder), "--quality"])
    assert done.exit_code == 1
    assert "fix the errors above first" in done.output
