"""Steps of a sample compared with the reference, as data for terminal and page, and their form on a terminal.

Steps or predicted actions and their reference come in; a :class:`StepPart` for each goes out, which the page stores as
data and :func:`step_blocks` prints. Arguments agree where the scores say so.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from agrotools.calling import TOOLS, get_tool
from agrotools.core import (
    Action,
    Answer,
    Arguments,
    Artifact,
    CallTools,
    ErrorInfo,
    Halt,
    Observation,
    ReferenceStep,
    Sample,
    Score,
    Step,
    ToolCall,
    Unparseable,
    UsageError,
)
from agrotools.core.record import Fault, ResultSource, literal_value
from agrotools.report.layout import (
    MARK_STYLES,
    NEARLY,
    RIGHT,
    WRONG,
    LabelledText,
    fields_text,
    harmless,
    percent,
    shortened,
    value_text,
)
from agrotools.report.terminal import block, indented
from agrotools.scoring.contracts import MetricInfo
from agrotools.scoring.metrics import METRICS
from agrotools.text.agreement import ArgumentAgreement


@dataclass(frozen=True)
class ComparedArgument:
    """Comparison of an argument with that of the reference call, as text. Omitted arguments show their default."""

    name: str
    predicted: str
    reference: str
    mark: str
    detail: str = ""


def agreements(call: ToolCall, reference: ReferenceStep, sample: Sample) -> list[ComparedArgument]:
    """Compare the arguments of a call with those of a reference call, in the order of the tool's schema."""
    try:
        tool = get_tool(call.tool, sample.declared)
    except UsageError:
        names = dict.fromkeys([*reference.arguments, *call.arguments])
        return [_plain_agreement(name, call.arguments, reference.arguments) for name in names]
    from agrotools.scoring.steps import compare_calls

    compared = compare_calls(sample, tool, call, reference)
    return _shown_agreements(compared, call, reference, tool.spec.defaults)


def _shown_agreements(
    compared: Sequence[ArgumentAgreement],
    call: ToolCall,
    reference: ReferenceStep,
    defaults: Arguments,
) -> list[ComparedArgument]:
    """Return compared arguments as text, each with a mark."""
    wrong = _wrong_arguments(compared, {*call.arguments, *reference.arguments})
    shown: list[ComparedArgument] = []
    for item in compared:
        is_wrong = item.argument in wrong
        if is_wrong:
            mark = WRONG
        elif item.agrees and not item.equal:
            mark = NEARLY
        else:
            mark = RIGHT
        shown.append(
            ComparedArgument(
                name=harmless(item.argument),
                predicted=_argument_text(item.argument, call.arguments, defaults),
                reference=_argument_text(item.argument, reference.arguments, defaults),
                mark=mark,
                detail=fields_text(item.detail) if item.agrees or is_wrong else "",
            )
        )
    return shown


def _wrong_arguments(compared: Sequence[ArgumentAgreement], written: Container[str]) -> set[str]:
    """Return the arguments that are to blame for a difference; ``written``: those of either call."""
    alike = {item.argument for item in compared if item.equal or item.argument not in written}
    differing = {item.argument for item in compared if not item.agrees}
    # An argument that is written alike differs only as the tool resolves it beside the wrong ones.
    return differing - alike or differing


def _plain_agreement(name: str, arguments: Arguments, reference: Arguments) -> ComparedArgument:
    """Compare an argument for plain equality, for tools that are not installed."""
    is_right = name in arguments and arguments[name] == literal_value(reference.get(name))
    return ComparedArgument(
        name=harmless(name),
        predicted=_argument_text(name, arguments, {}),
        reference=_argument_text(name, reference, {}),
        mark=RIGHT if is_right else WRONG,
    )


def _argument_text(name: str, arguments: Arguments, defaults: Arguments) -> str:
    if name in arguments:
        return value_text(arguments[name])
    return f"{value_text(defaults[name])} (default)" if name in defaults else "left out"


def _scored_agreements(
    call: ToolCall, reference: ReferenceStep, row: Score
) -> list[ComparedArgument]:
    """Return the agreements of an argument score, as stored in its row."""
    stored = row.reading.get("arguments")
    items: list[ArgumentAgreement] = []
    if isinstance(stored, list):
        items = [ArgumentAgreement.model_validate(item) for item in stored]
    defaults = get_tool(call.tool).spec.defaults if call.tool in TOOLS else {}
    return _shown_agreements(items, call, reference, defaults)


