"""Thoughts for reference chains, from traces that confirm them."""

import re
from collections.abc import Mapping

from agrotools.build.assist.reference_traces.records import TraceRecord
from agrotools.core import ReferenceTrajectory, Sample

_LONGEST = 600
_TALK = re.compile(r"\b(?:action|action input|observation|final answer|thought)\s*:|<\/?\w+>|```", re.IGNORECASE)


def with_thoughts(sample: Sample, record: TraceRecord) -> Sample:
    """``sample`` with the model's thoughts where its reference has none, if the trace confirms the chain.

    Thoughts are shown as history in step-by-step. So one that is long, or holds what looks like a call, an observation
    or an answer, is left out.
    """
    if sample.reference is None or not record.confirms:
        return sample
    said: Mapping[int, str] = {step.reference_step: _plain(step.thought) for step in record.steps}
    steps = tuple(
        step if step.thought or not said.get(number) else step.model_copy(update={"thought": said[number]})
        for number, step in enumerate(sample.reference.steps)
    )
    if steps == sample.reference.steps:
        return sample
    reference = ReferenceTrajectory(steps=steps)
    return sample.model_copy(
        update={"reference": reference, "metadata": {**sample.metadata, "thoughts_by": record.model}}
    )


def _plain(thought: str) -> str:
    text = " ".join(thought.split())
    return "" if len(text) > _LONGEST or _TALK.search(text) else text
