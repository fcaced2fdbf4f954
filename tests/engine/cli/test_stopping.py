"""Runs that end before they are done, by a signal, a lost endpoint or a budget; replies are paid for once."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agrotools.models.metered import read_spend
from support.eval_process import evaluate, finished, running, start, wait_for
from support.text_benchmark import write_text_benchmark

SAMPLES = 16

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def benchmark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text_benchmark(
        tmp_path_factory.mktemp("stopping") / "benchmark", SAMPLES, bare=True
    )


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_first_signal_lets_samples_in_flight_finish(
    benchmark_folder: Path, tmp_path: Path, name: str
) -> None:
    with running(latency_s=0.3) as endpoint:
        process = start(benchmark_folder, tmp_path / "run", endpoint)
        wait_for(lambda: len(finished(tmp_path / "run")) >= 4)
        process.send_signal(signal.Signals[name])
        _, err = process.communicate(timeout=30)
        kept = finished(tmp_path / "run")
        assert process.returncode == 130
        assert "Traceback" not in err
        assert "stopping after the 4 samples being run; Ctrl-C again stops at once" in err
        assert "run the same command again to resume" in err
        assert len(kept) == endpoint.answered < SAMPLES, (
            "what was asked was waited for, and nothing else was asked"
        )
        resumed = evaluate(benchmark_folder, tmp_path / "run", endpoint, "--json")
        assert resumed.returncode == 0, resumed.stderr
        assert endpoint.answered == SAMPLES
    assert sorted(finished(tmp_path / "run")) == sorted(f"q{index}" for index in range(SAMPLES))
    assert (
        json.loads(resumed.stdout)[0]["modes"]["no-tool"]["metrics"]["fas"]["overall"]["value"] == 1
    )


def test_the_second_signal_stops_at_once(benchmark_folder: Path, tmp_path: Path) -> None:
    with running(latency_s=6.0) as endpoint:
        process = start(benchmark_folder, tmp_path / "run", endpoint)
        wait_for(lambda: endpoint.requests)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None, "the first waits for the samples in flight"
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
        took_s = time.monotonic() - asked
    assert took_s < 5
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "run the same command again to resume" in err
    assert not (tmp_path / "run" / ".scratch").exists()


def test_an_endpoint_that_is_gone_stops_the_run_and_nothing_is_lost(
    benchmark_folder: Path, tmp_path: Path
) -> None:
    config = tmp_path / "quick.toml"
    config.write_text("attempts = 2\n", encoding="utf-8")
    with running(latency_s=0.0) as endpoint:
        evaluate(benchmark_folder, tmp_path / "run", endpoint, "--config", config, "--limit", 4)
        assert len(finished(tmp_path / "run")) == 4
        endpoint.broken = True
        broken = evaluate(benchmark_folder, tmp_path / "run", endpoint, "--config", config)
        assert broken.returncode == 3
        assert "samples in a row got no reply" in broken.stderr
        assert "down for maintenance" in broken.stderr
        assert len(finished(tmp_path / "run")) == 4
        endpoint.broken = False
        assert (
            evaluate(benchmark_folder, tmp_path / "run", endpoint, "--config", config).returncode
            == 0
        )
    assert sorted(finished(tmp_path / "run")) == sorted(f"q{index}" for index in range(SAMPLES))


def test_nohup_lets_a_command_run_on(benchmark_folder: Path, tmp_path: Path) -> None:
    with running(latency_s=0.1) as endpoint:
        ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            process = start(benchmark_folder, tmp_path / "run", endpoint)
        finally:
            signal.signal(signal.SIGHUP, ignored)
        wait_for(lambda: finished(tmp_path / "run"))
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(finished(tmp_path / "run")) == SAMPLES


@pytest.mark.parametrize(
    ("moment", "name", "expected"),
    [
        ("sys.meta_path.insert(0, SimpleNamespace(find_spec=interrupt))", "SIGTERM", 130),
        ("sys.meta_path.insert(0, SimpleNamespace(find_spec=wrapped))", "SIGINT", 130),
        ("threading._register_atexit(interrupt)", "SIGHUP", 130),
        ("atexit.register(interrupt)", "SIGTERM", 0),
    ],
    ids=["imports", "classes", "shutdown", "last moments"],
)
def test_signals_end_imports_and_shutdown_and_are_ignored_in_the_last_moments(
    moment: str, name: str, expected: int
) -> None:
    code = f"""
import atexit, os, signal, sys, threading
from types import SimpleNamespace
from agrotools.__main__ import main
def interrupt(*_):
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, SimpleNamespace)]
    os.kill(os.getpid(), signal.{name})
