import os
import signal
import subprocess
import sys

import pytest

from agrotools.build.scenes.processes import Order
from agrotools.build.sources.drawn.drawing import draw_all
from agrotools.core import InfrastructureError


def _contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_scene_that_cannot_be_drawn_is_an_error_that_names_it(tmp_path):
    with pytest.raises(InfrastructureError, match="no drawn scenes 'no_such_scenes'"):
        draw_all([Order("no_such_scenes", 3, 1)], tmp_path, lambda *_: None)
    assert not list(tmp_path.rglob("record.json"))


_DRAW = """
import sys
from pathlib import Path
from agrotools.build.scenes.processes import Order
from agrotools.build.sources.drawn.drawing import draw_all
orders = [Order("blocks", seed, difficulty) for seed, difficulty in ((5, 0), (6, 2), (7, 1), (8, 3))]
draw_all(orders, Path(sys.argv[1]), lambda what, done, total: print(done, total, flush=True), workers=2)
"""


@pytest.mark.slow
def test_drawing_that_is_killed_goes_on_and_draws_what_it_would_have_drawn(tmp_path):
    def draw(folder):
        command = [sys.executable, "-c", _DRAW, str(tmp_path / folder)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    with draw("killed") as killed:
        for line in killed.stdout:
            if line == "1 4\n":
                os.killpg(killed.pid, signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    kept = len(list((tmp_path / "killed").glob("*/record.json")))
    assert 1 <= kept < 4
    with draw("killed") as again, draw("whole") as whole:
        told, _ = again.communicate()
        assert told.split("\n")[0] == f"{kept} 4"
        assert told.split("\n")[-2] == "4 4"
        whole.communicate()
    assert (again.returncode, whole.returncode) == (0, 0)
    assert _contents(tmp_path / "killed") == _contents(tmp_path / "whole")
