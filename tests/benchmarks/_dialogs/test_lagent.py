"""What a model is sent in the protocol of GTA and ThinkGeo: word for word what lagent 0.2.4 sends."""

from collections.abc import Sequence
from typing import Any

import pytest

from agrotools.agents.llm import render
from agrotools.agents.modes import run_end_to_end, run_step_by_step
from agrotools.core import (
    Halt,
    Mode,
    Observation,
    ReferenceStep,
    ReferenceTrajectory,
    SampleFile,
    SampleView,
    ToolCall,
    ToolOutcome,
)
from agrotools.core.form_item import FormItem
from agrotools.models import Completion, Message
from agrotools_benchmarks._dialogs.lagent import LagentAgent
from agrotools_benchmarks._dialogs.lagent_format import declared_by

# As lagent 0.2.4 writes it for AgentLego's OCR (Apache-2.0; github.com/InternLM/lagent, github.com/InternLM/agentlego).
SYSTEM = """You are a assistant who can utilize external tools.
[{'name': 'OCR', 'description': 'This tool can recognize all text on the input image.', 'parameters': [{'name': \
'image', 'description': None, 'type': 'STRING'}], 'required': ['image'], 'parameter_description': 'If you call this \
tool, you must pass arguments in the JSON format {key: value}, where the key is the parameter name.'}]
To use a tool, please use the following format:
```
Thought:Think what you need to solve, do you need to use tools?
Action:the tool name, should be one of [['OCR']]
Action Input:the input to the action
```
The response after utilizing tools should using the following format:
```
Response:the results after call the tool.
```
If you already know the answer, or you do not need to use tools,
please using the following format to reply:
```
Thought:the thought process to get the final answer
Final Answer:final answer
```
Begin!"""
QUERY = "What stands there?"
CALL = 'Thought: I look.\nAction: OCR\nAction Input: {"image": "image/image 1.jpg"}'


class Scripted:
    """A model that says what it is told to, and keeps what it is asked."""

    name = "scripted"
    stats = None

    def __init__(self, *replies: str | Completion) -> None:
        self.replies = list(replies)
        self.asked: list[list[Message]] = []

    async def generate(self, messages: Sequence[Message], tools: Any, settings: Any) -> Completion:
        assert not tools
        self.asked.append(list(messages))
        reply = self.replies.pop(0)
        return Completion(text=reply) if isinstance(reply, str) else reply

    async def close(self) -> None:
        return None

    def sent(self, request: int) -> list[tuple[str, str]]:
        return [(message.role, message.text) for message in self.asked[request]]


def view(
    toolset: tuple[str, ...] = ("OCR",), *, published: bool = True, path: str = "/data/x.jpg"
) -> SampleView:
    file = SampleFile(name="image_1.jpg", path=path, kind="image")
    paths = {"image_1.jpg": "image/image 1.jpg"} if published else None
    return SampleView(
        id="s",
        query=QUERY,
        files=(file,),
        toolset=toolset,
        answer_form="answer: <a text>",
        paths=paths,
    )


def agent(model: Scripted, mode: Mode, **options: Any) -> LagentAgent:
    return LagentAgent(model, mode, declared=declared_by("gta"), **options)


def reference(result: dict[str, Any]) -> ReferenceTrajectory:
    step = ReferenceStep(
        tool="OCR",
        arguments={"image": "image_1.jpg"},
        observation=Observation(result=result),
        thought="a gold thought",
    )
    return ReferenceTrajectory(steps=(step,))


async def returning_text(_call: ToolCall) -> ToolOutcome:
    return ToolOutcome(Observation(result={"text": "(1, 2, 3, 4) 7", "notes": ["ours"]}))


async def test_step_by_step_tells_what_the_published_agent_tells():
    model = Scripted(CALL, "Thought: now\nFinal Answer: 7")
    actions = await run_step_by_step(
        agent(model, "step-by-step"), view(), reference({"text": "(1, 2, 3, 4) 7"})
    )
    begin = [
        ("system", SYSTEM),
        ("system", "The related files are at `image/image 1.jpg`"),
        ("user", QUERY),
    ]
    assert model.sent(0) == begin
    assert model.sent(1) == [
        *begin,
        ("assistant", 'Action:OCR\nAction Input:{"image": "image/image 1.jpg"}'),
        ("system", "(1, 2, 3, 4) 7"),
        (
            "user",
            "Please summarize the chat history and give a final answer. Do not call any tools.",
        ),
    ]
    for result, told in (
        ({"image": "image/made.png"}, [("system", "[image](image/made.png)")]),
        ({}, []),
    ):
        other = Scripted(CALL, "Final Answer: 7")
        await run_step_by_step(agent(other, "step-by-step"), view(), reference(result))
        assert other.sent(1)[4:-1] == told
    called, answered = actions
    assert called.calls == (ToolCall(tool="OCR", arguments={"image": "image_1.jpg"}),)
    assert (called.refused, called.thought) == (None, "I look.")
    assert answered.text == "7"


