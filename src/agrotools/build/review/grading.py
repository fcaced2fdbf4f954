"""Blind grading of the answers of runs: what is graded by which rubrics, in which order, and the results.

Equal answers to a question are graded once. Samples, and the answers to each, are in an order that depends on the seed
alone. Names of models are masked in what is shown.
"""

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from agrotools.build.review.agreement import SummaryPart
from agrotools.build.review.material import Material, facts_of_sample
from agrotools.core import FrozenModel, Mode, Observation, Record, Step, UsageError, first_error
from agrotools.core.base import benchmark_title
from agrotools.report.curve import common_mode
from agrotools.report.html.pictures import benchmark_roots
from agrotools.report.judges import Grade, answer_key
from agrotools.report.layout import shortened, value_text
from agrotools.runner.config import read_toml
from agrotools.runner.manifest import Manifest
from agrotools.runner.records import record_index
from agrotools.runner.rescore import benchmark_differences
from agrotools.runner.store import read_manifest
from agrotools.scoring import Estimate
from agrotools.scoring.judging.judgements import agreement
from agrotools.scoring.metrics import is_invalid
from agrotools.scoring.statistics import estimate_mean
from agrotools.scoring.summary import Agreement as Alpha

GRADES_FILE = "grades.jsonl"
DEFAULT_SCHEME = Path(__file__).with_name("grading.toml")
MASK = "[model]"
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
_Id = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
_SHORTEST_NAME = 3
_KINDS = frozenset({"baseline", "command", "http", "https", "mcp", "python", "replay"})
"""Prefixes of ``--model`` that name no provider."""


class Rubric(FrozenModel):
    """A question about an answer. ``levels``: possible grades, from 0 to 1 in equal steps."""

    id: _Id
    name: _Text
    question: _Text
    levels: Annotated[tuple[_Text, ...], Field(min_length=2, max_length=9)] = (
        "no",
        "partly",
        "yes",
    )
    steps: bool = False
    """True to ask only about answers with tool calls."""


class Scheme(FrozenModel):
    """Rubrics, as in a TOML file with tables ``[[rubric]]``."""

    rubric: Annotated[tuple[Rubric, ...], Field(min_length=1, max_length=20)]

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len({each.id for each in self.rubric}) < len(self.rubric):
            raise ValueError("an id is given twice")
        return self

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    def rubrics_of(self, item: "Item") -> tuple[Rubric, ...]:
        return tuple(each for each in self.rubric if item.calls or not each.steps)

    def complaint(self, item: "Item", grade: Grade) -> str:
        """Return what is missing or wrong in a grade of ``item``; empty if it is complete."""
        if grade.verdict == "withdraw":
            return ""
        rubrics = {each.id: each for each in self.rubrics_of(item)}
        if missing := [each.name for name, each in rubrics.items() if name not in grade.grades]:
            return f"not graded yet: {', '.join(missing)}"
        for name, value in grade.grades.items():
            if name not in rubrics or not (value * (len(rubrics[name].levels) - 1)).is_integer():
                return f"{name} has no level {value:g}"
        return ""


def read_scheme(path: Path | None) -> Scheme:
    """Read rubrics; None for the default ones. UsageError if the file is not valid."""
    path = path or DEFAULT_SCHEME
    try:
        return Scheme.model_validate(
            read_toml(path, "file of rubrics", hint="check the path of --rubrics")
        )
    except ValidationError as error:
        hint = 'e.g. [[rubric]] with id = "goal", name = "Goal", question = "Is it right?", levels = ["no", "yes"]'
        raise UsageError(
            f"{path}: {first_error(error).removeprefix('the whole: ')}", hint=hint
        ) from error


@dataclass(frozen=True)
class Item:
    """An answer to grade. ``runs``: numbers of the runs that gave it, with the epoch."""

    key: str
    label: str
    record: Record
    runs: tuple[tuple[int, int], ...]

    @property
    def cluster(self) -> str:
        return self.record.sample.cluster or self.record.sample.id

    @property
    def calls(self) -> list[Step]:
        return (
            [step for step in self.record.trajectory.steps if step.call]
            if self.record.trajectory
            else []
        )


