"""How the papers of published benchmarks ran their models."""

from typing import NamedTuple

from agrotools.core import Protocol


class PublishedWay(NamedTuple):
    """A protocol, and after how many model turns a sample ended; None where there is but one."""

    protocol: Protocol
    max_steps: int | None = None


PUBLISHED_WAYS = {
    "gta": PublishedWay("lagent", 10),
    "gta-2": PublishedWay("lagent", 10),
    "thinkgeo": PublishedWay("lagent", 15),
    "agent-x": PublishedWay("agent-x"),
}
"""By benchmark. Runs are held so unless told otherwise."""
