"""Runs on GTA and ThinkGeo in the metrics of their papers, as their scorers have them and corrected."""

from collections.abc import Sequence

from agrotools.benchmarks._dialogs import corrected_scorer, published_scorer
from agrotools.benchmarks._dialogs.published_scorer import Dialogue, Rules
from agrotools.benchmarks._dialogs.record_dialogues import dialogue_of
from agrotools.core import Mode, Protocol, Record
from agrotools.plugin import PublishedRun, Scoring
from agrotools.scoring.predictions import PublishedScorerStops, Scores, Similarity
from agrotools.scoring.published_form import in_file_order
from agrotools.scoring.sample_units import is_invalid
from agrotools.scoring.summary import PublishedFigures


def scoring_by(rules: Rules) -> Scoring:
    """Scoring of runs on the benchmark whose scorer has these rules."""

    def published(run: PublishedRun) -> PublishedFigures | None:
        return published_figures(
            rules,
            run.mode,
            run.records,
            run.embedder.similarity if run.embedder else None,
            embedder=run.embedder.name if run.embedder else "",
            differs=run.differs,
            protocol=run.manifest.protocol,
        )

    return Scoring(published=published)


def published_figures(
    rules: Rules,
    mode: Mode,
    records: Sequence[Record],
    similarity: Similarity | None = None,
    *,
    embedder: str = "",
    differs: Sequence[str] = (),
    protocol: Protocol = "react",
) -> PublishedFigures | None:
    """The figures of one mode; None where its records have none (no tools, or all of them invalid).

    Args:
        rules: those of the benchmark's scorer.
        records: those of the mode; invalid ones and repeats count for nothing, as no prediction file holds them.
        similarity: the cosine of two texts' embeddings, for subjective answers and images; left out without one.
        differs: differences of the run from those of the paper.
        protocol: that of the run.
    """
    valid = [record for record in in_file_order(records) if record.epoch == 0 and not is_invalid(record)]
    if mode == "no-tool" or not valid:
        return None
    dialogues = [dialogue_of(record, protocol) for record in valid]
    stops, reference = "", None
    try:
        reference = _reference(mode, dialogues, rules, similarity)
    except PublishedScorerStops as error:
        stops = error.message
    ours = _corrected(mode, dialogues, rules, similarity, embedder)
    estimates = {metric: ours.estimate(metric) for metric in ours.metrics}
    return PublishedFigures(
        family=rules.name,
        reference={metric: _share(figure.value) for metric, figure in reference.metrics.items()} if reference else {},
        stops=stops,
        corrected={metric: estimate for metric, estimate in estimates.items() if estimate is not None},
        left_out={**(reference.left_out if reference else {}), **ours.left_out},
        counts=dict(reference.counts if reference else ours.counts),
        embedder=embedder,
        differs=tuple(differs),
    )


def _reference(mode: Mode, dialogues: Sequence[Dialogue], rules: Rules, similarity: Similarity | None) -> Scores:
    score = published_scorer.score_steps if mode == "step-by-step" else published_scorer.score_end
    return score(dialogues, rules, similarity)


def _corrected(
    mode: Mode, dialogues: Sequence[Dialogue], rules: Rules, similarity: Similarity | None, embedder: str
) -> Scores:
    score = corrected_scorer.score_steps if mode == "step-by-step" else corrected_scorer.score_end
    return score(dialogues, rules, similarity, embedder=embedder or None)


def _share(value: float | None) -> float | None:
    return None if value is None else value / 100
