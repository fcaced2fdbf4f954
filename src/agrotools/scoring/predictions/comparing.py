"""A prediction file scored twice: as published, and corrected."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from agrotools.core import BenchmarkError, OptionsSlot
from agrotools.scoring.corrected import agent_x as corrected_agent_x
from agrotools.scoring.corrected import gta_family as corrected_family
from agrotools.scoring.corrected.thinkgeo import with_llm_score
from agrotools.scoring.embedders import Embedder
from agrotools.scoring.error_classes import Errors
from agrotools.scoring.error_taxonomy import errors_of_dialogues
from agrotools.scoring.error_taxonomy_agent_x import errors_of_agent_x
from agrotools.scoring.figures import Part, SampleParts, Scores, summed
from agrotools.scoring.keyword_extraction import keywords
from agrotools.scoring.knowledge_answers import read_options, text_values
from agrotools.scoring.loose import zeroes
from agrotools.scoring.predictions import agent_x_files, agrieval_files, gta_files
from agrotools.scoring.predictions.json_files import without_collecting
from agrotools.scoring.predictions.thinkgeo_log import read_log
from agrotools.scoring.reference import agent_x, agrieval, gta_family, thinkgeo
from agrotools.scoring.reference.agent_x_errors import error_analysis
from agrotools.scoring.reference.agrieval_open import score_open
from agrotools.scoring.reference.gta import RULES as GTA_RULES
from agrotools.scoring.reference.gta_family import Dialogue
from agrotools.scoring.reference.stops import PublishedScorerStops

Format = Literal["gta", "thinkgeo", "agentx", "agrieval"]
FORMATS: tuple[Format, ...] = ("gta", "thinkgeo", "agentx", "agrieval")

_NO_DATA = "needs the data set, which holds the answers (--data)"
_OF_ANSWERS = ("text_answers", "objective", "subjective", "no_text_answer", "image_tasks", "unscorable")
"""Counts that say nothing without the answers."""
_ASKS_NOTHING: Mapping[str, Any] = {"whitelist": [], "blacklist": None}


@dataclass(frozen=True)
class Compared:
    """``published``: None where the published scorer stops or has nothing to count; ``stop`` says why.

    ``extra``: counts that only one benchmark has, by what they are; ``count_stops``: which of them the published code
    does not come to, and why. ``malformed``: what in the files is not what it should be, by its place; it is wrong in
    the corrected figures.
    """

    format: Format
    mode: str
    samples: int
    published: Scores | None
    corrected: Scores
    errors: Errors | None
    """None of examination questions, which call no tools."""
    stop: str | None = None
    extra: Mapping[str, Mapping[str, int | None]] | None = None
    count_stops: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()


def compare_file(
    format_: Format,
    path: Path,
    *,
    data: Path | None = None,
    judgements: Path | None = None,
    embedder: Embedder | None = None,
) -> Compared:
    """Scores a prediction file both ways. Without an ``embedder`` metrics that need one are left out (of GTA and
    ThinkGeo; Agent-X has none).

    Raises:
        BenchmarkError: a file cannot be read, or files do not belong together.
    """
    with without_collecting():
        if format_ == "agrieval":
            return _agrieval(path)
        if format_ == "agentx":
            return _agent_x(path, data, judgements)
        return _gta_family(format_, path, data, judgements, embedder)


def _gta_family(
    format_: Format,
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


def _agrieval(path: Path) -> Compared:
    results = agrieval_files.read_results(path)
    published = Scores("", {}, {})
    stops: list[str] = []
    for score, entries in ((agrieval.score_choices, results.choices), (score_open, results.open_questions)):
        try:
            found = score(entries) if entries else published
        except PublishedScorerStops as error:
            stops.append(error.message)
            continue
        published = replace(
            published,
            metrics={**published.metrics, **found.metrics},
            counts={**published.counts, **found.counts},
            left_out={**published.left_out, **found.left_out},
        )
    samples = tuple(_parts(each) for each in results.answered)
    metrics = dict.fromkeys(metric for sample in samples for metric in sample.parts)
    counts = zeroes("choices", "open_questions", "without_reply")
    for each in results.answered:
        counts["choices" if each.slot.type == "options" else "open_questions"] += 1
        counts["without_reply"] += not each.replies
    ours = Scores("", summed(samples, metrics), counts, {}, samples)
    mode = " and ".join(name.replace("_", " ") for name in ("choices", "open_questions") if counts[name])
    stop = "; ".join(stops) or None
    return Compared("agrieval", mode, len(samples), published, ours, None, stop, malformed=results.malformed)


def _parts(each: agrieval_files.Answered) -> SampleParts:
    """Several replies to a question count as their mean; no reply as one without a letter or a word in it."""
    rows = [
        read_options(each.slot, reply)[1] if isinstance(each.slot, OptionsSlot) else text_values(each.slot, reply)
        for reply in each.replies or ("",)
    ]
    mine = [name for name in rows[0] if not name.endswith("_published")]
    return SampleParts(each.key, {name: Part(sum(row[name] for row in rows) / len(rows), 1) for name in mine})


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


def finite(value: float | None) -> float | None:
    """None for a figure that is no number."""
    return value if value is not None and math.isfinite(value) else None
