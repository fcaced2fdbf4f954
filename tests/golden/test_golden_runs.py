"""Runs of every benchmark, mode and protocol: scores, records and hashes stay what they were."""

import json
from pathlib import Path
from typing import Any

import pytest
from golden_values import agrotools, check

pytestmark = pytest.mark.process
RUNS = {
    "drawn-planner": "benchmarks/drawn -m baseline:planner",
    "drawn-oracle": "benchmarks/drawn -m baseline:oracle",
    "drawn-react": "benchmarks/drawn -m scripted:scripts/drawn-react.json",
    "drawn-tool-calling": "benchmarks/drawn -m scripted:scripts/drawn-calls.json --protocol tool-calling --epochs 2",
    "gta-oracle": "gta --data-root benchmarks/gta -m baseline:oracle --backend recorded",
    "gta-lagent": "gta --data-root benchmarks/gta -m scripted:scripts/gta-react.json --backend recorded",
    "gta-tool-calling": "gta --data-root benchmarks/gta -m scripted:scripts/gta-calls.json --protocol tool-calling "
    "--backend recorded",
    "thinkgeo-lagent": "thinkgeo --data-root benchmarks/thinkgeo -m scripted:scripts/thinkgeo-react.json "
    "--backend recorded",
    "thinkgeo-sar-lagent": "thinkgeo --data-root benchmarks/thinkgeo -o split=sar "
    "-m scripted:scripts/thinkgeo-react.json --backend recorded",
    "agent-x-single": "agent-x --data-root benchmarks/agent-x -m scripted:scripts/agent-x-single.json",
    "agent-x-react": "agent-x --data-root benchmarks/agent-x -m scripted:scripts/agent-x-react.json --protocol react "
    "--mode step-by-step",
    "agrieval": "agrieval --data-root benchmarks/agrieval -m scripted:scripts/agrieval.json",
    "agrieval-cot": "agrieval --data-root benchmarks/agrieval -o cot=true -m scripted:scripts/agrieval.json",
}
"""What ``agrotools eval`` is given; paths are relative to this folder."""
_HASHES = (
    "benchmark_hash",
    "model_hash",
    "prompt_hash",
    "toolset",
    "toolset_hash",
    "tool_data",
    "backends",
    "scoring",
)
_UNSTABLE = ("seconds", "cached", "checksum")
_OF_EXTRAS = ("OCR", "read_text")
"""Tools whose data files come with an optional extra: they are in ``tool_data`` only where it is installed."""


@pytest.mark.parametrize("name", RUNS)
def test_a_run_gives_the_stored_scores_records_and_hashes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = tmp_path / "run"
    assert agrotools(monkeypatch, "eval", *RUNS[name].split(), "--out", run) == 0
    manifest = json.loads((run / "manifest.json").read_bytes())
    for tool in _OF_EXTRAS:
        manifest.get("tool_data", {}).pop(tool, None)
    check(f"{name}.hashes", {key: manifest[key] for key in _HASHES if key in manifest})
    records = [json.loads(line) for line in (run / "records.jsonl").read_bytes().splitlines()]
    records.sort(
        key=lambda record: (record["mode"], record["sample"]["id"], record.get("epoch", 0))
    )
    check(f"{name}.records", stable(records))
    check(f"{name}.scores", stable(json.loads((run / "scores.json").read_bytes())))


def stable(value: Any) -> Any:
    """``value`` without times, uses of the cache, and hashes of artifacts (their bytes depend on library versions)."""
    if isinstance(value, list):
        return [stable(each) for each in value]
    if isinstance(value, dict):
        if "media_type" in value:
            return {key: each for key, each in value.items() if key != "sha256"}
        return {
            key: stable(each)
            for key, each in value.items()
            if not any(word in key for word in _UNSTABLE)
        }
    return value
