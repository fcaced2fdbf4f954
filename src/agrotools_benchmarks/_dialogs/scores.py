"""Scores of runs on GTA and ThinkGeo, and of other programs' prediction files, as published and corrected."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from agrotools.core import BenchmarkError, Mode, Record, Sample, Slot, Trajectory
from agrotools.formats.manifest import Manifest
from agrotools.runner.plan import RECORDED
from agrotools.runner.policies import is_baseline
from agrotools.scoring.contracts import PublishedRun, Scoring
from agrotools.scoring.metrics import is_invalid
from agrotools.scoring.prediction_format import PredictionContent, PredictionInput
from agrotools.scoring.predictions import (
    PredictionScores,
    PublishedScorerStops,
    ScoredFile,
    Similarity,
)
from agrotools.scoring.slots import SlotScore
from agrotools.scoring.steps import agrees
from agrotools.scoring.summary import PublishedFigures
from agrotools_benchmarks._dialogs import corrected_scorer, published_scorer
from agrotools_benchmarks._dialogs.plugin_parts import ImageCallsSlot, PaperRun
from agrotools_benchmarks._dialogs.prediction_files import (
    NO_GOLD,
    Trajectories,
    join_data,
    read_data,
    read_predictions,
)
from agrotools_benchmarks._dialogs.published_scorer import Dialogue, Rules
from agrotools_benchmarks._dialogs.record_dialogues import (
    dialogue_of,
    errors_of_dialogues,
    in_file_order,
    prediction_entry,
)

_NO_DATA = "needs the data set, which holds the answers (--data)"
_OF_ANSWERS = (
    "text_answers",
    "objective",
    "subjective",
    "no_text_answer",
    "image_tasks",
    "unscorable",
)
"""Counts that are meaningless without the answers."""
_NO_KEYWORDS: Mapping[str, Any] = {"whitelist": [], "blacklist": None}


class JudgeScorer(NamedTuple):
    """Scorers of end-to-end predictions that a judge has graded, using the log of its replies."""

    read_log: Callable[[Path], tuple[Any, list[str]]]
    """Function that returns the log and descriptions of its malformed parts."""
    published: Callable[
        [Sequence[Dialogue], Similarity | None, Mapping[str, Any] | None, Any], PredictionScores
    ]
    corrected: Callable[[PredictionScores, Any, Mapping[str, Any]], PredictionScores]


def compare_dialogues(
    inputs: PredictionInput, rules: Rules, judge: JudgeScorer | None = None
) -> ScoredFile:
    """Score a prediction file as published and corrected; BenchmarkError if the files do not belong together."""
    similarity, name = (
        (inputs.embedder.similarity, inputs.embedder.name) if inputs.embedder else (None, None)
    )
    predictions = read_predictions(inputs.file)
    entries = read_data(inputs.data) if inputs.data is not None else None
    trajectories = predictions.trajectories
    has_answers = entries is not None or (trajectories is not None and trajectories.has_answers)
    joined = join_data(predictions, entries)
    by_step = predictions.mode == "step-by-step"
    if inputs.judgements is not None and by_step:
        fault = f"{inputs.file.name} holds step-by-step predictions, which nobody judges"
        raise BenchmarkError(fault, hint="leave out the judgements")
    log, malformed = None, list(joined.malformed)
    if inputs.judgements is not None and judge is not None:
        log, wrong = judge.read_log(inputs.judgements)
        malformed += wrong
    stop = None
    published: PredictionScores | None = None
    try:
        # Without answers, only the metrics that do not depend on them are kept.
        samples = (
            joined.samples
            if has_answers
            else tuple(replace(s, answer=_NO_KEYWORDS) for s in joined.samples)
        )
        if by_step or judge is None:
            published = published_scorer.SCORERS[predictions.mode](samples, rules, similarity)
        else:
            published = judge.published(samples, similarity, entries, log)
        published = replace(published, embedder=name)
    except PublishedScorerStops as error:
        stop = error.message
    corrected = corrected_scorer.SCORERS[predictions.mode](joined.scored, rules, similarity, name)
    if judge is not None and log is not None and entries is not None:
        corrected = judge.corrected(corrected, log, entries)
    if not has_answers:
        published = published and _without_answers(published, rules)
        corrected = _without_answers(corrected, rules)
    extra = None
    if trajectories is not None:
        if entries is None or by_step:
            published = published and _only(published, rules, trajectories)
            corrected = _only(corrected, rules, trajectories)
        extra = _agreement(joined.samples, rules, trajectories) if trajectories.scores else None
    errors, n = errors_of_dialogues(joined.scored), len(joined.scored)
    return ScoredFile(
        rules.name,
        predictions.mode,
        n,
        published,
        corrected,
        errors,
        stop,
        extra,
        (),
        tuple(malformed),
    )


def _without_answers(scores: PredictionScores, rules: Rules) -> PredictionScores:
    names = (
        "summ_acc",
        "summ_acc_objective",
        "ans_acc",
        "ans_acc_objective",
        rules.image_metric,
        "llm_score",
    )
    hidden = [f"{rules.name}.{name}{end}" for name in names for end in ("", "_corrected")]
    # The published InstAcc counts text answers in its denominator.
    hidden.append(f"{rules.name}.inst_acc")
    gone = [name for name in (*scores.metrics, *scores.left_out) if name in hidden]
    counts = {name: count for name, count in scores.counts.items() if name not in _OF_ANSWERS}
    return replace(_without(scores, gone, _NO_DATA), counts=counts)


def _only(scores: PredictionScores, rules: Rules, trajectories: Trajectories) -> PredictionScores:
    """Leave out the metrics that need gold dialogues, which trajectories do not have."""
    known = {
        f"{rules.name}.{name}{end}" for name in trajectories.metrics for end in ("", "_corrected")
    }
    return _without(scores, [name for name in scores.metrics if name not in known], NO_GOLD)


def _without(scores: PredictionScores, names: Sequence[str], reason: str) -> PredictionScores:
    metrics = {name: figure for name, figure in scores.metrics.items() if name not in names}
    return replace(
        scores, metrics=metrics, left_out={**scores.left_out, **dict.fromkeys(names, reason)}
    )


def _agreement(
    samples: Sequence[Dialogue], rules: Rules, trajectories: Trajectories
) -> dict[str, dict[str, int]]:
    """Compare the published rule, sample by sample, with the scores that the file has."""
    score = published_scorer.SCORERS[trajectories.mode]
    metric = f"{rules.name}.{trajectories.metrics[0]}"
    counts = {"same": 0, "different": 0}
    for sample in samples:
        scored = score([sample if sample.answer else replace(sample, answer=_NO_KEYWORDS)], rules)
        theirs, ours = trajectories.scores.get(sample.key), scored.metrics.get(metric)
        if (
            theirs is not None and ours is not None
        ):  # subjective answers have no figure without an embedder
            counts["same" if abs((ours.value or 0.0) - 100 * theirs) < 1e-6 else "different"] += 1
    return {f"{trajectories.score_name} of the file beside the published rule": counts}


def scoring_by(rules: Rules, paper: PaperRun) -> Scoring:
    """Return the scoring of runs on the benchmark whose scorer has these rules."""
    return Scoring(
        call_scorers={"image_calls": score_image_calls},
        published=partial(published_figures, rules, paper),
    )


def published_figures(rules: Rules, paper: PaperRun, run: PublishedRun) -> PublishedFigures | None:
    """Compute the figures of one mode; None if its records have none (no-tool mode, or no valid record).

    Invalid records and repeated epochs are ignored, because prediction files have neither. Metrics that need an
    embedder are left out without one.
    """
    mode = run.mode
    similarity, embedder = (
        (run.embedder.similarity, run.embedder.name) if run.embedder else (None, None)
    )
    valid = [
        record
        for record in in_file_order(run.records)
        if record.epoch == 0 and not is_invalid(record)
    ]
    if mode == "no-tool" or not valid:
        return None
    dialogues = [dialogue_of(record, run.manifest.protocol) for record in valid]
    stops, reference = "", None
    try:
        reference = published_scorer.SCORERS[mode](dialogues, rules, similarity)
    except PublishedScorerStops as error:
        stops = error.message
    ours = corrected_scorer.SCORERS[mode](dialogues, rules, similarity, embedder)
    estimates = {metric: ours.estimate(metric) for metric in ours.metrics}
    return PublishedFigures(
        family=rules.name,
        reference=reference.shares if reference else {},
        stops=stops,
        corrected={
            metric: estimate for metric, estimate in estimates.items() if estimate is not None
        },
        left_out={**(reference.left_out if reference else {}), **ours.left_out},
        counts=dict(reference.counts if reference else ours.counts),
        embedder=embedder or "",
        differs=tuple(differences_of_run(run.manifest, mode, paper)),
    )


def differences_of_run(manifest: Manifest, mode: Mode, paper: PaperRun) -> list[str]:
    """Return the differences of a run from those of a paper, each in a few words."""
    differences = differences_of_settings(manifest, paper)
    if mode == "end-to-end":
        recorded, others = tools_by_source(manifest)
        if recorded:
            some = f" for {len(recorded)} of them" if others else ""
            differences.append(f"recorded observations instead of tools{some}")
        if others:
            differences.append("tools of this package, not those of the paper")
        if not is_baseline(manifest.model) and manifest.max_steps != paper.max_steps:
            differences.append(f"at most {manifest.max_steps} turns, not {paper.max_steps}")
    return differences


def differences_of_settings(manifest: Manifest, paper: PaperRun) -> list[str]:
    """Return the differences in policy, protocol and number of questions."""
    differences = ["this policy is privileged"] if manifest.privileged else []
    if is_baseline(manifest.model):
        differences.append("a baseline, which is no model and has no protocol")
    elif manifest.protocol != paper.protocol:
        differences.append(f"protocol {manifest.protocol}, not that of the paper")
    questions = questions_of_paper(manifest, paper)
    if questions is not None and len(manifest.sample_ids) != questions:
        differences.append(f"{len(manifest.sample_ids)} questions of {questions}")
    return differences


def questions_of_paper(manifest: Manifest, paper: PaperRun) -> int | None:
    """Return the number of questions in the split of a run, as the paper counts them; None for an unknown split."""
    return paper.questions.get(str(manifest.benchmark_options.get("split", "")))


def tools_by_source(manifest: Manifest) -> tuple[list[str], list[str]]:
    """Return the tools whose results were replayed from the reference, and the tools that were run."""
    recorded = sorted(tool for tool, backend in manifest.backends.items() if backend == RECORDED)
    return recorded, [tool for tool in manifest.toolset if tool not in recorded]


def prediction_content(
    paper: PaperRun, manifest: Manifest, mode: Mode, records: Sequence[Record]
) -> PredictionContent | None:
    """Return the records of a mode as a prediction file that GTA's and ThinkGeo's scorers read.

    These scorers pair predictions with questions by position. For a run on part of the questions, or with invalid
    records, they need the corresponding part of the data set.
    """
    if mode == "no-tool":
        return None
    content = {
        str(at): prediction_entry(record, manifest.protocol)
        for at, record in enumerate(in_file_order(records))
    }
    return PredictionContent(content, questions_of_paper(manifest, paper))


def score_image_calls(slot: Slot, sample: Sample, trajectory: Trajectory) -> SlotScore:
    """Return the share of reference calls to ``slot.tools`` that were made without an error and with agreeing
    arguments.

    Each call matches at most one reference call. Order and additional calls are ignored. Arguments agree as in
    ``arg_acc``; those of a tool that is not installed must be equal.
    """
    assert isinstance(slot, ImageCallsSlot)
    steps = [
        step
        for step in (sample.reference.steps if sample.reference else ())
        if step.tool in slot.tools
    ]
    if not steps:
        reading: dict[str, JsonValue] = {
            "rule": "the reference makes no image: there is nothing to compare with"
        }
        return SlotScore(0.0, reading)
    remaining = [
        step for step in trajectory.calls if step.observation is None or step.observation.ok
    ]
    missing: list[JsonValue] = []
    for step in steps:
        match = next(
            (each for each in remaining if each.call and agrees(sample, each.call, step)), None
        )
        if match is None:
            missing.append(step.tool)
        else:
            remaining.remove(match)
    reading = {"wanted": [step.tool for step in steps], "missing": missing}
    reading["rule"] = "calls of the reference that make images, with agreeing arguments"
    return SlotScore((len(steps) - len(missing)) / len(steps), reading)
