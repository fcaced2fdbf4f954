"""Policy that prompts a model, its protocols ``react`` and ``tool-calling``, and the templates of all prompts.

A protocol defines how calls and observations are written in a conversation; an observation is compact JSON between
tags, of bounded length.

Templates (``prompts/``, one file per text) are filled with values only; no value is ever parsed as a template, so
hostile text remains text. Protocols of benchmark plug-ins have templates of their own
(:class:`agrotools.plugin.PromptTemplates`).
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from agrotools.agents.argument_text import arguments_text
from agrotools.agents.images import RESULT_FILES, file_parts, result_picture_parts
from agrotools.agents.long_replies import kept_text, output_length, parse_in_thread
from agrotools.agents.parsing import (
    as_text,
    before_invented_turn,
    excerpt,
    parse_output,
    unread_call,
)
from agrotools.agents.protocols import PromptTemplates
from agrotools.agents.received import native_calls, own_words, react_words, spoken
from agrotools.calling import tool_specs
from agrotools.core import (
    Action,
    Answer,
    CallTools,
    ErrorInfo,
    Halt,
    Mode,
    Protocol,
    Reply,
    SampleView,
    Step,
    Termination,
    ToolImages,
    ToolSpec,
)
from agrotools.core.frozen_model import from_valid
from agrotools.core.installed import WithPlugins
from agrotools.models import Completion, ContentPart, Message, Model, ModelSettings, TextPart
from agrotools.models.base import FinishReason
from agrotools.models.chat_format import SUFFIX as RESPONSES_SUFFIX
from agrotools.models.chat_format import PromptCount, check_prompt, count_prompt
from agrotools.text.answer_reader import as_form, form_faults, is_complete
from agrotools.text.loose_json import dumps

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import jinja2

PROMPT_TEMPLATES: WithPlugins[PromptTemplates] = WithPlugins(
    "template folder",
    {},
    lambda plugin: {
        protocol.templates.prefix: protocol.templates
        for protocol in plugin.protocols.values()
        if protocol.templates
    },
)
"""Templates of plug-in protocols, by prefix."""


@cache
def _sources() -> dict[str, str]:
    return _in(files("agrotools.agents") / "prompts")


@cache
def protocol_sources(templates: PromptTemplates) -> dict[str, str]:
    """Return the templates of a protocol by name, ``PREFIX/NAME.j2``."""
    folder = files(templates.package).joinpath(templates.folder)
    return {f"{templates.prefix}/{name}": text for name, text in _in(folder).items()}


def _source(name: str) -> str | None:
    """Return the text of the template with that name (including ``.j2``), or None."""
    if name in _sources():
        return _sources()[name]
    templates = PROMPT_TEMPLATES.get(name.rpartition("/")[0])
    return protocol_sources(templates).get(name) if templates else None


def _in(folder: "Traversable") -> dict[str, str]:
    templates = [entry for entry in folder.iterdir() if entry.name.endswith(".j2")]
    return {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in sorted(templates, key=lambda entry: entry.name)
    }


@cache
def _environment() -> "jinja2.Environment":
    import jinja2

    # Prompts are plain text: escaping for HTML would change what the model reads.
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(name: str, **values: Any) -> str:
    """Render the template ``name`` (without ``.j2``) and strip whitespace at its ends."""
    return _environment().get_template(f"{name}.j2").render(values).strip()


@cache
def prompt_hash(templates: PromptTemplates | None = None, extra_text: str = "") -> str:
    """Return the SHA-256 of names and texts of a protocol's templates, 16 hexadecimal digits.

    Runs are comparable only if their hashes are equal.

    Args:
        templates: templates of the protocol itself, hashed after the common ones.
        extra_text: further prompt text that is not in a template.
    """
    used = (
        _sources()
        | (protocol_sources(templates) if templates else {})
        | ({"": extra_text} if extra_text else {})
    )
    return hashlib.sha256(
        "".join(f"{name}\0{text}\0" for name, text in used.items()).encode()
    ).hexdigest()[:16]


OBSERVATION_LIMIT = 12_000
"""Maximum characters of one observation; long lists and texts in it are shortened first, with a note."""

_ITEMS_KEPT = (400, 200, 100, 50, 20, 10, 5)


def error_data(error: ErrorInfo) -> dict[str, Any]:
    """Return a tool error as a model sees it: without empty fields, and without what only a person can do."""
    shown = error.model_dump(mode="json", exclude_none=True, exclude={"setup"})
    return {key: value for key, value in shown.items() if value not in ([], "")}


def observation_data(step: Step) -> str:
    """Return result or error of the step's call as JSON that cannot close the surrounding tags."""
    content: dict[str, Any] = {"tool": step.call.tool if step.call else ""}
    observation = step.observation
    if observation is None:
        content["error"] = {"kind": "backend_unavailable", "message": "the tool returned nothing"}
    elif observation.error is not None:
        content["error"] = error_data(observation.error)
    else:
        content["result"] = observation.result
    if observation is not None and observation.artifacts:
        content["artifacts"] = [
            {"name": item.name, "kind": item.kind} for item in observation.artifacts
        ]
    return _bounded(content).replace("</", "<\\/")


