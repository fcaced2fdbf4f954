"""The Plot Score: two figures are compared by the canonical specification of what was drawn, never by pixels.

0 without a figure or if its kind is not equivalent; else the F1 of points matched one to one over all series times
(0.8 + 0.1 if both axes name quantity and unit + 0.1 if title or legend names what is compared).
"""

from pydantic import JsonValue, ValidationError

from agrotools.core import PlotSpec, Step, Trajectory
from agrotools.scoring.plot_labels import label_readings
from agrotools.scoring.plot_points import match_points
from agrotools.text.agreement_chart import equivalent_kinds

PLOT_TOOL = "plot"

DATA_WEIGHT = 0.8
AXES_WEIGHT = 0.1
TITLE_WEIGHT = 0.1


def score_plot(reference: PlotSpec, drawn: PlotSpec | None) -> tuple[float, dict[str, JsonValue]]:
    """Plot score in [0, 1] and how it came about: kinds, matched points, F1, labels."""
    if drawn is None:
        return 0.0, {"rule": "no figure came from a successful call"}
    reading: dict[str, JsonValue] = {"kind": drawn.kind, "reference_kind": reference.kind}
    if not equivalent_kinds(drawn.kind, reference.kind):
        return 0.0, {"rule": "the kind of figure is not equivalent", **reading}
    matching = match_points(reference, drawn)
    axes, title, labels = label_readings(reference, drawn)
    weight = DATA_WEIGHT + AXES_WEIGHT * axes + TITLE_WEIGHT * title
    reading |= {"f1": matching.f1, "points": matching.reading(), "labels": labels, "weight": round(weight, 9)}
    return min(1.0, matching.f1 * round(weight, 9)), {"rule": "points matched, times labels", **reading}


def drawn_spec(trajectory: Trajectory) -> PlotSpec | None:
    """What the last successful ``plot`` call of ``trajectory`` drew; None where there is none."""
    for step in reversed(trajectory.steps):
        spec = _spec_of(step)
        if spec is not None:
            return spec
    return None


def _spec_of(step: Step) -> PlotSpec | None:
    if step.kind != "call" or step.call is None or step.call.tool != PLOT_TOOL:
        return None
    if step.observation is None or not step.observation.ok or step.observation.result is None:
        return None
    try:
        return PlotSpec.model_validate(step.observation.result.get("spec"))
    except ValidationError:
        return None
