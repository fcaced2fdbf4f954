"""How long a reply may be, as an endpoint's refusals tell: a limit of ours that does not fit is no fault of a model."""

from agrotools.core import InfrastructureError
from agrotools.models.base import Completion, ModelSettings
from agrotools.models.refusals import Rejection, output_limit, with_output_limit

HINT = "set --max-output-tokens to what the endpoint allows, or serve the model with a longer context"
_TRIES = 2
_ENOUGH = 512
"""Tokens in which an answer can be given: a reply that an endpoint cuts off later is the model's own affair."""
_MOST_OF_IT = 0.9
_PROBE = 1
"""Tokens of the reply that is asked for to learn whether the prompt alone fits."""


class ReplyRoom:
    """The settings of one request, with less and less room for its reply.

    Args:
        settings: as they were asked for.
        most: tokens that the endpoint is known to allow in any reply.
    """

    def __init__(self, settings: ModelSettings, most: int | None = None) -> None:
        limit = output_limit(settings)
        self.settings = with_output_limit(settings, most) if most and limit and limit > most else settings
        self._asked = settings
        self._tries = 0
        self._probes = False

    def narrows(self, refusal: Rejection) -> bool:
        """Whether to ask again with the settings as they are now; otherwise the prompt itself is too long.

        Numbers of the refusal are believed twice. After that, and where it has none, a reply of one token shows whether
        the prompt fits without one.
        """
        if refusal.certain or self._probes:
            return False
        limit = output_limit(self.settings)
        room = refusal.room
        if room is not None and room >= 1 and (limit is None or room < limit) and self._tries < _TRIES:
            self._tries += 1
        elif refusal.verdict == "context" and limit is not None and limit > _PROBE:
            room, self._probes = _PROBE, True
        else:
            return False
        self.settings = with_output_limit(self._asked, room)
        return True

    def checked(self, completion: Completion, base_url: str) -> Completion:
        """The reply, with a word on a limit that is not the one asked for.

        Raises:
            InfrastructureError: the endpoint cut it off far below what was asked for; or it was asked for only to learn
                whether the prompt fits, and it does.
        """
        asked, limit = output_limit(self._asked), output_limit(self.settings)
        if self._probes:
            raise InfrastructureError(
                f"{base_url} takes the prompt, but not with a reply of {asked} tokens, and does not say how many fit",
                hint=HINT,
                problem="token_limit",
            )
        if completion.finish_reason != "length":
            return completion
        said = completion.usage.output_tokens
        if 0 < said < _ENOUGH and (asked is None or said < _MOST_OF_IT * asked):
            raise InfrastructureError(
                f"{base_url} stopped the reply at {said} tokens of {asked or 'as many as it likes'}",
                hint="the endpoint has a limit of its own, or its context is full: serve the model with a longer one",
                problem="token_limit",
            )
        if limit == asked:
            return completion
        detail = f"the reply reached its token limit, {limit}: the endpoint allows no more"
        return completion.model_copy(update={"detail": detail})
