"""What pictures in results cost, and whether a planted model that reads them gains.

Tables of docs/protocols.md, "Pictures of results", and of studies/results/tool_images_*.csv.

    python studies/tool_images.py WORK [--out studies/results]

Gain: planted models make the reference calls on the questions of ``embedded`` whose answer is the severity of a leaf,
end to end. One answers from the texts of results; one only from the mask of the leaf, which ``--tool-images`` shows
(share of the colour of lesions), and gives no value where it sees none; one from the text unless the mask shows
something else. Each runs without and with the option, as the tools are and with measured errors put into every text
(``--faults noise=1``), which change no picture.

Cost: the pictures of the reference calls of the quick part, as a model that makes them is shown them in its last
request: number, bytes, and tokens by the published rules of vendors.
"""

import argparse
import base64
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

import agrotools as at
from agrotools.agents.baselines.simple import OraclePolicy
from agrotools.core import (
    Answer,
    CallTools,
    Observation,
    Sample,
    SampleView,
    Step,
    ToolCall,
    ToolSpec,
)
from agrotools.loading import Benchmark
from agrotools.models import Completion, ImagePart, Message, ModelSettings, TextPart, WireStats
from agrotools.models.base import RequestedCall
from agrotools.runner.prompts import StoredPrompts, stored_image

RESULTS = Path(__file__).parent / "results"
TOOL, VALUE, MASK = "analyze_lesions", "severity_pct", "Picture lesion_mask"
LEAF_RGB, LESION_RGB = (86, 180, 233), (213, 94, 0)
"""Colours of the mask, as its key in the overlay shows them."""
NEAR = 60
"""Distance of a colour (of at most 442) up to which JPEG changes it."""
APART = 1.0
"""Points between text and mask from which the doubting model takes the mask: twice what JPEG and scaling change."""


def severity_of(picture: ImagePart) -> float | None:
    """Return the percentage of a leaf that is lesions in a mask as it is shown; None if no leaf is in it."""
    encoded = picture.url.partition(",")[2]
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        pixels = np.asarray(image.convert("RGB"), dtype=np.float32)
    leaf, lesions = (
        int((np.linalg.norm(pixels - np.array(colour), axis=2) < NEAR).sum())
        for colour in (LEAF_RGB, LESION_RGB)
    )
    return 100 * lesions / (leaf + lesions) if leaf + lesions else None


class Planted:
    """Model that makes the reference calls, and takes the severity of a leaf from text or picture (``reads``)."""

    def __init__(self, samples: Sequence[Sample], reads: str) -> None:
        self.name = f"planted-{reads}"
        self.stats = WireStats()
        self._samples = {sample.query: sample for sample in samples}
        self._reads = reads

    async def generate(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],  # noqa: ARG002
        settings: ModelSettings,  # noqa: ARG002
    ) -> Completion:
        """Return the next reference call, or the answer that follows from what was read."""
        self.stats.replies += 1
        question = next(each for each in messages if each.role == "user")
        sample = next(
            each for query, each in self._samples.items() if question.text.endswith(query)
        )
        view = SampleView(
            id=sample.id, query=sample.query, files=(), toolset=sample.toolset, answer_form=""
        )
        action = await OraclePolicy(sample).act(view, self._read(messages))
        if isinstance(action, CallTools) and messages[-1].text.find("Now copy") == -1:
            calls = [
                RequestedCall(
                    name=call.tool, arguments=json.dumps(call.arguments), id=f"call{at:05}"
                )
                for at, call in enumerate(action.calls)
            ]
            return Completion(tool_calls=tuple(calls), finish_reason="tool_calls")
        assert isinstance(action, Answer)
        return Completion(text=action.text)

    def _read(self, messages: Sequence[Message]) -> list[Step]:
        """Return the calls so far with the results that this model believes."""
        steps: list[Step] = []
        for message in messages:
            if message.role == "tool":
                told = re.search(r"<observation>(.*)</observation>", message.text, re.DOTALL)
                data: dict[str, Any] = json.loads(told[1].replace("<\\/", "</")) if told else {}
                result = data.get("result")
                if self._reads == "picture" and isinstance(result, dict):
                    result = {name: value for name, value in result.items() if name != VALUE}
                observation = Observation(result=result)
                call = ToolCall(tool=str(data.get("tool")), arguments={})
                steps.append(Step(turn=len(steps), kind="call", call=call, observation=observation))
            elif message.role == "user" and self._reads != "text" and steps:
                steps = self._corrected(steps, message)
        return steps

    def _corrected(self, steps: list[Step], message: Message) -> list[Step]:
        """Return the steps with the severity that the mask in a message shows."""
        parts = message.content
        for caption, picture in pairwise(parts):
            if not (isinstance(caption, TextPart) and isinstance(picture, ImagePart)):
                continue
            if not caption.text.startswith(MASK):
                continue
            seen, last = severity_of(picture), steps[-1]
            result = dict(last.observation.result or {}) if last.observation else {}
            told = result.get(VALUE)
            if seen is None:
                continue
            if not isinstance(told, int | float) or abs(seen - told) > APART:
                result[VALUE] = round(seen, 2)
            observation = Observation(result=result)
            steps = [*steps[:-1], last.model_copy(update={"observation": observation})]
        return steps

    async def close(self) -> None:
        """Nothing is open."""


