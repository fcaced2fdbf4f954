"""Benchmark from recorded sessions (``agrotools serve --record``), for review: ``--source sessions=RUN``."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agrotools.build.export.folder import write_benchmark
from agrotools.build.sources.part import TABLES
from agrotools.core import FAMILY_OF_TASK_TYPE, BenchmarkError, ReferenceTextsSlot, Sample
from agrotools.core.base import Progress, count_text, no_progress
from agrotools.formats.benchmark import FILES_FOLDER, BenchmarkHeader
from agrotools.formats.writing import canary_of, replace_folder
from agrotools.runner.records import RecordIndex
from agrotools.runner.store import read_manifest
from agrotools.serve.recording import BENCHMARK, FILES, NOT_STATED, reference_of

_TASK_TYPES: Mapping[str, str] = TABLES["sessions"]
"""Task types by the last tool."""
_OTHER_TASK_TYPE = "crop_disease"
_UNCHECKED = "the answer is what the client told its user; it is not checked"


def build_sessions(run: Path, out: Path, progress: Progress = no_progress) -> BenchmarkHeader:
    """Write a benchmark folder with one sample for each recorded session that has a question, calls and an answer.

    The reference calls are those of the client that succeeded. Its answer becomes the reference text; source and
    description say that nobody has checked it. The task type, for grouping only, is that of the last tool.
    """
    manifest = read_manifest(run)
    if manifest.benchmark != BENCHMARK:
        raise BenchmarkError(
            f"{run} is not a run of recorded sessions", hint="give the folder of agrotools serve --record"
        )
    samples: list[Sample] = []
    count = 0
    for count, record in enumerate(RecordIndex(run), start=1):
        answer = record.trajectory.answer if record.trajectory else None
        reference = reference_of(record.trajectory) if record.trajectory else None
        if answer and reference and reference.steps and record.sample.query != NOT_STATED:
            known = [_TASK_TYPES[step.tool] for step in reference.steps if step.tool in _TASK_TYPES]
            task_type = known[-1] if known else _OTHER_TASK_TYPE
            changes: dict[str, Any] = {
                "reference": reference,
                "answer": (ReferenceTextsSlot(name="answer", label="the answer to the question", values=(answer,)),),
                "source": f"{record.sample.source}, answer unchecked",
                "task_type": task_type,
                "family": FAMILY_OF_TASK_TYPE[task_type],
            }
            samples.append(record.sample.model_copy(update=changes))
        progress("sessions", count, count)
    if not samples:
        why = f"none of {count_text(count, 'session')} in {run} has a question, a successful call and an answer"
        raise BenchmarkError(why, hint="clients state them with the tools begin_task and end_task")
    header = BenchmarkHeader(
        name=BENCHMARK,
        version="1",
        licence="not stated: files and questions are those of the user",
        description=f"Recorded sessions of MCP clients. Not reviewed: {_UNCHECKED}.",
        toolset=tuple(manifest.toolset),
        canary=canary_of(BENCHMARK, "1"),
        metadata={"sessions": count, "left_out": count - len(samples)},
    )
    with replace_folder(out) as folder:
        (folder / FILES_FOLDER).mkdir()
        for place in {file.path for sample in samples for file in sample.files}:
            shutil.copyfile(run / FILES / place, folder / place)
        write_benchmark(folder, header, samples)
    return header
