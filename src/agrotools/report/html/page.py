"""Writer of the page: tables, one part for each record, and the index that the script reads.

Records are read and parts are written one at a time, so that memory does not grow with the run.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson
from markupsafe import Markup

from agrotools.core import Record, RunStoreError, UsageError
from agrotools.core.base import Progress, no_progress
from agrotools.core.files import temporary_sibling
from agrotools.plugin import NO_COMPARISONS, TextComparisons
from agrotools.report.html.detail import detail_of
from agrotools.report.html.pictures import (
    BUDGET_BYTES,
    LONGEST_SIDE_PX,
    Pictures,
    Places,
    RunPictures,
)
from agrotools.report.html.result_tables import errors_section, mark_kinds, result_tables, templates
from agrotools.report.html.runs import (
    FACETS,
    TOOL_FAILED,
    Outcomes,
    Run,
    count_pictures,
    incomparable,
    opened_runs,
    run_facts,
    value_of,
)
from agrotools.report.layout import harmless, shortened
from agrotools.report.settings import Papers, papers_of_runs
from agrotools.report.tables import scoring_lines, warning_lines
from agrotools.scoring import Summary, score_record
from agrotools.scoring.metrics import SCORING_VERSION

DEFAULT_SAMPLES = 400
"""Default number of records of each run that are shown in detail."""
_HERE = Path(__file__).parent


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


def build_report(
    runs: Sequence[Path],
    out: Path,
    *,
    samples: int = DEFAULT_SAMPLES,
    data_root: Path | None = None,
    summaries: Sequence[Summary] | None = None,
    outcomes: Outcomes | None = None,
    papers: Papers | None = None,
    allow_invalid: bool = False,
    comparisons: TextComparisons = NO_COMPARISONS,
    picture_bytes: int = BUDGET_BYTES,
    longest_px: int = LONGEST_SIDE_PX,
    progress: Progress = no_progress,
) -> ReportResult:
    """Write one HTML file that needs no network and no other file.

    Args:
        runs: run folders, side by side in the tables.
        out: path of the file, which is replaced as a whole.
        samples: number of records of each run to show in detail (a sample counts once for each mode and epoch). Wrong
            ones come first, spread over modes and task types, and the same ones are shown for every run.
        data_root: folder of the benchmark, if it has moved since the run.
        summaries: summaries of the runs; computed if None.
        outcomes: scores of all records, run by run; computed if None and needed.
        papers: filled tables of the benchmarks' papers; filled here if None.
        allow_invalid: allow a headline for modes with more than 1 % invalid records if summaries are computed.
        comparisons: comparisons of texts; see :func:`agrotools.runner.rescore.rescore`.
        picture_bytes: size limit of all pictures together, in bytes.
        longest_px: longest side of a picture; larger ones are scaled down.
        progress: callback for the records written.

    Raises:
        RunStoreError: a folder is not a run or has no records, or ``out`` cannot be written.
        UsageError: the folder of ``out`` does not exist.
        ScoringVersionError: the runs have scores of different scoring versions.
    """
    opened = opened_runs(
        [Path(run) for run in runs],
        samples,
        data_root=data_root,
        summaries=summaries,
        outcomes=outcomes,
        allow_invalid=allow_invalid,
        comparisons=comparisons,
    )
    out = Path(out)
    if not out.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {out.parent} for the report", hint="create it, or choose another --out")
    # Tables of papers need records scored by the current version, so runs with stored scores of another have none.
    present = [run.folder for run in opened if run.summary.scoring == SCORING_VERSION]
    papers = papers_of_runs(present) if papers is None else papers
    try:
        with temporary_sibling(out) as temporary:
            with temporary.open("w", encoding="utf-8", newline="\n") as file:
                page = _Page(
                    opened, file, Pictures(count_pictures(opened), picture_bytes, longest_px), papers, outcomes
                )
                page.write(progress)
            size = temporary.stat().st_size
    except OSError as error:
        raise RunStoreError(
            f"cannot write the report {out}: {error.strerror or error}", hint="choose another place with --out"
        ) from error
    return ReportResult(
        path=out,
        bytes=size,
        runs=len(opened),
        records=page.n_records,
        shown=len(page.parts),
        pictures=page.pictures.n,
        missing_pictures=len(page.missing),
    )


class _Page:
    """Writer of one page."""

    def __init__(
        self,
        runs: Sequence[Run],
        file: IO[str],
        pictures: Pictures,
        papers: Papers,
        outcomes: Outcomes | None,
    ) -> None:
        self._runs = runs
        self._rows = outcomes.rows if outcomes else {}
        self._papers = papers
        self._file = file
        self._template = templates().get_template("page.html.j2").module
        self._places = Places([run.folder for run in runs])
        self.n_records = sum(len(run.records) for run in runs)
        self.pictures = pictures
        self.missing: set[str] = set()
        self.parts: list[dict[str, Any]] = []
        """Index entries of the shown records, without steps and reference."""

    def write(self, progress: Progress) -> None:
        style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
        self._render(
            "page_head",
            style=style,
            script_hash=_hash(script),
            style_hash=_hash(style),
            facts=[run_facts(run.name, run.folder, run.manifest, run.summary) for run in self._runs],
            differences=incomparable([run.manifest for run in self._runs]),
            results=result_tables([run.summary for run in self._runs]),
            marks=mark_kinds([run.summary for run in self._runs]),
            errors=errors_section([run.summary for run in self._runs], [run.name for run in self._runs]),
            papers=[tables.page() for tables in self._papers.filled()],
            notes=[
                *warning_lines([run.summary for run in self._runs]),
                *scoring_lines([run.summary for run in self._runs], page=True),
                *(note for run in self._runs for note in run.records.notes),
            ],
        )
        n_shown = sum(len(run.places) for run in self._runs)
        for at, run in enumerate(self._runs):
            for record in run.shown():
                self._write_part(at, record)
                progress("report", len(self.parts), n_shown)
        self._mark_lost()
        present = {facet for part in self.parts for facet in part["facets"]}
        runs = [
            {"name": run.name, "model": harmless(run.manifest.model), "privileged": run.manifest.privileged}
            for run in self._runs
        ]
        index = {"runs": runs, "parts": self.parts}
        self._render(
            "page_tail",
            script=script,
            index=_json(index),
            facets={facet: meaning for facet, meaning in FACETS.items() if facet in present},
            n_records=self.n_records,
            n_shown=len(self.parts),
            missing=len(self.missing),
            pictures=self.pictures,
            originals=list(dict.fromkeys(str(root) for run in self._runs for root in run.roots)),
            command=f"agrotools report {' '.join(str(run.folder) for run in self._runs)}",
        )

    def _write_part(self, at: int, record: Record) -> None:
        run = self._runs[at]
        key = (at, record.mode, record.sample.id, record.epoch)
        judged = run.summary.judging is not None  # the page shows the rows of judges apart
        scores = self._rows[key] if key in self._rows and not judged else score_record(record, run.comparisons)
        value = value_of(record, scores)
        detail = detail_of(record, scores, RunPictures(run.roots, self._places, self.pictures, self.missing))
        sample = record.sample
        part = {
            "run": at,
            "mode": record.mode,
            "sample": sample.id,
            "epoch": record.epoch,
            "task": harmless(sample.task_type),
            "type": sample.answer_type,
            "value": value,
            "state": "invalid" if value is None else "right" if value >= 1 else "partial" if value > 0 else "wrong",
            "facets": detail.facets,
            "query": shortened(harmless(sample.query), 160),
            "element": f"d{len(self.parts)}",
        }
        self.parts.append(part)
        for name, url in self.pictures.fresh():
            self._file.write(f'<script type="text/plain" id="{name}">{url}</script>\n')
        several = len(self._runs) > 1
        self._render("sample_detail", part=part, record=record, run=run, detail=detail, several=several)

    def _mark_lost(self) -> None:
        """Mark wrong end-to-end records of samples on which the oracle, with the same tools, fails too."""
        of_mode = [part for part in self.parts if part["mode"] == "end-to-end" and part["value"] is not None]
        wrong = [part for part in of_mode if part["value"] < 1]
        unsolved = {part["sample"] for part in wrong if self._runs[part["run"]].manifest.model == "baseline:oracle"}
        for part in wrong:
            if part["sample"] in unsolved:
                part["facets"].append(TOOL_FAILED)

    def _render(self, macro: str, **values: Any) -> None:
        self._file.write(getattr(self._template, macro)(**values))


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


def _json(data: object) -> Markup:
    """Return JSON that is safe inside a script element."""
    text = orjson.dumps(data).decode()
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)
