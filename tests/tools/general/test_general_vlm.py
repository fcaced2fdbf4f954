"""General and published tools with the back-end ``vlm``: what is asked, and what is made of the replies."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agrotools.calling import get_tool
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.services import Question
from agrotools.calling.services.vision_endpoint import VisionEndpoint
from agrotools.calling.workspace import CallContext, Workspace, call_context
from agrotools.core import SampleFile, ToolCall, ToolError
from agrotools.models.openai_compatible import OpenAICompatibleModel
from support.openai_server import completion, serve
from support.vision_model import Eye

SIZE = (200, 100)
THINGS = {"things": [
    {"name": "cow", "box": [10, 10, 60, 60], "score": 0.55},
    {"name": "car", "box": [100, 20, 160, 80], "score": 0.91},
    {"name": "cow", "box": [20, 70, 40, 90], "score": 0.2},
]}  # fmt: skip
OBJECTS = {
    "objects": [
        {"box": [10, 10, 60, 60], "score": 0.6},
        {"box": [100, 20, 160, 80], "score": 0.764},
    ]
}
COW = {"image": "image_1.jpg", "text": "cow"}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    files: list[SampleFile] = []
    for name, grey in (("image_1.jpg", 90), ("image_2.jpg", 160)):
        Image.fromarray(np.full((SIZE[1], SIZE[0], 3), grey, np.uint8)).save(tmp_path / name)
        files.append(SampleFile(name=name, path=str(tmp_path / name), kind="image"))
    return Workspace(tuple(files), tmp_path / "made")


def seen_by(eye: Eye, workspace: Workspace, name: str, **arguments: Any) -> Any:
    """The result of a call, as a worker runs it."""
    tool = get_tool(name)
    paths = tool.prepare_arguments(
        tool.validate(arguments),
        lambda file: workspace.resolve(file, by_last_part=tool.files_by_last_part),
    )
    with call_context(CallContext(workspace.keep, backend="vlm", vision=eye)):
        return tool.function(**paths)


def pictures(question: Question) -> list[Any]:
    return [np.asarray(Image.open(io.BytesIO(picture))) for picture in question.pictures]


@pytest.mark.process
async def test_a_change_is_asked_about_with_both_pictures(workspace: Workspace) -> None:
    """Through an endpoint and a worker, with files by the end of their path."""
    call = ToolCall(
        tool="ChangeDetection",
        arguments={
            "text": "what is new?", "pre_image": "image/image_1.jpg", "post_image": "/data/sets/image/image_2.jpg"
        },
    )  # fmt: skip
    async with serve(lambda _body: completion('{"answer": "A barn was built."}')) as endpoint:
        model = OpenAICompatibleModel("eye", base_url=endpoint.base_url)
        async with ToolExecutor(
            workers=1, backends={call.tool: "vlm"}, vision=VisionEndpoint(model)
        ) as executor:
            outcome = await executor.run(call, workspace, [call.tool])
        await model.close()
    assert outcome.observation.result is not None, (outcome.observation.error, outcome.log)
    assert outcome.observation.result["text"] == "A barn was built."
    [request] = endpoint.requests
    text, *images = request["messages"][1]["content"]
    assert '"what is new?"' in text["text"]
    assert len({image["image_url"]["url"] for image in images}) == 2


def test_descriptions_answers_and_comparisons(workspace: Workspace) -> None:
    eye = Eye({"answer": "Nothing."})
    seen_by(
        eye,
        workspace,
        "compare_images",
        before="image_1.jpg",
        after="image_2.jpg",
        question="what is new?",
    )
    assert [round(picture.mean()) for picture in pictures(eye.asked[0])] == [90, 160]
    eye = Eye({"answer": "A grey area."}, {"answer": "No."})
    assert seen_by(eye, workspace, "ImageDescription", image="image_1.jpg").text == "A grey area."
    answer = seen_by(eye, workspace, "describe_image", image="image_1.jpg", question="Is it red?")
    assert answer.description == "No."
    assert '"Is it red?"' in eye.asked[1].text


def test_an_attribute_is_asked_for_with_the_part_and_the_whole(workspace: Workspace) -> None:
    eye = Eye({"answer": "grey"})
    call = {"image": "image_1.jpg", "bbox": "(20, 10, 60, 40)", "attribute": "colour"}
    assert seen_by(eye, workspace, "RegionAttributeDescription", **call).text == "grey"
    part, whole = pictures(eye.asked[0])
    assert (part.shape[:2], whole.shape[:2]) == ((30, 40), (100, 200))
    assert whole[10, 40, 1] < 60  # the frame


@pytest.mark.parametrize(
    ("tool", "arguments", "reply", "text"),
    [
        ("TextToBbox", {}, OBJECTS, "(100, 20, 160, 80), score 76"),
        (
            "LocateObjectByText", {"top1": False}, OBJECTS,
            "(100, 20, 160, 80), score 76\n(10, 10, 60, 60), score 60",
        ),
        ("TextToBbox", {}, {"objects": []}, "No object found."),
        ("CountGivenObject", {}, OBJECTS, "2"),
        ("ObjectCounter", {}, OBJECTS, "2"),
        ("SegmentObjectPixels", {}, {"things": []}, "0"),
        ("SegmentObjectPixels", {"flag": False}, {"things": []}, "0"),
    ],
)  # fmt: skip
def test_what_is_found_is_written_as_published(workspace, tool, arguments, reply, text):
    assert seen_by(Eye(reply), workspace, tool, **COW, **arguments).text == text


def test_things_are_named_from_the_list_and_counted_in_a_box(workspace: Workspace) -> None:
    eye = Eye({"objects": []})
    assert seen_by(eye, workspace, "CountGivenObject", **COW, bbox="(0, 0, 50, 40)").text == "0"
    assert pictures(eye.asked[0])[0].shape[:2] == (40, 50)
    text = seen_by(Eye(THINGS), workspace, "ObjectDetection", image="image_1.jpg").text
    assert text == "car (100, 20, 160, 80), score 91\ncow (10, 10, 60, 60), score 55"
    result = seen_by(Eye(THINGS), workspace, "detect_objects", image="image_1.jpg", score_min=0.1)
    assert result.counts == {"car": 1, "cow": 2}
    assert (workspace.artifacts / result.overlay.name).is_file()
    eye = Eye({"things": [{"name": "unicorn", "box": [1, 1, 9, 9]}]}, THINGS)
    assert seen_by(eye, workspace, "ObjectDetection", image="image_1.jpg").text.startswith("car (")
    assert "'unicorn' is not in the list" in eye.asked[1].earlier[1]


def test_pixels_of_outlines_are_counted(workspace: Workspace) -> None:
    square = [[10, 10], [39, 10], [39, 29], [10, 29]]
    triangle = [[100, 20], [140, 20], [100, 60]]
    seen = {"things": [{"outline": triangle, "score": 0.5}, {"outline": square, "score": 0.9}]}
    result = seen_by(Eye(seen), workspace, "segment_objects", **COW)
    assert (result.pixels[0], result.pixels[1]) == (30 * 20, pytest.approx(41 * 42 / 2, abs=5))
    assert result.boxes[0] == (10, 10, 40, 30)
    assert result.total_px == sum(result.pixels)
    assert "rough_outlines" in result.flags
    each, together = (
        seen_by(Eye(seen), workspace, "SegmentObjectPixels", **COW, flag=flag)
        for flag in (True, False)
    )
    assert (each.text, together.text) == (f"600, {result.pixels[1]}", str(600 + result.pixels[1]))


def test_text_and_formulas_are_read(workspace: Workspace) -> None:
    lines = {
        "things": [
            {"name": "NPK 15-15-15", "box": [4, 5, 90, 30]},
            {"name": "25 kg", "box": [4, 40, 60, 60]},
        ]
    }
    text = seen_by(Eye(lines), workspace, "OCR", image="image_1.jpg").text
    assert text == "(4, 5, 90, 30) NPK 15-15-15\n(4, 40, 60, 60) 25 kg"
    formula = seen_by(
        Eye({"latex": r"\frac{a}{b}"}), workspace, "MathOCR", image="image_1.jpg"
    ).text
    assert json.loads(formula)["latex_styled"] == r"\frac{a}{b}"


@pytest.mark.parametrize(
    ("bbox", "kind"), [("(300, 10, 400, 40)", "region_empty"), ("(1, 2, 3)", "invalid_argument")]
)
def test_a_box_outside_the_picture_or_of_three_numbers_is_a_typed_error(workspace, bbox, kind):
    eye = Eye()
    with pytest.raises(ToolError) as caught:
        seen_by(eye, workspace, "CountGivenObject", **COW, bbox=bbox)
    assert caught.value.kind == kind
    assert eye.asked == []


@pytest.mark.parametrize("name", ["ImageDescription", "TextToBbox"])
def test_offline_a_typed_error_says_which_back_ends_there_are(
    workspace: Workspace, name: str
) -> None:
    tool = get_tool(name)
    arguments = {"image": Path(workspace.files[0].path)} | (
        {"text": "cow"} if "text" in tool.spec.parameters["properties"] else {}
    )
    with pytest.raises(ToolError) as caught:
        tool(**arguments)
    assert caught.value.kind == "backend_unavailable"
    assert "vlm" in str(caught.value.advice)