@dataclass(frozen=True, eq=False)
class Sheet:
    """Answers to grade, by key, in the order of grading, and where they come from.

    ``unanswered``: samples that a run did not answer, with their clusters, by number of the run; each counts as 0.
    """

    material: Material
    scheme: Scheme
    items: dict[str, Item]
    runs: tuple[Path, ...]
    manifests: tuple[Manifest, ...]
    mode: Mode
    mask: re.Pattern[str]
    unanswered: dict[int, list[tuple[str, str]]] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Return the model of each run, with the folder if two are the same."""
        models = [each.model for each in self.manifests]
        return [
            f"{m} ({run.name})" if models.count(m) > 1 else m
            for m, run in zip(models, self.runs, strict=True)
        ]

    def masked(self, text: str) -> str:
        return self.mask.sub(MASK, text)


def open_sheet(
    runs: Sequence[Path],
    *,
    scheme: Scheme | None = None,
    mode: str | None = None,
    seed: int = 0,
    samples: int | None = None,
    log: Path | None = None,
    data_root: Path | None = None,
) -> Sheet:
    """Return the answers of ``runs`` to grade, of ``samples`` samples in the order of ``seed`` (None: all).

    ``mode``: default end-to-end if all runs have it. ``log``: default ``grades.jsonl`` in the folder that holds the
    runs. ``data_root``: folder of the benchmark, if it has moved.
    UsageError: runs of different benchmarks, or no answers. RunStoreError: a run cannot be read.
    """
    manifests = tuple(read_manifest(run) for run in runs)
    if len({run.resolve() for run in runs}) < len(runs):
        raise UsageError("a run was given twice", hint="give each run once")
    if different := benchmark_differences(manifests):
        raise UsageError(
            f"answers are graded together on one benchmark: {different[0]}",
            hint="grade them separately",
        )
    scored_mode = common_mode(manifests, mode)
    answers: dict[str, dict[str, tuple[Record, list[tuple[int, int]]]]] = defaultdict(
        dict
    )  # by sample and key
    unanswered: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for at, run in enumerate(runs):
        for record in record_index(run):
            if record.mode != scored_mode or is_invalid(record):
                continue
            if (key := answer_key(record)) is None:
                unanswered[at].append((record.sample.id, record.sample.cluster or record.sample.id))
            else:
                answers[record.sample.id].setdefault(key, (record, []))[1].append(
                    (at, record.epoch)
                )
    if not (drawn := sorted(answers, key=lambda name: _drawn(seed, name))[:samples]):
        raise UsageError("the runs have no answer to grade")
    items: dict[str, Item] = {}
    for number, sample in enumerate(drawn, 1):
        for letter, key in enumerate(sorted(answers[sample], key=lambda key: _drawn(seed, key))):
            record, given_by = answers[sample][key]
            label = f"{number} {chr(97 + letter) if letter < 26 else letter}"
            items[key] = Item(key, label, record, tuple(given_by))
    scheme = scheme or read_scheme(None)
    roots = benchmark_roots(manifests[0], runs[0], data_root)
    shown = {key: facts_of_sample(item.record.sample, ()) for key, item in items.items()}
    facts = {
        key: replace(of_sample, content=scheme.digest, flags=()) for key, of_sample in shown.items()
    }
    material = Material(
        title=benchmark_title(manifests[0].benchmark, manifests[0].benchmark_version),
        journal=log or Path(os.path.commonpath([run.resolve() for run in runs])) / GRADES_FILE,
        samples={key: item.record.sample for key, item in items.items()},
        facts=facts,
        roots=roots,
        artifact_folders=[*runs, *roots],
        flags={},
        notes=[]
        if roots
        else [f"{manifests[0].benchmark_path} is not there: no pictures; see --data-root"],
    )
    of_drawn = {
        at: [each for each in names if each[0] in set(drawn)] for at, names in unanswered.items()
    }
    return Sheet(
        material,
        scheme,
        items,
        tuple(runs),
        manifests,
        scored_mode,
        _mask_of(runs, manifests),
        of_drawn,
    )


def _drawn(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{name}".encode()).digest()


def _mask_of(runs: Sequence[Path], manifests: Sequence[Manifest]) -> re.Pattern[str]:
    """Return a pattern of the names of models and runs, and of the provider and family that a name begins with."""
    names: set[str] = set()
    stems: set[str] = set()
    for run, manifest in zip(runs, manifests, strict=True):
        parts = re.split(r"[/:]", manifest.model)
        names |= {manifest.model, parts[-1], run.resolve().name}
        stems |= {
            stem[0]
            for part in parts
            if part not in _KINDS and (stem := re.match(r"[A-Za-z]+", part))
        }
    patterns = [
        re.escape(name)
        for name in sorted(names, key=len, reverse=True)
        if len(name) >= _SHORTEST_NAME
    ]
    patterns += [
        rf"{stem}(?:[\d-][\w.-]*)?" for stem in sorted(stems) if len(stem) >= _SHORTEST_NAME
    ]
    return re.compile(rf"(?<!\w)(?:{'|'.join(patterns) or '(?!)'})(?!\w)", re.IGNORECASE)


def shown_step(sheet: Sheet, number: int, step: Step) -> dict[str, Any]:
    """Return a call of an answer for the page, with the names of models masked."""
    assert step.call is not None
    observation = step.observation or Observation()
    error, result = observation.error, observation.result or {}
    return {
        "number": number,
        "tool": sheet.masked(step.call.tool),
        "thought": sheet.masked(step.thought),
        "arguments": [
            (sheet.masked(name), sheet.masked(value_text(v)))
            for name, v in step.call.arguments.items()
        ],
        "result": [
            (name, sheet.masked(shortened(value_text(v), 200)))
            for name, v in result.items()
            if v is not None
        ],
        "error": sheet.masked(f"{error.kind}: {error.message}") if error else "",
        "artifacts": [each for each in observation.artifacts if each.kind != "table"],
    }


# --- results ---------------------------------------------------------------------------------------------------------


class RunGrades(FrozenModel):
    """Grades of one run: means over samples, graders and epochs. An unanswered sample counts as 0."""

    run: str
    mean: Estimate | None
    """mean over the rubrics"""
    by_rubric: dict[str, Estimate]
    answers: int
    unanswered: int


class GradingSummary(FrozenModel):
    """Progress, agreement and, once everybody who began has graded all answers, the results of each run."""

    answers: int
    graded: int
    """answers that at least one person graded"""
    graders: dict[str, int]
    alphas: dict[str, Alpha]
    """Krippendorff's ordinal alpha of all graders, by rubric"""
    runs: tuple[RunGrades, ...] = ()
    """empty until all is graded"""
    outdated: int
    """grades by other rubrics, or of answers that are not here; they do not count"""
    notes: tuple[str, ...] = ()


