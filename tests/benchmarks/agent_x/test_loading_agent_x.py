"""Agent-X from files in the shape in which it is published: whole folders of ours, with drawn pictures and films."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agrotools.agents.images import file_parts
from agrotools.core import BenchmarkError, Sample
from agrotools.loading import Benchmark, load_benchmark
from agrotools.loading.checking import file_roots
from agrotools.report.html.pictures import Places
from agrotools_benchmarks._dialogs.plugin_parts import ImageCallsSlot
from agrotools_benchmarks.agent_x.load import arguments_of, frames_folder, frames_of
from agrotools_benchmarks.agent_x.replies import gold_of
from support.made_agent_x import write_agent_x, write_video
from support.made_gta import draw, write_json


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    root = tmp_path_factory.mktemp("whole")
    write_agent_x(root / "AgentX")
    return load_benchmark("agent-x", root)


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "file_path": "VCA_1.jpg",
        "query": "How many shapes are there?",
        "query_type": "objective",
        "tool_metadata": {"ObjectCounter": {"name": "ObjectCounter"}},
        "reasoning_steps": [
            {"step": 1, "tool": "ObjectCounter", "input": "VCA_1.jpg, shape", "output": "3", "thought": "t"}
        ],
        "final_answer": {"value": "3", "justification": "counted"},
    } | changes  # fmt: skip


def written(tmp_path: Path, entries: Any) -> Path:
    draw(tmp_path / "AgentX" / "files" / "VCA_1.jpg", 1)
    draw(tmp_path / "AgentX" / "files" / "VCA_2.jpg", 2)
    write_json(tmp_path / "AgentX" / "data.json", entries)
    return tmp_path


def only(tmp_path: Path, content: Any) -> Sample:
    (sample,) = load_benchmark("agent-x", written(tmp_path, {"0": [content]})).samples
    return sample


@pytest.mark.parametrize(
    "described", [{}, None, {"ObjectCounter": {}}, [{"name": "ObjectCounter"}, {"name": "OCR"}]]
)
def test_the_tools_offered_tell_nothing_of_the_solution(tmp_path: Path, described: Any) -> None:
    """The published scripts put the whole list of tools into each prompt, and show an entry's own to the judge."""
    sample = only(tmp_path, entry(tool_metadata=described))
    assert len(sample.toolset) == 14
    assert sample.toolset == only(tmp_path, entry(reasoning_steps=[], tool_metadata={})).toolset
    shown = ["ObjectCounter", "OCR"] if isinstance(described, list) else ["ObjectCounter"]
    assert [*gold_of(sample)["tool_metadata"]] == shown


def test_a_whole_folder_has_the_published_counts_and_films_as_frames(whole: Benchmark) -> None:
    samples = whole.samples
    assert len(samples) == 828
    assert sum(len(sample.reference.steps) for sample in samples if sample.reference) == 2807
    assert Counter(sample.groups["input"] == "video" for sample in samples) == {
        False: 716,
        True: 112,
    }
    assert Counter(sample.answer[0].type == "image_calls" for sample in samples) == {
        False: 606,
        True: 222,
    }
    assert len(whole.toolset) == 14
    assert {sample.groups["environment"] for sample in samples} == {
        *"VCA WEB SEC DRIVE SPORT MATH".split()
    }
    sample = next(sample for sample in whole.samples if sample.groups["input"] == "video")
    assert len(file_parts(whole.view(sample, "end-to-end").files)) == 2 * len(sample.files)
    assert all(file.path.startswith("video-frames/") and file.sha256 for file in sample.files)
    assert sample.metadata["videos"] == [f"files/{sample.metadata['file_path']}"]
    roots, places = file_roots("agent-x", whole.root.parent), Places([])
    assert all(isinstance(places.of_file(file, roots), Path) for file in sample.files), (
        "reports find the frames"
    )
    assert file_roots("agent-x", whole.root / "nowhere") == file_roots("agrieval", whole.root) == []


