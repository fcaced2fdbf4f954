"""The accuracy page: prose of ``studies/accuracy/prose``, with figures of the CSV files of ``studies/results``."""

import re
from pathlib import Path

from accuracy import STUDIES
from accuracy.errors import VERDICTS, errors_of, figure_text, verdict_of
from accuracy.table import MEASURED, RESULTS, read_rows
from accuracy.uncertainty import sure_lines

STRANGERS, UNCERTAINTY = RESULTS / "strangers.csv", RESULTS / "uncertainty.csv"
_PROSE = Path(__file__).with_name("prose")
_FIGURE = re.compile(r"\{([^{}|]+) \| ([^{}|]+?)(?: \| ([^{}|]+))?\}")
"""A figure in the prose of a tool: ``{folder | metric}`` or ``{folder | metric | unit}``."""
CALLS = {
    "weed": "`identify_weed`",
    "diagnosis": "`diagnose_pest_disease` without a crop",
    "diagnosis_of_bean": "`diagnose_pest_disease`, crop bean",
    "lesions": "`analyze_lesions`",
    "apple_count": "`count_objects`, apples",
    "pear_count": "`count_objects`, pears",
    "cherry_count": "`count_objects`, cherries",
    "crown_count": "`count_objects`, crowns in colour pictures",
    "plant_count": "`count_objects`, plants",
    "crowns_in_heights": "`count_objects`, trees in a raster that is not a height model",
    "fruit_size": "`measure_fruit_size`",
    "plant_cover": "`measure_crop_weed_area`, plant cover",
    "region_cover": "`describe_region`, plant cover",
    "phenotype": "`measure_weed_phenotype`",
    "marks": "`extract_marked_region` on a picture without marks",
    "same_picture": "`detect_change`, a picture compared with itself",
    "other_place": "`detect_change`, two different places",
    "canopy": "`estimate_canopy_height` on a raster that is not a height model",
}
"""Kinds of calls of ``strangers.csv``, as the page calls them, in its order."""


def page() -> str:
    """Return the accuracy page as Markdown.

    Raises:
        SystemExit: the prose names a figure that was not measured.
    """
    rows = read_rows(MEASURED)
    lines = ["# How accurate the tools are", ""]
    lines += [
        "<!-- Written by `python studies/write_accuracy.py`: change the prose or the CSV files, not this page. -->"
    ]
    lines += [
        "",
        _prose("introduction"),
        "",
        "## Other pictures and the tool's own pictures",
        "",
        _prose("elsewhere"),
        "",
        *_error_lines(),
        "",
        "## How sure the tools are",
        "",
        _prose("uncertainty"),
        "",
    ]
    lines += [
        *sure_lines(),
        "",
        "## Unsuitable pictures",
        "",
        _prose("strangers"),
        "",
    ]
    lines += [*_strangers_lines(read_rows(STRANGERS)), ""]
    for tool in STUDIES:
        of_tool = {(row["folder"], row["metric"]): row for row in rows if row["tool"] == tool}
        version, day = oldest(rows, tool)
        lines += [
            f"## {tool}",
            "",
            _with_figures(tool, of_tool),
            "",
            f"These figures were measured on {day} with version {version} of the tool.",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def oldest(rows: list[dict[str, str]], tool: str) -> tuple[str, str]:
    """Return the version and the date of the oldest row of a tool."""
    first = min((row for row in rows if row["tool"] == tool), key=lambda row: row["measured"])
    return first["version"], first["measured"]


def _prose(name: str) -> str:
    return (_PROSE / f"{name}.md").read_text(encoding="utf-8").strip()


def _with_figures(tool: str, rows: dict[tuple[str, str], dict[str, str]]) -> str:
    def figure(found: re.Match[str]) -> str:
        row = rows.get((found[1], found[2]))
        if row is None:
            raise SystemExit(f"{MEASURED} has no figure of {tool} for {found[0]}")
        return figure_text(row, found[3] or "")

    return _FIGURE.sub(figure, _prose(tool))


def _error_lines() -> list[str]:
    """Return a table of the error of each tool elsewhere and on its own pictures, the worst tools first."""
    lines = [
        "| tool | on other pictures | test on other pictures | test on own pictures |",
        "|---|---|---|---|",
    ]
    for tool in sorted(STUDIES, key=lambda tool: VERDICTS.index(verdict_of(tool))):
        cells = [f"{_sentence(one.of)} {_sentence(one.text)}" for one in errors_of(tool).values()]
        lines.append(f"| `{tool}` | {verdict_of(tool)} | {' | '.join(cells)} |")
    return lines


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _strangers_lines(rows: list[dict[str, str]]) -> list[str]:
    """Return a table of refused, flagged and wrong results by kind of call, and the sum of all calls."""
    lines = [
        "| call | suitable pictures: refused or flagged | unsuitable pictures: refused or flagged "
        "| unsuitable pictures: confident and wrong |",
        "|---|---|---|---|",
    ]
    sums = {(row["call"], row["folder"]): row for row in rows}
    for call, name in CALLS.items():
        strange, suited = sums[call, "all strangers"], sums.get((call, "all made for"))
        kept = _doubted(suited) if suited else "not tested"
        lines.append(
            f"| {name} | {kept} | {_doubted(strange)} | {strange['confident and wrong']} |"
        )
    every = sums["all", "all strangers"]
    share = every["share, 95 %"].replace("(", "(95 % interval ")
    return [
        *lines,
        "",
        f"Of all {int(every['calls']):,} calls on unsuitable pictures, {every['confident and wrong']} gave a result "
        f"that was confident and wrong: {share}.",
    ]


def _doubted(row: dict[str, str]) -> str:
    return f"{int(row['refused']) + int(row['flagged'])} of {row['calls']}"
