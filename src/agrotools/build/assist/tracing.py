"""Filling in of reference chains by a model, one call after another, and of thoughts in the references.

In a chain the model is told the next tool; its call is run and compared with the call of the template.
"""

import asyncio
import itertools
import re
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import JsonValue

from agrotools.agents.images import file_parts
from agrotools.agents.llm import PROTOCOLS, render
from agrotools.agents.parsing import excerpt, parse_output
from agrotools.benchmarks import Benchmark, load_folder
from agrotools.build.assist.traces import (
    TraceRecord,
    TraceStep,
    TraceSummary,
    by_sample_and_model,
    input_hash,
    summary_of,
    trace_file,
)
from agrotools.build.export import rewrite_benchmark
from agrotools.core import (
    AgrotoolsError,
    Answer,
    Arguments,
    CallTools,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleView,
    Step,
    ToolCall,
    ToolError,
    Unparseable,
    UnresolvedRef,
)
from agrotools.core.base import Progress, no_progress
from agrotools.core.record import iter_refs, resolve_ref, update_literals
from agrotools.models import Message, Model, ModelSettings, TextPart
from agrotools.models.endpoint import PricedModel
from agrotools.runner.auxiliary_model import ask_each, open_model
from agrotools.runner.execute import interrupts
from agrotools.scoring.slots import score_slot
from agrotools.scoring.steps import compare_calls, implied_slot
from agrotools.text.agreement import ArgumentAgreement, StepAgreement, best_step
from agrotools.text.loose_json import dumps
from agrotools.tools import get_tool
from agrotools.tools.cache import ResultCache
from agrotools.tools.execution import ToolExecutor, ToolOutcome
from agrotools.tools.workspace import Workspace

TRIES = 2
"""Attempts per step: a second one if the output was unusable or the call failed."""
_SETTINGS = ModelSettings(temperature=None)

CallTool = Callable[[ToolCall], Awaitable[ToolOutcome]]


