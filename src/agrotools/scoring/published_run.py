"""Runs on GTA and ThinkGeo in the metrics of their papers, as their scorers have them and corrected."""

from collections.abc import Mapping, Sequence

from agrotools.core import Mode, Protocol, Record
from agrotools.scoring.corrected import gta_family as corrected
from agrotools.scoring.figures import Scores, Similarity
from agrotools.scoring.published_form import dialogue_of, in_file_order
from agrotools.scoring.reference import gta, gta_family, thinkgeo
from agrotools.scoring.reference.gta_family import Dialogue, Rules
from agrotools.scoring.reference.stops import PublishedScorerStops
from agrotools.scoring.sample_units import is_invalid
from agrotools.scoring.summary import PublishedFigures

FAMILIES: Mapping[str, Rules] = {"gta": gta.RULES, "thinkgeo": thinkgeo.RULES}
"""Benchmarks by name whose runs have the metrics of their papers, and the rules of the scorer."""


def published_figures(
    family: str,
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
        family: one of :data:`FAMILIES`.
        records: those of the mode; invalid ones and repeats count for nothing, as no prediction file holds them.
        similarity: the cosine of two texts' embeddings, for subjective answers and images; left out without one.
        differs: how the run differs from the published way.
        protocol: that of the run.
    """
    valid = [record for record in in_file_order(records) if record.epoch == 0 and not is_invalid(record)]
    if mode == "no-tool" or not valid:
        return None
    rules = FAMILIES[family]
    dialogues = [dialogue_of(record, protocol) for record in valid]
    stops, reference = "", None
    try:
        reference = _reference(mode, dialogues, rules, similarity)
    except PublishedScorerStops as error:
        stops = error.message
    ours = _corrected(mode, dialogues, rules, similarity, embedder)
    estimates = {metric: ours.estimate(metric) for metric in ours.metrics}
    return PublishedFigures(
        family=family,
        reference={metric: _share(figure.value) for metric, figure in reference.metrics.items()} if reference else {},
        stops=stops,
        corrected={metric: estimate for metric, estimate in estimates.items() if estimate is not None},
        left_out={**(reference.left_out if reference else {}), **ours.left_out},
        counts=dict(reference.counts if reference else ours.counts),
        embedder=embedder,
        differs=tuple(differs),
    )


def _reference(mode: Mode, dialogues: Sequence[Dialogue], rules: Rules, similarity: Similarity | None) -> Scores:
    score = gta_family.score_steps if mode == "step-by-step" else gta_family.score_end
    return score(dialogues, rules, similarity)


def _corrected(
    mode: Mode, dialogues: Sequence[Dialogue], rules: Rules, similarity: Similarity | None, embedder: str
) -> Scores:
    score = corrected.score_steps if mode == "step-by-step" else corrected.score_end
    return score(dialogues, rules, similarity, embedder=embedder or None)


def _share(value: float | None) -> float | None:
    return None if value is None else value / 100
