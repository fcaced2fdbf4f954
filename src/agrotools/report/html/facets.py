"""What one may look for among samples: the kinds of things that go wrong, and drawings; each a filter of the page."""

from collections.abc import Sequence

from agrotools.core import CallTools, Halt, Record, Score, Unparseable
from agrotools.scoring.units import is_invalid

WRONG_TOOL = "wrong tool"
WRONG_ARGUMENT = "wrong argument"
MISSING_CALL = "call left out"
TOOL_ERROR = "tool error"
UNPARSEABLE = "unparseable"
NO_ANSWER = "no answer"
EARLY_ANSWER = "answered too early"
TOOL_LOST_IT = "tool lost it"
NO_REPLY = "invalid"

FACETS = {
    WRONG_TOOL: "called a tool that the reference does not call there",
    WRONG_ARGUMENT: "called the right tool with an argument that does not agree",
    MISSING_CALL: "left out a call that the reference makes",
    TOOL_ERROR: "a call ended in an error",
    UNPARSEABLE: "wrote something that is neither a call nor an answer",
    NO_ANSWER: "ended without an answer",
    EARLY_ANSWER: "answered where a call was due",
    TOOL_LOST_IT: "the reference calls with the real tools do not lead to the right answer either",
    NO_REPLY: "no reply could be had; left out of every mean",
}
"""Every facet and what it means."""


def facets_of(record: Record, scores: Sequence[Score], matches: Sequence[int | None], differs: bool) -> list[str]:
    """The facets of one record.

    Args:
        record, scores: it and its rows.
        matches: for each call of its trajectory the reference step that it stands for.
        differs: whether an argument of one of those calls does not agree with the reference.

    :data:`TOOL_LOST_IT` needs the oracle's record of the sample and is not among them.
    """
    if is_invalid(record):
        return [NO_REPLY]
    found = _of_actions(record, scores) if record.actions is not None else _of_trajectory(record, matches, differs)
    return [facet for facet in FACETS if facet in found]


def _of_actions(record: Record, scores: Sequence[Score]) -> set[str]:
    found: set[str] = set()
    values: dict[tuple[str, int | None], float] = {(row.metric, row.step): row.value for row in scores}
    steps = record.sample.reference.steps if record.sample.reference else ()
    for index, action in enumerate(record.actions or ()):
        if isinstance(action, Unparseable):
            found.add(UNPARSEABLE)
        elif isinstance(action, Halt):
            found.add(NO_ANSWER)
        elif isinstance(action, CallTools) and index < len(steps):
            if values.get(("agrotools.tool_acc", index), 1) < 1:
                found.add(WRONG_TOOL)
            elif values.get(("agrotools.arg_acc", index), 1) < 1:
                found.add(WRONG_ARGUMENT)
        elif index < len(steps):
            found.add(EARLY_ANSWER)
        elif isinstance(action, CallTools):
            found.add(NO_ANSWER)
    return found


def _of_trajectory(record: Record, matches: Sequence[int | None], differs: bool) -> set[str]:
    assert record.trajectory is not None
    found: set[str] = set()
    sample = record.sample
    if any(step.kind == "unparseable" for step in record.trajectory.steps):
        found.add(UNPARSEABLE)
    if any(step.observation and step.observation.error for step in record.trajectory.steps):
        found.add(TOOL_ERROR)
    if record.trajectory.answer is None:
        found.add(NO_ANSWER)
    if record.mode != "end-to-end" or sample.reference is None:
        return found
    if None in matches:
        found.add(WRONG_TOOL)
    if differs:
        found.add(WRONG_ARGUMENT)
    if set(range(len(sample.reference.steps))).difference(matches):
        found.add(MISSING_CALL)
    return found
