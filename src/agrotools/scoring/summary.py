"""Summary of a run as data: the content of ``scores.json``. Values are fractions in [0, 1], never percent.

The p-values of differences that a table shows together are adjusted for their number.
"""

import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final, Literal, TypeVar

from pydantic import ConfigDict, Field, JsonValue

from agrotools.core import FrozenModel, Mode
from agrotools.formats.manifest import TaskTypes
from agrotools.formats.tool_check import ToolCheck
from agrotools.scoring.attribution import Attribution
from agrotools.scoring.statistics import Estimate, Interval, Repeats, adjusted

Part = TypeVar("Part", bound=FrozenModel)


class Metric(FrozenModel):
    """Metric over all units (samples or steps) and over the units of each family, task type and answer type.

    ``bounds`` are the values with every invalid record counted as 0 and as 1; None if no record is invalid.
    """

    overall: Estimate
    bounds: Interval | None = None
    by_family: dict[str, Estimate] = {}
    by_task_type: dict[str, Estimate] = {}
    by_answer_type: dict[str, Estimate] = {}
    by_group: dict[str, dict[str, Estimate]] = {}
    """Estimates by name and value of the samples' groups."""


class Invalid(FrozenModel):
    """Records without a reply for reasons independent of the request. They are left out of all means."""

    n: int = 0
    share: float = 0.0
    reasons: dict[str, int] = {}


class Amount(FrozenModel):
    """Amount spent: in total, per valid record of which it is known, and per success (an end-to-end or no-tool score
    of 1)."""

    total: float
    per_record: float
    per_success: float | None = None


class ConstantArgument(FrozenModel):
    """An argument of a tool that had the same value in every call."""

    tool: str
    argument: str
    value: JsonValue
    calls: int


class MissingBackend(FrozenModel):
    """A tool without a back-end for what was asked of it: its calls returned no result, whatever the model did."""

    tool: str
    samples: int
    """Number of records with such a call."""
    setup: str
    """What the person who runs the tools can do, as the first of these calls reported it."""


class Counts(FrozenModel):
    """Counts of events in the valid records of a mode."""

    successes: int | None = None
    """Number of records with a score of 1; None in step-by-step."""
    without_twin: Annotated[int, Field(exclude_if=operator.not_)] = 0
    """Number of unanswerable samples that are left out of FAS, because the answerable twin has no valid record."""
    terminations: dict[str, int] = {}
    """Number of records by termination; in step-by-step, of steps without a call or a complete answer."""
    formless: Annotated[int, Field(exclude_if=operator.not_)] = 0
    """Number of answers of an agent that takes no closing message; with any, the mode has no score of the form."""
    unparseable: int = 0
    """Number of outputs that were neither a call nor an answer."""
    unread_calls: Annotated[int, Field(exclude_if=operator.not_)] = 0
    """Number of records with a call in markup that is not understood."""
    first_unread: Annotated[str, Field(exclude_if=operator.not_)] = ""
    """What the first of these calls is, in words."""
    ran_on: Annotated[int, Field(exclude_if=operator.not_)] = 0
    """Number of records with a reply that goes on behind the end of the model's own turn; the rest is cut off."""
    answered_at_limit: Annotated[int, Field(exclude_if=operator.not_)] = 0
    """Number of records that reached the turn limit and answered when asked once more."""
    unscored_calls: int = 0
    """Step-by-step: number of calls after the first one of a message."""
    tool_calls: int = 0
    failed_calls: dict[str, int] = {}
    """Number of failed calls by kind of error."""
    missing_backends: Annotated[tuple[MissingBackend, ...], Field(exclude_if=operator.not_)] = ()
    """Tools that had no back-end for the right call; calls with another argument than the reference do not count."""
    read_texts: Annotated[int, Field(exclude_if=operator.not_)] = 0
    """Number of arguments that the model wrote as text, and that were read as the JSON value that the tool takes."""
    recorded: int = 0
    """Number of calls that were answered with recorded observations of the reference instead of running the tool."""
    choice_set_jaccard: float | None = None
    """Mean Jaccard overlap of asserted and right members over ``choice_set`` slots, 0 to 1 (their score is 0 or 1)."""
    median_box_iou: float | None = None
    """Step-by-step: median IoU of predicted and reference boxes in calls with the right tool, 0 to 1."""
    words_in_answers: Annotated[dict[str, int], Field(exclude_if=operator.not_)] = {}
    """Step-by-step: number of records whose SummAcc counts text, by the rule that scores it. No judge grades steps."""
    implied_differs: int = 0
    """Step-by-step: number of samples whose shown observations imply another answer than the ground truth."""
    canaries: Annotated[tuple[str, ...], Field(exclude_if=operator.not_)] = ()
    """Ids of the samples of records in which the model wrote the canary GUID of the benchmark."""
    constant_arguments: Annotated[
        tuple[ConstantArgument, ...], Field(exclude_if=operator.not_)
    ] = ()
    """End-to-end: arguments with one value in all calls, although those of the reference vary."""
    spent: dict[str, Amount] = {}
    """``turns``, ``input_tokens``, ``output_tokens``, ``closing_tokens`` (of closing messages, in and out), ``seconds``
    and ``tool_seconds``; ``cost_usd`` of external agents, ``cached_input_tokens`` of servers that report it.

    Tokens and costs are those of the records in which an agent reported them, and missing if it reported none.
    """


