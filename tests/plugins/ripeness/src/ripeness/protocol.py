"""Protocol of the benchmark: the model is asked for one word."""

from collections.abc import Sequence

from agrotools import Action, Answer, Model, SampleView, Step
from agrotools.plugin import AgentOptions, Message, Mode, ToolSpec


class OneWordAgent:
    """Asks for one word, which is the grade."""

    def __init__(self, model: Model, mode: Mode, options: AgentOptions) -> None:
        self.model, self.mode, self.settings = model, mode, options.settings

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        messages, tools = await self.request_for(view, history)
        reply = await self.model.generate(messages, tools, self.settings)
        return Answer(text=f"grade: {reply.text.strip()}")

    async def request_for(
        self, view: SampleView, history: Sequence[Step]
    ) -> tuple[Sequence[Message], Sequence[ToolSpec]]:
        return [Message.of("user", f"Reply with one word. {view.query}")], ()
