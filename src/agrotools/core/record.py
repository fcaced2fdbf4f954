"""Records: one per finished sample and epoch, holding all that scoring needs."""

from typing import Annotated

from pydantic import Field, JsonValue

from agrotools.core.frozen_model import FrozenModel
from agrotools.core.sample import Sample
from agrotools.core.taxonomy import Mode
from agrotools.core.trajectory import Action, Answer, Reply, Step, Trajectory


class Record(FrozenModel):
    """What happened on one sample in one epoch, beside the sample itself (with its gold).

    ``trajectory`` is set in no-tool and end-to-end; ``actions`` in step-by-step: one predicted action for each
    reference step and a last one for the answer step. ``invalid`` says why no reply could be had (our failure).
    """

    sample: Sample
    mode: Mode
    epoch: int = 0
    trajectory: Trajectory | None = None
    actions: tuple[Action, ...] | None = None
    invalid: str | None = None
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str, int]:
        return (self.mode, self.sample.id, self.epoch)

    @property
    def form_reply(self) -> Reply | None:
        """The reply to the request for the answer form; None where the answer had it, or none was given."""
        last = (self.trajectory.steps if self.trajectory else self.actions or ())[-1:]
        return next((each.form_reply for each in last if isinstance(each, Step | Answer)), None)

    @property
    def replies(self) -> tuple[Reply, ...]:
        """All that the model replied, in order."""
        sources = self.trajectory.steps if self.trajectory else self.actions or ()
        last = (self.form_reply, self.trajectory.halted_by if self.trajectory else None)
        return tuple(reply for reply in (*(source.reply for source in sources), *last) if reply is not None)


class Score(FrozenModel):
    """One score of one record: which scorer, how the answer was read, and the value in [0, 1].

    ``slot`` names the slot (outcome scorers), ``step`` the reference step (process scorers).
    """

    metric: str
    version: str
    sample_id: str
    epoch: int = 0
    slot: str | None = None
    step: int | None = None
    value: Annotated[float, Field(ge=0, le=1)]
    reading: dict[str, JsonValue] = Field(default_factory=dict)
    """How the value came about: scope, candidate, rule; or predicted against reference argument."""
    judge: str | None = None
    judge_prompt_hash: str | None = None
