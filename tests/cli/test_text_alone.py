"""Benchmarks of text are evaluated, scored, reported and compared without the libraries for images."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.eval_process import running
from support.text_benchmark import write_text_benchmark

WITHOUT_IMAGES = """
import importlib.metadata, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cv2", "rasterio", "matplotlib", "onnxruntime", "skimage"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def version(name, known=importlib.metadata.version):
    if name in ("opencv-python-headless", "rasterio", "matplotlib", "onnxruntime", "scikit-image"):
        raise importlib.metadata.PackageNotFoundError(name)
    return known(name)

importlib.metadata.version = version
sys.meta_path.insert(0, Absent())
from agrotools.__main__ import main
main()
"""


@pytest.mark.slow
def test_text_needs_no_libraries_for_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    bench = write_text_benchmark(tmp_path / "bench", 12)

    def agrotools(*arguments: object, code: int = 0) -> str:
        command = [sys.executable, "-c", WITHOUT_IMAGES, *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    with running(latency_s=0.0) as endpoint:
        model = ("-m", "m", "--base-url", endpoint.base_url)
        assert "FAS" in agrotools("eval", bench, *model, "--mode", "no-tool", "--out", "run")
    agrotools("eval", bench, "-m", "baseline:guess", "--mode", "no-tool", "--out", "guess")
    agrotools("score", "run")
    agrotools("report", "run")
    agrotools("compare", "run", "guess")
    agrotools("explain", "run", "q0")
    refused = agrotools("doctor", code=3)
    assert (
        "is not installed, and this command reads or draws pictures\nhint: pip install" in refused
    )


@pytest.mark.unit
def test_the_documented_list_is_that_of_the_package_without_five():
    root = Path(__file__).parents[2]
    documented = set(
        re.findall(
            r"'([a-z0-9-]+>=[^']+)'", (root / "docs" / "index.md").read_text(encoding="utf-8")
        )
    )
    declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "dependencies"
    ]
    absent = ("opencv", "rasterio", "matplotlib", "onnxruntime", "scikit-image")
    assert documented == {each for each in declared if not each.startswith(absent)}
