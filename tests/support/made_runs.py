"""Run folders written by hand, with benchmark files and artifacts, for tests of reports."""

import hashlib
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PIL import Image

from agrotools.core import (
    Answer,
    Artifact,
    CallTools,
    ErrorInfo,
    Observation,
    Record,
    ReferenceStep,
    ReferenceTrajectory,
    Sample,
    SampleFile,
    Step,
    ToleranceSlot,
    ToolCall,
    Trajectory,
)
from agrotools.core.files import artifact_path
from agrotools.runner.records import Key, record_index
from agrotools.runner.store import RunStore
from support.runs import manifest

ATTACKS = (
    "</script><img src=x onerror=window.hit=1>", "<script>window.hit=1</script>", '"><svg onload=window.hit=1>',
    "javascript:window.hit=1", "</style></template></textarea><iframe src=http://127.0.0.1:9/></iframe>",
    "<!--<script>{{ 7 * 7 }}${window.hit=1}\u2028window.hit=1\u202e",
    "<base href=http://127.0.0.1:9/><meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
)  # fmt: skip
ATTACK = " ".join(ATTACKS)


def picture(
    colour: tuple[int, int, int], size: tuple[int, int] = (80, 60), form: str = "JPEG"
) -> bytes:
    """A picture of one colour."""
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, form)
    return buffer.getvalue()


def made_sample(name: str = "s1", **changes: Any) -> Sample:
    """Needs ``2*3`` and then one more; one photo."""
    steps = (
        ReferenceStep(
            tool="calculate",
            arguments={"expression": "2*3"},
            observation=Observation(result={"value": 6.0}),
        ),
        ReferenceStep(
            tool="calculate",
            arguments={"expression": "6 + 1"},
            observation=Observation(result={"value": 7.0}),
        ),
    )
    fields: dict[str, Any] = {
        "id": name,
        "query": f"How many rows are there in {name}?",
        "files": (SampleFile(name="image_1.jpg", path=f"files/{name}.jpg", kind="image"),),
        "family": "CM",
        "task_type": "organ_counting",
        "answer_type": "tolerance",
        "template": "rows",
        "source": "drawn",
        "toolset": ("calculate",),
        "reference": ReferenceTrajectory(steps=steps),
        "answer": (
            ToleranceSlot.model_validate(
                {
                    "name": "rows",
                    "label": "number of rows",
                    "value": 7,
                    "from": "steps[1].observation.value",
                }
            ),
        ),
    }
    return Sample.model_validate(fields | changes)


def call(expression: str, turn: int = 0, **changes: Any) -> Step:
    """A call of ``calculate`` that went well."""
    fields: dict[str, Any] = {
        "turn": turn,
        "kind": "call",
        "call": ToolCall(tool="calculate", arguments={"expression": expression}),
        "observation": Observation(result={"value": 1.0}),
    }
    return Step.model_validate(fields | changes)


def end_to_end(
    sample: Sample, *steps: Step, answer: str | None = "rows: 7", **changes: Any
) -> Record:
    """A record that ends with ``answer``, or without one."""
    last = () if answer is None else (Step(turn=9, kind="answer", text=answer),)
    ended = Trajectory(
        steps=(*steps, *last), termination="max_steps" if answer is None else "answered"
    )
    return Record.model_validate(
        {"sample": sample, "mode": "end-to-end", "trajectory": ended} | changes
    )


def right(sample: Sample) -> Record:
    """A record of the reference calls and the right answer."""
    return end_to_end(sample, call("2*3"), call("6 + 1", 1))


def predicted(sample: Sample, *expressions: str, answer: str = "rows: 7") -> Record:
    """A step-by-step record of calls of ``calculate`` and an answer."""
    calls = [
        CallTools(calls=(ToolCall(tool="calculate", arguments={"expression": each}),))
        for each in expressions
    ]
    return Record(sample=sample, mode="step-by-step", actions=(*calls, Answer(text=answer)))


def write_run(folder: Path, records: Iterable[Record], **changes: Any) -> Path:
    """A run folder with these records, whose benchmark is ``folder/../benchmark``."""
    records = list(records)
    modes = tuple(dict.fromkeys(record.mode for record in records))
    about = {"benchmark_path": str(folder.parent / "benchmark"), "modes": modes}
    with RunStore(folder, manifest(**{**about, **changes})) as store:
        for record in records:
            store.append(record)
    return folder


def finished_keys(folder: Path) -> set[Key]:
    """Return the keys of the records of a run that are not invalid."""
    index = record_index(folder)
    return {key for key in index.each_key() if index.has_finished(key)}


def write_files(folder: Path, samples: Iterable[Sample]) -> Path:
    """``folder/benchmark`` with a photo for every file of ``samples``."""
    root = folder / "benchmark"
    (root / "files").mkdir(parents=True, exist_ok=True)
    (root / "benchmark.toml").write_text('name = "b"\n')
    for number, sample in enumerate(samples):
        for file in sample.files:
            (root / file.path).write_bytes(picture((40, 90 + number % 100, 30)))
    return root


def keep(run: Path, content: bytes, name: str = "overlay.png", kind: str = "overlay") -> Artifact:
    """An artifact of ``run``."""
    sha256 = hashlib.sha256(content).hexdigest()
    path = artifact_path(run, sha256, Path(name).suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return Artifact.model_validate(
        {"name": name, "kind": kind, "media_type": "image/png", "sha256": sha256}
    )


def hostile_run(folder: Path) -> Path:
    """A run in which everything that others write is an attack on whoever looks at it."""
    sample = made_sample(
        query=ATTACK,
        source=ATTACK,
        template=ATTACK,
        task_type=ATTACK,
        family=ATTACK,
        cluster=ATTACK,
        files=(
            SampleFile(
                name="image_1.jpg", path="files/s1.jpg", kind="image", note=ATTACK, bands=(ATTACK,)
            ),
        ),
        answer=(ToleranceSlot(name="rows", label=ATTACK, value=7, unit=ATTACK),),
    )
    failed = Observation(
        error=ErrorInfo(
            kind="tool_failed", message=ATTACK, argument=ATTACK, hint=ATTACK, candidates=(ATTACK,)
        )
    )
    drawn = Observation(
        result={
            ATTACK: ATTACK,
            "notes": [ATTACK],
            "flags": ATTACK,
        },  # flags of a tool that is not ours
        artifacts=(
            Artifact(name=ATTACK, kind="overlay", media_type=ATTACK, sha256="../../../etc/passwd"),
            Artifact(name=f"a{ATTACK}.png", kind="plot", media_type=ATTACK, sha256="0" * 64),
        ),
    )
    steps = (
        call(ATTACK, thought=ATTACK, observation=failed),
        Step(
            turn=1,
            kind="call",
            call=ToolCall(tool=ATTACK, arguments={ATTACK: ATTACK}),
            observation=drawn,
        ),
        Step(turn=2, kind="unparseable", text=ATTACK, reason=ATTACK),
    )
    records = [
        end_to_end(sample, *steps, answer=f"rows: 9 {ATTACK}"),
        predicted(sample, ATTACK, "6 + 1", answer=ATTACK),
        Record(sample=made_sample("s2", query=ATTACK), mode="end-to-end", invalid=ATTACK),
    ]
    return write_run(
        folder,
        records,
        model=ATTACK,
        benchmark=ATTACK,
        benchmark_version=ATTACK,
        base_url=ATTACK,
        settings={ATTACK: ATTACK},
        backends={ATTACK: ATTACK},
        libraries={ATTACK: ATTACK},
        toolset={ATTACK: ATTACK},
    )
