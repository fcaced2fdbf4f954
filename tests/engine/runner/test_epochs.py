"""Epochs: the same samples several times, each time with a seed of its own."""

from collections import Counter
from pathlib import Path

import pytest

from support.eval_process import evaluate, running
from support.text_benchmark import write_text_benchmark

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("options", "seeds"), [(("--seed", 7), [7, 8, 9]), ((), [None])], ids=["given", "none"]
)
def test_each_epoch_sends_a_seed_of_its_own(
    tmp_path: Path, options: tuple[object, ...], seeds: list[int | None]
) -> None:
    folder = tmp_path / "benchmark"
    write_text_benchmark(folder, 4)
    with running(0) as endpoint:
        done = evaluate(folder, tmp_path / "run", endpoint, "--epochs", 3, *options)
        assert done.returncode == 0, done.stderr
        sent = Counter(body.get("seed") for body in endpoint.requests)
    assert sorted(sent, key=str) == seeds
    assert len({*sent.values()}) == 1, "each epoch asks as often"