def valid_grades(sheet: Sheet, grades: Sequence[Grade]) -> list[Grade]:
    """Return the grades by the rubrics of ``sheet``, of its answers."""
    return [
        each
        for each in grades
        if each.sample in sheet.items and each.content == sheet.scheme.digest
    ]


def grades_by(sheet: Sheet, grades: Sequence[Grade]) -> Counter[str]:
    """Return the number of answers of ``sheet`` that each grader graded."""
    return Counter(each.reviewer for each in valid_grades(sheet, grades))


def all_graded(sheet: Sheet, grades: Sequence[Grade]) -> bool:
    """Return True if somebody graded, and everybody who began has graded all answers."""
    counts = grades_by(sheet, grades)
    return bool(counts) and min(counts.values()) == len(sheet.items)


def summarise_grades(
    sheet: Sheet, grades: Sequence[Grade], notes: Sequence[str] = ()
) -> GradingSummary:
    """Summarise ``grades`` of the answers of ``sheet``."""
    valid = valid_grades(sheet, grades)
    by_item: dict[str, dict[str, Grade]] = defaultdict(dict)
    for grade in valid:
        by_item[grade.sample][grade.reviewer] = grade
    alphas: dict[str, Alpha] = {}
    clusters = [sheet.items[key].cluster for key in by_item]
    for rubric in sheet.scheme.rubric:
        units = [[each.grades.get(rubric.id) for each in of.values()] for of in by_item.values()]
        if alpha := agreement(units, clusters):
            alphas[rubric.name] = alpha
    return GradingSummary(
        answers=len(sheet.items),
        graded=len(by_item),
        graders=grades_by(sheet, grades),
        alphas=alphas,
        runs=tuple(
            _run_grades(sheet, by_item, at)
            for at in range(len(sheet.runs) * all_graded(sheet, grades))
        ),
        outdated=len(grades) - len(valid),
        notes=tuple(notes),
    )


