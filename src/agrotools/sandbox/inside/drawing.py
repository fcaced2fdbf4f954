"""Setup of Matplotlib in the worker: no files, a fixed resolution, reproducible pictures."""

import importlib.util
import io
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

DPI = 100
_NO_FOLDER = "/nonexistent"
_KEPT = ("bbox_inches", "pad_inches", "facecolor", "edgecolor", "transparent")
"""Options of ``savefig`` that change neither the format nor the resolution."""


class TooManyPixels(Exception):
    pass


class Drawing:
    """PNG rendering of figures. ``emit(name, content)`` receives the saved ones; ``most_pixels`` limits each of
    them."""

    def __init__(self, emit: Callable[[str, bytes], None]) -> None:
        self.most_pixels = 10**9
        self._emit = emit
        self._savefig: Callable[..., None] | None = None

    def prepare(self) -> None:
        """Import Matplotlib, redirect ``savefig`` to ``emit``, and draw a first figure.

        Matplotlib has no configuration folder: its settings are the defaults, its fonts those that it ships.
        """
        spec = importlib.util.find_spec("matplotlib")
        if spec is None or not spec.submodule_search_locations:
            return
        settings = os.path.join(spec.submodule_search_locations[0], "mpl-data", "matplotlibrc")
        os.environ["MATPLOTLIBRC"] = settings
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        import matplotlib

        matplotlib.get_configdir = matplotlib.get_cachedir = lambda: _NO_FOLDER
        matplotlib.use("Agg")
        matplotlib.rcParams.update(
            {"figure.dpi": DPI, "savefig.dpi": DPI, "svg.hashsalt": "agrotools"}
        )
        import matplotlib.pyplot as plt
        from matplotlib.figure import Figure

        self._savefig = original = Figure.savefig

        def savefig(figure: Any, fname: Any, *arguments: Any, **options: Any) -> None:
            if not isinstance(fname, (str, os.PathLike)):
                return original(figure, fname, *arguments, **options)
            known_options = {name: value for name, value in options.items() if name in _KEPT}
            name = os.path.splitext(os.path.basename(os.fsdecode(fname)))[0] or "figure"
            return self._emit(f"{name}.png", self.png(figure, **known_options))

        setattr(Figure, "savefig", savefig)  # noqa: B010
        plt.show = lambda *_, **__: None
        figure, axes = plt.subplots()
        axes.plot([0, 1], [0, 1], label="a")
        axes.bar(["a", "b"], [1, 2])
        axes.set_title("$a^2$")
        axes.legend()
        self.png(figure, bbox_inches="tight")
        plt.close("all")

    def png(self, figure: Any, **options: Any) -> bytes:
        assert self._savefig is not None
        width, height = figure.get_size_inches() * DPI
        if width * height > self.most_pixels:
            raise TooManyPixels(
                f"the figure would have {width:.0f} x {height:.0f} pixels, more than {self.most_pixels:,} in all: "
                f"choose a smaller figsize (one inch is {DPI} pixels)"
            )
        content = io.BytesIO()
        self._savefig(
            figure, content, format="png", dpi=DPI, metadata={"Software": None}, **options
        )
        return content.getvalue()


def figure_in(value: Any) -> Any:
    """Return the figure of a result, or None.

    The result may be a figure, an artist in one, or pyplot or None for the current figure.
    """
    figures = sys.modules.get("matplotlib.figure")
    if figures is None:
        return None
    pyplot = sys.modules.get("matplotlib.pyplot")
    if value is None or value is pyplot:
        return pyplot.gcf() if pyplot is not None and pyplot.get_fignums() else None
    if isinstance(value, figures.Figure):
        return value
    figure = (
        getattr(value, "figure", None)
        if isinstance(value, sys.modules["matplotlib.artist"].Artist)
        else None
    )
    return figure if isinstance(figure, figures.Figure) else None
