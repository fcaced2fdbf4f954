"""A policy that prompts a model."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache

from agrotools.agents.images import file_parts, is_prepared
from agrotools.agents.parsing import as_text, parse_output
from agrotools.agents.prompts import fill, render
from agrotools.agents.protocols import PROTOCOLS
from agrotools.core import Action, Halt, Mode, Protocol, Reply, SampleView, Step, Termination, ToolSpec
from agrotools.models import Completion, ContentPart, Message, Model, ModelSettings, TextPart
from agrotools.models.base import FinishReason
from agrotools.tools import tool_specs

_QUESTIONS_KEPT = 128
"""Samples in flight, about; a picture in a question may take some hundred kilobytes."""
_HALTS: dict[FinishReason, Termination] = {
    "length": "length",
    "context": "context",
    "filtered": "filtered",
    "timeout": "timeout",
}

_REASONS: dict[Termination, str] = {
    "length": "the reply reached its token limit",
    "context": "the conversation does not fit the model's context",
    "filtered": "a content filter stopped the reply",
    "timeout": "the reply did not end in time",
}


class LLMAgent:
    """Asks a model what to do next; everything it is told comes from the view, the history and the tools.

    Args:
        model: answers the prompts.
        mode: no-tool asks for the answer at once; the other modes differ only in who runs the calls.
        protocol: how calls are written.
        settings: how the model samples.
        images: whether images are shown; without, the model reads the line about each file alone.
        specs: from tool names to their specifications; the registry of tools by default.
    """

    def __init__(
        self,
        model: Model,
        mode: Mode,
        protocol: Protocol = "react",
        settings: ModelSettings | None = None,
        images: bool = True,
        specs: Callable[[Sequence[str]], Sequence[ToolSpec]] = tool_specs,
    ) -> None:
        self.model = model
        self.mode: Mode = mode
        self.protocol: Protocol = protocol
        self.settings = settings or ModelSettings()
        self.images = images
        self._specs = specs
        self._questions: OrderedDict[int, tuple[SampleView, Message]] = OrderedDict()
        self._written: dict[tuple[str, ...], tuple[Message, Sequence[ToolSpec]]] = {}

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        messages, tools = await self.request_for(view, history)
        return self._action(await self.model.generate(messages, tools, self.settings))

    async def request_for(self, view: SampleView, history: Sequence[Step]) -> tuple[list[Message], Sequence[ToolSpec]]:
        """What :meth:`act` sends: the messages, and the tools that are offered as native functions."""
        conversation = PROTOCOLS[self.protocol]
        system, specs = self._instructions(() if self.mode == "no-tool" else view.toolset)
        messages = [system, await self._asked(view), *conversation.history(history)]
        return messages, specs if conversation.native else ()

    async def _asked(self, view: SampleView) -> Message:
        """The message that asks the question, written once for each view: it comes again with every turn."""
        known = self._questions.get(id(view))
        if known is not None:
            return known[1]
        if is_prepared(view.files, images=self.images):
            shown = file_parts(view.files, images=self.images)
        else:
            # Reading and encoding images takes longer than a request should wait for another's.
            shown = await asyncio.to_thread(file_parts, view.files, images=self.images)
        message = Message(role="user", content=_question(view, shown))
        # The view is held beside the message, so that no other can take over its identity.
        self._questions[id(view)] = (view, message)
        if len(self._questions) > _QUESTIONS_KEPT:
            self._questions.popitem(last=False)
        return message

    def _instructions(self, toolset: tuple[str, ...]) -> tuple[Message, Sequence[ToolSpec]]:
        """The system message for ``toolset``, written once, and the specifications of its tools."""
        if toolset not in self._written:
            specs = self._specs(toolset) if toolset else ()
            text = PROTOCOLS[self.protocol].system(specs) if specs else render("no_tool_system")
            self._written[toolset] = Message.of("system", text), specs
        return self._written[toolset]

    def _action(self, completion: Completion) -> Action:
        reply = _reply(completion)
        halt = _HALTS.get(completion.finish_reason)
        if halt is not None:
            return Halt(termination=halt, reason=completion.detail or _REASONS[halt], reply=reply)
        return parse_output(
            completion.text,
            completion.tool_calls,
            protocol=self.protocol,
            answer_only=self.mode == "no-tool",
            reply=reply,
        )


def _question(view: SampleView, shown: Sequence[ContentPart]) -> tuple[ContentPart, ...]:
    heading = (_heading(len(view.files)),) if view.files else ()
    question = TextPart(text=fill("question", query=view.query, answer_form=view.answer_form))
    return (*heading, *shown, question)


@cache
def _heading(files: int) -> TextPart:
    return TextPart(text=render("files", count=files))


def _reply(completion: Completion) -> Reply:
    """The raw reply as text that the parser reads to the same action."""
    thought = f"<think>\n{completion.thought}\n</think>\n" if completion.thought else ""
    return Reply(
        text=thought + completion.text + "".join(as_text(call) for call in completion.tool_calls),
        finish_reason=completion.finish_reason,
        usage=completion.usage,
        seconds=round(completion.seconds, 3),
    )
