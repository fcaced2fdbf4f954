"""Protocol of Agent-X: a single prompt for the steps, the tool outputs and the answer."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agrotools.agents.images import file_parts
from agrotools.agents.llm import halt_of, render, reply_of
from agrotools.agents.long_replies import output_length, parse_in_thread
from agrotools.agents.options import AgentOptions
from agrotools.agents.parsing import excerpt
from agrotools.calling import tool_specs
from agrotools.core import Action, Answer, Mode, SampleView, Step, ToolSpec, Unparseable
from agrotools.models import ContentPart, ImagePart, Message, Model, ModelSettings, TextPart
from agrotools.text.loose_json import dumps
from agrotools_benchmarks.agent_x.replies import read_prediction


@dataclass(eq=False)
class AgentXAgent:
    """Agent that requests everything in one reply. No tool runs; the reply with its invented steps is kept in the
    record.

    The answer is the ``value`` of the final answer, or its justification if there is no value.
    """

    model: Model
    mode: Mode = "no-tool"
    """Only no-tool, because the model would invent the tool results."""
    settings: ModelSettings = field(default_factory=ModelSettings)
    images: bool = True
    """True to show the images; otherwise the model sees only the file names."""
    specs: Callable[[Sequence[str]], Sequence[ToolSpec]] = tool_specs
    _systems: dict[tuple[str, ...], Message] = field(default_factory=dict, init=False, repr=False)

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        messages, _ = await self.request_for(view, history)
        completion = await self.model.generate(messages, (), self.settings)
        reply = reply_of(completion, completion.text)
        if halt := halt_of(completion, reply):
            return halt
        prediction = await parse_in_thread(
            lambda: read_prediction(completion.text), output_length(completion)
        )
        if isinstance(prediction, str):
            reason = f"The reply cannot be read: {prediction}."
            return Unparseable(text=excerpt(completion.text), reason=reason, reply=reply)
        text = prediction.value.strip() or prediction.justification.strip()
        return Answer(text=text, thought=completion.thought, reply=reply)

    async def request_for(
        self,
        view: SampleView,
        history: Sequence[Step],  # noqa: ARG002
    ) -> tuple[list[Message], Sequence[ToolSpec]]:
        """Return the request that :meth:`act` sends, independent of the history; no tool is offered."""
        if view.toolset not in self._systems:
            tools = {
                spec.name: {
                    "description": spec.description,
                    "arguments": spec.parameters.get("properties", {}),
                }
                for spec in self.specs(view.toolset)
            }
            self._systems[view.toolset] = Message.of(
                "system", render("agent_x/system", tools=dumps(tools))
            )
        names = ", ".join(file.name for file in view.files)
        question = TextPart(text=render("agent_x/question", names=names, query=view.query))
        image_parts = (
            await asyncio.to_thread(file_parts, view.files) if self.images and view.files else ()
        )
        pictures: list[ContentPart] = [part for part in image_parts if isinstance(part, ImagePart)]
        return [
            self._systems[view.toolset],
            Message(role="user", content=(*pictures, question)),
        ], ()


def make_agent(model: Model, mode: Mode, options: AgentOptions) -> AgentXAgent:
    """Create the agent of a run with ``options``."""
    return AgentXAgent(model, mode, options.settings, options.images, options.specs)
