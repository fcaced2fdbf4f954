"""Baseline ``constant``: the best constant answers, which are also a floor of scores.

Each slot gets the value that is right most often on the questions of other clusters; ``scoring.constants`` chooses it.
Everything else is as in ``guess``: slots without a constant, charts, and refusals where the prompt shows that there is
no answer. The constants come from the gold of other samples, so that the policy is marked *privileged*.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from agrotools.agents.baselines.guess import GuessPolicy
from agrotools.core import Sample, SampleView
from agrotools.core.slot import asked_slots


class ConstantPolicy(GuessPolicy):
    """Policy that answers with constants, given by slot name, and with guesses where there is none."""

    def __init__(self, sample: Sample, constants: Mapping[str, JsonValue]) -> None:
        super().__init__(sample)
        self._constants = constants

    def values(self, view: SampleView) -> Mapping[str, JsonValue]:
        """Return the answer to a prompt by slot name."""
        # A form without a line for open text is incomplete, and its constants would count for nothing.
        texts = {slot.name: slot.label for slot in asked_slots(self.slots) if slot.free_text}
        guesses = super().values(view)
        return {**texts, **guesses, **self._constants} if self._constants else guesses