class ErrorCount(FrozenModel):
    """Errors of one class (:data:`agrotools.scoring.error_classes.CLASSES`) in the valid records of a mode.

    ``count`` is None if the class cannot be counted, with the reason in ``not_looked_for``. ``of`` is the number of
    examined steps or samples and ``share`` is ``count / of``. ``samples`` is the number of samples with the class over
    all epochs, ``examples`` the ids of the first few.
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
    """Seconds per query over all valid records of a mode and of each part. The parts are those of :class:`Metric`."""

    overall: Seconds
    by_family: dict[str, Seconds] = {}
    by_task_type: dict[str, Seconds] = {}
    by_answer_type: dict[str, Seconds] = {}
    by_group: dict[str, dict[str, Seconds]] = {}


class PublishedFigures(FrozenModel):
    """Metrics of the benchmark's paper for one mode of a run.

    ``reference`` holds the values of the published scorer including its bugs, which may exceed 1; None if it counts
    nothing. ``stops`` is the reason if it fails with an exception. ``corrected`` holds the values without misleading
    parts, ``left_out`` the reasons why metrics could not be computed. ``differs`` lists deviations from the published
    setup that make the printed rows not comparable. ``embedder`` is the model of the similarities, empty
    without one.
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
    """Ratio of calls made to calls of the reference (``call_ratio``), 1 for equal numbers; failed calls
    count.

    ``n`` is the number of valid end-to-end records with an answer whose reference has calls, ``mean`` the mean of their
    ratios. ``made`` and ``needed`` are the calls of all these records.
    """

    mean: float
    n: int
    made: int
    needed: int


MAX_INVALID_SHARE = 0.01
"""Maximum share of invalid records in a mode with a headline."""
MAX_NO_FORM_SHARE = 0.2
"""Maximum share of answers without a complete form in a mode with a headline, in runs of prediction files."""


class NoForm(FrozenModel):
    """Number ``n`` of answers that hold no complete answer form, of those (``of``) that are asked for one."""

    n: int
    of: int

    @property
    def share(self) -> float:
        return self.n / self.of

    @property
    def too_many(self) -> bool:
        """True if the scores of the forms say nothing about the answers."""
        return self.share > MAX_NO_FORM_SHARE


MAX_UNREAD_SHARE = 0.05
"""Maximum share of unread values in imported runs with a verdict: beyond, the difference may be
one of how answers are written. The same share of records is reported as a cause of endings."""


class UnreadValue(FrozenModel):
    """Value of an imported answer that was not read: sample, item of the answer form, and the text in its place."""

    sample: str
    item: str
    text: str


