"""All faults at once: samples of which each knows what must become of it, a run through them, and the count after it.

A sample meets one fault of the wire (:mod:`support.fault_server`) in one of its requests; in end-to-end it also makes
tool calls, some of which crash, hang, or spoil their worker (``tests/tools/hostile_tools.py``).
"""

import json
import os
import random
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import tomli_w

from agrotools.core import ExactSlot, Mode, Record, Trajectory
from agrotools.models import WireSettings
from agrotools.runner import evaluate as evaluation
from agrotools.runner.config import EvalConfig
from agrotools.scoring.slots import outcome_scores
from agrotools.tools import TOOLS
from agrotools.tools.execution import ToolExecutor
from support.fault_server import FAULTS, Body, completion, fault_server_beside, marked, marker_of, turn_of
from support.plain_sample import plain_sample

HOSTILE_TOOLS = Path(__file__).resolve().parents[1] / "tools"
HEALTHY_SHARE = 0.3
RARE = {"outage_once": 2}
"""Faults that concern all samples in flight: so many in a run, however long it is."""
_OUTAGE = ("Connect call failed", "Server disconnected", "Connection reset by peer")
_HEALTHY_AT_FIRST = 16
_MOST_MET_OUTAGE = 0.01
"""Share of the samples that may tell of an outage instead of their own fault: it lasts 0.15 s, twice in a run."""


@dataclass(frozen=True)
class PlannedCall:
    """A tool call of a sample, and what must be observed: an error of that kind, or that value."""

    name: str
    tool: str
    arguments: Body
    error: str | None = None
    value: float | None = None


@dataclass(frozen=True)
class Case:
    """One sample of the storm. The request of ``turn`` meets ``fault``."""

    sample: str
    fault: str
    turn: int
    value: int
    plan: tuple[PlannedCall, ...] = ()

    @property
    def expected(self) -> str:
        return FAULTS[self.fault].expected_among_others

    @property
    def seen(self) -> tuple[PlannedCall, ...]:
        """The calls that a right record shows."""
        if self.expected == "invalid":
            return ()
        return self.plan if self.expected == "ok" else self.plan[: self.turn]


def bad_calls(number: int) -> list[PlannedCall]:
    """Every way in which a tool call goes wrong or hurts others, for the sample of that number."""
    return [
        PlannedCall("segfault", "fail", {"how": "segfault"}, error="tool_failed"),
        PlannedCall("abort", "fail", {"how": "abort"}, error="tool_failed"),
        PlannedCall("exit in the middle", "fail", {"how": "hard_exit"}, error="tool_failed"),
        PlannedCall("exception", "fail", {"how": "exception"}, error="tool_failed"),
        PlannedCall("memory", "fail", {"how": "memory"}, error="limit"),
        PlannedCall("hang", "hang", {"how": "sleep"}, error="timeout"),
        PlannedCall("hang in C", "hang", {"how": "c"}, error="timeout"),
        PlannedCall("unknown tool", "measure_everything", {}, error="unknown_tool"),
        PlannedCall("wrong argument", "echo", {"value": "much"}, error="invalid_argument"),
        PlannedCall("slow but right", "echo", {"value": number, "wait_s": 0.05}, value=number),
    ]


def make_cases(count: int, seed: int, *, with_tools: bool) -> list[Case]:
    """``count`` samples in random order, every fault about equally often, healthy ones between."""
    draw = random.Random(seed)
    faults = [name for name, times in RARE.items() for _ in range(times)]
    faults += ["none"] * int(count * HEALTHY_SHARE)
    others = [name for name in FAULTS if name != "none" and name not in RARE]
    while len(faults) < count:
        faults += draw.sample(others, min(len(others), count - len(faults)))
    faults = faults[:count]
    draw.shuffle(faults)
    # Outages come before others are at their last attempt, so that each can tell of its own fault in the end.
    first = [*["none"] * min(_HEALTHY_AT_FIRST, faults.count("none")), *["outage_once"] * RARE["outage_once"]]
    for at, fault in enumerate(first):
        found = faults.index(fault, at)
        faults[at], faults[found] = faults[found], faults[at]
    return [_case(number, fault, draw, with_tools) for number, fault in enumerate(faults)]


