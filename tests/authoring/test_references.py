import numpy as np
import pytest
from PIL import Image

from agrotools.calling.execution import ToolExecutor
from agrotools.core import SampleFile
from agrotools.core.files import artifact_path, sha256_of_file
from agrotools_build import references
from agrotools_build.references import ChainBroken, PlannedCall, record_reference, ref

pytestmark = pytest.mark.process

_TOOLS = ("calculate", "plot")


@pytest.fixture
async def executor():
    async with ToolExecutor(workers=1) as running:
        yield running


@pytest.fixture
def files(tmp_path):
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / "a.png")
    return (SampleFile(name="image_1.png", path="a.png", kind="image"),)


def _calculate(expression, **variables):
    return PlannedCall("calculate", {"expression": expression, "variables": variables})


async def test_a_chain_holds_what_was_observed_and_what_is_true(
    executor, files, tmp_path, monkeypatch
):
    """The first call stands for a measuring tool that sees 3 where 4 is true."""
    measured = PlannedCall("calculate", {"expression": "1 + 2"}, truth={"value": 4.0}, group=0)
    doubled = _calculate("2 * a", a=ref(0, "value"))
    chart = PlannedCall(
        "plot",
        {
            "kind": "bar",
            "series": [{"name": "n", "x": ["a", "b"], "y": [ref(0, "value"), ref(1, "value")]}],
        },
    )
    reference = await record_reference(
        [measured, doubled, chart], files, tmp_path, executor, _TOOLS
    )
    first, second, third = reference.steps
    assert first.group == 0
    assert second.arguments["variables"] == {
        "a": {"$ref": "steps[0].observation.value", "value": 3}
    }
    assert (second.observation.result["value"], second.truth["value"]) == (6, 8)
    assert third.observation.result["spec"]["series"][0]["y"] == [3.0, 6.0]
    assert third.truth["spec"]["series"][0]["y"] == [4.0, 8.0]
    (figure,) = third.observation.artifacts
    assert "figure" not in third.truth
    (kept,) = (tmp_path / "artifacts").iterdir()
    assert kept == artifact_path(tmp_path, figure.sha256, ".png")
    assert sha256_of_file(kept) == figure.sha256
    kept.unlink()
    monkeypatch.setattr(references, "MOST_KEPT_BYTES", 100)
    await record_reference([measured, doubled, chart], files, tmp_path, executor, _TOOLS)
    assert [*(tmp_path / "artifacts").iterdir()] == [], "a large artifact is not kept"


async def test_an_empty_field_of_a_real_tool_is_recorded_as_it_is(executor, files, tmp_path):
    measured = PlannedCall(
        "calculate", {"expression": "1 + 2"}, truth={"value": 4.0, "crop_pct": 1.5}
    )
    later = _calculate("2 * a", a=ref(0, "crop_pct"))
    reference = await record_reference([measured, later], files, tmp_path, executor, _TOOLS)
    assert reference.steps[1].arguments["variables"]["a"] == {
        "$ref": "steps[0].observation.crop_pct",
        "value": None,
    }
    assert reference.steps[1].observation.error.kind == "invalid_argument"
    assert reference.steps[1].truth["value"] == 3.0


async def test_chains_that_fail_on_the_truth_and_stopped_tools_are_not_recorded(
    executor, files, tmp_path
):
    seen = PlannedCall("calculate", {"expression": "1 + 2"}, truth={"value": 0})
    with pytest.raises(ChainBroken, match="fails on true values") as raised:
        await record_reference(
            [seen, _calculate("1 / a", a=ref(0, "value"))], files, tmp_path, executor, _TOOLS
        )
    assert raised.value.reason == "calculate: fails on true values"
    with pytest.raises(ChainBroken, match="refuses its arguments"):
        await record_reference([_calculate("1 / 0")], files, tmp_path, executor, _TOOLS)
    wrong = [_calculate("1 + 1"), _calculate("a", a=ref(0, "nothing"))]
    with pytest.raises(ChainBroken, match="cannot be had from the truth"):
        await record_reference(wrong, files, tmp_path, executor, _TOOLS)
    async with ToolExecutor(workers=1, timeout_s=1e-4) as hurried:
        with pytest.raises(ChainBroken, match="could not be run") as raised:
            await record_reference([_calculate("1 + 1")], files, tmp_path, hurried, _TOOLS)
    assert raised.value.reason == "calculate: timeout"
