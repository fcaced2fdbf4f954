"""Our own tools behind a tool server, in a process for each sample: the run equals the one with our tools."""

import io
import sys
from pathlib import Path

import pytest

from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.records import iter_records
from agrotools.scoring.aggregate import score_record
from agrotools_tools.table import AGROTOOLS

pytestmark = pytest.mark.slow


def test_oracle_on_served_tools_equals_oracle_on_ours_to_the_digit(tmp_path: Path):
    binding = tmp_path / "same.toml"
    binding.write_text("".join(f"[{name}]\n" for name in AGROTOOLS))
    ours = EvalConfig.of(
        benchmark="embedded",
        quick=True,
        limit=24,  # all 60 take three minutes
        mode="end-to-end",
        model="baseline:oracle",
        out=tmp_path / "ours",
    )
    served = ours.with_options(
        out=tmp_path / "served",
        concurrency=16,
        tool_servers=(f"{sys.executable} -m agrotools serve --workspace {{files}}",),
        bindings=(str(binding),),
    )
    runs = [evaluate(config, io.StringIO()).run for config in (ours, served)]
    first, second = ({record.sample.id: record for record in iter_records(run)} for run in runs)
    assert first.keys() == second.keys()
    for name, mine in first.items():
        theirs = second[name]
        assert theirs.invalid is None
        assert score_record(mine) == score_record(theirs)
        assert mine.trajectory is not None
        assert theirs.trajectory is not None
        pairs = zip(mine.trajectory.calls, theirs.trajectory.calls, strict=True)
        for one, other in pairs:
            assert one.observation is not None
            assert other.observation is not None
            assert one.observation.result == other.observation.result
            names = [made.name for made in one.observation.artifacts]
            assert names == [made.name for made in other.observation.artifacts]