def call_text(step: ReferenceStep) -> str:
    """Format a reference call on one line."""
    return f"{step.tool}({fields_text(step.arguments)})"


def _time_text(step: Step) -> str:
    """Return the duration of a call, or the reason why no tool was run."""
    return _TIME_OF.get(step.source) or f"{step.seconds:.2f} s"


_TIME_OF: Mapping[ResultSource, str] = {
    "none": "rejected, tool not run",
    "recording": "recorded",
    "cache": "cached",
}
"""Words in place of the seconds of a call whose tool did not run."""


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
        summary = rows.get("summ_acc") or rows.get("summ_acc_truth")
        if summary is not None and summary.value < 1:
            return "answered, but not all slots are correct"
        return ""
    if isinstance(action, Answer):
        return "answered where a call was expected"
    if rows.get("tool_acc") is not None and rows["tool_acc"].value < 1:
        return f"called {harmless(action.calls[0].tool)} instead"
    arguments = rows.get("arg_acc")
    if arguments is None or arguments.value >= 1:
        return ""
    if "invalid" in arguments.reading:
        return "right tool, but it rejects the arguments"
    return "right tool, but the arguments do not match"


# --- steps as data -----------------------------------------------------------------------------------------------

LONGEST_TEXT = 8_000
"""Maximum number of characters of a question, thought or answer; the rest is cut, with a note."""


@dataclass
class StepPart:
    """One step for a reader: the action, its comparison with the reference, and its result."""

    number: int
    """Number of the step from 1; 0 for a step of the reference that no call matches."""
    title: str
    tool: str = ""
    """Tool of the call in ``title``."""
    of: int = 0
    """Number of steps of the reference with its answer; 0 if the number of steps is not fixed."""
    about: str = ""
    verdict: str = ""
    state: str = ""
    """``right``, ``wrong``, or ``open`` (a call that the reference does not have); empty without a comparison."""
    thought: str = ""
    arguments: list[ComparedArgument] = field(default_factory=list)
    reference: str = ""
    """Name of the reference step that ``arguments`` are compared with."""
    plain_arguments: list[tuple[str, str]] = field(default_factory=list)
    text: str = ""
    lines: list[LabelledText] = field(default_factory=list)
    result_label: str = ""
    error: str = ""
    fields: list[tuple[str, str]] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    result_lines: list[LabelledText] = field(default_factory=list)
    artifacts: tuple[Artifact, ...] = ()
    rows: Mapping[str, Score] = field(default_factory=dict)
    """Score rows of the step, by metric."""

    def compare(
        self, call: ToolCall, compared: list[ComparedArgument], reference_index: int | None
    ) -> None:
        """Set the arguments of a call: compared with those of a reference step, or alone."""
        if reference_index is not None:
            self.arguments, self.reference = compared, f"reference step {reference_index + 1}"
        else:
            self.plain_arguments = [
                (name, value_text(value)) for name, value in call.arguments.items()
            ]

    def add_result(self, observation: Observation | None, label: str) -> None:
        """Add the result of a call: error and hints, or fields, flags, notes and artifacts."""
        if observation is None:
            return
        self.result_label = label
        self.artifacts = observation.artifacts
        if observation.error is not None:
            self._add_error(observation.error)
            return
        artifact_names = [artifact.name for artifact in observation.artifacts]
        result = {
            name: value
            for name, value in (observation.result or {}).items()
            if value not in artifact_names
        }
        self.notes = _cut_texts(result.pop("notes", None))
        self.flags = _cut_texts(result.pop("flags", None))
        if "summary" in result:
            result.pop("spec", None)  # the summary describes the figure in words
        self.fields = [(name, value_text(value)) for name, value in result.items()]

    def _add_error(self, error: ErrorInfo) -> None:
        about = f" ({error.argument})" if error.argument else ""
        self.error = cut(f"{error.kind}{about}: {error.message}")
        if error.hint:
            self.result_lines.append(LabelledText("hint", cut(error.hint), "dim"))
        candidates = ", ".join(error.candidates or ())
        if candidates:
            self.result_lines.append(LabelledText("candidates", cut(candidates), "dim"))


def _cut_texts(texts: JsonValue) -> list[str]:
    """Return the items of a list as texts of limited length; another value, of a tool that is not ours, is one item."""
    if texts is None:
        return []
    items = texts if isinstance(texts, list) else [texts]
    return [cut(str(text)) for text in items]


