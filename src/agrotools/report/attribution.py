"""Attribution of a run as a bar for the terminal, and as tables."""

from collections.abc import Mapping

from rich.text import Text

from agrotools.core.base import count_text
from agrotools.report.layout import DASH, Column, Part, Table, interval_text, new_table, paragraph, percent
from agrotools.scoring.attribution import TOOL, Attribution, Split, ToolNoise, part_meaning

_BAR_CELLS = 60
_SHADES = "█▓▒░▞▚▙▟▛▜"
"""Letters of the parts of the bar, the score first."""
_MOST_PARTS = len(_SHADES) - 2
"""Number of parts that have a letter of their own; the smallest share the last one."""
_STYLES = ("red", "yellow", "magenta", "cyan", "blue")


def attribution_tables(attribution: Attribution) -> list[Part | Text]:
    """Return the bar of a run, the table of its parts, a table by task, and notes."""
    split = attribution.run
    title = f"{split.gap:.1f} of 100 points lost, {count_text(split.n, 'sample')} in end-to-end"
    parts = sorted(split.parts, key=lambda part: -split.parts[part])
    table = new_table(title, ["points", "95 % interval", Column(("meaning",), "words")])
    for part in parts:
        interval = interval_text(split.intervals.get(part), _one_digit) or DASH
        table.add_row(part, _one_digit(split.parts[part]), interval, part_meaning(part))
    of_gap = interval_text(split.intervals.get("gap"), _one_digit) or DASH
    table.add_row("gap", _one_digit(split.gap), of_gap, "100 minus score", ruled=True)
    notes = [
        f"{each.points:.1f} points of {', '.join(each.parts)} are joint in {count_text(each.n_samples, 'sample')}: "
        f"{each.reason}"
        for each in attribution.joint
    ]
    notes += [f"left out: {count} records {reason}" for reason, count in attribution.left_out.items()]
    tasks = [_task_table(attribution.tasks, parts)] if len(attribution.tasks) > 1 else []
    noise = [_noise_table(attribution.tool_noise)] if attribution.tool_noise else []
    return [_bar(split), table, *tasks, *noise, *paragraph([*notes, *attribution.notes], "dim")]


_one_digit = "{:.1f}".format


def _bar(split: Split) -> Text:
    """Return score and lost points as one bar, with its legend."""
    bar, legend = Text(), Text()
    parts = sorted(split.parts.items(), key=lambda item: -item[1])
    lost = {part: points for part, points in parts[:_MOST_PARTS] if points > 0}
    if rest := sum(points for _, points in parts[_MOST_PARTS:] if points > 0):
        lost["others"] = rest
    total = split.ceiling + sum(lost.values()) - split.gap
    for at, (part, points) in enumerate([("score", split.score), *lost.items()]):
        style = "green" if part == "score" else _STYLES[(at - 1) % len(_STYLES)]
        shade = _SHADES[at]
        bar.append(shade * round(_BAR_CELLS * points / total), style=style)
        shown = percent(points / 100)  # as everywhere: 63.75 is not rounded another way than 0.6375
        legend.append(f"{shade} {part.removeprefix(TOOL)} {shown}  ", style=style)
    return Text.assemble(bar, "\n", legend, "\n")


def _task_table(tasks: Mapping[str, Split], parts: list[str]) -> Table:
    """Return a row for each task, by lost points, with the parts that lost most of them."""
    table = new_table("by task", ["samples", "lost", Column(("most of it",), "words")])
    for name, split in sorted(tasks.items(), key=lambda item: -item[1].gap):
        largest = sorted(parts, key=lambda part: -split.parts.get(part, 0.0))[:2]
        text = ", ".join(
            f"{part.removeprefix(TOOL)} {split.parts[part]:.1f}" for part in largest if split.parts.get(part, 0.0) > 0
        )
        table.add_row(name, str(split.n), _one_digit(split.gap), text)
    return table


def _noise_table(noise: ToolNoise) -> Table:
    """Return the predicted score of the reference calls by the error of each tool."""
    title = (
        f"score of the reference calls by the error of one tool: {noise.predicted:.1f} predicted from other clusters, "
        f"{noise.recorded:.1f} with the recorded results"
    )
    table = new_table(title, ["calls", "no error", "half", "as it is", "double", "a perfect one wins"])
    for name, curve in sorted(noise.tools.items(), key=lambda item: -item[1].gain):
        table.add_row(name, str(curve.n_calls), *map(_one_digit, curve.scores.values()), f"{curve.gain:+.1f}")
    return table