def _case(number: int, fault: str, draw: random.Random, with_tools: bool) -> Case:
    plan: tuple[PlannedCall, ...] = ()
    if with_tools:
        sums = [
            PlannedCall("calculate", "calculate", {"expression": f"{number} + {k}"}, value=number + k) for k in (1, 2)
        ]
        every = bad_calls(number)
        bad = [every[number // 4 % len(every)]] if number % 4 == 0 else []
        plan = (sums[0], *bad, sums[1])
    return Case(f"s{number}", fault, draw.randint(0, len(plan)), 1000 + number, plan)


def respond(cases: dict[str, Case], body: Body) -> Body:
    """What a model that follows the sample's plan replies."""
    marker = marker_of(body)
    if marker is None:
        return completion("OK")  # asked whether anybody is there
    case, turn = cases[marker.sample], turn_of(body)
    if turn >= len(case.plan):
        return completion(f"Thought: That is it.\nFinal Answer: value: {case.value}")
    call = case.plan[turn]
    return completion(f"Thought: Next.\nAction: {call.tool}\nAction Input: {json.dumps(call.arguments)}")


def write_benchmark(folder: Path, cases: Sequence[Case], mode: Mode) -> Path:
    """A benchmark folder of the samples of ``cases``."""
    folder.mkdir(parents=True)
    toolset = ("calculate", "echo", "fail", "hang")
    header = {"name": "storm", "version": "1", "licence": "CC0-1.0", "toolset": toolset, "modes": [mode]}
    (folder / "benchmark.toml").write_text(tomli_w.dumps(header), encoding="utf-8")
    with (folder / "samples.jsonl").open("w", encoding="utf-8") as lines:
        for case in cases:
            sample = plain_sample(
                case.sample,
                query=marked(f"What is the value of plot {case.sample}?", case.fault, case.sample, case.turn),
                toolset=toolset,
                answer=(ExactSlot(name="value", label="value of the plot", value=case.value),),
            )
            lines.write(sample.model_dump_json(by_alias=True, exclude_none=True) + "\n")
    assert tomllib.loads((folder / "benchmark.toml").read_text())["name"] == "storm"
    return folder


class _StormConfig(EvalConfig):
    """Waits between attempts that suit a test; they are no option of the command."""

    @property
    def _wire(self) -> WireSettings:
        return super()._wire.model_copy(update={"first_wait_s": 0.02, "longest_wait_s": 0.4})


@contextmanager
def _hostile_tools() -> Iterator[None]:
    """Registers the hostile tools, and gives tool calls little time and memory."""
    sys.path.insert(0, str(HOSTILE_TOOLS))
    import hostile_tools

    for name, made in hostile_tools.BY_NAME.items():
        TOOLS.add(name, made)
    real = evaluation.executor_class
    evaluation.executor_class = lambda _name: partial(ToolExecutor, timeout_s=4.0, memory_mb=1024)  # pyright: ignore
    try:
        yield
    finally:
        evaluation.executor_class = real
        for name in hostile_tools.BY_NAME:
            TOOLS.remove(name)
        sys.path.remove(str(HOSTILE_TOOLS))


@dataclass
class Tally:
    """What became of the samples. ``rows``: by mode, what they met, and expected outcome: counts of right, wrong..."""

    rows: dict[tuple[str, str, str], Counter[str]] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)
    """What is wrong, sample by sample."""
    samples: int = 0
    requests: int = 0
    met_outage: int = 0
    connections_left: int = 0
    processes_left: int = 0

    def count(self, row: tuple[str, str, str], verdict: str, why: str = "") -> None:
        self.rows.setdefault(row, Counter())[verdict] += 1
        if verdict != "right":
            self.why.append(f"{row[0]}, {row[1]}: {verdict}: {why}")

    @property
    def clean(self) -> bool:
        few = self.met_outage <= max(2, _MOST_MET_OUTAGE * self.samples)
        return not self.why and few and not self.connections_left and not self.processes_left


def storm(folder: Path, mode: Mode, count: int, seed: int, progress: TextIO, *, concurrency: int | None) -> Tally:
    """Run ``count`` samples in ``mode`` through all faults at once and count what became of them."""
    cases = make_cases(count, seed, with_tools=mode == "end-to-end")
    benchmark = write_benchmark(folder / f"benchmark-{mode}", cases, mode)
    run = folder / f"run-{mode}"
    tally = Tally()
    by_name = {case.sample: case for case in cases}
    children = _children()
    with _hostile_tools(), fault_server_beside(partial(respond, by_name)) as server:
        config = _StormConfig(
            benchmark=str(benchmark), model="stormy", base_url=server.base_url, mode=mode, out=run,
            concurrency=concurrency, timeout_s=1.5, stall_s=0.4, attempts=7, retry_wall_s=60,
        )  # fmt: skip
        evaluation.evaluate(config, progress)
        tally.requests = server.requests
        tally.connections_left = _settled(lambda: server.open_connections)
    tally.processes_left = _settled(lambda: len(_children() - children))
    count_outcomes(tally, cases, run, mode)
    return tally


def count_outcomes(tally: Tally, cases: Sequence[Case], run: Path, mode: Mode) -> None:
    """Compare what ``run`` holds with what must be there."""
    lines: dict[str, list[Record]] = {}
    for line in (run / "records.jsonl").read_bytes().splitlines():
        record = Record.model_validate_json(line)
        lines.setdefault(record.sample.id, []).append(record)
    tally.samples += len(cases)
    for case in cases:
        records = lines.pop(case.sample, [])
        rows = [(mode, case.fault, case.expected)]
        rows += [(mode, f"tool: {call.name}", call.error or "ok") for call in case.seen if call.name != "calculate"]
        for row in rows:
            tally.count(row, *_verdict(case, records))
        if records and FAULTS[case.fault].says not in ("", "no reply from") and last_met_outage(records[-1]):
            tally.met_outage += 1
    for stray in lines:
        tally.count((mode, "nobody's", "none"), "wrong", stray)


def _verdict(case: Case, records: Sequence[Record]) -> tuple[str, str]:
    if not records:
        return "missing", case.sample
    if len(records) > 1:
        return "doubled", f"{case.sample}: {len(records)} records"
    why = _difference(case, records[-1])
    return ("wrong", f"{case.sample}, turn {case.turn}: {why}") if why else ("right", "")


def last_met_outage(record: Record) -> bool:
    """Whether what is told of a sample is its last attempt, made at the moment when the whole server was away."""
    return record.invalid is not None and any(words in record.invalid for words in _OUTAGE)


def _difference(case: Case, record: Record) -> str:
    """How the record differs from what must be; empty if it does not."""
    says = FAULTS[case.fault].says
    if case.expected == "invalid":
        if record.invalid is None:
            return f"not invalid but {record.trajectory and record.trajectory.termination}"
        told = says in record.invalid or last_met_outage(record)
        return "" if told and record.trajectory is None else f"invalid for: {record.invalid}"
    if record.invalid is not None or record.trajectory is None:
        return f"invalid: {record.invalid}"
    trajectory = record.trajectory
    expected = "answered" if case.expected == "ok" else case.expected
    if trajectory.termination != expected:
        return f"ended as {trajectory.termination}: {trajectory.reason}"
    if case.expected != "ok" and says not in trajectory.reason:
        return f"{trajectory.termination} for: {trajectory.reason}"
    (score,) = (score.value for score in outcome_scores(record) if score.metric == "fas")
    if score != (1 if case.expected == "ok" else 0):
        return f"scored {score}: {trajectory.answer}"
    return _difference_of_calls(case.seen, trajectory)


def _difference_of_calls(plan: Sequence[PlannedCall], trajectory: Trajectory) -> str:
    steps = trajectory.calls
    if len(steps) != len(plan):
        return f"{len(steps)} calls instead of {len(plan)}"
    for planned, step in zip(plan, steps, strict=True):
        seen = step.observation
        if seen is None or step.call is None or step.call.tool != planned.tool:
            return f"call {step.call} instead of {planned.tool}"
        if (seen.error.kind if seen.error else None) != planned.error:
            return f"{planned.name}: {seen.error} instead of {planned.error}"
        if planned.value is not None and (seen.result or {}).get("value") != planned.value:
            return f"{planned.name}: {seen.result} instead of {planned.value}"
    return ""


def _children() -> set[int]:
    """Processes that this one started, dead ones that were not cleared away among them."""
    found: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = entry.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.add(int(entry.parent.name))
    return found


def _settled(count: Any) -> int:
    """What ``count`` says once it is 0, or after 3 seconds."""
    import time

    end = time.monotonic() + 3
    while count() and time.monotonic() < end:
        time.sleep(0.05)
    return count()