class _Chain:
    """Chain of ``sample``, filled in by ``model``; ``name`` is recorded as its author.

    Raises (:meth:`run`):
        InfrastructureError: no reply or no tool worker is available.
        UsageError, BudgetReached: raised by :meth:`Model.generate`.
    """

    def __init__(self, sample: Sample, view: SampleView, name: str, model: Model, call_tool: CallTool) -> None:
        assert sample.reference is not None
        self.sample, self.view, self.name, self.model, self.call_tool = sample, view, name, model, call_tool
        self.gold: Sequence[ReferenceStep] = sample.reference.steps
        self.results: list[dict[str, JsonValue] | None] = [None] * len(self.gold)
        """Results of the model's calls, by index of the matching reference step."""
        self.left = list(range(len(self.gold)))
        self.steps: list[TraceStep] = []
        self.left_open: list[str] = []
        self.messages: list[Message] = []

    async def run(self) -> TraceRecord:
        images = await asyncio.to_thread(file_parts, self.view.files)
        heading = (TextPart(render("files", count=len(self.view.files))),) if self.view.files else ()
        order = ", ".join(f"{number}. {step.tool}" for number, step in enumerate(self.gold, start=1))
        question = render("building/trace_question", query=self.sample.query, order=order)
        self.messages = [
            Message.of("system", render("building/trace_system")),
            Message(role="user", content=(*heading, *images, TextPart(f"{question}\n\n{self._prompt(0)}"))),
        ]
        for number in range(len(self.gold)):
            self._note_left_open(number)
            if fault := await self._step(number):
                return self._record(reason=fault)
        return await self._answered()

    def _prompt(self, number: int) -> str:
        """Return the prompt for a step, or for the answer after the last step."""
        if number == len(self.gold):
            return render("building/trace_answer", answer_form=self.view.answer_form)
        spec = get_tool(self.gold[number].tool).spec
        described = {"description": spec.description.strip(), "parameters": dumps(spec.parameters)}
        return render("building/trace_step", number=number + 1, count=len(self.gold), tool=spec.name, **described)

    async def _step(self, number: int) -> str:
        """Ask for a step until its call is usable; return the fault that ended the chain, or an empty string."""
        tool, performed, fault = self.gold[number].tool, None, ""
        for attempt in range(1, TRIES + 1):
            reply = await self.model.generate(self.messages, (), _SETTINGS)
            if reply.finish_reason not in ("stop", "tool_calls"):
                return self._broken_off(number, attempt, f"the reply ended by {reply.finish_reason}", reply.thought)
            action = parse_output(reply.text, reply.tool_calls, protocol="react")
            thought, call = _read(action, reply.thought)
            if call is None or call.tool != tool:
                fault = _unusable(action, tool)
                self._ask_again(reply.text, fault)
                continue
            observed = (await self.call_tool(call)).observation
            performed = Step(turn=number, kind="call", call=call, observation=observed, thought=thought)
            reply_message, seen = PROTOCOLS["react"].turn(excerpt(thought, 4000), [(number, performed)])
            failed = observed.error is not None
            if failed and attempt < TRIES:
                again = render("building/trace_repair", reason="The call failed.")
                self.messages += [reply_message, Message.of("user", f"{seen.text}\n\n{again}")]
                continue
            self.messages += [reply_message, Message.of("user", f"{seen.text}\n\n{self._prompt(number + 1)}")]
            self.steps.append(self._compared(number, performed, attempt))
            return ""
        if performed is not None:  # The call failed first, and the second output was unreadable.
            self.steps.append(self._compared(number, performed, TRIES))
            return f"step {number + 1} ({tool}): {fault}"
        return self._broken_off(number, TRIES, fault, "")

    def _note_left_open(self, number: int) -> None:
        """Record values that the step takes from earlier ones and that their tools did not return."""
        for _, ref, _ in iter_refs(dict(self.gold[number].arguments)):
            try:
                value = resolve_ref(ref, self.results)
            except UnresolvedRef:
                value = None
            if value is None and ref not in self.left_open:
                self.left_open.append(ref)

    def _ask_again(self, text: str, fault: str) -> None:
        again = render("building/trace_repair", reason=render("repair", reason=fault))
        answer = Message.of("assistant", excerpt(text).strip() or "(nothing)")
        self.messages += [answer, Message.of("user", again)]

    def _broken_off(self, number: int, tries: int, fault: str, thought: str) -> str:
        step = TraceStep(tool=self.gold[number].tool, reference_step=number, thought=thought, reason=fault, tries=tries)
        self.steps.append(step)
        return f"step {number + 1} ({step.tool}): {fault}"

    def _compared(self, number: int, made: Step, tries: int) -> TraceStep:
        assert made.call is not None
        assert made.observation is not None
        tool = get_tool(made.call.tool)
        best = self._closest(number, made.call)
        self.left.remove(best.step)
        self.results[best.step] = made.observation.result
        reasons: list[str] = []
        try:
            tool.validate(made.call.arguments)
        except ToolError as error:
            reasons.append(f"not valid: {error}")
        agreed = best.agrees and not reasons
        reasons += [_difference(row) for row in best.rows if not row.agrees]
        if made.observation.error is not None and not reasons:
            reasons.append(f"the call failed: {made.observation.error.message}")
        return TraceStep(
            tool=tool.name,
            reference_step=best.step,
            thought=made.thought,
            arguments=made.call.arguments,
            observation=made.observation,
            agrees={row.argument: row.agrees for row in best.rows},
            agreed=agreed,
            reason="; ".join(reasons),
            tries=tries,
        )

    def _closest(self, number: int, call: ToolCall) -> StepAgreement:
        """Return the reference step of a call: within a group, the closest member that is not yet matched."""
        group = self.gold[number].group
        at = self.left[0]
        open_steps = [
            step
            for step in self.left
            if step == at
            or (group is not None and self.gold[step].group == group and self.gold[step].tool == call.tool)
        ]
        compared = [
            StepAgreement(step, self._rows(step, call)) for step in open_steps if self.gold[step].tool == call.tool
        ]
        return best_step(compared)

    def _rows(self, step: int, call: ToolCall) -> list[ArgumentAgreement]:
        arguments: Arguments = {
            name: update_literals(value, self.results) for name, value in self.gold[step].arguments.items()
        }
        gold = self.gold[step].model_copy(update={"arguments": arguments})
        return compare_calls(self.sample, get_tool(call.tool), call, gold)

    async def _answered(self) -> TraceRecord:
        reply = await self.model.generate(self.messages, (), _SETTINGS)
        action = parse_output(reply.text, (), protocol="react", answer_only=True)
        if reply.finish_reason != "stop" or not isinstance(action, Answer):
            return self._record(reason=f"no answer: {_unusable(action, '')}")
        scores: dict[str, float] = {}
        for slot in self.sample.answer:
            if not slot.made_by_tools:
                target = implied_slot(slot, self.results).slot or slot
                scores[slot.name] = round(score_slot(target, self.sample.answer, action.text).value, 4)
        # Keywords are either found or missing; other texts agree to a degree.
        in_words = {slot.name for slot in self.sample.answer if slot.free_text and slot.type != "keywords"}
        closed = [score for name, score in scores.items() if name not in in_words]
        agrees = all(score >= 1 for score in closed) if closed else None
        return self._record(answer=action.text, answer_agrees=agrees, answer_slots=scores)

    def _record(self, **outcome: Any) -> TraceRecord:
        ran = all(step.observation is not None and step.observation.error is None for step in self.steps)
        return TraceRecord(
            id=self.sample.id,
            model=self.name,
            asked=input_hash(self.sample),
            steps=tuple(self.steps),
            left_open=tuple(self.left_open),
            complete=ran and len(self.steps) == len(self.gold) and outcome.get("answer") is not None,
            **outcome,
        )


