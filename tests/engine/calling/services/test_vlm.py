"""The back-end ``vlm`` against a real endpoint on this machine: what is asked, and what is made of replies."""

import base64
import io
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agrotools.calling.cache import ResultCache
from agrotools.calling.execution import ToolExecutor, ToolOutcome
from agrotools.calling.services import Question, VisionModel
from agrotools.calling.services.vision_endpoint import VisionEndpoint
from agrotools.calling.workspace import CallContext, Workspace, artifacts_in, call_context
from agrotools.core import InfrastructureError, SampleFile, ToolCall, ToolError, UsageError
from agrotools.models import WireSettings
from agrotools.models.endpoint import ScriptedModel
from agrotools.models.openai_compatible import OpenAICompatibleModel
from agrotools_tools.counting.tool import count_objects
from agrotools_tools.regions.tool import describe_region
from agrotools_tools.vision_questions import FoundObjects, choose_name, locate_by_model
from support.openai_server import PICTURE, Body, Endpoint, completion, error, serve
from support.vision_model import Eye

pytestmark = pytest.mark.process

KEY = "sk-planted-7f3a9c"
TWO = {
    "objects": [{"box": [10, 10, 40, 40], "score": 0.6}, {"box": [60, 20, 90, 50], "score": 0.9}]
}
PATIENT = WireSettings(attempts=2, first_wait_s=0.01, retry_wall_s=2.0)


def _picture(
    folder: Path, name: str = "field.png", size: tuple[int, int] = (120, 80)
) -> SampleFile:
    pixels = np.full((size[1], size[0], 3), 90, np.uint8)
    pixels[10:40, 10:40] = (200, 40, 30)
    path = folder / name
    Image.fromarray(pixels).save(path)
    return SampleFile(name=name, path=str(path), kind="image")


def _says(*replies: str | Body) -> Callable[[Body], web.Response]:
    texts = [reply if isinstance(reply, str) else json.dumps(reply) for reply in replies]
    asked = iter(range(10_000))
    return lambda _body: completion(texts[min(next(asked), len(texts) - 1)])


async def _run(
    endpoint: Endpoint,
    folder: Path,
    call: ToolCall | Sequence[ToolCall],
    *,
    size: tuple[int, int] = (120, 80),
    cache: ResultCache | None = None,
    wire: WireSettings = PATIENT,
) -> list[ToolOutcome]:
    calls = [call] if isinstance(call, ToolCall) else call
    workspace = Workspace((_picture(folder, size=size),), folder / "made")
    model = OpenAICompatibleModel("eye", base_url=endpoint.base_url, wire=wire)
    backends = {each.tool: "vlm" for each in calls}
    try:
        async with ToolExecutor(
            workers=1, cache=cache, backends=backends, vision=VisionEndpoint(model)
        ) as executor:
            return [await executor.run(each, workspace, [each.tool]) for each in calls]
    finally:
        await model.close()


COUNT = ToolCall(tool="count_objects", arguments={"image": "field.png", "target": "apple"})
DESCRIBE = ToolCall(
    tool="describe_region",
    arguments={"image": "field.png", "region": [20, 0, 70, 80], "question": "Is it dry?"},
)


QUESTION = Question(
    "What is this?", (base64.b64decode(PICTURE.partition(",")[2]),), {"type": "object"}
)


@asynccontextmanager
async def _eye(endpoint: Endpoint, wire: WireSettings = PATIENT) -> AsyncIterator[VisionEndpoint]:
    vision = VisionEndpoint(OpenAICompatibleModel("eye", base_url=endpoint.base_url, wire=wire))
    yield vision
    await vision.close()


def _pointed(vision: VisionModel) -> FoundObjects:
    with call_context(CallContext(lambda artifact, _: artifact, vision=vision)):
        return locate_by_model(np.zeros((100, 100, 3), np.uint8), (0, 0, 100, 100), "apple")


def _environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def _result(outcome: ToolOutcome) -> dict[str, Any]:
    assert outcome.observation.error is None, outcome.observation.error
    assert outcome.observation.result is not None
    return outcome.observation.result


