"""Aggregation of the records of a run, one record at a time (only numbers are stored), and of several runs."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from agrotools.core import MODES, Mode, Protocol, Record, Score
from agrotools.core.form_item import asked_items
from agrotools.core.lazy import np
from agrotools.core.texts import count_text
from agrotools.plugin.installed import plugins_of_slots
from agrotools.scoring.attribution import Attribution
from agrotools.scoring.contracts import NO_COMPARISONS, TextComparisons, scoring_of
from agrotools.scoring.contracts import ModeTally as PluginTally
from agrotools.scoring.error_classes import Errors, add_record, error_counts
from agrotools.scoring.event_counts import (
    EventCounts,
    ending_of,
    missing_of,
    mostly_unread,
    no_form_lines,
    warnings_of,
)
from agrotools.scoring.lost_points import LostPoints
from agrotools.scoring.metrics import (
    FALSE_CONFIDENCE,
    FALSE_REFUSAL,
    FAS,
    FAS_TEXT,
    FLOOR_METRICS,
    GUESS_METRIC,
    METRICS,
    OPEN_TEXT,
    OUTCOME_METRICS,
    PREDICTIONS,
    SCORING_VERSION,
    STEP_METRICS,
    SUMMARY_METRICS,
    is_invalid,
    is_judged_text,
    is_outcome,
)
from agrotools.scoring.slots import NO_TWIN, PairTally, answer_of, outcome_scores
from agrotools.scoring.statistics import repeats_of
from agrotools.scoring.summary import (
    MAX_INVALID_SHARE,
    Invalid,
    Metric,
    ModeSummary,
    NoForm,
    NoToolPart,
    Seconds,
    SecondsByPart,
    Summary,
    with_gains_adjusted,
)
from agrotools.scoring.units import (
    Rows,
    SampleTable,
    Units,
    by_part,
    clusters_of,
    difference_of,
    metric_of,
    units_of,
)
from agrotools.text.submission import is_complete


class RunAggregator:
    """Aggregator of the records of one run."""

    def __init__(self, protocol: Protocol = "react", lost: LostPoints | None = None) -> None:
        self.table = SampleTable()
        self.lost = lost
        """Lost points by part; None: not counted."""
        self.protocol: Protocol = protocol
        self.modes: dict[Mode, ModeAggregator] = {}
        self.planned = frozenset[str]()
        """Ids of the samples that the run was to answer, if known; those without a record are missing."""
        self.planned_epochs = 1
        """Number of records that each sample is to have in a mode."""
        self.checksums: dict[str, int] = {}
        """Checksum of the question and the right answer of each sample, if lost points are counted."""
        self.notes: list[str] = []
        """Notes on records that were left out; they become warnings of the summary."""

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """Add a record with its score rows (none if it is invalid). Records may come in any order."""
        if record.mode not in self.modes:
            self.modes[record.mode] = ModeAggregator(record.mode, self.table, self.protocol)
        self.modes[record.mode].add(record, rows)
        if self.lost is not None and not is_invalid(record):
            sample = record.sample
            if sample.id not in self.checksums:
                self.checksums[sample.id] = crc32(
                    sample.model_dump_json(include={"query", "answer"}).encode()
                )
            if record.mode != "step-by-step":
                self.lost.add(record, rows)

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
        modes: list[tuple[Mode, ModeAggregator]] = [
            (mode, self.modes[mode]) for mode in MODES if mode in self.modes
        ]
        of_modes: dict[Mode, ModeSummary] = {
            mode: tally.summary(allow_invalid, self._attribution(mode, tally))
            for mode, tally in modes
        }
        missing = missing_of(of_modes, planned or {})
        left_out = [
            f"{mode}: {count_text(n, 'unanswerable sample')} {NO_TWIN}"
            for mode, tally in modes
            if (n := tally.pairs.n_alone)
        ]
        summary = Summary(
            scoring=SCORING_VERSION,
            warnings=(
                *no_form_lines(of_modes),
                *left_out,
                *warnings_of(of_modes, missing, is_baseline=is_baseline),
            ),
            missing=missing,
            modes=of_modes,
            no_tool_part=self._no_tool_part(),
        )
        return with_gains_adjusted([summary])[0]

    def _attribution(self, mode: Mode, tally: "ModeAggregator") -> Attribution | None:
        """Return the split of the points that the run lost in a mode; None if it has no Final Answer Score."""
        units = tally.headline_units(FAS)
        if self.lost is None or units is None:
            return None
        valued = units.where(units.valued)
        numbers = valued.samples.tolist()
        samples = zip(
            self.table.ids(numbers),
            valued.values.tolist(),
            (self.table.kind(number).task_type for number in numbers),
            clusters_of(valued.samples, self.table).tolist(),
            strict=True,
        )
        return self.lost.attribution(mode, [*samples])

    def tool_units(self) -> tuple[Mapping[str, Units], Mapping[str, Units]]:
        """Return the units by metric of end-to-end on samples that are eligible for no-tool, and those of no-tool."""
        modes = [self.modes.get(mode) for mode in ("end-to-end", "no-tool")]
        with_tools, without = (mode.units() if mode else {} for mode in modes)
        eligible = np.array(
            [self.table.kind(at).no_tool_eligible for at in range(len(self.table.kind_of))],
            dtype=bool,
        )
        return {
            name: each.where(eligible[each.samples]) for name, each in with_tools.items()
        }, without

    def _no_tool_part(self) -> NoToolPart | None:
        if not self.modes.keys() & {"no-tool", "end-to-end"}:
            return None
        able, no_tool = self.tool_units()
        # A policy that predicts the whole trajectory in one reply is run on all samples.
        all_ran = "no-tool" in self.modes and self.modes["no-tool"].has_ineligible
        excluded = [
            at for at in self.table.kind_of if at >= 0 and not self.table.kinds[at].no_tool_eligible
        ]
        return NoToolPart(
            n_excluded=0 if all_ran else len(excluded),
            metrics={
                name: metric
                for name, each in able.items()
                if (metric := metric_of(each, self.table))
            },
            gain=metric_differences(able, no_tool, self.table),
        )


class ModeAggregator:
    """Aggregator of the records of one mode. The *place* of a sample is its rank by first record in this mode."""

    def __init__(self, mode: Mode, table: SampleTable, protocol: Protocol = "react") -> None:
        self.without_open_text = set[int]()
        """Places of the samples whose open text is not in FAS, because no judge graded it."""
        self.has_ineligible = False
        """True if a record belongs to a sample that is not eligible for no-tool."""
        self._table = table
        self._counts = EventCounts()
        self._errors = Errors()
        self._protocol: Protocol = protocol
        self._seconds = defaultdict[int, list[float]](lambda: [0.0, 0])
        """Sum of the seconds of the valid records and their number, by kind of sample."""
        self._plugin_tallies: dict[str, PluginTally] = {}
        self._samples = array("I")
        self._epochs = array("I")
        self._invalid = array("I")
        self._place_of: dict[int, int] = {}  # by number of the sample
        self._n_epochs = 0
        self._reasons = Counter[str]()
        self._endings = Counter[str]()
        self._mode: Mode = mode
        self._n_answers = self._n_no_form = 0
        self.samples_without_form = set[int]()
        """Numbers of the samples with an answer without a complete form, in runs of prediction files."""
        self.pairs = PairTally()
        self._rows = {
            metric: Rows()
            for metric in (STEP_METRICS if mode == "step-by-step" else OUTCOME_METRICS)
        }

    def add(self, record: Record, rows: Sequence[Score]) -> None:
        """Add a record with its score rows."""
        self.has_ineligible = self.has_ineligible or not record.sample.no_tool_eligible
        number = self._table.number(record.sample)
        place = self._place_of.setdefault(number, len(self._samples))
        if place == len(self._samples):
            self._samples.append(number)
            self._epochs.append(0)
            self._invalid.append(0)
        self._epochs[place] += 1
        self._n_epochs = max(self._n_epochs, record.epoch + 1)
        if ending := ending_of(record):
            self._endings[ending] += 1
        if is_invalid(record):
            self._invalid[place] += 1
            of_trajectory = record.trajectory.reason if record.trajectory else ""
            self._reasons[record.invalid or of_trajectory or "infrastructure"] += 1
            return
        if self._protocol == PREDICTIONS and (complete := _has_form(record)) is not None:
            self._n_answers += 1
            self._n_no_form += not complete
            if not complete:
                self.samples_without_form.add(number)
        if not record.sample.answerable:
            rows = [
                row for row in rows if row.metric not in (FAS, GUESS_METRIC)
            ]  # they depend on the twin
        if (pair := self.pairs.add(record, place, rows)) is not None:
            for metric, value in pair[1].items():
                self._rows[metric].add(pair[0], None, value)
        for row in rows:
            metric = row.metric
            if (
                metric not in self._rows and self._mode != "step-by-step" and is_outcome(metric)
            ):  # of a plug-in
                self._rows[metric] = Rows()
            if metric in self._rows:
                self._rows[metric].add(place, row.step, row.value)
        self._counts.add(record, rows)
        add_record(record, self._errors, self._protocol, rows)
        of_kind = self._seconds[self._table.kind_of[number]]
        of_kind[:] = of_kind[0] + record.seconds, of_kind[1] + 1
        for plugin in plugins_of_slots(record.sample.answer):
            new_tally = scoring_of(plugin).tally
            if new_tally is not None:
                if plugin.name not in self._plugin_tallies:
                    self._plugin_tallies[plugin.name] = new_tally()
                self._plugin_tallies[plugin.name].add(record, rows)
        has_text = record.trajectory is not None and any(map(is_judged_text, record.sample.answer))
        if has_text and all(row.metric != OPEN_TEXT for row in rows):
            self.without_open_text.add(place)

    def units(self) -> dict[str, Units]:
        """Return the units of each metric of the mode."""
        return {metric: self._units(metric) for metric in self.metrics}

    @property
    def metrics(self) -> list[str]:
        """Outcome or step metrics of the engine, then metrics of benchmark plug-ins that have rows.

        A run whose replies could mostly not be read neither answers nor refuses, and has no metrics of that. A run of
        an agent that submits no form has only that of its own words.
        """
        theirs = [metric for metric in self._rows if "." in metric]
        apart = {FALSE_CONFIDENCE, FALSE_REFUSAL} if self.is_unread else set[str]()
        if self.no_form and self.no_form.too_many:
            apart |= {*SUMMARY_METRICS}
        if self._counts.formless:
            apart = self._rows.keys() - {FAS_TEXT}
        ours = [metric for metric in self._rows if "." not in metric and metric not in apart]
        return [*ours, *(sorted(theirs, key=[*METRICS].index) if theirs else ())]

    @property
    def is_unread(self) -> bool:
        """True if more than half of the records ended with output that is neither a call nor an answer."""
        return mostly_unread(self._endings, sum(self._epochs))

    @property
    def invalid_share(self) -> float:
        """Share of the records that are invalid."""
        return sum(self._invalid) / sum(self._epochs)

    @property
    def no_form(self) -> NoForm | None:
        """Answers without a complete form, in a run of a prediction file; None in others, and if none is asked for."""
        return NoForm(n=self._n_no_form, of=self._n_answers) if self._n_answers else None

    @property
    def withheld(self) -> str:
        """Reason why there is no headline unless it is allowed; empty if there is none."""
        if self.invalid_share > MAX_INVALID_SHARE:
            return "more than 1 % of its records are invalid"
        if self._mode != "step-by-step" and self.no_form and self.no_form.too_many:
            return "more than 20 % of its answers hold no complete form"
        return ""

    def headline_units(self, metric: str) -> Units | None:
        """Return the units of a headline metric; None if the mode has no such metric or no values of it."""
        if metric not in self.metrics:
            return None
        units = self._units(metric)
        return units if units.valued.any() else None

    def _units(self, metric: str) -> Units:
        return units_of(
            metric, self._rows[metric], self._samples, self._epochs, self._invalid, self._table
        )

    def summary(self, allow_invalid: bool, lost: Attribution | None = None) -> ModeSummary:
        """Return the summary of the mode; ``lost``: the split of its lost points."""
        clusters = clusters_of(np.array(self._samples), self._table)
        places, _, values = self._rows.get(FAS, Rows()).columns()
        of_plugins: dict[str, Any] = {}
        for tally in self._plugin_tallies.values():
            of_plugins.update(tally.results())
        return ModeSummary(
            n_records=sum(self._epochs),
            n_samples=len(self._samples),
            n_clusters=len(np.unique(clusters)),
            n_underivable=sum(
                not self._table.kind(at).derivable
                for at in self._samples
                if self._mode == "end-to-end"
            ),
            epochs=self._n_epochs,
            invalid=Invalid(
                n=sum(self._invalid), share=self.invalid_share, reasons=dict(self._reasons)
            ),
            endings=dict(self._endings),
            headline=allow_invalid or not self.withheld,
            withheld=self.withheld,
            no_form=self.no_form,
            metrics={
                name: metric
                for name in self.metrics
                if (metric := metric_of(self._units(name), self._table))
            },
            lost=lost,
            without_open_text=len(self.without_open_text),
            counts=self._counts.counts(self.pairs.n_right, self.pairs.n_alone),
            errors=error_counts(self._errors, self._mode, self._protocol),
            seconds=SecondsByPart(**by_part([*self._seconds], self._table, self._mean_seconds))
            if self._seconds
            else None,
            call_ratio=self._counts.call_ratio(),
            repeats=repeats_of(places, values, clusters) if self._n_epochs > 1 else None,
            **of_plugins,
        )

    def _mean_seconds(self, kinds: Iterable[int]) -> Seconds:
        total, n = map(sum, zip(*(self._seconds[kind] for kind in kinds), strict=True))
        return Seconds(mean=total / n, n=int(n))

    def epochs_of(self, number: int) -> int:
        """Return the number of records of the sample with this number."""
        return self._epochs[self._place_of[number]]

    def names(self) -> list[str]:
        """Return the ids of the samples with a record."""
        return self._table.ids(self._samples)

    def names_without_open_text(self) -> list[str]:
        """Return the ids of the samples whose open text no judge graded."""
        return self._table.ids(self._samples[place] for place in self.without_open_text)

    def valid_samples(self) -> set[int]:
        """Return the numbers of the samples that have a valid record."""
        at = zip(self._samples, self._epochs, self._invalid, strict=True)
        return {sample for sample, epochs, invalid in at if invalid < epochs}


def _has_form(record: Record) -> bool | None:
    """Return True if the answer holds its complete form; None if there is no answer, or it needs no form."""
    text, items = answer_of(record), asked_items(record.sample.answer)
    if (
        text is None
        or all(item.free_text for item in items)
        or plugins_of_slots(record.sample.answer)
    ):
        return None
    return is_complete(text, items)


def metric_differences(
    first: Mapping[str, Units],
    second: Mapping[str, Units],
    table: SampleTable,
) -> dict[str, Metric]:
    """Return the differences of the metrics that both have, but those of guesses."""
    names = [name for name in first if name in second and name not in FLOOR_METRICS]
    return {
        name: metric
        for name in names
        if (metric := difference_of(first[name], second[name], table))
    }


def tallied(
    records: Sequence[Record],
    scores: Iterable[Sequence[Score]] | None = None,
    lost: LostPoints | None = None,
) -> RunAggregator:
    """Return the aggregator of records, which are scored if their rows are not given."""
    tally = RunAggregator(lost=lost)
    for record, rows in zip(
        records, map(score_record, records) if scores is None else scores, strict=True
    ):
        tally.add(record, rows)
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
