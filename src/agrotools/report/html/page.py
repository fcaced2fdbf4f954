"""Writer of the page: one file that holds the overview, the list of samples, and compressed details and pictures.

Records are read and written one at a time, so that memory does not grow with the run. The file begins with what the
first view needs; details (JSON lines, compressed in blocks) and pictures follow and are decoded on demand.
"""

import base64
import gzip
import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import orjson
from markupsafe import Markup

from agrotools.core import Record, RunStoreError, Score, UsageError
from agrotools.core.base import Progress, no_progress
from agrotools.core.files import temporary_sibling
from agrotools.plugin import NO_COMPARISONS, TextComparisons
from agrotools.report.html.detail import reason_line, record_data
from agrotools.report.html.listing import MOST_LISTED, Choice, choose_records
from agrotools.report.html.overview import Data, head_data
from agrotools.report.html.pictures import (
    BUDGET_BYTES,
    LONGEST_SIDE_PX,
    Pictures,
    Places,
    RunPictures,
)
from agrotools.report.html.result_tables import errors_section, result_tables, templates
from agrotools.report.html.runs import (
    FACETS,
    TOOL_FAILED,
    Run,
    count_shares,
    differences,
    floor_and_ceiling,
    opened_runs,
    run_facts,
    summarise,
    value_of,
)
from agrotools.report.html.sharing import Scrubber
from agrotools.report.layout import harmless, shortened
from agrotools.report.settings import Papers, papers_of_runs
from agrotools.runner.prompts import StoredPrompts
from agrotools.runner.records import Key
from agrotools.runner.rescore import credited, stored_scores
from agrotools.scoring import RunAggregator, Summary, score_record
from agrotools.scoring.attribution import first_part, read_attribution
from agrotools.scoring.metrics import SCORING_VERSION

DETAIL_BYTES = 7_000_000
"""Size limit of all details on the page, in bytes as written; further records are listed without details."""
_BLOCK_BYTES = 200_000
_SAMPLE, _MASK, _BLOCK = 2, 5, 8
"""Columns of an entry of the list: number of the sample, facets, and block of the details (None: there are none)."""
_FACET_BITS = {facet: bit for bit, facet in enumerate(FACETS)}
_LONG_TEXT = 400
_UNSAFE = re.compile("[<>&\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that end a script element or change the direction of text."""
_HERE = Path(__file__).parent
LOOK = _HERE / "look.css"
"""Colours and fonts, which the review page has, too."""
_STYLES = (LOOK, _HERE / "page.css")
_SCRIPTS = ("base.js", "overview.js", "compare.js", "list.js", "pictures.js", "detail.js", "main.js")


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
    scored: bool = False,
    tallies: Sequence[RunAggregator] = (),
    papers: Papers | None = None,
    references: Mapping[str, Summary] | None = None,
    allow_invalid: bool = False,
    comparisons: TextComparisons = NO_COMPARISONS,
    picture_bytes: int = BUDGET_BYTES,
    detail_bytes: int = DETAIL_BYTES,
    longest_px: int = LONGEST_SIDE_PX,
    most_listed: int = MOST_LISTED,
    share: bool = False,
    progress: Progress = no_progress,
) -> ReportResult:
    """Write one HTML file that needs no network and no other file.

    Args:
        runs: run folders, side by side in the tables.
        out: path of the file, which is replaced as a whole.
        data_root: folder of the benchmark, if it has moved since the run.
        summaries: summaries of the runs; computed if None.
        scored: True if the runs were just scored, so that the report can read the rows in ``scores.json``.
        tallies: collectors of the given summaries, for differences between the runs.
        papers: filled tables of the benchmarks' papers; filled here if None.
        references: summaries of baselines on the same samples by model, drawn as floor and ceiling; computed if None
            and the benchmark can be loaded.
        allow_invalid: allow a headline for modes with more than 1 % invalid records if summaries are computed.
        comparisons: comparisons of texts; see :func:`agrotools.runner.rescore.rescore`.
        picture_bytes: size limit of all pictures together, in bytes.
        detail_bytes: size limit of all details, in bytes as written; further records are listed without details.
        longest_px: longest side of a picture; larger ones are scaled down.
        most_listed: most records in the list; of longer runs, those of the samples that lost points.
        share: remove coordinates, file names that are not the benchmark's, folders and addresses from the page.
        progress: callback for the records written.

    Raises:
        RunStoreError: a folder is not a run or has no records, or ``out`` cannot be written.
        UsageError: the folder of ``out`` does not exist, or its suffix is not that of a page.
        ScoringVersionError: the runs have scores of different scoring versions.
    """
    opened = opened_runs(
        [Path(run) for run in runs],
        data_root=data_root,
        summaries=summaries,
        allow_invalid=allow_invalid,
        comparisons=comparisons,
    )
    if share:  # the name of a folder may be that of a farm
        opened = [replace(run, name=f"run-{number}") for number, run in enumerate(opened, 1)]
    out = Path(out)
    if not out.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {out.parent} for the report", hint="create it, or choose another --out")
    if out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"the report is a page, not {out.name}", hint="name it .html; for tables use --format")
    pictures = Pictures(count_shares(opened), picture_bytes, longest_px)
    try:
        with temporary_sibling(out) as temporary:
            with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as body:
                keep = partial(_write_element, body)
                page = Page(opened, pictures, keep, detail_bytes, Scrubber() if share else None)
                page.write_records(progress, scored=scored, most=most_listed)
                if summaries is None:
                    summarise(opened, allow_invalid=allow_invalid)
                # Tables of papers need records scored by the current version; runs with stored scores have none.
                present = [run.folder for run in opened if run.summary.scoring == SCORING_VERSION]
                papers = papers_of_runs(present) if papers is None else papers
                references = floor_and_ceiling(opened, data_root, progress) if references is None else references
                body.seek(0)
                with temporary.open("w", encoding="utf-8", newline="\n") as file:
                    file.write(page.shell(papers, references, tallies))
                    shutil.copyfileobj(body, file)
                    file.write("</body>\n</html>\n")
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
        shown=len(page.rows) - page.without_detail,
        pictures=pictures.n,
        missing_pictures=len(page.missing),
        removed=page.scrubber.summary() if page.scrubber else "",
        notes=tuple(note for run in opened for note in run.records.notes),
        damaged=any(run.records.bad for run in opened),
    )


