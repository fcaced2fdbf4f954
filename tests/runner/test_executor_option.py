"""``--executor``: known values, and a clear answer where Ray is not installed. With Ray: tests/tools/test_ray.py."""

import sys
from pathlib import Path

import pytest

from agrotools.core import UsageError
from agrotools.runner.config import EvalConfig, read_config
from agrotools.runner.evaluate import evaluate
from agrotools.tools.ray_node import first_difference
from support.sums_benchmark import write_sums

HERE = {"agrotools": "0.2.0", "numpy": "2.2.0", "code": "c" * 64, "file entries.toml": "f" * 64}


def test_an_unknown_executor_is_refused():
    with pytest.raises(UsageError, match=r"executor.*'local' or 'ray'.*dask"):
        read_config(None, {"executor": "dask"}, ["baseline:oracle"])


def test_without_ray_the_run_is_refused_before_its_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    write_sums(tmp_path / "sums", 2)
    config = EvalConfig(benchmark=str(tmp_path / "sums"), model="baseline:oracle", executor="ray", out=tmp_path / "run")
    with pytest.raises(UsageError, match="--executor ray needs Ray") as refused:
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
        ({**HERE, "code": "d" * 64}, "other code of agrotools 0.2.0 or of a plug-in"),
        ({**HERE, "file entries.toml": "e" * 64}, "another file entries.toml"),
        ({name: value for name, value in HERE.items() if "file" not in name}, "no file entries.toml"),
        ({**HERE, "file more.toml": "e" * 64}, "a file more.toml"),
    ],
)
def test_the_first_difference_of_a_node_is_named(there: dict[str, str], difference: str):
    assert first_difference(HERE, there) == difference
