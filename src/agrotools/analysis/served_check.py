"""Check of a tool server's tools in the place of ours: agreement with truth, refusals, seconds, and points won.

*Points won* are the score of ``oracle``, which makes every reference call, with the served tools in place, minus its
score with ours, on the questions whose calls the binding is made for. No model is needed. Both are ordinary runs in run
folders: the same command goes on where it was stopped.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TextIO, cast

from agrotools.calling import get_tool
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.services import run_now
from agrotools.calling.workspace import Workspace
from agrotools.core import (
    Arguments,
    FrozenModel,
    InfrastructureError,
    Record,
    ReferenceStep,
    Sample,
    Slot,
    ToleranceSlot,
    ToolCall,
    ToolError,
    UsageError,
)
from agrotools.core.files import cache_dir
from agrotools.core.record import literal_value
from agrotools.core.texts import count_text, number_text
from agrotools.loading import Benchmark
from agrotools.report.layout import (
    ReportTable,
    interval_text,
    new_table,
    percent,
    points,
    shortened,
)
from agrotools.runner.build import load_for_run
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.records import iter_records
from agrotools.scoring.aggregate import tallied
from agrotools.scoring.comparisons import comparisons
from agrotools.scoring.lost_points import LostPoints
from agrotools.scoring.metrics import is_invalid
from agrotools.scoring.statistics import Estimate
from agrotools.served.binding import BINDING_FAULT, BoundTool
from agrotools.served.tools import ServedCalls, ServedToolset, open_toolset
from agrotools.text.json_kinds import is_number

_ORACLE = "baseline:oracle"
_MODE = "end-to-end"
_ALL_POINTS = 1 - 1e-9
"""Least score of a question with all points; scores are means of floats."""
_STRANGERS = 10
"""Pictures of other tools' questions that a served tool is tried on: enough to see whether it ever refuses."""
_STRANGERS_AT_A_TIME = 4
"""Servers that start at a time for these pictures: the start of a large one is the work of a processor."""
_MOST_REASONS = 3
"""Reasons of refusals that are named, the most frequent ones."""
_MOST_LEFT_OUT = 6
"""Values of arguments that a binding is not made for, and that are named, the most frequent ones."""
_UNITS = (1000, 100, 10, 0.1, 0.01, 0.001)
"""Factors between values and the truth that come from a wrong unit: fractions for percent, mm for cm or m."""
_UNIT_SPREAD = 1.2
"""Largest ratio of such a factor and the median one."""
_LEAST_FOR_UNIT = 3
"""Fewest values from which a wrong unit is told."""


class NoFittingCallError(UsageError):
    """A binding that is made for no reference call of a benchmark."""


class FieldAgreement(FrozenModel):
    """Agreement of one field of a result with the truth, over the calls whose truth has it."""

    field: str
    n: int
    median_error: float | None
    """Median of the errors relative to the truth, a fraction; None for texts and yes or no."""
    n_equal: int
    n_judged: int = 0
    """Number of values that a question asks for, each with its tolerance."""
    n_within: int = 0
    """Number of these within the tolerance."""
    factor: float | None = None
    """About how many times the truth the values are, if that is a factor between units."""


class ServedToolCheck(FrozenModel):
    """Calls of one of our tools that a server answered or refused."""

    tool: str
    calls: int
    refused: int
    """Calls that the server refused."""
    unbound: int
    """Calls without a result for a fault of the binding: a value that is not there, or arguments that do not fit."""
    reasons: dict[str, int]
    """Number of refusals by their text, the most frequent ones."""
    seconds: float | None
    """Median of the seconds of a call that was answered, without the start of the server."""
    fields: tuple[FieldAgreement, ...]
    not_given: dict[str, int]
    """Fields that a question reads and no result had, with the number of these questions: they are lost."""
    passed_over: dict[str, int]
    """Arguments that calls gave and the binding neither uses nor names in ``when``, with the number of the calls."""
    unfit: dict[str, int]
    """Reference calls that ``when`` leaves out, by the argument and its value, the most frequent ones."""
    left_out: int
    """Calls whose arguments follow from an earlier result that is not the one that the truth belongs to."""
    strangers: int
    """Pictures of other tools' questions that it was tried on."""
    strangers_answered: int