class Unread(FrozenModel):
    """Values of imported answers that were not read, of those (``of``) that were asked for. They count 0."""

    of: int
    values: tuple[UnreadValue, ...]


Weighting = Literal["", "task types", "samples"]
"""Name of the weighting of means: empty if each sample counts the same, ``task types`` if each task type does, else
``samples``: these have weights of their own."""


class ModeSummary(FrozenModel):
    """Metrics of one mode.

    ``headline`` is True if they may be reported as results (at most 1 % invalid records and, in prediction files, at
    most 20 % of the answers without a complete form; or allowed explicitly). Counts of a benchmark plug-in have keys of
    their own (:meth:`part`).
    """

    model_config = ConfigDict(extra="allow")

    n_records: int
    n_samples: int
    n_clusters: int
    n_underivable: Annotated[int, Field(exclude_if=operator.not_)] = 0
    """Number of end-to-end samples whose answer does not follow from the reference calls: these have no ceiling."""
    epochs: int
    invalid: Invalid = Invalid()
    endings: dict[str, int] = {}
    """Number of records without an answer by cause; ``infrastructure`` counts the invalid ones."""
    headline: bool = True
    withheld: Annotated[str, Field(exclude_if=operator.not_)] = ""
    """Reason why there is no headline unless it is allowed explicitly; empty if there is none."""
    no_form: Annotated[NoForm | None, Field(exclude_if=operator.not_)] = None
    """Answers without a complete form; None but in runs of prediction files."""
    unread: Annotated[Unread | None, Field(exclude_if=operator.not_)] = None
    """Values that were not read; None if all were, and in runs that are no imports."""
    metrics: dict[str, Metric] = {}
    floor: Annotated[str, Field(exclude_if=operator.not_)] = ""
    """Metric of the floor of the Final Answer Score: ``guess`` or ``constant``, whichever is higher in all."""
    lost: Annotated[Attribution | None, Field(exclude_if=operator.not_)] = None
    """Split of the points that are missing to a Final Answer Score of 100; None if the mode has no such score."""
    without_open_text: Annotated[int, Field(exclude_if=operator.not_)] = 0
    """Number of samples whose open text is not in FAS, because no judge graded it."""
    counts: Counts = Counts()
    errors: tuple[ErrorCount, ...] = ()
    """One count for every class of errors, over all valid records."""
    seconds: SecondsByPart | None = None
    """Seconds per query; None if no record is valid."""
    call_ratio: CallRatio | None = None
    """Ratio of calls in end-to-end; None in other modes and if no sample that needs calls was answered."""
    repeats: Annotated[Repeats | None, Field(exclude_if=operator.not_)] = None
    """Agreement between epochs; None if no sample has two valid ones."""
    weighting: Annotated[Weighting, Field(exclude_if=operator.not_)] = ""
    """What counts the same in the means of the mode."""
    by_source: Annotated[Estimate | None, Field(exclude_if=operator.not_)] = None
    """Final Answer Score with the interval over sources, for the claim on a new source; None under 10 sources."""
    published: PublishedFigures | None = None
    """Metrics of the papers, for GTA, ThinkGeo and Agent-X."""

    @property
    def no_form_share(self) -> float | None:
        """Share of the valid records (prediction files: of the answers) without their form; None if there are none.

        In a run, they are those that ended as ``no_form``. An imported answer never does unless it was asked for again,
        so that there :attr:`no_form` counts the texts without a complete form.
        """
        if self.no_form is not None:
            return self.no_form.share
        n = self.n_records - self.invalid.n
        return self.counts.terminations.get("no_form", 0) / n if n else None

    def part(self, name: str, model: type[Part]) -> Part | None:
        """Return the entry ``name`` of a benchmark plug-in; None if it counted nothing."""
        part = (self.model_extra or {}).get(name)
        return model.model_validate(part) if isinstance(part, dict) else part


