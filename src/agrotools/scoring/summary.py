"""Summary of a run as data: the content of ``scores.json``. Values are fractions in [0, 1], never percent.

Differences that a table shows together have their p-values adjusted for how many these are.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeVar

from pydantic import ConfigDict

from agrotools.core import FrozenModel, Mode
from agrotools.scoring.statistics import Estimate, Interval, adjusted

Part = TypeVar("Part", bound=FrozenModel)
_WITH_FORMER_KEYS = ConfigDict(extra="ignore")
"""Of what stored scores hold more than they do today."""


class Metric(FrozenModel):
    """A metric over all units (samples or steps), and over those of each family, task type and answer type.

    ``bounds`` are the values with every invalid record counted as 0 and as 1; None where none is invalid.
    """

    overall: Estimate
    bounds: Interval | None = None
    by_family: dict[str, Estimate] = {}
    by_task_type: dict[str, Estimate] = {}
    by_answer_type: dict[str, Estimate] = {}
    by_group: dict[str, dict[str, Estimate]] = {}
    """By name and value of the groups that samples are in, of the units that are in one."""


class Invalid(FrozenModel):
    """Records without a reply for reasons independent of the request. They are in no mean."""

    n: int = 0
    share: float = 0.0
    reasons: dict[str, int] = {}


class Amount(FrozenModel):
    """Something spent: in all, per valid record, and per success (an end-to-end or no-tool score of 1)."""

    total: float
    per_record: float
    per_success: float | None = None


class Counts(FrozenModel):
    """Counts of events in the valid records of a mode."""

    successes: int | None = None
    """Records with a score of 1; None in step-by-step, which has no such thing."""
    terminations: dict[str, int] = {}
    """Records by how they ended; in step-by-step, how the steps that brought neither call nor answer ended."""
    unparseable: int = 0
    """Outputs that were neither a call nor an answer."""
    unscored_calls: int = 0
    """Step-by-step: calls beside the first one of a message."""
    tool_calls: int = 0
    tool_errors: dict[str, int] = {}
    """Calls that ended in an error, by its kind."""
    recorded: int = 0
    """Calls that no tool was run for: they got what was recorded of the reference."""
    answers: int = 0
    """Answers to samples with slots other than plots."""
    used_form: int = 0
    """Of those, how many gave every such slot in the answer form."""
    asked_for_form: int = 0
    """Answers without the form's lines, whose model was asked once for them."""
    form_failures: dict[str, int] = {}
    """Of those, the replies that were cut off, refused or empty, by how they ended: the first answer was read alone."""
    choice_set_jaccard: float | None = None
    """Mean Jaccard overlap of asserted and right members over ``choice_set`` slots (their score is all or none)."""
    median_box_iou: float | None = None
    """Step-by-step: median IoU of predicted with reference boxes, where the tool was right."""
    implied_differs: int = 0
    """Step-by-step: samples whose shown observations imply another answer than the ground truth."""
    spent: dict[str, Amount] = {}
    """``turns``, ``input_tokens``, ``output_tokens``, ``seconds``, ``tool_seconds``."""


class ErrorCount(FrozenModel):
    """Errors of one class (:data:`agrotools.scoring.error_classes.CLASSES`) in the valid records of a mode.

    ``count``: None where the class cannot be told here, for the reason that ``not_looked_for`` gives. ``of``: the steps
    or samples that were looked at; ``samples``: those in which the class occurs, epochs taken together; ``share``:
    ``count / of``; ``examples``: ids of the first few such samples.
    """

    error: str
    unit: Literal["step", "sample"]
    count: int | None = None
    of: int = 0
    share: float | None = None
    samples: int = 0
    examples: tuple[str, ...] = ()
    not_looked_for: str = ""


class Seconds(FrozenModel):
    """Mean seconds per query over ``n`` valid records."""

    mean: float
    n: int


class SecondsByPart(FrozenModel):
    """Seconds per query over all valid records of a mode, and over those of each part.

    The parts are those of :class:`Metric`.
    """

    overall: Seconds
    by_family: dict[str, Seconds] = {}
    by_task_type: dict[str, Seconds] = {}
    by_answer_type: dict[str, Seconds] = {}
    by_group: dict[str, dict[str, Seconds]] = {}


class PublishedFigures(FrozenModel):
    """A mode of a run in the metrics that the benchmark's paper prints.

    ``reference``: as the published scorer has them, bugs included: some may lie above 1; None where it counts
    nothing. ``stops``: why it would end with an exception instead. ``corrected``: the same without what misleads.
    ``left_out``: metrics that could not be computed, and why. ``differs``: how the run differs from the published way,
    so that printed rows are not comparable. ``embedder``: whose similarities are in the figures, empty without one.
    """

    family: str
    reference: dict[str, float | None] = {}
    stops: str = ""
    corrected: dict[str, Estimate] = {}
    left_out: dict[str, str] = {}
    counts: dict[str, int] = {}
    embedder: str = ""
    differs: tuple[str, ...] = ()


