"""``echo``: repeats the question. What it scores, the question gives away."""

from collections.abc import Sequence

from agrotools.core import Action, Answer, SampleView, Step


class EchoPolicy:
    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        return Answer(text=view.query)
