"""Score rows of a run as one flat table, and the function that groups them by unit.

A *unit* is what a metric averages over: a sample (outcome metrics) or a step of a sample (process metrics); epochs are
averaged first. Everything is stored as columns of numbers, so that a long run takes little more memory than a short
one. What is returned of samples and units is in the order of the samples' ids: records come in the order in which
samples finished, and neither draws of clusters nor the rounding of sums may depend on that.
"""

from array import array
from typing import NamedTuple, cast

from agrotools.core import MODES, Mode, Record, Sample
from agrotools.core.lazy import BoolArray, FloatArray, IntArray, np
from agrotools.scoring.metrics import is_invalid
from agrotools.scoring.sample_traits import WHOLE, SampleTraits, traits_of_sample


class ScoreUnits(NamedTuple):
    """Units of a metric in a mode, as columns of equal length."""

    samples: IntArray
    """Numbers of the samples in the :class:`ScoreTable`."""
    clusters: IntArray
    """Numbers of the clusters of the samples."""
    steps: IntArray
    """Steps; ``WHOLE`` for whole samples."""
    epochs: IntArray
    """Numbers of records of the samples, invalid ones included."""
    values: FloatArray
    """Means over the valid epochs; NaN if every epoch is invalid."""
    low: FloatArray
    """Means with the invalid epochs counted as 0."""
    high: FloatArray
    """Means with the invalid epochs counted as 1."""
    weights: FloatArray
    """Weights of the samples."""

    @property
    def valued(self) -> BoolArray:
        """Boolean mask of the units that have a value."""
        return ~np.isnan(self.values)

    def where(self, keep: BoolArray | IntArray) -> "ScoreUnits":
        """Return the units selected by a mask or by indices."""
        return ScoreUnits(
            samples=self.samples[keep],
            clusters=self.clusters[keep],
            steps=self.steps[keep],
            epochs=self.epochs[keep],
            values=self.values[keep],
            low=self.low[keep],
            high=self.high[keep],
            weights=self.weights[keep],
        )


class ScoreRows(NamedTuple):
    """Score rows of one metric in one mode, as columns of equal length."""

    samples: IntArray
    steps: IntArray
    values: FloatArray


class ModeSamples(NamedTuple):
    """Samples with a record in a mode, in the order of their ids, as columns of equal length."""

    samples: IntArray
    """Numbers of the samples in the :class:`ScoreTable`."""
    n_records: IntArray
    n_invalid: IntArray

    def places_of(self, samples: IntArray) -> IntArray:
        """Return the places of samples in these columns, from their numbers."""
        places = np.zeros(int(self.samples.max(initial=-1)) + 1, np.int64)
        places[self.samples] = np.arange(len(self.samples))
        return places[samples]