class ServedCheck(FrozenModel):
    """What a tool server's tools are worth on one benchmark."""

    benchmark: str
    server: str
    version: str
    schemas: str
    sealed: bool
    runs: tuple[str, str]
    """Folders of the run with our tools, and of the one with those of the server in place."""
    tools: tuple[ServedToolCheck, ...]
    metric: str = ""
    means: tuple[float, float] | None = None
    won: Estimate | None = None
    """Points won, as a fraction; None if no question has a score in both runs."""
    by_task_type: dict[str, Estimate] = {}
    nothing_to_win: tuple[str, ...] = ()
    """Types of task on which our tools have all points; ``all`` alone if they have them everywhere."""
    questions: int
    """Questions whose calls the binding is made for."""
    unfit: int
    """Questions with a call that the binding is not made for; they are left out."""
    invalid: int
    """Questions without a score because the server died, hung or flooded."""


def check_served(
    benchmark: str,
    servers: Sequence[str],
    binding: str,
    progress: TextIO,
    *,
    quick: bool = True,
) -> ServedCheck:
    """Return what the tools of a binding are worth on a benchmark.

    Raises:
        UsageError: the server or the binding cannot be used.
        NoFittingCallError: the binding is made for no reference call of the benchmark.
        InfrastructureError: the server does not start.
    """
    ours = EvalConfig.of(benchmark=benchmark, quick=quick, model=_ORACLE, mode=_MODE)
    loaded = load_for_run(ours, progress)
    if not loaded.header.quick:  # a benchmark without a quick part is taken whole
        quick = False
        ours = ours.with_options(quick=False)
    theirs = ours.with_options(tool_servers=tuple(servers), bindings=(binding,))
    toolset = open_toolset(
        servers,
        [binding],
        get_tool,
        taken=loaded.toolset,
        answers=[loaded.root, cache_dir()],
    )
    fitting = _fitting_questions(loaded, toolset, quick=quick)
    if not fitting.ids:
        raise NoFittingCallError(
            f"no reference call of {loaded.name} is one that the binding is made for",
            hint=_no_fit_hint(toolset, fitting),
        )
    runs = [
        evaluate(ours, progress, benchmark=loaded, only=fitting.ids).run,
        evaluate(theirs, progress, benchmark=loaded, only=fitting.ids, served=toolset).run,
    ]
    records = [_records_of(run, fitting.ids) for run in runs]
    strangers = run_now(_try_strangers(loaded, toolset, fitting, progress))
    return _summed_up(loaded, toolset, fitting, runs, records, strangers)


def _no_fit_hint(toolset: ServedToolset, fitting: "_Fitting") -> str:
    left_out = [_unfit_text(tool, _frequent(why)) for tool, why in fitting.unfit_calls.items()]
    names = ", ".join(toolset.bound)
    return " ".join([f"it binds {names}; name another benchmark, or change when.", *left_out])


def _frequent(why: Counter[str]) -> dict[str, int]:
    return dict(why.most_common(_MOST_LEFT_OUT))


def _unfit_text(tool: str, why: Mapping[str, int]) -> str:
    """Return which calls of a tool ``when`` leaves out."""
    listed = "; ".join(f"{number} with {reason}" for reason, number in why.items())
    return f"Calls of {tool} that the binding is not made for: {listed}."


@dataclass
class _Fitting:
    """Questions whose calls a binding is made for, and one such call of each tool."""

    ids: set[str] = field(default_factory=set[str])
    unfit: int = 0
    example: dict[str, Arguments] = field(default_factory=dict[str, Arguments])
    others: list[Sample] = field(default_factory=list[Sample])
    """Questions without a call of a bound tool."""
    unfit_calls: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """Calls of each bound tool that it is not made for, by why."""


