"""Tasks of Inspect AI (extra ``inspect``): our questions, tools, closing message and score in its runs and logs.

    inspect eval agrotools/embedded_quick --model openai/gpt-4.1-mini

The solver offers the tools natively, at most ``max_steps`` turns long, and then asks for the form of the answer. Another
solver gets the question, the pictures and the tools from :func:`prepare_sample`, and ends with :func:`submit_form`.
The metrics ``fas``, ``fas_low`` and ``fas_high`` (95 % interval by cluster) are those of ``agrotools eval``, twins of
unanswerable questions included; the scores of single samples are those before twins are compared.
"""

import asyncio
import math
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
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
    ModelOutput,
    execute_tools,
    get_model,
)
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, ToolDef, ToolParams, tool

from agrotools.agents.llm import FORM_REQUESTS, LLMAgent, closing_message, observation_text
from agrotools.agents.modes import kept_text
from agrotools.benchmarks.loading import Loading, load_as
from agrotools.core import Answer, Record, Reply, Step, Termination, ToolCall, ToolSpec, Trajectory
from agrotools.formats.benchmark import Benchmark
from agrotools.models import Message, TextPart
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.metrics import FAS
from agrotools.scoring.slots import score_record
from agrotools.scoring.statistics import Estimate
from agrotools.text.submission import is_complete, lacks_form
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor
from agrotools.tools.workspace import Workspace

MODE: Literal["end-to-end"] = "end-to-end"
MAX_STEPS = 20
_ENDINGS: dict[str, Termination] = {"max_tokens": "length", "model_length": "context", "content_filter": "filtered"}
_RECORD = "agrotools_record"


class _Sessions:
    """Samples in work, by the id of Inspect's sample, and the worker processes that they share."""

    def __init__(self) -> None:
        self.open: dict[str, _Session] = {}
        self._executors: dict[str, ToolExecutor] = {}
        self._starting = asyncio.Lock()

    async def executor(self, benchmark: Benchmark) -> ToolExecutor:
        async with self._starting:
            if benchmark.name not in self._executors:
                made = ToolExecutor(cache=ResultCache(), backends=benchmark.header.backends)
                self._executors[benchmark.name] = await made.__aenter__()
            return self._executors[benchmark.name]

    async def close(self) -> None:
        while self._executors:
            await self._executors.popitem()[1].__aexit__(None, None, None)


class _Session:
    """One sample: what it shows, its files, and the calls that were made."""

    def __init__(self, benchmark: Benchmark, sample_id: str, executor: ToolExecutor) -> None:
        (found,) = [each for each in benchmark.samples if each.id == sample_id]
        self.sample = benchmark.prepare(found)
        self.view = benchmark.view(self.sample, MODE)
        self.folder = Path(tempfile.mkdtemp(prefix="agrotools-"))
        self.workspace = Workspace(self.view.files, self.folder)
        self.executor, self.steps, self.turn = executor, list[Step](), 0

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Execute a call and return the observation as a model sees it."""
        call = ToolCall(tool=name, arguments=arguments)
        done = await self.executor.run(call, self.workspace, self.sample.toolset)
        self.steps.append(Step(turn=self.turn, kind="call", call=call, observation=done.observation))
        return observation_text(self.steps[-1])

    def end(self, answer: Answer | None, termination: Termination) -> Record:
        if answer is not None:
            last = {"text": answer.text, "form_replies": answer.form_replies}
            self.steps.append(Step(turn=self.turn, kind="answer", **last))
            termination = "no_form" if lacks_form(answer, self.view.form) else termination
        trajectory = Trajectory(steps=tuple(self.steps), termination=termination)
        shutil.rmtree(self.folder, ignore_errors=True)
        return Record(sample=self.sample, mode=MODE, epoch=0, trajectory=trajectory, seconds=0.0)


_SESSIONS = _Sessions()


@hooks(name="agrotools", description="ends the tool workers of agrotools")
class EndWorkers(Hooks):
    async def on_run_end(self, data: RunEnd) -> None:  # noqa: ARG002
        await _SESSIONS.close()


@tool
def agricultural_tool(spec: ToolSpec, session: _Session) -> Tool:
    """Return a tool of a sample, with its name, description and JSON Schema."""

    async def execute(**kwargs: Any) -> str:
        return await session.call(spec.name, kwargs)

    offered = spec.offered()
    parameters = ToolParams.model_validate(offered["parameters"])
    for name, parameter in parameters.properties.items():
        parameter.description = parameter.description or name.replace("_", " ")  # Inspect refuses tools without one
    return ToolDef(execute, name=spec.name, description=offered["description"], parameters=parameters).as_tool()


def _content(message: Message) -> list[Content]:
    return [
        ContentText(text=part.text) if isinstance(part, TextPart) else ContentImage(image=part.url)
        for part in message.content
    ]


@solver
def prepare_sample(benchmark: Benchmark) -> Solver:
    """Return a solver that puts instructions, pictures, question and tools of a sample into the state."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        executor = await _SESSIONS.executor(benchmark)
        session = await asyncio.to_thread(_Session, benchmark, str(state.sample_id), executor)
        _SESSIONS.open[state.uuid] = session
        agent = LLMAgent(cast(Any, None), MODE, "tool-calling")
        (system, question), specs = await agent.request_for(session.view, ())
        state.messages = [ChatMessageSystem(content=_content(system)), ChatMessageUser(content=_content(question))]
        state.tools = [agricultural_tool(spec, session) for spec in specs]
        return state

    return solve


