"""Records that ended without an answer: by which cause, how many, and what may be done about it."""

from collections import Counter
from collections.abc import Mapping

from agrotools.core import Halt, Mode, Record, Unparseable
from agrotools.scoring.summary import ModeSummary
from agrotools.scoring.units import is_invalid

INVALID = "infrastructure"
WORTH_A_WORD = 0.05
"""A cause that ended more than this share of the records of a mode is told."""
NOT_OF_THE_ANSWERS = ("timeout", INVALID, "length", "context", "filtered")
"""Causes after which nothing is known of what the model would have answered."""

_CAUSES = {
    "timeout": (
        "ended by timeout: no complete reply in time, though asked alone",
        "try a larger --timeout or a smaller --max-output-tokens",
    ),
    "length": (
        "ended at the token limit of a reply",
        "try a larger --max-output-tokens, or see with agrotools explain what it repeats",
    ),
    "context": (
        "ended because the conversation does not fit the model's context",
        "serve the model with a longer context, or try a smaller --max-output-tokens or --no-images; with another "
        "--out, for finished samples are not asked again",
    ),
    "filtered": (
        "were stopped by a content filter",
        "see what it said with agrotools explain, and try other settings of the filter or another endpoint",
    ),
    "unparseable": (
        "ended with output that is neither a call nor an answer",
        "look at one with agrotools explain, and try another --protocol",
    ),
    "max_steps": ("ended without an answer after --max-steps turns", "try a larger --max-steps"),
    INVALID: (
        "are invalid, without a reply that could be scored",
        "give the same command again, if need be with a smaller --concurrency or a larger --timeout",
    ),
}


def ending_of(record: Record) -> str | None:
    """What kept a record from an answer; in step-by-step, from half of its steps or more. None where nothing did."""
    if is_invalid(record):
        return INVALID
    if record.trajectory is not None:
        return None if record.trajectory.termination == "answered" else record.trajectory.termination
    actions = record.actions or ()
    lost = [action.termination for action in actions if isinstance(action, Halt)]
    lost += ["unparseable" for action in actions if isinstance(action, Unparseable)]
    cause, n = Counter(lost).most_common(1)[0] if lost else ("", 0)
    return cause if cause and 2 * n >= len(actions) else None


def mostly_lost(part: ModeSummary) -> bool:
    """Whether more than half of the records ended for reasons that say nothing of the model's answers."""
    return 2 * sum(part.endings.get(cause, 0) for cause in NOT_OF_THE_ANSWERS) > part.n_records


def missing_of(modes: Mapping[Mode, ModeSummary], planned: Mapping[Mode, int]) -> dict[Mode, int]:
    """How many of the ``planned`` records of each mode are not there; modes that lack none are left out."""
    held = {mode: part.n_records for mode, part in modes.items()}
    return {mode: n - held.get(mode, 0) for mode, n in planned.items() if n > held.get(mode, 0)}


def warnings_of(modes: Mapping[Mode, ModeSummary], missing: Mapping[Mode, int]) -> tuple[str, ...]:
    """A line for each mode with records missing, and for each cause that ended more than 5 % of a mode's records."""
    lines: list[str] = []
    for mode, n_missing in missing.items():
        n = modes[mode].n_records if mode in modes else 0
        lines.append(
            f"{mode}: {n_missing} of {n + n_missing} planned records are missing; the figures are of the other {n}. "
            "The same agrotools eval command runs what is missing."
        )
    for mode, part in modes.items():
        reasons = part.invalid.reasons
        for cause, n in sorted(part.endings.items(), key=lambda item: (-item[1], item[0])):
            if n <= WORTH_A_WORD * part.n_records:
                continue
            what, advice = _CAUSES[cause]
            told = f" (most often: {max(reasons, key=lambda each: reasons[each])})" if cause == INVALID else ""
            share = 100 * n / part.n_records
            advice = advice[0].upper() + advice[1:]
            lines.append(f"{mode}: {n} of {part.n_records} samples ({share:.1f} %) {what}{told}. {advice}.")
        failures = part.counts.form_failures
        if sum(failures.values()) > WORTH_A_WORD * part.n_records:
            listed = ", ".join(f"{ended} {n}" for ended, n in failures.items())
            lines.append(
                f"{mode}: the request for the answer form failed {sum(failures.values())} times ({listed}); what was "
                "answered before it was read alone. See one with agrotools explain."
            )
    return tuple(lines)
