"""``--tool-images``: the pictures that calls make are in the conversation, on record, and nowhere without it."""

import io
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import agrotools as at
from agrotools.agents.images import RESULT_FILES, RESULT_PICTURE_PX
from agrotools.agents.llm import LLMAgent, place_of_pictures
from agrotools.calling.services import run_now
from agrotools.core import Artifact, Observation, SampleView, Step, ToolCall, UsageError
from agrotools.loading.benchmarks import Loading, load_as
from agrotools.models.chat_format import input_items
from agrotools.models.endpoint import ScriptedModel
from agrotools.runner.build import plan_run
from agrotools.runner.config import EvalConfig
from agrotools.runner.prompts import StoredPrompts, stored_image
from support.openai_server import ReferenceFollower, serving

LIMIT = 6
CAPTION = "Picture overlay.png, made by count_objects:"


def run_with(
    folder: Path, keep: Callable[[dict[str, Any]], None] = lambda _body: None, **options: Any
) -> Any:
    """Run a few samples of ``embedded`` with a server that follows the reference calls."""
    benchmark = at.load_benchmark("embedded", quick=True)
    samples = [each for each in benchmark.samples if each.id in benchmark.header.quick]
    follow = ReferenceFollower(samples, benchmark.root)

    def answer(body: dict[str, Any]) -> Any:
        keep(body)
        return follow(body)

    with serving(answer) as endpoint:
        return at.evaluate(
            "embedded", quick=True, limit=LIMIT, mode="end-to-end", model="scripted", out=str(folder),
            base_url=endpoint.base_url, **options,
        )  # fmt: skip


def pictures_after_the_question(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages behind the first user message that hold pictures."""
    first = next(at for at, each in enumerate(body["messages"]) if each["role"] == "user")
    return [
        message
        for message in body["messages"][first + 1 :]
        if isinstance(message["content"], list)
        and any(part["type"] == "image_url" for part in message["content"])
    ]


@pytest.mark.process
@pytest.mark.parametrize("protocol", ["tool-calling", "react"])
def test_pictures_of_results_are_shown_in_user_messages_and_stored_by_hash(
    tmp_path: Path, protocol: str
):
    bodies: list[dict[str, Any]] = []
    run = run_with(tmp_path / "with", bodies.append, protocol=protocol, tool_images=True)
    shown = [message for body in bodies for message in pictures_after_the_question(body)]
    assert {message["role"] for message in shown} == {"user"}
    captions = [part["text"] for part in shown[0]["content"] if part["type"] == "text"]
    assert captions[-1].startswith("Picture ")
    assert ", made by " in captions[-1]
    for part in shown[0]["content"]:
        if part["type"] == "image_url":
            encoded = part["image_url"]["url"].partition(",")[2]
            with Image.open(io.BytesIO(b64decode(encoded))) as picture:
                assert max(picture.size) <= RESULT_PICTURE_PX
    prompts = StoredPrompts(run.path)
    requests = [
        request
        for record in run.samples("end-to-end")
        for request in prompts.of((record.mode, record.sample.id, record.epoch)) or []
    ]
    urls = [
        part["image_url"]["url"]
        for request in requests
        for message in pictures_after_the_question({"messages": request.messages})
        for part in message["content"]
        if part["type"] == "image_url"
    ]
    assert urls
    for url in urls:
        stored = stored_image(run.path, url)
        assert stored is not None
        assert stored.bytes

    other: list[dict[str, Any]] = []
    without = run_with(tmp_path / "without", other.append, protocol=protocol)
    assert not any(pictures_after_the_question(body) for body in other)
    scores = [
        each.summary.modes["end-to-end"].metrics["fas"].overall.value for each in (run, without)
    ]
    assert scores[0] == scores[1], "the reference follower does not look at pictures"
    assert run.manifest.tool_images == "after results"
    assert run.manifest.prompt_hash != without.manifest.prompt_hash
    assert run.manifest.labelled_model == "scripted, tool images"
    assert "tool_images" not in without.manifest.model_dump(mode="json")


def history_with_overlay(folder: Path, name: str = "overlay.png") -> list[Step]:
    artifact = Artifact(name=name, kind="overlay", media_type="image/png")
    folder.mkdir(exist_ok=True)
    Image.new("RGB", (1000, 700), "green").save(folder / "overlay.png")
    return [
        Step(
            turn=0,
            kind="call",
            call=ToolCall(tool="count_objects", arguments={}),
            observation=Observation(result={"count": 3}, artifacts=(artifact,)),
        )
    ]


def messages_of(agent: LLMAgent, folder: Path, steps: list[Step]) -> list[Any]:
    view = SampleView(
        id="one", query="How many?", files=(), toolset=("count_objects",), answer_form=""
    )
    RESULT_FILES.set(folder)
    try:
        return run_now(agent.request_for(view, steps))[0]
    finally:
        RESULT_FILES.set(None)


def test_the_responses_api_takes_them_in_the_output_of_the_call(tmp_path: Path):
    address = "http://localhost:1/v1/responses"
    agent = LLMAgent(
        ScriptedModel(["x"]), "end-to-end", "tool-calling", tool_images=place_of_pictures(address)
    )
    messages = messages_of(agent, tmp_path / "made", history_with_overlay(tmp_path / "made"))
    output = input_items(messages[-1])[0]["output"]
    assert [part["type"] for part in output] == ["input_text", "input_text", "input_image"]
    assert output[1]["text"] == CAPTION


def test_a_picture_that_cannot_be_read_is_left_out_and_other_modes_have_none(tmp_path: Path):
    folder = tmp_path / "made"
    steps = history_with_overlay(folder, "gone.png")
    agent = LLMAgent(ScriptedModel(["x"]), "end-to-end", "react", tool_images="after results")
    assert not messages_of(agent, folder, steps)[-1].has_images
    steps = history_with_overlay(folder)
    assert messages_of(agent, folder, steps)[-1].has_images
    forced = LLMAgent(ScriptedModel(["x"]), "step-by-step", "react", tool_images="after results")
    assert not messages_of(forced, folder, steps)[-1].has_images


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"model": "some", "images": False}, "sees images"),
        ({"model": "some", "mode": "no-tool"}, "tools that run"),
        ({"model": "some", "protocol": "lagent", "benchmark": "gta"}, "shows no pictures"),
        ({"model": "mcp:program"}, "an agent of its own"),
    ],
)
def test_what_cannot_show_them_is_refused(options: dict[str, Any], expected: str):
    benchmark = load_as("embedded", Loading(files_later=True))
    options = {key: value for key, value in options.items() if key != "benchmark"}
    config = EvalConfig.of(**{"benchmark": "embedded", "tool_images": True, **options})
    with pytest.raises(UsageError, match=expected):
        plan_run(config, benchmark)


def test_a_function_is_an_agent_of_its_own_too():
    with pytest.raises(UsageError, match="an agent of its own"):
        at.evaluate("embedded", quick=True, model=lambda _task: "unknown", tool_images=True)


@pytest.mark.process
def test_a_baseline_beside_a_model_runs_without_them(tmp_path: Path):
    run = at.evaluate(
        "embedded", quick=True, limit=1, mode="end-to-end", model="baseline:guess", tool_images=True,
        out=str(tmp_path / "run"),
    )  # fmt: skip
    assert run.manifest.tool_images == ""
