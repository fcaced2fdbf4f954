"""What every client does with its command line: run a job on each image and print what it took."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

Job = Callable[[Path, Path], tuple[int, float]]
"""From image and folder for pictures to number of things found and megapixels of the image."""


def run(jobs: dict[str, Job]) -> None:
    name, made, *images = sys.argv[1:]
    for image in images:
        started = time.perf_counter()
        things, megapixels = jobs[name](Path(image), Path(made))
        seconds = time.perf_counter() - started
        print(json.dumps({"seconds": seconds, "megapixels": megapixels, "things": things}), flush=True)
