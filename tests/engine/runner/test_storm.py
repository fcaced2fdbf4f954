"""All faults of wire and tools at once: no sample wrong, none missing, none doubled.

A sample meets one fault of the wire (:mod:`support.fault_server`) in one of its requests, and makes tool calls, some of
which crash, hang, or spoil their worker (``tests/engine/calling/hostile_tools.py``). Each knows what must become of it.
"""

import io
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import tomli_w

from agrotools.calling import TOOLS
from agrotools.calling.execution import ToolExecutor
from agrotools.core import ExactSlot, Record
from agrotools.models import WireSettings
from agrotools.runner import evaluate as evaluation
from agrotools.runner.config import EvalConfig, WireConfig
from agrotools.scoring.slots import outcome_scores
from support.fault_server import (
    FAULTS,
    Body,
    completion,
    fault_server_beside,
    marked,
    marker_of,
    turn_of,
)
from support.plain_sample import plain_sample

SAMPLES = 100
"""Enough for every fault to occur at least once."""
OUTAGES = 2
OUTAGE = ("Connect call failed", "Server disconnected", "Connection reset by peer")
BAD_CALLS: list[tuple[str, Body, str | None]] = [
    *(("fail", {"how": how}, "tool_failed") for how in ("segfault", "abort", "hard_exit", "exception")),
    ("fail", {"how": "memory"}, "limit"), ("hang", {"how": "sleep"}, "timeout"), ("hang", {"how": "c"}, "timeout"),
    ("measure_everything", {}, "unknown_tool"), ("echo", {"value": "much"}, "invalid_argument"),
    ("echo", {"value": 7, "wait_s": 0.05}, None),
]  # fmt: skip
"""Every way in which a tool call goes wrong or hurts others: tool, arguments, kind of the error that is observed."""


@dataclass(frozen=True)
class Case:
    """One sample. The request of ``turn`` meets ``fault``; a model that follows ``plan`` answers ``value``."""

    sample: str
    fault: str
    turn: int
    value: int
    plan: list[tuple[str, Body, str | None]]