def tokens_of(parts: Iterable[ModeSummary]) -> tuple[float, float | None, float]:
    """Return the tokens of prompts, those of them from the server's cache (None: it does not say), and of replies."""
    names, spent = (
        ("input_tokens", "cached_input_tokens", "output_tokens"),
        [part.counts.spent for part in parts],
    )
    sent, cached, received = (
        [each[name].total for each in spent if name in each] for name in names
    )
    return sum(sent), sum(cached) if cached else None, sum(received)


class NoToolPart(FrozenModel):
    """End-to-end metrics on the samples of no-tool, and the gain by tools, paired on samples valid in both modes."""

    n_excluded: int
    """Number of samples that no-tool leaves out because they need raster processing or a plot."""
    metrics: dict[str, Metric] = {}
    gain: dict[str, Metric] = {}
    """Differences end-to-end minus no-tool."""


def too_unread(unread: tuple[int, int], asked: tuple[int, int]) -> bool:
    """Return True if more than 5 % of the values of one of two runs were not read."""
    return any(
        of_run > MAX_UNREAD_SHARE * asked_of_run
        for of_run, asked_of_run in zip(unread, asked, strict=True)
    )


def _none(numbers: tuple[int, int]) -> bool:
    """Return True if both numbers are 0; no file then holds them."""
    return not any(numbers)


class Missing(FrozenModel):
    """Scores that one of two compared runs lacks, and the bounds that they leave (:mod:`agrotools.scoring.missing`).

    Of ``asked`` values of each run, ``unread`` were not read; they are open like missing scores.
    """

    samples: tuple[int, int]
    """Numbers of samples of which the first run, and the second, lacks a score."""
    unread: Annotated[tuple[int, int], Field(exclude_if=_none)] = (0, 0)
    asked: Annotated[tuple[int, int], Field(exclude_if=_none)] = (0, 0)
    lowest: Estimate
    """Difference, second minus first, with all missing scores set against the second run: its own 0, the others 1."""
    highest: Estimate
    """Difference with all missing scores set against the first run."""

    @property
    def too_unread(self) -> bool:
        """True if so many values of a run were not read that there is no verdict, whatever the bounds are."""
        return too_unread(self.unread, self.asked)

    def against(self, value: float) -> Estimate:
        """Return the difference with all missing scores set against the run that a difference of ``value`` favours."""
        return self.lowest if value > 0 else self.highest

    def allows(self, value: float) -> bool:
        """Return True if the run that ``value`` favours is better with all missing scores set against it."""
        if self.too_unread:
            return False
        against = self.against(value)
        return against.differs() and (against.value > 0) == (value > 0)

    def with_against(self, value: float, against: Estimate) -> "Missing":
        """Return the bounds with another estimate for the one against the run that ``value`` favours."""
        return self.model_copy(update={"lowest" if value > 0 else "highest": against})


class RunDifference(FrozenModel):
    """Difference of two runs in a headline metric, second minus first. Runs are indices of the summaries."""

    first: int
    second: int
    mode: Mode
    metric: str
    difference: Estimate
    missing: Annotated[Missing | None, Field(exclude_if=operator.not_)] = None
    """Scores that a run lacks; None if nothing is missing."""

    def differs(self) -> bool:
        """Return True if the difference is shown, with all missing scores set against it."""
        is_held = self.missing is None or self.missing.allows(self.difference.value)
        return self.difference.differs() and is_held


class Correlation(FrozenModel):
    """Pearson's correlation of a metric of steps with one of answers, over models or over the samples of one run.

    ``n`` is the number of runs or samples, ``n_clusters`` that of models or clusters. ``r`` is None if all points have
    the same value in a metric. ``interval`` is None if models have several runs, or with fewer than 10 clusters.
    """

    over: Literal["models", "samples"]
    run: int | None = None
    """Number of the run, from 0, among those that were compared; None over models."""
    step: str
    answer: str
    r: float | None
    interval: Interval | None = None
    n: int
    n_clusters: int


