"""What a plan lacks, and what nobody but the owner of the photos knows."""

from typing import Literal, NamedTuple

from agrotools.build.own_photos.measures import countables, measures
from agrotools.build.own_photos.plan import NOTHING, UNDECIDED, Column, Plan

Answer = Literal["text", "number", "choice"]


class Need(NamedTuple):
    """A key of a column that must be filled in before it can be asked about; ``question`` is put to its owner."""

    column: str
    key: str
    question: str
    answer: Answer = "text"
    choices: tuple[str, ...] = ()
    or_key: str | None = None
    """another key that would do as well"""


def needs_of(plan: Plan) -> list[Need]:
    """Everything that is missing, in the order of the columns."""
    return [need for column in plan.columns for need in column_needs(column, plan)]


def column_needs(column: Column, plan: Plan) -> list[Need]:
    """What one column lacks."""
    if column.ask == NOTHING:
        return []
    name = column.column
    if column.ask == UNDECIDED:
        choices = (*measures(), NOTHING)
        return [Need(name, "ask", f"What does {name!r} hold?", "choice", choices)]
    measure = measures()[column.ask]
    lacking: list[Need] = []
    if measure.kind == "number" and measure.unit and not column.unit:
        lacking.append(Need(name, "unit", f"In which unit are the numbers of {name!r} that have none?"))
    if column.ask == "count" and not column.target:
        known = ", ".join(countables())
        lacking.append(Need(name, "target", f"What is counted in {name!r}, as a singular noun ({known}...)?"))
    if column.ask == "diameter":
        if not column.distance_mm:
            question = f"How far were the fruits of {name!r} from the camera, in millimetres?"
            lacking.append(Need(name, "distance_mm", question, "number"))
        if not column.fx_px:
            question = "What is the focal length of the camera in pixels (focal length / sensor width x image width)?"
            lacking.append(Need(name, "fx_px", question, "number"))
    if column.ask == "plant_height" and not (column.px_per_cm or column.marker_cm):
        question = f"How many pixels are one centimetre at the plants of {name!r}?"
        lacking.append(Need(name, "px_per_cm", question, "number", or_key="marker_cm"))
    if measure.kind == "yes" and not column.yes_means:
        lacking.append(Need(name, "yes_means", f"What does a yes in {name!r} say of the photo, as a sentence?"))
    if measure.kind == "advice" and (not column.names_in or plan.column(column.names_in) is None):
        named = tuple(each.column for each in plan.columns if each.is_asked and measures()[each.ask].kind == "name")
        question = f"Which column holds the disease, pest or weed that {name!r} is about?"
        lacking.append(Need(name, "names_in", question, "choice", named))
    return lacking