def observation_text(step: Step) -> str:
    """Return the observation of a call, marked as data."""
    return render("observation", data=observation_data(step))


def _bounded(content: Any) -> str:
    text = dumps(content)
    for n_items in _ITEMS_KEPT:
        if len(text) <= OBSERVATION_LIMIT:
            return text
        text = dumps(_shortened(content, n_items))
    if len(text) > OBSERVATION_LIMIT:
        text = f"{text[:OBSERVATION_LIMIT]} [cut: {len(text) - OBSERVATION_LIMIT} more characters]"
    return text


def _shortened(value: Any, n_items: int) -> Any:
    """Return ``value`` with at most ``n_items`` items of each list and ``20 * n_items`` characters of each text."""
    if isinstance(value, str) and len(value) > 20 * n_items:
        return f"{value[: 20 * n_items]} [cut: {len(value) - 20 * n_items} more characters]"
    if isinstance(value, list):
        items = [_shortened(item, n_items) for item in value[:n_items]]
        return (
            [*items, f"[cut: {len(value) - n_items} more items]"] if len(value) > n_items else items
        )
    if isinstance(value, dict):
        return {key: _shortened(item, n_items) for key, item in value.items()}
    return value


_LONGEST_THOUGHT = 4000


def place_of_pictures(base_url: str | None) -> ToolImages:
    """Return where the format at an address has room for the pictures of results: the output of a function in the
    Responses API, else a user message, since a tool message of chat completions holds only text."""
    return "in results" if (base_url or "").endswith(RESPONSES_SUFFIX) else "after results"


@dataclass(frozen=True)
class ResultPictures:
    """Pictures of results with their captions, by the number of the step in the whole history."""

    place: ToolImages = ""
    by_step: Mapping[int, tuple[ContentPart, ...]] = field(default_factory=dict)

    def of(self, *numbers: int) -> tuple[ContentPart, ...]:
        """Return the parts of these steps, in order."""
        return tuple(part for number in numbers for part in self.by_step.get(number, ()))


NO_PICTURES = ResultPictures()


