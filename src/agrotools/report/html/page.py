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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import quote

import orjson
from markupsafe import Markup

from agrotools.core import Mode, Record, RunStoreError, Score, UsageError
from agrotools.core.files import temporary_sibling
from agrotools.core.progress import Progress, no_progress
from agrotools.core.texts import command_line
from agrotools.report.citing import citation, mode_scores
from agrotools.report.comparison import error_tables
from agrotools.report.html import LOOK
from agrotools.report.html.data import (
    Data,
    listed_data,
    packed_data,
    record_data,
    table_texts,
)
from agrotools.report.html.overview import head_data, words_for
from agrotools.report.html.pictures import LONGEST_SIDE_PX, PictureEncoder, Places, RunPictures
from agrotools.report.html.runs import (
    PageRun,
    compared,
    count_shares,
    differences,
    floor_and_ceiling,
    make_files,
    opened_runs,
    run_facts,
    summarise,
)
from agrotools.report.layout import harmless, shortened
from agrotools.report.settings import PaperTables, paper_tables
from agrotools.report.tables import PageTables, page_tables
from agrotools.report.text_tables import page_templates
from agrotools.runner.prompts import StoredPrompts
from agrotools.runner.records import Key
from agrotools.runner.rescore import Rescored, rows_of
from agrotools.runner.yardsticks import Yardsticks
from agrotools.scoring.aggregate import RunAggregator
from agrotools.scoring.contracts import NO_COMPARISONS, TextComparisons
from agrotools.scoring.metrics import is_invalid
from agrotools.scoring.summary import Summary

