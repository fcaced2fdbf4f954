"""When a run stops by itself because the endpoint is gone, and when many failures in a row mean nothing of the kind."""

from types import SimpleNamespace
from typing import Any

from agrotools.core import InfrastructureError, Record
from agrotools.models import WireStats
from agrotools.runner.execute import _Endpoint
from agrotools.runner.records import Key
from support.plain_sample import plain_sample

FAILED = Record(sample=plain_sample(), mode="no-tool", invalid="no reply from http://127.0.0.1/v1")
ANSWERED = Record(sample=plain_sample(), mode="no-tool")


def endpoint(stats: WireStats | None, allowed: int = 1, failed: frozenset[Key] = frozenset()) -> _Endpoint:
    context: Any = SimpleNamespace(
        source=SimpleNamespace(stats=stats), pace=SimpleNamespace(allowed=allowed), store=SimpleNamespace(failed=failed)
    )
    return _Endpoint(context)


def test_samples_in_a_row_during_which_nobody_got_a_reply_end_the_run() -> None:
    guard = endpoint(WireStats(replies=5))
    assert [guard.record_outcome(FAILED, 5) for _ in range(9)] == [None] * 9
    assert isinstance(guard.record_outcome(FAILED, 5), InfrastructureError)


def test_as_many_as_two_rounds_of_what_is_in_flight_are_waited_for() -> None:
    guard = endpoint(WireStats(), allowed=20)
    assert [guard.record_outcome(FAILED, 0) for _ in range(39)] == [None] * 39
    assert guard.record_outcome(FAILED, 0) is not None


def test_those_left_over_when_the_endpoint_bears_less_than_before_prove_nothing() -> None:
    """Forty were in flight, the good ones got their replies, the limit fell to one: the rest fails in a row."""
    guard = endpoint(WireStats(replies=30))
    assert [guard.record_outcome(FAILED, 12) for _ in range(28)] == [None] * 28


def test_an_answer_or_a_reply_to_anybody_starts_the_count_again() -> None:
    stats = WireStats()
    guard = endpoint(stats)
    for again in (lambda: guard.record_outcome(ANSWERED, 0), lambda: guard.record_outcome(FAILED, stats.replies - 1)):
        assert [guard.record_outcome(FAILED, stats.replies) for _ in range(9)] == [None] * 9
        assert again() is None
    assert [guard.record_outcome(FAILED, stats.replies) for _ in range(9)] == [None] * 9


def test_what_failed_in_an_earlier_run_is_no_proof() -> None:
    """Else a run with ten samples that no server answers could never be brought to an end."""
    guard = endpoint(WireStats(), failed=frozenset({FAILED.key}))
    assert [guard.record_outcome(FAILED, 0) for _ in range(50)] == [None] * 50


def test_without_a_wire_there_is_no_endpoint_to_lose() -> None:
    guard = endpoint(None)
    assert [guard.record_outcome(FAILED, 0) for _ in range(50)] == [None] * 50
