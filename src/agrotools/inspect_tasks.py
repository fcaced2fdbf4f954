"""Tasks of Inspect AI (extra ``inspect``): our questions, tools, closing message and score in its runs and logs.

    inspect eval agrotools/embedded_quick --model openai/gpt-4.1-mini [-T tool_images=true] [-T tool_servers=ADDRESS]

The solver is the loop of ``agrotools eval``. The tools are tools of Inspect, for its log and other solvers, too.
A sample's sessions with tool servers end with it.
The metric ``fas`` is that of ``agrotools eval``, and the mean of the values of the samples.
"""

# pyright: reportMissingImports=false

import asyncio
import math
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, cast

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.hooks import Hooks, RunEnd, hooks
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    execute_tools,
    get_model,
)
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, ToolDef, ToolParams, tool
from inspect_ai.tool import ToolCall as InspectCall

from agrotools.agents.images import RESULT_FILES
from agrotools.agents.llm import LLMAgent
from agrotools.agents.modes import run_end_to_end
from agrotools.agents.session import Session
from agrotools.calling import tool_specs
from agrotools.calling.cache import ResultCache
from agrotools.calling.execution import ToolExecutor
from agrotools.core import (
    ErrorInfo,
    Observation,
    Record,
    ToolCall,
    ToolImages,
    ToolOutcome,
    ToolSpec,
    Trajectory,
)
from agrotools.core import Score as ScoreRow
from agrotools.core.libraries import require_libraries
from agrotools.foreign.inspect_logs import MANIFEST, RECORD
from agrotools.loading.benchmarks import Loading, load_as
from agrotools.models import Completion, ContentPart, Message, ModelSettings, TextPart
from agrotools.models.base import FinishReason, RequestedCall
from agrotools.report.score_text import score_text
from agrotools.runner.build import RunPlan, plan_run
from agrotools.runner.config import EvalConfig
from agrotools.runner.estimate import PREVIEWED
from agrotools.scoring.aggregate import RunAggregator, score_record
from agrotools.scoring.lost_points import lost_shares
from agrotools.scoring.metrics import FAS
from agrotools.scoring.slots import refusal_points, refusals, refused, refused_twin_text
from agrotools.served.tools import ServedCalls, ServedToolset
from agrotools.text.loose_json import NotJson, dumps, loads_strictly

MODE: Literal["end-to-end"] = "end-to-end"
MAX_STEPS = 20
_FINISHED: dict[str, FinishReason] = {
    "tool_calls": "tool_calls", "max_tokens": "length", "model_length": "context", "content_filter": "filtered",
}  # fmt: skip
_TRAJECTORY = "agrotools_trajectory"


class _Sessions:
    """Samples in work with their agents, by the id of Inspect's sample, and the worker processes that they share."""

    def __init__(self) -> None:
        self.open: dict[str, tuple[Session, LLMAgent]] = {}
        self._executors: dict[tuple[str, ServedToolset], ToolExecutor] = {}
        self._starting = asyncio.Lock()

    async def executor(self, plan: RunPlan) -> ToolExecutor:
        place = plan.benchmark.name, plan.served
        async with self._starting:
            if place not in self._executors:
                made = ToolExecutor(
                    cache=ResultCache(),
                    backends=plan.settings.executed_backends,
                    served=ServedCalls(plan.served) if plan.served.servers else None,
                )
                self._executors[place] = await made.__aenter__()
            return self._executors[place]

    async def end(self, plan: RunPlan, uuid: str) -> None:
        """End a sample: its sessions with tool servers, and the files of its calls."""
        if uuid in self.open:
            session, _ = self.open.pop(uuid)
            await session.end_calls(await self.executor(plan))
            session.close()

    async def close(self) -> None:
        while self._executors:
            await self._executors.popitem()[1].__aexit__(None, None, None)


_SESSIONS = _Sessions()


@hooks(name="agrotools", description="ends the tool workers of agrotools")
class EndWorkers(Hooks):
    async def on_run_end(self, data: RunEnd) -> None:  # noqa: ARG002
        await _SESSIONS.close()


@tool
def agricultural_tool(
    spec: ToolSpec, session: Session, executor: ToolExecutor, *, tool_images: bool
) -> Tool:
    """Return a tool of a sample, with its name, description and JSON Schema.

    ``tool_images``: True if its results hold the pictures that a call makes.
    """

    async def execute(**kwargs: Any) -> str | list[Content]:
        text = await session.call(executor, spec.name, kwargs)
        pictures = await asyncio.to_thread(session.last_parts) if tool_images else ()
        return [ContentText(text=text), *_contents(pictures)] if pictures else text

    offered = spec.offered()
    parameters = ToolParams.model_validate(offered["parameters"])
    for name, parameter in parameters.properties.items():
        parameter.description = parameter.description or name.replace(
            "_", " "
        )  # Inspect refuses tools without one
    return ToolDef(
        execute, name=spec.name, description=offered["description"], parameters=parameters
    ).as_tool()