def cut(text: str) -> str:
    """Cut ``text`` to :data:`LONGEST_TEXT` characters."""
    return shortened(text, LONGEST_TEXT)


def form_reply_lines(answer: Step | Answer) -> list[LabelledText]:
    """Return the forms that were submitted."""
    lines: list[LabelledText] = []
    for at, reply in enumerate(answer.form_replies):
        label = "asked again" if at else "answer form"
        lines.append(LabelledText(label, cut(reply.text) or "(empty)"))
    return lines


def taken_steps(
    steps: Sequence[Step],
    matches: Sequence[int | None],
    sample: Sample | None,
    faults: Sequence[Fault] = (),
) -> Iterator[StepPart]:
    """Yield the steps of a trajectory; ``matches`` are the reference steps of its calls, see
    :func:`~agrotools.scoring.matching.reference_places`.

    With ``sample``, calls are compared with its reference, and its missing steps stand before the call of the next one
    or the answer. ``faults``: those put into its calls."""
    reference = sample.reference.steps if sample is not None and sample.reference else ()
    missing = [at for at in range(len(reference)) if at not in matches]
    fault_of = {fault.call: fault for fault in faults}
    n_calls = 0
    for number, step in enumerate(steps, 1):
        if step.kind == "answer":
            # No call follows that a missing step could stand before.
            yield from _missing_steps(reference, missing)
            missing = []
            if step.thought or step.form_replies:
                yield StepPart(
                    number, "answer", thought=cut(step.thought), lines=form_reply_lines(step)
                )
            continue
        if step.call is None:
            yield _unparseable_step(number, step)
            continue

        match, fault = matches[n_calls], fault_of.get(n_calls)
        n_calls += 1
        if match is not None:
            yield from _missing_steps(reference, [at for at in missing if at < match])
            missing = [at for at in missing if at >= match]
        part = StepPart(
            number,
            f"call {step.call.tool}",
            step.call.tool,
            about=_time_text(step),
            thought=cut(step.thought),
        )
        if fault is not None:
            part.about += f", fault: {fault.kind}"
            part.about += "" if fault.landed else f" (did not land: {fault.reason})"
        if match is not None and sample is not None:
            _compare_call(part, step.call, sample, reference[match], match)
        else:
            part.compare(step.call, [], None)
            if reference:
                part.state, part.verdict = "open", "not in the reference plan"
        part.add_result(step.observation, "result")
        yield part
    yield from _missing_steps(reference, missing)


def _missing_steps(
    reference: Sequence[ReferenceStep], missing: Sequence[int]
) -> Iterator[StepPart]:
    """Yield the steps of the reference, by number, that no call matches."""
    for at in missing:
        yield StepPart(
            0,
            "missing step",
            verdict=f"{WRONG} no call matches reference step {at + 1}",
            state="wrong",
            lines=[LabelledText("reference", call_text(reference[at]))],
        )


def _unparseable_step(number: int, step: Step) -> StepPart:
    """Return a step whose output is neither a call nor an answer, with what the model was told."""
    return StepPart(
        number,
        "unparseable output",
        verdict=f"{WRONG} neither a call nor an answer",
        state="wrong",
        text=cut(step.text) or "(empty)",
        lines=[LabelledText("feedback", cut(step.reason), "red")] if step.reason else [],
    )


def _compare_call(
    part: StepPart, call: ToolCall, sample: Sample, expected: ReferenceStep, index: int
) -> None:
    """Set the arguments of a call beside those of the reference step that it matches, and the verdict."""
    part.compare(call, agreements(call, expected, sample), index)
    if any(item.mark == WRONG for item in part.arguments):
        part.state, part.verdict = "wrong", f"{WRONG} differs from reference step {index + 1}"
    else:
        part.state, part.verdict = "right", f"{RIGHT} matches reference step {index + 1}"


def predicted_steps(
    actions: Sequence[Action], reference: Sequence[ReferenceStep], scores: Sequence[Score]
) -> Iterator[StepPart]:
    """Yield each predicted action with its reference step, and the reason if it is wrong."""
    for index, action in enumerate(actions):
        rows = {row.metric: row for row in scores if row.step == index}
        expected = reference[index] if index < len(reference) else None
        part = StepPart(index + 1, "answer", of=len(reference) + 1, rows=rows)
        if expected is not None:
            part.title, part.tool = f"call {expected.tool}", expected.tool
        if reason := why_wrong(action, expected, rows):
            part.state, part.verdict = "wrong", f"{WRONG} {reason}"
        else:
            is_scored = expected is not None or any("summ_acc" in metric for metric in rows)
            part.state = "right"
            part.verdict = f"{RIGHT} {'correct' if is_scored else 'answered'}"
        _add_action(part, action, reference)
        if expected is not None:
            if not part.arguments:
                part.lines.append(LabelledText("reference", call_text(expected)))
            part.add_result(expected.observation, "result shown")
        yield part


