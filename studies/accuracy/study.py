"""A study: one tool, one folder of images with known truth, and the figures that compare them.

A module for a tool defines ``STUDIES``, a tuple of studies, and a function per study::

    def _severity(bench: Bench) -> list[Figure]:
        errors = []
        for item in bench.items():
            result = bench.call(image=bench.folder / item["image"])
            errors.append(abs(result.severity_pct - 100 * item["lesion_fraction_of_leaf"]))
        return [mean_of("lesion severity, mean absolute error, points", errors, goal=1.7, higher_is_better=False)]

    STUDIES = (Study("analyze_lesions", "coffee_lesions", _severity),)
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, SupportsFloat

import numpy as np
import rasterio
from numpy.typing import NDArray
from PIL import Image
from rasterio.transform import from_origin
from scipy.special import ndtr, stdtrit

from accuracy.truth import read_truth
from agrotools.calling import get_tool
from agrotools.calling.result import ToolResult
from agrotools.calling.workspace import CallContext, call_context, write_artifact
from agrotools.core import Artifact, SampleFile, ToolError
from agrotools.scoring.statistics import exact_share_interval
from agrotools.vision.formats import file_format
from agrotools.vision.rasters import open_raster

Rows = NDArray[np.float64]
"""Values that each image contributes, (images, columns)."""
Statistic = Callable[[Rows], float]
"""Function from rows to the figure; NaN if undefined (for example, for a resample without any object)."""

LEAST_CLUSTERS = 10
"""Minimum number of independent images for an interval; a figure over fewer is shown without a claim."""
DRAWS = 4000
_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Figure:
    """One measure of a tool on one folder.

    ``metric`` names the measure with its unit ("lesion severity, mean absolute error, points"). ``clusters`` names the
    scene of each image; empty if all images show different scenes. ``goal`` is the target value, if any. ``is_share``:
    True if a row is whether something holds for an image.
    """

    metric: str
    rows: Rows
    statistic: Statistic
    clusters: tuple[str, ...] = ()
    goal: float | None = None
    higher_is_better: bool = True
    note: str = ""
    is_share: bool = False


@dataclass(frozen=True)
class Estimate:
    """Value of a figure and its 95 % interval.

    There is no interval under :data:`LEAST_CLUSTERS` independent images, or if a bootstrap cannot tell its width.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    independent: int


def mean_of(metric: str, values: Sequence[float], **more: Any) -> Figure:
    """Return the mean of one value per image. ``more``: fields of :class:`Figure`."""
    return Figure(
        metric,
        np.asarray(values, np.float64)[:, None],
        _mean,
        is_share=_are_shares(metric, values),
        **more,
    )


def _are_shares(metric: str, values: Sequence[object]) -> bool:
    """True for truth values, and for numbers 0 and 1, or 0 and 100, of a metric that names a share or percentage."""
    if all(isinstance(value, bool | np.bool_) for value in values):
        return True
    top = 100.0 if metric.endswith("%") else 1.0
    return ("share" in metric or "recall@" in metric or top > 1) and all(
        value in (0.0, top) for value in values
    )


