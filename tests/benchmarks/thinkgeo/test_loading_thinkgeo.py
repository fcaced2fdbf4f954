"""ThinkGeo from files in the shape in which it is published: whole folders of ours, and pieces of the real one."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agrotools.core import BenchmarkError, UsageError
from agrotools.loading import load_benchmark
from support.made_gta import plain_entry, write_entries
from support.made_thinkgeo import write_thinkgeo


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole")
    write_thinkgeo(root / "ThinkGeo_dataset")
    return root


@pytest.mark.parametrize(
    ("split", "samples", "steps", "images"),
    [("optical", 436, 1534, 68), ("sar", 50, 244, 14), ("all", 486, 1778, 82)],
)
def test_a_whole_folder_has_the_published_counts(folder, split, samples, steps, images):
    benchmark = load_benchmark("thinkgeo", folder, options={"split": split})
    calls = [len(sample.reference.steps) for sample in benchmark.samples if sample.reference]
    assert (len(benchmark.samples), sum(calls)) == (samples, steps)
    assert (
        sum(slot.type == "image_calls" for sample in benchmark.samples for slot in sample.answer)
        == images
    )
    assert len({sample.id for sample in benchmark.samples}) == samples


def test_optical_questions_are_easy_or_hard_as_often_as_the_paper_says(folder: Path) -> None:
    benchmark = load_benchmark("thinkgeo", folder, options={"split": "all"})
    optical = [sample for sample in benchmark.samples if sample.groups["sensor"] == "optical"]
    assert Counter(sample.groups["difficulty"] for sample in optical) == {"easy": 281, "hard": 155}
    assert all(
        "difficulty" not in sample.groups
        for sample in benchmark.samples
        if sample.groups["sensor"] == "sar"
    )
    assert {sample.groups["difficulty"] for sample in optical if " and " not in sample.query} == {
        "easy"
    }
    assert {sample.groups["difficulty"] for sample in optical if "how many" in sample.query} == {
        "hard"
    }


def test_the_sar_split_may_lie_in_a_folder_of_its_own(tmp_path: Path) -> None:
    write_entries(tmp_path, {"0": plain_entry()}, "ThinkGeoBench.json")
    write_entries(tmp_path / "SAR", {"0": plain_entry()}, "bench.json")
    benchmark = load_benchmark("thinkgeo", tmp_path, options={"split": "all"})
    assert [(sample.id, sample.files[0].path) for sample in benchmark.samples] == [
        ("thinkgeo-000", "image/image_1.jpg"),
        ("thinkgeo-sar-000", "SAR/image/image_1.jpg"),
    ]
    assert benchmark.samples[1].metadata["published_paths"] == {"image_1.jpg": "image/image_1.jpg"}


def test_a_missing_sar_split_is_said(tmp_path: Path) -> None:
    write_entries(tmp_path, {"0": plain_entry()}, "ThinkGeoBench.json")
    with pytest.raises(BenchmarkError, match="SAR split"):
        load_benchmark("thinkgeo", tmp_path, options={"split": "sar"})
    with pytest.raises(UsageError, match="split=radar"):
        load_benchmark("thinkgeo", tmp_path, options={"split": "radar"})


@pytest.mark.data
def test_real_entries_are_read(field_data: Path, tmp_path: Path) -> None:
    source = field_data / "gta_entries" / "real_prefix_via_reynaldj.json"
    if not source.is_file():
        pytest.skip(f"no entries of ThinkGeo at {source.parent}: set AGROTOOLS_TEST_DATA")
    entries: dict[str, Any] = {}
    for piece in json.loads(source.read_text("utf-8")):
        named = [
            value
            for message in piece["dialogs_prefix"]
            for made in message.get("tool_calls", ())
            for value in made["function"]["arguments"].values()
            if str(value).startswith("image/")
        ]
        entries[piece["id"]] = {
            "tools": [],
            "files": [
                {"type": "image", "path": path, "url": None} for path in dict.fromkeys(named)
            ],
            "dialogs": [*piece["dialogs_prefix"], {"role": "assistant", "content": "done"}],
            "gt_answer": {"whitelist": [["1"]], "blacklist": None},
        }
    write_entries(tmp_path, entries, "ThinkGeoBench.json")
    first, second = load_benchmark("thinkgeo", tmp_path).samples
    assert (first.id, first.task_type) == ("thinkgeo-404", "transportation")
    assert [step.tool for step in first.reference.steps] == [
        "SegmentObjectPixels",
        "CountGivenObject",
        "Calculator",
    ]
    assert first.reference.steps[0].arguments == {
        "image": "P0194.png",
        "text": "small vehicles",
        "flag": False,
    }
    assert second.task_type == "disaster_and_change"
    assert {file.name for file in second.files} == {
        "hurricane-florence_00000396_pre_disaster.png",
        "hurricane-florence_00000396_post_disaster.png",
    }
    assert (
        second.reference.steps[0].arguments["pre_image"]
        == "hurricane-florence_00000396_pre_disaster.png"
    )