@solver
def call_tools(max_steps: int = MAX_STEPS) -> Solver:
    """Return a solver that lets the model call tools until it answers, at most ``max_steps`` turns."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        session = _SESSIONS.open[state.uuid]
        for session.turn in range(max_steps):
            state.output = await get_model().generate(state.messages, state.tools)
            state.messages.append(state.output.message)
            if not state.output.message.tool_calls:
                break
            state.messages += (await execute_tools(state.messages, state.tools)).messages
        return state

    return solve


@solver
def submit_form() -> Solver:
    """Return a solver that asks for the form of the answer and stores the record of the sample."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        session = _SESSIONS.open.pop(state.uuid)
        ending = _ENDINGS.get(state.output.stop_reason)
        is_answer = ending is None and not isinstance(state.messages[-1], ChatMessageTool)
        answer = await _submitted(session, state) if is_answer else None
        record = session.end(answer, "answered" if answer else ending or "max_steps")
        state.store.set(_RECORD, record.model_dump(mode="json"))
        state.completed = True
        return state

    return solve


async def _submitted(session: _Session, state: TaskState) -> Answer:
    words = state.output.message.text
    form, replies = "", list[Reply]()
    for _ in range(FORM_REQUESTS if session.view.form else 0):
        state.messages.append(ChatMessageUser(content=closing_message(session.view)))
        output: ModelOutput = await get_model().generate(state.messages)
        state.messages.append(output.message)
        form = output.completion.strip()
        replies.append(Reply(text=kept_text(form)))
        if is_complete(form, session.view.form, listed=True):
            break
    return Answer(text=f"{words}\n\n{form}".strip(), form_replies=tuple(replies))


def _of_all(value_of: Callable[[Estimate], float]) -> Metric:
    def compute(scores: list[SampleScore]) -> float:
        tally = RunAggregator(protocol="tool-calling")
        for each in scores:
            record = Record.model_validate((each.score.metadata or {})[_RECORD])
            tally.add(record, score_record(record))
        metrics = tally.summary(allow_invalid=True).modes[MODE].metrics
        return value_of(metrics[FAS].overall) if FAS in metrics else math.nan

    return compute


@metric
def fas() -> Metric:
    """Return the Final Answer Score of all samples, 0 to 1."""
    return _of_all(lambda overall: overall.value)


@metric
def fas_low() -> Metric:
    """Return the lower end of its 95 % interval by cluster; NaN under ten clusters."""
    return _of_all(lambda overall: overall.interval.lower if overall.interval else math.nan)


@metric
def fas_high() -> Metric:
    """Return the upper end of its 95 % interval by cluster; NaN under ten clusters."""
    return _of_all(lambda overall: overall.interval.upper if overall.interval else math.nan)


@scorer(metrics=[fas(), fas_low(), fas_high(), stderr(cluster="cluster")])
def final_answer_score() -> Scorer:
    """Return the scorer: the Final Answer Score of a sample by ``agrotools``, with its score rows as metadata."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        record = Record.model_validate(state.store.get(_RECORD))
        rows = score_record(record)
        value = next((row.value for row in rows if row.metric == FAS), math.nan)
        answer = record.trajectory.steps[-1].text if record.trajectory and record.trajectory.steps else ""
        metadata = {_RECORD: state.store.get(_RECORD), "rows": [row.model_dump(mode="json") for row in rows]}
        return Score(value=value, answer=answer, metadata=metadata)

    return score


def _task(name: str, *, quick: bool = False, max_steps: int = MAX_STEPS) -> Task:
    benchmark = load_as(name, Loading(quick=quick, files_later=True))
    samples = [
        InspectSample(input=each.query, id=each.id, metadata={"cluster": each.cluster, "task_type": each.task_type})
        for each in benchmark.samples
        if not quick or each.id in benchmark.header.quick
    ]
    return Task(
        dataset=MemoryDataset(samples, name=name),
        setup=prepare_sample(benchmark),
        solver=[call_tools(max_steps), submit_form()],
        scorer=final_answer_score(),
        version=benchmark.header.version,
    )


@task
def embedded(max_steps: int = MAX_STEPS) -> Task:
    """Questions on drawn scenes, whole."""
    return _task("embedded", max_steps=max_steps)


@task
def embedded_quick(max_steps: int = MAX_STEPS) -> Task:
    """The quick part of the questions on drawn scenes, for a first look."""
    return _task("embedded", quick=True, max_steps=max_steps)


@task
def field(max_steps: int = MAX_STEPS) -> Task:
    """Questions on photographs; get these first: ``agrotools benchmarks get field``."""
    return _task("field", max_steps=max_steps)
