"""Protocol of GTA and ThinkGeo: the ReAct agent of lagent 0.2.4 with the prompts of OpenCompass.

Step-by-step: the history holds the reference calls without thoughts and the results as plain text, and the last request
asks for a summary. End-to-end: the history holds the model's own replies, each followed by ``Response:`` and a result,
and the last request tells the model to answer. Messages equal those of the published agent in number, role and wording.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agrotools.agents.images import file_parts
from agrotools.agents.llm import form_is_due, halt_of, observation_data, render, reply_of, with_form
from agrotools.agents.long_replies import output_length, parse_in_thread
from agrotools.agents.options import AgentOptions
from agrotools.agents.parsing import excerpt
from agrotools.agents.received import spoken
from agrotools.calling import tool_specs
from agrotools.core import (
    Action,
    Answer,
    CallTools,
    ErrorInfo,
    Mode,
    Observation,
    Reply,
    SampleView,
    Step,
    ToolCall,
    ToolErrorKind,
    ToolSpec,
    Unparseable,
)
from agrotools.core.record import rename_texts
from agrotools.models import Completion, ContentPart, Message, Model, ModelSettings, TextPart
from agrotools_benchmarks._dialogs.lagent_format import (
    ACTION,
    ACTION_INPUT,
    FOLLOW_FORMAT,
    INVALID_ACTION,
    NO_ACTION,
    RESPONSE,
    CheckedCall,
    Declared,
    DeclaredTool,
    check_call,
    declared_by,
    declared_spec,
    format_tools,
    read_reply,
    strip_reply,
)

MAX_TURNS = 10
"""Default limit of requests per sample, as in GTA (ThinkGeo: 15)."""
_LONGEST_NAME = 200


@dataclass(eq=False)
class LagentAgent:
    """Agent that prompts a model like the agent of GTA and ThinkGeo, in step-by-step and end-to-end mode.

    A question is sent unchanged; unless its file paths are published, the form of its answer is asked for at the end.
    A reply truncated by the token limit is parsed like any other.
    """

    model: Model
    mode: Mode
    settings: ModelSettings = field(default_factory=ModelSettings)
    images: bool = False
    """True to show the images before the question. The published runs show none."""
    max_turns: int = MAX_TURNS
    """Maximum number of requests; the last one tells the model to answer."""
    declared: Declared = field(default_factory=lambda: declared_by("gta"))
    specs: Callable[[Sequence[str]], Sequence[ToolSpec]] = tool_specs
    """Function that returns the specifications of tools without a published description."""
    _tools: dict[tuple[str, ...], tuple[DeclaredTool, ...]] = field(
        default_factory=dict, init=False, repr=False
    )

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        messages, _ = await self.request_for(view, history)
        completion = await self.model.generate(messages, (), self.settings)
        reply = reply_of(completion, completion.text)
        halt = None if completion.finish_reason == "length" else halt_of(completion, reply)
        action = halt or await parse_in_thread(
            lambda: self._action(view, history, completion, reply), output_length(completion)
        )
        # The answers of the published benchmarks are free text, which is scored as it stands.
        is_published = view.paths is not None and all(item.free_text for item in view.form)
        if isinstance(action, Answer) and not is_published and form_is_due(view, self.mode):
            return await with_form(
                action, view, lambda sent: self.model.generate(sent, (), self.settings), messages
            )
        return action

    async def request_for(
        self, view: SampleView, history: Sequence[Step]
    ) -> tuple[list[Message], Sequence[ToolSpec]]:
        """Return the request that :meth:`act` sends; no tool is offered as a native function."""
        paths = _paths(view)
        step_by_step = self.mode == "step-by-step"
        tools = self._offered(view.toolset)
        names = str([tool.name for tool in tools])
        system = render("lagent/system", tool_description=format_tools(tools), action_names=names)
        messages = [Message.of("system", system)]
        if paths:
            hint = render("lagent/files", paths=", ".join(f"`{path}`" for path in paths.values()))
            messages.append(Message.of("system" if step_by_step else "user", hint))
        messages.append(Message(role="user", content=await self._question(view)))
        messages += (published_history if step_by_step else end_to_end_history)(history, paths)
        if step_by_step and view.closing:
            messages.append(Message.of("user", render("lagent/closing")))
        if not step_by_step and len({step.turn for step in history}) == self.max_turns - 1:
            messages.append(Message.of("system", render("lagent/force_stop")))
        return messages, ()

    async def _question(self, view: SampleView) -> tuple[ContentPart, ...]:
        text = TextPart(text=view.query)
        if not self.images or not view.files:
            return (text,)
        return (*await asyncio.to_thread(file_parts, view.files), text)

    def _offered(self, toolset: tuple[str, ...]) -> tuple[DeclaredTool, ...]:
        if toolset not in self._tools:
            specs = self.specs(toolset)
            self._tools[toolset] = tuple(
                self.declared.get(spec.name) or declared_spec(spec) for spec in specs
            )
        return self._tools[toolset]

    def _action(
        self, view: SampleView, history: Sequence[Step], completion: Completion, reply: Reply
    ) -> Action:
        parsed_reply = read_reply(strip_reply(completion.text))
        thought = "\n".join(
            part for part in (completion.thought.strip(), parsed_reply.thought.strip()) if part
        )
        if parsed_reply.kind == "answer":
            return Answer(text=parsed_reply.text.strip(), thought=thought, reply=reply)
        checked = check_call(
            parsed_reply, self._offered(view.toolset), _known_files(view, history).__contains__
        )
        if parsed_reply.kind == "nothing" or not parsed_reply.tool:
            reason = checked.failure.message if checked.failure else FOLLOW_FORMAT
            return Unparseable(text=excerpt(completion.text), reason=reason, reply=reply)
        names = {path: name for name, path in _paths(view).items()}
        call_arguments = checked.arguments or (
            checked.raw_arguments if isinstance(checked.raw_arguments, dict) else {}
        )
        if checked.tool == INVALID_ACTION:
            call_arguments = {}
        tool = (
            checked.tool
            if checked.tool not in (INVALID_ACTION, NO_ACTION)
            else parsed_reply.tool[:_LONGEST_NAME]
        )
        call = ToolCall(tool=tool, arguments=rename_texts(call_arguments, names))
        return CallTools(calls=(call,), thought=thought, reply=reply, refused=_refusal(checked))


def make_agent(model: Model, mode: Mode, options: AgentOptions) -> LagentAgent:
    """Create the agent of a run with ``options``, with the tools as its benchmark declares them."""
    benchmark = options.benchmark
    declared = declared_by(benchmark.name, benchmark.root) if benchmark else declared_by("gta")
    return LagentAgent(
        model, mode, options.settings, options.images, options.max_steps, declared, options.specs
    )


def _refusal(checked: CheckedCall) -> ErrorInfo | None:
    if checked.failure is None:
        return None
    kind: ToolErrorKind = "invalid_argument"
    if checked.tool == INVALID_ACTION:
        kind = "unknown_tool"
    elif checked.failure.message.startswith("FileNotFoundError"):
        kind = "file_not_found"
    return ErrorInfo(kind=kind, message=checked.failure.message)


def _paths(view: SampleView) -> dict[str, str]:
    """Return for each file name the path that the model sees."""
    published = view.paths or {}
    return {file.name: published.get(file.name, file.name) for file in view.files}


def _known_files(view: SampleView, history: Sequence[Step]) -> set[str]:
    """Return the paths of the sample's files and the names of images that earlier calls created."""
    observations = [step.observation for step in history if step.observation]
    results = [
        observation.result.get("image") for observation in observations if observation.result
    ]
    return {
        *_paths(view).values(),
        *(artifact.name for observation in observations for artifact in observation.artifacts),
        *(image for image in results if isinstance(image, str)),
    }