async def test_end_to_end_tells_what_the_published_agent_tells():
    model = Scripted(f"  {CALL}\n", "I wonder.", "Thought: now\nFinal Answer: 7")
    trajectory = await run_end_to_end(
        agent(model, "end-to-end", max_turns=3), view(), returning_text, 3, None
    )
    assert trajectory.answer == "7"
    begin = [
        ("system", SYSTEM),
        ("user", "The related files are at `image/image 1.jpg`"),
        ("user", QUERY),
    ]
    assert model.sent(0) == begin
    assert model.sent(2) == [
        *begin,
        ("assistant", CALL),
        ("system", "Response:(1, 2, 3, 4) 7\n"),
        ("assistant", "I wonder."),
        ("system", "Response:Please follow the format\n"),
        ("system", "You should directly give results\n based on history information."),
    ]


@pytest.mark.parametrize(
    ("reply", "told", "kind"),
    [
        (
            "Action: OCR\nAction Input: {}",
            "missing required arguments: {'image'}",
            "invalid_argument",
        ),
        ("Action: OCR\nAction Input: {", "invalid json format: {", "invalid_argument"),
        ('Action: Look\nAction Input: {"a": 1}', '{"a": 1}', "unknown_tool"),
        (
            "Action: Look\nAction Input:",
            "The action is invalid, please check the action name.",
            "unknown_tool",
        ),
        (
            'Action: OCR\nAction Input: {"image": "image_1.jpg"}',
            "FileNotFoundError(\"No such file: 'image_1.jpg'\")",
            "file_not_found",
        ),
    ],
)
async def test_a_call_that_the_protocol_refuses_reaches_no_tool(reply: str, told: str, kind: str):
    async def nobody(_call: ToolCall) -> ToolOutcome:
        raise AssertionError("it must not run")

    model = Scripted(reply, "Final Answer: x")
    trajectory = await run_end_to_end(agent(model, "end-to-end"), view(), nobody, 10, None)
    assert model.sent(1)[-1] == ("system", f"Response:{told}\n")
    observation = trajectory.steps[0].observation
    assert (observation.error.kind, observation.error.message) == (kind, told)


async def test_a_reply_that_its_limit_cut_off_is_read_and_a_refused_one_is_not():
    cut = Scripted(Completion(text="Final Answer: 7 and th", finish_reason="length"))
    action = await agent(cut, "end-to-end").act(view(), ())
    assert action.text == "7 and th"
    refused = Scripted(Completion(finish_reason="filtered"))
    assert isinstance(await agent(refused, "end-to-end").act(view(), ()), Halt)


async def test_the_form_of_questions_of_ours_is_asked_for_and_their_files_keep_their_names():
    item = FormItem(name="answer", label="text", type="exact")
    model, published = Scripted("Final Answer: x", "answer: x"), Scripted("Final Answer: x")
    action = await agent(model, "end-to-end").act(
        view(published=False).model_copy(update={"form": (item,)}), ()
    )
    assert model.sent(0)[1:] == [
        ("user", "The related files are at `image_1.jpg`"),
        ("user", QUERY),
    ]
    assert model.sent(1)[-1] == ("user", render("form", form="answer: <a text>"))
    assert (action.text, len(action.form_replies)) == ("x\n\nanswer: x", 1)
    text = FormItem(name="answer", label="text", type="keywords", free_text=True)
    action = await agent(published, "end-to-end").act(
        view().model_copy(update={"form": (text,)}), ()
    )
    assert (action.text, len(published.asked)) == ("x", 1), "published answers are free text"
    imported = Scripted("Final Answer: x", "answer: x")
    await agent(imported, "end-to-end").act(view().model_copy(update={"form": (item,)}), ())
    assert len(imported.asked) == 2, "a label of a benchmark with published paths is asked for"


def test_every_published_tool_is_declared_with_the_arguments_that_ours_takes():
    from agrotools.calling import get_tool
    from agrotools.core import BENCHMARKS

    for benchmark, names in ((name, BENCHMARKS.get(name).tools) for name in ("gta", "thinkgeo")):
        declared = declared_by(benchmark)
        for name in names:
            spec = get_tool(name).spec
            required: Any = spec.parameters.get("required", [])
            assert {each.name for each in declared[name].parameters} <= spec.agreement.keys()
            assert {each.name for each in declared[name].parameters if each.required} == set(
                required
            )