class _InspectModel:
    """The model of Inspect's task as a model of agrotools; the state gets its conversation."""

    name = "inspect"

    def __init__(self, state: TaskState) -> None:
        self._state = state

    async def generate(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        settings: ModelSettings,  # noqa: ARG002
    ) -> Completion:
        chat = [_chat_message(each) for each in messages]
        output = await get_model().generate(chat, self._state.tools if tools else [])
        self._state.output, self._state.messages = output, [*chat, output.message]
        calls = [
            RequestedCall(
                name=each.function, arguments=each.parse_error or dumps(each.arguments), id=each.id
            )
            for each in output.message.tool_calls or ()
        ]
        return Completion(
            text=output.completion,
            tool_calls=tuple(calls),
            finish_reason=_FINISHED.get(output.stop_reason, "stop"),
        )


def _chat_message(message: Message) -> ChatMessage:
    content = _contents(message.content)
    match message.role:
        case "system":
            return ChatMessageSystem(content=content)
        case "user":
            return ChatMessageUser(content=content)
        case "tool":
            return ChatMessageTool(
                content=content, tool_call_id=message.tool_call_id, function=message.name
            )
        case _:
            calls = [
                InspectCall(each.id, each.name, _arguments(each.arguments))
                for each in message.tool_calls
            ]
            return ChatMessageAssistant(content=content, tool_calls=calls or None)


def _contents(parts: Sequence[ContentPart]) -> list[Content]:
    return [
        ContentText(text=part.text) if isinstance(part, TextPart) else ContentImage(image=part.url)
        for part in parts
    ]


def _arguments(text: str) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", loads_strictly(text))
    except NotJson:
        return {}


@solver
def prepare_sample(plan: RunPlan, *, tool_images: bool) -> Solver:
    """Return a solver that puts instructions, pictures, question and tools of a sample into the state."""
    benchmark = plan.benchmark
    # Inspect moves the pictures of a result to where the provider of the model takes them.
    place: ToolImages = "in results" if tool_images else ""
    find_specs = partial(tool_specs, declared=benchmark.header.declared)

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        executor = await _SESSIONS.executor(plan)
        sample = await asyncio.to_thread(benchmark.prepare, benchmark.sample(str(state.sample_id)))
        session = Session(sample, benchmark.view(sample, MODE))
        model = cast(Any, _InspectModel(state))
        agent = LLMAgent(model, MODE, "tool-calling", specs=find_specs, tool_images=place)
        _SESSIONS.open[state.uuid] = session, agent
        messages, specs = await agent.request_for(session.view, ())
        state.messages = [_chat_message(each) for each in messages]
        state.tools = [
            agricultural_tool(spec, session, executor, tool_images=tool_images) for spec in specs
        ]
        return state

    return solve


@solver
def answer_question(max_steps: int = MAX_STEPS) -> Solver:
    """Return a solver that runs the loop of agrotools: calls, repairs, limits, and the form of the answer."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        session, agent = _SESSIONS.open[state.uuid]
        RESULT_FILES.set(session.artifacts)

        async def call_tool(call: ToolCall) -> ToolOutcome:
            before = len(session.outcomes)
            asked = ChatMessageAssistant(
                content="", tool_calls=[InspectCall("call", call.tool, call.arguments)]
            )
            done = await execute_tools([asked], state.tools)
            if len(session.outcomes) > before:
                return session.outcomes[-1][1]
            error = next(
                (each.error for each in done.messages if isinstance(each, ChatMessageTool)), None
            )
            said = error.message if error else "the tool did not run"
            return ToolOutcome(Observation(error=ErrorInfo(kind="invalid_argument", message=said)))

        trajectory = await run_end_to_end(agent, session.view, call_tool, max_steps)
        state.store.set(_TRAJECTORY, trajectory.model_dump(mode="json"))
        return state

    return solve


@metric(scores="unreduced")
def fas() -> Metric:
    """Return the Final Answer Score of all epochs, 0 to 1, and its 95 % interval by cluster (from ten clusters)."""

    def compute(scores: list[SampleScore]) -> Value:
        tally = RunAggregator(protocol="tool-calling")
        for each in scores:
            record = Record.model_validate((each.score.metadata or {})[RECORD])
            tally.add(record, score_record(record))
        modes = tally.summary(allow_invalid=True).modes
        if MODE not in modes or FAS not in modes[MODE].metrics:
            return math.nan
        overall = modes[MODE].metrics[FAS].overall
        interval = overall.interval
        return {"fas": overall.value} | (
            {"low": interval.lower, "high": interval.upper} if interval else {}
        )

    return compute


@metric(name="stderr", scores="unreduced")
def standard_error() -> Metric:
    """Return the standard error by cluster, of all epochs as :func:`fas`."""
    return stderr(cluster="cluster")


@scorer(metrics=[fas(), standard_error()])
def final_answer_score() -> Scorer:
    """Return the scorer: the Final Answer Score of a sample by ``agrotools``, with its score rows as metadata.

    What another solver answered is scored as it is, with the calls that it made.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        session, _ = _SESSIONS.open[state.uuid]
        stored = state.store.get(_TRAJECTORY)
        trajectory = (
            Trajectory.model_validate(stored)
            if stored
            else session.trajectory(state.output.completion)
        )
        record = Record(
            sample=session.sample,
            mode=MODE,
            epoch=state.epoch - 1,
            trajectory=trajectory,
            seconds=0.0,
        )
        rows = score_record(record)
        value = sample_value(record, rows)
        explanation = score_text(record, rows, lost_shares(record, rows))
        if _refuses_with_twin(record, rows):
            explanation += (
                f" {refused_twin_text()}: a refusal here takes back the point that a refusal of the unanswerable twin "
                "earns, and Inspect scores each sample by itself."
            )
        metadata = {
            RECORD: record.model_dump(mode="json"),
            "rows": [row.model_dump(mode="json") for row in rows],
        }
        return Score(
            value=value,
            answer=trajectory.steps[-1].text if trajectory.steps else "",
            explanation=explanation,
            metadata=metadata,
        )

    return score


