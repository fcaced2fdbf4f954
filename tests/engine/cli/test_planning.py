"""Suggested commands, the plan of ``--dry-run`` and the question before a run that costs money."""

import io
import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from agrotools.cli import planning
from agrotools.cli.planning import next_commands
from agrotools.cli.results import Evaluated
from agrotools.core import BudgetReached, Mode, UsageError
from agrotools.formats.benchmark import Benchmark
from agrotools.formats.manifest import manifest_json
from agrotools.runner.config import EvalConfig
from agrotools.runner.estimate import CostEstimate
from agrotools.runner.evaluate import evaluate
from agrotools.scoring.summary import ModeSummary, Summary
from support.command import run_command
from support.plain_sample import plain_sample
from support.runs import manifest
from support.text_benchmark import write_text_benchmark

MODEL = (
    "embedded --quick --model m1 --base-url http://127.0.0.1:1/v1 --tools +2 --price 2/8 --budget=3"
)


@pytest.mark.parametrize(
    ("typed", "model", "config", "command"),
    [
        (
            "field --quick -m baseline:oracle -mx",
            "baseline:oracle",
            {"quick": True},
            "field --quick --model openai:gpt-4.1-mini --budget 3",
        ),
        (
            "field -m baseline:oracle --name top",
            "baseline:oracle",
            {},
            "field --model openai:gpt-4.1-mini --dry-run",
        ),
        (
            "",
            "baseline:planner",
            {"quick": True},
            "embedded --quick --model openai:gpt-4.1-mini --budget 3",
        ),
        (
            MODEL,
            "m1",
            {"quick": True, "mode": "end-to-end"},
            MODEL.replace(" --quick", "") + " --mode end-to-end  # the whole benchmark, 5 que",
        ),
    ],
)
def test_the_next_command_is_the_users_own(
    tmp_path: Path, typed: str, model: str, config: dict[str, Any], command: str
) -> None:
    evaluated = Evaluated(
        EvalConfig.of(model=model, **config), five_questions(), typed=shlex.split(typed)
    )
    run = write_manifest(tmp_path, model=model, modes=("end-to-end",))
    assert next_commands(Summary(model=model), [run], evaluated)[0].startswith(
        f"agrotools eval {command}"
    )


def five_questions() -> Any:
    """A benchmark of which three questions can be asked without tools."""
    samples = [plain_sample(f"s{n}", no_tool_eligible=n < 3) for n in range(5)]
    return SimpleNamespace(samples=samples, header=SimpleNamespace(quick=("s1",)))


def write_manifest(folder: Path, **fields: Any) -> Path:
    (folder / "manifest.json").write_bytes(manifest_json(manifest(**fields)))
    return folder


@pytest.mark.parametrize(
    ("model", "modes", "base_url", "price", "remark"),
    [
        ("m1", ("no-tool",), "http://127.0.0.1", None, "3 questions in no-tool; --dry-run shows"),
        ("m1", ("no-tool", "end-to-end"), "https://a.example", "1/2", "5 questions; --dry-run sh"),
        ("m1", ("end-to-end",), "https://a.example", None, "5 questions"),
        ("python:agent:solve", ("no-tool",), None, None, "3 questions in no-tool"),
    ],
)
def test_the_whole_benchmark_has_the_questions_of_its_modes_and_a_cost_that_a_dry_run_shows(
    tmp_path: Path,
    model: str,
    modes: tuple[Mode, ...],
    base_url: str | None,
    price: str | None,
    remark: str,
) -> None:
    run = write_manifest(tmp_path, model=model, modes=modes, base_url=base_url)
    config = EvalConfig.of(model=model, quick=True, price=price)
    evaluated = Evaluated(config, five_questions(), typed=["embedded", "--quick", "-m", model])
    (command,) = next_commands(Summary(model=model), [run], evaluated)
    _, _, shown = command.partition("# the whole benchmark, ")
    assert shown.startswith(remark)
    assert ("--dry-run" in shown) == ("--dry-run" in remark)


def test_of_new_scenes_the_number_of_the_whole_benchmark_is_not_known(tmp_path: Path) -> None:
    run = write_manifest(
        tmp_path, model="m1", modes=("end-to-end",), benchmark_version="21-fresh-6"
    )
    typed = ["embedded", "--quick", "--fresh-seed", "6", "-m", "m1"]
    evaluated = Evaluated(EvalConfig.of(model="m1", quick=True), five_questions(), typed=typed)
    (command,) = next_commands(Summary(model="m1"), [run], evaluated)
    assert command.partition("# ")[2] == "the whole benchmark from new scenes"


def test_after_a_stop_by_the_budget_the_same_command_with_a_sufficient_one_is_suggested() -> None:
    part = ModeSummary(n_records=10, n_samples=10, n_clusters=10, epochs=1)
    summary = Summary(model="m1", modes={"end-to-end": part}, missing={"end-to-end": 30})
    benchmark: Any = None
    runs: Any = [SimpleNamespace(stopped=BudgetReached(""))]
    config = EvalConfig.of(model="m1", quick=True, budget=3)
    stopped = Evaluated(config, benchmark, runs, typed=MODEL.split())
    (command,) = next_commands(summary, [Path("a")], stopped)
    assert command.startswith(
        f"agrotools eval {MODEL.replace('--budget=3', '--budget 15')}  # resumes"
    )


