"""The version of scoring: scores of different versions are never set against each other."""

from collections.abc import Sequence

from agrotools.core import ExactSlot, OpenTextSlot, PlotSlot, Sample, ScoringVersionError

SCORING_VERSION = "3"
"""Rises when the same answer may score otherwise, or be asked for otherwise, than before."""
FIRST_VERSION = "1"
"""Of runs and scores that do not name theirs."""


def check_one_version(versions: Sequence[str]) -> None:
    """Refuse scores of several scoring versions.

    Raises:
        ScoringVersionError: there are.
    """
    different = sorted(set(versions))
    if len(different) > 1:
        raise ScoringVersionError(
            f"the scores of these runs are of different scoring versions ({' and '.join(different)}): they cannot be "
            "compared",
            hint=f"agrotools score RUN --rescore scores an older run again by version {SCORING_VERSION}",
        )


class OlderRun:
    """Differences of a run under the first scoring version from a new run, from its samples."""

    def __init__(self) -> None:
        self._listed: set[str] = set()
        self._unweighted: set[str] = set()
        self._phrased: set[str] = set()

    def add(self, sample: Sample) -> None:
        """A sample of the run; one that comes again counts once."""
        slots = sample.answer
        if any(isinstance(slot, ExactSlot) and slot.choices for slot in slots):
            self._listed.add(sample.id)
        if any(isinstance(slot, PlotSlot) for slot in slots) and len(slots) > 1 and len({s.weight for s in slots}) == 1:
            self._unweighted.add(sample.id)
        if any(isinstance(slot, OpenTextSlot) for slot in slots):
            self._phrased.add(sample.id)

    def remarks(self) -> tuple[str, ...]:
        """The remarks that apply."""
        said = (
            (self._listed, "the answer form listed other names than it does now, so the model saw another prompt"),
            (self._unweighted, "plot slots have no weights: all slots of a sample count equally"),
            (self._phrased, "facts of open questions have no concepts: they are read as plain phrasings"),
        )
        return tuple(f"{what} (samples: {len(samples)})" for samples, what in said if samples)
