"""Requests and tokens a minute, and the waits that a server asks for, shared by all requests of a model."""

import asyncio
from collections import deque
from collections.abc import Sequence

from agrotools.core import ToolSpec
from agrotools.models.base import ImagePart, Message, ModelSettings, TextPart

_MINUTE_S = 60.0
_TICK_S = 1e-6
"""A shorter wait is none: it would be the rounding of the one before."""
_BURST_S = 1.0
"""Seconds of the allowance that may be used at once: servers enforce a minute's limit over shorter spans too."""
_CHARACTERS_PER_TOKEN = 3.5
_TOKENS_PER_IMAGE = 1000
_REPLY_TOKENS = 1024
_CHARACTERS_PER_PARAMETER = 200


class TokenBucket:
    """Fills steadily; what is taken in any minute is at most ``per_minute``, save for one take larger than a burst.

    (The generic cell rate algorithm in its leaky-bucket form: ITU-T I.371.)
    """

    def __init__(self, per_minute: int) -> None:
        self._most = max(1.0, per_minute * _BURST_S / _MINUTE_S)
        self._per_s = (per_minute - self._most + 1) / _MINUTE_S
        self._level = self._most
        self._at: float | None = None

    def wait_s(self, amount: float, now: float) -> float:
        """Seconds until ``amount`` may be taken. More than a burst is taken as a debt that later takes wait for."""
        if self._at is not None:
            self._level = min(self._most, self._level + (now - self._at) * self._per_s)
        self._at = now
        return max(0.0, (min(amount, self._most) - self._level) / self._per_s)

    def take(self, amount: float) -> None:
        """Take ``amount``; a negative one is given back."""
        self._level = min(self._most, self._level - amount)


class RateLimit:
    """Lets requests go in order, each when the limits and the server allow it.

    Args:
        rpm: requests a minute; None for no limit.
        tpm: tokens a minute, of prompts and replies; None for no limit.
    """

    def __init__(self, rpm: int | None = None, tpm: int | None = None) -> None:
        self._requests = TokenBucket(rpm) if rpm else None
        self._tokens = TokenBucket(tpm) if tpm else None
        self._not_before = 0.0
        self._queue: deque[tuple[asyncio.Future[None], int]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def try_admit(self, tokens: int = 0) -> bool:
        """Let a request that will cost about ``tokens`` go if it may go now."""
        if self._requests is None and self._tokens is None and not self._not_before:
            return True
        if self._queue or self._wait_s(tokens):
            return False
        self._take(tokens)
        return True

    async def admit(self, tokens: int = 0) -> None:
        """Wait until a request may go. A cancelled wait takes nothing."""
        if self.try_admit(tokens):
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append((turn, tokens))
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._give_back(tokens)
            # The first in the queue has the timer; if it gives up, the next one's wait may be shorter.
            self._admit()
            raise

    def pause(self, seconds: float) -> None:
        """Let nothing go for ``seconds``: the server asked for it."""
        self._not_before = max(self._not_before, asyncio.get_running_loop().time() + seconds)

    def settle(self, reserved: int, used: int) -> None:
        """Replace what was estimated for a request by what it cost."""
        if self._tokens is not None:
            self._tokens.take(used - reserved)
            self._admit()

    def _wait_s(self, tokens: int) -> float:
        now = asyncio.get_running_loop().time()
        wait_s = self._not_before - now
        if wait_s <= 0:
            self._not_before = 0.0
        if self._requests is not None:
            wait_s = max(wait_s, self._requests.wait_s(1, now))
        if self._tokens is not None:
            wait_s = max(wait_s, self._tokens.wait_s(tokens, now))
        return wait_s if wait_s > _TICK_S else 0.0

    def _take(self, tokens: int) -> None:
        if self._requests is not None:
            self._requests.take(1)
        if self._tokens is not None:
            self._tokens.take(tokens)

    def _give_back(self, tokens: int) -> None:
        if self._requests is not None:
            self._requests.take(-1)
        if self._tokens is not None:
            self._tokens.take(-tokens)

    def _admit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue:
            turn, tokens = self._queue[0]
            if not turn.done():
                wait_s = self._wait_s(tokens)
                if wait_s:
                    self._timer = asyncio.get_running_loop().call_later(wait_s, self._admit)
                    return
                self._take(tokens)
                turn.set_result(None)
            self._queue.popleft()


class TokenEstimate:
    """Guesses what requests will cost from their length, and learns from what they did cost."""

    def __init__(self) -> None:
        self._scale = 1.0

    def of(self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings) -> int:
        """Tokens of prompt and reply together, at least 1."""
        parts = [part for message in messages for part in message.content]
        characters = sum(len(part.text) for part in parts if isinstance(part, TextPart))
        characters += sum(len(spec.description) + _CHARACTERS_PER_PARAMETER * len(spec.parameters) for spec in tools)
        images = sum(isinstance(part, ImagePart) for part in parts)
        guess = characters / _CHARACTERS_PER_TOKEN + images * _TOKENS_PER_IMAGE
        # Vendors count the whole allowance of a reply against the limit until the reply is there; so do we at first.
        return max(1, round(self._scale * (guess + (settings.max_output_tokens or _REPLY_TOKENS))))

    def learn(self, guessed: int, used: int) -> None:
        """Take note that a request which was guessed to cost ``guessed`` tokens cost ``used``."""
        self._scale = min(100.0, max(0.01, self._scale * (0.8 + 0.2 * used / guessed)))