def _fitting_questions(benchmark: Benchmark, toolset: ServedToolset, *, quick: bool) -> _Fitting:
    chosen = set(benchmark.header.quick) if quick else None
    fitting = _Fitting()
    for sample in benchmark.samples:
        if chosen is not None and sample.id not in chosen:
            continue
        steps = sample.reference.steps if sample.reference else ()
        bound = [step for step in steps if step.tool in toolset.bound]
        if not bound:
            fitting.others.append(sample)
            continue
        reasons = [(step.tool, _why_unfit(step, toolset)) for step in bound]
        if any(why for _, why in reasons):
            fitting.unfit += 1
            for tool, why in reasons:
                if why:
                    fitting.unfit_calls.setdefault(tool, Counter())[why] += 1
            continue
        fitting.ids.add(sample.id)
        for step in bound:
            fitting.example.setdefault(step.tool, _literal(step))
    return fitting


def _why_unfit(step: ReferenceStep, toolset: ServedToolset) -> str:
    """Return why a binding is not made for a reference call, as ``target = tree``; empty if it is."""
    _, bound = toolset.bound[step.tool]
    try:
        arguments = get_tool(step.tool).validate(_literal(step))
    except ToolError as error:
        return error.message
    unfit = bound.unfit(arguments)
    if unfit is None:
        return ""
    assert unfit.argument is not None
    value = arguments.get(unfit.argument)
    if value is None:
        return f"{unfit.argument} not given"
    is_listed = isinstance(bound.when[unfit.argument], tuple)
    return f"{unfit.argument} = {value}" if is_listed else f"{unfit.argument} given"


def _literal(step: ReferenceStep) -> Arguments:
    """Return the arguments of a reference call with values in place of references to earlier results."""
    return {name: literal_value(value) for name, value in step.arguments.items()}


def _records_of(run: Path, ids: set[str]) -> list[Record]:
    return [
        record
        for record in iter_records(run)
        if record.sample.id in ids and record.mode == _MODE and record.epoch == 0
    ]


class _Answered(NamedTuple):
    """A call of a served tool in a run, with the reference step that it makes."""

    sample: Sample
    number: int
    step: ReferenceStep
    arguments: Arguments
    result: Mapping[str, Any] | None
    """None if it was refused."""
    refusal: str
    seconds: float


def _calls_of(records: Iterable[Record], tool: str) -> list[_Answered]:
    """Return the calls of a tool: ``oracle`` makes the reference calls in their order."""
    calls: list[_Answered] = []
    for record in records:
        reference, trajectory = record.sample.reference, record.trajectory
        if reference is None or trajectory is None:
            continue
        for number, (step, made) in enumerate(zip(reference.steps, trajectory.calls, strict=False)):
            if step.tool != tool or made.call is None or made.observation is None:
                continue
            error = made.observation.error
            calls.append(
                _Answered(
                    record.sample,
                    number,
                    step,
                    made.call.arguments,
                    made.observation.result if error is None else None,
                    error.message if error else "",
                    made.seconds,
                )
            )
    return calls


def _tool_check(
    bound: BoundTool,
    calls: Sequence[_Answered],
    strangers: tuple[int, int],
    unfit: Mapping[str, int],
) -> ServedToolCheck:
    defaults = get_tool(bound.name).spec.defaults
    passed_over = Counter(
        name for call in calls for name in bound.passed_over(call.arguments, defaults)
    )
    reasons: dict[str, int] = {}
    for call in calls:
        if call.refusal:
            words = shortened(" ".join(call.refusal.split()), 120)
            reasons[words] = reasons.get(words, 0) + 1
    frequent = sorted(reasons.items(), key=lambda reason: -reason[1])[:_MOST_REASONS]
    n_without = sum(bool(call.refusal) for call in calls)
    n_unbound = sum(call.refusal.startswith(BINDING_FAULT) for call in calls)
    answered = [call.seconds for call in calls if call.result is not None]
    compared = [call for call in calls if call.arguments == _literal(call.step)]
    return ServedToolCheck(
        tool=bound.name,
        calls=len(calls),
        refused=n_without - n_unbound,
        unbound=n_unbound,
        reasons=dict(frequent),
        seconds=median(answered) if answered else None,
        fields=_agreements(compared),
        not_given=_fields_not_given(calls),
        passed_over=dict(passed_over),
        unfit=dict(unfit),
        left_out=len(calls) - len(compared),
        strangers=strangers[0],
        strangers_answered=strangers[1],
    )


