"""What an agent keeps of a conversation between its turns changes nothing of what it says."""

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agrotools.agents.llm import LLMAgent
from agrotools.core import Observation, Protocol, SampleView, Step, ToolCall
from agrotools.models import Completion
from agrotools.models.endpoint import ScriptedModel

TURNS = st.lists(st.sampled_from(["call", "two calls", "unparseable"]), max_size=5)
VIEWS = tuple(
    SampleView(id=name, query=f"How many {name}?", files=(), toolset=("calculate",), answer_form="")
    for name in "ab"
)


def agent(protocol: Protocol) -> LLMAgent:
    model = ScriptedModel(lambda _messages, _tools, _settings: Completion(text="Final Answer: 1"))
    return LLMAgent(model, "end-to-end", protocol)


def history(turns: Sequence[str]) -> tuple[Step, ...]:
    steps: list[Step] = []
    for turn, kind in enumerate(turns):
        if kind == "unparseable":
            steps.append(Step(turn=turn, kind=kind, text="what", reason="it cannot be read"))
        for _ in range({"call": 1, "two calls": 2}.get(kind, 0)):
            call = ToolCall(tool="calculate", arguments={"expression": f"1+{len(steps)}"})
            steps.append(
                Step(
                    turn=turn,
                    kind="call",
                    call=call,
                    observation=Observation(result={"value": len(steps)}),
                )
            )
    return tuple(steps)


@given(
    st.sampled_from(["react", "tool-calling"]),
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 10), st.booleans()),
        max_size=12,
    ),
    st.tuples(TURNS, TURNS),
)
def test_any_order_of_histories_is_told_as_if_it_were_the_first(protocol, asked, turns):
    async def run() -> None:
        kept, histories = agent(protocol), [history(kinds) for kinds in turns]
        for view, which, length, answers in asked:
            steps = histories[which][:length]
            messages, tools = await kept.request_for(VIEWS[view], steps)
            assert (messages, tools) == await agent(protocol).request_for(VIEWS[view], steps)
            messages.clear()  # what is given out is the caller's own
            if answers:
                await kept.act(VIEWS[view], steps)

    asyncio.run(run())


def test_nothing_is_kept_of_a_sample_that_is_answered() -> None:
    kept = agent("react")
    asyncio.run(kept.act(VIEWS[0], ()))
    assert not kept._conversations
