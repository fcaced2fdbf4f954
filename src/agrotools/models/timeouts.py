"""Attempts at one reply, and a log of requests and replies that shows whether a time-out is caused by the model.

An endpoint that queues lets ordinary requests wait until they time out, and one that is away or slow does so too. A
time-out is the model's own only where the request was alone, with its full time, at an endpoint that answers others as
usual before it and after it.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from agrotools.core import EndpointProblem
from agrotools.models.base import Completion, FinishReason

TRIES_IN_COMPANY = 3
"""Times that a request may time out beside others before it is asked again alone."""
TRIES_ALONE = 3
"""Times that a request is asked alone without a complete reply."""
PROOFS = 2
"""Number of these that only the model explains before it is its own: one of several machines may hang."""
MOST_LATE_S = 1800.0
"""Seconds that time-outs of requests which are alone may take in all, by either count; but four may be in any case."""
FEWEST_LATE = 4
MOST_FRUITLESS = 10
"""Requests that may time out alone, without proof, with no reply to anybody between; no more are sent then."""
_REMEMBERED = 8
"""Latest replies by which the present speed is judged."""
_USUAL_SHARE = 0.5
"""Share of the time-out that a usual reply may take, so that one that takes all of it is unusual."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A failed attempt worth a retry. ``wait_s``: the wait that the server asked for."""

    reason: str
    wait_s: float | None = None
    rate_limited: bool = False
    problem: EndpointProblem = "reply"
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Late:
    """A time-out that may be the endpoint's doing, and why."""

    doubt: str
    alone: bool
    """True if it was alone in flight."""
    exceptional: bool
    """True if most others were answered meanwhile."""
    timed_out: bool = True


@dataclass(slots=True)
class Tries:
    """Attempts so far at one reply."""

    attempts: int = 0
    """Requests that were sent."""
    faults: int = 0
    in_company: int = 0
    """Time-outs beside other requests."""
    alone: int = 0
    """Time-outs alone in flight."""
    proved: int = 0
    """Of those, how many nothing but the model explains."""
    exceptional: bool = False
    """True if it timed out alone, or while most others were answered."""
    apart: bool = False
    """True if the next attempt keeps all others out."""
    spent_s: float = 0.0
    """Seconds taken by faults, and waited after them."""
    first_at: float = 0.0

    @property
    def seconds(self) -> float:
        """Since the first attempt."""
        return time.monotonic() - self.first_at

    def ended(self, reason: FinishReason, detail: str) -> Completion:
        """The completion of a request whose reply is a refusal or a time-out."""
        return Completion(finish_reason=reason, detail=detail, seconds=self.seconds, attempts=self.attempts)


def hint_after(fault: Fault) -> str:
    if fault.rate_limited:
        return "lower --concurrency, --rpm or --tpm; run the same command again to resume"
    if fault.problem == "unreachable":
        return "check that the server is up and the address (--base-url) is right; run the same command again to resume"
    return "run the same command again to resume"


@dataclass(frozen=True, slots=True)
class Sent:
    """A request when it was sent, and the counts of that moment."""

    at: float
    number: int
    """Among all that were sent."""
    in_company: bool
    replies: int
    timeouts: int
    after_reply: bool
    """True if what was given up before it can be in its way no more: something sent later was answered already."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A request without a complete reply in time."""

    sent: Sent
    alone: bool
    """True if no other request was in flight at any moment of its time."""
    replies: int
    """Replies to others during its time."""
    exceptional: bool
    """True if at least as many others were answered during its time as were not."""


class AnswerLog:
    """Counts of what was sent to an endpoint and what became of it.

    Args:
        timeout_s: seconds after which a request is given up.
        clock: seconds that only go forward.
    """

    def __init__(self, timeout_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.silent = False
        """True if the endpoint was last known to answer nobody."""
        self.hangs_by_chance = False
        """True if a request timed out alone, or among answered ones, and had a reply when it was asked again."""
        self._timeout_s = timeout_s
        self._clock = clock
        self._sent = self._in_flight = self._replies = self._timeouts = 0
        self._latest: deque[float] = deque(maxlen=_REMEMBERED)
        # Moments of sending: of the latest request with an answer, of the latest with a model's reply.
        self._answered = self._replied = float("-inf")
        # When a request was last given up (at first: since when anything is known); when the endpoint last answered
        # fewer than it left waiting.
        self._given_up_at, self._overloaded_at = clock(), float("-inf")

    def send(self) -> Sent:
        """Log that a request is sent now. It must be ended by :meth:`end`."""
        self._sent += 1
        self._in_flight += 1
        return Sent(
            self._clock(),
            self._sent,
            self._in_flight > 1,
            self._replies,
            self._timeouts,
            after_reply=self.clear,
        )

    @property
    def clear(self) -> bool:
        """True if something was answered that was sent after the last request was given up."""
        return self._answered >= self._given_up_at

    def end(self) -> None:
        """Log that a request is no longer in flight, however it ended."""
        self._in_flight -= 1

    def answered(self, sent: Sent, *, probe: bool = False) -> None:
        """Note the reply to a request. A ``probe`` shows that the endpoint is there, and nothing of its speed."""
        self.silent = False
        self._answered = max(self._answered, sent.at)
        if not probe:
            self._replies += 1
            self._replied = max(self._replied, sent.at)
            self._latest.append(self._clock() - sent.at)

    def given_up(self, sent: Sent) -> GivenUp:
        """Note that a request, still in flight, is given up after its full time."""
        now = self._clock()
        alone = not sent.in_company and self._sent == sent.number
        replies = self._replies - sent.replies
        unanswered = self._in_flight + self._timeouts - sent.timeouts
        exceptional = replies >= unanswered
        self._timeouts += 1
        self._given_up_at = now
        if not alone and not exceptional:
            self._overloaded_at = now
        return GivenUp(sent, alone, replies, exceptional)

    def doubt(self, given_up: GivenUp, *, has_worked: bool) -> str:
        """Reason why a time-out may not be caused by the model; empty if it is.

        The endpoint is known to have answered after it. ``has_worked``: whether it ever gave a reply to this run.
        """
        if not given_up.alone:
            return "other requests were in flight"
        if not has_worked:
            return "no request of this run had a reply before"
        if not given_up.sent.after_reply:
            return "requests that were given up before may have been in its way"
        if self.hangs_by_chance:
            return "another request that timed out so was answered when it was asked again"
        if self._overloaded_at > self._replied:
            return "the endpoint was overloaded, and gave no reply since"
        if self._latest and median(self._latest) > _USUAL_SHARE * self._timeout_s:
            return "other replies take more than half of that: the time-out is too short for this endpoint"
        return ""
