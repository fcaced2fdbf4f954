"""Aggregation of the records of a run to a summary, one record at a time; only numbers are stored.

A score row goes to the table (:mod:`agrotools.scoring.score_table`), which groups the rows of a metric by unit. A
summary holds the means of the units (:mod:`agrotools.scoring.unit_estimates`). What is no score row goes to the tally
of the mode (:mod:`agrotools.scoring.record_tally`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from zlib import crc32

from agrotools.core import MODES, Mode, Protocol, Record, Score
from agrotools.core.lazy import BoolArray, IntArray, np
from agrotools.core.texts import count_text
from agrotools.scoring.attribution import Attribution
from agrotools.scoring.constants import ConstantScores
from agrotools.scoring.contracts import NO_COMPARISONS, TextComparisons
from agrotools.scoring.event_counts import missing_of, no_form_lines, warnings_of
from agrotools.scoring.lost_points import LostPoints, LostScore
from agrotools.scoring.metrics import (
    CONSTANT_METRIC,
    FAS,
    FAS_FLOORS,
    FLOOR_METRICS,
    GUESS_METRIC,
    METRICS,
    SCORING_VERSION,
    STEP_METRICS,
    is_invalid,
    is_outcome,
)
from agrotools.scoring.record_tally import RecordTally, changed_text
from agrotools.scoring.score_table import ScoreTable, ScoreUnits
from agrotools.scoring.slots import NO_TWIN, guess_points, outcome_scores
from agrotools.scoring.statistics import (
    Estimate,
    Repeats,
    estimate_mean,
    repeats_of,
    weigh_the_same,
)
from agrotools.scoring.summary import (
    Metric,
    ModeSummary,
    NoToolPart,
    Summary,
    Weighting,
    with_gains_adjusted,
)
from agrotools.scoring.unit_estimates import (
    PairedUnits,
    difference_of,
    metric_of,
    paired_units,
)

_EQUAL_WITHIN = 1.001
"""Ratio of the weights of two task types that are equal; stored weights are rounded."""


class RunAggregator:
    """Aggregator of the records of one run: a table of their scores, and counts of everything else by mode."""

    def __init__(self, protocol: Protocol = "react", lost: LostPoints | None = None) -> None:
        self.table = ScoreTable()
        self.modes: dict[Mode, RecordTally] = {}
        self.lost = lost
        """Lost points by part; None: not counted."""
        self.protocol: Protocol = protocol
        self.planned = frozenset[str]()
        """Ids of the samples that the run was to answer, if known; those without a record are missing."""
        self.planned_epochs = 1
        """Number of records that each sample is to have in a mode."""
        self.checksums: dict[str, int] = {}
        """Checksum of the question and the right answer of each sample, if lost points are counted."""
        self.notes: list[str] = []
        """Notes on records that were left out; they become warnings of the summary."""
        self._constants = ConstantScores()
        self._constant_scores: Mapping[int, float] | None = None
        """Scores of the constant answers by number of the sample; None until all records are there."""
        self._scores_constants = False
        """True if the Final Answer Score is that of the constant answers (:meth:`of_constants`)."""

    # --- adding --------------------------------------------------------------------------------------------------

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """Add a record with its score rows (none if it is invalid). Records may come in any order."""
        if record.mode not in self.modes:
            self.modes[record.mode] = RecordTally(record.mode, self.protocol)
        sample = self.table.add_record(record)
        traits = self.table.traits_number(sample)
        own_rows = _own_rows(record, rows)
        self.modes[record.mode].add(record, sample, traits, own_rows)
        if is_invalid(record):
            return
        self._add_scores(record, sample, own_rows)
        self._add_constants(record, sample, own_rows)
        self._add_scores_of_pair(record, sample, own_rows)
        self._add_lost(record, rows)

    def _add_scores(self, record: Record, sample: int, rows: Sequence[Score]) -> None:
        for row in rows:
            if _is_averaged(row.metric, record.mode):
                self.table.add_score(record.mode, row.metric, sample, row.value, row.step)

    def _add_constants(self, record: Record, sample: int, rows: Sequence[Score]) -> None:
        """Add the right answers of a sample that has the floor of a guess, once for all its records."""
        has_guess = any(row.metric == GUESS_METRIC for row in rows)
        if has_guess and sample not in self._constants:
            self._constants.add(sample, record.sample, guess_points(record.sample))
            self._constant_scores = None

    def _add_scores_of_pair(self, record: Record, sample: int, rows: Sequence[Score]) -> None:
        """Add the scores of an unanswerable sample, once the record of its twin is there, too."""
        pair = self.modes[record.mode].pairs.add(record, sample, rows)
        if pair is None:
            return
        unanswerable, scores = pair
        for metric, value in scores.items():
            self.table.add_score(record.mode, metric, unanswerable, value)

    def _add_lost(self, record: Record, rows: Sequence[Score]) -> None:
        if self.lost is None:
            return
        sample = record.sample
        if sample.id not in self.checksums:
            question_and_answer = sample.model_dump_json(include={"query", "answer"})
            self.checksums[sample.id] = crc32(question_and_answer.encode())
        if record.mode != "step-by-step":
            self.lost.add(record, rows)

    # --- scores --------------------------------------------------------------------------------------------------

    def metrics(self, mode: Mode) -> list[str]:
        """Return the metrics of a mode: those of the engine, then those of benchmark plug-ins that have rows."""
        if mode not in self.modes:
            return []
        of_plugins = [metric for metric in self.table.metrics(mode) if "." in metric]
        if of_plugins:  # only then all plug-ins are needed, for the order of their metrics
            of_plugins.sort(key=[*METRICS].index)
        return [*self.modes[mode].engine_metrics, *of_plugins]

    def valued_units(self, mode: Mode, metric: str) -> ScoreUnits | None:
        """Return the units of a metric that have a value; None if there are none, or the mode lacks the metric."""
        if metric not in self.metrics(mode):
            return None
        units = self._units(mode, metric)
        valued = units.where(units.valued)
        return valued if len(valued.values) else None

    def _units(self, mode: Mode, metric: str) -> ScoreUnits:
        """Return the units of a metric in a mode; the constant answers have no rows, but depend on all samples."""
        if metric == CONSTANT_METRIC or (metric == FAS and self._scores_constants):
            return self._units_of_constants(mode)
        return self.table.units(mode, metric)

    def _units_of_constants(self, mode: Mode) -> ScoreUnits:
        """Return the units of guesses with the scores of constants: those that are refused score as the guess does."""
        if self._constant_scores is None:
            self._constant_scores = self._constants.by_sample()
        scores = self._constant_scores
        units = self.table.units(mode, GUESS_METRIC)
        if not scores:
            return units.where(np.zeros(len(units.values), np.bool_))
        guesses: list[float] = units.values.tolist()
        samples: list[int] = units.samples.tolist()
        pairs = zip(samples, guesses, strict=True)
        values = np.array([scores.get(sample, guess) for sample, guess in pairs], np.float64)
        values[~units.valued] = np.nan
        return units._replace(values=values, low=values, high=values)

    def of_constants(self) -> "RunAggregator":
        """Return the same records with the scores of the constant answers in place of the Final Answer Score."""
        constants = copy(self)
        constants._scores_constants = True
        return constants

    def pair_by_tools(self, metric: str) -> PairedUnits | None:
        """Return the units with a value in end-to-end and in no-tool, in this order; None if there are none."""
        with_tools = self.valued_units("end-to-end", metric)
        without = self.valued_units("no-tool", metric)
        if with_tools is None or without is None:
            return None
        return paired_units(self._eligible_units(with_tools), without)

    def _eligible_units(self, units: ScoreUnits) -> ScoreUnits:
        return units.where(self._no_tool_eligible(units.samples))

    def _no_tool_eligible(self, samples: IntArray) -> BoolArray:
        eligible = np.array([traits.no_tool_eligible for traits in self.table.traits], np.bool_)
        return eligible[self.table.traits_numbers(samples)]

    # --- samples -------------------------------------------------------------------------------------------------

    def sample_ids(self, mode: Mode) -> set[str]:
        """Return the ids of the samples with a record in a mode."""
        return {*self.table.ids(self.table.samples(mode).samples)}

    def valid_ids(self, mode: Mode) -> set[str]:
        """Return the ids of the samples with a valid record in a mode."""
        of_mode = self.table.samples(mode)
        return {*self.table.ids(of_mode.samples[of_mode.n_invalid < of_mode.n_records])}

    def ids_without_open_text(self, mode: Mode) -> set[str]:
        """Return the ids of the samples whose open text no judge graded."""
        samples = [*self.modes[mode].without_open_text]
        return {*self.table.ids(np.array(samples, np.int64))}

    # --- summary -------------------------------------------------------------------------------------------------

    def summary(
        self,
        *,
        allow_invalid: bool = False,
        planned: Mapping[Mode, int] | None = None,
        is_baseline: bool = False,
    ) -> Summary:
        """Return the metrics of all added records; the caller fills in model and benchmark.

        Args:
            allow_invalid: allow a headline for modes with more than 1 % invalid records.
            planned: number of records that each mode should hold, if known.
            is_baseline: True if the policy has no settings that the warnings could advise to change.
        """
        modes: list[Mode] = [mode for mode in MODES if mode in self.modes]
        of_modes: dict[Mode, ModeSummary] = {
            mode: self._mode_summary(mode, allow_invalid) for mode in modes
        }
        missing = missing_of(of_modes, planned or {})
        left_out = [
            f"{mode}: {count_text(n, 'unanswerable sample')} {NO_TWIN}"
            for mode in modes
            if (n := self.modes[mode].pairs.n_alone)
        ]
        changed = [
            f"{mode}: {changed_text(tally.changed)}"
            for mode in modes
            if (tally := self.modes[mode]).changed
        ]
        summary = Summary(
            scoring=SCORING_VERSION,
            warnings=(
                *changed,
                *no_form_lines(of_modes),
                *left_out,
                *warnings_of(of_modes, missing, is_baseline=is_baseline),
            ),
            missing=missing,
            modes=of_modes,
            no_tool_part=self._no_tool_part(),
        )
        return with_gains_adjusted([summary])[0]

    def _mode_summary(self, mode: Mode, allow_invalid: bool) -> ModeSummary:
        tally = self.modes[mode]
        samples = self.table.samples(mode).samples
        metrics = self._means(mode)
        return ModeSummary(
            n_records=tally.n_records,
            n_samples=len(samples),
            n_clusters=len(np.unique(self.table.clusters_of(samples))),
            n_underivable=self._n_underivable(samples) if mode == "end-to-end" else 0,
            epochs=tally.n_epochs,
            invalid=tally.invalid,
            endings=dict(tally.endings),
            headline=allow_invalid or not tally.withheld,
            withheld=tally.withheld,
            no_form=tally.no_form,
            unread=tally.unread.summary,
            metrics=metrics,
            floor=floor_of(metrics),
            lost=self._attribution(mode),
            without_open_text=len(tally.without_open_text),
            counts=tally.counts,
            errors=tally.errors,
            seconds=tally.seconds(self.table.traits),
            call_ratio=tally.events.call_ratio(),
            repeats=self._repeats(mode) if tally.n_epochs > 1 else None,
            weighting=self._weighting(samples),
            by_source=self._estimate_by_source(mode),
            **tally.plugin_results(),
        )

    def _weighting(self, samples: IntArray) -> Weighting:
        """Return what counts the same in the means of these samples."""
        weights = self.table.weights_of(samples)
        if weigh_the_same(weights):
            return ""
        totals = defaultdict[str, float](float)
        for traits, weight in zip(self.table.traits_of(samples), weights.tolist(), strict=True):
            totals[traits.task_type] += weight
        least, most = min(totals.values()), max(totals.values())
        if len(totals) == 1:
            return "samples"
        return "task types" if most <= _EQUAL_WITHIN * least else "samples"

    def _means(self, mode: Mode) -> dict[str, Metric]:
        """Return the means of the metrics of a mode that have a value."""
        means: dict[str, Metric] = {}
        for name in self.metrics(mode):
            metric = metric_of(self._units(mode, name), self.table)
            if metric is not None:
                means[name] = metric
        return means

    def _n_underivable(self, samples: IntArray) -> int:
        return sum(not traits.derivable for traits in self.table.traits_of(samples))

    def _attribution(self, mode: Mode) -> Attribution | None:
        """Return the split of the points that the run lost in a mode; None if it has no Final Answer Score."""
        units = self.valued_units(mode, FAS)
        if self.lost is None or units is None:
            return None
        values: list[float] = units.values.tolist()
        task_types = [traits.task_type for traits in self.table.traits_of(units.samples)]
        clusters: list[int] = units.clusters.tolist()
        weights: list[float] = units.weights.tolist()
        ids = self.table.ids(units.samples)
        samples = map(LostScore, ids, values, task_types, clusters, weights)
        return self.lost.attribution(mode, [*samples])

    def _repeats(self, mode: Mode) -> Repeats | None:
        """Return the agreement between epochs in the Final Answer Score; None if no sample has two valid ones."""
        of_mode = self.table.samples(mode)
        rows = self.table.rows(mode, FAS)
        clusters = self.table.clusters_of(of_mode.samples)
        weights = self.table.weights_of(of_mode.samples)
        return repeats_of(of_mode.places_of(rows.samples), rows.values, clusters, weights)

    def _estimate_by_source(self, mode: Mode) -> Estimate | None:
        """Return the Final Answer Score with the interval over sources; None if there are too few of them."""
        units = self.valued_units(mode, FAS)
        if units is None:
            return None
        sources = [traits.source for traits in self.table.traits_of(units.samples)]
        estimate = estimate_mean(units.values, sources, units.weights, paired=False)
        return estimate if estimate.interval else None

    def _no_tool_part(self) -> NoToolPart | None:
        if not self.modes.keys() & {"no-tool", "end-to-end"}:
            return None
        means: dict[str, Metric] = {}
        gains: dict[str, Metric] = {}
        for name in self.metrics("end-to-end"):
            with_tools = self._eligible_units(self._units("end-to-end", name))
            metric = metric_of(with_tools, self.table)
            if metric is not None:
                means[name] = metric
            pair = self.pair_by_tools(name)
            if pair is not None and name not in FLOOR_METRICS:
                gains[name] = difference_of(pair, self.table)
        # A policy that predicts the whole trajectory in one reply is run on all samples.
        all_ran = not self._no_tool_eligible(self.table.samples("no-tool").samples).all()
        ineligible = ~self._no_tool_eligible(self.table.all_samples())
        return NoToolPart(
            n_excluded=0 if all_ran else int(ineligible.sum()), metrics=means, gain=gains
        )


def floor_of(metrics: Mapping[str, Metric]) -> str:
    """Return the floor of the Final Answer Score: the one that is higher in all; empty without one."""
    known = [name for name in FAS_FLOORS if name in metrics]
    return max(known, key=lambda name: metrics[name].overall.value, default="")


def _own_rows(record: Record, rows: Sequence[Score]) -> Sequence[Score]:
    """Return the rows that do not depend on the record of a twin."""
    if record.sample.answerable:
        return rows
    return [row for row in rows if row.metric not in (FAS, GUESS_METRIC)]


def _is_averaged(metric: str, mode: Mode) -> bool:
    """Return True if the summary of a mode holds the mean of a metric."""
    return metric in STEP_METRICS if mode == "step-by-step" else is_outcome(metric)


def tallied(records: Iterable[Record], lost: LostPoints | None = None) -> RunAggregator:
    """Return the aggregator of records, which it scores."""
    tally = RunAggregator(lost=lost)
    for record in records:
        tally.add(record, score_record(record))
    return tally


def score_record(record: Record, comparisons: TextComparisons = NO_COMPARISONS) -> list[Score]:
    """Return all score rows of a record; an invalid record has none. ``comparisons`` holds the optional text metrics.

    Raises:
        RunStoreError: the record lacks data that its mode needs.
        BenchmarkError: the gold of the sample is not usable.
    """
    if is_invalid(record):
        return []
    if record.mode == "step-by-step":
        from agrotools.scoring.steps import step_scores

        return step_scores(record)
    return outcome_scores(record, comparisons)
