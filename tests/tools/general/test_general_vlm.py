"""General and published tools with the back-end ``vlm``, against a real endpoint on this machine."""

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from PIL import Image

from agrotools.core import SampleFile, ToolCall
from agrotools.models import WireSettings
from agrotools.models.openai_compatible import OpenAICompatibleModel
from agrotools.tools import get_tool
from agrotools.tools.execution import ToolExecutor, ToolOutcome
from agrotools.tools.services.vision_endpoint import VisionEndpoint
from agrotools.tools.workspace import Workspace
from support.openai_server import Body, completion, serve

SIZE = (200, 100)
THINGS = {"things": [
    {"name": "cow", "box": [10, 10, 60, 60], "score": 0.55},
    {"name": "car", "box": [100, 20, 160, 80], "score": 0.91},
    {"name": "cow", "box": [20, 70, 40, 90], "score": 0.2},
]}  # fmt: skip
OBJECTS = {"objects": [{"box": [10, 10, 60, 60], "score": 0.6}, {"box": [100, 20, 160, 80], "score": 0.764}]}


def _workspace(folder: Path) -> Workspace:
    files: list[SampleFile] = []
    for name, grey in (("image_1.jpg", 90), ("image_2.jpg", 160)):
        Image.fromarray(np.full((SIZE[1], SIZE[0], 3), grey, np.uint8)).save(folder / name)
        files.append(SampleFile(name=name, path=str(folder / name), kind="image"))
    return Workspace(tuple(files), folder / "made")


async def _run(folder: Path, reply: Body | Callable[[Body], web.Response], tool: str, **arguments: Any) -> Any:
    """What came of a call, and the requests that reached the endpoint."""
    responder = reply if callable(reply) else lambda _body: completion(json.dumps(reply))
    async with serve(responder) as endpoint:
        model = OpenAICompatibleModel(
            "eye", base_url=endpoint.base_url, wire=WireSettings(attempts=1, first_wait_s=0.01, retry_wall_s=2.0)
        )
        try:
            async with ToolExecutor(workers=1, backends={tool: "vlm"}, vision=VisionEndpoint(model)) as executor:
                outcome = await executor.run(ToolCall(tool=tool, arguments=arguments), _workspace(folder), [tool])
        finally:
            await model.close()
    return outcome, endpoint.requests


def _result(outcome: ToolOutcome) -> dict[str, Any]:
    assert outcome.observation.error is None, (outcome.observation.error, outcome.log)
    assert outcome.observation.result is not None
    return outcome.observation.result


def _pictures(request: Body) -> list[Any]:
    parts = request["messages"][1]["content"][1:]
    urls = [part["image_url"]["url"] for part in parts]
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))) for url in urls]


async def test_a_change_is_asked_about_with_both_pictures(tmp_path: Path) -> None:
    outcome, [request] = await _run(
        tmp_path, {"answer": "A barn was built."}, "ChangeDetection",
        text="what is new?", pre_image="image/image_1.jpg", post_image="/data/sets/image/image_2.jpg",
    )  # fmt: skip
    assert _result(outcome)["text"] == "A barn was built."
    before, after = _pictures(request)
    assert (round(before.mean()), round(after.mean())) == (90, 160)
    assert '"what is new?"' in request["messages"][1]["content"][0]["text"]


async def test_an_attribute_is_asked_for_with_the_part_and_the_whole(tmp_path: Path) -> None:
    outcome, [request] = await _run(
        tmp_path, {"answer": "grey"}, "RegionAttributeDescription",
        image="image_1.jpg", bbox="(20, 10, 60, 40)", attribute="colour",
    )  # fmt: skip
    assert _result(outcome)["text"] == "grey"
    part, whole = _pictures(request)
    assert part.shape[:2] == (30, 40)
    assert whole.shape[:2] == (100, 200)
    assert whole[10, 40, 1] < 60  # the frame


async def test_a_picture_is_described_and_a_question_answered(tmp_path: Path) -> None:
    outcome, _ = await _run(tmp_path, {"answer": "A grey area."}, "ImageDescription", image="image_1.jpg")
    assert _result(outcome)["text"] == "A grey area."
    outcome, [request] = await _run(
        tmp_path, {"answer": "No."}, "describe_image", image="image_1.jpg", question="Is it red?"
    )
    assert _result(outcome)["description"] == "No."
    assert '"Is it red?"' in request["messages"][1]["content"][0]["text"]


async def test_boxes_are_written_as_published(tmp_path: Path) -> None:
    outcome, _ = await _run(tmp_path, OBJECTS, "TextToBbox", image="image_1.jpg", text="cow")
    assert _result(outcome)["text"] == "(100, 20, 160, 80), score 76"
    outcome, _ = await _run(tmp_path, OBJECTS, "LocateObjectByText", image="image_1.jpg", text="cow", top1=False)
    assert _result(outcome)["text"] == "(100, 20, 160, 80), score 76\n(10, 10, 60, 60), score 60"
    outcome, _ = await _run(tmp_path, {"objects": []}, "TextToBbox", image="image_1.jpg", text="cow")
    assert _result(outcome)["text"] == "No object found."