def _read(action: CallTools | Answer | Unparseable, reasoning: str) -> tuple[str, ToolCall | None]:
    """Return thought and call of an output; separate reasoning is the thought if the output has none."""
    if not isinstance(action, CallTools):
        return "", None
    return action.thought or reasoning, action.calls[0]


def _unusable(action: CallTools | Answer | Unparseable, tool: str) -> str:
    if isinstance(action, Unparseable):
        return action.reason
    if isinstance(action, Answer):
        return f"it answers before {tool} was called."
    return f"it calls {action.calls[0].tool}, and {tool} is next." if tool else "it calls a tool."


def _difference(row: ArgumentAgreement) -> str:
    """Describe the difference of an argument, without the numbers."""
    reason = row.detail.get("reason")
    if isinstance(reason, str):
        return f"{row.argument}: {reason}"
    if isinstance(iou := row.detail.get("iou"), float):
        return f"{row.argument}: the boxes overlap by {iou:.2f} (IoU)"
    return f"{row.argument} differs"


_LONGEST = 600
_TALK = re.compile(r"\b(?:action|action input|observation|final answer|thought)\s*:|<\/?\w+>|```", re.IGNORECASE)


def with_thoughts(sample: Sample, record: TraceRecord) -> Sample:
    """Return ``sample`` with the model's thoughts in steps that have none, if the trace confirms the chain.

    Thoughts are shown as history in step-by-step mode, so a thought is left out if it is long or contains text that
    looks like a call, an observation or an answer.
    """
    if sample.reference is None or not record.confirms:
        return sample
    thoughts: Mapping[int, str] = {step.reference_step: _plain(step.thought) for step in record.steps}
    steps = tuple(
        step if step.thought or not thoughts.get(number) else step.model_copy(update={"thought": thoughts[number]})
        for number, step in enumerate(sample.reference.steps)
    )
    if steps == sample.reference.steps:
        return sample
    reference = ReferenceTrajectory(steps=steps)
    return sample.model_copy(
        update={"reference": reference, "metadata": {**sample.metadata, "thoughts_by": record.model}}
    )