async def test_things_are_counted_by_what_the_model_points_out(tmp_path: Path) -> None:
    async with serve(_says(TWO)) as endpoint:
        [outcome] = await _run(endpoint, tmp_path, COUNT)
    result = _result(outcome)
    assert (result["count"], result["mode"]) == (2, "vlm")
    assert (result["boxes"], result["scores"]) == ([[60, 20, 90, 50], [10, 10, 40, 40]], [0.9, 0.6])
    assert "model_opinion" in result["flags"]
    assert "said by the model eye, not measured" in result["notes"]
    assert {artifact.kind for artifact in outcome.observation.artifacts} == {"table", "overlay"}
    assert (tmp_path / "made" / result["overlay"]).is_file()
    [request] = endpoint.requests
    text, image = request["messages"][1]["content"]
    assert '"apple"' in text["text"]
    assert "120 x 80" in text["text"]
    shown = Image.open(io.BytesIO(base64.b64decode(image["image_url"]["url"].partition(",")[2])))
    assert shown.size == (120, 80)
    assert request["response_format"]["type"] == "json_schema"


async def test_a_question_is_answered_beside_the_numbers(tmp_path: Path) -> None:
    async with serve(_says({"description": "Yes, the soil is cracked."})) as endpoint:
        [outcome] = await _run(endpoint, tmp_path, DESCRIBE)
    result = _result(outcome)
    assert (result["description"], result["area_px"]) == ("Yes, the soil is cracked.", 50 * 80)
    assert "question_not_answered" not in result["flags"]
    assert "model_opinion" in result["flags"]


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("I can see roughly a dozen apples in the tree.", "no JSON"),
        ("", "empty"),
        ('{"objects": [{"box": [1, 2, 3]}]}', "objects.0"),
        ('{"objects": [{"box": [10, 10, 40, 4000]}]}', "no box inside the picture"),
        ('{"objects": [{"box": [1, 2, 30, 40], "score": 7}]}', "score"),
        ('{"objects": [{"box": [NaN, 2, 30, 40]}]}', "cannot be read"),
    ],
)
def test_a_bad_reply_is_told_what_is_wrong_and_asked_again_once(first: str, said: str) -> None:
    eye = Eye(first, TWO)
    assert len(_pointed(eye).boxes) == 2
    assert (eye.asked[0].earlier, eye.asked[1].earlier[0]) == (None, first)
    assert said in eye.asked[1].earlier[1]
    with pytest.raises(ToolError, match="the model eye gave no usable reply") as caught:
        _pointed(Eye(first, first))
    assert caught.value.kind == "tool_failed"
    assert said in caught.value.message


@pytest.mark.parametrize(
    "reply",
    [
        f"Here they are:\n```json\n{json.dumps(TWO)}\n```\nHope this helps!",
        f"<think>maybe {{'objects': []}} no</think>\n{json.dumps(TWO)}",
        json.dumps(TWO["objects"]),
        str(TWO).replace("0.6}", "0.6,}"),
    ],
)
def test_json_is_read_as_models_write_it(reply: str) -> None:
    assert len(_pointed(Eye(reply)).boxes) == 2


async def test_a_server_that_stays_dead_ends_the_run() -> None:
    async with serve(_says(TWO)) as endpoint:
        pass
    async with _eye(endpoint, WireSettings(attempts=1)) as vision:
        for _ in range(9):
            with pytest.raises(InfrastructureError):
                await vision.answer(QUESTION)
        with pytest.raises(
            UsageError, match="10 questions of tools in a row got no reply from eye"
        ):
            await vision.answer(QUESTION)


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (lambda: completion("", finish_reason="content_filter"), "backend_unavailable"),
        (
            lambda: error(
                400,
                "This model's maximum context length is 4096 tokens.",
                "context_length_exceeded",
            ),
            "limit",
        ),
    ],
)
async def test_what_the_endpoint_refuses_is_a_typed_error(
    refusal: Callable[[], web.Response], kind: str
) -> None:
    async with serve(lambda _body: refusal()) as endpoint, _eye(endpoint) as vision:
        with pytest.raises(ToolError) as caught:
            await vision.answer(QUESTION)
    assert caught.value.kind == kind


@pytest.mark.parametrize("known", ["json_schema", "json_object", None])
async def test_the_form_is_asked_for_as_far_as_the_endpoint_knows(known: str | None) -> None:
    asked: list[str | None] = []
    levels = ["json_schema", "json_object", None]

    def answer(body: Body) -> web.Response:
        form = body.get("response_format", {}).get("type")
        asked.append(form)
        if levels.index(form) < levels.index(known):
            return error(400, f"response_format {form} is not supported by this model")
        return completion("{}")

    async with serve(answer) as endpoint, _eye(endpoint) as vision:
        assert [await vision.answer(QUESTION) for _ in range(2)] == ["{}", "{}"]
    assert asked == [*levels[: levels.index(known) + 1], known]


