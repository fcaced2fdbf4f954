"""Drawing of the calibration of probabilities and of errors by coverage."""

import io
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from accuracy.study import equal_bins, exact_interval, risk_curve
from agrotools.tools.plotting.sheet import COLOURS, STYLE


def draw_curves(points: Sequence[Sequence[float]], title: str) -> bytes:
    """Return an SVG of answers, given as probability and outcome (1 if right).

    On the left: share right by probability, in bins of equal numbers of answers, with exact 95 % intervals. On the
    right: share wrong of the surest answers by their share, beside the best and a random order of them.
    """
    rows = np.array(points, np.float64)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 4))
        left, right = figure.subplots(1, 2)
        left.plot([0, 1], [0, 1], ":", color=COLOURS[-1], label="perfect probabilities")
        bins = equal_bins(rows)
        shares = np.array([each[:, 1].mean() for each in bins])
        low, high = np.transpose([exact_interval(each[:, 1].sum(), len(each)) for each in bins])
        middles = [each[:, 0].mean() for each in bins]
        reach = [shares - low, high - shares]
        left.errorbar(middles, shares, reach, fmt="o", capsize=3, color=COLOURS[0], label=f"{len(bins)} bins, 95 %")
        left.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="mean probability", ylabel="share right")
        for order, style, label in ((rows, "-", "by probability"), (rows[:, [1, 1]], "--", "best order")):
            right.plot(*zip(*risk_curve(order), strict=True), style, color=COLOURS[0], label=label)
        right.axhline(1 - rows[:, 1].mean(), ls=":", color=COLOURS[-1], label="random order")
        right.set(xlim=(0, 1.02), ylim=(0, None), xlabel="share answered, the surest first", ylabel="share wrong")
        for axes in (left, right):
            axes.grid(visible=True)
            axes.legend()
        figure.suptitle(f"{title}: {len(rows)} answers", fontsize=12)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
