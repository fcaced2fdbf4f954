"""A benchmark folder whose samples have trees of sub-tasks: checked and exported."""

import json
from pathlib import Path

import pytest
from every_slot import TOOLS, write_every_slot

from agrotools.benchmarks import Benchmark, load_folder
from agrotools.benchmarks.validate import format_schema, validate_folder
from agrotools.build.export.gta import export_gta

TREE = [
    {"id": "1", "weight": 3, "sub_tasks": [{"id": "1.1", "requirements": "a", "weight": 2}, {"id": "1.2"}]},
    {"id": "2", "requirements": "b"},
]


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    folder = write_every_slot(tmp_path_factory.mktemp("trees") / "benchmark")
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    tree = lines[5] | {
        "id": "tree",
        "query": "Write down what should be done about it, and why.",
        "answer": [{"type": "sub_tasks", "name": "task", "label": "what came of it", "sub_tasks": TREE}],
        "answer_type": "open_text",
        "no_tool_eligible": False,
    }
    with (folder / "samples.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(tree) + "\n")
    return load_folder(folder)


def codes(folder: Path) -> set[tuple[str, str]]:
    return {(fault.code, fault.sample or "") for fault in validate_folder(folder)}


def test_trees_bring_no_fault_no_answer_and_need_their_tools(benchmark: Benchmark, tmp_path: Path) -> None:
    assert not [code for code, sample in codes(benchmark.root) if sample == "tree"]
    assert "SubTask" in json.dumps(format_schema())
    assert set(benchmark.sample("tree").toolset) == set(TOOLS)
    import shutil

    folder = Path(shutil.copytree(benchmark.root, tmp_path / "eligible"))
    text = (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    text[-1] = json.dumps(json.loads(text[-1]) | {"no_tool_eligible": True})
    (folder / "samples.jsonl").write_text("\n".join(text) + "\n", encoding="utf-8")
    assert ("not_no_tool", "tree") in codes(folder)
    export_gta(benchmark.root, benchmark.header, benchmark.samples, tmp_path / "gta")
    entry = json.loads((tmp_path / "gta" / "dataset.json").read_text(encoding="utf-8"))["7"]
    assert (entry["dialogs"][-1]["content"], entry["gt_answer"]) == ("", None)