def published_history(steps: Sequence[Step], paths: Mapping[str, str]) -> list[Message]:
    """Return the messages of step-by-step mode: reference calls and any results. ``paths``: of files by name."""
    messages: list[Message] = []
    for step in steps:
        if step.call is None:
            continue
        messages.append(Message.of("assistant", _call_text(step, paths)))
        if step.observation is not None and not step.observation.empty:
            messages.append(Message.of("system", result_text(step)))
    return messages


def end_to_end_history(steps: Sequence[Step], paths: Mapping[str, str]) -> list[Message]:
    """Return the model's replies so far with their results, in the form of end-to-end mode."""
    messages: list[Message] = []
    for step in steps:
        reply_text = (
            strip_reply(step.reply.text)
            if step.reply
            else _call_text(step, paths)
            if step.call
            else step.text
        )
        came = result_text(step) if step.call else step.reason
        messages += [spoken(reply_text, step.reply), Message.of("system", f"{RESPONSE}{came}\n")]
    return messages


def result_text(step: Step) -> str:
    """Return the result of a step's call as text: its text, a link to its image, or its error."""
    observation = step.observation or Observation()
    if observation.error is not None:
        error = observation.error
        return f"{error.message} ({error.hint})" if error.hint else error.message
    result = observation.result or {}
    if isinstance(text := result.get("text"), str):
        return text
    if isinstance(image := result.get("image"), str):
        return f"[image]({image})"
    return observation_data(step)


def _call_text(step: Step, paths: Mapping[str, str]) -> str:
    assert step.call is not None
    arguments = json.dumps(rename_texts(step.call.arguments, paths))
    return f"{ACTION}{step.call.tool}\n{ACTION_INPUT}{arguments}"