MOST_LISTED = 50_000
"""Most records that a page lists: a browser takes as many with ease."""
DETAIL_BYTES = 7_000_000
"""Size limit of all details on the page, in bytes as written; further records are listed without details."""
_BLOCK_BYTES = 200_000
"""Size of details, before compression, above which they are written as a block."""
_LONG_TEXT = 400
"""Fewest letters of a text that the page stores once, however many records have it."""
_QUERY_LETTERS = 140
"""Letters of a question in the list of samples."""
_UNSAFE = re.compile("[<>&\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that end a script element or change the direction of text."""
_INDENTATION = re.compile("^ +", re.MULTILINE)
_HERE = Path(__file__).parent
_STYLES = (LOOK, _HERE / "page.css")
_SCRIPTS = (
    # what all views use
    "elements.js",
    "formats.js",
    "data.js",
    "address.js",
    "labels.js",
    "records.js",
    # the overview
    "scales.js",
    "overview.js",
    "runs_card.js",
    "lost_card.js",
    "checks_card.js",
    "tasks_card.js",
    "worth_card.js",
    # the comparison
    "compare.js",
    # samples: filters, list, table
    "filters.js",
    "list.js",
    "sample_table.js",
    # one sample
    "shapes.js",
    "stage.js",
    "values.js",
    "files.js",
    "steps.js",
    "answer.js",
    "requests.js",
    "detail.js",
    # the page as a whole
    "keys.js",
    "main.js",
)
"""Scripts of the page in the order in which they are joined: a constant may use those of the files before its own."""


class ListedRecord(NamedTuple):
    """Row of a record in the list of samples: the scripts of the page read each value by the name that it has here.

    A new column is a field here and its value in :meth:`Page.write`.
    """

    run: int
    mode: int
    """Number of the mode among those of the page."""
    sample: int
    """Number of the sample among those of the page."""
    epoch: int
    value: float | None
    """Score; None if the record has none."""
    invalid: int
    """1 if no reply was received, else 0."""
    lost: list[list[float]]
    """Lost points of 100, as pairs of the number of the part and its points."""
    reason: str
    """First error; empty if there is none."""
    block: int | None
    """Number of the block of details; None if the page has no details of the record."""
    line: int
    """Line within the block."""
    seconds: float
    tokens: int
    calls: int
    usd: float | None
    given: str
    """Answer, on one short line."""


class ListedSample(NamedTuple):
    """Facts about a sample that the rows of all its records share."""

    id: str
    task: str
    type: str
    """Type of the answer."""
    query: str
    expected: str
    twin: str
    picture: str | None
    """Name of its first picture on the page."""


class Page:
    """Collector of the page's data: rows of the list, blocks of details, long texts and pictures.

    Args:
        runs: opened runs.
        pictures: encoder of their pictures.
        keep: function that stores a part of the page (block, text or picture) under its name.
        detail_limit: size limit of all details, in bytes as written.
        live: records are added while the page is open: each is a block of its own, and an invalid one may be replaced.
    """

    def __init__(
        self,
        runs: Sequence[PageRun],
        pictures: PictureEncoder,
        keep: Callable[[str, str], None],
        detail_limit: int,
        *,
        live: bool = False,
    ) -> None:
        self._runs = runs
        self.pictures = pictures
        self._keep = keep
        self._detail_limit = detail_limit
        self._live = live
        self.missing: set[str] = set()
        places = Places([run.folder for run in runs])
        self._sources: list[RunPictures] = []
        for run in runs:
            missing = set[str]() if run.leaves_files else self.missing
            self._sources.append(
                RunPictures(run.folder, run.roots, places, pictures, missing, self._stored_text)
            )
        self.n_records = sum(len(run.records) for run in runs)
        self.rows: list[ListedRecord] = []
        """Entries of the list, one for each listed record."""
        self._places: dict[tuple[int, Key], int] = {}
        """Places of the entries on a live page, where they may be replaced."""
        self._modes: dict[str, int] = {}
        self._parts: dict[str, int] = {}
        self._prompts = [StoredPrompts(run.folder) for run in runs]
        self._sample_numbers: dict[str, int] = {}
        self._samples: list[ListedSample] = []
        self._texts: dict[str, int] = {}
        self._unwritten_texts: list[str] = []
        self._block: list[bytes] = []
        self._block_bytes = 0
        self._n_blocks = 0
        self._detail_bytes = 0

    def write_records(self, progress: Progress) -> None:
        """Write the details and pictures of all listed records, and collect their rows; the others are only scored."""
        n_read = 0
        listed = self._listed_samples()
        for at, run in enumerate(self._runs):
            for record, scores in run.scored_records():
                n_read += 1
                if record.sample.id in listed:
                    self.write(at, record, scores)
                progress("report", n_read, self.n_records)
        self._write_block()

    def _listed_samples(self) -> set[str]:
        """Return the samples whose records are listed: all, or the first ones with ``MOST_LISTED`` records together."""
        names = set[str]()
        kinds = set[tuple[int, str, int]]()
        for at, run in enumerate(self._runs):
            for mode, name, epoch in run.records.each_key():
                names.add(name)
                kinds.add((at, mode, epoch))
        if self.n_records <= MOST_LISTED:
            return names
        # A sample has at most one record of each run, mode and epoch.
        most_samples = max(1, MOST_LISTED // len(kinds))
        return set(sorted(names)[:most_samples])

    def add(self, at: int, keys: Iterable[Key]) -> None:
        """Add records of run number ``at``, or replace invalid ones."""
        self._prompts[at].read_on()
        for key in keys:
            if record := self._runs[at].records.get(key):
                self.write(at, record, self._runs[at].scores_of(record, live=self._live))
                self._write_twin(at, record)
        self._write_block()
        self.n_records = len(self.rows)

    def _write_twin(self, at: int, record: Record) -> None:
        """Write an unanswerable record again that was written before its answerable twin, whose record this is."""
        if not record.sample.answerable:
            return
        key: Key = (record.mode, record.sample.twin or "", record.epoch)
        place = self._places.get((at, key))
        if place is None or self.rows[place].value is not None:
            return
        run = self._runs[at]
        if twin := run.records.get(key):
            self.write(at, twin, rows_of(twin, run.records, run.comparisons))

    def write(self, at: int, record: Record, scores: Sequence[Score]) -> None:
        """Write details and pictures of a record of run number ``at``, and collect its row."""
        prompts = self._prompts[at] if self._has_room(at) else None
        data = record_data(record, scores, self._sources[at], prompts)
        listed = listed_data(record, scores, self._runs[at].shares_of(record, scores))
        expected, given = table_texts(record, scores)
        row = ListedRecord(
            run=at,
            mode=self._modes.setdefault(record.mode, len(self._modes)),
            sample=self._sample_number(record, data, expected),
            epoch=record.epoch,
            value=listed["score"],
            invalid=int(is_invalid(record)),
            lost=self._numbered_parts(listed["lost"]),
            reason=listed["error"],
            block=self._n_blocks if prompts is not None else None,
            line=len(self._block),
            seconds=data["seconds"],
            tokens=sum(data["tokens"]),
            calls=data["calls"],
            usd=data["usd"],
            given=given,
        )
        self._put_row(at, record.key, row)
        self._write_pictures()
        if prompts is not None:
            self._add_details(data)

    def _has_room(self, at: int) -> bool:
        """Return True while run number ``at`` may write details: the first runs leave the later ones their shares."""
        return self._detail_bytes < self._detail_limit * (at + 1) // len(self._runs)

    def _numbered_parts(self, lost: Mapping[str, float]) -> list[list[float]]:
        """Return lost points by the number of their part; a part that is new gets the next number."""
        return [
            [self._parts.setdefault(part, len(self._parts)), points]
            for part, points in lost.items()
        ]

    def _put_row(self, at: int, key: Key, row: ListedRecord) -> None:
        """Add the row of a record; on a live page it replaces an earlier row of the same record."""
        if not self._live:
            self.rows.append(row)
            return
        place = self._places.setdefault((at, key), len(self.rows))
        if place < len(self.rows):
            self.rows[place] = row
        else:
            self.rows.append(row)

    def _write_pictures(self) -> None:
        """Write the pictures that the last record brought."""
        for name, url in self.pictures.fresh():
            self._keep(name, url)

    def _add_details(self, data: Data) -> None:
        """Add the details of a record to the block, which is written once it is large, or at once on a live page."""
        line = packed_data(data)
        self._block.append(line)
        self._block_bytes += len(line)
        if self._live or self._block_bytes > _BLOCK_BYTES:
            self._write_block()

    def _sample_number(self, record: Record, data: Data, expected: str) -> int:
        """Return the number of a record's sample on the page; facts about a sample that is new are kept."""
        sample = record.sample
        if sample.id not in self._sample_numbers:
            self._sample_numbers[sample.id] = len(self._samples)
            pictures = [file["picture"] for file in data["files"] if "picture" in file]
            listed = ListedSample(
                id=sample.id,
                task=harmless(sample.task_type),
                type=sample.answer_type,
                query=shortened(harmless(sample.query), _QUERY_LETTERS),
                expected=expected,
                twin=sample.twin or "",
                picture=pictures[0] if pictures else None,
            )
            self._samples.append(listed)
        return self._sample_numbers[sample.id]

    def _stored_text(self, text: str) -> Any:
        """Return a short text as it is, and for a long one the number under which the page stores it once."""
        if len(text) < _LONG_TEXT:
            return text
        if text not in self._texts:
            self._texts[text] = len(self._texts)
            self._unwritten_texts.append(text)
        return self._texts[text]

    def _write_block(self) -> None:
        """Write the block of details, if it has any, and the long texts that are new since the last one."""
        if self._block:
            self._keep_packed(f"b{self._n_blocks}", b"\n".join(self._block))
            self._block = []
            self._block_bytes = 0
            self._n_blocks += 1
        for text in self._unwritten_texts:
            self._keep_packed(f"t{self._texts[text]}", text.encode("utf-8", "replace"))
        self._unwritten_texts = []

    def _keep_packed(self, name: str, content: bytes) -> None:
        packed = _packed(content)
        self._detail_bytes += len(packed)
        self._keep(name, packed)

    @property
    def without_detail(self) -> int:
        """Number of listed records without details."""
        return sum(row.block is None for row in self.rows)

    def shell(
        self,
        papers: Sequence[PaperTables],
        yardsticks: Mapping[str, Summary],
        tallies: Sequence[RunAggregator] = (),
        live: Mapping[str, str] | None = None,
    ) -> str:
        """Return the page up to the first detail.

        ``live``: addresses on a local server, and the present state of the runs, which may go on.
        """
        summaries = [run.summary for run in self._runs]
        head = self._head(yardsticks, tallies, live)
        words = words_for(summaries)
        tables = page_tables(summaries)
        facts: list[Data] = []
        for run in self._runs:
            of_run = run_facts(run.name, run.folder, run.manifest, run.summary)
            shown = {"citation": _citation(run, yardsticks), "yardstick": head["yardstick"]}
            facts.append(of_run | shown)

        parts = {
            "style": page_style(),
            "script": _page_script(),
            "head": _json(head),
            "index": _packed(orjson.dumps(self._index())),
        }
        marks = {name: Markup(f"@@{name}@@") for name in parts}
        macros: Any = page_templates().get_template("page.html.j2").module
        shell = macros.page(
            style=marks["style"],
            style_hash=content_hash(parts["style"]),
            script=marks["script"],
            script_hash=content_hash(parts["script"]),
            head=marks["head"],
            index=marks["index"],
            runs=facts,
            results=PageTables(
                [*map(words.part, tables.main)],
                [*map(words.part, tables.parts)],
                [*map(words.text, tables.notes)],
            ),
            errors=[*map(words.part, error_tables(summaries, self._address))],
            papers=papers,
            connect=" 'self'" if live else "",
        )
        shell = str(shell)
        for name, content in parts.items():
            before, _, after = shell.partition(marks[name])
            shell = f"{before}{content}{after}"
        return shell

    def _head(
        self,
        yardsticks: Mapping[str, Summary],
        tallies: Sequence[RunAggregator],
        live: Mapping[str, str] | None,
    ) -> Data:
        """Return what the overview shows, with the sizes of the page, and a note if it does not list all records."""
        tallies = tallies or [run.tally for run in self._runs if run.tally is not None]
        pairs = differences(self._runs, tallies)
        head = head_data(self._runs, yardsticks, pairs, compared(self._runs, tallies))
        roots = dict.fromkeys(harmless(str(root)) for run in self._runs for root in run.roots)
        head |= {
            "n_records": self.n_records,
            "without_detail": self.without_detail,
            "missing_pictures": len(self.missing),
            "n_pictures": self.pictures.n + len(self.missing),
            "shrunk": self.pictures.shrunk,
            "longest_px": self.pictures.longest_px,
            "originals": list(roots),
            "command": harmless(command_line("report", *(run.folder for run in self._runs))),
            "live": live,
        }
        if len(self.rows) < self.n_records:
            listed = f"{len(self.rows):,} of {self.n_records:,} records are listed: those of the first samples by id"
            note = f"{listed}. Scores and tables are of all records. Any other: agrotools explain RUN SAMPLE"
            head["notes"] = [note, *head["notes"]]
        return head

    def _address(self, run: int, mode: str, sample: str) -> str:
        """Return the address of a sample, which may not be on the page."""
        parts = (self._runs[run].name, mode, sample)
        path = "/".join(quote(part, safe="") for part in parts)
        return f"#samples?id={path}/0"

    def _index(self) -> Data:
        """Return the list of samples for the scripts of the page."""
        return {
            "modes": [*self._modes],
            "parts": [*self._parts],
            "samples": _named_columns(ListedSample._fields, self._samples),
            "records": _named_columns(ListedRecord._fields, self.rows),
        }


def _named_columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Data:
    """Return rows with the names of their columns once, which is smaller than the names in each row."""
    return {"columns": names, "rows": [[*row] for row in rows]}


def _citation(run: PageRun, yardsticks: Mapping[str, Summary]) -> str:
    """Return the words to cite a run, with floor and ceiling if the yardsticks of the page are of as many samples."""
    of_modes: dict[Mode, Yardsticks] = {}
    for mode, part in run.summary.modes.items():
        scored = {
            name: Rescored(each)
            for name, each in yardsticks.items()
            if mode in each.modes and each.modes[mode].n_samples == part.n_samples
        }
        of_modes[mode] = Yardsticks(scored)
    scores = mode_scores(Rescored(run.summary), of_modes)
    return citation(run.folder, run.manifest, run.summary, scores)


def _packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, 6, mtime=0)).decode("ascii")