@dataclass(frozen=True)
class MessageFormat:
    """Message format of a protocol. ``system`` writes the instructions, ``turn`` the messages of one turn of calls."""

    native: bool
    """True if tools are offered to the endpoint as functions instead of being described in the instructions."""
    system: Callable[[Sequence[ToolSpec]], str]
    turn: Callable[[str, Sequence[tuple[int, Step]], ResultPictures], list[Message]]
    """Maps the thought, the numbered call steps of a turn (numbered over the whole history) and the pictures of their
    results to messages."""

    def history(
        self, steps: Sequence[Step], start: int = 0, pictures: ResultPictures = NO_PICTURES
    ) -> list[Message]:
        """Return the messages of the history so far, starting with the turn that begins at step ``start``."""
        messages: list[Message] = []
        for _, group in groupby(enumerate(steps[start:], start), key=lambda entry: entry[1].turn):
            messages += self._messages(list(group), pictures)
        return messages

    def _messages(self, turn: list[tuple[int, Step]], pictures: ResultPictures) -> list[Message]:
        first = turn[0][1]
        if first.kind == "call":
            return self.turn(excerpt(first.thought, _LONGEST_THOUGHT), turn, pictures)
        text, own = first.text.strip(), own_words(first.reply, len(first.text))
        message = spoken(
            text or "(nothing)", first.reply, own=own if own and own.strip() == text else None
        )
        if first.kind == "unparseable":
            return [message, Message.of("user", render("repair", reason=first.reason))]
        return [message]


def _react_system(specs: Sequence[ToolSpec]) -> str:
    tools: list[dict[str, str]] = []
    for spec in specs:
        offered = spec.offered()
        tools.append(
            {
                "name": offered["name"],
                "description": offered["description"],
                "arguments": arguments_text(offered["parameters"]),
                "example": dumps(spec.example) if spec.example else "",
            }
        )
    return render("react_system", tools=tools)


def _react_turn(
    thought: str, steps: Sequence[tuple[int, Step]], pictures: ResultPictures
) -> list[Message]:
    calls = [
        {"tool": step.call.tool, "arguments": dumps(step.call.arguments)}
        for _, step in steps
        if step.call is not None
    ]
    observations = [observation_data(step) for _, step in steps]
    text = render("react_calls", thought=thought, calls=calls)
    observed = TextPart(render("react_observations", observations=observations))
    shown = pictures.of(*(number for number, _ in steps))
    return [
        spoken(
            text,
            steps[0][1].reply,
            own=react_words(steps[0][1].reply, len(text) + _LONGEST_THOUGHT),
        ),
        Message(role="user", content=(observed, *shown)),
    ]


REACT = MessageFormat(native=False, system=_react_system, turn=_react_turn)
"""Thought, action and action input as text in one message, the observation in the next (Yao et al., 2023)."""


def _native_turn(
    thought: str, steps: Sequence[tuple[int, Step]], pictures: ResultPictures
) -> list[Message]:
    calls = native_calls(steps)
    in_results = pictures.place == "in results"
    answers: list[Message] = []
    for call, (number, step) in zip(calls, steps, strict=True):
        shown = pictures.of(number) if in_results else ()
        content = (TextPart(text=observation_text(step)), *shown)
        answers.append(Message(role="tool", content=content, tool_call_id=call.id, name=call.name))
    if not in_results and (shown := pictures.of(*(number for number, _ in steps))):
        answers.append(Message(role="user", content=shown))
    return [spoken(thought, steps[0][1].reply, calls), *answers]


TOOL_CALLING = MessageFormat(
    native=True, system=lambda _specs: render("tool_calling_system"), turn=_native_turn
)
"""Native tool calls: tools are offered as functions, calls are fields of a message, observations are tool messages."""

PROTOCOLS: dict[Protocol, MessageFormat] = {"react": REACT, "tool-calling": TOOL_CALLING}


_LONGEST_ANSWER_TOLD = 8000
"""Maximum characters of an answer that is sent back with the request for its form."""
FORM_REQUESTS = 2
"""Maximum closing messages of a sample."""
_CONVERSATIONS_KEPT = 128
"""About the number of samples in flight; a question with images may take several hundred kilobytes."""
_HALTS: dict[FinishReason, tuple[Termination, str]] = {
    "length": ("length", "the reply reached its token limit"),
    "context": ("context", "the conversation does not fit the model's context"),
    "filtered": ("filtered", "a content filter stopped the reply"),
}