def sample_value(record: Record, rows: Sequence[ScoreRow]) -> float:
    """Return the value of a sample, so that the mean over all samples is the Final Answer Score; NaN if it counts not.

    In ``agrotools eval``, a refused question takes a point from its unanswerable twin. Here a sample is scored without
    its twin: the point is taken from the refused question itself, whose value may be negative.
    """
    sample = record.sample
    if not sample.answerable:
        points = refusal_points(sample) if refused(record) else 0.0
        return points if sample.twin else math.nan
    value = next((row.value for row in rows if row.metric == FAS), math.nan)
    return value + refusal_points(sample) if _refuses_with_twin(record, rows) else value


def _refuses_with_twin(record: Record, rows: Sequence[ScoreRow]) -> bool:
    """Return True if an answerable question that has an unanswerable twin was refused."""
    sample = record.sample
    return sample.answerable and bool(sample.twin) and refusals(record, rows)[FAS]


_Addresses = str | Sequence[str]
"""Addresses or files as ``-T`` gives them: one, or several behind commas."""


def _task(
    name: str,
    max_steps: int,
    tool_images: bool,
    tool_servers: _Addresses,
    bindings: _Addresses,
    *,
    quick: bool = False,
) -> Task:
    require_libraries(f"{name}, whose pictures are drawn here,")
    # The plan of the same run of `agrotools eval`: with its manifest, `agrotools score` reads the log.
    config = EvalConfig.of(
        benchmark=name,
        model=PREVIEWED.name,
        quick=quick,
        mode=MODE,
        protocol="tool-calling",
        max_steps=max_steps,
        tool_images=tool_images,
        tool_servers=_listed(tool_servers),
        bindings=_listed(bindings),
    )
    benchmark = load_as(name, Loading(quick=quick, files_later=True))
    plan = plan_run(config, benchmark, PREVIEWED)
    for note in plan.served.notes:
        sys.stderr.write(f"{note}\n")
    samples = [
        InspectSample(
            input=each.query,
            id=each.id,
            metadata={"cluster": each.cluster, "task_type": each.task_type},
        )
        for each in benchmark.samples
        if not quick or each.id in benchmark.header.quick
    ]

    async def end_sample(state: TaskState) -> None:
        await _SESSIONS.end(plan, state.uuid)

    return Task(
        dataset=MemoryDataset(samples, name=name),
        setup=prepare_sample(plan, tool_images=tool_images),
        solver=answer_question(max_steps),
        cleanup=end_sample,
        scorer=final_answer_score(),
        version=benchmark.header.version,
        metadata={MANIFEST: plan.manifest.model_dump(mode="json")},
    )


def _listed(given: _Addresses) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


@task
def embedded(
    max_steps: int = MAX_STEPS,
    tool_images: bool = False,
    tool_servers: _Addresses = (),
    bindings: _Addresses = (),
) -> Task:
    """Questions on drawn scenes, whole."""
    return _task("embedded", max_steps, tool_images, tool_servers, bindings)


@task
def embedded_quick(
    max_steps: int = MAX_STEPS,
    tool_images: bool = False,
    tool_servers: _Addresses = (),
    bindings: _Addresses = (),
) -> Task:
    """The quick part of the questions on drawn scenes, for a first look."""
    return _task("embedded", max_steps, tool_images, tool_servers, bindings, quick=True)


@task
def field(
    max_steps: int = MAX_STEPS,
    tool_images: bool = False,
    tool_servers: _Addresses = (),
    bindings: _Addresses = (),
) -> Task:
    """Questions on photographs; get these first: ``agrotools benchmarks get field``."""
    return _task("field", max_steps, tool_images, tool_servers, bindings)