def _page_script() -> str:
    """Return the scripts of the page as one, whose names no other script sees, without indentation: 13 kB less."""
    scripts = [(_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    code = _INDENTATION.sub("", "\n".join(scripts))
    return f'"use strict";\n(() => {{\n{code}}})();\n'


def page_style() -> str:
    """Return the style sheet of the page."""
    return "\n".join(path.read_text(encoding="utf-8") for path in _STYLES)


def content_hash(text: str) -> str:
    """Return the hash of an inline style or script for the content policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


def _json(data: object) -> Markup:
    """Return JSON that is safe inside a script element."""
    return Markup(
        _UNSAFE.sub(lambda letter: f"\\u{ord(letter[0]):04x}", orjson.dumps(data).decode())
    )


# --- file -------------------------------------------------------------------------------------------------------------


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
    notes: tuple[str, ...] = ()
    """Notes on records that were left out or stand for the same sample, and on baselines that could not be run."""
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
    yardsticks: Yardsticks | None = None,
    allow_invalid: bool = False,
    comparisons: TextComparisons = NO_COMPARISONS,
    longest_px: int = LONGEST_SIDE_PX,
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
        yardsticks: baselines on the same samples, drawn as floor and ceiling; computed if None and the benchmark can
            be loaded.
        allow_invalid: allow a headline for modes with more than 1 % invalid records if summaries are computed.
        comparisons: comparisons of texts; see :func:`agrotools.runner.rescore.rescore`.
        longest_px: longest side of a picture; larger ones are scaled down.
        progress: callback for the files made and the records written.

    Raises:
        RunStoreError: a folder is not a run or has no records, or ``out`` cannot be written.
        UsageError: the folder of ``out`` does not exist, or its suffix is not that of a page.
    """
    opened = opened_runs(
        runs,
        data_root=data_root,
        summaries=summaries,
        tallies=tallies,
        comparisons=comparisons,
    )
    _check_place(out)
    make_files(opened, data_root, progress)
    try:
        with (
            temporary_sibling(out) as temporary,
            tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as body,
        ):
            pictures = PictureEncoder(count_shares(opened), longest_px=longest_px)
            page = Page(
                opened,
                pictures,
                partial(_write_element, body),
                DETAIL_BYTES,
            )
            page.write_records(progress)
            if summaries is None:
                summarise(opened, allow_invalid=allow_invalid)
            if papers is None:
                papers = paper_tables(runs, [run.summary for run in opened], comparisons)
            notes = [note for run in opened for note in run.records.notes]
            if yardsticks is None:
                yardsticks = floor_and_ceiling(opened, data_root, progress)
                notes += yardsticks.notes

            # The shell is known last, but stands first in the file.
            body.seek(0)
            with temporary.open("w", encoding="utf-8", newline="\n") as file:
                file.write(page.shell(papers, yardsticks.summaries, tallies))
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
        notes=tuple(notes),
        damaged=any(run.records.bad for run in opened),
    )


def _check_place(out: Path) -> None:
    """Raise a UsageError if ``out`` has no folder, or its name is not that of a page."""
    if not out.absolute().parent.is_dir():
        raise UsageError(
            f"there is no folder {out.parent} for the report",
            hint="create it, or choose another --out",
        )
    if out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(
            f"the report is a page, not {out.name}", hint="name it .html; for tables use --format"
        )


def _write_element(file: IO[str], name: str, content: str) -> None:
    file.write(f'<script type="text/plain" id="{name}">{content}</script>\n')
