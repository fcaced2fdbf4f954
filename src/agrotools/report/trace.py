"""Comparison of the steps of a sample with the reference: calls, arguments that agree or differ, observations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from agrotools.core import (
    Action,
    Answer,
    Arguments,
    CallTools,
    Halt,
    Observation,
    ReferenceStep,
    Sample,
    Score,
    Step,
    ToolCall,
    Trajectory,
    Unparseable,
    UsageError,
)
from agrotools.core.record import literal_value
from agrotools.plugin import MetricInfo
from agrotools.report.layout import (
    MARK_STYLES,
    NEARLY,
    RIGHT,
    WRONG,
    LabelledText,
    block,
    fields_text,
    harmless,
    indented,
    line,
    percent,
    value_text,
)
from agrotools.scoring import METRICS
from agrotools.tools import get_tool

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from agrotools.text.agreement import ArgumentAgreement


@dataclass(frozen=True)
class Agreement:
    """Comparison of an argument with that of the reference call, as text. Omitted arguments show their default."""

    name: str
    predicted: str
    reference: str
    mark: str
    detail: str = ""


def closest_steps(calls: Sequence[ToolCall], sample: Sample) -> list[int | None]:
    """Return the index of the closest reference step for each call.

    It has the same tool and the fewest disagreeing arguments, and no earlier call has taken it; None if no step of the
    tool is left."""
    reference = sample.reference.steps if sample.reference else ()
    remaining = list(range(len(reference)))
    matches: list[int | None] = []
    for call in calls:
        same_tool = [index for index in remaining if reference[index].tool == call.tool]
        best = min(same_tool, key=lambda index: disagreements(agreements(call, reference[index], sample)), default=None)
        if best is not None:
            remaining.remove(best)
        matches.append(best)
    return matches


def agreements(call: ToolCall, reference: ReferenceStep, sample: Sample) -> list[Agreement]:
    """Compare the arguments of a call with those of a reference call, in the order of the tool's schema."""
    try:
        tool = get_tool(call.tool)
    except UsageError:
        return _plain_agreements(call.arguments, reference.arguments)
    from agrotools.scoring.steps import compare_calls

    compared = compare_calls(sample, tool, call, reference)
    return _shown_agreements(compared, call, reference, tool.spec.defaults)


def _shown_agreements(
    compared: Sequence["ArgumentAgreement"], call: ToolCall, reference: ReferenceStep, defaults: Arguments
) -> list[Agreement]:
    return [
        Agreement(
            name=harmless(item.argument),
            predicted=_argument_text(item.argument, call.arguments, defaults),
            reference=_argument_text(item.argument, reference.arguments, defaults),
            mark=RIGHT if item.equal else NEARLY if item.agrees else WRONG,
            detail=fields_text(item.detail),
        )
        for item in compared
    ]


def _plain_agreements(arguments: Arguments, reference: Arguments) -> list[Agreement]:
    """Compare arguments for plain equality, for tools that are not installed."""
    return [
        Agreement(
            name=harmless(name),
            predicted=_argument_text(name, arguments, {}),
            reference=_argument_text(name, reference, {}),
            mark=RIGHT if name in arguments and arguments[name] == literal_value(reference.get(name)) else WRONG,
        )
        for name in dict.fromkeys([*reference, *arguments])
    ]


def _argument_text(name: str, arguments: Arguments, defaults: Arguments) -> str:
    if name in arguments:
        return value_text(arguments[name])
    return f"{value_text(defaults[name])} (default)" if name in defaults else "left out"


def disagreements(compared: Sequence[Agreement]) -> int:
    return sum(item.mark == WRONG for item in compared)


def scored_agreements(call: ToolCall, reference: ReferenceStep, row: Score) -> list[Agreement]:
    """Return the agreements of an argument score, as stored in its row."""
    from agrotools.text.agreement import ArgumentAgreement

    compared = row.reading.get("arguments")
    items = [ArgumentAgreement.model_validate(item) for item in compared] if isinstance(compared, list) else []
    return _shown_agreements(items, call, reference, get_tool(call.tool).spec.defaults)


def arguments_table(compared: Sequence[Agreement]) -> "RenderableType":
    from rich.table import Table
    from rich.text import Text

    table: Table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for item in compared:
        cell = Text.assemble((f"{item.mark} ", MARK_STYLES[item.mark]), item.predicted)
        if item.mark != RIGHT:
            detail = f" ({item.detail})" if item.detail else ""
            cell.append(f"   reference: {item.reference}{detail}", style="dim")
        table.add_row(item.name, cell)
    return indented(table, 6)


def time_text(step: Step) -> str:
    """Return the duration of a call, or the reason why no tool was run."""
    if step.refused:
        return "rejected, tool not run"
    return "recorded" if step.recorded else "cached" if step.cached else f"{step.seconds:.2f} s"