class Columns:
    """Values of the images of a study by column, and the figures computed from columns.

    Columns may differ in length: there may be one value per image, object or pair. ``scene`` of :meth:`add` becomes the
    ``clusters`` of figures. ``more``: default fields of every :class:`Figure`.
    """

    def __init__(self, **more: Any) -> None:
        self._more = more
        self.note: str = more.get("note", "")
        self._values: dict[str, list[float]] = {}
        self._not_truth: set[str] = set()
        self._scenes: dict[str, list[str]] = {}

    def add(self, scene: str = "", /, **values: SupportsFloat | None) -> None:
        """Append a value to each named column; None appends nothing."""
        for column, value in values.items():
            if value is not None:
                self._values.setdefault(column, []).append(float(value))
                if not isinstance(value, bool | np.bool_):
                    self._not_truth.add(column)
                self._scenes.setdefault(column, []).append(scene)

    def __getitem__(self, column: str) -> list[float]:
        return self._values.get(column, [])

    def mean(self, metric: str, column: str, **more: Any) -> Figure:
        return self._figure(metric, _mean, (column,), more)

    def mean_error(self, metric: str, column: str, **more: Any) -> Figure:
        return self.mean(metric, column, higher_is_better=False, **more)

    def median(self, metric: str, column: str, **more: Any) -> Figure:
        return self._figure(metric, lambda rows: float(np.median(rows[:, 0])), (column,), more)

    def median_error(self, metric: str, column: str, **more: Any) -> Figure:
        return self.median(metric, column, higher_is_better=False, **more)

    def ratio(self, metric: str, part: str, whole: str, **more: Any) -> Figure:
        """Return the sum of ``part`` over the sum of ``whole``, pooled over all images."""
        return self._figure(
            metric, lambda rows: _over(rows[:, 0].sum(), rows[:, 1].sum()), (part, whole), more
        )

    def f1(self, metric: str, hits: str, found: str, there: str, **more: Any) -> Figure:
        """Return F1 of ``found`` against ``there``, pooled over images: 2 hits / (found + there)."""
        return self._figure(
            metric,
            lambda rows: _over(2 * rows[:, 0].sum(), rows[:, 1:].sum()),
            (hits, found, there),
            more,
        )

    def concordance(self, metric: str, measured: str, true: str, **more: Any) -> Figure:
        """Return Lin's concordance correlation coefficient (Lin 1989, Biometrics 45): agreement with equality."""
        return self._figure(metric, _concordance, (measured, true), more)

    def calibration(self, metric: str, probability: str, right: str, **more: Any) -> Figure:
        """Return the expected calibration error: the mean gap between probability and share right.

        Gaps are those of bins of equal numbers of images, at most ten (Naeini et al. 2015, AAAI). Perfect probabilities
        have some too, because shares of few images scatter; the note says how much.
        """
        rows = np.column_stack([self[probability], self[right]])
        drawn = np.random.default_rng(0).random((200, len(rows))) < rows[:, 0]
        chance = np.mean(
            [_calibration_error(np.column_stack([rows[:, 0], each])) for each in drawn]
        )
        note = f"perfect probabilities would have {chance:.3f} on as many images"
        return self._figure(metric, _calibration_error, (probability, right), _as_error(more, note))

    def risk(
        self, metric: str, probability: str, right: str, coverage: float, **more: Any
    ) -> Figure:
        """Return the share wrong among the ``coverage`` of the images with the highest probabilities."""
        order = np.argsort(-np.array(self[probability]), kind="stable")[
            : max(1, round(coverage * len(self[right])))
        ]
        surest = Columns(**self._more)
        for at in order:
            surest.add(self._scenes[right][at], wrong=not self[right][at])
        return surest.mean_error(metric, "wrong", **more)

    def aurc(self, metric: str, probability: str, right: str, **more: Any) -> Figure:
        """Return the area under the curve of share wrong over coverage, the surest first (El-Yaniv and Wiener 2010)."""
        rows = np.column_stack([self[probability], self[right]])
        best, none = _area_of_risk(rows[:, [1, 1]]), float(1 - rows[:, 1].mean())
        note = f"the best order of these answers would have {best:.3f}, a random one {none:.3f}"
        return self._figure(metric, _area_of_risk, (probability, right), _as_error(more, note))

    def _figure(
        self, metric: str, statistic: Statistic, columns: Sequence[str], more: dict[str, Any]
    ) -> Figure:
        scenes = self._scenes.get(columns[0], [])
        clusters = {"clusters": tuple(scenes)} if any(scenes) else {}
        rows = np.column_stack([self[column] for column in columns])
        is_share = statistic is _mean and (
            columns[0] not in self._not_truth or _are_shares(metric, self[columns[0]])
        )
        return Figure(
            metric, rows, statistic, is_share=is_share, **{**clusters, **self._more, **more}
        )


def _as_error(more: dict[str, Any], note: str) -> dict[str, Any]:
    """Return the fields of a figure that is better if lower, with ``note`` added to its own."""
    return {
        "higher_is_better": False,
        **more,
        "note": "; ".join(filter(None, (more.get("note", ""), note))),
    }


