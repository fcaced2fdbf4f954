"""Weeds of Australian rangeland, photographed by a camera that is carried over the ground (DeepWeeds)."""

from collections import defaultdict
from csv import DictReader
from datetime import UTC, datetime
from io import StringIO

from field_sources.snapshot import Prepared, Reader, lot_of

_KEPT_APART = """
20170126-095233-0 20170130-102645-0 20170217-095330-0 20170217-115140-0 20170217-115451-0
20170711-121408-0 20170714-110726-3 20170714-111525-2 20170714-170829-1 20170718-094738-2
20170718-101537-2 20170718-131745-2 20170718-132405-2 20170728-121037-2 20170728-122837-3
20170728-124604-3 20170728-153014-2 20170811-131127-2 20170811-134145-1 20170906-133230-1
20170920-112901-3 20170920-115200-3 20170920-132623-2 20170920-160401-3 20170920-184837-1
20171025-074814-3 20171025-093119-2 20171025-094854-2 20171025-100402-2 20171102-094409-1
20171109-091542-3 20171109-091843-2 20171109-092455-2 20171109-093204-2 20171109-193756-1
20171121-072834-1 20171121-072911-1 20171121-073753-1 20171121-074015-1 20171121-083845-1
20171212-094444-3 20171212-100403-3 20180112-080759-2 20180112-082314-1 20180125-123243-2
""".split()
"""Photographs that were kept for questions from the first, with their names: day, time and camera.

The net that names weeds learnt from most of DeepWeeds, but from nothing taken within a minute of these. Photographs
taken within half a minute of one that it did learn from are in ``left_out.toml``.
"""
_MINUTE_S = 60
_LEAST_PAUSE_S = 8
"""Least time between two photographs: nearer ones show the same plant."""
_MORE_OF_EACH = 11
"""Further photographs of each species, and of other plants: half of them cannot be told by eye and are left out."""


def _read_deepweeds(prepared: Prepared) -> None:
    """Photographs of eight weeds and of other plants from which no net of the package learnt.

    The day in a photograph's name is its cluster: the camera was at one place a day.
    """
    table = DictReader(StringIO(prepared.snapshot.text("labels/labels.csv")))
    species_of = {row["Filename"].removesuffix(".jpg"): row["Species"] for row in table}
    apart = [_taken(name) for name in _KEPT_APART]
    others: dict[str, list[str]] = defaultdict(list)
    for name, species in species_of.items():
        nearest = min(abs((_taken(name) - moment).total_seconds()) for moment in apart)
        if nearest <= _MINUTE_S and name not in _KEPT_APART:
            others[species].append(name)
    chosen = [*_KEPT_APART]
    for names in others.values():
        chosen += _spread(names, chosen)
    for name in sorted(chosen):
        path = f"data/{name}.jpg"
        prepared.add(name, name.partition("-")[0], {"image": path}, label=species_of[name])


def _spread(names: list[str], chosen: list[str]) -> list[str]:
    """Return some of the names, by lot, that are apart in time from each other and from those chosen."""
    some: list[str] = []
    for name in sorted(names, key=lot_of):
        pauses = [abs((_taken(name) - _taken(other)).total_seconds()) for other in [*chosen, *some]]
        if min(pauses) >= _LEAST_PAUSE_S:
            some.append(name)
    return some[:_MORE_OF_EACH]


def _taken(name: str) -> datetime:
    """Return the time in a photograph's name. Its zone does not matter, since only differences are used."""
    return datetime.strptime(name.rpartition("-")[0], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)


DEEPWEEDS = Reader(
    "ai-agriculture-circuits-and-systems/deep_weeds",
    "cb85c5648d43b2645c423f81d81816a7cb4233f4",
    _read_deepweeds,
)
