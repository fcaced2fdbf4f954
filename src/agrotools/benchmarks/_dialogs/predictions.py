"""Prediction files of GTA and ThinkGeo, scored twice: as published, and corrected."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.benchmarks._dialogs import corrected_scorer, published_scorer
from agrotools.benchmarks._dialogs.error_classes import errors_of_dialogues
from agrotools.benchmarks._dialogs.prediction_files import join_data, read_data, read_predictions
from agrotools.benchmarks._dialogs.published_scorer import Dialogue, Rules
from agrotools.core import BenchmarkError
from agrotools.plugin import PredictionInput
from agrotools.scoring.predictions import Compared, PublishedScorerStops, Scores, Similarity

_NO_DATA = "needs the data set, which holds the answers (--data)"
_OF_ANSWERS = ("text_answers", "objective", "subjective", "no_text_answer", "image_tasks", "unscorable")
"""Counts that say nothing without the answers."""
_NO_KEYWORDS: Mapping[str, Any] = {"whitelist": [], "blacklist": None}

CALLS_ONCE = "each call counts once, failed ones never"
_ANSWERS = "signs, decimals and thousands are read"
_OBJECTIVE = "the same, objective answers alone"
IMAGES = "all image calls count, and none is free"
_SHARED = {
    "inst_acc": "over all gold steps, missing ones wrong",
    "tool_acc": "missing steps are wrong",
    "arg_acc": "defaults, folders, blanks aside; true is not 1",
    "arg_acc_agreement": "sums by value, boxes by overlap, texts by words",
    "summ_acc": _ANSWERS,
    "summ_acc_objective": _OBJECTIVE,
    "ans_acc": _ANSWERS,
    "ans_acc_objective": _OBJECTIVE,
    **dict.fromkeys(("p_f1", "o_f1", "l_f1"), CALLS_ONCE),
}


def differences_of(rules: Rules, **others: str) -> dict[str, str]:
    """Differences of each corrected metric from the published one, in the order of tables; ``others`` come last.

    docs/reference-scorers.md says them at length, with a worked number each.
    """
    return {f"{rules.name}.{name}": text for name, text in (_SHARED | others).items()}


class JudgeScorer(NamedTuple):
    """Scorers of end-to-end predictions that a judge has read, from the log of its replies."""

    read_log: Callable[[Path], tuple[Any, list[str]]]
    """The log, and what is malformed in it."""
    published: Callable[[Sequence[Dialogue], Similarity | None, Mapping[str, Any] | None, Any], Scores]
    corrected: Callable[[Scores, Any, Mapping[str, Any]], Scores]


def compare_dialogues(given: PredictionInput, rules: Rules, judge: JudgeScorer | None = None) -> Compared:
    """Both scores of a prediction file, by the scorer that has these ``rules``.

    Raises:
        BenchmarkError: a file cannot be read, or files do not belong together.
    """
    similarity, name = (given.embedder.similarity, given.embedder.name) if given.embedder else (None, None)
    predictions = read_predictions(given.file)
    entries = read_data(given.data) if given.data is not None else None
    joined = join_data(predictions, entries)
    by_step = predictions.mode == "step-by-step"
    if given.judgements is not None and by_step:
        raise BenchmarkError(
            f"{given.file.name} holds step-by-step predictions, which nobody judges", hint="leave out the judgements"
        )
    log, malformed = None, list(joined.malformed)
    if given.judgements is not None and judge is not None:
        log, wrong = judge.read_log(given.judgements)
        malformed += wrong
    stop = None
    published: Scores | None = None
    try:
        samples = joined.samples if entries is not None else _without_keywords(joined.samples)
        if by_step:
            published = published_scorer.score_steps(samples, rules, similarity)
        elif judge is None:
            published = published_scorer.score_end(samples, rules, similarity)
        else:
            published = judge.published(samples, similarity, entries, log)
        published = replace(published, embedder=name)
    except PublishedScorerStops as error:
        stop = error.message
    score = corrected_scorer.score_steps if by_step else corrected_scorer.score_end
    corrected = score(joined.scored, rules, similarity, embedder=name)
    if judge is not None and log is not None and entries is not None:
        corrected = judge.corrected(corrected, log, entries)
    if entries is None:
        published = published and _without_answers(published, rules)
        corrected = _without_answers(corrected, rules)
    errors = errors_of_dialogues(joined.scored)
    return Compared(
        rules.name,
        predictions.mode,
        len(joined.scored),
        published,
        corrected,
        errors,
        stop,
        malformed=tuple(malformed),
    )


def _without_keywords(samples: tuple[Dialogue, ...]) -> tuple[Dialogue, ...]:
    """So that figures which do not depend on answers can be had without them; the others are left out afterwards."""
    return tuple(replace(sample, answer=_NO_KEYWORDS) for sample in samples)


def _without_answers(scores: Scores, rules: Rules) -> Scores:
    names = ("summ_acc", "summ_acc_objective", "ans_acc", "ans_acc_objective", rules.image_metric, "llm_score")
    hidden = [f"{rules.name}.{name}{end}" for name in names for end in ("", "_corrected")]
    # The published InstAcc counts text answers in its denominator.
    hidden.append(f"{rules.name}.inst_acc")
    gone = [name for name in (*scores.metrics, *scores.left_out) if name in hidden]
    kept = {name: figure for name, figure in scores.metrics.items() if name not in hidden}
    counts = {name: count for name, count in scores.counts.items() if name not in _OF_ANSWERS}
    return replace(scores, metrics=kept, counts=counts, left_out={**scores.left_out, **dict.fromkeys(gone, _NO_DATA)})
