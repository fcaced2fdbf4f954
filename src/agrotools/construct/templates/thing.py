"""Things that questions written as data are asked of: files, the call that measures them, and the truth."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from agrotools.construct.references import PlannedCall
from agrotools.core import Arguments, SampleFile


@dataclass(frozen=True)
class Thing:
    """Something that one call measures: a leaf in a photo, a tile of canopy heights, a pair of dates.

    ``truth`` is what a perfect tool returns, as far as the source knows it, in the tool's own form. ``called`` is how
    a question names it: the name of a file ("image_1.jpg"), or a part of one ("left half"). ``words`` are more words
    for wordings (``{one_...}``, ``{two_...}``: prefixed by the thing's place in the sample). ``closer`` are
    calls that look closer at what the first one returned, steps 1, 2...; only made where one thing is asked of.
    """

    files: tuple[SampleFile, ...]
    tool: str
    arguments: Arguments
    truth: Mapping[str, JsonValue]
    called: str
    thought: str
    words: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    closer: tuple[PlannedCall, ...] = ()
