"""``agrotools benchmarks list | check | describe``."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from agrotools.cli.main import app
from agrotools.core import UsageError
from agrotools.loading import load_benchmark
from agrotools.loading.describing import describe
from agrotools.loading.obtaining import list_benchmarks
from support.made_agent_x import write_agent_x
from support.made_agrieval import write_agrieval
from support.made_gta import plain_entry, write_entries, write_gta
from support.made_thinkgeo import write_thinkgeo


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_gta(root / "gta_dataset")
    write_thinkgeo(root / "ThinkGeo_dataset")
    write_agent_x(root / "AgentX", count=60, calls=203, images=16, videos=4)
    return root


def said(*words: str) -> Result:
    return CliRunner().invoke(app, ["benchmarks", *words])


def test_list_says_what_is_found(data: Path) -> None:
    found = {each.name: each for each in list_benchmarks(data)}
    here = {name for name, each in found.items() if each.state == "found"}
    assert here == {"embedded", "frontier", "gta", "thinkgeo", "agent-x"}
    assert {each.state for name, each in found.items() if name not in {*here, "pests"}} == {
        "not found"
    }
    assert found["gta"].where.endswith("gta_dataset/dataset.json")
    unsearched = {
        each.state for each in list_benchmarks(None) if each.name not in ("embedded", "frontier")
    }
    assert unsearched == {"not downloaded", "not searched"}
    printed = said("list", "--data-root", str(data)).stdout
    assert "gta: 229 general questions" in printed
    assert "not found" in printed
    assert len(json.loads(said("list", "--json").stdout)) == len(found)


def test_check_tells_sound_files_from_counts_that_differ(data: Path) -> None:
    result = said("check", "gta", str(data))
    assert result.exit_code == 0, result.stdout
    assert "sound" in result.stdout
    assert "tool steps" in result.stdout
    counts = json.loads(said("check", "gta", str(data), "--json").stdout)["counts"]
    assert [count["what"] for count in counts if not count["agrees"]] == []
    result = said("check", "agent-x", str(data))
    assert result.exit_code == 1
    assert "60" in result.stdout
    assert "828  differs" in result.stdout
    assert "not sound" in result.stdout


@pytest.mark.parametrize(
    "content", ["{", '[{"name": 3, "inputs": []}]', '{"a": {"name": "a", "inputs": 3}}']
)
def test_check_says_that_the_description_of_tools_cannot_be_read(
    tmp_path: Path, content: str
) -> None:
    write_entries(tmp_path, {"0": plain_entry()})
    (tmp_path / "toolmeta.json").write_text(content)
    assert "toolmeta.json is no list of tools" in said("check", "gta", str(tmp_path)).stdout


def test_check_says_what_to_put_where_and_that_files_and_splits_are_missing(tmp_path: Path) -> None:
    for name, words in (
        ("gta", "gta_dataset.zip"),
        ("thinkgeo", "MBZUAI/ThinkGeo"),
        ("agent-x", "Tajamul21/Agent-X"),
    ):
        result = said("check", name, str(tmp_path))
        assert result.exit_code == 2
        assert words in result.stdout
        assert json.loads(said("check", name, str(tmp_path), "--json").stdout)["sound"] is False
    assert isinstance(said("check", "gat").exception, UsageError)
    folder = write_entries(tmp_path / "gta_dataset", {"0": plain_entry()})
    (folder / "image" / "image_1.jpg").unlink()
    result = said("check", "gta", str(tmp_path))
    assert f"(expected at {folder.resolve() / 'image' / 'image_1.jpg'})" in result.stdout
    assert "releases/download/v0.1.0/gta_dataset.zip" in result.stdout
    write_thinkgeo(tmp_path / "ThinkGeo_dataset", sar=False)
    result = said("check", "thinkgeo", str(tmp_path))
    assert (result.exit_code, "the SAR split is not there" in result.stdout) == (0, True)


def test_describe_prints_and_gives_json(data: Path, tmp_path: Path) -> None:
    result = said("describe", "gta", "--data-root", str(data))
    assert result.exit_code == 0
    for line in ("questions", "229", "Calls by tool", "Tools called together", "run no-tool"):
        assert line in result.stdout
    result = said("describe", "thinkgeo", "--data-root", str(data), "-o", "split=all", "--json")
    told = json.loads(result.stdout)
    assert (told["questions"], told["calls"]) == (486, 1778)
    assert told["modes"] == {"no-tool": 404, "step-by-step": 486, "end-to-end": 486}
    assert told["groups"]["difficulty"] == {"easy": 281, "hard": 155}
    write_agrieval(tmp_path / "agrieval", choices=30, questions=10)
    questions = describe(load_benchmark("agrieval", tmp_path))
    assert (questions.modes, questions.tools) == ({"no-tool": 40}, {})


@pytest.mark.process
def test_our_own_tools_are_in_their_own_categories(small_benchmark: Path) -> None:
    described = describe(load_benchmark(str(small_benchmark)))
    assert described.calls > 0
    assert "other" not in " ".join(described.category_combinations)
    assert "SI" not in described.families
