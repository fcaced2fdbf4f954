"""Keys that stand only in the configuration file: each reaches what the run uses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import typer

from agrotools.cli.main import app, keys_of_file
from agrotools.runner import evaluate as execution
from agrotools.runner.config import EvalConfig, JudgeConfig
from support.command import run_command
from support.sums_benchmark import write_sums

VLM_URL = "http://127.0.0.1:1/v1"
JUDGE_URL = "http://127.0.0.1:2/v1"

OF_RUN: dict[str, tuple[Any, Callable[[EvalConfig], Any]]] = {
    "rpm": (301, lambda config: config.endpoint.wire.rpm),
    "tpm": (40_001, lambda config: config.endpoint.wire.tpm),
    "stall_s": (61.0, lambda config: config.endpoint.wire.stall_s),
    "attempts": (7, lambda config: config.endpoint.wire.attempts),
    "retry_wall_s": (301.0, lambda config: config.endpoint.wire.retry_wall_s),
    "top_logprobs": (5, lambda config: config.model.settings.top_logprobs),
    "tool_workers": (3, lambda config: config.tools.workers),
    "executor": ("ray", lambda config: config.tools.executor),
    "vlm_model": ("eye", lambda config: config.vlm_endpoint.model),
    "vlm_base_url": (VLM_URL, lambda config: config.vlm_endpoint.base_url),
    "vlm_api_key_env": ("EYE_KEY", lambda config: config.vlm_endpoint.api_key_env),
    "vlm_price": ("1/2", lambda config: config.vlm_endpoint.price),
}
"""Values by key, and where the run reads them."""
OF_JUDGES: dict[str, Any] = {
    "judge_base_url": JUDGE_URL,
    "judge_api_key_env": "JUDGE_KEY",
    "judge_votes": 3,
    "judge_calibration": "shipped",
    "judge_budget": 4.0,
    "judge_price": "1/2",
    "judge_concurrency": 2,
}


class _Asked(Exception):
    """Ends a command where its run would begin."""

    def __init__(self, config: EvalConfig, judges: JudgeConfig) -> None:
        super().__init__()
        self.config = config
        self.judges = judges


def _asked_of_run(folder: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any]) -> _Asked:
    """Start ``agrotools eval`` with a file of these values, and return what it gives to the run."""

    def ended(config: EvalConfig, *_: Any, judges: JudgeConfig, **__: Any) -> None:
        raise _Asked(config, judges)

    monkeypatch.setattr(execution, "evaluate", ended)
    for key in ("EYE_KEY", "JUDGE_KEY"):
        monkeypatch.setenv(key, "secret")
    benchmark = write_sums(folder / "sums", 3)
    file = folder / "run.toml"
    file.write_text(tomli_w.dumps({"model": "baseline:random", **values}), encoding="utf-8")
    with pytest.raises(_Asked) as raised:
        run_command("eval", benchmark, "--config", file, "--out", folder / "run", "--yes")
    return raised.value


def test_keys_of_a_file_reach_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    values = {key: value for key, (value, _) in OF_RUN.items()}
    config = _asked_of_run(tmp_path, monkeypatch, values).config
    assert {key: read(config) for key, (_, read) in OF_RUN.items()} == values


def test_keys_of_judges_reach_the_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    values = {"judge": ["grader"], **OF_JUDGES}
    judges = _asked_of_run(tmp_path, monkeypatch, values).judges
    assert judges.model_dump(include=set(values)) == {**values, "judge": ("grader",)}


def test_the_patience_with_a_server_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "llama-server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF")
    config = EvalConfig.of(serve_timeout=90, serve="llama", model=str(model))
    assert config.endpoint.server is not None
    assert config.endpoint.server.timeout_s == 90


def test_a_file_of_rubrics_reaches_the_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    file = tmp_path / "judges.toml"
    file.write_text(tomli_w.dumps({"judge": "grader", "judge_rubrics": "missing.toml"}))
    benchmark = write_sums(tmp_path / "sums", 3)
    done = run_command("eval", benchmark, "-m", "baseline:random", "--config", file)
    assert done.returncode == 2
    assert "judge_rubrics" in done.stderr  # this benchmark is graded by none


def test_every_key_of_the_file_is_tried_here():
    command = typer.main.get_command(app).get_command(None, "eval")  # type: ignore[attr-defined]
    tried = {*OF_RUN, *OF_JUDGES, "serve_timeout", "judge_rubrics"}
    assert set(keys_of_file(command)) == tried
