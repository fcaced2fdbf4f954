"""Verdicts as text: of two runs, of two runs while they go on (``--until-decided``), and of a gate.

A verdict comes in as figures (:class:`~agrotools.scoring.statistics.Estimate`, ``SequentialComparison``, ``Gate``) and
goes out as the words that terminal, page, JUnit and Markdown show. No other module words a verdict on two runs.
"""

from agrotools.core.texts import count_text
from agrotools.formats.manifest import TaskTypes
from agrotools.report.layout import harmless, interval_text, measure_text, percent, points
from agrotools.runner.until_decided import SequentialComparison
from agrotools.scoring.gate import BEYOND, Gate, held_by
from agrotools.scoring.metrics import METRICS
from agrotools.scoring.statistics import MIN_CLUSTERS, Estimate
from agrotools.scoring.summary import Missing

NO_DIFFERENCE = "no difference shown"
"""Verdict on two runs whose difference may be 0."""
NO_DIFFERENCE_FROM_FLOOR = "does not differ significantly from the floor"
"""The same of a run and its floor, on the screen of ``eval``."""
TOO_FEW_FOR_FLOOR = f"fewer than {MIN_CLUSTERS} independent questions are too few to say whether it beats the floor."


def shows_better(
    difference: Estimate, *, paired: bool, same: bool, missing: Missing | None
) -> bool:
    """Return True if a headline difference shows which run is better, whatever the missing scores are."""
    if same or not paired or difference.interval is None or not difference.differs():
        return False
    return missing is None or missing.allows(difference.value)


def verdict_text(
    difference: Estimate,
    names: tuple[str, str],
    *,
    paired: bool = True,
    same: bool = False,
    missing: Missing | None = None,
) -> str:
    """Return what a headline difference shows, the better run first: ``A is better: 9.1 points (4.2 to 14.0)``.

    ``difference`` is the second run of ``names`` minus the first. The points of the better run have no sign, so that
    this line and the signs of differences cannot contradict each other. If scores are ``missing``, there is a verdict
    only if it holds with all of them set against it.
    """
    value, interval = difference.value, difference.interval
    if same:
        return "the same records: difference 0"
    if missing and missing.too_unread:
        return f"no verdict: {missing_text(missing, names)}"
    if missing and not (difference.differs() and missing.allows(difference.value)):
        return f"no verdict, because {missing_text(missing, names)}"
    if interval and shows_better(difference, paired=paired, same=same, missing=missing):
        better, low, high = names[1], interval.lower, interval.upper
        if value <= 0:
            better, low, high = names[0], -interval.upper, -interval.lower
        ends = f"{percent(low)} to {percent(high)}"
        return f"{better} is better: {percent(abs(value))} points ({ends})"
    verdict = NO_DIFFERENCE
    if difference.differs():
        verdict = f"{'higher' if value > 0 else 'lower'} on the samples of the second run"
    elif difference.p_adjusted is None:
        verdict = f"not tested, fewer than {MIN_CLUSTERS} clusters"
    shown = f" ({interval_text(interval, points)})" if interval else ""
    return f"{verdict}: {names[1]} minus {names[0]} = {points(value)} points{shown}"


def missing_text(missing: Missing, names: tuple[str, str]) -> str:
    """Return what each run lacks and the bounds of the difference: second minus first."""
    lacking = [
        f"{count_text(n, 'score')} of {name}"
        for n, name in zip(missing.samples, names, strict=True)
        if n
    ]
    open_scores: list[str] = []
    if lacking:
        are = "is" if sum(missing.samples) == 1 else "are"
        open_scores.append(f"{' and '.join(lacking)} {are} missing")
    if any(missing.unread):
        open_scores.append(f"{unread_text(missing.unread, names)} ({UNREAD_LISTED})")
    bounds = f"{points(missing.lowest.value)} to {points(missing.highest.value)} points"
    text = f"{', and '.join(open_scores)}: {names[1]} minus {names[0]} = {bounds}"
    if missing.too_unread:
        return text
    if missing.lowest.value * missing.highest.value > 0:
        # Both bounds favour one run, and there is no verdict all the same.
        is_tested = missing.lowest.interval is not None
        why = "with their 95 % intervals, 0 is not excluded"
        if not is_tested:
            why = f"fewer than {MIN_CLUSTERS} clusters are not tested"
        return f"{text}; these are bounds of the mean: {why}"
    return text


UNREAD_LISTED = "agrotools score RUN --json lists them"
"""Command that lists the values of a run that were not read."""


def unread_text(unread: tuple[int, int], names: tuple[str, str]) -> str:
    """Return how many values of each of two runs were not read."""
    counts = [
        f"{count_text(n, 'value')} of {name}" for n, name in zip(unread, names, strict=True) if n
    ]
    were = "was" if sum(unread) == 1 else "were"
    return f"{' and '.join(counts)} {were} not read"


