"""``eval`` of folders that ``validate`` rejects."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agrotools.core import BenchmarkError
from agrotools.formats.benchmark import load_folder
from agrotools.loading.validate import check_for_run
from support.command import run_command

DRAWN = Path(__file__).parents[2] / "golden" / "benchmarks" / "drawn"

_SIDE = {
    "type": "exact",
    "name": "side",
    "label": "side",
    "value": "left",
    "choices": ["north", "south"],
    "from": None,
}


def changed(root: Path, change: dict[str, Any], lines: int = 1) -> Path:
    """A copy of a benchmark whose first samples have ``change``: new fields of the sample, of its slot or its step."""
    shutil.copytree(
        DRAWN, root, copy_function=shutil.copyfile
    )  # not the modes of a checkout that cannot be written
    samples = [json.loads(line) for line in (root / "samples.jsonl").read_text().splitlines()]
    for sample in samples[:lines]:
        sample["answer"][0] |= change.get("slot", {})
        sample["reference"]["steps"][0] |= change.get("step", {})
        sample |= change.get("sample", {})
    (root / "samples.jsonl").write_text("".join(f"{json.dumps(sample)}\n" for sample in samples))
    return root


@pytest.mark.process
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"slot": {"value": float("nan")}}, "broken_json"),
        ({"slot": {"from": "__import__('os').system('true')"}}, "from_unresolved"),
        ({"slot": {"from": "steps[0].observation.x; 1"}}, "from_unresolved"),
        ({"sample": {"answer": [_SIDE], "answer_type": "exact"}}, "not_a_choice"),
        ({"sample": {"toolset": ["teleport"]}}, "unknown_tool"),
        ({"step": {"tool": "teleport"}}, "unknown_tool"),
        ({"step": {"arguments": {"image": "nowhere.jpg"}}}, "file_not_in_sample"),
    ],
)
def test_eval_refuses_what_validate_rejects(tmp_path: Path, change: dict[str, Any], code: str):
    folder = changed(tmp_path / "bad", change)
    assert code in run_command("benchmarks", "check", folder).stdout
    shown = run_command("eval", folder, "--model", "baseline:echo", "--out", tmp_path / "run")
    assert shown.returncode == 2
    assert code in shown.stderr or "line 1" in shown.stderr
    assert "lists all faults" in shown.stderr
    assert not (tmp_path / "run").exists()


def test_what_only_leaves_out_metrics_is_run_and_many_faults_are_counted(tmp_path: Path):
    check_for_run(
        load_folder(
            changed(tmp_path / "open", {"slot": {"from": None}, "sample": {"reference": None}})
        )
    )
    bad = load_folder(changed(tmp_path / "bad", {"step": {"tool": "teleport"}}, lines=10))
    with pytest.raises(BenchmarkError, match=r"10 errors(\n.*){5}\n\.\.\. and 5 more"):
        check_for_run(bad)