class ScoreTable:
    """Records and score rows of a run, and the samples that they belong to.

    Sample ids and cluster names share one numbering, because a cluster is named after one of its samples. The traits of
    a sample are those of its first record.
    """

    def __init__(self) -> None:
        # Ids of samples and names of clusters: a column of each, by number.
        self._names: list[str] = []
        self._clusters = array("I")
        self._weights = array("d")
        self._traits = array("i")
        """Index in ``traits``; -1 if the number belongs only to a cluster."""
        self._number_of: dict[str, int] = {}
        self.traits: list[SampleTraits] = []
        """Every combination of traits that a sample has."""
        self._traits_numbers: dict[SampleTraits, int] = {}
        # Records.
        self._record_modes = array("B")
        """Indices in ``MODES``."""
        self._record_samples = array("I")
        self._record_invalid = array("B")
        # Score rows. A series is a metric in a mode.
        self._row_series = array("H")
        self._row_samples = array("I")
        self._row_steps = array("i")
        self._row_values = array("d")
        self._series: dict[tuple[Mode, str], int] = {}

    # --- adding --------------------------------------------------------------------------------------------------

    def add_record(self, record: Record) -> int:
        """Add a record and return the number of its sample; a new sample gets the next number."""
        sample = self._number_of_sample(record.sample)
        self._record_modes.append(MODES.index(record.mode))
        self._record_samples.append(sample)
        self._record_invalid.append(is_invalid(record))
        return sample

    def add_score(
        self, mode: Mode, metric: str, sample: int, value: float, step: int | None = None
    ) -> None:
        """Add a score of a valid record of the sample with this number."""
        self._row_series.append(self._series.setdefault((mode, metric), len(self._series)))
        self._row_samples.append(sample)
        self._row_steps.append(WHOLE if step is None else step)
        self._row_values.append(value)

    def _number_of_sample(self, sample: Sample) -> int:
        number = self._number(sample.id)
        if self._traits[number] < 0:
            self._traits[number] = self._number_of_traits(traits_of_sample(sample))
            self._clusters[number] = self._number(sample.cluster or sample.id)
            self._weights[number] = sample.weight
        return number

    def _number(self, name: str) -> int:
        """Return the number of a sample or cluster. A new one is its own cluster, until its sample tells another."""
        number = self._number_of.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
            self._clusters.append(number)
            self._weights.append(1.0)
            self._traits.append(-1)
        return number

    def _number_of_traits(self, traits: SampleTraits) -> int:
        number = self._traits_numbers.setdefault(traits, len(self.traits))
        if number == len(self.traits):
            self.traits.append(traits)
        return number

    # --- samples -------------------------------------------------------------------------------------------------

    def ids(self, samples: IntArray) -> list[str]:
        """Return the ids of the samples with these numbers; of clusters, their names."""
        return [self._names[number] for number in samples.tolist()]

    def clusters_of(self, samples: IntArray) -> IntArray:
        """Return the numbers of the clusters of samples."""
        return _selected(self._clusters, samples)

    def weights_of(self, samples: IntArray) -> FloatArray:
        """Return the weights of samples."""
        return np.asarray(self._weights)[samples]

    def traits_of(self, samples: IntArray) -> list[SampleTraits]:
        """Return the traits of samples."""
        numbers: list[int] = self.traits_numbers(samples).tolist()
        return [self.traits[number] for number in numbers]

    def traits_numbers(self, samples: IntArray) -> IntArray:
        """Return the indices in ``traits`` of samples."""
        return _selected(self._traits, samples)

    def traits_number(self, sample: int) -> int:
        """Return the index in ``traits`` of a sample."""
        return self._traits[sample]

    def all_samples(self) -> IntArray:
        """Return the numbers of the samples with a record in any mode."""
        return np.flatnonzero(np.asarray(self._traits) >= 0)

    def samples(self, mode: Mode) -> ModeSamples:
        """Return the samples with a record in a mode."""
        in_mode = np.asarray(self._record_modes) == MODES.index(mode)
        samples, at, n_records = np.unique(
            _selected(self._record_samples, in_mode), return_inverse=True, return_counts=True
        )
        invalid = np.asarray(self._record_invalid)[in_mode] == 1
        n_invalid = np.bincount(at[invalid], minlength=len(samples))
        by_id = np.argsort(np.array(self.ids(samples)))
        return ModeSamples(samples[by_id], n_records[by_id], n_invalid[by_id])

    # --- scores --------------------------------------------------------------------------------------------------

    def metrics(self, mode: Mode) -> list[str]:
        """Return the metrics with rows in a mode."""
        return [metric for of_mode, metric in self._series if of_mode == mode]

    def rows(self, mode: Mode, metric: str) -> ScoreRows:
        """Return the rows of a metric in a mode, in the order in which they were added."""
        series = self._series.get((mode, metric), -1)
        of_series = np.asarray(self._row_series) == series
        return ScoreRows(
            _selected(self._row_samples, of_series),
            _selected(self._row_steps, of_series),
            np.asarray(self._row_values)[of_series],
        )

    def units(self, mode: Mode, metric: str) -> ScoreUnits:
        """Group the rows of a metric in a mode by unit, ordered by id of the sample and by step."""
        of_mode = self.samples(mode)
        rows = self.rows(mode, metric)
        places, steps, sums, counts = _sums_by_unit(
            of_mode.places_of(rows.samples), rows.steps, rows.values
        )
        n_invalid = of_mode.n_invalid[places]
        # Not the number of records: a valid one has no row if the record of its twin is missing.
        n_epochs = counts + n_invalid
        values = sums / counts
        low = sums / n_epochs
        high = (sums + n_invalid) / n_epochs

        # Samples without a valid record have no rows, but units that could have any value.
        unknown = self._unknown_units(metric, of_mode)
        n_unknown = len(unknown)
        places = np.concatenate([places, unknown[:, 0]])
        samples = of_mode.samples[places]
        units = ScoreUnits(
            samples=samples,
            clusters=self.clusters_of(samples),
            steps=np.concatenate([steps, unknown[:, 1]]),
            epochs=of_mode.n_records[places],
            values=np.concatenate([values, np.full(n_unknown, np.nan)]),
            low=np.concatenate([low, np.zeros(n_unknown)]),
            high=np.concatenate([high, np.ones(n_unknown)]),
            weights=self.weights_of(samples),
        )
        return units.where(np.argsort(places, kind="stable"))

    def _unknown_units(self, metric: str, of_mode: ModeSamples) -> IntArray:
        """Return place and step of the units of the samples whose records are all invalid; shape ``(n, 2)``."""
        without_valid = np.flatnonzero(of_mode.n_invalid == of_mode.n_records)
        places: list[int] = without_valid.tolist()
        units: list[tuple[int, int]] = []
        for place, traits in zip(places, self.traits_of(of_mode.samples[places]), strict=True):
            units += [(place, step) for step in traits.steps_of(metric)]
        return np.array(units, np.int64).reshape(-1, 2)

    def renumbered(self, units: ScoreUnits, other: "ScoreTable") -> ScoreUnits:
        """Return the units of another table, of samples that this one knows, with the numbers of this one."""
        number_of = np.array([self._number_of.get(name, -1) for name in other._names], np.int64)
        units = units._replace(samples=number_of[units.samples])
        units = units.where(units.samples >= 0)
        return units._replace(clusters=self.clusters_of(units.samples))


def _selected(column: "array[int]", which: BoolArray | IntArray) -> IntArray:
    """Return the selected values of a column as an array of its own: a view would not let the column grow."""
    return np.asarray(column)[which].astype(np.int64)


def _sums_by_unit(
    places: IntArray, steps: IntArray, values: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Return place, step, sum and number of the values of each unit, ordered by place and step."""
    width = int(steps.max(initial=0)) + 2  # of the steps from WHOLE to the largest one
    units = places * width + (steps - WHOLE)
    if bool(np.all(units[1:] > units[:-1])):  # most runs have one epoch, ordered by sample
        return places, steps, values, np.ones(len(units), np.int64)
    by_value = np.lexsort((values, units))  # a sum depends on the order of its terms, by rounding
    units, values = units[by_value], values[by_value]
    units, at, counts = np.unique(units, return_inverse=True, return_counts=True)
    sums = cast("FloatArray", np.bincount(at, weights=values))
    return units // width, units % width + WHOLE, sums, counts
