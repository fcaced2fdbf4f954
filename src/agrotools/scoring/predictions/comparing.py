"""A prediction file scored twice: as published, and corrected."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agrotools.core import BenchmarkError
from agrotools.plugin import PredictionFormat, PredictionInput
from agrotools.scoring.corrected import gta_family as corrected_family
from agrotools.scoring.corrected.thinkgeo import with_llm_score
from agrotools.scoring.embedders import Embedder
from agrotools.scoring.error_taxonomy import errors_of_dialogues
from agrotools.scoring.figures import Scores
from agrotools.scoring.predictions import gta_files
from agrotools.scoring.predictions.compared import Compared
from agrotools.scoring.predictions.thinkgeo_log import read_log
from agrotools.scoring.reference import gta_family, thinkgeo
from agrotools.scoring.reference.gta import RULES as GTA_RULES
from agrotools.scoring.reference.gta_family import Dialogue
from agrotools.scoring.reference.stops import PublishedScorerStops

_NO_DATA = "needs the data set, which holds the answers (--data)"
_OF_ANSWERS = ("text_answers", "objective", "subjective", "no_text_answer", "image_tasks", "unscorable")
"""Counts that say nothing without the answers."""
_ASKS_NOTHING: Mapping[str, Any] = {"whitelist": [], "blacklist": None}


def _gta_family(
    format_: str,
    path: Path,
    data: Path | None,
    judgements: Path | None,
    embedder: Embedder | None,
) -> Compared:
    similarity, name = (embedder.similarity, embedder.name) if embedder else (None, None)
    rules = GTA_RULES if format_ == "gta" else thinkgeo.RULES
    predictions = gta_files.read_predictions(path)
    entries = gta_files.read_data(data) if data is not None else None
    joined = gta_files.joined(predictions, entries)
    everything = joined.scored
    by_step = predictions.mode == "step-by-step"
    if judgements is not None and by_step:
        raise BenchmarkError(
            f"{path.name} holds step-by-step predictions, which nobody judges", hint="leave out the judgements"
        )
    log, malformed = None, list(joined.malformed)
    if judgements is not None and format_ == "thinkgeo":
        log, wrong = read_log(judgements)
        malformed += wrong
    stop = None
    published: Scores | None = None
    try:
        samples = joined.samples if entries is not None else _asking_nothing(joined.samples)
        if by_step:
            published = gta_family.score_steps(samples, rules, similarity)
        elif format_ == "gta":
            published = gta_family.score_end(samples, rules, similarity)
        else:
            published = thinkgeo.score_end(samples, similarity, data=entries, judgements=log)
        published = replace(published, embedder=name)
    except PublishedScorerStops as error:
        stop = error.message
    score = corrected_family.score_steps if by_step else corrected_family.score_end
    corrected = score(everything, rules, similarity, embedder=name)
    if log is not None and entries is not None:
        corrected = with_llm_score(corrected, log, entries)
    if entries is None:
        published = published and _without_answers(published, rules.image_metric)
        corrected = _without_answers(corrected, rules.image_metric)
    errors = errors_of_dialogues(everything)
    return Compared(
        format_, predictions.mode, len(everything), published, corrected, errors, stop, malformed=tuple(malformed)
    )


def _asking_nothing(samples: tuple[Dialogue, ...]) -> tuple[Dialogue, ...]:
    """So that figures which do not depend on answers can be had without them; the others are left out afterwards."""
    return tuple(replace(sample, answer=_ASKS_NOTHING) for sample in samples)


def _without_answers(scores: Scores, image_metric: str) -> Scores:
    names = ("summ_acc", "summ_acc_objective", "ans_acc", "ans_acc_objective", image_metric, "llm_score")
    hidden = [f"{prefix}.{name}{end}" for prefix in ("gta", "thinkgeo") for name in names for end in ("", "_corrected")]
    # The published InstAcc counts text answers in its denominator.
    hidden += ["gta.inst_acc", "thinkgeo.inst_acc"]
    gone = [name for name in (*scores.metrics, *scores.left_out) if name in hidden]
    kept = {name: figure for name, figure in scores.metrics.items() if name not in hidden}
    counts = {name: count for name, count in scores.counts.items() if name not in _OF_ANSWERS}
    return replace(scores, metrics=kept, counts=counts, left_out={**scores.left_out, **dict.fromkeys(gone, _NO_DATA)})


_CALLS_ONCE = "each call counts once, failed ones never"
_ANSWERS = "signs, decimals and thousands are read"
_OBJECTIVE = "the same, objective answers alone"
_IMAGES = "all image calls count, and none is free"


_STEPS = {
    "inst_acc": "over all gold steps, missing ones wrong",
    "tool_acc": "missing steps are wrong",
    "arg_acc": "defaults, folders, blanks aside; true is not 1",
    "arg_acc_agreement": "sums by value, boxes by overlap, texts by words",
    "summ_acc": _ANSWERS,
    "summ_acc_objective": _OBJECTIVE,
}
_END = {
    "ans_acc": _ANSWERS,
    "ans_acc_objective": _OBJECTIVE,
    "p_f1": _CALLS_ONCE,
    "o_f1": _CALLS_ONCE,
    "l_f1": _CALLS_ONCE,
}
_GTA = _STEPS | _END | {"ans_acc_imggen": _IMAGES, "c_f1": _CALLS_ONCE}
_THINKGEO = _STEPS | _END | {"ans_i": _IMAGES, "llm_score": "a reply may say more than yes"}
"""What each corrected metric does otherwise; docs/reference-scorers.md says it at length, with a worked number each."""


def _gta(given: PredictionInput) -> Compared:
    return _gta_family("gta", given.file, given.data, given.judgements, given.embedder)


def _thinkgeo(given: PredictionInput) -> Compared:
    return _gta_family("thinkgeo", given.file, given.data, given.judgements, given.embedder)


def _by_family(family: str, differences: Mapping[str, str]) -> dict[str, str]:
    return {f"{family}.{name}": text for name, text in differences.items()}


GTA_FORMAT = PredictionFormat(
    "GTA",
    "gta",
    _gta,
    _by_family("gta", _GTA),
    refused={"judgements": ("GTA has no judge: --judgements is for thinkgeo and agentx", "leave it out")},
)
THINKGEO_FORMAT = PredictionFormat("ThinkGeo", "thinkgeo", _thinkgeo, _by_family("thinkgeo", _THINKGEO))