class JudgeAgreement(FrozenModel):
    """Krippendorff's alpha over ``n_units`` answers with at least two grades: 1 is full agreement, 0 chance agreement.

    ``alpha`` is None if all grades are the same, because agreement is then undefined. ``interval`` is the 95 % interval
    of a bootstrap by unit or cluster; None with fewer than ten of them.
    """

    alpha: float | None
    n_units: int
    interval: Interval | None = None


class JudgeSummary(FrozenModel):
    """One judge of a metric. ``answers`` is the number of gradable answers, ``graded`` the number graded."""

    metric: str
    judge: str
    prompts: tuple[str, ...]
    """Hashes of the wordings of its questions."""
    answers: int
    graded: int
    mean: float | None
    """Mean of its grades, in [0, 1]."""
    votes: int
    """Number of replies."""
    unreadable: int
    """Number of replies without a grade."""
    between_votes: JudgeAgreement | None = None


class Calibration(FrozenModel):
    """Results of a judge on answers with known grades. ``exact`` is the share with the right grade, 0 to 1.

    ``lenience`` is the mean difference of given and right grades. ``confusion[right][given]`` counts answers.
    """

    judge: str
    n: int
    unreadable: int
    exact: float | None
    lenience: float | None
    with_labels: JudgeAgreement | None
    confusion: tuple[tuple[int, ...], ...]


class Panel(FrozenModel):
    """All judges of a run. ``between_judges`` holds agreements by metric if several judges graded the same answers."""

    judges: tuple[JudgeSummary, ...] = ()
    between_judges: dict[str, JudgeAgreement] = {}
    calibrations: tuple[Calibration, ...] = ()
    rubrics: str = ""
    """Source of the rubrics of graded criteria; empty if no criteria were graded."""


class Summary(FrozenModel):
    """Scores of one run: model, benchmark, and the metrics of each mode."""

    format: int = 1
    scoring: str = "1"
    """Scoring version. The field is near the top because it is searched for in long files."""
    warnings: tuple[str, ...] = ()
    """Lines above the tables about missing records and about causes that ended many records."""
    missing: dict[Mode, int] = {}
    """Number of planned records missing in the run, by mode; complete modes are left out."""
    benchmark: str = ""
    benchmark_version: str = ""
    benchmark_options: dict[str, str | int | bool] = {}
    """Options of the benchmark that differ from its defaults."""
    synthetic: bool = False
    tool_checks: Annotated[tuple[ToolCheck, ...], Field(exclude_if=operator.not_)] = ()
    """How often the tools agree with the table of whoever built the benchmark from own photos."""
    quick: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """True if only the quick part of the benchmark was run."""
    task_types: Annotated[TaskTypes | None, Field(exclude_if=operator.not_)] = None
    """Task types that the run was limited to; None: all."""
    shard: Annotated[str, Field(exclude_if=operator.not_)] = ""
    """``3/16`` if only this part of the samples was run, to be merged with the others."""
    model: str = ""
    name: Annotated[str, Field(exclude_if=operator.not_)] = ""
    """Name of the model in tables and on pages; empty: the model itself."""
    protocol: str = ""
    tools: Annotated[str, Field(exclude_if=lambda tools: tools == "all")] = "all"
    """Tools that each sample offered: ``all``, ``needed`` (those of the reference calls) or ``+N``."""
    privileged: bool = False
    """True if the policy saw the gold."""
    unsealed: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """True if the model was an agent that was not isolated and might have seen the gold."""
    modes: dict[Mode, ModeSummary] = {}
    no_tool_part: NoToolPart | None = None
    between_runs: tuple[RunDifference, ...] = ()
    """Differences between all pairs of runs that were scored together; the same for each of these runs."""
    correlations: Annotated[tuple[Correlation, ...], Field(exclude_if=operator.not_)] = ()
    """Correlations of steps with answers in runs of three models or more that were scored together; the same for each
    of these runs."""
    judging: Panel | None = None
    """Judges of the run's answers; None if no judge was asked."""


