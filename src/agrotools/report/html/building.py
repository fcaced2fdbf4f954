"""Writing of a report: all records of its runs, then the page around them."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO

from agrotools.core import RunStoreError, UsageError
from agrotools.core.base import Progress, no_progress
from agrotools.core.files import temporary_sibling
from agrotools.plugin import NO_COMPARISONS, TextComparisons
from agrotools.report.html.page import DETAIL_BYTES, Page
from agrotools.report.html.pictures import LONGEST_SIDE_PX, Pictures
from agrotools.report.html.runs import count_shares, floor_and_ceiling, opened_runs, summarise
from agrotools.report.html.sharing import Scrubber
from agrotools.report.settings import PaperTables, paper_tables
from agrotools.scoring import RunAggregator, Summary


@dataclass(frozen=True)
class ReportResult:
    """Result of writing a report."""

    path: Path
    bytes: int
    runs: int
    records: int
    """Number of records of all runs."""
    shown: int
    """Number of records shown in detail."""
    pictures: int
    missing_pictures: int
    removed: str = ""
    """Sentence that says what ``share`` removed."""
    notes: tuple[str, ...] = ()
    """Notes on records that were left out or stand for the same sample."""
    damaged: bool = False
    """True if a line of the records could not be read."""


def build_report(
    runs: Sequence[Path],
    out: Path,
    *,
    data_root: Path | None = None,
    summaries: Sequence[Summary] | None = None,
    tallies: Sequence[RunAggregator] = (),
    papers: Sequence[PaperTables] | None = None,
    references: Mapping[str, Summary] | None = None,
    allow_invalid: bool = False,
    comparisons: TextComparisons = NO_COMPARISONS,
    longest_px: int = LONGEST_SIDE_PX,
    share: bool = False,
    progress: Progress = no_progress,
) -> ReportResult:
    """Write one HTML file that needs no network and no other file.

    Args:
        runs: run folders, side by side in the tables.
        out: path of the file, which is replaced as a whole.
        data_root: folder of the benchmark, if it has moved since the run.
        summaries: summaries of the runs; computed if None.
        tallies: collectors of the given summaries, for differences between the runs.
        papers: filled tables of the benchmarks' papers; filled here if None.
        references: summaries of baselines on the same samples by model, drawn as floor and ceiling; computed if None
            and the benchmark can be loaded.
        allow_invalid: allow a headline for modes with more than 1 % invalid records if summaries are computed.
        comparisons: comparisons of texts; see :func:`agrotools.runner.rescore.rescore`.
        longest_px: longest side of a picture; larger ones are scaled down.
        share: remove coordinates, file names that are not the benchmark's, folders and addresses from the page.
        progress: callback for the records written.

    Raises:
        RunStoreError: a folder is not a run or has no records, or ``out`` cannot be written.
        UsageError: the folder of ``out`` does not exist, or its suffix is not that of a page.
    """
    opened = opened_runs(runs, data_root=data_root, summaries=summaries, comparisons=comparisons)
    if share:  # the name of a folder may be that of a farm
        opened = [replace(run, name=f"run-{number}") for number, run in enumerate(opened, 1)]
    if not out.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {out.parent} for the report", hint="create it, or choose another --out")
    if out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"the report is a page, not {out.name}", hint="name it .html; for tables use --format")
    try:
        with temporary_sibling(out) as temporary, tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as body:
            pictures = Pictures(count_shares(opened), longest_px=longest_px)
            page = Page(opened, pictures, partial(_write_element, body), DETAIL_BYTES, Scrubber() if share else None)
            page.write_records(progress)
            if summaries is None:
                summarise(opened, allow_invalid=allow_invalid)
            papers = paper_tables(runs, [run.summary for run in opened], comparisons) if papers is None else papers
            references = floor_and_ceiling(opened, data_root, progress) if references is None else references
            body.seek(0)
            with temporary.open("w", encoding="utf-8", newline="\n") as file:
                file.write(page.shell(papers, references, tallies))
                shutil.copyfileobj(body, file)
                file.write("</body>\n</html>\n")
            size = temporary.stat().st_size
    except OSError as error:
        raise RunStoreError(
            f"cannot write the report {out}: {error.strerror or error}",
            hint="choose another place with --out, and for temporary files with TMPDIR",
        ) from error
    return ReportResult(
        path=out,
        bytes=size,
        runs=len(opened),
        records=page.n_records,
        shown=len(page.rows) - page.without_detail,
        pictures=page.pictures.n,
        missing_pictures=len(page.missing),
        removed=page.scrubber.summary() if page.scrubber else "",
        notes=tuple(note for run in opened for note in run.records.notes),
        damaged=any(run.records.bad for run in opened),
    )


def _write_element(file: IO[str], name: str, content: str) -> None:
    file.write(f'<script type="text/plain" id="{name}">{content}</script>\n')
