"""Benchmark folders of questions without files: as many as a test wants, each with an answer of its own."""

from pathlib import Path

import tomli_w

from agrotools.core import ExactSlot
from support.plain_sample import plain_sample


def write_text_benchmark(
    folder: Path, count: int, *, bare: bool = False, **changes: object
) -> Path:
    """``count`` samples ``q0``, ``q1``...; the right answer to ``qN`` is the line ``value: N``.

    With ``bare``, a sample is one request: no form is asked for.
    """
    folder.mkdir(parents=True)
    header = {
        "name": "questions",
        "version": "1",
        "licence": "CC0-1.0",
        "toolset": ["calculate"],
        "modes": ["no-tool", "end-to-end"],
        "bare": bare,
    }
    (folder / "benchmark.toml").write_text(tomli_w.dumps(header), encoding="utf-8")
    with (folder / "samples.jsonl").open("w", encoding="utf-8") as lines:
        for number in range(count):
            sample = plain_sample(
                f"q{number}",
                query=f"What is the value of plot {number}?",
                toolset=("calculate",),
                answer=(ExactSlot(name="value", label="value of the plot", value=number),),
                **changes,
            )
            lines.write(sample.model_dump_json(by_alias=True, exclude_none=True) + "\n")
    return folder
