"""Scripts of the repository that packs and models are made with can be imported after the package changed."""

import importlib
import sys
from pathlib import Path

import pytest

TRAINING = Path(__file__).parents[2] / "training"
OF_EXTRAS = ("onnx", "onnxruntime", "torch", "torchvision")
"""Libraries that only some of the scripts need, and no test environment has to have."""


@pytest.mark.parametrize("script", sorted(path.stem for path in TRAINING.glob("*.py")))
def test_a_script_finds_what_it_imports(script, monkeypatch):
    monkeypatch.syspath_prepend(str(TRAINING))
    monkeypatch.setattr(sys, "path", [*sys.path])  # scripts add folders of their own
    try:
        importlib.import_module(script)
    except ModuleNotFoundError as error:
        if error.name not in OF_EXTRAS:
            raise
        pytest.skip(f"{error.name} is not installed")