@dataclass(slots=True)
class _Conversation:
    """Messages about one view. The view is kept alive because conversations are looked up by its identity."""

    view: SampleView
    messages: list[Message]
    """System message, question, and the messages of ``steps`` steps, of which ``last`` is the last."""
    steps: int = 0
    last: Step | None = None
    counts: list[PromptCount] = field(default_factory=list[PromptCount])


class LLMAgent:
    """Policy that prompts a model with the view, the history and the tools.

    ``mode``: no-tool asks for the answer at once; the other modes differ only in who executes the calls. ``images``:
    True to show images; otherwise the model sees only a line of text per file. ``tool_images``: where the pictures that
    calls made are shown; they are read from :data:`RESULT_FILES`, and only end-to-end has any.
    """

    def __init__(
        self,
        model: Model,
        mode: Mode,
        protocol: Protocol = "react",
        settings: ModelSettings | None = None,
        images: bool = True,
        specs: Callable[[Sequence[str]], Sequence[ToolSpec]] = tool_specs,
        tool_images: ToolImages = "",
    ) -> None:
        self.model = model
        self.mode: Mode = mode
        self.protocol: Protocol = protocol
        self.settings = settings or ModelSettings()
        self.images = images
        self.tool_images: ToolImages = tool_images if mode == "end-to-end" else ""
        self._specs = specs
        self._conversations: OrderedDict[int, _Conversation] = OrderedDict()
        self._written: dict[tuple[str, ...], tuple[Message, Sequence[ToolSpec]]] = {}

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        messages, tools = await self.request_for(view, history)
        completion = await self.model.generate(messages, tools, self.settings)
        if view.bare:
            return _bare_action(completion)
        if (conversation := self._conversations.get(id(view))) and completion.received:
            conversation.counts.append(count_prompt(messages, completion))
            check_prompt(conversation.counts)
        action = await self._read(completion, view, messages, tools)
        if isinstance(action, Answer | Halt) and self.mode != "step-by-step":
            self._conversations.pop(id(view), None)
        return action

    async def answer_at_limit(self, view: SampleView, history: Sequence[Step]) -> Action:
        """Return what the model replies to the request to answer now."""
        messages, tools = await self.request_for(view, history)
        last = messages[-1]
        messages[-1] = replace(
            last, content=(*last.content, TextPart(text=render("limit", query=view.query)))
        )
        completion = await self.model.generate(messages, tools, self.settings)
        self._conversations.pop(id(view), None)
        return await self._read(completion, view, messages, tools)

    async def request_for(
        self, view: SampleView, history: Sequence[Step]
    ) -> tuple[list[Message], Sequence[ToolSpec]]:
        """Return the request that :meth:`act` sends: messages, and tools that are offered as native functions."""
        if view.bare:
            return [Message.of("user", view.query)], ()
        protocol = PROTOCOLS[self.protocol]
        system, specs = self._instructions(() if self.mode == "no-tool" else view.toolset)
        conversation = self._conversations.get(id(view)) or await self._begin(system, view)
        if not _extends(history, conversation):
            conversation.messages, conversation.steps, conversation.last = (
                conversation.messages[:2],
                0,
                None,
            )
        if len(history) > conversation.steps:
            pictures = await self._pictures(history, conversation.steps)
            conversation.messages += protocol.history(history, conversation.steps, pictures)
            conversation.steps = len(history)
            conversation.last = history[-1]
        return conversation.messages[:], specs if protocol.native else ()

    async def _pictures(self, history: Sequence[Step], start: int) -> ResultPictures:
        """Return the pictures of the results from step ``start`` on, if they are shown."""
        folder = RESULT_FILES.get()
        if not self.tool_images or folder is None:
            return NO_PICTURES
        by_step: dict[int, tuple[ContentPart, ...]] = {}
        for number, step in enumerate(history[start:], start):
            if step.call and step.observation and (artifacts := step.observation.artifacts):
                # In a thread, so that other requests do not wait while pictures are scaled.
                by_step[number] = await asyncio.to_thread(
                    result_picture_parts, step.call.tool, artifacts, folder
                )
        return ResultPictures(self.tool_images, by_step)

    async def _begin(self, system: Message, view: SampleView) -> _Conversation:
        """Start and cache the conversation about ``view``, whose messages are sent again with every turn."""
        # In a thread, so that other requests do not wait while files are decoded.
        file_contents = (
            await asyncio.to_thread(file_parts, view.files, images=self.images)
            if view.files
            else ()
        )
        heading = (_heading(len(view.files)),) if view.files else ()
        question = (*heading, *file_contents, TextPart(text=render("question", query=view.query)))
        conversation = _Conversation(view, [system, Message(role="user", content=question)])
        self._conversations[id(view)] = conversation
        if len(self._conversations) > _CONVERSATIONS_KEPT:
            self._conversations.popitem(last=False)
        return conversation

    async def _read(
        self,
        completion: Completion,
        view: SampleView,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
    ) -> Action:
        """Return the action of the reply to a request; an answer has its form."""
        action = await parse_in_thread(
            lambda: self._action(completion, view), output_length(completion)
        )
        if isinstance(action, Answer) and form_is_due(view, self.mode):
            return await with_form(
                action, view, lambda sent: self.model.generate(sent, tools, self.settings), messages
            )
        return action

    def _instructions(self, toolset: tuple[str, ...]) -> tuple[Message, Sequence[ToolSpec]]:
        if toolset not in self._written:
            specs = self._specs(toolset) if toolset else ()
            text = PROTOCOLS[self.protocol].system(specs) if specs else render("no_tool_system")
            self._written[toolset] = Message.of("system", text), specs
        return self._written[toolset]

    def _action(self, completion: Completion, view: SampleView) -> Action:
        reply = raw_reply(completion)
        if halt := halt_of(completion, reply):
            # A model that invents the result of its call may go on to the token limit; the call is complete.
            is_cut = halt.termination == "length" and not completion.tool_calls
            complete = before_invented_turn(completion.text) if is_cut else ""
            action = self._parsed(complete, completion, view, reply) if complete else halt
            return action if isinstance(action, CallTools) else halt
        if completion.thought and not completion.text.strip() and not completion.tool_calls:
            # Some servers classify a whole reply as reasoning and leave its text empty: a final answer in it counts.
            action = parse_output(
                completion.thought, protocol="react", marked_only=True, reply=reply
            )
            if isinstance(action, Answer):
                return action
            if isinstance(action, CallTools):
                names = ", ".join(call.tool for call in action.calls)
                return unread_call(f"{names} in the reasoning", completion.thought, reply)
        if completion.detail and not completion.text.strip() and not completion.tool_calls:
            return unread_call(completion.detail, "", reply)
        return self._parsed(completion.text, completion, view, reply)

    def _parsed(self, text: str, completion: Completion, view: SampleView, reply: Reply) -> Action:
        specs = () if self.mode == "no-tool" else self._instructions(view.toolset)[1]
        return parse_output(
            text,
            completion.tool_calls,
            protocol=self.protocol,
            tools={spec.name: spec.parameters for spec in specs},
            answer_only=self.mode == "no-tool",
            reply=reply,
        )


