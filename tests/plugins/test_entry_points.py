"""Contract of benchmark plug-ins: entry points that name no plug-in, and imports of the contract."""

import subprocess
import sys

import pytest

from agrotools.core import UsageError
from agrotools.core.registry import Registry


def test_an_entry_point_of_a_loader_function_is_refused_with_what_to_do() -> None:
    targets = {"old": "agrotools.benchmarks.embedded.load:load_embedded"}
    registry: Registry[object] = Registry("benchmark", "none", targets, kind="agrotools.plugin:BenchmarkPlugin")
    with pytest.raises(UsageError, match=r"'old'.*function.*BenchmarkPlugin") as refused:
        registry.get("old")
    assert "docs/extending.md" in (refused.value.hint or "")
    assert registry.loaded() == []
    assert [*registry.broken()] == ["old"]


@pytest.mark.process
def test_the_contract_of_plugins_imports_core_alone() -> None:
    code = "import sys, agrotools.plugin; print(*(name for name in sys.modules if name.startswith('agrotools.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.split(".")[1] for name in done.stdout.split()} == {"core", "plugin"}