def rejection_text(action: CallTools, row: Score | None) -> str:
    """Return the reason why a predicted call would have been rejected; empty if it would not.

    The protocol's reason comes before that of the arguments, whose score is ``row``."""
    if action.refused is not None:
        return harmless(action.refused.message)
    return value_text(row.reading["invalid"]) if row is not None and "invalid" in row.reading else ""


def trajectory_trace(trajectory: Trajectory, sample: Sample | None) -> Iterator["RenderableType"]:
    """Yield each step of a trajectory; with ``sample``, compared with the closest reference call."""
    reference = sample.reference.steps if sample is not None and sample.reference else ()
    calls = [step.call for step in trajectory.steps if step.call is not None]
    matches = iter(closest_steps(calls, sample) if sample is not None else [None] * len(calls))
    matched: set[int] = set()
    for number, step in enumerate(trajectory.steps, 1):
        if step.call is None:
            yield from _other_step(number, step)
            continue
        match = next(matches)
        if match is not None:
            matched.add(match)
        yield from _call_step(number, step, step.call, match, sample)
    for index, missing in enumerate(reference):
        if index not in matched:
            yield block("missing step", f"reference step {index + 1}: {call_text(missing)}", "yellow")


def step_by_step_trace(
    actions: Sequence[Action], reference: Sequence[ReferenceStep], scores: Sequence[Score]
) -> Iterator["RenderableType"]:
    """Yield each predicted action with its reference step, and the reason if it is wrong."""
    for index, action in enumerate(actions):
        rows = {row.metric: row for row in scores if row.step == index}
        expected = reference[index] if index < len(reference) else None
        yield _verdict(index, len(reference) + 1, action, expected, rows)
        thought = action.thought if isinstance(action, CallTools | Answer) else ""
        if thought:
            yield block("thought", thought, "italic dim")
        if isinstance(action, CallTools):
            yield from _predicted_call(action, reference, rows.get("agrotools.arg_acc"))
        elif isinstance(action, Answer | Unparseable):
            yield block("answer" if isinstance(action, Answer) else "output", action.text or "(empty)")
        if expected is not None:
            if not _calls(action, expected.tool):
                yield block("reference", call_text(expected))
            yield from _observation(expected.observation, "result shown")


def _calls(action: Action, tool: str) -> bool:
    return isinstance(action, CallTools) and action.calls[0].tool == tool


def _predicted_call(
    action: CallTools, reference: Sequence[ReferenceStep], row: Score | None
) -> Iterator["RenderableType"]:
    """Yield the scored call of a message, with its arguments compared with those of the reference call."""
    first, *others = action.calls
    yield block("called", first.tool)
    step = row.reading.get("step") if row is not None else None
    if row is not None and isinstance(step, int) and step < len(reference):
        yield arguments_table(scored_agreements(first, reference[step], row))
    elif first.arguments:
        yield block("arguments", fields_text(first.arguments))
    if refused := rejection_text(action, row):
        yield block("rejected", refused, "red")
    if others:
        yield block("not scored", f"{', '.join(call.tool for call in others)}, in the same message", "dim")


def _call_step(
    number: int, step: Step, call: ToolCall, match: int | None, sample: Sample | None
) -> Iterator["RenderableType"]:
    from rich.text import Text

    reference = sample.reference.steps[match] if sample and sample.reference and match is not None else None
    compared = agreements(call, reference, sample) if reference is not None and sample is not None else []
    head = Text(f"{number:>3} call {harmless(call.tool)}", style="bold")
    head.append(f"  {time_text(step)}", style="not bold dim")
    if match is not None:
        mark, word = (WRONG, "differs from") if disagreements(compared) else (RIGHT, "matches")
        head.append(f"  {mark} {word} reference step {match + 1}", style=f"not bold {MARK_STYLES[mark]}")
    elif sample is not None and sample.reference:
        head.append("  not in the reference plan", style="not bold yellow")
    yield head
    if step.thought:
        yield block("thought", step.thought, "italic dim")
    if compared:
        yield arguments_table(compared)
    elif call.arguments:
        yield block("arguments", fields_text(call.arguments))
    yield from _observation(step.observation, "result")


def _other_step(number: int, step: Step) -> Iterator["RenderableType"]:
    if step.kind == "answer":
        yield line(f"{number:>3} answer", "bold")
        if step.thought:
            yield block("thought", step.thought, "italic dim")
        return
    yield line(f"{number:>3} unparseable output", "bold red")
    yield block("output", step.text)
    if step.reason:
        yield block("feedback", step.reason, "red")


