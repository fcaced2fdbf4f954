"""Results of runs as files that others can take: one JSON a run, and a table and a page of a folder of them.

Run folders come in; a :class:`Result` for each goes out. Its form is public (``docs/schemas``), because others keep
these files.
"""

import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, ValidationError

from agrotools.core import FrozenModel, Mode, Protocol, UsageError, first_error
from agrotools.core.files import MANIFEST_COPY, MANIFEST_FILE, sha256_of_json, write_whole
from agrotools.core.texts import benchmark_title, command_line, count_text
from agrotools.formats.manifest import Limit, Manifest, TaskTypes
from agrotools.report.citing import ModeScore, citation, cited_model, mode_scores
from agrotools.report.html.page import content_hash, page_style
from agrotools.report.html.runs import stored_yardsticks
from agrotools.report.ladder import TITLES
from agrotools.report.layout import (
    DASH,
    DRAWN_NOTE,
    PRIVILEGED_NOTE,
    UNSEALED_NOTE,
    Notes,
    ReportTable,
    TableCell,
    TableColumn,
    interval_text,
    new_table,
    percent,
)
from agrotools.report.text_tables import page_templates
from agrotools.runner.policies import names_endpoint
from agrotools.runner.records import last_record_at, record_index
from agrotools.runner.rescore import Rescored, score_runs
from agrotools.runner.store import read_manifest
from agrotools.runner.yardsticks import Yardsticks, with_constant
from agrotools.scoring.metrics import METRICS
from agrotools.scoring.validity import check_validity

PAGE = "index.html"
"""Page of a folder of results; a web server shows it at the address of the folder."""
_ORDER: tuple[Mode, ...] = ("end-to-end", "no-tool", "step-by-step")


class Result(FrozenModel):
    """Scores of one run with all that tells what was measured, and no address, path or reply."""

    format: Literal[1] = 1
    benchmark: str
    benchmark_version: str
    benchmark_options: dict[str, str | int | bool]
    benchmark_hash: str
    """Hash of the whole benchmark: questions, answers and files."""
    quick: bool
    """True if only the quick part was run."""
    task_types: Annotated[TaskTypes | None, Field(exclude_if=operator.not_)] = None
    """Task types that the run was limited to; absent: all."""
    limit: Annotated[Limit | None, Field(exclude_if=operator.not_)] = None
    """Random choice of questions that the run was limited to; absent: all."""
    synthetic: bool
    """True if the pictures are drawn: scores then say nothing about real fields."""
    questions_hash: str
    """SHA-256 of the JSON of the sorted pairs of id and checksum of the samples that were run."""
    model: str
    """Name of the model in tables; never an address."""
    privileged: bool
    """True if the policy saw the right answers."""
    sealed: bool | None
    """True if an agent could not reach the right answers, false if it might have; null for models."""
    protocol: Protocol
    settings: dict[str, JsonValue]
    prompt_hash: str
    toolset: dict[str, str]
    """Version and schema hash by tool."""
    toolset_hash: str
    tool_data: dict[str, str]
    """SHA-256 of the data files that results of a tool depend on, by tool."""
    agrotools: str
    """Version of the package that started the run."""
    scoring: str
    """Scoring version of the scores."""
    date: str
    """Day of the last record, in UTC."""
    scores: dict[Mode, ModeScore]
    result_hash: str
    """SHA-256 of the JSON of all other keys: it tells a file that was changed, not who wrote it."""

    @property
    def expected_hash(self) -> str:
        return sha256_of_json(self.model_dump(mode="json", exclude={"result_hash"}))


def result_of(run: Path) -> Result:
    """Return the result of a run. Floors and ceilings are run on its samples unless they are kept beside it.

    Raises:
        RunStoreError: the folder is not a run.
        UsageError: no score of the run may be shown.
    """
    manifest = read_manifest(run)
    (scored,) = score_runs([run])
    scores = mode_scores(scored, _yardsticks(run, scored))
    if not scores:
        validity = check_validity([scored.summary], [str(run)])
        parts = scored.summary.modes.values()
        reasons = [validity.error, *(part.withheld for part in parts)]
        reason = next(filter(None, reasons), "no mode has a score")
        raise UsageError(
            f"{run} has no score to publish: {reason}",
            hint=validity.hint or f"{command_line('score', run)} shows what the run has",
        )
    fields: dict[str, Any] = {
        **{name: getattr(manifest, name) for name in _OF_MANIFEST},
        "questions_hash": _questions_hash(run),
        "model": cited_model(manifest),
        "settings": _settings(manifest),
        "scoring": scored.summary.scoring,
        "date": f"{last_record_at(run):%Y-%m-%d}",
        "scores": scores,
    }
    result = Result(**fields, result_hash="")
    return result.model_copy(update={"result_hash": result.expected_hash})


