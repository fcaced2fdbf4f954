"""A prediction file scored twice: as published, and corrected."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agrotools.core import BenchmarkError
from agrotools.plugin import PredictionFormat, PredictionInput
from agrotools.scoring.corrected import agent_x as corrected_agent_x
from agrotools.scoring.corrected import gta_family as corrected_family
from agrotools.scoring.corrected.thinkgeo import with_llm_score
from agrotools.scoring.embedders import Embedder
from agrotools.scoring.error_taxonomy import errors_of_dialogues
from agrotools.scoring.error_taxonomy_agent_x import errors_of_agent_x
from agrotools.scoring.figures import Scores
from agrotools.scoring.keyword_extraction import keywords
from agrotools.scoring.predictions import agent_x_files, gta_files
from agrotools.scoring.predictions.compared import Compared
from agrotools.scoring.predictions.thinkgeo_log import read_log
from agrotools.scoring.reference import agent_x, gta_family, thinkgeo
from agrotools.scoring.reference.agent_x_errors import error_analysis
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


def _agent_x(path: Path, data: Path | None, judgements: Path | None) -> Compared:
    is_table = path.suffix.lower() == ".csv"
    predictions, malformed = ([], []) if is_table else agent_x_files.read_predictions(path)
    entries = agent_x_files.read_data(data) if data is not None else None
    source = path if is_table else judgements
    table = agent_x_files.read_judgements(source) if source is not None else None
    published: Scores | None = None
    stop = None
    try:
        if table is not None:
            published = agent_x.aggregate(_numbers(table) if table.raw else table.rows)
    except PublishedScorerStops as error:
        stop = error.message
    if table is None:
        stop = "needs what the judge said (--judgements)"
    extra, count_stops = _published_counts(predictions, entries)
    corrected = corrected_agent_x.score(table, predictions, entries)
    errors = errors_of_agent_x(predictions, entries)
    samples = corrected.counts["samples"]
    malformed += table.malformed if table is not None else ()
    return Compared(
        "agentx", "single-shot", samples, published, corrected, errors, stop, extra, count_stops, tuple(malformed)
    )


def _published_counts(
    predictions: Sequence[Any], entries: Mapping[str, Mapping[str, Any]] | None
) -> tuple[dict[str, Mapping[str, int | None]], tuple[str, ...]]:
    """What Agent-X's code counts in predictions. Each count stands by itself: where its own code ends with an
    exception, that is said, and it is counted by the same rule with what is malformed as empty."""
    if not predictions:
        return {}, ()
    extra: dict[str, Mapping[str, int | None]] = {}
    stops: list[str] = []
    raw = {key: [sample] for key, sample in entries.items()} if entries is not None else None
    try:
        extra["tool calls as published"] = agent_x.tool_call_statistics(predictions).as_counts()
    except PublishedScorerStops as stop:
        extra[f"tool calls, {_MENDED}"] = agent_x.tool_call_statistics(agent_x.mended(predictions)).as_counts()
        stops.append(f"tool calls: {stop.message}")
    errors = error_analysis(predictions, raw, keywords)
    extra["errors as published"] = {"samples": errors.samples, **errors.counts}
    if errors.stops:
        again = error_analysis(agent_x.mended(predictions), raw, keywords).counts
        extra[f"errors, {_MENDED}"] = {error: again.get(error) for error in errors.stops}
        stops += [f"{error}: {stop.message}" for error, stop in errors.stops.items()]
    return extra, tuple(stops)


_MENDED = "what is malformed taken as empty"


def _numbers(table: agent_x_files.JudgeTable) -> list[dict[str, float | None]]:
    """Whole replies as numbers, by our reading: how the published tables read them is not known."""
    return [
        {column: score.value for column, score in scores.items() if column in row}
        for row, scores in zip(table.rows, table.scores, strict=True)
    ]


_CALLS_ONCE = "each call counts once, failed ones never"
_ANSWERS = "signs, decimals and thousands are read"
_OBJECTIVE = "the same, objective answers alone"
_IMAGES = "all image calls count, and none is free"
_READ = "missing or unreadable is 0"

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
_JUDGED = ("ground_s", "tool_p", "tool_acc", "faith_acc", "context_s", "fact_p", "sem_acc", "step_s", "clarity")
_AGENT_X = {
    **dict.fromkeys((*_JUDGED, "reward"), _READ),
    "goal_acc": f"generative tasks by their type; {_READ}",
    "goal_acc_imggen": f"generative tasks by their type, tool sets by code; {_READ}",
    "toolset_acc": "replaced by toolset_f1",
    "toolset_f1": "tool sets are compared by code",
}
"""What each corrected metric does otherwise; docs/reference-scorers.md says it at length, with a worked number each."""


def _gta(given: PredictionInput) -> Compared:
    return _gta_family("gta", given.file, given.data, given.judgements, given.embedder)


def _thinkgeo(given: PredictionInput) -> Compared:
    return _gta_family("thinkgeo", given.file, given.data, given.judgements, given.embedder)


def _agentx(given: PredictionInput) -> Compared:
    return _agent_x(given.file, given.data, given.judgements)


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
AGENT_X_FORMAT = PredictionFormat(
    "Agent-X",
    "agent_x",
    _agentx,
    _by_family("agent_x", _AGENT_X),
    refused={"embedder": ("Agent-X compares no texts by cosines: --embedder is for gta and thinkgeo", "leave it out")},
)
