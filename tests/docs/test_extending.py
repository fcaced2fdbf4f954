"""The examples of the documentation run as they are written."""

import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agrotools.agents.modes import run_end_to_end
from agrotools.calling.execution import ToolOutcome
from agrotools.core import Observation, SampleFile, SampleView, ToolCall
from agrotools.loading import load_folder
from agrotools.loading.validate import validate_folder
from agrotools_build.export.gta_entries import read_map

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def examples() -> dict[str, Any]:
    text = (DOCS / "extending.md").read_text(encoding="utf-8")
    # A module of its own: pydantic looks annotations up there.
    namespace: dict[str, Any] = {"__name__": "extending_examples"}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "extending.md", "exec"), namespace)
    return namespace


def test_the_tool_has_a_schema_and_measures(examples: dict[str, Any], tmp_path: Path):
    tool = examples["measure_brightness"]
    assert set(tool.spec.parameters["properties"]) == {"image", "region"}
    Image.new("RGB", (8, 8), "white").save(tmp_path / "white.png")
    Image.new("RGB", (8, 8), "black").save(tmp_path / "black.png")
    assert tool(image=tmp_path / "white.png").mean_pct == pytest.approx(100)
    assert tool(image=tmp_path / "black.png").flags == ("dark_picture",)
    (text,) = re.findall(
        r"```toml\n(data = .*?)```", (DOCS / "extending.md").read_text(encoding="utf-8"), re.DOTALL
    )
    (tmp_path / "map.toml").write_text(text)
    fields = read_map(tmp_path / "map.toml")
    assert (fields.tools["FruitCounter"], fields.answer_types["numeric"]) == (
        "count_objects",
        "tolerance",
    )


@pytest.mark.process
def test_a_data_set_becomes_a_benchmark(
    examples: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    counts = (0, 5, 9, 14)
    for count in counts:
        Image.new("RGB", (96, 96), (40, 90 + count, 30)).save(tmp_path / f"tree_{count}.png")
    (tmp_path / "counts.csv").write_text("".join(f"tree_{count}.png,{count}\n" for count in counts))
    header = examples["build_my_orchard"](tmp_path, tmp_path / "out")
    assert validate_folder(tmp_path / "out") == []
    assert "My orchard: CC BY 4.0" in header.licence
    samples = load_folder(tmp_path / "out").samples
    steps = [step for sample in samples if sample.reference for step in sample.reference.steps]
    true = [step.truth["count"] for step in steps if step.truth and step.tool == "count_objects"]
    assert true
    assert all(count in counts for count in true)
    assert len(samples) >= 4


def test_photos_become_a_folder_that_is_sound(examples: dict[str, Any], tmp_path: Path):
    apples = {tmp_path / "north.png": 4, tmp_path / "south.png": 9}
    for photo, count in apples.items():
        Image.new("RGB", (96, 96), (40, 90 + count, 30)).save(photo)
    examples["write_my_trees"](apples, tmp_path / "my-trees")
    assert validate_folder(tmp_path / "my-trees") == []
    samples = load_folder(tmp_path / "my-trees").samples
    assert [sample.answer[0].model_dump()["value"] for sample in samples] == [4, 9]


async def test_the_policy_calls_its_tool_and_answers(examples: dict[str, Any]):
    async def call_tool(call: ToolCall) -> ToolOutcome:
        assert call.arguments == {"image": "image_1.png"}
        return ToolOutcome(Observation(result={"mean_pct": 40.0}), seconds=0.0)

    file = SampleFile(name="image_1.png", path="image_1.png", kind="image")
    view = SampleView(
        id="s", query="?", files=(file,), toolset=("measure_brightness",), answer_form=""
    )
    trajectory = await run_end_to_end(examples["BrightnessPolicy"](), view, call_tool)
    assert trajectory.answer == "brightness: 40.0 %"
