"""The funnel of a folder that a model drafted, as its header holds it: how many drafts came how far."""

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from agrotools.core import FAMILIES, FrozenModel

DRAFTS_KEY = "drafts"
"""Key of the counts up to the review: ``by_family`` and ``dropped``."""
REVIEWED_KEY = "drafts_reviewed"
"""Key of the counts of the review by family, in a folder that a review was applied to."""
STAGES = ("drafted", "run", "unique", "reviewed", "corrected", "accepted")
"""Stages of a draft. ``run``: its calls ran, or without calls its reply was read. ``unique``: it passed all checks, of
which that for near copies is the last. ``corrected``: a person changed it, and nobody rejected
it then."""

Counts = dict[str, int]
ByFamily = Mapping[str, Mapping[str, int]]


class Funnel(FrozenModel):
    """Counts of drafts at each of :data:`STAGES`, by family, too; ``dropped``: by the reason of a check."""

    stages: Counts
    by_family: dict[str, Counts]
    dropped: Counts = {}

    @property
    def rows(self) -> dict[str, Counts]:
        """Counts of each family, and of all at the end."""
        return {**self.by_family, "all": self.stages}


def stored_funnel(
    metadata: Mapping[str, JsonValue], reviewed: ByFamily | None = None
) -> Funnel | None:
    """Return the funnel in the metadata of a header; None if no model drafted the folder.

    ``reviewed``: counts of the review, if it is still going on.
    """
    drafts = metadata.get(DRAFTS_KEY)
    if not isinstance(drafts, dict):
        return None
    drafted = cast("ByFamily", drafts.get("by_family", {}))
    if reviewed is None:
        reviewed = cast("ByFamily", metadata.get(REVIEWED_KEY, {}))
    by_family: dict[str, Counts] = {}
    for family in dict.fromkeys((*drafted, *reviewed)):
        of_family = {**drafted.get(family, {}), **reviewed.get(family, {})}
        name = FAMILIES.get(family, family)
        by_family[name] = {stage: int(of_family.get(stage, 0)) for stage in STAGES}
    stages = {stage: sum(counts[stage] for counts in by_family.values()) for stage in STAGES}
    dropped = cast("Mapping[str, int]", drafts.get("dropped", {}))
    return Funnel(stages=stages, by_family=by_family, dropped=dict(dropped))