def _fields_not_given(calls: Sequence[_Answered]) -> dict[str, int]:
    """Return the fields of results that questions read and no result has, with the number of the questions."""
    given = {name for call in calls if call.result is not None for name in call.result}
    readers: dict[str, set[str]] = {}
    for call in calls:
        reference = call.sample.reference
        later = reference.steps[call.number + 1 :] if reference else ()
        read = repr([step.arguments for step in later])
        read += repr([getattr(slot, "from_", None) for slot in call.sample.answer])
        for name in re.findall(rf"steps\[{call.number}\]\.observation\.(\w+)", read):
            readers.setdefault(name, set()).add(call.sample.id)
    return {name: len(ids) for name, ids in readers.items() if given and name not in given}


def _agreements(calls: Sequence[_Answered]) -> tuple[FieldAgreement, ...]:
    """Return the agreement of each field that both the truth and a result have."""
    pairs: dict[str, list[tuple[Any, Any, ToleranceSlot | None]]] = {}
    for call in calls:
        if call.result is None or call.step.truth is None:
            continue
        given = _leaves(call.result)
        for name, truth in _leaves(call.step.truth).items():
            if name in given and truth is not None:
                slot = _reading_slot(call, name)
                pairs.setdefault(name, []).append((given[name], truth, slot))
    return tuple(_agreement(name, values) for name, values in pairs.items())


def _agreement(name: str, pairs: Sequence[tuple[Any, Any, ToleranceSlot | None]]) -> FieldAgreement:
    errors: list[float] = []
    ratios: list[float] = []
    n_equal = n_judged = n_within = 0
    for given, truth, slot in pairs:
        n_equal += given == truth
        if not (is_number(given) and is_number(truth)):
            continue
        if truth:
            errors.append(abs(given - truth) / abs(truth))
            ratios.append(given / truth)
        if slot is not None:
            n_judged += 1
            n_within += abs(given - truth) <= slot.margin
    return FieldAgreement(
        field=name,
        n=len(pairs),
        median_error=median(errors) if errors else None,
        n_equal=n_equal,
        n_judged=n_judged,
        n_within=n_within,
        factor=unit_factor(ratios),
    )


