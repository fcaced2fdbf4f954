"""Attempts at one reply, and a log of requests and replies that shows whether a time-out is caused by the model.

Ordinary requests also time out at an endpoint that queues them, is slow or is unreachable. A time-out is attributed to
the model only if the request was alone for its full time, at an endpoint that answers others normally before and after.
"""

import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from agrotools.core import EndpointProblem
from agrotools.models.base import Completion, FinishReason, WireSettings

TRIES_IN_COMPANY = 3
"""Time-outs of a request among others before it is sent alone."""
TRIES_ALONE = 3
"""Time-outs of a request sent alone before it fails."""
PROOFS = 2
"""Time-outs that only the model can explain before it counts as the cause: one of several machines may hang."""
MOST_LATE_S = 1800.0
"""Maximum total seconds of time-outs of requests sent alone, by either count; at least four are always allowed."""
FEWEST_LATE = 4
MOST_FRUITLESS = 10
"""Maximum time-outs of requests sent alone, without proof and without a reply to any request in between."""
_REMEMBERED = 8
"""Number of latest replies that define the current speed."""
_USUAL_SHARE = 0.5
"""Maximum share of the time-out that a usual reply takes; above it, a time-out is not exceptional."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A failed attempt that is worth a retry. ``wait_s``: wait requested by the server."""

    reason: str
    wait_s: float | None = None
    rate_limited: bool = False
    problem: EndpointProblem = "reply"
    timed_out: bool = False
    adapted: bool = False
    """True if the request is sent again in another form, which does not count as an attempt."""


@dataclass(slots=True)
class Tries:
    """Attempts so far at one reply."""

    attempts: int = 0
    """Number of requests sent."""
    faults: int = 0
    in_company: int = 0
    """Time-outs while other requests were in flight."""
    alone: int = 0
    """Time-outs while alone in flight."""
    proved: int = 0
    """Number of time-outs that only the model can explain."""
    exceptional: bool = False
    """True if the request timed out alone, or while most others were answered."""
    next_alone: bool = False
    """True if the next attempt is sent alone."""
    spent_s: float = 0.0
    """Seconds spent on failed attempts and on the waits after them."""
    first_at: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the first attempt."""
        return time.monotonic() - self.first_at

    def ended(self, reason: FinishReason, detail: str) -> Completion:
        """Return the completion of a request that was refused or timed out."""
        return Completion(finish_reason=reason, detail=detail, seconds=self.seconds, attempts=self.attempts)


def backoff_s(wire: WireSettings, attempt: int) -> float:
    """Return the seconds to wait after the ``attempt``-th failed attempt."""
    longest = min(wire.longest_wait_s, wire.first_wait_s * 2 ** (attempt - 1))
    return longest * random.uniform(0.5, 1.0)


def hint_after(fault: Fault) -> str:
    if fault.rate_limited:
        return "lower --concurrency, --rpm or --tpm; run the same command again to resume"
    if fault.problem == "unreachable":
        return "check that the server is up and the address (--base-url) is right; run the same command again to resume"
    return "run the same command again to resume"


@dataclass(frozen=True, slots=True)
class Sent:
    """A request at the moment it was sent, with the counts at that moment."""

    at: float
    number: int
    """Sequence number of the request."""
    in_company: bool
    replies: int
    timeouts: int
    after_reply: bool
    """True if requests that were abandoned earlier cannot delay it, because one sent after them was answered."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A request without a complete reply in time."""

    sent: Sent
    alone: bool
    """True if no other request was in flight at any time meanwhile."""
    replies: int
    """Number of other requests answered meanwhile."""
    exceptional: bool
    """True if at least as many other requests were answered meanwhile as were not."""
    doubt: str = ""
    """Reason why the endpoint may have caused the time-out; set once the endpoint was tested."""
    timed_out: bool = True


class AnswerLog:
    """Counts of the requests sent to an endpoint, abandoned after ``timeout_s`` seconds, and of their outcomes."""

    def __init__(self, timeout_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.silent = False
        """True if the endpoint answered no request when it was last tested."""
        self.hangs_by_chance = False
        """True if a request timed out alone, or while others were answered, and succeeded when it was repeated."""
        self._timeout_s = timeout_s
        self._clock = clock
        self._sent = self._in_flight = self._replies = self._timeouts = 0
        self._latest: deque[float] = deque(maxlen=_REMEMBERED)
        # Sending times: of the latest answered request, and of the latest one with a reply of the model.
        self._answered = self._replied = float("-inf")
        # Time when a request was last abandoned (initially the start of the log), and time when the endpoint last
        # answered fewer requests than it left waiting.
        self._given_up_at, self._overloaded_at = clock(), float("-inf")

    def send(self) -> Sent:
        """Log that a request is sent now. Each call must be followed by :meth:`end`."""
        self._sent += 1
        self._in_flight += 1
        return Sent(
            self._clock(), self._sent, self._in_flight > 1, self._replies, self._timeouts, after_reply=self.clear
        )

    @property
    def clear(self) -> bool:
        """True if a request that was sent after the last one was abandoned has been answered."""
        return self._answered >= self._given_up_at

    def end(self) -> None:
        """Log that a request is no longer in flight, however it ended."""
        self._in_flight -= 1

    def answered(self, sent: Sent, *, probe: bool = False) -> None:
        """Record the reply to a request. A ``probe`` shows that the endpoint answers, but not how fast."""
        self.silent = False
        self._answered = max(self._answered, sent.at)
        if not probe:
            self._replies += 1
            self._replied = max(self._replied, sent.at)
            self._latest.append(self._clock() - sent.at)

    def given_up(self, sent: Sent) -> GivenUp:
        """Record that a request, still in flight, is abandoned after its full time."""
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
        """Return the reason why the model may not have caused a time-out; empty if it did.

        The endpoint must have answered after it. ``has_worked``: True if the endpoint has ever replied to this run.
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
