"""Treatments of a field trial: means of their plots, and differences from a control with 95 % intervals.

In: the rows of measured zones and the design (columns of treatment and block, name of the control). Out: a row for each
value, raster and treatment. Each treatment is compared with the control alone; this is no analysis of variance, and
nothing is corrected for the number of comparisons.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from agrotools.core import ToolError
from agrotools.core.readings import Choice, ReadingQuestion, Readings
from agrotools.core.texts import count_text, counted_names, first_names, number_text
from agrotools.knowledge.words import folded
from agrotools_tools.zones.levels import Levels, levels_of, near_pairs
from agrotools_tools.zones.names import is_group, texts_of
from agrotools_tools.zones.plan import Plan, Settings

Row = dict[str, str | float | None]
"""Row of a table of zones or treatments, by column."""
NOT_WHOLE = frozenset("outside partly_outside no_outline no_data mostly_no_data".split())
"""Flags of zones that are measured in part or not at all; such a plot is in no mean and in no chart."""
_NONE = "none"
"""Answer to ``--set treatment`` and ``--set block``: there is no such column."""
_LEVEL = 0.975
"""Probability of the t quantile of a 95 % interval, of two sides."""
_LEAST_PLOTS = 2
"""Plots of a treatment, or blocks, from which a spread is known."""
_LISTED = 3
"""Cells that a line names."""
_ROUNDING = 1e-12
"""Share of the largest value below which a difference is an error of rounding."""


class Design(NamedTuple):
    """Design of a trial. ``treatments``: of each zone, None where it has none; ``levels``: the control, then the
    others in their order. ``blocks``: of each zone; None without a column of blocks. ``numbers``: values of
    the zones in other columns of numbers, such as the yield."""

    treatment: str
    treatments: Sequence[str | None]
    levels: tuple[str, ...]
    block: str | None
    blocks: Sequence[str | None] | None
    numbers: Mapping[str, Sequence[Any]]


class _Difference(NamedTuple):
    """Difference of a treatment from the control; ``blocks``: number of blocks that have both, None by Welch."""

    mean: float | None = None
    lower: float | None = None
    upper: float | None = None
    blocks: int | None = None


def design_of(plan: Plan, settings: Settings, readings: Readings) -> Design | None:
    """Return the design of a trial; None if no column can be the treatment, or the user says that there is none.

    Args:
        settings: answers by name: ``treatment``, ``block`` and ``control``.

    Raises:
        UsageError: a setting is none of the choices.
        ToolError: ``invalid_argument``: no zone has a treatment, or the control.
    """
    fields = plan.zones.fields
    block = _column("block", plan, _groups(plan), settings, readings)
    others = [name for name in plan.columns if name != block and not is_group(name)]
    able = [name for name in others if _may_be_treatment(fields[name])]
    treatment = _column("treatment", plan, able, settings, readings)
    if treatment is None:
        if "treatment" not in settings:
            readings.take(
                f"{plan.file}: no column that repeats, so no treatments (--set treatment=COLUMN)"
            )
        return None
    found = levels_of(fields[treatment])
    levels = found.in_order
    if not levels:
        why = f"--set treatment={treatment}: no zone has a value"
        raise ToolError("invalid_argument", why, argument="table", hint="name another column")
    control = _control(found, treatment, settings, readings)
    measured = [
        name
        for name in plan.columns
        if name not in (treatment, block) and _is_measured(fields[name])
    ]
    for name in measured:
        _say_texts(name, plan, readings)
        _say_far_numbers(name, plan, readings)
    readings.take(
        f"treatments from column {treatment}, compared with {control} (--set control=NAME)"
    )
    by_block = f"blocks from column {block}" if block else "no blocks (--set block=COLUMN)"
    readings.take(by_block)
    _say_spellings(treatment, found, readings)
    blocks = None
    if block:
        of_blocks = levels_of(texts_of(fields[block]))
        _say_spellings(block, of_blocks, readings)
        blocks = of_blocks.of_zones
    others = [level for level in levels if level != control]
    numbers = {name: [_number(value) for value in fields[name]] for name in measured}
    return Design(treatment, found.of_zones, (control, *others), block, blocks, numbers)


_CONTROL_WORDS = frozenset(
    "control untreated check kontrolle unbehandelt unbehandelte temoin testigo testemunha testimone".split()
)
_CONTROL_CHINESE = "对照"
"""Translations of one term, the untreated or usual treatment that the others are compared with: English, German,
French, Spanish, Portuguese and Italian, without accents; and Chinese, where no spaces divide words."""


def _is_control(level: str) -> bool:
    """Return True if the name of a treatment contains a usual word for a control."""
    plain = folded(level)
    return not _CONTROL_WORDS.isdisjoint(plain.split()) or _CONTROL_CHINESE in plain


def _control(found: Levels, treatment: str, settings: Settings, readings: Readings) -> str:
    """Return the treatment that the others are compared with: the one that the user names, else the one whose name
    says so, else the first. Several names that say so are a question.

    Raises:
        ToolError: ``invalid_argument``: no treatment has the name that the user gave.
    """
    levels = found.in_order
    if "control" in settings:
        named = found.named(settings["control"])
        if named is None:
            why = f"--set control={settings['control']}: {treatment} has no such value"
            raise ToolError("invalid_argument", why, argument="table", hint=", ".join(levels))
        return named
    usual = [level for level in levels if _is_control(level)]
    if not usual:
        return levels[0]
    text = f"Which value of {treatment} is the control?"
    choices = tuple(Choice(level, "its name says control") for level in usual)
    return readings.choose(ReadingQuestion(text, "--set=control", choices))


def _say_spellings(column: str, levels: Levels, readings: Readings) -> None:
    """Say which spellings are one level, and which ones are near each other."""
    for level, others in levels.joined.items():
        readings.take(f"{' and '.join(map(repr, others))} of {column} as {level!r}")
    for rarer, other in near_pairs(levels):
        line = f"{rarer!r} and {other!r} of {column} as two (if one is a slip, correct its cells)"
        readings.take(line)


def _say_texts(column: str, plan: Plan, readings: Readings) -> None:
    """Say which cells of a column of numbers are none."""
    cells = zip(plan.rows, plan.zones.fields[column], strict=True)
    texts = {row: text for row, text in cells if row is not None and isinstance(text, str)}
    if not texts:
        return
    listed = [f"row {row} {texts[row]!r}" for row in sorted(texts)]
    readings.leave(
        f"{column} of {count_text(len(texts), 'plot')}: {counted_names(listed, _LISTED)} "
        "(no number, or another unit than the others)"
    )


def _say_far_numbers(column: str, plan: Plan, readings: Readings) -> None:
    """Say which numbers of a column lie far outside the others: they may be slips, and count in the means."""
    cells = zip(plan.rows, plan.zones.fields[column], strict=True)
    numbers = {row: value for row, value in cells if row is not None and isinstance(value, float)}
    if len(numbers) < _FEWEST_NUMBERS:
        return
    median = float(np.median([*numbers.values()]))
    distance = {row: abs(value - median) for row, value in numbers.items()}
    usual = float(np.median([*distance.values()]))
    if not usual:
        return  # More than half are equal, so that nothing tells how far is far.
    far = [row for row in sorted(numbers) if _OF_NORMAL * distance[row] > _FAR * usual]
    if not far:
        return
    listed = [f"row {row} {number_text(numbers[row])}" for row in far]
    readings.take(
        f"{column} of {count_text(len(far), 'plot')} far from the others, whose median is {number_text(median)}: "
        f"{counted_names(listed, _LISTED)} (in the means; if it is a slip, correct the plan)"
    )


_FEWEST_NUMBERS = 6
"""Fewest numbers of which one can be far outside the others."""
_FAR, _OF_NORMAL = 3.5, 0.6745
"""Modified z-score from which a number is an outlier, and the median absolute deviation of a normal distribution with
standard deviation 1 (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993). Unlike mean and standard
deviation, both medians are not moved by the outlier itself."""


def _column(
    name: str, plan: Plan, able: Sequence[str], settings: Settings, readings: Readings
) -> str | None:
    """Return the column that is the treatment or the block; None if there is none. Several are a question."""
    given = settings.get(name)
    if not able and given is None:
        return None
    # Any column may be given, also one that would not have been proposed.
    every = [*dict.fromkeys((*able, *plan.columns, *plan.zones.fields))]
    named = every if given is not None else able
    choices = [Choice(column, _some(plan.zones.fields[column])) for column in named]
    if given is not None or len(able) > 1:
        choices.append(Choice(_NONE, f"there is no {name}"))
    question = ReadingQuestion(
        f"Which column of {plan.file} is the {name}?", f"--set={name}", tuple(choices)
    )
    chosen = readings.choose(question, given)
    return None if chosen == _NONE else chosen


def _some(values: Sequence[Any]) -> str:
    return first_names(levels_of(values).in_order, _LISTED)


def _groups(plan: Plan) -> list[str]:
    """Return the fields whose name is usual for blocks, and whose values several plots share."""
    return [
        name for name, values in plan.zones.fields.items() if is_group(name) and _repeats(values)
    ]


def _repeats(values: Sequence[Any]) -> bool:
    """Return True for two values or more, each of two plots on average."""
    levels = levels_of(values)
    filled = sum(level is not None for level in levels.of_zones)
    return 2 <= len(levels.in_order) <= filled / _LEAST_PLOTS


def _may_be_treatment(values: Sequence[Any]) -> bool:
    """Return True for names that repeat, and for numbers each of which repeats: yields that are equal are few."""
    numbers = Counter(value for value in values if isinstance(value, float))
    return _repeats(values) and all(plots >= _LEAST_PLOTS for plots in numbers.values())


def _is_measured(values: Sequence[Any]) -> bool:
    """Return True for numbers that are not all the same, of which a few may be text."""
    return len({_number(value) for value in values} - {None}) > 1


def _number(value: Any) -> float | None:
    return value if isinstance(value, float) else None


def is_whole(row: Mapping[str, Any]) -> bool:
    """Return True if a zone lies in its raster, with data."""
    return NOT_WHOLE.isdisjoint(str(row["flags"]).split())


def compare_treatments(
    rows: Sequence[Row], design: Design, measured: Sequence[str]
) -> tuple[list[Row], list[str]]:
    """Return a row for each value, raster and treatment, and notes on plots and blocks that were left out.

    The rows of a value follow each other: those of its rasters, then those of its change from the first to the last.

    Args:
        rows: of all rasters and zones; the zones of a raster are in the order of the design.
        measured: columns that were measured in rasters.
    """
    count = len(design.treatments)
    found: list[Row] = []
    notes: list[str] = []
    rasters: list[_OfRaster] = []
    for start in range(0, len(rows), count):
        of_raster = rows[start : start + count]
        whole = [row if is_whole(row) else None for row in of_raster]
        place: Row = {name: of_raster[0][name] for name in ("raster", "date")}
        left = sum(row is None for row in whole)
        if left:
            notes.append(
                f"{place['raster']}: {left} of {count} plots are not whole in it and not in the means of treatments"
            )
        rasters.append(_OfRaster(whole, place))
    for column in measured:
        for each in rasters:
            found += _compared(column, each.values(column), design, each.place)
        found += _compared_change(column, rasters, design)
    for column, values in design.numbers.items():
        found += _compared(column, values, design, {"raster": None, "date": None})
    if design.blocks is not None:
        all_blocks = len(set(design.blocks) - {None})
        fewer = sum(row["control"] is not None and row["blocks"] != all_blocks for row in found)
        if fewer:
            notes.append(
                f"{count_text(fewer, 'difference')} of treatments from fewer than {all_blocks} blocks: a block without "
                "the treatment or the control is left out (column blocks of treatments.csv)"
            )
    return found, notes


class _OfRaster(NamedTuple):
    """The zones of a raster, None where one is not whole in it; ``place``: name and date of the raster."""

    whole: Sequence[Row | None]
    place: Row

    def values(self, column: str) -> list[Any]:
        return [None if row is None else row.get(column) for row in self.whole]

    @property
    def shown(self) -> str:
        """Its date, else its name."""
        return str(self.place["date"] or self.place["raster"])


CHANGE = "change of "
"""Start of the name of a value that is its difference between two rasters."""


def _compared_change(column: str, rasters: Sequence[_OfRaster], design: Design) -> list[Row]:
    """Return a row for each treatment with the change of a value from the first raster that has it to the last.

    The change is taken plot by plot, so that only plots count that are whole in both. Rasters of one date show none.
    """
    having = [each for each in rasters if any(value is not None for value in each.values(column))]
    if len(having) < 2 or having[0].shown == having[-1].shown:
        return []
    first, last = having[0], having[-1]
    changes = [
        None if before is None or after is None else after - before
        for before, after in zip(first.values(column), last.values(column), strict=True)
    ]
    place: Row = {"raster": last.place["raster"], "date": f"{first.shown} to {last.shown}"}
    return _compared(f"{CHANGE}{column}", changes, design, place)


def _compared(column: str, values: Sequence[Any], design: Design, place: Row) -> list[Row]:
    """Return a row for each treatment; none without a value."""
    known = np.array([np.nan if value is None else float(value) for value in values])
    if not np.isfinite(known).any():
        return []
    control, *others = design.levels
    rounding = _ROUNDING * float(np.nanmax(np.abs(known)))
    plots = {level: _plots_of(level, known, design) for level in design.levels}
    rows: list[Row] = []
    for level in (control, *others):
        of_level = known[plots[level]]
        difference = _Difference()
        if level != control:
            difference = _difference(plots[level], plots[control], known, design.blocks)
            if difference.mean is not None and abs(difference.mean) < rounding:
                difference = difference._replace(mean=0.0)
        rows.append(
            {
                "value": column,
                "date": place["date"],
                "treatment": level,
                "n": of_level.size,
                "mean": float(of_level.mean()) if of_level.size else None,
                "sd": float(of_level.std(ddof=1)) if of_level.size >= _LEAST_PLOTS else None,
                "difference": difference.mean,
                "lower_95": difference.lower,
                "upper_95": difference.upper,
                "control": None if level == control else control,
                "blocks": difference.blocks,
                "raster": place["raster"],
            }
        )
    return rows


def _plots_of(level: str, known: NDArray[np.float64], design: Design) -> NDArray[np.intp]:
    """Return the places of the plots of a treatment that have a value."""
    is_level = np.array([each == level for each in design.treatments])
    return np.flatnonzero(is_level & np.isfinite(known))


def _difference(
    plots: NDArray[np.intp],
    of_control: NDArray[np.intp],
    known: NDArray[np.float64],
    blocks: Sequence[str | None] | None,
) -> _Difference:
    """Return the difference within blocks if there are any, else that of Welch (1947)."""
    if blocks is None:
        return _welch(known[plots], known[of_control])
    differences: list[float] = []
    for block in sorted({each for each in blocks if each is not None}):
        ours = [known[place] for place in plots if blocks[place] == block]
        theirs = [known[place] for place in of_control if blocks[place] == block]
        if ours and theirs:
            differences.append(float(np.mean(ours) - np.mean(theirs)))
    number = len(differences)
    if not number:
        return _Difference(blocks=0)
    error = float(np.std(differences, ddof=1)) / number**0.5 if number >= _LEAST_PLOTS else 0.0
    return _with_interval(float(np.mean(differences)), error, number - 1)._replace(blocks=number)


def _welch(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> _Difference:
    if not (ours.size and theirs.size):
        return _Difference()
    mean = float(ours.mean() - theirs.mean())
    if min(ours.size, theirs.size) < _LEAST_PLOTS:
        return _Difference(mean)
    parts = np.array([ours.var(ddof=1) / ours.size, theirs.var(ddof=1) / theirs.size])
    total = float(parts.sum())
    if not total:
        return _Difference(mean)
    degrees = total**2 / float((parts**2 / (np.array([ours.size, theirs.size]) - 1)).sum())
    return _with_interval(mean, total**0.5, degrees)


def _with_interval(mean: float, error: float, degrees: float) -> _Difference:
    """Return a difference with its t interval; without one where no spread is known."""
    if not error:
        return _Difference(mean)
    reach = float(special.stdtrit(degrees, _LEVEL)) * error
    return _Difference(mean, mean - reach, mean + reach)