def form_is_due(view: SampleView, mode: Mode) -> bool:
    """True if an answer is scored. In step-by-step, only the closing answer is."""
    return bool(view.form) and (mode != "step-by-step" or view.closing)


async def with_form(
    answer: Answer,
    view: SampleView,
    ask: Callable[[Sequence[Message]], Awaitable[Completion]],
    messages: Sequence[Message],
) -> Answer:
    """Return ``answer`` with the values that the model copies into the answer form, which is shown to it now.

    The form is asked for again if answer and reply together lack a line, or one cannot be read. The tools stay in the
    request, because endpoints reject calls in a conversation without them, and servers reuse its beginning; a call is
    ignored.
    """
    most, text, replies = _LONGEST_ANSWER_TOLD, answer.text, list[Reply]()
    sent, said = (
        [*messages],
        spoken(excerpt(text, most), answer.reply, own=own_words(answer.reply, most)),
    )
    message = closing_message(view)
    for _ in range(FORM_REQUESTS):
        sent = [*sent, said, Message.of("user", message)]
        completion = await ask(sent)
        reply = raw_reply(completion)
        form = await parse_in_thread(
            partial(_form_of, completion, reply), output_length(completion)
        )
        form = as_form(form, view.form)
        replies.append(reply)
        text = f"{answer.text}\n\n{form}".rstrip()
        if is_complete(text, view.form):
            break
        said = spoken(excerpt(form, most) or "(nothing)", reply)
        message = second_closing_message(view, text)
    return answer.model_copy(update={"text": text, "form_replies": tuple(replies)})