class CallRatio(FrozenModel):
    """``agrotools.call_ratio``: calls made over calls of the reference, 1 for as many; failed calls count.

    Over the ``n`` valid end-to-end records with an answer, of samples whose reference has calls.
    ``mean``: of the records' ratios; ``made`` and ``needed``: calls of all of them.
    """

    mean: float
    n: int
    made: int
    needed: int


class ModeSummary(FrozenModel):
    """The metrics of one mode.

    ``headline``: whether they may stand as results (at most 1 % of the records invalid, or allowed). What a benchmark
    plug-in counts stands under keys of its own (:meth:`part`).
    """

    model_config = ConfigDict(extra="allow")

    n_records: int
    n_samples: int
    n_clusters: int
    epochs: int
    invalid: Invalid = Invalid()
    endings: dict[str, int] = {}
    """Records that ended without an answer, by the cause; ``infrastructure`` are the invalid ones."""
    headline: bool = True
    metrics: dict[str, Metric] = {}
    ots_chance: Estimate | None = None
    """Open-text score of the same answers against the facts of other clusters' samples."""
    counts: Counts = Counts()
    errors: tuple[ErrorCount, ...] = ()
    """A row for every class of errors, of all valid records."""
    seconds: SecondsByPart | None = None
    """None where no record is valid."""
    call_ratio: CallRatio | None = None
    """End-to-end; None in other modes and where no such sample was answered."""
    published: PublishedFigures | None = None
    """On GTA, ThinkGeo and Agent-X: the metrics of their papers."""

    def part(self, name: str, model: type[Part]) -> Part | None:
        """The entry ``name`` of a benchmark plug-in; None where it counted nothing."""
        part = (self.model_extra or {}).get(name)
        return model.model_validate(part) if isinstance(part, dict) else part


class NoToolPart(FrozenModel):
    """End-to-end on the samples that no-tool is run on, and the gain by tools, paired on samples valid in both."""

    model_config = _WITH_FORMER_KEYS

    n_excluded: int
    """Samples that no-tool leaves out: they need raster processing or a plot."""
    metrics: dict[str, Metric] = {}
    gain: dict[str, Metric] = {}
    """End-to-end minus no-tool."""


class Correlation(FrozenModel):
    """Pearson's r of a sample's mean on a step metric with its outcome, over ``n`` samples that have both.

    None where one of the two is the same for all samples. ``interval``: 95 %, bootstrap by cluster.
    """

    step: str
    outcome: str
    r: float | None
    n: int
    interval: Interval | None = None


class RunCorrelation(FrozenModel):
    """Over ``n`` runs: Pearson's r and Spearman's rho of a step metric with an outcome metric, run by run.

    None where one of the two is the same in all runs. ``interval``: 95 %, of Pearson's r by Fisher's z; None with
    fewer than ten runs, where it says nothing.
    """

    step: str
    outcome: str
    n: int
    pearson: float | None = None
    spearman: float | None = None
    interval: Interval | None = None


class AcrossRuns(FrozenModel):
    """Correlation of step metrics with outcomes over the runs on a benchmark: ``runs`` (their models) with both modes.

    ``left_out``: why which runs do not count. ``least_r``: what r must exceed, one way or the other, to be told from 0
    at the 5 % level with so many runs, if these were runs of models drawn at random.
    """

    benchmark: str
    benchmark_version: str
    runs: tuple[str, ...]
    left_out: dict[str, tuple[str, ...]] = {}
    least_r: float
    correlations: tuple[RunCorrelation, ...] = ()


class RunDifference(FrozenModel):
    """First run minus second in the headline metric of a mode; runs by their places among those scored together."""

    first: int
    second: int
    mode: Mode
    metric: str
    difference: Estimate


class Agreement(FrozenModel):
    """Alpha over ``n_units`` answers with at least two grades: 1 is full agreement, 0 is chance agreement.

    None where all grades are the same, which says nothing. ``interval``: 95 %, bootstrap by unit; none under ten units.
    """

    alpha: float | None
    n_units: int
    interval: Interval | None = None


class JudgeSummary(FrozenModel):
    """One judge of a metric. ``answers``: those that could be graded; ``graded``: those with a grade of this judge."""

    metric: str
    judge: str
    prompts: tuple[str, ...]
    """Hashes of the words it was asked with."""
    answers: int
    graded: int
    mean: float | None
    """Of its grades, in [0, 1]."""
    votes: int
    """Replies in all."""
    unreadable: int
    """Of those, replies without a grade."""
    between_votes: Agreement | None = None


class Calibration(FrozenModel):
    """A judge on answers whose right grades are known. ``exact``: the share it graded just so.

    ``lenience``: by how many grades it grades higher on average. ``confusion[right][given]`` counts answers.
    """

    judge: str
    n: int
    unreadable: int
    exact: float | None
    lenience: float | None
    with_labels: Agreement | None
    confusion: tuple[tuple[int, ...], ...]


