"""What only the person who runs a tool can do goes to the screen and the manifest once, and to no model."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agrotools.agents.llm import observation_text
from agrotools.core import ToolError
from agrotools.runner import evaluate as evaluation
from agrotools.runner.config import EvalConfig
from agrotools.runner.records import iter_records
from agrotools_tools import diagnose_pest_disease
from support.plain_sample import plain_sample

pytestmark = pytest.mark.process

CALL = 'Action: diagnose_pest_disease\nAction Input: {"image": "leaf.png", "kind": "pest"}'
ONLY_A_PERSON_CAN = "agrotools benchmarks get pests"
SAMPLES = 4


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    folder = tmp_path / "leaves"
    folder.mkdir()
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3), np.uint8)
    Image.fromarray(noise).save(folder / "leaf.png")
    toolset = ["diagnose_pest_disease"]
    (folder / "benchmark.toml").write_text(
        f'name = "leaves"\nversion = "1"\nlicence = "CC0-1.0"\ntoolset = {toolset}\nmodes = ["end-to-end"]\n'
    )
    lines: list[str] = []
    for number in range(SAMPLES):
        made = plain_sample(
            f"s{number}",
            query=f"Which pest is on leaf {number}?",
            toolset=("diagnose_pest_disease",),
        )
        files = [{"name": "leaf.png", "path": "leaf.png", "kind": "image"}]
        sample = made.model_dump(mode="json", by_alias=True, exclude_none=True) | {"files": files}
        lines.append(json.dumps(sample))
    (folder / "samples.jsonl").write_text("\n".join(lines))
    replies = [{"when": "Which pest", "replies": [CALL, "Final Answer: weeds: no"]}]
    (tmp_path / "script.json").write_text(json.dumps(replies))
    return folder


def run(benchmark: Path, name: str, **options: object) -> tuple[Path, str]:
    screen = io.StringIO()
    config = EvalConfig.of(
        benchmark=str(benchmark),
        model=f"scripted:{benchmark.parent / 'script.json'}",
        mode="end-to-end",
        protocol="react",
        out=benchmark.parent / name,
        **options,  # pyright: ignore[reportArgumentType]
    )
    evaluation.evaluate(config, screen)
    return benchmark.parent / name, " ".join(screen.getvalue().split())


def test_the_model_is_told_what_it_can_change_and_the_person_the_rest(
    benchmark: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    folder, screen = run(benchmark, "run")
    calls = [
        step
        for record in iter_records(folder)
        for step in (record.trajectory.calls if record.trajectory else ())
    ]
    errors = [step.observation.error for step in calls if step.observation]
    assert not any(ONLY_A_PERSON_CAN in observation_text(step) for step in calls)
    assert len(errors) == SAMPLES
    assert all(error and ONLY_A_PERSON_CAN in (error.setup or "") for error in errors)
    assert screen.count(ONLY_A_PERSON_CAN) == 1
    assert ", diagnose_pest_disease: " in screen
    sample, _, _ = screen.partition(", diagnose_pest_disease: ")
    assert sample.endswith(tuple(f"s{number}" for number in range(SAMPLES)))
    manifest = json.loads((folder / "manifest.json").read_bytes())
    (text,) = manifest["setup"]["diagnose_pest_disease"]
    assert ONLY_A_PERSON_CAN in text


def test_a_person_who_calls_the_tool_is_told_all(benchmark: Path):
    with pytest.raises(ToolError) as caught:
        diagnose_pest_disease(image=benchmark / "leaf.png", kind="pest")
    assert ONLY_A_PERSON_CAN in str(caught.value)
