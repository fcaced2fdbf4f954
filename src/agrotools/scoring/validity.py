"""Whether the scores of runs may stand: no sample got a reply, most were lost, some are invalid or missing."""

from collections.abc import Sequence
from typing import NamedTuple

from agrotools.exit_codes import DONE, FAULTS, NOT_DONE
from agrotools.scoring.event_counts import mostly_lost
from agrotools.scoring.summary import ModeSummary, Summary


class Validity(NamedTuple):
    """Whether scores may stand: the exit code of the command that shows them, and the error behind it, if any.

    ``exit_code``: 0; 1 if samples are invalid or missing; 3 if no sample got a reply, or if more than half of the
    samples of a mode ended without an answer that can be scored.
    """

    exit_code: int
    error: str = ""
    hint: str = ""


def are_silent(summaries: Sequence[Summary]) -> bool:
    """Return True if no sample of any run got a reply: there is nothing to show."""
    parts = _parts_of(summaries)
    return bool(parts) and all(part.invalid.n == part.n_records for part in parts)


def check_validity(
    summaries: Sequence[Summary], names: Sequence[str], *, allow_invalid: bool = False
) -> Validity:
    """Return whether the scores of runs may stand.

    Args:
        summaries: summaries of the runs.
        names: names of the runs in an error, such as their folders.
        allow_invalid: let scores stand even if most samples of a mode were lost.
    """
    parts = _parts_of(summaries)
    if are_silent(summaries):
        reason = next(iter(parts[0].invalid.reasons))
        return Validity(NOT_DONE, f"no sample got a reply: {reason}")
    lost = [
        f"{name} ({mode})"
        for name, summary in zip(names, summaries, strict=True)
        for mode, part in summary.modes.items()
        if mostly_lost(part)
    ]
    if lost and not allow_invalid:
        return Validity(
            NOT_DONE,
            f"more than half of the samples ended without an answer that could be scored: {', '.join(lost)}",
            'the lines above the tables ("warnings" in JSON) say why; --allow-invalid lets them stand',
        )
    has_invalid = any(part.invalid.n or not part.headline for part in parts)
    has_missing = any(summary.missing for summary in summaries)
    return Validity(FAULTS if has_invalid or has_missing else DONE)


def _parts_of(summaries: Sequence[Summary]) -> list[ModeSummary]:
    return [part for summary in summaries for part in summary.modes.values()]
