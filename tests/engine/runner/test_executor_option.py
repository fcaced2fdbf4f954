"""The key ``executor``: known values, and a clear answer where Ray is not installed. With Ray: ``test_ray.py``."""

import sys
from pathlib import Path

import pytest

from agrotools.calling.ray_executor import first_difference
from agrotools.core import UsageError
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from support.sums_benchmark import write_sums

HERE = {"agrotools": "0.2.0", "numpy": "2.2.0", "code": "cccc", "file a": "ffff"}


def test_without_ray_the_run_is_refused_before_its_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "ray", None)
    write_sums(tmp_path / "sums", 2)
    config = EvalConfig.of(
        benchmark=str(tmp_path / "sums"),
        model="baseline:oracle",
        executor="ray",
        out=tmp_path / "run",
    )
    with pytest.raises(UsageError, match="needs Ray") as refused:
        evaluate(config, sys.stderr)
    assert refused.value.hint is not None
    assert "[ray]" in refused.value.hint
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("there", "difference"),
    [
        (HERE, ""),
        ({**HERE, "agrotools": "0.1.0"}, "agrotools 0.1.0, and this machine 0.2.0"),
        ({**HERE, "numpy": "2.1.0"}, "numpy 2.1.0, and this machine 2.2.0"),
        (
            {name: value for name, value in HERE.items() if name != "file a"},
            "file a none, and this machine ffff",
        ),
        ({**HERE, "file b": "eeee"}, "file b eeee, and this machine none"),
    ],
)
def test_the_first_difference_of_a_node_is_named(there: dict[str, str], difference: str):
    assert first_difference(HERE, there) == difference
