"""Running one sample: what is no mistake of the model is never counted as one."""

import asyncio
import io
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from agrotools.api import evaluate
from agrotools.calling.execution import ToolExecutor
from agrotools.core import BenchmarkError, CallTools, Mode, Record, Sample, SampleView, ToolCall
from agrotools.formats.benchmark import MOST_MAKERS
from agrotools.loading import Benchmark, load_benchmark
from agrotools.models import Endpoint
from agrotools.models.endpoint import ScriptedModel
from agrotools.runner.build import describe_run
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate as run
from agrotools.runner.execute import Pace, RunContext, execute, run_item
from agrotools.runner.plan import work_items
from agrotools.runner.policies import policy_source
from agrotools.runner.run_settings import resolve_settings
from agrotools.runner.store import RunStore
from support.text_benchmark import write_text_benchmark

pytestmark = pytest.mark.process


@asynccontextmanager
async def open_run(
    folder: Path, benchmark: Benchmark, mode: Mode, *, most_at_once: int = 1
) -> AsyncGenerator[RunContext]:
    """Open what samples of a run need: a store in ``folder``, the echo baseline, and tools."""
    source = policy_source(Endpoint("baseline:echo"), benchmark.samples)
    config = EvalConfig.of(benchmark=str(benchmark.root), mode=mode)
    settings = resolve_settings(config, benchmark)
    no_items = work_items(benchmark.samples, [], 1)
    manifest = describe_run(config, settings, benchmark, source, no_items)
    with RunStore(folder, manifest) as store:
        async with ToolExecutor(workers=1) as executor:
            yield RunContext(source, benchmark, store, executor, Pace(most_at_once), max_steps=3)


@pytest.mark.parametrize("mode", ["no-tool", "step-by-step", "end-to-end"])
async def test_a_sample_whose_file_was_replaced_or_went_away_is_invalid(
    small_benchmark: Path, tmp_path: Path, mode: Mode
):
    benchmark = load_benchmark(shutil.copytree(small_benchmark, tmp_path / "benchmark"))
    item = next(iter(work_items(benchmark.samples, [mode], 1)))
    async with open_run(tmp_path / "run", benchmark, mode) as context:
        there = await run_item(item, context)
        path = benchmark.file_path(item.sample.files[0])
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        replaced = await run_item(item, context)
        path.write_bytes(content)
        put_back = await run_item(item, context)
        shutil.rmtree(benchmark.root / "files")
        gone = await run_item(item, context)
    assert (there.invalid, put_back.invalid) == (None, None)
    assert f"{path} was changed during the run" in str(replaced.invalid)
    assert "can no longer be read" in str(gone.invalid)


class CallingPolicy:
    """Policy whose only action is a call of a tool."""

    async def act(self, _view: SampleView, _history: object) -> CallTools:
        return CallTools(calls=(ToolCall(tool="calculate", arguments={"expression": "1 + 1"}),))


class FailingPolicy:
    """Policy that fails before it acts."""

    async def act(self, _view: SampleView, _history: object) -> CallTools:
        raise LookupError("no plan for this sample")


@pytest.mark.parametrize(
    ("package", "policy", "blamed"),
    [
        ("stranger", FailingPolicy, "error of the policy, LookupError"),
        ("agrotools.agents", FailingPolicy, "internal error, LookupError"),
        ("agrotools_benchmarks.agvqa", FailingPolicy, "internal error, LookupError"),
        ("stranger", CallingPolicy, "internal error, RuntimeError"),
    ],
)
async def test_only_a_failure_in_a_policy_of_another_package_is_blamed_on_the_policy(
    tmp_path: Path, package: str, policy: type[Any], blamed: str
):
    benchmark = load_benchmark(write_text_benchmark(tmp_path / "benchmark", 1))
    declared = type(policy.__name__, (policy,), {"__module__": f"{package}.policies"})
    (item,) = work_items(benchmark.samples, ["end-to-end"], 1)
    async with open_run(tmp_path / "run", benchmark, "end-to-end") as opened:
        # The truth has no call left for the one that the policy asks for.
        source = replace(opened.source, make=lambda *_: declared(), truth_tools=True)
        record = await run_item(item, replace(opened, source=source))
    assert str(record.invalid).startswith(blamed)


