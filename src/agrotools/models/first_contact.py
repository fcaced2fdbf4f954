"""First contact with an endpoint: tiny requests before the first real one, and the interpretation of refusals.

If no server answers, or the key, the model, images or tools are refused, one to three tiny requests show this within
a second, instead of sample by sample during the run. If only a single request is refused while others are answered,
the configuration is not at fault: the sample is invalid, and the run continues.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from agrotools.core import EndpointProblem, EndpointRefusal, EndpointUnreachable, InfrastructureError, ToolSpec
from agrotools.models.base import Completion, ImagePart, Message, Model, ModelSettings, ModelWrapper, TextPart
from agrotools.models.endpoint import Endpoint, make_model, provider_at
from agrotools.models.transport import proxy_for

QUESTIONS = ("Is water wet? Reply with yes or no.", "How many legs does a cow have? Reply with the number.")
"""First question, and the one sent if the first is refused: a content filter may reject any single text."""

_IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAATklEQVR42u3PQQkAAAgEsIt20YxuBN/CYAWWTl+LgICA"
    "gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgMBlAc+KAPE23tFKAAAAAElFTkSuQmCC"
)
"""64 x 64 green pixels: several models reject images smaller than 28 x 28."""
LONG_PROMPT = 16_000
"""Tokens that a request must have the time for."""
_MOST_TOKENS = 16
_ANSWERED = ("stop", "tool_calls", "length")
_PASSING = ("unreachable", "reply")
"""Problems of an :class:`InfrastructureError` that do not show which requests the endpoint accepts."""
_LISTENS_S = 5.0

_ALL_KINDS = frozenset(("images", "tools"))
_Outcome = Completion | EndpointRefusal | InfrastructureError
"""Outcome of a tiny request."""


class FirstContact(ModelWrapper):
    """A model whose endpoint is probed with a tiny request before the first real one.

    The endpoint is probed again before the first request with images or tools if these were not expected. Conditions
    that a tiny request cannot settle (429, 5xx, no reply in time) are left to the real requests. ``probe``: creates a
    model at the same endpoint for one tiny request; None disables probing.
    """

    def __init__(self, model: Model, probe: Callable[[], Model] | None = None) -> None:
        super().__init__(model)
        self._probe = probe
        self._lock = asyncio.Lock()
        self._expected: frozenset[str] = frozenset()
        self._tools: Sequence[ToolSpec] = ()
        self._with_system = False
        self._probed_kinds: frozenset[str] | None = None
        """Content kinds other than text of the last tiny request; None if none was sent."""
        self._refused: tuple[EndpointProblem, str] | None = None
        """First real request that was refused before any got a reply: the problem and the question."""
        self._tokens_per_s = 0.0

    def expect(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> None:
        """Make the first tiny request contain the same kinds of content as this later request."""
        self._expected |= _needs(messages, tools)
        self._tools = self._tools or tools[:1]
        self._with_system |= messages[0].role == "system"

    def timeout_s(self, slots: int) -> float | None:
        """Return how long a server that reads ``slots`` long prompts at once may take; None if its speed is unknown."""
        return slots * LONG_PROMPT / self._tokens_per_s if self._tokens_per_s else None

    async def probe_endpoint(self, settings: ModelSettings) -> None:
        """Send the tiny requests, unless earlier ones contained the expected content.

        Raises:
            EndpointRefusal: the endpoint refuses the key, the model, images or tools.
            EndpointUnreachable: no server answers at the address.
        """
        async with self._lock:
            if self._probe and (self._probed_kinds is None or not self._expected <= self._probed_kinds):
                await self._ask(self._probe, settings)
                self._probed_kinds = self._expected

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        """Return one reply.

        Raises:
            InfrastructureError: no reply was received, or only this request is refused.
            EndpointRefusal: two different requests were refused for the same reason, so all would be.
            EndpointUnreachable: no server answers at the address.
        """
        known = self._probed_kinds
        if self._probe and known != _ALL_KINDS and (known is None or not _needs(messages, tools) <= known):
            self.expect(messages, tools)
            await self.probe_endpoint(settings)
        try:
            return await self.model.generate(messages, tools, settings)
        except EndpointRefusal as refusal:
            if refusal.problem == "credit" or self._is_for_all(refusal, messages):
                raise
            hint = "other requests are answered" if self.stats.has_worked else refusal.hint
            raise InfrastructureError(refusal.message, hint=hint, problem=refusal.problem) from refusal

    def _is_for_all(self, refusal: EndpointRefusal, messages: Sequence[Message]) -> bool:
        """True if no request was ever answered and a different one was refused for the same reason."""
        if self.stats.has_worked:
            return False
        question = "\n".join(message.text for message in messages if message.role == "user")
        first = self._refused = self._refused or (refusal.problem, question)
        return first[0] == refusal.problem and first[1] != question

    async def _ask(self, probe: Callable[[], Model], settings: ModelSettings) -> None:
        async def ask(text: str, settings: ModelSettings, needs: frozenset[str]) -> _Outcome:
            image = [ImagePart(_IMAGE)] if "images" in needs else []
            system = [Message.of("system", "Be brief.")] if self._with_system else []
            messages = [*system, Message(role="user", content=(TextPart(text), *image))]
            model = probe()
            try:
                return await model.generate(messages, self._tools if "tools" in needs else (), settings)
            except (EndpointRefusal, InfrastructureError) as error:
                return error
            finally:
                await model.close()

        needs, (first, second) = self._expected, QUESTIONS
        most = min(settings.max_output_tokens or _MOST_TOKENS, _MOST_TOKENS)
        met = await ask(first, settings.model_copy(update={"max_output_tokens": most}), needs)
        if isinstance(met, Completion) and _answers(met):
            self.stats.worked_before = True
            used = met.usage.input_tokens + met.usage.output_tokens
            self._tokens_per_s = used / met.seconds if met.seconds else 0.0
            return
        if _refusal(met) is None:
            if (
                isinstance(met, InfrastructureError)
                and met.problem == "unreachable"
                and not self.stats.replies
                and not await _listens(self.base_url)
            ):
                vendor = provider_at(self.base_url)
                hint = "start the server, or correct the address (--base-url)"
                if vendor is not None and vendor.key_env:
                    hint = "check the network of this machine: connection, firewall, proxy"
                reason = re.search(r"\[([^\]]+)\]$", met.message)  # of the connection, without the address
                because = f" ({reason[1]})" if reason else ""
                raise EndpointUnreachable(f"no server at {self.base_url}{because}", hint=hint)
            return
        # With the run's own token limit: some endpoints reject a small one.
        plain = await ask(second, settings, frozenset())
        if (refused := _refusal(plain)) is not None and not self.stats.replies:
            raise refused
        if not _answers(plain):
            return
        self.stats.worked_before = True
        if needs and (refused := _refusal(await ask(first, settings, needs))) is not None:
            at_fault = {refused.problem} & needs or needs
            if len(at_fault) > 1:
                at_fault = {"tools"} if _refusal(await ask(first, settings, frozenset({"tools"}))) else {"images"}
            raise _without(next(iter(at_fault)), refused)


async def check_endpoint(endpoint: Endpoint, settings: ModelSettings) -> None:
    """Send a tiny request to an endpoint before long preparations.

    Raises:
        EndpointRefusal: the endpoint refuses the key or the model.
        EndpointUnreachable: no server answers at the address.
    """
    model = make_model(endpoint)
    try:
        await FirstContact(model, lambda: make_model(endpoint.impatient)).probe_endpoint(settings)
    finally:
        await model.close()


def _needs(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> frozenset[str]:
    """Return the content kinds of a request other than text: images, tools."""
    images = any(message.has_images for message in messages)
    return frozenset(["images"] * images + ["tools"] * bool(tools))


def _answers(met: _Outcome) -> bool:
    return isinstance(met, Completion) and met.finish_reason in _ANSWERED


def _refusal(met: _Outcome) -> EndpointRefusal | None:
    """Return the endpoint's refusal in an outcome, or None."""
    if isinstance(met, InfrastructureError) and met.problem and met.problem not in _PASSING:
        return EndpointRefusal(met.message, hint=met.hint, problem=met.problem)
    return met if isinstance(met, EndpointRefusal) else None


def _without(need: str, refusal: EndpointRefusal) -> EndpointRefusal:
    """Return the refusal of images or tools by an endpoint that replies to text."""
    ways = {"images": "--no-images tells of them in words instead", "tools": "--protocol react calls tools in text"}
    return EndpointRefusal(
        f"the model replies to text but takes no {need}: {refusal.message}", problem=refusal.problem, hint=ways[need]
    )


async def _listens(base_url: str) -> bool:
    """True if a server accepts connections at an address, or at its proxy."""
    parts = urlsplit(proxy_for(base_url) or base_url)
    try:
        async with asyncio.timeout(_LISTENS_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or {"http": 80}.get(parts.scheme, 443))
    except TimeoutError:
        return True  # No answer, but no refusal either.
    except (OSError, ValueError):
        return False
    writer.close()
    return True