def cases() -> list[Case]:
    draw = random.Random(7)
    others = [name for name in FAULTS if name not in ("none", "outage_once")]
    faults = ["none"] * (SAMPLES * 3 // 10) + others
    faults = (faults + draw.sample(others, max(0, SAMPLES - OUTAGES - len(faults))))[
        : SAMPLES - OUTAGES
    ]
    draw.shuffle(faults)
    # Outages come before others are at their last attempt, so that each can tell of its own fault in the end.
    faults[16:16] = ["outage_once"] * OUTAGES
    made: list[Case] = []
    for number, fault in enumerate(faults):
        sums = [("calculate", {"expression": f"{number} + {k}"}, None) for k in (1, 2)]
        plan = [
            sums[0],
            *([BAD_CALLS[number // 4 % len(BAD_CALLS)]] if number % 4 == 0 else []),
            sums[1],
        ]
        made.append(Case(f"s{number}", fault, draw.randint(0, len(plan)), 1000 + number, plan))
    return made


def respond(by_name: dict[str, Case], body: Body) -> Body:
    """What a model that follows the sample's plan replies."""
    marker = marker_of(body)
    if marker is None:
        return completion("OK")  # asked whether anybody is there
    case, turn = by_name[marker.sample], turn_of(body)
    if turn >= len(case.plan):
        return completion(f"Thought: That is it.\nFinal Answer: value: {case.value}")
    tool, arguments, _ = case.plan[turn]
    return completion(f"Thought: Next.\nAction: {tool}\nAction Input: {json.dumps(arguments)}")


def write_benchmark(folder: Path, cases: Sequence[Case]) -> Path:
    folder.mkdir()
    toolset = ("calculate", "echo", "fail", "hang")
    header = {
        "name": "storm",
        "version": "1",
        "licence": "CC0-1.0",
        "toolset": toolset,
        "modes": ["end-to-end"],
    }
    (folder / "benchmark.toml").write_text(tomli_w.dumps(header), encoding="utf-8")
    samples = [
        plain_sample(
            case.sample,
            query=marked(
                f"What is the value of plot {case.sample}?", case.fault, case.sample, case.turn
            ),
            toolset=toolset,
            answer=(ExactSlot(name="value", label="value of the plot", value=case.value),),
        )
        for case in cases
    ]
    lines = [sample.model_dump_json(by_alias=True, exclude_none=True) + "\n" for sample in samples]
    (folder / "samples.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


class StormWire(WireConfig):
    """Waits between attempts that suit a test; they are no option of the command."""

    @property
    def settings(self) -> WireSettings:
        return super().settings.model_copy(update={"first_wait_s": 0.02, "longest_wait_s": 0.8})


@pytest.fixture
def _hostile_tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Registers the hostile tools, and gives tool calls little time and memory."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "calling"))
    import hostile_tools

    for name, made in hostile_tools.BY_NAME.items():
        TOOLS.add(name, made)
    monkeypatch.setattr(
        evaluation,
        "executor_class",
        lambda _name: partial(ToolExecutor, timeout_s=4.0, memory_mb=1024),
    )
    monkeypatch.setenv("OPENAI_API_KEY", "sk-storm")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    yield
    for name in hostile_tools.BY_NAME:
        TOOLS.remove(name)


@pytest.mark.slow
@pytest.mark.usefixtures("_hostile_tools")
def test_every_sample_ends_for_the_right_reason(tmp_path: Path):
    planned = cases()
    assert {*FAULTS} <= {case.fault for case in planned}
    benchmark, run, before = (
        write_benchmark(tmp_path / "benchmark", planned),
        tmp_path / "run",
        children(),
    )
    with fault_server_beside(partial(respond, {case.sample: case for case in planned})) as server:
        config = EvalConfig.of(
            benchmark=str(benchmark), model="stormy", base_url=server.base_url, mode="end-to-end", out=run
        )  # fmt: skip
        wire = StormWire(timeout_s=1.5, stall_s=0.4, attempts=9, retry_wall_s=60)
        config = config.model_copy(update={"wire": wire})
        evaluation.evaluate(config, io.StringIO())
        assert settled(lambda: server.open_connections) == 0
    assert settled(lambda: len(children() - before)) == 0
    records = [
        Record.model_validate_json(line)
        for line in (run / "records.jsonl").read_bytes().splitlines()
    ]
    assert Counter(record.sample.id for record in records) == Counter(
        case.sample for case in planned
    )
    by_id = {record.sample.id: record for record in records}
    differences = {case.sample: difference(case, by_id[case.sample]) for case in planned}
    assert {name: why for name, why in differences.items() if why} == {}
    # The last attempt of a sample may meet an outage instead of its own fault: it lasts 0.15 s, twice.
    told = [case.sample for case in planned if FAULTS[case.fault].says not in ("", "no reply from")]
    assert sum(met_outage(by_id[name]) for name in told) <= OUTAGES


def met_outage(record: Record) -> bool:
    return record.invalid is not None and any(words in record.invalid for words in OUTAGE)


def difference(case: Case, record: Record) -> str:
    """How the record differs from what must be; empty if it does not."""
    fault, trajectory = FAULTS[case.fault], record.trajectory
    expected = fault.expected_after_contact
    if expected == "invalid":
        told = record.invalid and (fault.says in record.invalid or met_outage(record))
        return (
            ""
            if told and trajectory is None
            else f"not invalid for {fault.says}: {record.invalid} {trajectory}"
        )
    if record.invalid is not None or trajectory is None:
        return f"invalid: {record.invalid}"
    right = expected == "ok"
    if trajectory.termination != ("answered" if right else expected) or (
        not right and fault.says not in trajectory.reason
    ):
        return f"ended as {trajectory.termination}: {trajectory.reason}"
    (score,) = (score.value for score in outcome_scores(record) if score.metric == "fas")
    if score != right:
        return f"scored {score}: {trajectory.answer}"
    seen = [
        (
            step.call and step.call.tool,
            step.observation and step.observation.error and step.observation.error.kind,
        )
        for step in trajectory.calls
    ]
    plan = [(tool, error) for tool, _, error in (case.plan if right else case.plan[: case.turn])]
    sums = [
        step.observation.result
        for step in trajectory.calls
        if step.call and step.call.tool == "calculate"
    ]
    own = [result and result["value"] for result in sums] == [case.value - 999, case.value - 998][
        : len(sums)
    ]
    return "" if own and seen == plan else f"calls {seen} instead of {plan}, sums {sums}"


def children() -> set[int]:
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


def settled(count: Callable[[], int]) -> int:
    """What ``count`` says once it is 0, or after 3 seconds."""
    end = time.monotonic() + 3
    while count() and time.monotonic() < end:
        time.sleep(0.05)
    return count()