@pytest.mark.parametrize(("choice", "shades"), [("even", [10, 110, 193]), ("first", [10, 26, 43])])
def test_frames_are_spread_or_the_first_ones(
    tmp_path: Path, choice: Any, shades: list[int]
) -> None:
    from PIL import Image

    film = write_video(tmp_path / "film.avi", 5, frames=12)
    frames = frames_of(film, 3, choice)
    seen = [Image.open(frames_folder() / frame).convert("L").getpixel((40, 28)) for frame in frames]
    assert seen == [pytest.approx(shade, abs=6) for shade in shades]


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "it is empty"), (b"<!DOCTYPE html><html>", "it is a web page")]
)
def test_a_film_that_was_not_downloaded_is_a_fault(
    tmp_path: Path, content: bytes, message: str
) -> None:
    root = written(tmp_path, {"0": [entry(file_path="VCA_1.mp4")]})
    (tmp_path / "AgentX" / "files" / "VCA_1.mp4").write_bytes(content)
    with pytest.raises(
        BenchmarkError, match=rf"VCA_1\.mp4 is no video that can be read \(.*{message}"
    ):
        load_benchmark("agent-x", root)


@pytest.mark.parametrize(
    ("query_type", "tools", "is_image"),
    [
        ("factual", ["OCR", "DrawBoundingBox"], False),
        ("generative", ["OCR"], False), ("", ["OCR", "CodePlotter"], True),
    ],
)  # fmt: skip
def test_generative_queries_are_told_by_type_or_by_the_last_call(
    tmp_path, query_type, tools, is_image
):
    steps = [
        {"step": 1, "task": "t", "tool": tool, "input": "VCA_1.jpg", "output": "x.png"}
        for tool in tools
    ]
    sample = only(tmp_path, entry(query_type=query_type, reasoning_steps=steps, tool_metadata={}))
    assert isinstance(sample.answer[0], ImageCallsSlot) == is_image
    assert sample.no_tool_eligible == (not is_image)


FILES = {"VCA_1.jpg": "VCA_1.jpg", "my pic.png": "my_pic.png"}


@pytest.mark.parametrize(
    ("tool", "given", "arguments"),
    [
        ("OCR", "image: 'my pic.png'", {"image": "my_pic.png"}),
        ("ObjectCounter", "my pic.png, text: cup", {"image": "my_pic.png", "text": "cup"}),
        ("ObjectCounter", ["my pic.png", "cup"], {"image": "my_pic.png", "text": "cup"}),
        ("ObjectCounter", ["a", "b", "c"], None),
        ("RegionDescriber", "VCA_1.jpg, (1, 2, 30, 40), colour",
         {"image": "VCA_1.jpg", "bbox": "(1, 2, 30, 40)", "attribute": "colour"}),
        ("Calculator", "3 + 4, rounded", {"expression": "3 + 4, rounded"}),
        ("Calculator", None, None),
        ("Unknown", {"x": 1}, {"x": 1}),
    ],
)  # fmt: skip
def test_inputs_are_told_apart_into_arguments(tool: str, given: Any, arguments: Any) -> None:
    assert arguments_of(tool, given, FILES) == arguments


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text", "no object, nor a list of one"),
        (entry(query=""), "no query"),
        (entry(file_path="VCA_1.jpg, VCA_9.jpg"), "there is no file 'files/VCA_9.jpg'"),
        (entry(reasoning_steps="none"), "reasoning_steps are no list"),
        (entry(reasoning_steps=[{"tool": 7}]), "a tool that is no text"),
        (entry(reasoning_steps=[{"tool": []}]), "a tool that is no text"),
        (entry(reasoning_steps=[{"tool": "Teleport"}]), "there is no tool 'Teleport'"),
        (entry(final_answer=None), "no final answer"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named_with_its_reason(
    tmp_path: Path, content: Any, message: str
) -> None:
    root = written(tmp_path, {"3": [entry()], "8": content})
    with pytest.raises(BenchmarkError) as error:
        load_benchmark("agent-x", root)
    assert "entry 8" in error.value.message
    assert message in error.value.message
    (sample,) = load_benchmark("agent-x", root, options={"faults": "leave-out"}).samples
    assert sample.id == "agent-x-003"
