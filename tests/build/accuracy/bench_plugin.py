"""A package with a tool and its accuracy studies, as others would write and install one, and a folder of pictures."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from agrotools.build.accuracy import studies
from agrotools.core import Registry

_TOOL = '''
from PIL import Image as Pictures
from agrotools.core import Artifact
from agrotools.tools.contract import ImageFile, ToolResult, tool
from agrotools.tools.workspace import save_artifact

class Brightness(ToolResult):
    mean_pct: float
    """mean"""
    overlay: Artifact
    """the picture"""

@tool(category="measurement", version="1")
def made_brightness(image: ImageFile) -> Brightness:
    """Measure how bright a picture is."""
    with Pictures.open(image) as opened:
        grey = opened.convert("L")
    mean = sum(value * count for value, count in enumerate(grey.histogram())) / (grey.width * grey.height)
    return Brightness(mean_pct=100 * mean / 255, overlay=save_artifact("overlay.png", "overlay", grey))
'''

_STUDIES = """
import os, signal, time
from agrotools.build.accuracy.study import mean_of
from agrotools.build.accuracy.study import Study

def errors(bench):
    gaps = [abs(bench.call(image=bench.folder / item["image"]).mean_pct - item["mean_pct"]) for item in bench.items()]
    print("libraries write to standard output")
    return [
        mean_of("brightness, mean absolute error, points", gaps, goal=0.5, higher_is_better=False, note="drawn grey"),
        mean_of("brightness, of no use", [float("nan")] * len(gaps), goal=1.0),
        mean_of("brightness, error of few, points", gaps[:4], goal=0.5, higher_is_better=False),
    ]

def crashes(bench):
    raise RuntimeError("no such thing in " + str(bench.folder))

def killed(bench):
    print("about to go")
    os.kill(os.getpid(), signal.SIGKILL)

def hangs(bench):
    time.sleep(600)

def reports_its_surroundings(bench):
    threads = [float(os.environ[name]) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")]
    held = bytearray(200_000_000)
    held[::4096] = b"x" * len(held[::4096])
    return [mean_of("threads", threads)]

STUDIES = (
    Study("made_brightness", "greys", errors),
    Study("made_brightness", "elsewhere", errors),
    Study("made_brightness", "crash", crashes, needs_folder=False),
    Study("made_brightness", "kill", killed, needs_folder=False),
    Study("made_brightness", "hang", hangs, needs_folder=False),
    Study("made_brightness", "surroundings", reports_its_surroundings, needs_folder=False),
)
"""


@contextmanager
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the package (in ``folder/package``) in this process and return a data folder with pictures.

    No other studies are registered.
    """
    install(folder / "package")
    write_greys(folder / "data" / "greys")
    monkeypatch.syspath_prepend(str(folder / "package"))
    monkeypatch.setattr(studies, "STUDIES", Registry("accuracy study", "agrotools.accuracy", {}))
    yield folder / "data"
    for module in [name for name in sys.modules if name.startswith("made_brightness")]:
        del sys.modules[module]


def install(folder: Path) -> None:
    """Write the package into ``folder``."""
    about = folder / "made_bench-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: made-bench\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[agrotools.tools]\nmade_brightness = made_brightness_tool:made_brightness\n"
        "[agrotools.accuracy]\nmade_brightness = made_brightness_studies:STUDIES\n"
        "broken_studies = no_such_module:STUDIES\n"
    )
    (folder / "made_brightness_tool.py").write_text(_TOOL)
    (folder / "made_brightness_studies.py").write_text(_STUDIES)


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a process in which the package in ``folder`` is installed."""
    return {**os.environ, "PYTHONPATH": str(folder)}


def write_greys(folder: Path, count: int = 12) -> None:
    """``count`` uniform pictures; every truth is one point too high."""
    folder.mkdir(parents=True)
    truth = []
    for number in range(count):
        value = 51 + 5 * number
        Image.new("L", (100, 80), value).save(folder / f"{number}.png")
        truth.append({"id": str(number), "image": f"{number}.png", "mean_pct": 100 * value / 255 + 1})
    (folder / "truth.json").write_text(json.dumps(truth))
