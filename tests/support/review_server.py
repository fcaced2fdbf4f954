"""A benchmark to review, and ``agrotools review`` as a process of its own that tests talk to, kill and start again."""

import hashlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image, ImageDraw

AGROTOOLS = [sys.executable, "-m", "agrotools"]
ATTACK = "<img src=x onerror=window.hit=1><script>window.hit=1</script>\"'><b>bold</b>"
HEADER = """name = "orchard"
version = "1"
licence = "Apache-2.0"
description = "questions on drawn rows"
synthetic = true
toolset = ["describe_region", "calculate", "plot", "lookup_agronomy"]

[[sources]]
name = "drawn"
licence = "Apache-2.0"
"""


def review_sample(folder: Path, number: int, **changes: Any) -> dict[str, Any]:
    """A sample with a picture of 64 x 48 px, a region on it, an observation that is not quite true, and two steps."""
    path = folder / "files" / f"{number}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (64, 48), (number % 250, 120, 40)).save(path)
    sample: dict[str, Any] = {
        "id": f"rows-{number:04d}",
        "query": f"How much of block {number} is green, twice over?",
        "files": [
            {"name": "image_1.png", "path": f"files/{number}.png", "kind": "image", "width_px": 64, "height_px": 48,
             "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        ],
        "family": "SI",
        "task_type": "weed_crop_area" if number % 2 else "lesion_severity",
        "answer_type": "tolerance",
        "template": "twice_green",
        "source": "drawn" if number % 3 else "drawn elsewhere",
        "toolset": ["describe_region", "calculate", "plot", "lookup_agronomy"],
        "reference": {
            "steps": [
                {
                    "tool": "describe_region",
                    "arguments": {"image": "image_1.png", "region": [8, 6, 40, 30]},
                    "observation": {"result": {"green_pct": 40.0, "box": [8, 6, 40, 30], "notes": ["by index"]}},
                    "truth": {"green_pct": 50.0},
                    "thought": "First the green share.",
                },
                {
                    "tool": "calculate",
                    "arguments": {
                        "expression": "2 * g",
                        "variables": {"g": {"$ref": "steps[0].observation.green_pct", "value": 40.0}},
                    },
                    "observation": {"result": {"value": 80.0}},
                    "truth": {"value": 100.0},
                },
            ]
        },
        "answer": [
            {"type": "tolerance", "name": "green", "label": "twice the green share", "value": 100.0, "unit": "%",
             "abs_tol": 2.0, "from": "steps[1].observation.value"}
        ],
    }  # fmt: skip
    return sample | changes


def review_benchmark(folder: Path, count: int = 6, **changes: Any) -> Path:
    """``count`` samples, ids ``rows-0001``...; ``changes`` by id with ``_`` for ``-``: fields of that sample."""
    samples = [
        review_sample(folder, n, **changes.get(f"rows_{n:04d}", {})) for n in range(1, count + 1)
    ]
    (folder / "benchmark.toml").write_text(HEADER)
    (folder / "samples.jsonl").write_text("".join(f"{json.dumps(sample)}\n" for sample in samples))
    return folder


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


class ReviewServer:
    """A running ``agrotools review``."""

    def __init__(self, process: subprocess.Popen[str], address: str, said: str) -> None:
        self.process, self.address, self.said = process, address, said
        self.port = int(re.findall(r":(\d+)", address)[0])
        self.base, self.root = f"http://127.0.0.1:{self.port}", f"/{address.split('/')[3]}"

    def ask(
        self, path: str, *, method: str = "GET", body: Any = None, **headers: str | None
    ) -> Reply:
        """Send a request as it is, below the secret path; ``Host=None`` leaves a header out."""
        wanted: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}"}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if content is not None:
            wanted["Content-Length"] = str(len(content))
        wanted |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(
                method, self.root + path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in wanted.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(content)
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def index(self, reviewer: str = "") -> Any:
        return self.ask(f"/index?reviewer={reviewer}").data

    def post(self, decision: Any, **headers: str | None) -> Reply:
        """Send a decision as the page does; ``headers`` replace what the page sends."""
        page: dict[str, str | None] = {"Origin": self.base, "Content_Type": "application/json"}
        return self.ask("/decisions", method="POST", body=decision, **{**page, **headers})

    def kill(self) -> None:
        """As a power cut would end it."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


def start_review(*arguments: str | Path) -> ReviewServer:
    """Start ``agrotools review`` and wait for its address."""
    process = subprocess.Popen(
        [*AGROTOOLS, "review", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    said = ""
    for line in process.stdout:
        said += line
        if found := re.search(r"http://\S+", line):
            return ReviewServer(process, found[0], said)
    raise AssertionError(f"no address: {said}{process.stderr.read()}")


@contextmanager
def reviewing(*arguments: str | Path) -> Iterator[ReviewServer]:
    """A running review that is ended as by Ctrl-C."""
    server = start_review(*arguments)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGINT)
        try:
            _, errors = server.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            server.process.kill()
            _, errors = server.process.communicate()
        assert "Traceback" not in errors, errors


def green_blocks(folder: Path, count: int = 3, **changes: Any) -> Path:
    """Samples whose calls can be made: green discs on soil, the share of plants in a region, and twice that share.

    Labels say 20 % and 40 %; the tool measures a little less. ``changes``: fields of every sample.
    """
    tools = ["describe_region", "calculate", "plot", "measure_crop_weed_area"]
    samples: list[dict[str, Any]] = []
    for number in range(1, count + 1):
        path = folder / "files" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = Image.new("RGB", (320, 240), (120, 85, 50 + number))
        for left, top in ((20, 30), (80, 67), (140, 104), (200, 141)):
            ImageDraw.Draw(picture).ellipse([left, top, left + 40, top + 50], fill=(50, 160, 40))
        picture.save(path)
        share = {"$ref": "steps[0].observation.vegetation_pct", "value": 17.0}
        steps = [
            {"tool": "describe_region", "arguments": {"image": "image_1.png", "region": [8, 6, 200, 130]},
             "observation": {"result": {"vegetation_pct": 17.0}}, "truth": {"vegetation_pct": 20.0}},
            {"tool": "calculate", "arguments": {"expression": "2 * g", "variables": {"g": share}},
             "observation": {"result": {"value": 34.0}}, "truth": {"value": 40.0}},
        ]  # fmt: skip
        sample = review_sample(folder, 0) | {
            "id": f"rows-{number:04d}",
            "files": [
                {"name": "image_1.png", "path": f"files/{number}.png", "kind": "image", "width_px": 320,
                 "height_px": 240, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            ],
            "query": f"How much of block {number} is green, twice over?",
            "toolset": tools,
            "task_type": "weed_crop_area",
            "reference": {"steps": steps},
            "answer": [
                {"type": "tolerance", "name": "green", "label": "twice the green share", "value": 40.0, "unit": "%",
                 "abs_tol": 2.0, "from": "steps[1].observation.value"}
            ],
        }  # fmt: skip
        samples.append(sample | changes)
    (folder / "files" / "0.png").unlink()
    (folder / "benchmark.toml").write_text(
        HEADER.replace('"lookup_agronomy"]', '"measure_crop_weed_area"]')
    )
    (folder / "samples.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in samples))
    return folder
