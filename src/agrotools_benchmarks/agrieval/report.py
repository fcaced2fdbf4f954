"""Report of runs on examination questions: metrics, places of correct options, and columns of AgriEval's tables."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase

from agrotools.core import Sample, UsageError
from agrotools.core.files import read_table
from agrotools.formats.manifest import Manifest
from agrotools.loading.benchmarks import settings_of
from agrotools.report.contracts import PaperLabels, PartColumn, Reporting
from agrotools.report.layout import percent
from agrotools.report.settings import Setting
from agrotools.scoring.statistics import Estimate
from agrotools.scoring.summary import Metric, ModeSummary, Summary
from agrotools_benchmarks.agrieval.items import QuestionSettings
from agrotools_benchmarks.agrieval.score import OptionPlaces, Rotations

BENCHMARK = "agrieval"

_CATEGORIES = read_table(Path(__file__).with_name("categories.toml"))
TASKS: Mapping[str, Sequence[str]] = _CATEGORIES["tasks"]
DOMAINS: Mapping[str, Sequence[str]] = _CATEGORIES["domains"]
"""Names of each task and domain by its abbreviation, the English one first."""


def code_of(name: str, table: Mapping[str, Sequence[str]]) -> str:
    """Return the abbreviation of a task or domain by any of its names, ignoring case; empty for an unknown name."""
    plain = " ".join(name.split()).casefold()
    return next(
        (code for code, names in table.items() if plain in map(str.casefold, (code, *names))), ""
    )


def setting_of(label: str) -> str:
    """Return the name of a setting in the tables: few-shot for ``5-shot``, rag for ``retrieval``; zero-shot is dropped
    before an order of the options (``zero-shot, shuffled``)."""
    words = [
        re.sub(r"[1-9]\d*-shot", "few-shot", word.strip().lower()) for word in label.split(",")
    ]
    words = ["rag" if word == "retrieval" else word for word in words]
    return ", ".join(words[1:] if len(words) > 1 and words[0] == "zero-shot" else words)


def paper_setting(manifest: Manifest) -> str:
    """Return the setting of a run."""
    try:
        return setting_of(
            settings_of(QuestionSettings, BENCHMARK, manifest.benchmark_options).label
        )
    except UsageError:
        return "another setting"


def paper_item(sample: Sample) -> tuple[str, Collection[str]]:
    """Return the name of a question, which all its rotations share, and the columns that it counts in."""
    name = sample.id.rpartition("-r")[0] if "rotation" in sample.metadata else sample.id
    task = code_of(sample.groups.get("task", ""), TASKS)
    domain = code_of(sample.groups.get("domain") or sample.groups.get("type", ""), DOMAINS)
    return name, (task, domain, sample.task_type.removesuffix("_choice"))


_COLUMNS = tuple(
    f"agrieval.{name}"
    for name in "accuracy partial likelihood rouge_l similarity_minilm similarity_mpnet judge".split()
)


def _metrics(summary: Summary) -> Mapping[str, Metric] | None:
    """Return the metrics of a run that has only examination questions; None for any other run.

    A stored summary may have metrics of AgriEval that older versions computed.
    """
    metrics = summary.modes["no-tool"].metrics if "no-tool" in summary.modes else {}
    return (
        metrics if metrics and all(name.startswith(f"{BENCHMARK}.") for name in metrics) else None
    )


def option_notes(part: ModeSummary) -> Iterator[str]:
    """Yield lines on the places that a model chose and on the effect of rotating the options."""
    places, rotations = part.part("option_places", OptionPlaces), part.part("rotations", Rotations)
    if places is not None:
        n_choices = sum(places.chosen)
        shares = " ".join(
            f"{ascii_uppercase[at]} {percent(chosen / n_choices if n_choices else 0)}/{percent(right / places.n)}"
            for at, (chosen, right) in enumerate(zip(places.chosen, places.right, strict=True))
        )
        unread = f"; nothing read from {places.unread} of {places.n}" if places.unread else ""
        yield f"places chosen/right: {shares}; preference {percent(places.preference)} points{unread}"
        if places.constant is not None:
            yield f"the best constant answer for each kind of choice question gets {percent(places.constant)}"
    if rotations is not None:
        yield (
            f"every rotation of {rotations.n_questions} questions, each question counted once: "
            f"accuracy {_estimate(rotations.accuracy)}, "
            f"by majority {_estimate(rotations.majority)}, same choice in all {_estimate(rotations.consistency)}"
        )


def _estimate(estimate: Estimate) -> str:
    inside = estimate.interval
    return percent(estimate.value) + (
        f" ({percent(inside.lower)} to {percent(inside.upper)})" if inside else ""
    )


REPORTING = Reporting(
    settings=(Setting("Examination questions", "no-tool", _COLUMNS, _metrics),),
    variants={
        "agrieval.accuracy": (("authors' scorer", "agrieval.accuracy_published"),),
        "agrieval.rouge_l": (
            ("authors' scorer", "agrieval.rouge_l_published"),
            ("normalised", "agrieval.rouge_l_normalised"),
        ),
    },
    parts=(
        PartColumn("no-tool", "agrieval.accuracy", "Accuracy", "Accuracy"),
        PartColumn("no-tool", "agrieval.partial", "Partial"),
        PartColumn("no-tool", "agrieval.likelihood", "Likelihood"),
        PartColumn("no-tool", "agrieval.rouge_l", "ROUGE-L", "ROUGE-L"),
    ),
    notes=option_notes,
    paper=PaperLabels(paper_setting, paper_item),
)
