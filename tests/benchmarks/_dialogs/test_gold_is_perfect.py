"""What the gold of the published benchmarks itself scores: everything, in our metrics and in those of the papers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from support.made_agent_x import write_agent_x
from support.made_gta import write_gta
from support.made_thinkgeo import write_thinkgeo

OURS = {"end-to-end": ("fas",), "step-by-step": ("st_acc", "tool_acc", "arg_acc", "arg_acc_strict")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "folder", "write"),
    [
        ("gta", "gta_dataset", write_gta),
        ("thinkgeo", "ThinkGeo_dataset", write_thinkgeo),
        ("agent-x", "AgentX", write_agent_x),
    ],
)
def test_perfect_tools_lose_nothing(
    name: str, folder: str, write: Callable[[Path], object], tmp_path: Path
):
    write(tmp_path / folder)
    command = f"eval {name} -m baseline:perfect-tools --backend recorded --limit 40 --json"
    done = CliRunner().invoke(
        app, [*command.split(), "--data-root", str(tmp_path), "--out", str(tmp_path / "run")]
    )
    assert done.exit_code == 0, done.output
    modes = json.loads((tmp_path / "run" / "scores.json").read_text())["summary"]["modes"]
    for mode, metrics in OURS.items():
        assert {
            metric: modes[mode]["metrics"][metric]["overall"]["value"] for metric in metrics
        } == dict.fromkeys(metrics, 1.0)
        published = modes[mode]["published"] or {"corrected": {}}
        assert {figure["value"] for figure in published["corrected"].values()} <= {1.0}
