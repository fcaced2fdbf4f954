"""ThinkGeo's judged metric from a saved log, where ``Yes.`` is yes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agrotools.scoring.figures import Part, SampleParts, Scores, summed
from agrotools.scoring.judging.replies import read_yes_no
from agrotools.scoring.reference.thinkgeo import Judgement
from agrotools.text.loose_json import is_list, is_object

LLM_SCORE = "thinkgeo.llm_score_corrected"


def with_llm_score(scores: Scores, judgements: Sequence[Judgement], data: Mapping[str, Any]) -> Scores:
    """``scores`` with :data:`LLM_SCORE`, over all samples that the data set has questions for.

    A sample passes where each reply begins with yes, whatever follows, and there is a reply to each of its questions;
    one that was not judged does not. ``scores`` has one sample for each entry of ``data``, in its order.
    """
    said = {judgement.position: judgement.replies for judgement in judgements}
    samples: list[SampleParts] = []
    for position, (sample, entry) in enumerate(zip(scores.samples, data.values(), strict=True)):
        questions: Any = entry.get("evaluation") if is_object(entry) else None
        if not is_list(questions) or not questions:
            samples.append(sample)
            continue
        replies = said.get(position, ())
        passed = len(replies) >= len(questions) and all(read_yes_no(reply) == 1 for reply in replies)
        samples.append(replace(sample, parts={**sample.parts, LLM_SCORE: Part(float(passed), 1)}))
    metrics = {**scores.metrics, **summed(samples, [LLM_SCORE])}
    return replace(scores, metrics=metrics, samples=tuple(samples))