def _write_element(file: IO[str], name: str, content: str) -> None:
    file.write(f'<script type="text/plain" id="{name}">{content}</script>\n')


class Page:
    """Collector of the page's data: rows of the list, blocks of details, long texts and pictures.

    Args:
        runs: opened runs.
        pictures: encoder of their pictures.
        keep: function that stores a part of the page (block, text or picture) under its name.
        detail_limit: size limit of all details, in bytes as written.
        scrubber: removes what a shared page must not contain.
        live: records are added while the page is open: each is a block of its own, and an invalid one may be replaced.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        pictures: Pictures,
        keep: Callable[[str, str], None],
        detail_limit: int,
        scrubber: Scrubber | None = None,
        *,
        live: bool = False,
    ) -> None:
        self._keep, self._live = keep, live
        self.scrubber = scrubber
        self._runs, self._pictures, self._detail_limit = runs, pictures, detail_limit
        places = Places([run.folder for run in runs])
        self.missing: set[str] = set()
        self._sources = [
            RunPictures(run.folder, run.roots, places, pictures, self.missing, self._stored_text) for run in runs
        ]
        attributions = [read_attribution(run.folder)[0] for run in runs]
        self._splits = [
            {(each.id, each.epoch): each.parts for each in found.samples} if found else {} for found in attributions
        ]
        """Lost points by part of each attributed record, run by run."""
        self.n_records = sum(len(run.records) for run in runs)
        self.choice: Choice | None = None
        """Choice of the listed records; None if all are listed."""
        self.rows: list[list[Any]] = []
        """Entries of the list in columns, one for each listed record."""
        self._places: dict[tuple[int, Key], int] = {}
        """Places of the entries on a live page, where they may be replaced."""
        self._modes: dict[str, int] = {}
        self._parts: dict[str, int] = {}
        self._wrong: list[list[Any]] = []
        """Entries of end-to-end records that lost points."""
        self._unsolved: set[int] = set()
        """Samples on which the oracle lost points."""
        self._prompts = [StoredPrompts(run.folder) for run in runs]
        self._samples: dict[str, list[Any]] = {}
        self._texts: dict[str, int] = {}
        self._unwritten_texts: list[str] = []
        self._block: list[bytes] = []
        self._n_blocks = 0
        self._detail_bytes = 0

    def write_records(self, progress: Progress, *, scored: bool = False, most: int = MOST_LISTED) -> None:
        """Write the details and pictures of all listed records, and collect their rows.

        ``scored``: read score rows in ``scores.json`` instead of scoring the records again. If there are more than
        ``most`` records, all are looked at first, and those of the samples that lost points are listed.
        """
        if self.n_records > most:
            self.choice = choose_records(self._runs, self._part, progress, scored=scored, most=most)
        for at in range(len(self._runs)):
            with self._prompts[at].kept_open():
                for record, scores in self._listed(at, scored=scored):
                    self._add(at, record, scores)
                    if self.choice is None:
                        progress("report", len(self.rows), self.n_records)
                    else:
                        progress("list", len(self.rows), self.choice.n_listed)
        self._write_block()
        self._mark_lost()

    def _listed(self, at: int, *, scored: bool) -> Iterator[tuple[Record, list[Score]]]:
        """Yield the listed records of a run, with their score rows."""
        run = self._runs[at]
        if self.choice is not None:
            for record in run.records.at(self.choice.places[at]):
                yield record, credited(record, score_record(record, run.comparisons), run.records)
            return
        # The page shows the rows of judges apart.
        stored = stored_scores(run.folder) if scored and not run.judges.metrics else iter(())
        key, scores = next(stored, (None, []))
        for record in run.records:
            if record.key == key:
                yield record, scores
                key, scores = next(stored, (None, []))
            else:
                yield record, run.scores_of(record)

    def add(self, at: int, keys: Iterable[Key]) -> None:
        """Add records of run number ``at``, or replace invalid ones."""
        self._prompts[at].read_on()
        for key in keys:
            if record := self._runs[at].records.get(key):
                self._add(at, record, self._runs[at].scores_of(record, live=self._live))
        self._write_block()
        self._mark_lost()
        self.n_records = len(self.rows)

    def _add(self, at: int, record: Record, scores: list[Score]) -> None:
        has_room = self._detail_bytes < self._detail_limit * (at + 1) // len(self._runs)
        prompts = self._prompts[at] if has_room else None
        data, facets = record_data(record, scores, self._sources[at], prompts)
        value, query = value_of(record, scores), record.sample.query
        part = "" if record.actions is not None or value in (None, 1) else self._part(at, record, scores)
        reason = "" if value == 1 else reason_line(record, scores, part)
        if self.scrubber:
            names = self.scrubber.new_names(file.name for file in record.sample.files)
            steps = [self.scrubber.step(step, names) for step in data["steps"]]
            data = {**self.scrubber.data({**data, "steps": []}, names), "steps": steps}
            query, reason = (self.scrubber.text(text, names) for text in (query, reason))
        row: list[Any] = [
            at,
            self._modes.setdefault(record.mode, len(self._modes)),
            self._sample_number(record, data, query),
            record.epoch,
            None if value is None else round(value, 4),
            sum(1 << _FACET_BITS[facet] for facet in facets),
            self._parts.setdefault(part, len(self._parts)),
            reason,
            None if prompts is None else self._n_blocks,
            len(self._block),
            data["seconds"],
            sum(data["tokens"]),
            sum("call" in step for step in data["steps"]),
        ]
        if record.mode == "end-to-end" and value is not None and value < 1:
            self._wrong.append(row)
            if self._runs[at].manifest.model == "baseline:oracle":
                self._unsolved.add(row[_SAMPLE])
        place = self._places.setdefault((at, record.key), len(self.rows)) if self._live else len(self.rows)
        self.rows[place:] = [row, *self.rows[place + 1 :]]
        for name, url in self._pictures.fresh():
            if self.scrubber is None or name not in self.scrubber.left_out:
                self._keep(name, url)
        if prompts is None:
            return
        self._block.append(orjson.dumps(data))
        if self._live or sum(map(len, self._block)) > _BLOCK_BYTES:
            self._write_block()

    def _part(self, at: int, record: Record, scores: Sequence[Score]) -> str:
        """Return the part that lost most by ``agrotools attribute``; without it, the first that went wrong."""
        split = self._splits[at].get((record.sample.id, record.epoch)) if record.mode == "end-to-end" else None
        return max(split, key=split.__getitem__) if split else first_part(record, scores)

    def _sample_number(self, record: Record, data: Data, query: str) -> int:
        sample = record.sample
        if sample.id not in self._samples:
            pictures = [each["picture"] for each in data["files"] if "picture" in each]
            asked = shortened(harmless(query), 140)
            facts = [sample.id, harmless(sample.task_type), sample.answer_type, asked, *pictures[:1]]
            self._samples[sample.id] = [len(self._samples), *facts]
        return self._samples[sample.id][0]

    def _stored_text(self, text: str) -> Any:
        """Return a short text as it is, and for a long one the number under which the page stores it once."""
        text = self.scrubber.text(text) if self.scrubber else text
        if len(text) < _LONG_TEXT:
            return text
        if text not in self._texts:
            self._texts[text] = len(self._texts)
            self._unwritten_texts.append(text)
        return self._texts[text]

    def _write_block(self) -> None:
        if self._block:
            self._write(f"b{self._n_blocks}", _packed(b"\n".join(self._block)))
            self._block = []
            self._n_blocks += 1
        for text in self._unwritten_texts:
            self._write(f"t{self._texts[text]}", _packed(text.encode("utf-8", "replace")))
        self._unwritten_texts = []

    def _write(self, name: str, content: str) -> None:
        self._detail_bytes += len(content)
        self._keep(name, content)

    def _mark_lost(self) -> None:
        """Mark wrong end-to-end records of samples on which the oracle, with the same tools, fails too."""
        for row in self._wrong:
            if row[_SAMPLE] in self._unsolved:
                row[_MASK] |= 1 << _FACET_BITS[TOOL_FAILED]

    @property
    def without_detail(self) -> int:
        """Number of listed records without details."""
        return sum(row[_BLOCK] is None for row in self.rows)

    def shell(
        self,
        papers: Papers,
        references: Mapping[str, Summary],
        tallies: Sequence[RunAggregator] = (),
        live: Mapping[str, str] | None = None,
    ) -> str:
        """Return the page up to the first detail.

        ``live``: addresses on a local server, and the present state of the runs, which may go on.
        """
        style = page_style()
        scripts = [(_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS]
        script = '"use strict";\n(() => {\n' + "\n".join(scripts) + "})();\n"
        summaries = [run.summary for run in self._runs]
        command = f"agrotools report {' '.join(harmless(str(run.folder)) for run in self._runs)}"
        tallies = tallies or [run.tally for run in self._runs if run.tally is not None]
        head = head_data(self._runs, references, differences(self._runs, tallies)) | {
            "n_records": self.n_records,
            "without_detail": self.without_detail,
            "missing_pictures": len(self.missing),
            "n_pictures": self._pictures.n + len(self.missing),
            "shrunk": self._pictures.shrunk,
            "longest_px": self._pictures.longest_px,
            "originals": list(dict.fromkeys(harmless(str(root)) for run in self._runs for root in run.roots)),
            "command": command,
            "live": live,
        }
        if self.choice is not None:
            head |= {"lost": self.choice.lost, "notes": [self.choice.note, *head["notes"]]}
        facts = [run_facts(run.name, run.folder, run.manifest, run.summary) for run in self._runs]
        tables: dict[str, Any] = {
            "results": result_tables(summaries),
            "errors": errors_section(summaries, [run.name for run in self._runs]),
            "papers": [tables.page() for tables in papers.filled()],
        }
        if self.scrubber:
            for each in (*facts, *head["runs"]):
                each["folder"] = each["name"]
            head["originals"], head["command"] = [], "agrotools report RUN"
            facts, head = self.scrubber.data(facts), self.scrubber.data(head)
            head["shared"] = [self.scrubber.summary()]
        # Tables are scrubbed as they are written; style, script and data, which must stay as they are, follow.
        parts = {"style": style, "script": script, "head": _json(head), "index": _packed(orjson.dumps(self._index()))}
        marks = {name: Markup(f"@@{name}@@") for name in parts}
        macros: Any = templates().get_template("page.html.j2").module
        shell = macros.page(
            style_hash=content_hash(style),
            script_hash=content_hash(script),
            runs=facts,
            connect=" 'self'" if live else "",
            **tables,
            **marks,
        )
        shell = self.scrubber.text(shell) if self.scrubber else str(shell)
        for name, content in parts.items():
            before, _, after = shell.partition(marks[name])
            shell = f"{before}{content}{after}"
        return shell

    def _index(self) -> Data:
        """Return the list in columns of numbers, which is smaller and faster to read than a list of objects."""
        return {
            "modes": [*self._modes],
            "facets": [*FACETS],
            "parts": [*self._parts],
            "samples": [facts[1:] for facts in self._samples.values()],
            "records": self.rows,
        }


def _packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, 6, mtime=0)).decode("ascii")


def page_style() -> str:
    """Return the style sheet of the page."""
    return "\n".join(path.read_text(encoding="utf-8") for path in _STYLES)


def content_hash(text: str) -> str:
    """Return the hash of an inline style or script for the content policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


def _json(data: object) -> Markup:
    """Return JSON that is safe inside a script element."""
    return Markup(_UNSAFE.sub(lambda letter: f"\\u{ord(letter[0]):04x}", orjson.dumps(data).decode()))
