"""When a run stops by itself because the endpoint is gone, and when many failures in a row mean nothing of the kind."""

from types import SimpleNamespace
from typing import Any

import pytest

from agrotools.core import InfrastructureError, Record
from agrotools.models import WireStats
from agrotools.runner.execute import Ending
from support.plain_sample import plain_sample

FAILED = Record(sample=plain_sample(), mode="no-tool", invalid="no reply from http://127.0.0.1/v1")
ANSWERED = Record(sample=plain_sample(), mode="no-tool")


def ending(
    replies: int | None = 0, allowed: int = 1, failed: frozenset[Any] = frozenset()
) -> Ending:
    stats = None if replies is None else WireStats(replies=replies)
    context: Any = SimpleNamespace(
        source=SimpleNamespace(stats=stats),
        pace=SimpleNamespace(allowed=allowed),
        store=SimpleNamespace(failed=failed),
    )
    return Ending(context)


@pytest.mark.parametrize(
    ("guard", "replies_at_start", "stops_after"),
    [
        (ending(5), 5, 10),
        (ending(allowed=20), 0, 40),  # two rounds of what is in flight
        (
            ending(30),
            12,
            None,
        ),  # others got replies, then the limit fell to one: the rest fails in a row
        (
            ending(failed=frozenset({FAILED.key})),
            0,
            None,
        ),  # it failed in an earlier run, and may be the cause itself
        (ending(None), 0, None),  # a run without a wire
    ],
)
def test_samples_in_a_row_without_a_reply_to_anybody_end_the_run(
    guard: Ending, replies_at_start, stops_after
):
    for number in range(1, 51):
        guard.record_outcome(FAILED, replies_at_start)
        assert guard.requested == (stops_after is not None and number >= stops_after)
    assert isinstance(guard.error, InfrastructureError) == (stops_after is not None)


def test_an_answer_or_a_reply_to_anybody_starts_the_count_again() -> None:
    guard = ending()
    for record, replies_at_start in ((ANSWERED, 0), (FAILED, -1), (FAILED, 0)):
        for _ in range(9):
            guard.record_outcome(FAILED, 0)
        assert not guard.requested
        guard.record_outcome(record, replies_at_start)
    assert guard.requested
