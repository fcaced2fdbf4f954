"""``guess``: answers from the prompt alone, by a model fitted on other benchmarks. What it scores needs no looking."""

from collections.abc import Sequence

from agrotools.core import Action, Answer, Sample, SampleView, Step
from agrotools.text import format_answer
from agrotools.text.guess_model import guessed_values


class GuessPolicy:
    """Answers at once, at every step. Of the sample it reads what the answer form shows."""

    def __init__(self, sample: Sample) -> None:
        self._slots = sample.answer

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        return Answer(text=format_answer(self._slots, guessed_values(view, self._slots)) or "I cannot tell.")