def estimate(figure: Figure, seed: int = 0) -> Estimate:
    """Return the value of a figure and its interval: exact for shares, else by a bootstrap over clusters of images.

    The interval of a share (a mean of zeros and ones, or of 0 and 100) is that of Clopper and Pearson (1934) around the
    share of all images, with the effective number of clusters of unequal size (Kish 1965) as n. Percentiles of the
    bootstrap are slightly wider than 2.5 and 97.5, by the t distribution for that number of clusters (Hesterberg 2015,
    The American Statistician 69).

    Raises:
        ValueError: no image was measured, or the number of cluster names is wrong.
    """
    rows = figure.rows
    if not len(rows):
        raise ValueError(f"{figure.metric}: no image was measured")
    if figure.clusters and len(figure.clusters) != len(rows):
        raise ValueError(
            f"{figure.metric}: {len(rows)} images and {len(figure.clusters)} cluster names"
        )
    labels = figure.clusters or tuple(str(number) for number in range(len(rows)))
    members = [np.flatnonzero(np.asarray(labels) == label) for label in dict.fromkeys(labels)]
    value = figure.statistic(rows)
    if len(members) < LEAST_CLUSTERS:
        return Estimate(value, None, None, len(rows), len(members))
    k = len(members)
    if figure.is_share:
        unit = max(1.0, float(rows.max()))
        effective = len(rows) ** 2 / sum(len(some) ** 2 for some in members)
        low, high = exact_share_interval(value / unit * effective, effective)
        return Estimate(value, unit * low, unit * high, len(rows), k)
    draws = np.random.default_rng(seed).integers(0, len(members), (DRAWS, len(members)))
    values = np.array(
        [figure.statistic(rows[np.concatenate([members[k] for k in draw])]) for draw in draws]
    )
    values = values[np.isfinite(values)]
    tail = float(ndtr(-stdtrit(k - 1, 1 - (1 - _LEVEL) / 2) * np.sqrt(k / (k - 1))))
    low, high = np.quantile(values, [tail, 1 - tail]) if len(values) else (np.nan, np.nan)
    if low == high:
        return Estimate(value, None, None, len(rows), k)
    return Estimate(value, float(low), float(high), len(rows), k)


def _mean(rows: Rows) -> float:
    return float(rows[:, 0].mean())


def _calibration_error(rows: Rows) -> float:
    """Return the expected calibration error of rows of probability and outcome, in bins of ten images or more."""
    gaps = (len(each) * abs(each[:, 0].mean() - each[:, 1].mean()) for each in equal_bins(rows))
    return float(sum(gaps) / len(rows))