def wrapped(*_):
    try:
        interrupt()
    except KeyboardInterrupt as error:
        raise RuntimeError("Error calling __set_name__") from error
sys.argv = ["agrotools", "--version"]
{moment}
main()
"""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert process.returncode == expected
    said = "stopped before it was done; run the same command again"
    assert process.stderr.strip() == (said if "meta_path" in moment else "")


PRICE = "10/100"
PAID_USD = (100 * 10 + 10 * 100) / 1e6
"""What a reply of the endpoint costs: 100 tokens in, 10 out."""


def test_a_budget_stops_a_run_before_it_is_exceeded_and_a_larger_one_goes_on(
    benchmark_folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    paid = ("--price", PRICE, "--max-output-tokens", 100)
    with running(latency_s=0.0) as endpoint:
        stopped = evaluate(benchmark_folder, run, endpoint, *paid, "--budget", 0.03)
        err = stopped.stderr
        assert f"about {SAMPLES} requests" in err
        assert "10.00/100.00 USD per million tokens" in err
        assert err.count("are spent, and the next request") == 0
        assert stopped.stdout.count("are spent, and the next request") == 1
        assert re.search(r"next +agrotools eval .*--budget 0\.\d+ +# resumes", stopped.stdout)
        assert "exceeds the budget of 0.03 USD" in err
        assert stopped.returncode == 1
        done = len(finished(run))
        assert 0 < done < SAMPLES
        assert endpoint.answered == done
        spent = read_spend(run / "spend.jsonl")
        assert spent.replies == done + 1, "the first contact is paid for, too"
        assert spent.usd == pytest.approx((done + 1) * PAID_USD)
        assert spent.usd <= 0.03
        assert "FAS" in stopped.stdout, "what was scored is shown"

        resumed = evaluate(benchmark_folder, run, endpoint, *paid, "--budget", 1)
        assert resumed.returncode == 0, resumed.stderr
        assert endpoint.answered == SAMPLES
    assert read_spend(run / "spend.jsonl").usd == pytest.approx((SAMPLES + 2) * PAID_USD)


def test_a_budget_that_allows_nothing_says_so(benchmark_folder: Path, tmp_path: Path) -> None:
    with running(latency_s=0.0) as endpoint:
        done = evaluate(
            benchmark_folder, tmp_path / "run", endpoint, "--price", PRICE, "--budget", 0.0001
        )
    assert done.returncode == 1
    assert "of 0.0001 USD are spent, and the next request might cost" in done.stderr
    assert endpoint.answered == 0


def test_a_budget_without_effect_is_pointed_out(benchmark_folder: Path, tmp_path: Path) -> None:
    with running(latency_s=0.0) as endpoint:
        done = evaluate(benchmark_folder, tmp_path / "run", endpoint, "--budget", 1)
    assert done.returncode == 0, done.stderr
    assert "are taken as free: no budget is kept without --price IN/OUT" in done.stderr


def test_cached_replies_are_neither_asked_nor_paid_for_again(
    benchmark_folder: Path, tmp_path: Path
) -> None:
    with running(latency_s=0.0) as endpoint:
        for name, asked in (("first", SAMPLES), ("second", SAMPLES)):
            cached = ("--price", PRICE, "--cache", "pilot-of-test")
            done = evaluate(benchmark_folder, tmp_path / name, endpoint, *cached, "--json")
            assert done.returncode == 0, done.stderr
            assert endpoint.answered == asked
            assert (
                json.loads(done.stdout)[0]["modes"]["no-tool"]["metrics"]["fas"]["overall"]["value"]
                == 1
            )
        assert read_spend(tmp_path / "second" / "spend.jsonl").replies == 0
        evaluate(
            benchmark_folder,
            tmp_path / "third",
            endpoint,
            "--epochs",
            2,
            "--cache",
            "pilot-of-test",
        )
        assert endpoint.answered == 2 * SAMPLES, "the second epoch is asked anew"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--budget", 1), "--price IN/OUT"),
        (("--price", "cheap"), "'cheap' is not a price"),
        (("--cache", "../x"), "cannot name a response cache"),
        (("--budget", -1), "greater than 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    benchmark_folder: Path,
    tmp_path: Path,
    options: tuple[object, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with running(latency_s=0.0) as endpoint:
        endpoint.base_url = "https://models.example.org/v1"
        done = evaluate(benchmark_folder, tmp_path / "run", endpoint, *options)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert (
        not (tmp_path / "run" / "records.jsonl").exists()
        or not (tmp_path / "run" / "records.jsonl").read_bytes()
    )
