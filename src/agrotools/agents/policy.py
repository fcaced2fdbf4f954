"""The seam between whoever decides and the loops that carry decisions out."""

from collections.abc import Sequence
from typing import Protocol

from agrotools.core import Action, SampleView, Step


class Policy(Protocol):
    """Decides the next action on a sample.

    ``history`` is all that was done so far: a policy keeps no state of its own between calls, so that one object
    may serve many samples at once.
    """

    async def act(self, view: SampleView, history: Sequence[Step]) -> Action:
        """The next action.

        Raises:
            InfrastructureError: no decision could be had for reasons independent of the sample.
        """
        ...
