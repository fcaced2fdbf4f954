"""Back-ends ``learned:`` of earlier versions: stored runs that name one are read and compared, and none is run."""

import json
import shutil
from pathlib import Path

import pytest

from support.command import run_command
from support.sums_benchmark import write_sums

pytestmark = pytest.mark.process
LEFT = "learned:IDEA-Research/grounding-dino-tiny"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark, a run of it, and the same run as it would be with such a back-end."""
    folder = tmp_path_factory.mktemp("left")
    write_sums(folder / "sums", 6)
    done = run_command("eval", folder / "sums", "-m", "baseline:oracle", "--out", folder / "run")
    assert done.returncode == 0, done.stderr
    shutil.copytree(folder / "run", folder / "stored")
    manifest = json.loads((folder / "stored" / "manifest.json").read_text())
    manifest["backends"] = {"calculate": LEFT}
    (folder / "stored" / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_a_stored_run_is_scored_compared_and_attributed(folder: Path):
    stored, run = folder / "stored", folder / "run"
    (of_stored,) = json.loads(run_command("score", stored, "--json").stdout)
    (of_run,) = json.loads(run_command("score", run, "--json").stdout)
    assert of_stored["modes"] == of_run["modes"]
    compared = run_command("compare", stored, run, "--json")
    assert compared.returncode == 0, compared.stderr
    for command in (("attribute", stored), ("report", stored), ("explain", stored)):
        done = run_command(*command)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("out", ["new", "stored"])
def test_a_run_with_such_a_back_end_is_refused_with_the_way_to_a_tool_server(
    folder: Path, out: str
):
    command = ("eval", folder / "sums", "-m", "baseline:oracle", "--out", folder / out)
    done = run_command(*command, "--backend", f"calculate={LEFT}")
    assert done.returncode == 2
    assert "examples/tool_servers/learned" in done.stderr
    assert "--tool-server" in done.stderr
    assert "Traceback" not in done.stderr