_OF_MANIFEST = (
    *"benchmark benchmark_version benchmark_options benchmark_hash quick task_types limit synthetic".split(),
    *"privileged sealed protocol prompt_hash toolset toolset_hash tool_data agrotools".split(),
)


def _yardsticks(run: Path, scored: Rescored) -> dict[Mode, Yardsticks]:
    """Return the baselines on the samples of each mode of a run."""
    return {
        mode: with_constant(stored_yardsticks(run, mode), scored, mode)
        for mode in scored.summary.modes
    }


def _questions_hash(run: Path) -> str:
    pairs = {(record.sample.id, record.checksum) for record in record_index(run).undamaged()}
    return sha256_of_json(sorted(pairs))


def _settings(manifest: Manifest) -> dict[str, JsonValue]:
    """Return the settings that scores depend on, without addresses. ``seed``: null if none was sent to the model."""
    return {
        **manifest.settings,
        "images": manifest.images,
        "tool_images": manifest.tool_images,
        "max_steps": manifest.max_steps,
        "seed": manifest.settings.get("seed") if names_endpoint(manifest.model) else manifest.seed,
        "epochs": manifest.epochs,
        "tools": manifest.tools,
        "backends": dict(manifest.backends),
        "tool_servers": [server.name for server in manifest.tool_servers],
        "degrade": manifest.degrade,
        "faults": manifest.faults,
    }


def cite(run: Path) -> str:
    """Return a paragraph about a run, with floor and ceiling, and an entry for a bibliography."""
    (scored,) = score_runs([run])
    scores = mode_scores(scored, _yardsticks(run, scored))
    return citation(run, read_manifest(run), scored.summary, scores)


# --- files ------------------------------------------------------------------------------------------------------------


def write_result(run: Path, folder: Path) -> Path:
    """Write the result of a run to ``folder``, named after the run folder, and return the path."""
    path = folder / f"{run.absolute().name}.json"
    content = result_of(run).model_dump_json(indent=1).encode() + b"\n"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    return path


def read_result(path: Path) -> Result:
    """Read and verify a result: its keys, its values, and its hash.

    Raises:
        UsageError: the file cannot be read, is not a result, or was changed after it was written.
    """
    how = "agrotools export RUN --format result writes one"
    try:
        result = Result.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=how) from error
    except ValidationError as error:
        raise UsageError(f"{path} is not a result: {first_error(error)}", hint=how) from error
    if result.result_hash != result.expected_hash:
        raise UsageError(
            f"{path} was changed after it was written: its hash is not that of its content",
            hint="take the original file, or export the run again: agrotools export RUN --format result",
        )
    return result


def is_results_folder(folder: Path) -> bool:
    """Return True for a folder of JSON files that is not a run."""
    is_run = any((folder / name).exists() for name in (MANIFEST_FILE, MANIFEST_COPY))
    return not is_run and any(folder.glob("*.json"))


def read_results(folder: Path) -> list[Result]:
    """Read and verify all results in a folder, by name; UsageError as :func:`read_result`."""
    return [read_result(path) for path in sorted(folder.glob("*.json"))]


# --- tables -----------------------------------------------------------------------------------------------------------


def results_tables(results: Sequence[Result]) -> list[ReportTable]:
    """Return a table for each benchmark: the scores of each model between floor and ceiling, the best first.

    Results of other questions are never in the same table.
    """
    groups: dict[tuple[str, str, str, bool, str], list[Result]] = {}
    for result in results:
        key = (
            result.benchmark,
            result.benchmark_version,
            result.benchmark_hash,
            result.quick,
            str(result.task_types),
        )
        groups.setdefault(key, []).append(result)
    titles = [_title(group[0]) for group in groups.values()]
    tables: list[ReportTable] = []
    for title, group in zip(titles, groups.values(), strict=True):
        told_apart = f", hash {group[0].benchmark_hash[:12]}" if titles.count(title) > 1 else ""
        tables.append(_table(f"{title}{told_apart}", group))
    return tables


