"""GTA's metrics, corrected: :mod:`agrotools.scoring.corrected.gta_family` with GTA's tools."""

from collections.abc import Sequence

from agrotools.scoring.corrected import gta_family
from agrotools.scoring.corrected.arguments import Specs
from agrotools.scoring.figures import Scores, Similarity
from agrotools.scoring.reference.gta import RULES
from agrotools.scoring.reference.gta_family import Dialogue


def score_steps(
    samples: Sequence[Dialogue],
    similarity: Similarity | None = None,
    *,
    specs: Specs | None = None,
    embedder: str | None = None,
) -> Scores:
    """See :func:`gta_family.score_steps`."""
    return gta_family.score_steps(samples, RULES, similarity, specs=specs, embedder=embedder)


def score_end(
    samples: Sequence[Dialogue],
    similarity: Similarity | None = None,
    *,
    specs: Specs | None = None,
    embedder: str | None = None,
) -> Scores:
    """See :func:`gta_family.score_end`."""
    return gta_family.score_end(samples, RULES, similarity, specs=specs, embedder=embedder)