async def test_a_run_that_waits_for_nobody_hands_its_records_over_on_the_way(tmp_path: Path):
    benchmark = load_benchmark(write_text_benchmark(tmp_path / "benchmark", 300))
    written: list[int] = []
    ticks: list[int] = []

    def finished(_record: Record) -> None:
        lines = (tmp_path / "run" / "records.jsonl").read_bytes().count(b"\n")
        written.append(lines)
        if len(written) == 1:
            asyncio.get_running_loop().call_soon(lambda: ticks.append(len(written)))

    async with open_run(tmp_path / "run", benchmark, "no-tool", most_at_once=8) as context:
        items = work_items(benchmark.samples, ["no-tool"], 1)
        await execute(items, context, workers=8, on_finished=finished)
    assert all(number - lines <= 8 for number, lines in enumerate(written)), (
        "no more than those in flight are kept back"
    )
    assert ticks[0] < 20, "others get their turn"


def test_files_are_made_as_samples_start_and_what_is_finished_is_kept_if_they_cannot_be(
    tmp_path: Path,
):
    made: list[str] = []
    made_before: list[int] = []

    def make(sample: Sample) -> Sample:
        if len(made) == 12:
            raise BenchmarkError("the disk is full", hint="free some space")
        made.append(sample.id)
        return sample

    def reply(*_: object) -> str:
        made_before.append(len(made))
        return "answer: 1"

    root = write_text_benchmark(tmp_path / "benchmark", 300)
    benchmark = replace(load_benchmark(root), make_files=make)
    config = EvalConfig.of(
        benchmark=str(root), model="scripted", mode="no-tool", out=tmp_path / "run"
    )
    with pytest.raises(BenchmarkError, match="the disk is full"):
        run(config, io.StringIO(), model=ScriptedModel(reply, name="scripted"), benchmark=benchmark)
    assert made_before[0] <= 8, "no more than the samples in flight"
    records = [
        orjson.loads(line)
        for line in (tmp_path / "run" / "records.jsonl").read_bytes().splitlines()
    ]
    finished = {record["sample"]["id"] for record in records if not record.get("invalid")}
    assert finished <= set(made)
    assert len(finished) == len(records) >= 12 - MOST_MAKERS


@pytest.mark.process
@pytest.mark.parametrize(
    ("mode", "answerable", "is_read", "invalid"),
    [
        ("no-tool", True, False, True),
        ("no-tool", False, False, False),  # that the file is broken may be the point
        ("end-to-end", True, False, True),
        ("end-to-end", True, True, False),
    ],
)
def test_a_file_that_nobody_can_read_is_no_error_of_the_model(
    tmp_path: Path, mode: Mode, answerable: bool, is_read: bool, invalid: bool
):
    folder = write_text_benchmark(tmp_path / "benchmark", 2)
    (folder / "cut.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut")
    samples = [orjson.loads(line) for line in (folder / "samples.jsonl").read_bytes().splitlines()]
    samples[0]["files"] = [{"name": "image", "path": "cut.jpg", "kind": "image"}]
    if not answerable:
        refusal = {"name": "no", "label": "no answer", "type": "abstain", "reason": "unfit_image"}
        samples[0] |= {"answer": [{**refusal, "asks": samples[0]["answer"]}], "may_abstain": True}
    (folder / "samples.jsonl").write_bytes(b"\n".join(map(orjson.dumps, samples)))

    def reply(messages, _tools, _settings) -> str:
        # Stands for a tool of a plug-in whose reader knows the format.
        call = 'Action: calculate\nAction Input: {"expression": "image + 1", "variables": {"image": 1}}'
        return call if is_read and len(messages) < 3 else "Final Answer: 1"

    run = evaluate(
        folder,
        ScriptedModel(reply, name="mine"),
        mode=mode,
        out=tmp_path / "run",
        progress=io.StringIO(),
    )
    reasons = {record.sample.id: record.invalid for record in run.samples()}
    assert ("cut.jpg cannot be read: image is" in str(reasons["q0"]), reasons["q1"]) == (
        invalid,
        None,
    )
