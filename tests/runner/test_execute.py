"""Running one sample: what is no mistake of the model is never counted as one."""

import shutil
from pathlib import Path

import pytest

from agrotools.benchmarks import load_benchmark
from agrotools.core import Mode
from agrotools.models import ModelSettings
from agrotools.runner.evaluate import EvalConfig, manifest_of
from agrotools.runner.pace import Pace
from agrotools.runner.plan import work_items
from agrotools.runner.policies import policy_source
from agrotools.runner.run_item import RunContext, run_item
from agrotools.runner.store import RunStore
from agrotools.tools.execution import ToolExecutor


@pytest.mark.parametrize("mode", ["no-tool", "step-by-step", "end-to-end"])
async def test_a_sample_whose_file_went_away_is_invalid(small_benchmark: Path, tmp_path: Path, mode: Mode):
    benchmark = load_benchmark(shutil.copytree(small_benchmark, tmp_path / "benchmark"))
    source = policy_source("baseline:echo", benchmark.samples)
    config = EvalConfig(benchmark=str(benchmark.root))
    manifest = manifest_of(config, benchmark, source, ModelSettings(), [mode], benchmark.samples)
    item = work_items(benchmark.samples, [mode], 1)[0]
    with RunStore(tmp_path / "run", manifest) as store:
        async with ToolExecutor(workers=1) as executor:
            context = RunContext(source, benchmark, store, executor, Pace(1), max_steps=3)
            there = await run_item(item, context)
            shutil.rmtree(benchmark.root / "files")
            gone = await run_item(item, context)
    assert there.invalid is None
    assert gone.invalid is not None
    assert "can no longer be read" in gone.invalid