def _form_of(completion: Completion, reply: Reply) -> str:
    """Return the text of a reply to a closing message, without thinking; empty if it is cut off or there is none."""
    if halt_of(completion, reply) is not None:
        return ""
    # Parsed as in a protocol that accepts plain text as an answer.
    action = parse_output(completion.text, completion.tool_calls, protocol="tool-calling")
    return action.text.strip() if isinstance(action, Answer) else ""


def _bare_action(completion: Completion) -> Action:
    """Return the whole reply as the answer, even if it was truncated by a token limit."""
    reply = raw_reply(completion)
    halt = None if completion.finish_reason == "length" else halt_of(completion, reply)
    return halt or Answer(text=completion.text, thought=completion.thought, reply=reply)


def halt_of(completion: Completion, reply: Reply) -> Halt | None:
    """Return the halt of a reply that was cut off or refused; None for a normal reply."""
    if completion.finish_reason not in _HALTS:
        return None
    termination, reason = _HALTS[completion.finish_reason]
    return Halt(termination=termination, reason=completion.detail or reason, reply=reply)


def reply_of(completion: Completion, text: str) -> Reply:
    """Return a reply with ``text`` and the endpoint's metadata."""
    fields = {
        "text": kept_text(text),
        "finish_reason": completion.finish_reason,
        "usage": completion.usage,
        "seconds": round(completion.seconds, 3),
        "first_token": completion.first_token,
        "received": completion.received,
    }
    return from_valid(Reply, fields)


def _extends(history: Sequence[Step], conversation: _Conversation) -> bool:
    """True if ``history`` extends the recorded conversation by whole turns."""
    if conversation.last is None:
        return True
    if (
        len(history) < conversation.steps
        or history[conversation.steps - 1] is not conversation.last
    ):
        return False
    return (
        len(history) == conversation.steps
        or history[conversation.steps].turn != conversation.last.turn
    )


def closing_message(view: SampleView) -> str:
    """Return the message that asks for the form of an answer."""
    return render("form", form=view.answer_form)


def second_closing_message(view: SampleView, text: str) -> str:
    """Return the message that asks for the form again: it names the lines of ``text`` that are missing or unreadable.

    ``text``: the answer with the reply to the first message. The message depends on form and text alone, so that it
    tells nothing of the right values.
    """
    return render("form_again", faults=form_faults(text, view.form), form=view.answer_form)


@cache
def _heading(files: int) -> TextPart:
    return TextPart(text=render("files", count=files))


def raw_reply(completion: Completion) -> Reply:
    """Return the raw reply as text that the parser maps to the same action."""
    thought = f"<think>\n{completion.thought}\n</think>\n" if completion.thought else ""
    return reply_of(
        completion,
        thought + completion.text + "".join(as_text(call) for call in completion.tool_calls),
    )
