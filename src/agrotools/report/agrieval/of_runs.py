"""From the records of runs to what the tables are made from."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agrotools.benchmarks.agrieval import QuestionSettings
from agrotools.benchmarks.loading import settings_of
from agrotools.core import Record, Score, UsageError
from agrotools.report.agrieval.results import ItemColumns, Kind, SettingResult, setting_of
from agrotools.runner.manifest import Manifest
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from agrotools.scoring import score_record

BENCHMARK = "agrieval"
_KINDS: Mapping[str, Kind] = {
    "single_choice": "single",
    "multiple_choice": "multiple",
    "true_false": "true_false",
    "short_answer": "short_answer",
}
_METRICS = ("agrieval.accuracy", "agrieval.rouge_l")
_GROUPS = ("domain", "field", "level", "task")


class _Columns:
    """The items of one run while they come."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.names: dict[str, list[str]] = {name: [] for name in ("item", "kind", "cluster", *_GROUPS)}
        self.scores: list[float] = []
        self.epochs: list[int] = []
        self.has_types = False

    def result(self) -> SettingResult:
        items = ItemColumns(**self.names, score=self.scores, epoch=self.epochs)
        return SettingResult(self.manifest.model, _setting(self.manifest), items, domains_are_types=self.has_types)


class RunItems:
    """The scored questions of runs of AgriEval, run by run; other runs are passed over."""

    def __init__(self) -> None:
        self._runs: list[_Columns] = []
        self._is_open = False

    def begin_run(self, manifest: Manifest) -> None:
        """The records that follow are of this run."""
        self._is_open = manifest.benchmark == BENCHMARK
        if self._is_open:
            self._runs.append(_Columns(manifest))

    def add(self, record: Record, scores: Sequence[Score]) -> None:
        """A record of the run and what it scored. The rotations of a question are one item."""
        score = next((row.value for row in scores if row.metric in _METRICS), None)
        if not self._is_open or score is None:
            return
        sample, columns = record.sample, self._runs[-1]
        names, groups = columns.names, sample.groups
        names["item"].append(sample.id.rpartition("-r")[0] if "rotation" in sample.metadata else sample.id)
        names["kind"].append(_KINDS[sample.task_type])
        names["cluster"].append(sample.cluster or sample.id)
        for name in _GROUPS:
            names[name].append(groups.get(name, ""))
        if "domain" not in groups and "type" in groups:
            names["domain"][-1] = groups["type"]
            # The older label; open questions of the published files have both.
            columns.has_types = True
        columns.scores.append(score)
        columns.epochs.append(record.epoch)

    def results(self) -> list[SettingResult]:
        """A result for each run of AgriEval that has a scored question; those of one model and setting are told apart
        by the options of their runs."""
        made = [(run.manifest, run.result()) for run in self._runs if run.scores]
        times = Counter((result.model, result.setting) for _, result in made)
        return [
            replace(result, apart=_options(manifest)) if times[result.model, result.setting] > 1 else result
            for manifest, result in made
        ]


def items_of_runs(runs: Sequence[Path]) -> list[SettingResult]:
    """Score the records of ``runs`` for the tables.

    Raises:
        RunStoreError: not a run, or its records cannot be read.
    """
    items = RunItems()
    for run in runs:
        manifest = read_manifest(run)
        items.begin_run(manifest)
        if manifest.benchmark == BENCHMARK:
            for record in iter_records(run):
                items.add(record, score_record(record))
    return items.results()


def _options(manifest: Manifest) -> str:
    return ", ".join(f"{name}={value}" for name, value in manifest.benchmark_options.items())


def _setting(manifest: Manifest) -> str:
    try:
        return setting_of(settings_of(QuestionSettings, BENCHMARK, manifest.benchmark_options).label)
    except UsageError:
        return "another setting"
