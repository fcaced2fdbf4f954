"""GTA-2 from files in the shape that its loader reads: trees of sub-tasks, files of any kind, absent tools."""

from pathlib import Path
from typing import Any

import pytest

from agrotools.calling import TOOLS
from agrotools.core import BenchmarkError, UsageError
from agrotools.loading import Benchmark, load_benchmark
from agrotools.loading.checking import check_benchmark
from agrotools_benchmarks.gta2.load import GTA2_TOOLS, tree_of
from agrotools_benchmarks.gta2.plugin import DEEPEST_SUB_TASK
from support.made_gta2 import leaf, node, task, write_gta2


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gta2")
    write_gta2(folder / "gta_dataset_v2")
    return folder


@pytest.fixture(scope="module")
def loaded(root: Path) -> Benchmark:
    return load_benchmark("gta-2", root)


def notes(benchmark: Benchmark) -> str:
    told = benchmark.header.metadata["notes"]
    assert isinstance(told, list)
    return "\n".join(map(str, told))


@pytest.mark.parametrize(
    ("toolmeta", "here", "said"),
    [
        (
            [{"tool_name": "OCR"}, {"id": "Solver"}],
            ("OCR", "Solver"),
            "2 of the 2 tools of toolmeta.json are here",
        ),
        (
            None,
            tuple(name for name in GTA2_TOOLS if name in TOOLS),
            "13 of the 37 tools of GTA-2 (there is no",
        ),
    ],
)
def test_toolmeta_may_be_a_list_of_objects_or_names_or_be_missing(tmp_path, toolmeta, here, said):
    write_gta2(tmp_path, {"0": task()}, toolmeta=toolmeta)
    benchmark = load_benchmark("gta-2", tmp_path)
    assert benchmark.samples[0].toolset == here
    assert said in notes(benchmark)
    write_gta2(tmp_path, {"0": task()}, toolmeta=["Prover"])
    with pytest.raises(BenchmarkError, match="none of its tools is here"):
        load_benchmark("gta-2", tmp_path)


def test_ids_files_references_trees_and_weights_are_kept(loaded: Benchmark) -> None:
    (slot,) = loaded.sample("gta2-000").answer
    assert [(each.id, each.weight) for each in slot.leaves] == [("1.1", 2), ("1.2", 1), ("2", 1)]
    assert (slot.sub_tasks[0].weight, slot.depth, slot.leaves[0].requirements) == (
        3,
        2,
        "Requirement 1.1 is met.",
    )
    (single,) = loaded.sample("gta2-002").answer
    assert [each.id for each in single.leaves] == ["only"]
    (slot,) = loaded.sample("gta2-003").answer
    assert [each.id for each in slot.leaves] == ["1", "2"]
    assert "their places stand for them: entry 3" in notes(loaded)
    kinds = {file.name: file.kind for file in loaded.sample("gta2-002").files}
    assert kinds == {
        "brief.pdf": "document",
        "talk.mp3": "audio",
        "sales.xlsx": "table",
        "clip.mp4": "video",
    }
    assert all(
        loaded.file_path(file).is_file() for sample in loaded.samples for file in sample.files
    )
    assert loaded.sample("gta2-004").reference.tools == ("OCR", "PdfFileGenerator")
    assert loaded.sample("gta2-000").reference is None
    assert "its dialog ends without" not in notes(loaded)


def test_step_json_is_in_the_form_of_gta(root: Path) -> None:
    benchmark = load_benchmark("gta-2", root, options={"mode": "step"})
    (sample,) = benchmark.samples
    assert (sample.answer[0].type, sample.toolset) == ("keywords", ("OCR",))
    assert benchmark.header.modes == ("step-by-step",)
    assert "tools that are not here are not offered: entry 0" in notes(benchmark)
    with pytest.raises(UsageError, match="mode"):
        load_benchmark("gta-2", root, options={"mode": "both"})


@pytest.mark.parametrize(
    ("sub_tasks", "message"),
    [
        ("text", "it has no sub_tasks: 'text'"),
        ([3], "sub-task 1 is no object"),
        (
            [leaf("a"), {"id": "b", "sub_tasks": "c"}],
            "sub-task 2 is no object with a list of sub_tasks",
        ),
        (
            [leaf("a"), node("b", [leaf("c"), leaf("d", -1)])],
            "sub-task 2.2: weight: Input should be greater",
        ),
        ([{"id": "a", "weight": True}], "sub-task 1: weight: Input should be a valid number"),
    ],
)
def test_every_fault_of_a_tree_is_told(tmp_path: Path, sub_tasks: Any, message: str) -> None:
    write_gta2(
        tmp_path, {"0": task(sub_tasks=sub_tasks), "1": task(1, sub_tasks=sub_tasks), "2": task(2)}
    )
    with pytest.raises(BenchmarkError) as told:
        load_benchmark("gta-2", tmp_path)
    assert message in told.value.message
    assert "2 of 3 entries cannot be used" in told.value.message
    assert len(load_benchmark("gta-2", tmp_path, options={"faults": "leave-out"}).samples) == 1


def test_trees_have_a_deepest_level() -> None:
    tree = [leaf("0")]
    for level in range(1, DEEPEST_SUB_TASK):
        tree = [node(str(level), tree)]
    assert tree_of(tree, lambda _: None).depth == DEEPEST_SUB_TASK
    for level in range(900):
        tree = [node(f"more {level}", tree)]
        if level in (0, 899):
            with pytest.raises(BenchmarkError, match="nested deeper"):
                tree_of(tree, lambda _: None)


def test_check_counts_the_tools_that_are_here(root: Path, tmp_path: Path) -> None:
    found = check_benchmark("gta-2", root)
    assert found.sound
    assert (found.entries, found.usable) == (5, 5)
    (count,) = found.counts
    assert (count.what, count.published, count.here, count.decides) == ("tools", 37, 4, False)
    assert any("4 of the 6 tools" in note for note in found.notes)
    (tmp_path / "step").mkdir()
    write_gta2(tmp_path / "step")
    (tmp_path / "step" / "end.json").unlink()
    assert check_benchmark("gta-2", tmp_path / "step").files[0].endswith("step.json")
    assert "end.json" in check_benchmark("gta-2", tmp_path).missing
