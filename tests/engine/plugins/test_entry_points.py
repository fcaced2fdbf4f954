"""Contract of benchmark plug-ins: entry points that name no plug-in, and imports of the contract."""

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Literal

import pytest
from typer.testing import CliRunner

from agrotools.cli import main
from agrotools.core import BENCHMARKS, BenchmarkError, PluginWarning, Slot, UsageError
from agrotools.core import registry as registries
from agrotools.core.registry import Registry, join_tables
from agrotools.loading import load_benchmark
from agrotools.plugin import BenchmarkPlugin, MetricInfo


def test_an_entry_point_of_a_loader_function_is_refused_with_what_to_do() -> None:
    targets = {"old": "agrotools_benchmarks.embedded.load:load_drawn"}
    registry: Registry[object] = Registry(
        "benchmark", "none", targets, kind="agrotools.plugin:BenchmarkPlugin"
    )
    with pytest.raises(UsageError, match=r"'old'.*function.*BenchmarkPlugin") as refused:
        registry.get("old")
    assert "agrotools docs extending" in (refused.value.hint or "")
    assert registry.loaded() == []
    assert [*registry.broken()] == ["old"]


@pytest.mark.process
def test_the_contract_of_plugins_imports_core_alone() -> None:
    code = "import sys, agrotools.plugin; print(*(name for name in sys.modules if name.startswith('agrotools.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.split(".")[1] for name in done.stdout.split()} == {"core", "packages", "plugin"}


BROKEN = {
    "raises": "raise ValueError('boom')",
    "ends": "import sys; sys.exit(7)",
    "wordless": "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd()",
    "syntax": "def (",
    "fields": "import agrotools.plugin as p\nPLUGIN = p.BenchmarkPlugin('x', print, metrics={'x.y': None})",
    "slots": "import agrotools.plugin as p\nPLUGIN = p.BenchmarkPlugin('x', print, slots=(int,))",
}


@pytest.mark.parametrize("module", BROKEN)
def test_a_plugin_that_cannot_be_imported_is_named_and_leaves_the_others_alone(
    module, tmp_path, monkeypatch
) -> None:
    (tmp_path / f"broken_{module}.py").write_text(BROKEN[module])
    monkeypatch.syspath_prepend(tmp_path)
    targets = {module: f"broken_{module}:PLUGIN", "gta": "agrotools_benchmarks.gta.plugin:PLUGIN"}
    registry: Registry[object] = Registry(
        "benchmark", "none", targets, kind="agrotools.plugin:BenchmarkPlugin"
    )
    assert len(registry.loaded()) == 1
    with pytest.raises(UsageError, match=f"{module!r} cannot be loaded from broken_{module}"):
        registry.get(module)


@pytest.mark.parametrize(
    ("load", "reason"), [(lambda _: 3, "loaded a int"), (lambda _: {}["x"], "KeyError: 'x'")]
)
def test_a_loader_that_fails_is_an_error_of_its_benchmark(load, reason) -> None:
    BENCHMARKS.add("mine", BenchmarkPlugin("mine", load))
    try:
        with pytest.raises(BenchmarkError, match=f"'mine': its plug-in .*{reason}"):
            load_benchmark("mine")
    finally:
        BENCHMARKS.remove("mine")


def test_a_slot_type_of_agrotools_is_taken() -> None:
    class Exact(Slot):
        type: Literal["exact"] = "exact"

    with pytest.raises(TypeError, match="'exact' is a slot type of agrotools already"):
        BenchmarkPlugin(
            "mine", lambda loading: load_benchmark("mine", loading.data_root), slots=(Exact,)
        )


@pytest.mark.parametrize(
    ("metric", "modes", "slots", "reason"),
    [
        ("share", (), None, "the id must have a point, e.g. 'ripeness.share'"),
        ("mine.share", ("end-to-end",), None, "compared_in needs slots"),
        ("mine.share", ("step-by-step",), bool, "must not contain 'step-by-step'"),
    ],
)
def test_a_metric_that_could_never_have_a_column_is_refused(metric, modes, slots, reason) -> None:
    info = MetricInfo("Share", "a share", slots=slots, compared_in=modes)
    with pytest.raises(TypeError, match=reason):
        BenchmarkPlugin("mine", print, metrics={metric: info})


def test_a_name_that_two_packages_claim_is_the_first_ones_and_a_warning_names_both(
    monkeypatch,
) -> None:
    monkeypatch.setattr(registries, "CLASHES", [])
    entries = [
        EntryPoint("gta", f"{package}.plugin:PLUGIN", "g") for package in ("stranger", "stranger")
    ]
    monkeypatch.setattr(registries, "entry_points", lambda group: entries)
    registry: Registry[object] = Registry(
        "benchmark", "g", {"gta": "agrotools_benchmarks.gta.plugin:PLUGIN"}
    )
    with pytest.warns(
        PluginWarning, match="'gta' of the package stranger is ignored: agrotools has one"
    ) as told:
        assert registry.names() == ("gta",)
    assert len(told) == 1
    assert registry.package_of("gta") == "agrotools"
    with pytest.warns(
        PluginWarning, match="metric 'a.b' of the package two is ignored: one has one of that name"
    ):
        assert join_tables(
            "metric", [("one", {"a.b": 1}), ("two", {"a.b": 2}), ("three", {"a.b": 1})]
        ) == {"a.b": 1}


STRANGER = """
import agrotools.plugin as p
PLUGIN = p.BenchmarkPlugin("stranger", print, tools={"calculate": "stranger:calculate"})
"""


@pytest.mark.process
def test_doctor_lists_plugins_with_their_faults_and_clashing_names(tmp_path) -> None:
    (tmp_path / "stranger.py").write_text(STRANGER)
    (tmp_path / "lost.py").write_text("raise ValueError('boom')")
    info = tmp_path / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[agrotools.benchmarks]\nstranger = stranger:PLUGIN\nlost = lost:PLUGIN\nembedded = stranger:PLUGIN\n"
    )
    command = [sys.executable, "-m", "agrotools", "doctor", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    plugins = json.loads(done.stdout)["plugins"]
    faults = {each["name"]: each["fault"] for each in plugins["installed"]}
    assert faults["stranger"] is None
    assert "ValueError: boom" in faults["lost"]
    heads = [
        f"{noun} of the package stranger" for noun in ("benchmark 'embedded'", "tool 'calculate'")
    ]
    assert all(any(text.startswith(head) for text in plugins["clashes"]) for head in heads), plugins


def test_an_installation_older_than_the_source_says_to_install_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An editable installation that was made before the packages were registered knows none of them."""
    for module in ("agrotools.core.registry", "agrotools.cli.main"):
        monkeypatch.setattr(f"{module}.package_tables", tuple)
    main.command_groups.cache_clear()
    try:
        for command in (["build"], ["eval", "embedded"]):
            done = CliRunner().invoke(main.app, command)
            assert isinstance(done.exception, UsageError)
            assert "not registered with this Python" in str(done.exception)
            assert "pip install -e ." in (done.exception.hint or "")
    finally:
        main.command_groups.cache_clear()
