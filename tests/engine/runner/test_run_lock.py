"""One process on a run: the second is told who holds it, and what ended processes left confuses nobody."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from agrotools.core import RunStoreError
from agrotools.runner.store import RunStore
from support.runs import manifest

fcntl = pytest.importorskip("fcntl")

TESTS = str(Path(__file__).parents[2])

HOLD = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from agrotools.runner.store import RunStore
from support.runs import manifest
store = RunStore(Path(sys.argv[1]), manifest())
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.process
def test_a_second_process_is_refused_with_the_holders_pid_until_the_first_is_killed(tmp_path: Path):
    command = [sys.executable, "-c", HOLD, str(tmp_path), TESTS]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunStoreError, match=rf"in use by process {holder.pid}\b"):
            RunStore(tmp_path, manifest())
        holder.kill()
    RunStore(tmp_path, manifest()).close()


def test_a_file_system_without_locks_is_a_typed_error_and_nothing_is_left_there(
    tmp_path: Path, monkeypatch
):
    def refuse(_number: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(RunStoreError, match=r"cannot lock files.*local disk"):
        RunStore(tmp_path / "run", manifest())
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_that_is_a_link_harms_nothing(tmp_path: Path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(RunStoreError, match="cannot write the run folder"):
        RunStore(tmp_path / "run", manifest())
    assert (tmp_path / "precious").read_text() == "precious"