def _title(result: Result) -> str:
    part = ", quick part" if result.quick else ""
    part += f", {result.task_types}" if result.task_types else ""
    return f"{benchmark_title(result.benchmark, result.benchmark_version)}{part}"


def _table(title: str, results: Sequence[Result]) -> ReportTable:
    columns = _columns(results)
    headers: list[TableColumn] = []
    for mode, metric in columns:
        group = f"{TITLES[mode]}, {METRICS[metric].label}"
        headers += [TableColumn((name,), group=group) for name in _limits(mode)]
    headers += [TableColumn((name,), "words") for name in ("protocol", "agrotools", "date")]
    table = new_table(title, headers)
    notes = Notes()
    for result in sorted(results, key=_rank):
        cells: list[TableCell | str] = [f"{result.model}{_marks(result, notes)}"]
        for mode, metric in columns:
            cells += _score_cells(result.scores.get(mode), mode, metric, notes)
        table.add_row(*cells, result.protocol, result.agrotools, result.date)
    for metric in dict.fromkeys(metric for _, metric in columns):
        table.notes.append(f"{METRICS[metric].label} = {METRICS[metric].meaning}.")
    table.notes.append(
        "Score with its 95 % interval over clusters of questions. Floor: a guess or the best constant answer. "
        "Ceiling: every reference call, with its tools' errors."
    )
    if any(result.synthetic for result in results):
        table.notes.append(DRAWN_NOTE)
    if len({result.questions_hash for result in results}) > 1:
        table.notes.append(
            "Rows are of different questions of this benchmark: compare each with its own floor and ceiling."
        )
    table.notes += notes.numbered()
    return table


def _columns(results: Sequence[Result]) -> list[tuple[Mode, str]]:
    """Return the modes and metrics that any of the results has."""
    columns: list[tuple[Mode, str]] = []
    for mode in _ORDER:
        metrics = {result.scores[mode].metric for result in results if mode in result.scores}
        for metric in sorted(metrics):
            columns.append((mode, metric))
    return columns


def _rank(result: Result) -> tuple[float, str]:
    """Return the place of a result in its table: the highest score in the first mode that it has, then its model."""
    first = next(score for mode in _ORDER if (score := result.scores.get(mode)))
    return -first.score, result.model


def _marks(result: Result, notes: Notes) -> str:
    remarks: list[str] = []
    if result.privileged:
        remarks.append(PRIVILEGED_NOTE)
    if result.sealed is False:
        remarks.append(UNSEALED_NOTE)
    if result.limit:
        remarks.append(f"{result.limit} (--limit)")
    return "".join(notes.mark(remark) for remark in remarks)


def _limits(mode: Mode) -> list[str]:
    """Return the headings of the columns of a mode: without calls there is no ceiling."""
    columns = ["score", "n", "floor", "ceiling"]
    return columns[:-1] if mode == "no-tool" else columns


def _score_cells(score: ModeScore | None, mode: Mode, metric: str, notes: Notes) -> list[TableCell]:
    """Return score, number of questions, floor and ceiling of a mode; dashes if the result has none."""
    n_cells = len(_limits(mode))
    if score is None or score.metric != metric:
        return [TableCell((DASH,), "dim")] * n_cells
    marks = ""
    if score.missing:
        marks += notes.mark(f"incomplete: {count_text(score.missing, 'record')} not run")
    if score.invalid:
        marks += notes.mark(f"{count_text(score.invalid, 'invalid record')} left out")
    shown = TableCell(
        (f"{percent(score.score)}{marks}", *filter(None, [interval_text(score.interval)])), "bold"
    )
    limits = [DASH if each is None else percent(each) for each in (score.floor, score.ceiling)]
    return [shown, *(TableCell((text,)) for text in (str(score.n), *limits))][:n_cells]


def write_page(folder: Path, out: Path | None = None) -> Path:
    """Write the page of a folder of results, one file that opens without network, and return its path.

    Raises:
        UsageError: a file of the folder is not a result.
    """
    results = read_results(folder)
    style = page_style()
    page = (
        page_templates()
        .get_template("results.html.j2")
        .render(
            tables=results_tables(results),
            style=style,
            style_hash=content_hash(style),
            n_results=count_text(len(results), "result"),
        )
    )
    path = out or folder / PAGE
    write_whole(path, page.encode())
    return path