async def test_results_are_not_shared(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path / "cache")
    async with serve(_says(TWO, {"objects": []})) as endpoint:
        outcomes = await _run(endpoint, tmp_path, [COUNT, COUNT], cache=cache)
    assert [_result(outcome)["count"] for outcome in outcomes] == [2, 0]
    assert not any(outcome.source == "cache" for outcome in outcomes)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


async def test_the_key_goes_to_the_endpoint_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def answer(body: Body) -> web.Response:
        assert KEY not in json.dumps(body)
        return completion(f"the key is {KEY}, there is nothing to count")

    async with serve(answer) as endpoint:
        workspace = Workspace((_picture(tmp_path),), tmp_path / "made")
        model = OpenAICompatibleModel("eye", base_url=endpoint.base_url)
        vision = VisionEndpoint(model)
        async with ToolExecutor(
            workers=1, backends={"count_objects": "vlm"}, vision=vision
        ) as executor:
            outcome = await executor.run(COUNT, workspace, ["count_objects"])
            environments = [_environment(pid) for pid in executor.worker_pids]
        await model.close()
    assert environments
    assert not [each for each in environments if KEY.encode() in each or b"OPENAI" in each]
    assert all(headers["Authorization"] == f"Bearer {KEY}" for headers in endpoint.headers)
    assert outcome.observation.error is not None
    assert KEY not in outcome.observation.model_dump_json()
    assert KEY not in outcome.log
    assert KEY not in repr(vision.model)


async def test_a_tool_that_asks_needs_a_model() -> None:
    with pytest.raises(UsageError, match="none is given") as caught:
        ToolExecutor(backends={"count_objects": "vlm"})
    assert "--vlm-model" in str(caught.value)


def test_plain_python_asks_too(tmp_path: Path) -> None:
    picture = _picture(tmp_path)
    model = ScriptedModel(lambda *_: json.dumps(TWO), name="eye")
    with artifacts_in(tmp_path / "out", backend="vlm", vision=VisionEndpoint(model)):
        assert count_objects(Path(picture.path), "apple").count == 2
    with (
        artifacts_in(tmp_path / "out", backend="vlm"),
        pytest.raises(ToolError, match="has no model to ask"),
    ):
        count_objects(Path(picture.path), "apple")


def test_a_height_model_and_a_class_map_are_read_and_not_looked_at(tmp_path: Path) -> None:
    labels = np.zeros((40, 40), np.uint8)
    labels[10:20] = 1
    Image.fromarray(labels).save(tmp_path / "classes.png")
    with artifacts_in(tmp_path / "out", backend="vlm"):
        said = describe_region(
            tmp_path / "classes.png", label_map={"crop": [1], "soil": [0]}, question="What grows?"
        )
    assert (said.class_px, said.description) == ({"crop": 400, "soil": 1200}, None)
    assert "question_not_answered" in said.flags


def _named(*replies: Body) -> Any:
    pixels = np.zeros((30, 30, 3), np.uint8)
    with call_context(CallContext(lambda artifact, _: artifact, vision=Eye(*replies))):
        return choose_name(
            pixels, (0, 0, 30, 30), "weed species", ["Chinee apple", "Lantana", "Snake weed"]
        )


def test_a_name_is_one_of_the_list() -> None:
    named = _named(
        {"candidates": [{"name": "lantana", "score": 0.2}, {"name": "SNAKE_WEED", "score": 0.7}]}
    )
    assert named.candidates == (("Snake weed", 0.7), ("Lantana", 0.2))
    assert _named({"candidates": []}).candidates == ()
    outside: Body = {"candidates": [{"name": "Parthenium", "score": 0.9}]}
    assert _named(outside, {"candidates": [{"name": "Lantana", "score": 1}]}).candidates == (
        ("Lantana", 1.0),
    )
    with pytest.raises(ToolError, match="'Parthenium' is not in the list"):
        _named(outside, outside)


@given(st.lists(st.text(max_size=300), min_size=2, max_size=2))
def test_no_reply_does_more_than_fail(replies: list[str]) -> None:
    with suppress(ToolError):
        pointed = _pointed(Eye(*replies))
        assert (pointed.boxes >= 0).all()
        assert (pointed.boxes <= 100).all()