class Panel(FrozenModel):
    """All judges of a run; ``between_judges`` by metric, where several graded the same answers."""

    judges: tuple[JudgeSummary, ...] = ()
    between_judges: dict[str, Agreement] = {}
    calibrations: tuple[Calibration, ...] = ()
    rubrics: str = ""
    """Source of the rubrics that criteria were graded by; empty where they were not."""


class Summary(FrozenModel):
    """The scores of one run: model, benchmark, and the metrics of each mode."""

    model_config = _WITH_FORMER_KEYS

    format: int = 1
    scoring: str = "1"
    """Scoring version that the scores are of. It stands near the top: it is looked up in long files."""
    warnings: tuple[str, ...] = ()
    """Lines above the tables: records that are missing, and causes that ended many records."""
    missing: dict[Mode, int] = {}
    """Planned records that the run does not hold, by mode; modes that lack none are left out."""
    benchmark: str = ""
    benchmark_version: str = ""
    benchmark_options: dict[str, str | int | bool] = {}
    """Options of the benchmark that differ from its defaults."""
    synthetic: bool = False
    model: str = ""
    protocol: str = ""
    privileged: bool = False
    """True if the policy saw gold."""
    modes: dict[Mode, ModeSummary] = {}
    no_tool_part: NoToolPart | None = None
    correlations: tuple[Correlation, ...] = ()
    """Of step metrics with the outcome over samples, where a run has both modes."""
    across_runs: AcrossRuns | None = None
    """Of step metrics with outcomes over the runs that it was scored together with; the same for all on a benchmark."""
    between_runs: tuple[RunDifference, ...] = ()
    """Between all pairs of the runs that it was scored together with; the same for all of them."""
    judging: Panel | None = None
    """The judges that were asked about its answers; None where nobody was."""


class Comparison(FrozenModel):
    """First run minus second, paired on the units that both have."""

    first: str = ""
    second: str = ""
    synthetic: bool = False
    modes: dict[Mode, dict[str, Metric]] = {}
    unpaired: dict[Mode, int] = {}
    """Samples that only one of the runs has valid records of."""


# --- adjusted differences --------------------------------------------------------------------------------------------

GAIN_METRICS = ("agrotools.fas", "agrotools.css", "agrotools.ots", "agrotools.ots_judge")
"""Metrics of the table of gains by tools."""
BY_TASK_TYPE = ("agrotools.fas", "agrotools.arg_acc")
"""Metrics whose differences a comparison of two runs also shows by task type."""


def with_gains_adjusted(summaries: Sequence[Summary]) -> list[Summary]:
    """The summaries with the gains by tools adjusted for all of the table that shows them together."""
    places = [(at, metric) for at, each in enumerate(summaries) for metric in shown_gains(each)]
    gains = adjusted([shown_gains(summaries[at])[metric].overall for at, metric in places])
    copies = list(summaries)
    for (at, metric), gain in zip(places, gains, strict=True):
        part = copies[at].no_tool_part
        assert part is not None  # it has a gain
        changed = part.gain[metric].model_copy(update={"overall": gain})
        part = part.model_copy(update={"gain": {**part.gain, metric: changed}})
        copies[at] = copies[at].model_copy(update={"no_tool_part": part})
    return copies


def shown_gains(summary: Summary) -> dict[str, Metric]:
    """The gains of a run that the table of gains shows: none where one of the two modes has no headline."""
    part = summary.no_tool_part
    hidden = any(not of_mode.headline for mode, of_mode in summary.modes.items() if mode != "step-by-step")
    if part is None or hidden:
        return {}
    return {metric: part.gain[metric] for metric in GAIN_METRICS if metric in part.gain}


def with_comparison_adjusted(comparison: Comparison) -> Comparison:
    """The comparison with all differences adjusted together that its tables show: each metric of each mode, and the
    rows by task type."""
    estimates = iter(adjusted(list(compared_differences(comparison))))
    modes = {
        mode: {name: _replaced(name, metric, estimates) for name, metric in metrics.items()}
        for mode, metrics in comparison.modes.items()
    }
    return comparison.model_copy(update={"modes": modes})


def compared_differences(comparison: Comparison) -> Iterator[Estimate]:
    """The differences that the tables of a comparison show."""
    for name, metric in (each for metrics in comparison.modes.values() for each in metrics.items()):
        yield metric.overall
        yield from compared_task_types(name, metric).values()


def compared_task_types(name: str, metric: Metric) -> dict[str, Estimate]:
    """The differences by task type that a comparison shows of a metric."""
    return metric.by_task_type if name in BY_TASK_TYPE and len(metric.by_task_type) > 1 else {}


def _replaced(name: str, metric: Metric, replacements: Iterator[Estimate]) -> Metric:
    """The metric with the next ones of ``replacements`` in place of those that are shown of it."""
    overall = next(replacements)
    parts = {task_type: next(replacements) for task_type in compared_task_types(name, metric)}
    return metric.model_copy(update={"overall": overall, "by_task_type": {**metric.by_task_type, **parts}})
