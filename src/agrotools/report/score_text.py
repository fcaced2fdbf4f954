"""Score of one sample in a few plain lines, for the logs of other programs."""

from collections.abc import Sequence

from agrotools.core import Record, Score
from agrotools.report.explain import NOT_COUNTED, first_error, uncounted
from agrotools.report.html.data import table_texts
from agrotools.report.layout import DASH, harmless, shortened
from agrotools.scoring.attribution import ordered_parts, part_label
from agrotools.scoring.lost_points import Shares, largest_part

_LONGEST_REASON = 200


def score_text(record: Record, scores: Sequence[Score], shares: Shares) -> str:
    """Return what was expected and answered, and on a second line why points were lost and the first error.

    Args:
        record: one record of a run.
        scores: its score rows.
        shares: points that it lost by part (:func:`agrotools.scoring.lost_points.lost_shares`).
    """
    expected, answered = table_texts(record, scores)
    answers = f"Expected: {expected or DASH}. Answered: {answered.rstrip('.') or 'nothing'}."
    if left_out := uncounted(record.sample.answer, scores):
        answers += f" {', '.join(left_out)}: {NOT_COUNTED}."
    if record.invalid is not None:
        reason = shortened(harmless(record.invalid), _LONGEST_REASON)
        return f"{answers}\nInvalid: {reason}."
    if not shares:
        return f"{answers}\nNo points lost."
    lost = [f"{part_label(part)} {100 * float(shares[part]):.1f}" for part in ordered_parts(shares)]
    text = f"{answers}\nPoints lost by {', '.join(lost)}."
    if wrong := first_error(record, scores, largest_part(shares)):
        text += f" First error: {wrong}."
    return text