SEVERITY = re.compile(rf"steps\[(\d+)\]\.observation\.{VALUE}\b")


def asks_for_severity(sample: Sample) -> bool:
    """Return True for an answerable question whose whole answer is read from severities of leaves."""
    if not sample.answerable or sample.reference is None:
        return False
    for slot in sample.answer:
        source = SEVERITY.match(str(getattr(slot, "from_", "")))
        if source is None or sample.reference.steps[int(source[1])].tool != TOOL:
            return False
    return True


class Row(NamedTuple):
    """Score of a planted model on the questions about the severity of a leaf."""

    reads: str
    tool_images: bool
    faults: str
    questions: int
    fas: float
    low: float
    high: float


def measure_gain(benchmark: Benchmark, work: Path) -> list[Row]:
    """Return the scores of the planted models in all conditions."""
    asked = [sample for sample in benchmark.samples if asks_for_severity(sample)]
    part = replace(benchmark, samples=asked)
    rows: list[Row] = []
    for reads in ("text", "picture", "both"):
        for shown in (False, True):
            for faults in ("", "noise=1"):
                folder = work / f"{reads}-{shown}-{faults or 'none'}"
                run = at.evaluate(
                    part,
                    Planted(asked, reads),
                    mode="end-to-end",
                    protocol="tool-calling",
                    tool_images=shown,
                    faults=faults or None,
                    out=folder,
                )
                found = run.summary.modes["end-to-end"].metrics["fas"].overall
                assert found.interval is not None
                low, high = found.interval.lower, found.interval.upper
                rows.append(Row(reads, shown, faults, len(asked), found.value, low, high))
    return rows


TOKENS: Mapping[str, Callable[[int, int], float]] = {
    # OpenAI, "Images and vision": 85, and 170 for each tile of 512 px (high detail, up to 2048 x 768).
    "openai_tiles": lambda width, height: 85 + 170 * -(-width // 512) * -(-height // 512),
    # Anthropic, "Vision": width times height by 750.
    "anthropic": lambda width, height: width * height / 750,
    # Qwen2.5-VL: one for each 28 x 28 px.
    "qwen2.5-vl": lambda width, height: round(width / 28) * round(height / 28),
}


def pictures_of_results(run: at.Run) -> Iterator[Path]:
    """Yield the pictures of results in the last request of each sample, as the run stores them."""
    prompts = StoredPrompts(run.path)
    for record in run.samples("end-to-end"):
        requests = prompts.of((record.mode, record.sample.id, record.epoch)) or []
        question = next(each for each in requests[-1].messages if each["role"] == "user")
        for message in requests[-1].messages:
            parts = message["content"] if isinstance(message["content"], list) else []
            for part in parts:
                if message is not question and part["type"] == "image_url":
                    stored = stored_image(run.path, part["image_url"]["url"])
                    assert stored is not None
                    yield run.path / stored.file


def measure_cost(benchmark: Benchmark, work: Path) -> dict[str, float]:
    """Return what the pictures of results add to the last request of a question, on average over the quick part."""
    quick = [each for each in benchmark.samples if each.id in benchmark.header.quick]
    part = replace(benchmark, samples=[each for each in quick if each.reference])
    run = at.evaluate(
        part,
        Planted(part.samples, "text"),
        mode="end-to-end",
        protocol="tool-calling",
        tool_images=True,
        out=work / "cost",
    )
    contents = [path.read_bytes() for path in pictures_of_results(run)]
    sizes = [Image.open(io.BytesIO(each)).size for each in contents]
    n = len(part.samples)
    tokens = {
        f"tokens_{vendor}": sum(count(*size) for size in sizes) / n
        for vendor, count in TOKENS.items()
    }
    return {
        "questions": n,
        "pictures": len(sizes) / n,
        "kilobytes": sum(map(len, contents)) / n / 1000,
    } | tokens


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("work", type=Path, help="folder of the runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the two tables")
    given = parser.parse_args()
    benchmark = at.load_benchmark("embedded")
    cost = measure_cost(benchmark, given.work)
    rows = measure_gain(benchmark, given.work)
    write_table(given.out / "tool_images_cost.csv", ("a question", "mean"), cost.items())
    write_table(given.out / "tool_images_gain.csv", Row._fields, rows)


def write_table(path: Path, heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(heading)
        for row in rows:
            table.writerow(round(each, 3) if isinstance(each, float) else each for each in row)
    print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
