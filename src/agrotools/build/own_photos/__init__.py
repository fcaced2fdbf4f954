"""A benchmark from a folder of photos and a table of answers: what people have who grow, scout or breed.

``look`` reads the table, finds what each column holds and proposes a :class:`Plan`; people answer what it cannot know;
``build_own`` makes the benchmark. Every row that is not used is counted with its number, the reason and what to do.
"""

from agrotools.build.own_photos.building import Built, build_own
from agrotools.build.own_photos.detect import Seen, look
from agrotools.build.own_photos.plan import Column, Plan, read_plan, write_plan
from agrotools.build.own_photos.proposal import Need, needs_of

__all__ = ["Built", "Column", "Need", "Plan", "Seen", "build_own", "look", "needs_of", "read_plan", "write_plan"]