async def test_things_are_counted_in_the_picture_or_in_a_box(tmp_path: Path) -> None:
    outcome, _ = await _run(tmp_path, OBJECTS, "CountGivenObject", image="image_1.jpg", text="cow")
    assert _result(outcome)["text"] == "2"
    outcome, [request] = await _run(
        tmp_path, {"objects": []}, "CountGivenObject", image="image_1.jpg", text="cow", bbox="(0, 0, 50, 40)"
    )
    assert _result(outcome)["text"] == "0"
    assert _pictures(request)[0].shape[:2] == (40, 50)
    outcome, _ = await _run(tmp_path, OBJECTS, "ObjectCounter", image="image_1.jpg", text="cow")
    assert _result(outcome)["text"] == "2"


async def test_all_common_things_are_named(tmp_path: Path) -> None:
    outcome, _ = await _run(tmp_path, THINGS, "ObjectDetection", image="image_1.jpg")
    assert _result(outcome)["text"] == "car (100, 20, 160, 80), score 91\ncow (10, 10, 60, 60), score 55"
    outcome, _ = await _run(tmp_path, THINGS, "detect_objects", image="image_1.jpg", score_min=0.1)
    result = _result(outcome)
    assert result["counts"] == {"car": 1, "cow": 2}
    assert (tmp_path / "made" / result["overlay"]).is_file()


async def test_a_name_outside_the_list_is_asked_for_again(tmp_path: Path) -> None:
    wrong = {"things": [{"name": "unicorn", "box": [1, 1, 9, 9]}]}
    replies = iter([wrong, THINGS])
    outcome, requests = await _run(
        tmp_path, lambda _body: completion(json.dumps(next(replies))), "ObjectDetection", image="image_1.jpg"
    )
    assert _result(outcome)["text"].startswith("car (")
    assert len(requests) == 2
    assert "'unicorn' is not in the list" in requests[1]["messages"][-1]["content"]


async def test_pixels_of_outlines_are_counted(tmp_path: Path) -> None:
    square = [[10, 10], [39, 10], [39, 29], [10, 29]]
    triangle = [[100, 20], [140, 20], [100, 60]]
    seen = {"things": [{"outline": triangle, "score": 0.5}, {"outline": square, "score": 0.9}]}
    outcome, _ = await _run(tmp_path, seen, "segment_objects", image="image_1.jpg", text="cow")
    result = _result(outcome)
    assert result["pixels"][0] == 30 * 20
    assert result["pixels"][1] == pytest.approx(41 * 42 / 2, abs=5)
    assert result["boxes"][0] == [10, 10, 40, 30]
    assert result["total_px"] == sum(result["pixels"])
    assert "rough_outlines" in result["flags"]
    outcome, _ = await _run(tmp_path, seen, "SegmentObjectPixels", image="image_1.jpg", text="cow")
    assert _result(outcome)["text"] == f"600, {result['pixels'][1]}"
    outcome, _ = await _run(tmp_path, seen, "SegmentObjectPixels", image="image_1.jpg", text="cow", flag=False)
    assert _result(outcome)["text"] == str(600 + result["pixels"][1])
    for flag in (True, False):
        outcome, _ = await _run(
            tmp_path, {"things": []}, "SegmentObjectPixels", image="image_1.jpg", text="cow", flag=flag
        )
        assert _result(outcome)["text"] == "0"


async def test_text_and_formulas_are_read(tmp_path: Path) -> None:
    lines = {"things": [{"name": "NPK 15-15-15", "box": [4, 5, 90, 30]}, {"name": "25 kg", "box": [4, 40, 60, 60]}]}
    outcome, _ = await _run(tmp_path, lines, "OCR", image="image_1.jpg")
    assert _result(outcome)["text"] == "(4, 5, 90, 30) NPK 15-15-15\n(4, 40, 60, 60) 25 kg"
    outcome, _ = await _run(tmp_path, {"latex": r"\frac{a}{b}"}, "MathOCR", image="image_1.jpg")
    assert json.loads(_result(outcome)["text"])["latex_styled"] == r"\frac{a}{b}"


async def test_a_box_outside_the_picture_or_of_three_numbers_is_a_typed_error(tmp_path: Path) -> None:
    for bbox, kind in (("(300, 10, 400, 40)", "region_empty"), ("(1, 2, 3)", "invalid_argument")):
        outcome, requests = await _run(
            tmp_path, OBJECTS, "CountGivenObject", image="image_1.jpg", text="cow", bbox=bbox
        )
        assert outcome.observation.error is not None
        assert outcome.observation.error.kind == kind
        assert requests == []


@pytest.mark.parametrize("name", ["ImageDescription", "TextToBbox", "CountGivenObject", "MathOCR", "ObjectDetection"])
def test_offline_a_typed_error_says_which_back_ends_there_are(tmp_path: Path, name: str) -> None:
    from agrotools.core import ToolError

    _workspace(tmp_path)
    tool = get_tool(name)
    arguments = {"image": tmp_path / "image_1.jpg"} | (
        {"text": "cow"} if "text" in tool.spec.parameters["properties"] else {}
    )
    with pytest.raises(ToolError) as caught:
        tool(**arguments)
    assert caught.value.kind == "backend_unavailable"
    assert "vlm" in str(caught.value.hint)
    assert "learned:" in str(caught.value.hint)
