"""Models on endpoints with OpenAI's chat-completions or Responses API, over one pooled HTTP session.

Retries (limited in number and time, respecting ``Retry-After``) cover faults that are not specific to the request:
refused or broken connections, 408, 409, 425, 429, 5xx, and bodies that are not a chat completion.
"""

import asyncio
import time
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

from agrotools.core import EndpointProblem, EndpointRefusal, InfrastructureError, ToolSpec
from agrotools.models.base import (
    DEFAULT_WIRE,
    Completion,
    Message,
    ModelSettings,
    WireSettings,
    WireStats,
    prompt_length,
)
from agrotools.models.chat_format import (
    MalformedReply,
    api_at,
    check_prompt,
    count_prompt,
    note,
    note_served,
    read_reply,
)
from agrotools.models.endpoint import Provider, address_of
from agrotools.models.limits import MOST, AdaptiveLimit, RateLimit, TokenEstimate
from agrotools.models.refusals import (
    HINT,
    Adaptations,
    Rejection,
    ReplyRoom,
    RequestParts,
    one_line,
    read_error,
    retry_after,
)
from agrotools.models.transport import (
    FailedAttempt,
    NoResponse,
    Response,
    TimedOut,
    Transport,
    Tries,
    UntrustedServer,
    backoff_s,
)

_OVERLOADED = (429, 503, 529)
_ASKS_TO_WAIT = (429, 503)
_MOST_TIMEOUTS = 3
"""Time-outs of a request before it fails; one less if meanwhile no other request was answered."""
_DAY_S = 86_400.0
_LOOKS_FOR_STOP_S = 1.0