TABLE_MODE: Final = "table"
"""In place of a mode in comparisons of tables of scores."""


class Flip(FrozenModel):
    """Sample that two runs score differently; the scores are means over epochs, in [-1, 1].

    ``cause`` is the cause by which the run with the lower score lost most more than the other one
    (:data:`agrotools.scoring.attribution.CAUSES`), ``reason`` that score in one line; both may be empty.
    """

    sample: str
    first: float
    second: float
    cause: str = ""
    reason: str = ""


class Flips(FrozenModel):
    """Samples that the second run scores higher (``up``) or lower (``down``) in ``metric``.

    The largest difference is first.
    """

    metric: str
    up: tuple[Flip, ...] = ()
    down: tuple[Flip, ...] = ()
    n_equal: int = 0

    @property
    def n_samples(self) -> int:
        """Number of paired samples."""
        return len(self.up) + len(self.down) + self.n_equal


class RunComparison(FrozenModel):
    """Comparison of two runs, second minus first, paired on the units that both have.

    The headline differences of all compared pairs and modes are adjusted together. The other metrics, task types and
    causes, which say where a difference lies, are adjusted as a group of their own.
    """

    first: str = ""
    second: str = ""
    benchmark: str = ""
    synthetic: bool = False
    quick: bool = False
    """True if only the quick part of the benchmark was run."""
    task_types: Annotated[tuple[str, ...], Field(exclude_if=operator.not_)] = ()
    """Task types that one or both runs were limited to, as far as both asked them; empty: all."""
    n_questions: Annotated[int, Field(exclude_if=operator.not_)] = 0
    """Number of questions of the whole benchmark; 0 if it is not known."""
    privileged: tuple[str, ...] = ()
    """Those of the two runs whose policy saw the reference."""
    paired: bool = True
    """False if the runs are on different samples: a published benchmark, and the same from new scenes."""
    same_records: bool = False
    """True if both runs hold the same records, but for times."""
    modes: dict[str, dict[str, Metric]] = {}
    headline: dict[str, str] = {}
    """Metric that a mode is compared in; modes without one are left out."""
    means: dict[str, tuple[float, float]] = {}
    """Means of both runs in the headline metric, over the paired units."""
    by_cause: dict[str, dict[str, Estimate]] = {}
    """Points that the first run loses by each cause minus those that the second loses. Their sum is the difference."""
    flips: dict[str, Flips] = {}
    unpaired: dict[str, tuple[int, int]] = {}
    """Numbers of samples with valid records only in the first run, and only in the second."""
    unread: dict[str, tuple[str, ...]] = {}
    """Runs in which more than half of the records ended with output that is neither a call nor an answer."""
    no_open_text: Annotated[dict[str, tuple[int, int]], Field(exclude_if=operator.not_)] = {}
    """Numbers of samples whose open text is not in FAS, in the first and in the second run."""
    withheld: dict[str, dict[str, str]] = {}
    """Runs whose own score is withheld, with the reason."""
    missing: Annotated[dict[str, Missing], Field(exclude_if=operator.not_)] = {}
    """Scores that a run lacks in the headline metric of a mode; modes in which nothing is missing are left out."""
    correlations: Annotated[tuple[Correlation, ...], Field(exclude_if=operator.not_)] = ()
    """Correlations of steps with answers: over the models of all runs that were compared, and over the samples of the
    first run (0) and of the second (1)."""

    @property
    def orientation(self) -> str:
        """Sentence that says what the sign of every difference means."""
        return orientation_text(self.first, self.second)


def orientation_text(first: str, second: str, *, but_verdict: bool = False) -> str:
    """Return the sentence that says what the sign of the differences of two runs means.

    ``but_verdict``: a verdict stands above it, whose difference has no sign.
    """
    every = "Every other difference" if but_verdict else "Every difference"
    meaning = f"+ is in favour of {second}, - in favour of {first}"
    return f"{every} is {second} minus {first}: {meaning}."


# --- adjusted differences --------------------------------------------------------------------------------------------