def equal_bins(rows: Rows) -> list[Rows]:
    """Return rows of probability and outcome in at most ten bins of ten or more, by probability."""
    ordered = rows[np.argsort(rows[:, 0], kind="stable")]
    return np.array_split(ordered, min(10, max(1, len(rows) // 10)))


def _area_of_risk(rows: Rows) -> float:
    return float(np.mean([y for _, y in risk_curve(rows)]))


def risk_curve(rows: Rows) -> list[tuple[float, float]]:
    """Return coverage and share wrong of the surest answers, from rows of probability and outcome.

    Answers of equal probability share their outcomes, since their order says nothing.
    """
    probabilities, right = rows[:, 0], rows[:, 1]
    levels, place = np.unique(-probabilities, return_inverse=True)
    wrong = 1 - np.bincount(place, right, len(levels)) / np.bincount(place)
    risks = np.cumsum(wrong[np.sort(place)]) / np.arange(1, len(rows) + 1)
    return [((n + 1) / len(rows), float(risk)) for n, risk in enumerate(risks)]


def _over(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _concordance(rows: Rows) -> float:
    measured, true = rows.T
    gap = measured.mean() - true.mean()
    return _over(2 * float(np.mean((measured - measured.mean()) * (true - true.mean()))),
                 float(measured.var() + true.var() + gap**2))  # fmt: skip


@dataclass
class Bench:
    """Environment of a study: its folder, its tool, and the timings.

    ``scratch`` is the folder for artifacts (a subfolder per call); it is removed afterwards, but overlays can be kept.
    ``unreadable``: pictures of the folder that were left out.
    """

    tool: str
    folder: Path
    scratch: Path
    call_ms: list[float] = field(default_factory=list)
    call_megapixels: list[float] = field(default_factory=list)
    overlays: list[Path] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    _items: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scratch.mkdir(parents=True, exist_ok=True)

    def items(self) -> list[dict[str, Any]]:
        """Return ``truth.json`` of the folder: one object per readable image, with relative paths.

        Raises:
            BenchmarkError: it is invalid, or no image can be read.
        """
        if not self._items:
            self._items, self.unreadable = read_truth(self.folder)
        return list(self._items)

    def call(
        self,
        *,
        infos: Mapping[Path, SampleFile] | None = None,
        backend: str | None = None,
        **arguments: Any,
    ) -> Any:
        """Call the tool and measure the processor time for reading, measuring and drawing.

        ``infos`` is the file metadata of a sample (scale, bands, intrinsics). The first call of a study is made twice,
        so that importing libraries is not counted.

        Raises:
            ToolError: raised by the tool.
        """
        folder = self.scratch / f"call-{len(self.call_ms)}"
        tool = get_tool(self.tool)
        work = CallContext(
            keep=lambda artifact, content: write_artifact(folder, artifact, content),
            # Tools identify a file by its real path.
            infos={path.resolve(): info for path, info in (infos or {}).items()},
            backend=backend,
        )
        with call_context(work):
            if not self.call_ms:
                tool(**arguments)
            started = time.process_time()
            result: ToolResult = tool(**arguments)
            self.call_ms.append(1000 * (time.process_time() - started))
        self.call_megapixels.append(
            sum(_megapixels(value) for value in arguments.values() if isinstance(value, Path))
        )
        for artifact in (getattr(result, name) for name in type(result).model_fields):
            if isinstance(artifact, Artifact) and artifact.kind == "overlay":
                self.overlays.append(folder / artifact.name)
        return result

    def picture(self, name: str, pixels: NDArray[Any]) -> Path:
        """Save pixels to a file in ``scratch``, in the format given by the suffix."""
        path = self.scratch / name
        Image.fromarray(pixels).save(path)
        return path

    def raster(
        self,
        name: str,
        bands: NDArray[Any],
        pixel_m: float,
        corner: tuple[float, float] = (500_000.0, 5_000_000.0),
        roles: Sequence[str] = (),
    ) -> Path:
        """Save a GeoTIFF in ``scratch``: (rows, columns) or (bands, rows, columns), in UTM coordinates.

        ``roles``: names of the bands, which then contain reflectance times 10,000.
        """
        layers = bands if bands.ndim == 3 else bands[None]
        path = self.scratch / name
        profile = {
            "driver": "GTiff", "count": len(layers), "height": layers.shape[1], "width": layers.shape[2],
            "dtype": str(layers.dtype), "crs": "EPSG:32633", "transform": from_origin(*corner, pixel_m, pixel_m),
        }  # fmt: skip
        with rasterio.open(path, "w", **profile) as file:
            file.write(layers)
            if roles:
                file.scales = (1e-4,) * len(roles)
            for band, role in enumerate(roles, start=1):
                file.set_band_description(band, role)
        return path

    def artifact_path(self, artifact: Artifact) -> Path:
        """Return the path of an artifact of the last call."""
        return self.scratch / f"call-{len(self.call_ms) - 1}" / artifact.name


@dataclass(frozen=True)
class Study:
    """Study of ``tool`` on the folder of that name. ``measure`` returns the figures.

    ``needs_folder`` is False if the images are drawn by code of this package (``folder`` is then a description).
    """

    tool: str
    folder: str
    measure: Callable[[Bench], list[Figure]]
    needs_folder: bool = True


def _megapixels(path: Path) -> float:
    try:
        if file_format(path) in ("tiff", "envi"):
            with open_raster(path) as raster:
                return raster.width * raster.height / 1e6
        from PIL import Image

        with Image.open(path) as image:
            return image.width * image.height / 1e6
    except (ToolError, OSError):
        return 0.0