def _add_action(part: StepPart, action: Action, reference: Sequence[ReferenceStep]) -> None:
    """Add thought and text of a predicted action, or its call with the arguments compared."""
    if isinstance(action, CallTools | Answer):
        part.thought = cut(action.thought)
    if isinstance(action, CallTools):
        _add_call(part, action, reference, part.rows.get("arg_acc"))
    elif isinstance(action, Answer | Unparseable):
        part.text = cut(action.text) or "(empty)"
        if isinstance(action, Answer):
            part.lines += form_reply_lines(action)
        elif action.hint:
            part.lines.append(LabelledText("feedback", cut(action.hint)))


def _add_call(
    part: StepPart, action: CallTools, reference: Sequence[ReferenceStep], row: Score | None
) -> None:
    """Add the scored call of a message, compared with the reference step that its score row names."""
    first, *others = action.calls
    index = row.reading.get("step") if row is not None else None
    if row is not None and isinstance(index, int) and index < len(reference):
        part.compare(first, _scored_agreements(first, reference[index], row), index)
    else:
        part.compare(first, [], None)
    # The protocol's reason comes before that of the arguments.
    refused = action.refused.message if action.refused is not None else ""
    if not refused and row is not None and "invalid" in row.reading:
        refused = value_text(row.reading["invalid"])
    if refused:
        part.lines.append(LabelledText("rejected", cut(refused), "red"))
    if others:
        names = ", ".join(call.tool for call in others)
        part.lines.append(LabelledText("not scored", cut(f"{names}, in the same message"), "dim"))


# --- steps on a terminal -----------------------------------------------------------------------------------------

_STATE_STYLES = {"right": "green", "wrong": "bold red", "open": "yellow", "": ""}


def step_blocks(part: StepPart) -> Iterator[RenderableType]:
    """Yield a step for a terminal: a headline, and its lines."""
    yield _step_heading(part)
    yield from _blocks(
        LabelledText("thought", part.thought, "italic dim"), LabelledText("output", part.text)
    )
    if part.arguments:
        yield _arguments_table(part.arguments)
    arguments = ", ".join(f"{name}: {value}" for name, value in part.plain_arguments)
    result = ", ".join(f"{name}: {value}" for name, value in part.fields)
    result_style = ""
    if part.error:
        result, result_style = f"error {part.error}", "red"
    files = ", ".join(f"{artifact.name} ({artifact.kind})" for artifact in part.artifacts)
    yield from _blocks(
        LabelledText("arguments", arguments),
        *part.lines,
        LabelledText(part.result_label, result, result_style),
        LabelledText("flags", ", ".join(part.flags), "yellow"),
        LabelledText("notes", "; ".join(part.notes), "dim"),
        LabelledText("files", files, "dim"),
        *part.result_lines,
    )


def _step_heading(part: StepPart) -> Text:
    """Return number, title and verdict of a step on a line, and its scores on a second one."""
    number = f"{part.number:>3} of {part.of} " if part.of else f"{part.number or '-':>3}"
    head = Text(f"{number} {harmless(part.title)}", style="bold")
    if part.about:
        head.append(f"  {part.about}", style="not bold dim")
    if part.verdict:
        head.append(f"  {harmless(part.verdict)}", style=f"not bold {_STATE_STYLES[part.state]}")
    scores = [
        _metric_text(METRICS[metric], row.value)
        for metric, row in part.rows.items()
        if metric in METRICS
    ]
    if scores:
        head.append(f"\n    {'  '.join(scores)}", style="not bold dim")
    return head


def _blocks(*lines: LabelledText) -> Iterator[RenderableType]:
    """Yield the lines that have a text."""
    return (block(each.label, each.text, each.style) for each in lines if each.text)


def _arguments_table(compared: Sequence[ComparedArgument]) -> RenderableType:
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


def _metric_text(info: MetricInfo, value: float) -> str:
    if value not in (0, 1):
        return f"{info.label} {percent(value)}"
    return f"{info.label} {RIGHT if bool(value) != info.lower_is_better else WRONG}"
