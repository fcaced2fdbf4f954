"""Benchmarks from a user's own photographs and a table of ground truth.

:func:`match_rows` reads the table and matches its rows to photographs, :func:`~.proposal.propose_plan` proposes a
:class:`Plan`, the user answers its open questions, and :func:`build_from_photos` writes the benchmark. Every row that
is not used is reported with its number, the reason and a remedy.
"""

from agrotools.build.own_photos.building import BuiltBenchmark, build_from_photos
from agrotools.build.own_photos.plan import Column, Plan, read_plan, write_plan
from agrotools.build.own_photos.proposal import OpenQuestion, open_questions
from agrotools.build.own_photos.table import DetectedTable, match_rows

__all__ = [
    "BuiltBenchmark",
    "Column",
    "DetectedTable",
    "OpenQuestion",
    "Plan",
    "build_from_photos",
    "match_rows",
    "open_questions",
    "read_plan",
    "write_plan",
]
