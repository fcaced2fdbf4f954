"""Defaults of a run: those of its benchmark, and of its model."""

import dataclasses
from pathlib import Path

import pytest

from agrotools.core import RunStoreError
from agrotools.loading import Benchmark, load_benchmark
from agrotools.runner.config import EvalConfig
from agrotools.runner.run_settings import resolve_settings
from support.made_runs import end_to_end, made_sample, write_run

pytestmark = pytest.mark.process


@pytest.fixture
def plain(small_benchmark: Path) -> Benchmark:
    return load_benchmark(small_benchmark)


def saying(benchmark: Benchmark, **said: object) -> Benchmark:
    return dataclasses.replace(benchmark, header=benchmark.header.model_copy(update=said))


def held(benchmark: Benchmark, **asked: object) -> tuple[str, int, bool]:
    settings = resolve_settings(EvalConfig.of(**{"model": "m", **asked}), benchmark)
    return (settings.protocol, settings.max_steps, settings.images)


def test_a_benchmark_that_says_nothing_is_run_in_ours(plain: Benchmark):
    assert held(plain) == ("react", 20, True)
    assert held(plain, protocol="lagent") == ("lagent", 10, False)
    assert held(plain, protocol="lagent", images=True, max_steps=3) == ("lagent", 3, True)
    assert resolve_settings(EvalConfig.of(model="m"), plain).note == ""


def test_a_benchmark_of_the_users_may_say_its_own(plain: Benchmark):
    own = saying(plain, protocol="tool-calling", max_steps=7)
    assert held(own) == ("tool-calling", 7, True)
    assert held(own, max_steps=9) == ("tool-calling", 9, True)
    assert held(own, protocol="react") == ("react", 7, True)
    assert resolve_settings(EvalConfig.of(model="m"), own).note.startswith(
        "protocol tool-calling, as published"
    )


@pytest.mark.parametrize(
    ("mode", "protocol", "told"),
    [
        ("all", "lagent", "it has no no-tool; at most 20 turns"),
        ("end-to-end", "lagent", "for ours); at most 20 turns"),
        ("no-tool", "react", "lagent, of the paper, has no no-tool"),
    ],
)
def test_the_modes_that_are_asked_for_decide(plain: Benchmark, mode: str, protocol: str, told: str):
    settings = resolve_settings(
        EvalConfig.of(model="m", mode=mode), saying(plain, protocol="lagent", max_steps=20)
    )
    assert settings.protocol == protocol
    assert told in settings.note


def test_baselines_have_no_settings_of_a_paper(plain: Benchmark):
    own = saying(plain, protocol="lagent", max_steps=2)
    assert held(own, model="baseline:oracle") == ("react", 20, True)
    assert held(own, model="baseline:oracle", protocol="tool-calling", max_steps=5) == (
        "react",
        5,
        True,
    )


def test_a_replay_is_held_as_its_run(plain: Benchmark, tmp_path: Path):
    record = end_to_end(made_sample())
    run = write_run(tmp_path / "run", [record], protocol="lagent", max_steps=15, images=False)
    for model in (f"replay:{run}", f"baseline:replay:{run}"):
        assert held(plain, model=model) == ("lagent", 15, False)
        assert held(plain, model=model, protocol="react", max_steps=4) == ("lagent", 4, False)
    with pytest.raises(RunStoreError):
        held(plain, model=f"replay:{tmp_path / 'none'}")


def test_what_a_header_says_of_runs_is_no_part_of_the_benchmarks_hash(
    small_benchmark: Path, tmp_path: Path
):
    import shutil

    copy = Path(shutil.copytree(small_benchmark, tmp_path / "copy"))
    header = copy / "benchmark.toml"
    header.write_text(
        f'protocol = "lagent"\nmax_steps = 4\n{header.read_text(encoding="utf-8")}',
        encoding="utf-8",
    )
    said = load_benchmark(copy)
    assert (said.header.protocol, said.header.max_steps) == ("lagent", 4)
    assert said.content_hash == load_benchmark(small_benchmark).content_hash
