"""Policies, which decide, as the loops that carry decisions out see them."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from agrotools.core import Action, Mode, SampleView, Step, ToolSpec
from agrotools.models import Message, Model, ModelSettings


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


@runtime_checkable
class ModelAgent(Policy, Protocol):
    """A policy that prompts a model."""

    model: Model
    mode: Mode
    settings: ModelSettings

    async def request_for(
        self, view: SampleView, history: Sequence[Step]
    ) -> tuple[Sequence[Message], Sequence[ToolSpec]]:
        """The request that :meth:`act` sends: messages, and tools that are offered as native functions."""
        ...