class OpenAICompatibleModel:
    """A model behind ``POST <base_url>/chat/completions``, or ``POST <base_url>`` if that ends in ``/responses``.

    Args:
        base_url: address including ``/v1``; default ``OPENAI_BASE_URL``, else OpenAI's own.
        api_key_env: environment variable that holds the key. Without a key no ``Authorization`` header is sent.
        spelled: name of the model in reports; default ``name``, that at the endpoint.

    Raises:
        UsageError: the address is not an HTTP URL or contains a secret, or a required key is missing.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key_env: str | None = None,
        wire: WireSettings = DEFAULT_WIRE,
        provider: Provider | None = None,
        spelled: str | None = None,
    ) -> None:
        self.name = spelled or name
        self._endpoint = address_of(name, provider, base_url, api_key_env)
        self._wire = wire
        self._api = api_at(self.base_url)
        self._asked = name
        self._encoder = self._api.encoder(name, self._endpoint.spelling)
        self._adaptations = Adaptations(self._encoder)
        self._transport = Transport(self._api.url, self._endpoint.headers, wire)
        self._rate = RateLimit(wire.rpm, wire.tpm)
        self._estimate = TokenEstimate() if wire.tpm else None
        self.limit = AdaptiveLimit.of(wire.concurrency, wire.timeout_s)
        self.stats = WireStats(limit=self.limit.current)
        self._most_output: int | None = None
        self._accepted: set[EndpointProblem] = set()
        """Content kinds (images, tools) in requests that the model has answered."""
        self._longest: dict[int, int] = {}
        """Characters of the longest answered prompt, by number of images."""
        self._most_input = 0
        """Tokens of the longest answered prompt."""

    @property
    def base_url(self) -> str:
        """Address of the endpoint."""
        return self._endpoint.base_url

    def set_base_url(self, base_url: str) -> None:
        """Replace the address before the first request: that of a server of ``--serve`` is known once it runs."""
        self._endpoint = replace(self._endpoint, base_url=base_url)
        self._api = api_at(base_url)
        self._transport = Transport(self._api.url, self._endpoint.headers, self._wire)

    def set_timeout(self, timeout_s: float) -> None:
        """Replace the time-out before the first request."""
        self._wire = self._wire.model_copy(update={"timeout_s": timeout_s})
        self._transport = Transport(self._api.url, self._endpoint.headers, self._wire)
        self.limit = AdaptiveLimit.of(self._wire.concurrency, timeout_s)

    def __repr__(self) -> str:
        return f"OpenAICompatibleModel({self.name!r}, base_url={self.base_url!r})"

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        """Return one reply, within the retry budget.

        Raises:
            InfrastructureError: no reply within the budget.
            EndpointRefusal: wrong key, address, model name or request: not retryable.
        """
        tries, room = Tries(), ReplyRoom(settings, self._most_output)
        while True:
            outcome = await self._try(messages, tools, room.settings, tries)
            if isinstance(outcome, Completion):
                return room.checked(outcome, self.base_url)
            if isinstance(outcome, Rejection):
                if self._narrows(room, outcome):
                    continue
                message = self._redacted(outcome.message)
                if not self._took_longer(messages, outcome):
                    return tries.ended("context", message)
                outcome = FailedAttempt(f"a longer prompt was answered before, and now: {message}")
                room = ReplyRoom(settings, self._most_output)
            if not outcome.counts:
                continue
            tries.faults += 1
            wait_s = (
                backoff_s(self._wire, tries.faults) if outcome.wait_s is None else outcome.wait_s
            )
            if (
                tries.faults >= self._wire.attempts
                or tries.spent_s + wait_s > self._wire.retry_wall_s
                or self.stats.stopping
            ):
                self._give_up(tries.faults, outcome)
            tries.spent_s += wait_s
            self.stats.retries += 1
            await self._sleep(wait_s, outcome.rate_limited)

    async def _try(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        settings: ModelSettings,
        tries: Tries,
    ) -> Completion | FailedAttempt | Rejection:
        guessed = self._estimate.of(messages, tools, settings) if self._estimate else 0
        held_back = await self._admission(guessed)
        began = time.monotonic()
        tries.first_at, tries.attempts = tries.first_at or began, tries.attempts + 1
        timeouts = tries.timeouts
        try:
            outcome = await self._attempt(messages, tools, settings, tries)
        finally:
            self.limit.release()
        took_s = time.monotonic() - began
        if tries.timeouts == timeouts:
            tries.spent_s += took_s
        if isinstance(outcome, Completion):
            self._account(outcome, took_s, guessed, held_back)
        return outcome

    def _took_longer(self, messages: Sequence[Message], refusal: Rejection) -> bool:
        """True if a longer prompt was answered: more tokens than the stated limit, or else 25 % more characters."""
        if refusal.context is not None and self._most_input:
            return refusal.context < self._most_input
        text, images = prompt_length(messages)
        return any(1.25 * text < longest and images <= n for n, longest in self._longest.items())

    def _narrows(self, room: ReplyRoom, refusal: Rejection) -> bool:
        """True if a shorter reply can be requested; False if the prompt itself is too long."""
        if refusal.verdict == "token_limit" and refusal.room:
            self._most_output = refusal.room
        if room.narrows(refusal):
            return True
        if refusal.verdict == "token_limit":
            self._refuse(self._redacted(refusal.message), "token_limit", HINT)
        return False

    def _timed_out(self, began: float, replies: int, message: str, tries: Tries) -> FailedAttempt:
        """Return the fault of a request that is sent again, or raise InfrastructureError after too many time-outs.

        ``began`` and ``replies``: time of the request, and number of replies to others at that time.
        """
        answered = self.stats.replies - replies
        self._overloaded(began, most=max(1, answered // 2))
        tries.timeouts += 1
        if tries.timeouts >= _MOST_TIMEOUTS - (not answered) or self.stats.stopping:
            why = f"{message}, {tries.timeouts} times" if tries.timeouts > 1 else message
            silence = "" if answered else "; it answered no other request meanwhile"
            raise InfrastructureError(
                f"no reply from {self.base_url}: {why}{silence}",
                hint="a larger --timeout or a smaller --concurrency may help; run the same command again to resume",
                problem="reply" if answered else "unreachable",
            )
        self.stats.retries += 1
        return FailedAttempt(message, counts=False)

    async def _admission(self, tokens: int) -> bool:
        """Take a slot and wait for the rate limit; return True if it held the request back."""
        if not self.limit.try_acquire():
            with self._waiting():
                await self.limit.acquire()
        if self._rate.try_admit(tokens):
            return False
        try:
            with self._waiting(rate_limited=True):
                await self._rate.admit(tokens)
        except BaseException:
            self.limit.release()
            raise
        return True

    async def _sleep(self, wait_s: float, rate_limited: bool) -> None:
        with self._waiting(rate_limited=rate_limited, retries=True):
            loop = asyncio.get_running_loop()
            ends_at = loop.time() + wait_s
            while not self.stats.stopping and loop.time() < ends_at:
                remaining_s = max(ends_at - loop.time(), 0.0)
                await asyncio.sleep(min(remaining_s, _LOOKS_FOR_STOP_S))

    @contextmanager
    def _waiting(self, *, rate_limited: bool = False, retries: bool = False) -> Generator[None]:
        def count(by: int) -> None:
            self.stats.waiting += by
            self.stats.rate_limit_waits += by * rate_limited
            self.stats.retry_waits += by * retries

        count(1)
        try:
            yield
        finally:
            count(-1)

    async def _attempt(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        settings: ModelSettings,
        tries: Tries,
    ) -> Completion | FailedAttempt | Rejection:
        """Send one request and read its response."""
        adapted = frozenset(self._adaptations.active)
        body = self._encoder.encode(messages, tools, settings)
        began = time.monotonic()
        response = await self._post(body, began, tries)
        if isinstance(response, FailedAttempt):
            return response
        request = RequestParts(messages, bool(tools), settings.max_output_tokens)
        try:
            read = self._read(response, tries.seconds, tries.attempts, request)
        except MalformedReply as error:
            if not error.passing:
                raise self._unreadable(str(error)) from error
            return FailedAttempt(self._redacted(str(error)))
        if isinstance(read, Completion):
            self._note_answered(messages, read, has_tools=bool(tools))
            return read
        if read.verdict in ("context", "token_limit"):
            return read
        if name := self._adaptations.adopt(read, request, settings, adapted):
            note(self.stats, "adapted", name, f"{self.base_url}: {self._adaptations.active[name]}")
            return FailedAttempt(read.message, counts=False)
        if read.status in _OVERLOADED and read.verdict == "retry":
            self._overloaded(began)
        return self._fault_from_rejection(read, response, tries)

    async def _post(self, body: bytes, began: float, tries: Tries) -> Response | FailedAttempt:
        """Send a body, and return the response or why there is none.

        Raises:
            InfrastructureError: a fault of the connection that does not pass.
            EndpointRefusal: the certificate of the server is not trusted.
        """
        replies = self.stats.replies
        self.stats.in_flight += 1
        try:
            return await self._transport.post(body)
        except NoResponse as error:
            if error.overload:
                self._overloaded(began)
            if not error.passing:
                raise self._unreadable(str(error)) from error
            problem: EndpointProblem = "unreachable" if error.unreachable else "reply"
            return FailedAttempt(self._redacted(str(error)), problem=problem)
        except TimedOut as error:
            return self._timed_out(began, replies, str(error), tries)
        except UntrustedServer as error:
            fault = self._redacted(str(error))
            if self.stats.has_worked:
                return FailedAttempt(f"the certificate is not trusted: {fault}")
            raise EndpointRefusal(
                f"the certificate of {self.base_url} is not trusted: {fault}",
                problem="unreachable",
                hint="check the address; set SSL_CERT_FILE to the certificate of a private authority",
            ) from error
        finally:
            self.stats.in_flight -= 1

    def _note_answered(
        self, messages: Sequence[Message], reply: Completion, *, has_tools: bool
    ) -> None:
        """Note what the endpoint accepted: the length of the prompt, pictures and tools.

        Raises:
            InfrastructureError: the endpoint cut the prompt.
        """
        count = count_prompt(messages, reply)
        self._longest[count.images] = max(count.characters, self._longest.get(count.images, 0))
        self._most_input = max(self._most_input, count.tokens)
        if count.images:
            self._accepted.add("images")
        if has_tools:
            self._accepted.add("tools")
        note_served(self.stats, self.base_url, self._asked, reply)
        check_prompt([count])

    def _read(
        self, response: Response, seconds: float, attempt: int, request: RequestParts
    ) -> Completion | Rejection:
        body, secret = response.body, self._endpoint.secret.encode()
        if secret and secret in body:
            body = body.replace(secret, b"***")
        if 200 <= response.status < 300:
            return read_reply(
                self._api.as_chat(body), seconds=seconds, attempts=attempt, request=request
            )
        return read_error(response.status, body, request)

    def _account(
        self, completion: Completion, took_s: float, guessed: int, held_back: bool
    ) -> None:
        stats = self.stats
        usage = completion.usage
        used = usage.input_tokens + usage.output_tokens
        if self._estimate and used:
            self._rate.settle(guessed, used)
            self._estimate.learn(guessed, used)
        if completion.finish_reason == "context":
            return
        stats.add_usage(usage)
        if not held_back:
            # A request that a rate limit held back does not show how many the endpoint can handle.
            self.limit.replied(took_s)
            stats.limit = self.limit.current

    def _overloaded(self, began: float, most: int = MOST) -> None:
        self.limit.overloaded(time.monotonic() - began, most)
        self.stats.limit = self.limit.current

    def _fault_from_rejection(
        self, rejection: Rejection, response: Response, tries: Tries
    ) -> Completion | FailedAttempt:
        message = self._redacted(rejection.message)
        match rejection.verdict:
            case "filtered" | "length" as reason:
                return tries.ended(reason, message)
            case "unfit":
                raise InfrastructureError(
                    f"{self.base_url} does not take this request: {message}", problem="request"
                )
            case "images":
                self._refuse(
                    message, "images", "the model takes no images: --no-images", self._accepted
                )
            case "tools":
                self._refuse(
                    message,
                    "tools",
                    "the model takes no native tool calls: --protocol react",
                    self._accepted,
                )
            case "retry":
                wait_s = retry_after(response.headers)
                self.stats.rate_limited += rejection.status == 429
                if (
                    wait_s
                    and rejection.status in _ASKS_TO_WAIT
                    and wait_s <= self._wire.retry_wall_s
                ):
                    self._rate.pause(wait_s)
                return FailedAttempt(message, wait_s, rejection.status == 429)
            case "credentials":
                variable = self._endpoint.key_env
                raise EndpointRefusal(
                    f"{self.base_url} refuses the key: {message}",
                    problem="key",
                    hint=f"set the environment variable {variable} to a valid key, or name another variable"
                    if variable
                    else "name the environment variable with the key (--api-key-env)",
                )
            case "credit":
                raise EndpointRefusal(
                    f"{self.base_url} says that the account has no credit: {message}",
                    problem="credit",
                )
            case "proxy":
                if self.stats.has_worked:
                    return FailedAttempt(message, problem="unreachable")
                self._refuse(
                    message,
                    "unreachable",
                    "a proxy or a firewall answers, not the endpoint: is the address right?",
                )
            case "not_found":
                if self.stats.has_worked:
                    return FailedAttempt(message)
                if to := response.headers.get("Location"):
                    self._refuse(
                        f"it redirects to {to}",
                        "unknown_model",
                        "give that address with --base-url",
                    )
                raise EndpointRefusal(
                    f"{self.base_url} has no model {self.name!r} or no chat completions: {message}",
                    problem="unknown_model",
                    hint="check the model name and the address; most addresses end in /v1",
                )
            case _:
                self._refuse(
                    message,
                    "request",
                    "does the model take images (--no-images) and native tool calls (--protocol react), "
                    "and the endpoint this temperature, seed and token limit?",
                )

    def _refuse(
        self,
        message: str,
        problem: EndpointProblem,
        hint: str,
        accepted: Collection[str] | None = None,
    ) -> NoReturn:
        """Raise an error for this request only if such requests were accepted before, otherwise one that ends the run.

        ``accepted``: problem kinds of requests that were accepted; None counts any reply.
        """
        rejects = f"{self.base_url} rejects the request: {message}"
        if self.stats.has_worked if accepted is None else problem in accepted:
            # The configuration has worked before, so the fault is in this request: ours, not the model's.
            raise InfrastructureError(rejects, problem=problem)
        raise EndpointRefusal(rejects, problem=problem, hint=hint)

    def _unreadable(self, why: str) -> InfrastructureError:
        return InfrastructureError(
            f"no reply from {self.base_url} that can be read: {self._redacted(why)}",
            problem="reply",
        )

    def _give_up(self, attempts: int, fault: FailedAttempt) -> NoReturn:
        wait = (
            "more than a day"
            if (fault.wait_s or 0) > _DAY_S
            else f"{fault.wait_s:.0f} s"
            if fault.wait_s
            else ""
        )
        wait_text = f"; the server asks to wait {wait}" if wait else ""
        advice = (
            "lower --concurrency, or rpm and tpm of the configuration file; "
            if fault.rate_limited
            else ""
        )
        if fault.problem == "unreachable":
            advice = "check that the server is up and the address (--base-url) is right; "
        # No times here, because reports count equal reasons.
        raise InfrastructureError(
            f"no reply from {self.base_url} after {attempts} attempts: {fault.reason}{wait_text}",
            hint=f"{advice}run the same command again to resume",
            problem=fault.problem,
        )

    def _redacted(self, text: str) -> str:
        return one_line(text, self._endpoint.secret)

    async def close(self) -> None:
        self._rate.reset()
        await self._transport.close()
