"""The floors of scores: what an answer is worth that comes without files and tools.

There are two: what the prompt alone suggests (``guess``), and the best constants (``constant``,
:mod:`agrotools.scoring.constants`), with guesses where there is none. Scoring compares and counts, and does not guess.
The baselines fill :data:`FLOORS`; the metrics of :data:`agrotools.scoring.metrics.FLOOR_METRICS` ask
:func:`prompt_floor`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from agrotools.core import PlotSpec, Sample, Slot, UsageError
from agrotools.core.record import CallSequence
from agrotools.core.registry import Registry, imported
from agrotools.scoring.slot_weights import weighted_mean

PROMPT_FLOOR = "guess"
"""Name of the floor that sees the prompt and the answer form of a sample."""


class GuessPoints(NamedTuple):
    """Points of the guess from a prompt: the slots that count in FAS, and the points of those that count in a guess."""

    slots: Sequence[Slot]
    points: Mapping[str, float]
    """Points by slot name; a slot without points, such as free text, gets 0."""
    refuses: bool = False
    """True if the guess is a refusal."""

    @property
    def score(self) -> float:
        """Score of the sample."""
        return weighted_mean(self.slots, [self.points.get(slot.name, 0.0) for slot in self.slots])


class Floor(Protocol):
    """What a policy answers and calls that sees the prompt of a sample and the form of its answer, never the gold."""

    def answer(self, sample: Sample) -> str:
        """Return the answer text in the answer form, or a refusal."""
        ...

    def chart(self, sample: Sample) -> PlotSpec | None:
        """Return the chart that is drawn with the answer; None without one."""
        ...

    def calls(self, sample: Sample) -> CallSequence | None:
        """Return the calls that such a question usually needs; None if no such question is known."""
        ...

    def ignores_prompt(self, slots: Sequence[Slot]) -> bool:
        """Return True if the answer is the same text for every prompt with these slots, and there is no chart."""
        ...


FLOORS: Registry[Floor] = Registry(
    "floor", "", lambda: imported("agrotools.agents.baselines:FLOORS")
)
"""Floors by name."""


def prompt_floor() -> Floor:
    """Return the floor that sees the prompt and the answer form.

    Raises:
        UsageError: no such floor is registered, or its module cannot be imported.
    """
    if PROMPT_FLOOR not in FLOORS:
        raise UsageError(
            f"no floor {PROMPT_FLOOR!r} is registered",
            hint=f"agrotools.agents.baselines.FLOORS must name it; registered: {', '.join(FLOORS) or 'none'}",
        )
    return FLOORS.get(PROMPT_FLOOR)
