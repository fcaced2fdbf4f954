"""Runs on endpoints that answer right but late, or never: no fault of theirs becomes an answer of the model."""

import io
from contextlib import suppress
from pathlib import Path

import pytest

from agrotools.core import InfrastructureError, Record
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.records import iter_records
from support.plain_sample import plain_sample
from support.quick import shorten_waits
from support.slow_server import Hung, HungFor, Queue, SlowServer, Work, slow_server

pytestmark = pytest.mark.process

SAMPLES = 30


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    shorten_waits(monkeypatch)


def run(
    folder: Path, work: Work, *, hang: int = 0, samples: int = SAMPLES, **settings: float
) -> tuple[dict[str, Record], SlowServer]:
    """A run of yes/no questions, ``hang`` of which ask for a reply that never ends; its last records, by sample."""
    benchmark = folder / "benchmark"
    benchmark.mkdir()
    (benchmark / "benchmark.toml").write_text(
        'name = "questions"\nversion = "1"\nlicence = "CC0-1.0"\ntoolset = ["calculate"]\nmodes = ["no-tool"]\n'
        "bare = true\n"
    )
    queries = [
        f"Are there weeds in plot {n}?{' [hang]' if n < hang else ''}" for n in range(samples)
    ]
    made = [
        plain_sample(f"s{n}", query=query, toolset=("calculate",))
        for n, query in enumerate(queries)
    ]
    lines = [sample.model_dump_json(by_alias=True, exclude_none=True) + "\n" for sample in made]
    (benchmark / "samples.jsonl").write_text("".join(lines))
    with slow_server(work) as server:
        config = EvalConfig.of(
            benchmark=str(benchmark), model="m", base_url=server.base_url, mode="no-tool", out=folder / "run",
            **{"timeout_s": 0.6, "concurrency": 32, **settings},  # pyright: ignore[reportArgumentType]
        )  # fmt: skip
        with suppress(InfrastructureError):  # the endpoint is gone: the records say the same
            evaluate(config, io.StringIO())
    return {record.sample.id: record for record in iter_records(folder / "run")}, server


def ends(records: dict[str, Record]) -> set[str]:
    return {
        record.trajectory.termination if record.trajectory else "invalid"
        for record in records.values()
    }


@pytest.mark.parametrize("concurrency", [32, 4])
def test_an_endpoint_that_answers_one_after_the_other_gets_fewer_requests(
    tmp_path: Path, concurrency: int
) -> None:
    records, server = run(tmp_path, Queue(service_s=0.06), concurrency=concurrency)
    assert ends(records) <= {"answered", "invalid"}
    assert sum(record.invalid is None for record in records.values()) >= (
        SAMPLES if concurrency == 4 else 10
    )
    assert server.times("weeds") < 3 * SAMPLES


@pytest.mark.parametrize("answered", [0, 10])
def test_an_engine_that_hangs_makes_records_invalid_and_ends_the_run(
    tmp_path: Path, answered: int
) -> None:
    records, server = run(tmp_path, Hung(answered=answered), timeout_s=0.3)
    assert ends(records) <= {"answered", "invalid"}
    # One answer went to the first contact.
    assert sum(record.invalid is None for record in records.values()) == max(0, answered - 1)
    assert server.times("weeds") <= 3 * SAMPLES


@pytest.mark.parametrize("concurrency", [32, 1])
def test_a_reply_that_never_ends_for_some_questions_makes_them_invalid(
    tmp_path: Path, concurrency: int
) -> None:
    records, server = run(tmp_path, HungFor(service_s=0.01), hang=2, concurrency=concurrency)
    for number in range(SAMPLES):
        reason = records[f"s{number}"].invalid
        assert (reason is not None) == (number < 2)
        assert reason is None or "no complete reply within 0.6 s" in reason
    assert server.times("[hang]") <= 3 * 2