GAIN_METRICS = ("fas", "css", "ots")
"""Metrics in the table of gains by tools."""
BY_TASK_TYPE = ("fas", "arg_acc")
"""Metrics whose differences a comparison also shows by task type."""


def with_gains_adjusted(summaries: Sequence[Summary]) -> list[Summary]:
    """Return the summaries with gains by tools whose p-values are adjusted for all gains of the common table."""
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
    """Return the gains of a run that the table of gains shows; none if one of the two modes has no headline."""
    part = summary.no_tool_part
    hidden = any(
        not of_mode.headline for mode, of_mode in summary.modes.items() if mode != "step-by-step"
    )
    if part is None or hidden:
        return {}
    return {metric: part.gain[metric] for metric in GAIN_METRICS if metric in part.gain}


def with_comparisons_adjusted(comparisons: Sequence[RunComparison]) -> list[RunComparison]:
    """Return the comparisons with adjusted p-values: headline differences of all of them, and all other shown ones."""
    headlines = iter(
        adjusted(
            [
                each.modes[mode][name].overall
                for each in comparisons
                for mode, name in each.headline.items()
            ]
        )
    )
    others = iter(
        adjusted([estimate for each in comparisons for estimate in other_differences(each)])
    )
    missing = iter(_missing_adjusted(comparisons))
    return [
        _with_estimates(each, headlines, others).model_copy(update={"missing": next(missing)})
        for each in comparisons
    ]


def _missing_adjusted(comparisons: Sequence[RunComparison]) -> list[dict[str, Missing]]:
    """Return the bounds of each comparison, with p-values adjusted for the headlines of all of them.

    A headline without missing scores is in this family as it is.
    """
    places = [(each, mode) for each in comparisons for mode in each.headline]
    values = [each.modes[mode][each.headline[mode]].overall for each, mode in places]
    worst = adjusted(
        [
            each.missing[mode].against(shown.value) if mode in each.missing else shown
            for (each, mode), shown in zip(places, values, strict=True)
        ]
    )
    found: dict[int, dict[str, Missing]] = {id(each): {} for each in comparisons}
    for (each, mode), shown, against in zip(places, values, worst, strict=True):
        if mode in each.missing:
            changed = each.missing[mode].with_against(shown.value, against)
            found[id(each)][mode] = changed
    return [found[id(each)] for each in comparisons]


def other_differences(comparison: RunComparison) -> Iterator[Estimate]:
    """Yield the other differences that the tables of a comparison show."""
    for mode, metrics in comparison.modes.items():
        for name, metric in metrics.items():
            if name != comparison.headline.get(mode):
                yield metric.overall
            yield from compared_task_types(name, metric).values()
        yield from comparison.by_cause.get(mode, {}).values()


def compared_task_types(name: str, metric: Metric) -> dict[str, Estimate]:
    """Return the differences by task type that a comparison shows for a metric."""
    return metric.by_task_type if name in BY_TASK_TYPE and len(metric.by_task_type) > 1 else {}


def _with_estimates(
    comparison: RunComparison, headlines: Iterator[Estimate], others: Iterator[Estimate]
) -> RunComparison:
    """Return the comparison with its shown estimates replaced, in the order of :func:`other_differences`."""
    modes: dict[str, dict[str, Metric]] = {}
    by_cause: dict[str, dict[str, Estimate]] = {}
    for mode, metrics in comparison.modes.items():
        modes[mode] = {}
        for name, metric in metrics.items():
            overall = next(headlines if name == comparison.headline.get(mode) else others)
            parts = {task_type: next(others) for task_type in compared_task_types(name, metric)}
            update = {"overall": overall, "by_task_type": {**metric.by_task_type, **parts}}
            modes[mode][name] = metric.model_copy(update=update)
        if mode in comparison.by_cause:
            by_cause[mode] = {cause: next(others) for cause in comparison.by_cause[mode]}
    return comparison.model_copy(update={"modes": modes, "by_cause": by_cause})
