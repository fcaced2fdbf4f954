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
        started, used = time.perf_counter(), time.process_time()
        things, megapixels = jobs[name](Path(image), Path(made))
        taken = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - used}
        print(json.dumps({**taken, "megapixels": megapixels, "things": things}), flush=True)