def _plain(thought: str) -> str:
    text = " ".join(thought.split())
    return "" if len(text) > _LONGEST or _TALK.search(text) else text


@dataclass
class TraceResult:
    """Result of tracing a benchmark. ``differing``: samples whose chain the model does not confirm, for review.

    ``missing``: number of samples without a trace because there was no reply. ``thoughts``: number of samples whose
    reference received thoughts. ``stopped``: error that left some samples without a trace.
    """

    summary: Sequence[TraceSummary]
    differing: list[str]
    missing: int
    thoughts: int = 0
    stopped: AgrotoolsError | None = None


def trace_folder(
    folder: Path, helper: PricedModel, ledger: Path, progress: Progress = no_progress, *, workers: int = 2
) -> TraceResult:
    """Have the model of ``helper`` fill in the chains of the benchmark in ``folder`` that have no current trace by it.

    Each trace is written when it ends. Thoughts of confirmed chains fill references without thoughts; for that the
    folder is replaced as a whole.

    Raises:
        BenchmarkError: ``folder`` is not a benchmark, or is not writable.
        RunStoreError: ``traces.jsonl`` cannot be read or written.
        InfrastructureError: no tool worker can be started.
        KeyboardInterrupt: the user interrupted; finished traces are kept.
    """
    benchmark = load_folder(folder)
    samples = [sample for sample in benchmark.samples if sample.reference and sample.reference.steps]
    with trace_file(folder) as file, open_model(helper, ledger) as model:
        known = by_sample_and_model(file.records)
        records = {
            sample.id: trace
            for sample in samples
            if (trace := known.get((sample.id, helper.name))) is not None and trace.asked == input_hash(sample)
        }

        def store(record: TraceRecord) -> None:
            file.add(record)
            records[record.id] = record

        todo = [sample for sample in samples if sample.id not in records]
        interrupted = threading.Event()
        work = benchmark, todo, helper.name, model, store, interrupted, progress, workers
        stopped = asyncio.run(_trace(*work)) if todo else None
    if interrupted.is_set():
        raise KeyboardInterrupt
    traced = [(sample, records[sample.id]) for sample in samples if sample.id in records]
    return TraceResult(
        summary=summary_of(traced),
        differing=[sample.id for sample, record in traced if not record.confirms],
        missing=len(samples) - len(traced),
        thoughts=_fill_thoughts(folder, benchmark, records),
        stopped=stopped,
    )


def _fill_thoughts(folder: Path, benchmark: Benchmark, records: dict[str, TraceRecord]) -> int:
    before = list(benchmark.samples)
    after = [with_thoughts(sample, records[sample.id]) if sample.id in records else sample for sample in before]
    filled = sum(new is not old for new, old in zip(after, before, strict=True))
    if filled:
        rewrite_benchmark(folder, benchmark.header, after)
    return filled


async def _trace(
    benchmark: Benchmark,
    todo: Sequence[Sample],
    name: str,
    model: Model,
    store: Callable[[TraceRecord], None],
    interrupted: threading.Event,
    progress: Progress,
    workers: int,
) -> AgrotoolsError | None:
    """Trace the samples ``todo`` and return the error that left some without a trace; ``interrupted`` stops it."""
    numbers = itertools.count(1)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="agrotools-")))
        stack.enter_context(interrupts(interrupted.set))
        try:
            async with ToolExecutor(workers=workers, timeout_s=300, cache=ResultCache()) as executor:

                async def one(sample: Sample) -> None:
                    view = benchmark.view(sample, "end-to-end")
                    workspace = Workspace(view.files, scratch / sample.id, benchmark.root)

                    async def call_tool(call: ToolCall) -> ToolOutcome:
                        return await executor.run(call, workspace, sample.toolset)

                    store(await _Chain(sample, view, name, model, call_tool).run())
                    progress("traces", next(numbers), len(todo))

                return (await ask_each(todo, one, model, stopped=interrupted.is_set)).error
        finally:
            await model.close()