def unit_factor(ratios: Sequence[float]) -> float | None:
    """Return the factor between units that values differ from the truth by; None if there is none."""
    if len(ratios) < _LEAST_FOR_UNIT:
        return None
    middle = median(ratios)
    near = (unit for unit in _UNITS if unit / _UNIT_SPREAD <= middle <= unit * _UNIT_SPREAD)
    return next(near, None)


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return the values inside a result by their paths: ``plants[0].height_cm``; notes and flags are left out."""
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for name, item in cast("dict[str, Any]", value).items():
            if name not in ("notes", "flags"):
                found |= _leaves(item, f"{path}.{name}" if path else name)
        return found
    if isinstance(value, list):
        found = {}
        for number, item in enumerate(cast("list[Any]", value)):
            found |= _leaves(item, f"{path}[{number}]")
        return found
    return {path: value}


def _reading_slot(call: _Answered, name: str) -> ToleranceSlot | None:
    """Return the part of the answer that is this field of this call as it is, with its tolerance."""
    path = f"steps[{call.number}].observation.{name}"
    slots: Sequence[Slot] = call.sample.answer
    return next(
        (slot for slot in slots if isinstance(slot, ToleranceSlot) and slot.from_ == path), None
    )


async def _try_strangers(
    benchmark: Benchmark, toolset: ServedToolset, fitting: _Fitting, progress: TextIO
) -> dict[str, tuple[int, int]]:
    """Return for each bound tool on how many pictures of other tools' questions it was tried, and how many it answered.

    A call is that of a fitting question, with another picture and without a part of it.
    """
    found: dict[str, tuple[int, int]] = {}
    turns = asyncio.Semaphore(_STRANGERS_AT_A_TIME)
    with TemporaryDirectory(prefix="agrotools-") as scratch:
        async with ToolExecutor(backends=toolset.backends, served=ServedCalls(toolset)) as executor:

            async def answers(call: ToolCall, sample: Sample) -> bool | None:
                """Return whether a call is answered; None if the server failed, which the run itself counts."""
                async with turns:
                    prepared = await asyncio.to_thread(benchmark.prepare, sample)
                    files = benchmark.view(prepared, _MODE).files
                    workspace = Workspace(files, Path(scratch, f"{call.tool}-{sample.id}"))
                    try:
                        outcome = await executor.run(call, workspace, [call.tool])
                    except InfrastructureError:
                        return None
                    finally:
                        await executor.end_sample(workspace)
                    return outcome.observation.ok

            for tool, example in fitting.example.items():
                calls = _stranger_calls(tool, example, fitting.others)
                if calls:
                    pictures = count_text(len(calls), "picture")
                    print(f"{tool}: trying {pictures} of other questions", file=progress)
                outcomes = await asyncio.gather(*(answers(*each) for each in calls))
                tried = [is_answer for is_answer in outcomes if is_answer is not None]
                found[tool] = len(tried), sum(tried)
    return found


def _stranger_calls(
    tool: str, example: Arguments, others: Sequence[Sample]
) -> list[tuple[ToolCall, Sample]]:
    calls: list[tuple[ToolCall, Sample]] = []
    for sample in others:
        call = _stranger_call(tool, example, sample)
        if call is not None and len(calls) < _STRANGERS:
            calls.append((call, sample))
    return calls


def _stranger_call(tool: str, example: Arguments, sample: Sample) -> ToolCall | None:
    """Return a call on the first picture of a sample; None if it has none, or the tool takes several files."""
    agreement = get_tool(tool).spec.agreement
    pictures = [file.name for file in sample.files if file.kind == "image"]
    files = [name for name in example if agreement.get(name) == "file"]
    if len(files) != 1 or not pictures:
        return None
    kept = {name: value for name, value in example.items() if agreement.get(name) != "box"}
    return ToolCall(tool=tool, arguments={**kept, files[0]: pictures[0]})


def _summed_up(
    benchmark: Benchmark,
    toolset: ServedToolset,
    fitting: _Fitting,
    runs: Sequence[Path],
    records: Sequence[Sequence[Record]],
    strangers: Mapping[str, tuple[int, int]],
) -> ServedCheck:
    use = toolset.uses[0]
    compared = comparisons(
        [tallied(each, lost=LostPoints()) for each in records], ("ours", use.name)
    )[0]
    metric = compared.headline.get(_MODE, "")
    difference = compared.modes[_MODE][metric] if metric else None
    return ServedCheck(
        benchmark=benchmark.name,
        server=use.name,
        version=use.version,
        schemas=use.schemas,
        sealed=use.sealed,
        runs=(str(runs[0]), str(runs[1])),
        tools=tuple(
            _tool_check(
                bound,
                _calls_of(records[1], name),
                strangers.get(name, (0, 0)),
                _frequent(fitting.unfit_calls.get(name, Counter())),
            )
            for name, (_, bound) in toolset.bound.items()
        ),
        metric=metric,
        means=compared.means.get(_MODE),
        won=difference.overall if difference else None,
        by_task_type=difference.by_task_type if difference else {},
        nothing_to_win=_nothing_to_win(records[0], metric) if metric else (),
        questions=len(fitting.ids),
        unfit=fitting.unfit,
        invalid=sum(is_invalid(record) for record in records[1]),
    )


def _nothing_to_win(records: Sequence[Record], metric: str) -> tuple[str, ...]:
    """Return the types of task on which every question has all points; ``all`` alone if every type is one of them."""
    by_type: dict[str, list[Record]] = {}
    for record in records:
        by_type.setdefault(record.sample.task_type, []).append(record)
    full: list[str] = []
    for name, of_type in by_type.items():
        units = tallied(of_type).valued_units(_MODE, metric)
        if units is not None and min(units.values) >= _ALL_POINTS:
            full.append(name)
    return ("all",) if full and len(full) == len(by_type) else tuple(full)


def check_tables(check: ServedCheck) -> list[ReportTable]:
    """Return the tables of a check: points won, then calls and agreement of each tool."""
    return [
        _points_table(check),
        _calls_table(check),
        *(_fields_table(tool) for tool in check.tools if tool.calls),
    ]


def _points_table(check: ServedCheck) -> ReportTable:
    table = new_table(
        f"Points won by {check.server} on {check.benchmark}",
        ["points", "95 % interval", "questions"],
    )
    rows = [("all", check.won), *check.by_task_type.items()] if check.won else []
    for name, estimate in rows:
        assert estimate is not None
        interval = interval_text(estimate.interval, points) if estimate.interval else ""
        table.add_row(name.replace("_", " "), points(estimate.value), interval, str(estimate.n))
    if check.means:
        ours, theirs = check.means
        table.notes.append(
            f"With every call right: {percent(ours)} with our tools, {percent(theirs)} with {check.server}."
        )
    if check.nothing_to_win:
        where = ", ".join(name.replace("_", " ") for name in check.nothing_to_win)
        table.notes.append(
            f"Nothing is left to win, because our tools have 100.0 there: {where}. Other benchmarks may have more room."
        )
    of_tools = ", ".join(tool.tool for tool in check.tools)
    n_all = count_text(check.questions + check.unfit, "question")
    table.notes.append(
        f"{n_all} with calls of {of_tools}: the binding is made for those of {check.questions}; {check.unfit} left out."
    )
    if check.invalid:
        table.notes.append(
            f"{count_text(check.invalid, 'question')} without a score: the server failed."
        )
    if not check.sealed:
        table.notes.append("The server is unsealed: it could read the answers.")
    if any(estimate is not None and estimate.interval is None for _, estimate in rows):
        table.notes.append("No interval: fewer than 10 independent groups of questions.")
    return table


def _calls_table(check: ServedCheck) -> ReportTable:
    headings = [
        "calls",
        "refused by the server",
        "failed in the binding",
        "seconds",
        "other pictures",
        "of these answered",
    ]
    table = new_table("Calls", headings)
    for tool in check.tools:
        seconds = number_text(tool.seconds, 2) if tool.seconds is not None else ""
        others = (str(tool.strangers), str(tool.strangers_answered)) if tool.strangers else ("", "")
        without = (str(tool.refused), str(tool.unbound))
        table.add_row(tool.tool, str(tool.calls), *without, seconds, *others)
        for name, number in tool.not_given.items():
            asked = count_text(number, "question")
            table.notes.append(f"{asked} lost: {name} of {tool.tool} is not in the result.")
        for name, number in tool.passed_over.items():
            given = count_text(number, "call")
            table.notes.append(
                f"{given} of {tool.tool} with {name}, which the binding passes over: use it in an argument, or name it "
                "in when."
            )
        if tool.unfit:
            table.notes.append(_unfit_text(tool.tool, tool.unfit))
        if tool.calls and tool.refused + tool.unbound == tool.calls:
            sealed = " The server is sealed: it has no network." if check.sealed else ""
            table.notes.append(f"No call of {tool.tool} gave a result.{sealed}")
        for reason, number in tool.reasons.items():
            table.notes.append(f"{tool.tool} gave no result {number} times: {reason}")
    table.notes.append(
        "Seconds: median of an answered call. Other pictures: those of questions that need other tools; a tool that "
        "answers all of them never says that a picture is not for it."
    )
    return table


def _fields_table(tool: ServedToolCheck) -> ReportTable:
    table = new_table(
        f"{tool.tool} against the truth",
        ["values", "median error", "equal", "within the tolerance"],
    )
    for each in tool.fields:
        error = f"{percent(each.median_error)} %" if each.median_error is not None else ""
        within = f"{each.n_within} of {each.n_judged}" if each.n_judged else ""
        table.add_row(each.field, str(each.n), error, str(each.n_equal), within)
        if each.factor is not None:
            table.notes.append(
                f"{each.field} is about {each.factor:g} times the truth: look at its unit in the binding."
            )
    if tool.fields:
        table.notes.append(
            "Within the tolerance: of the values that a question asks for as they are. "
            "Others count by what is chosen or calculated from them."
        )
    if tool.left_out:
        table.notes.append(
            f"{count_text(tool.left_out, 'call')} left out: an argument follows from another result than the truth's."
        )
    return table