def _run_grades(sheet: Sheet, by_item: Mapping[str, Mapping[str, Grade]], at: int) -> RunGrades:
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    clusters: dict[str, str] = {}
    answers = 0
    for key, of in by_item.items():
        item = sheet.items[key]
        times = sum(run == at for run, _ in item.runs)
        sample = item.record.sample.id
        answers += times
        for grade in of.values() if times else ():
            clusters[sample] = item.cluster
            for name, value in grade.grades.items():
                values[name][sample] += [value] * times
            if grade.value is not None:
                values[""][sample] += [grade.value] * times
    unanswered = sheet.unanswered.get(at, [])
    for name in ("", *(each.id for each in sheet.scheme.rubric if not each.steps)):
        for sample, cluster in unanswered:
            clusters[sample] = cluster
            values[name][sample].append(0.0)
    estimates = {
        name: estimate_mean(
            [sum(v) / len(v) for v in of.values()], [clusters[sample] for sample in of]
        )
        for name, of in values.items()
    }
    return RunGrades(
        run=sheet.names()[at],
        mean=estimates.pop("", None),
        by_rubric={
            each.id: estimates[each.id] for each in sheet.scheme.rubric if each.id in estimates
        },
        answers=answers,
        unanswered=len(unanswered),
    )


def grading_parts(sheet: Sheet, summary: GradingSummary) -> Iterator[SummaryPart]:
    """Yield the summary of a grading as paragraphs and tables."""
    yield {"text": f"{summary.graded} of {summary.answers} answers graded"}
    if summary.graders:
        yield {
            "head": ["grader", "answers"],
            "rows": [[name, str(n)] for name, n in summary.graders.items()],
        }
    if names := [run.run for run in summary.runs]:
        if rubrics := [
            each
            for each in sheet.scheme.rubric
            if any(each.id in run.by_rubric for run in summary.runs)
        ]:
            means = [
                [each.name, *(_figure(run.by_rubric.get(each.id)) for run in summary.runs)]
                for each in rubrics
            ]
            yield {
                "head": ["rubric", *names],
                "rows": [["mean", *(_figure(run.mean) for run in summary.runs)], *means],
            }
            yield {
                "text": "In percent; 95 % intervals by cluster, from 10 clusters on. A missing answer is a 0."
            }
    else:
        waiting = [
            f"{who} {n} of {summary.answers}"
            for who, n in summary.graders.items()
            if n < summary.answers
        ]
        progress = f" ({', '.join(waiting)})" if waiting else ""
        yield {
            "text": f"The runs are named once everybody who began has graded all answers{progress}."
        }
    if len(summary.graders) < 2:
        yield {"text": "Agreement needs two graders of the same answers."}
    if summary.alphas:
        values = {
            name: "undefined" if of.alpha is None else f"{of.alpha:.2f}"
            for name, of in summary.alphas.items()
        }
        rows = [[name, f"{values[name]} (n = {of.n_units})"] for name, of in summary.alphas.items()]
        yield {"head": ["rubric", "Krippendorff's ordinal alpha"], "rows": rows}
    if summary.outdated:
        yield {
            "text": f"{summary.outdated} grades by other rubrics, or of other answers, do not count."
        }


def _figure(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    bounds = estimate.interval
    return f"{100 * estimate.value:.1f}" + (
        f" ({100 * bounds.lower:.0f}–{100 * bounds.upper:.0f})" if bounds else ""
    )
