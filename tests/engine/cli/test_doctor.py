"""``agrotools doctor``: what it says of this machine and of one without sandboxes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.sandbox import running as probing
from agrotools_build import certificate

pytestmark = pytest.mark.process  # the first that asks probes the sandboxes
RUN = CliRunner()
COMMAND = [sys.executable, "-m", "agrotools", "doctor"]


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(probing.RUNNER_VARIABLE, raising=False)


def found(exit_code: int = 0) -> dict[str, Any]:
    result = RUN.invoke(app, ["doctor", "--json"])
    assert result.exit_code == exit_code, result.output
    return json.loads(result.output)


def without_sandboxes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_probes", {})

    def missing(runner: str) -> tuple[str, str] | None:
        return None if runner == probing.NONE else ("it is not there", f"install {runner}")

    monkeypatch.setattr(probing, "missing", missing)


def test_what_runs_code_here() -> None:
    available = [runner for runner in probing.RUNNERS if probing.probe(runner).holds]
    if not available:
        pytest.skip("no sandbox works here")
    sandbox = found()["sandbox"]
    assert sandbox["active"] == available[0]
    assert [each["runner"] for each in sandbox["runners"] if each["holds"]] == list(available)
    text = RUN.invoke(app, ["doctor"]).output
    assert f"active: {available[0]}" in text


def test_nothing_can_run_code(monkeypatch: pytest.MonkeyPatch) -> None:
    without_sandboxes(monkeypatch)
    assert found(exit_code=1)["sandbox"]["active"] is None
    result = RUN.invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "no runner can execute code" in result.output
    assert "install bubblewrap" in result.output
    assert "AGROTOOLS_SANDBOX=none" in result.output
    monkeypatch.setenv(probing.RUNNER_VARIABLE, "none")
    assert found()["sandbox"]["active"] == "none"
    assert "not isolated" in RUN.invoke(app, ["doctor"]).output


@pytest.mark.parametrize(
    ("variable", "value"),
    [(probing.RUNNER_VARIABLE, "docker"), ("AGROTOOLS_SANDBOX_WORKERS", "many")],
)
def test_settings_that_mean_nothing(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert value in found(exit_code=1)["sandbox"]["problem"]


def test_a_bubblewrap_that_may_not(tmp_path: Path) -> None:
    """As on a system that lets nobody make user namespaces."""
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    bwrap.chmod(0o755)
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(
        [*COMMAND, "--json"], env=environment, capture_output=True, text=True, check=False
    )
    sandbox = json.loads(done.stdout)["sandbox"]
    bubblewrap = next(each for each in sandbox["runners"] if each["runner"] == "bubblewrap")
    assert not bubblewrap["holds"]
    assert "setting up uid map: Permission denied" in bubblewrap["message"]
    assert "user namespaces" in bubblewrap["hint"]
    assert sandbox["active"] != "bubblewrap"


def test_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    installation = found()["installation"]
    assert installation["python"] == ".".join(map(str, sys.version_info[:3]))
    assert installation["missing"] == []
    assert not {"test", "dev"} & installation["extras"].keys()
    from importlib import metadata

    lines = [
        "numpy>=2",
        "no-such-package>=1",
        'nor-this[x]>=2; extra == "heavy"',
        'numpy; extra == "build"',
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: [*lines, 'pytest; extra == "test"'])
    installation = found()["installation"]
    assert installation["missing"] == ["no-such-package"]
    assert installation["extras"] == {
        "heavy": {"installed": False, "missing": ["nor-this"]},
        "build": {"installed": True, "missing": []},
    }
    assert "missing dependencies: no-such-package" in RUN.invoke(app, ["doctor"]).output


@pytest.mark.parametrize("passed", [True, False])
def test_the_certificate_lists_what_it_does_not_check(
    passed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether its lines pass or not, on the screen and in the data."""
    line = certificate.Line("agrotools.check", "a check", passed, 1.0, "1")
    monkeypatch.setattr(certificate, "certificate", lambda: iter([line]))
    told = RUN.invoke(app, ["doctor", "--env", "--json"])
    assert told.exit_code == (0 if passed else 1)
    faults = json.loads(told.stdout)["not_checked"]
    limits = (
        "password",
        "triggered by",
        "drawing",
        "cache",
        "duration",
        "scorer",
        "judge",
        "were not drawn",
    )
    for words in limits:
        assert any(words in fault for fault in faults), words
    shown = RUN.invoke(app, ["doctor", "--env"]).stdout
    assert all(fault in shown for fault in faults)