def block_text(look: SequentialComparison) -> str:
    """Return the difference of two runs after a block, and the verdict on it."""
    found, first, second = look.difference, *look.means
    difference = f"{percent(second)} minus {percent(first)} = {points(found.value)}"
    if found.interval:
        difference += f" ({interval_text(found.interval, points)})"
    n = f"{found.n:,} of {look.planned:,} samples in {found.n_clusters:,} clusters"
    if look.invalid:
        n += f", {count_text(look.invalid, 'sample')} with invalid records"
    return f"{METRICS[look.metric].label}: {difference}, {n}: {_block_verdict(look)}"


def _block_verdict(look: SequentialComparison) -> str:
    """Return which of two runs is better, or why that is not known."""
    if look.decided:
        is_higher = look.difference.value > 0
        second_is_better = is_higher != METRICS[look.metric].lower_is_better
        return f"{look.models[1] if second_is_better else look.models[0]} is better"
    if look.missing:
        return f"no verdict, because {missing_text(look.missing, look.models)}"
    return NO_DIFFERENCE if look.look == look.looks else "not decided yet"


def gate_lines(result: Gate, new: str, old: str, task_types: TaskTypes | None = None) -> list[str]:
    """Return the result as text: the verdict first; ``new`` and ``old``: names of the models.

    ``task_types``: those that both runs are limited to.
    """
    verdict = _verdict_line(result)
    bound = result.bound
    n = units_text(bound.n, result.mode)
    part = f", only {harmless(task_types.words)}" if task_types else ""
    lines = [
        verdict,
        f"{measure_text(result.mode, result.metric)}: {percent(result.new)} (new, {harmless(new)}), "
        f"{percent(result.old)} (old, {harmless(old)})",
        f"{_change_text(bound.drop)}; one-sided 95 % bound: {_change_text(bound.lower)}; "
        f"{n} in {count_text(bound.n_clusters, 'cluster')}{part}",
        _power_line(result),
    ]
    if result.drops is not None:
        lower, upper = 100 * result.drops.lower, 100 * result.drops.upper
        lines.append(
            f"with what is open, the drop is {lower:.1f} to {upper:.1f} points: missing scores must not change the "
            "verdict, and unread values count for the new version"
        )
    held = held_by(result.mode)
    for n_samples, version in ((result.lost, "old"), (result.added, "new")):
        if n_samples:
            samples = count_text(n_samples, "sample")
            lines.append(f"not compared: {samples} with a {held} only in the {version} version")
    return lines


def _change_text(drop: float) -> str:
    """Return a drop of the score in points; one below 0 is a gain."""
    return f"{'drop' if drop >= 0 else 'gain'} of {100 * abs(drop):.1f} points"


def _verdict_line(result: Gate) -> str:
    """Return the verdict with what it rests on: unread values, and how small a drop these samples can find."""
    allowed = f"{100 * result.max_drop:g} points"
    unread = unread_text(result.unread, ("the old version", "the new version"))
    if result.fault and any(result.lacking):
        return f"FAIL: {result.fault} (--allow-invalid tests the others)"
    if result.fault:
        return f"FAIL: {result.fault} ({UNREAD_LISTED})"
    if not result.passed:
        beside = (
            f", even with all unread values counted as right: {unread}"
            if any(result.unread)
            else ""
        )
        return f"FAIL: the score dropped by more than {allowed}{beside}"
    if result.rests_on_unread:
        return (
            f"PASS, but only because {unread} ({UNREAD_LISTED}): they are not counted as wrong; with them, the drop "
            f"may be more than {allowed}"
        )
    tested = f"these {units_text(result.bound.n, result.mode)}"
    if result.detectable is None:
        return f"PASS, but {tested} could not have found any drop"
    least = f"{100 * result.detectable:.1f}".removesuffix(".0")
    if result.bound.drop > result.max_drop:
        return f"PASS, but {tested} would have found only drops of {least} points or more"
    return f"PASS: no drop of more than {allowed} is shown; {tested} would have found drops of {least} points or more"


def units_text(n: int, mode: str) -> str:
    """Return a number of compared samples, in step-by-step of steps."""
    return count_text(n, "step" if mode == "step-by-step" else "sample")


def _power_line(result: Gate) -> str:
    """Return with which probability the test fails at larger drops than the allowed one, or why that is not known."""
    drops: list[str] = []
    for beyond, power in zip(BEYOND, result.power, strict=True):
        drop = result.max_drop + beyond
        if power is not None and drop <= 1:
            drops.append(f"{100 * drop:g} points: {100 * power:.0f} %")
    if drops:
        return f"probability of failing at a true drop of {', of '.join(drops)}"
    if any(result.power):
        return "a larger drop than the allowed one is not possible"
    alike = "all samples changed alike" if result.bound.drop else "no sample changed"
    return f"{alike}, so the spread of changes, and with it the probability of finding a drop, is not known"
