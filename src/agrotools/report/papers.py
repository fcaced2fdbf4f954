"""Tables of benchmarks' papers, filled with runs as their records are scored."""

from collections.abc import Sequence
from pathlib import Path

from agrotools.core import Record, Score
from agrotools.plugin import PaperTables, plugin_of, plugins
from agrotools.runner.manifest import Manifest
from agrotools.runner.records import iter_records
from agrotools.runner.store import read_manifest
from agrotools.scoring import score_record


class Papers:
    """The tables of all papers that runs of a report belong to."""

    def __init__(self) -> None:
        self._tables: dict[str, PaperTables] = {}

    def begin_run(self, manifest: Manifest) -> bool:
        """The records that follow are of this run. Returns whether its benchmark has a paper with tables."""
        plugin = plugin_of(manifest.benchmark)
        paper = plugin.reporting.paper if plugin else None
        if paper is not None and manifest.benchmark not in self._tables:
            self._tables[manifest.benchmark] = paper()
        for tables in self._tables.values():
            tables.begin_run(manifest)
        return paper is not None

    def add(self, record: Record, scores: Sequence[Score]) -> None:
        """A record of the run and its score rows."""
        for tables in self._tables.values():
            tables.add(record, scores)

    def filled(self) -> list[PaperTables]:
        """The tables that records were added to."""
        return [tables for tables in self._tables.values() if tables]


def papers_of_runs(runs: Sequence[Path]) -> Papers:
    """The papers of ``runs``, whose records are scored for them.

    Raises:
        RunStoreError: not a run, or its records cannot be read.
    """
    papers = Papers()
    for run in runs:
        if papers.begin_run(read_manifest(run)):
            for record in iter_records(run):
                papers.add(record, score_record(record))
    return papers


def benchmarks_with_papers() -> list[str]:
    """Names of the benchmarks whose paper has tables here."""
    return [plugin.name for plugin in plugins() if plugin.reporting.paper is not None]
