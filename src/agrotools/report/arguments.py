"""The arguments of a call beside those of the reference call: which agree, and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agrotools.core import Arguments, ReferenceStep, Sample, Score, ToolCall, UsageError
from agrotools.core.refs import literal_value
from agrotools.report.layout import MARK_STYLES, NEARLY, RIGHT, WRONG, indented
from agrotools.report.values import fields_text, harmless, value_text
from agrotools.scoring.steps import compare_calls
from agrotools.text.agreement import ArgumentAgreement
from agrotools.tools import get_tool

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Agreement:
    """How an argument of a call stands to that of the reference call, as text. An argument that is left out shows its
    default."""

    name: str
    given: str
    reference: str
    mark: str
    detail: str = ""


def closest_steps(calls: Sequence[ToolCall], sample: Sample) -> list[int | None]:
    """For each call, the index of the reference step that it comes closest to: same tool, most arguments agree, not
    taken by an earlier call; None where no step of that tool is left."""
    reference = sample.reference.steps if sample.reference else ()
    left = list(range(len(reference)))
    matches: list[int | None] = []
    for call in calls:
        same_tool = [index for index in left if reference[index].tool == call.tool]
        best = min(same_tool, key=lambda index: disagreements(agreements(call, reference[index], sample)), default=None)
        if best is not None:
            left.remove(best)
        matches.append(best)
    return matches


def agreements(call: ToolCall, reference: ReferenceStep, sample: Sample) -> list[Agreement]:
    """Argument by argument, in the order of the tool's schema."""
    try:
        tool = get_tool(call.tool)
    except UsageError:
        return _plain_agreements(call.arguments, reference.arguments)
    compared = compare_calls(sample, tool, call, reference)
    return _shown_agreements(compared, call, reference, tool.spec.defaults)


def _shown_agreements(
    compared: Sequence[ArgumentAgreement], call: ToolCall, reference: ReferenceStep, defaults: Arguments
) -> list[Agreement]:
    return [
        Agreement(
            name=harmless(item.argument),
            given=_argument_text(item.argument, call.arguments, defaults),
            reference=_argument_text(item.argument, reference.arguments, defaults),
            mark=RIGHT if item.equal else NEARLY if item.agrees else WRONG,
            detail=fields_text(item.detail),
        )
        for item in compared
    ]


def _plain_agreements(given: Arguments, reference: Arguments) -> list[Agreement]:
    """Plain equality, for tools that are not installed here."""
    return [
        Agreement(
            name=harmless(name),
            given=_argument_text(name, given, {}),
            reference=_argument_text(name, reference, {}),
            mark=RIGHT if name in given and given[name] == literal_value(reference.get(name)) else WRONG,
        )
        for name in dict.fromkeys([*reference, *given])
    ]


def _argument_text(name: str, arguments: Arguments, defaults: Arguments) -> str:
    if name in arguments:
        return value_text(arguments[name])
    return f"{value_text(defaults[name])} (default)" if name in defaults else "left out"


def disagreements(compared: Sequence[Agreement]) -> int:
    return sum(item.mark == WRONG for item in compared)


def scored_agreements(call: ToolCall, reference: ReferenceStep, row: Score) -> list[Agreement]:
    """The agreements that an argument score rests on, as its row tells them."""
    compared = row.reading.get("arguments")
    items = [ArgumentAgreement.model_validate(item) for item in compared] if isinstance(compared, list) else []
    return _shown_agreements(items, call, reference, get_tool(call.tool).spec.defaults)


def arguments_table(compared: Sequence[Agreement]) -> "RenderableType":
    from rich.table import Table
    from rich.text import Text

    table: Table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for item in compared:
        cell = Text.assemble((f"{item.mark} ", MARK_STYLES[item.mark]), item.given)
        if item.mark != RIGHT:
            detail = f" ({item.detail})" if item.detail else ""
            cell.append(f"   reference: {item.reference}{detail}", style="dim")
        table.add_row(item.name, cell)
    return indented(table, 6)
