"""Evaluations that cost money: an estimate before, a budget that is kept, replies that are not paid for twice."""

import json
import re
from pathlib import Path

import pytest

from agrotools.models.metered import read_spend
from support.eval_process import evaluate, finished, running
from support.text_benchmark import write_text_benchmark

SAMPLES = 12
PRICE = "10/100"
PAID_USD = (100 * 10 + 10 * 100) / 1e6
"""What a reply of the endpoint costs: 100 tokens in, 10 out."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def benchmark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text_benchmark(tmp_path_factory.mktemp("paid") / "benchmark", SAMPLES, bare=True)


def test_a_budget_stops_a_run_before_it_is_exceeded_and_a_larger_one_goes_on(
    benchmark_folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    paid = ("--price", PRICE, "--max-output-tokens", 100)
    with running(latency_s=0.0) as endpoint:
        stopped = evaluate(benchmark_folder, run, endpoint, *paid, "--budget", 0.03)
        err = stopped.stderr
        assert "about 12 requests" in err
        assert "10.00/100.00 USD per million tokens" in err
        assert err.count("are spent, and the next request") == 0
        assert stopped.stdout.count("are spent, and the next request") == 1
        assert re.search(r"next +agrotools eval .*--budget 0\.\d+ +\(resumes", stopped.stdout)
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
        done = evaluate(benchmark_folder, tmp_path / "run", endpoint, "--price", PRICE, "--budget", 0.0001)
    assert done.returncode == 1
    assert "of 0.0001 USD are spent, and the next request might cost" in done.stderr
    assert endpoint.answered == 0


def test_a_budget_without_effect_is_pointed_out(benchmark_folder: Path, tmp_path: Path) -> None:
    with running(latency_s=0.0) as endpoint:
        done = evaluate(benchmark_folder, tmp_path / "run", endpoint, "--budget", 1)
    assert done.returncode == 0, done.stderr
    assert "are taken as free: no budget is kept without --price IN/OUT" in done.stderr


def test_cached_replies_are_neither_asked_nor_paid_for_again(benchmark_folder: Path, tmp_path: Path) -> None:
    with running(latency_s=0.0) as endpoint:
        for name, asked in (("first", SAMPLES), ("second", SAMPLES)):
            cached = ("--price", PRICE, "--cache", "pilot-of-test")
            done = evaluate(benchmark_folder, tmp_path / name, endpoint, *cached, "--json")
            assert done.returncode == 0, done.stderr
            assert endpoint.answered == asked
            assert json.loads(done.stdout)[0]["modes"]["no-tool"]["metrics"]["fas"]["overall"]["value"] == 1
        assert read_spend(tmp_path / "second" / "spend.jsonl").replies == 0
        evaluate(benchmark_folder, tmp_path / "third", endpoint, "--epochs", 2, "--cache", "pilot-of-test")
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
    benchmark_folder: Path, tmp_path: Path, options: tuple[object, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with running(latency_s=0.0) as endpoint:
        endpoint.base_url = "https://models.example.org/v1"
        done = evaluate(benchmark_folder, tmp_path / "run", endpoint, *options)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert not (tmp_path / "run" / "records.jsonl").exists() or not (tmp_path / "run" / "records.jsonl").read_bytes()