@pytest.mark.parametrize(("high", "budget", "asked"), [(20.0, 0.5, 0), (20.0, None, 1)])
def test_a_run_that_may_cost_more_than_a_dollar_is_confirmed_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, high: float, budget: float | None, asked: int
) -> None:
    questions: list[str] = []
    monkeypatch.setattr(typer, "confirm", lambda text, **_: questions.append(text))
    ask = planning.ask_before_spending(EvalConfig.of(model="m1", budget=budget))
    expected = CostEstimate("m1", 9, 9, (9, 9), high / 2, high)
    ask(expected)
    assert not questions  # pytest gives no terminal
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(planning, "sys", SimpleNamespace(stdin=terminal, stderr=terminal))
    if asked:
        with pytest.raises(UsageError, match="not started"):
            ask(expected)
    else:
        ask(expected)
    assert len(questions) == asked


@pytest.mark.process
def test_a_dry_run_prints_requests_tokens_cost_and_time_and_asks_no_endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_text_benchmark(tmp_path / "benchmark", 12)
    command = (
        "eval",
        folder,
        "-m",
        "m1",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--price",
        "1/2",
        "--dry-run",
    )
    done = run_command(*command)
    assert done.returncode == 0, done.stderr
    (plan,) = json.loads(run_command(*command, "--json").stdout)
    assert (plan["planned"], plan["requests"]) == (24, 84)
    for text in (
        "24 of 24 records to run",
        "about 84 requests",
        "tokens in",
        "USD (m1:",
        "about 1 min or less",
        "runs/",
    ):
        assert text in done.stdout
    assert not (tmp_path / "runs").exists()


@pytest.mark.process
def test_a_dry_run_at_an_address_of_this_machine_prints_requests_tokens_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_text_benchmark(tmp_path / "benchmark", 12)
    command = ("eval", folder, "-m", "m1", "--base-url", "http://127.0.0.1:9/v1", "--dry-run")
    (plan,) = json.loads(run_command(*command, "--json").stdout)
    assert (plan["requests"], plan["usd_low"], plan["usd_high"]) == (84, 0, 0)
    assert plan["input_tokens"] > 0
    shown = run_command(*command).stdout
    assert "out, free (an address of this machine)" in shown
    assert "about 1 min or less" in shown


@pytest.mark.process
def test_a_dry_run_needs_no_key_and_a_run_lacks_it_before_scenes_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setattr(
        "agrotools_build.sources.drawn.fresh.write_fresh", lambda *_, **__: pytest.fail("drawn")
    )
    folder = write_text_benchmark(tmp_path / "benchmark", 2)
    done = run_command("eval", folder, "-m", "openai:gpt-4.1", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "4 of 4 records to run" in done.stdout
    done = run_command("eval", "embedded", "-m", "openai:gpt-4.1", "--fresh-seed", "6")
    assert "OPENAI_API_KEY is not set" in done.stderr
    done = run_command("eval", folder, "-m", "nobody:gpt-4.1", "--dry-run")
    assert "unknown provider 'nobody'" in done.stderr


@pytest.mark.process
def test_a_limit_draws_the_scenes_that_it_needs_and_others_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_text_benchmark(tmp_path / "benchmark", 2)
    for part in ((), ("--quick",)):
        done = run_command("eval", folder, "-m", "baseline:echo", "--fresh-seed", "6", *part)
        assert "is not made of drawn scenes" in done.stderr
    drawn: list[int] = []

    def write_fresh(published: Benchmark, *_: Any, **__: Any) -> None:
        drawn.append(len(published.samples))
        raise UsageError("not drawn")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("agrotools_build.sources.drawn.fresh.write_fresh", write_fresh)
    limited = ["embedded", "-m", "baseline:echo", "--fresh-seed", "987654", "--limit", "4"]
    done = run_command("eval", *limited, "--dry-run")
    assert 4 <= drawn[0] <= 12, "at most four for each mode"
    assert f"new scenes for {drawn[0]} questions are drawn" in done.stderr


def test_a_run_is_confirmed_before_its_first_request(tmp_path: Path) -> None:
    """Nobody answers at the address, so a request would fail with another error."""

    def decline(expected: CostEstimate) -> None:
        raise UsageError(f"{expected.requests} not started")

    options: dict[str, Any] = {
        "base_url": "http://127.0.0.1:1/v1",
        "price": "1/4",
        "out": tmp_path / "run",
    }
    config = EvalConfig.of(
        benchmark=str(write_text_benchmark(tmp_path / "b", 1)), model="m1", **options
    )
    with pytest.raises(UsageError, match="not started"):
        evaluate(config, io.StringIO(), confirm=decline)