def _verdict(
    index: int, n_steps: int, action: Action, expected: ReferenceStep | None, rows: Mapping[str, Score]
) -> "Text":
    from rich.text import Text

    step = f"call {expected.tool}" if expected else "answer"
    head = Text(f"{index + 1:>3} of {n_steps}  {step}", style="bold")
    reason = why_wrong(action, expected, rows)
    mark = WRONG if reason else RIGHT
    head.append(f"  {mark} {reason or praise(expected, rows)}", style=f"not bold {MARK_STYLES[mark]}")
    metric_texts = [_metric_text(METRICS[metric], row.value) for metric, row in rows.items() if metric in METRICS]
    if metric_texts:
        head.append(f"\n    {'  '.join(metric_texts)}", style="not bold dim")
    return head


def _metric_text(info: MetricInfo, value: float) -> str:
    if value not in (0, 1):
        return f"{info.label} {percent(value)}"
    return f"{info.label} {RIGHT if bool(value) != info.lower_is_better else WRONG}"


def praise(expected: ReferenceStep | None, rows: Mapping[str, Score]) -> str:
    """Return the verdict on the expected action: "correct", or "answered" if no text of the answer is scored."""
    return "answered" if expected is None and not rows.keys() & set(_SUMMARIES) else "correct"


_SUMMARIES = ("agrotools.summ_acc", "agrotools.summ_acc_truth")


def why_wrong(action: Action, expected: ReferenceStep | None, rows: Mapping[str, Score]) -> str:
    """Return the reason why an action is not the expected one; empty if it is."""
    if isinstance(action, Unparseable):
        return f"neither a call nor an answer: {harmless(action.reason)}"
    if isinstance(action, Halt):
        reason = f", {harmless(action.reason)}" if action.reason else ""
        return f"ended with neither a call nor an answer: {action.termination}{reason}"
    if expected is None:
        if isinstance(action, CallTools):
            return f"called {harmless(action.calls[0].tool)} where an answer was expected"
        summary = next((rows[metric] for metric in _SUMMARIES if metric in rows), None)
        return "answered, but not all slots are correct" if summary is not None and summary.value < 1 else ""
    if isinstance(action, Answer):
        return "answered where a call was expected"
    if rows.get("agrotools.tool_acc") is not None and rows["agrotools.tool_acc"].value < 1:
        return f"called {harmless(action.calls[0].tool)} instead"
    arguments = rows.get("agrotools.arg_acc")
    if arguments is None or arguments.value >= 1:
        return ""
    if "invalid" in arguments.reading:
        return "right tool, but it rejects the arguments"
    return "right tool, but the arguments do not match"


def _observation(observation: Observation | None, label: str) -> Iterator["RenderableType"]:
    for detail in observation_lines(observation, label):
        yield block(detail.label, detail.text, detail.style)


def observation_lines(observation: Observation | None, label: str) -> Iterator[LabelledText]:
    """Yield the result of a call, labelled ``label``: error and hints, or fields, flags, notes and artifacts."""
    if observation is None:
        return
    if observation.error is not None:
        error = observation.error
        about = f" ({error.argument})" if error.argument else ""
        yield LabelledText(label, f"error {error.kind}{about}: {error.message}", "red")
        if error.hint:
            yield LabelledText("hint", error.hint, "dim")
        if error.candidates:
            yield LabelledText("candidates", ", ".join(error.candidates), "dim")
        return
    result = shown_result(observation)
    yield LabelledText(label, fields_text(result.fields))
    if result.flags:
        yield LabelledText("flags", ", ".join(result.flags), "yellow")
    if result.notes:
        yield LabelledText("notes", "; ".join(result.notes), "dim")
    if observation.artifacts:
        listed = (f"{artifact.name} ({artifact.kind})" for artifact in observation.artifacts)
        yield LabelledText("files", ", ".join(listed), "dim")


class ShownResult(NamedTuple):
    """Parts of a result for a reader: fields (without names of artifacts), flags and notes."""

    fields: Arguments
    flags: list[str]
    notes: list[str]


def shown_result(observation: Observation) -> ShownResult:
    """Return the parts of a result; all are empty if the call failed."""
    artifact_names = [artifact.name for artifact in observation.artifacts]
    result = {name: value for name, value in (observation.result or {}).items() if value not in artifact_names}
    notes, flags = result.pop("notes", None), result.pop("flags", None)
    if "summary" in result:
        result.pop("spec", None)  # the summary describes the figure in words
    return ShownResult(
        result,
        [*map(str, flags)] if isinstance(flags, list) else [],
        [*map(str, notes)] if isinstance(notes, list) else [],
    )


def call_text(step: ReferenceStep) -> str:
    """Format a reference call on one line."""
    return f"{step.tool}({fields_text(step.arguments)})"
