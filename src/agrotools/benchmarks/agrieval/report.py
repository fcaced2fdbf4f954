"""Report of runs on examination questions: their table of metrics, and where a model looks for the right option."""

from collections.abc import Iterator, Mapping
from string import ascii_uppercase

from agrotools.benchmarks.agrieval.option_places import OptionPlaces, Rotations
from agrotools.benchmarks.agrieval.paper import PaperOfRuns
from agrotools.benchmarks.agrieval.plugin import METRICS
from agrotools.plugin import PartColumn, Reporting
from agrotools.report.cells import percent
from agrotools.report.settings import Setting
from agrotools.scoring import Estimate, Metric, ModeSummary, Summary

_COLUMNS = (
    "agrieval.accuracy",
    "agrieval.partial",
    "agrieval.likelihood",
    "agrieval.rouge_l",
    "agrieval.rouge_l_lexeval",
    "agrieval.similarity_minilm",
    "agrieval.similarity_mpnet",
    "agrieval.judge",
)


def _metrics(summary: Summary) -> Mapping[str, Metric] | None:
    """Those of a run on examination questions alone."""
    found = summary.modes["no-tool"].metrics if "no-tool" in summary.modes else {}
    return found if found and set(found) <= set(METRICS) else None


def option_notes(part: ModeSummary) -> Iterator[str]:
    """Places that a model chose, and what rotating the options changed."""
    return _lines(part.part("option_places", OptionPlaces), part.part("rotations", Rotations))


def _lines(places: OptionPlaces | None, rotations: Rotations | None) -> Iterator[str]:
    if places is not None:
        given = sum(places.chosen)
        shares = " ".join(
            f"{ascii_uppercase[at]} {percent(chosen / given if given else 0)}/{percent(right / places.n)}"
            for at, (chosen, right) in enumerate(zip(places.chosen, places.right, strict=True))
        )
        unread = f"; nothing read from {places.unread} of {places.n}" if places.unread else ""
        yield f"places chosen/right: {shares}; preference {percent(places.preference)} points{unread}"
    if rotations is not None:
        yield (
            f"every rotation of {rotations.n_questions} questions, each question counted once: "
            f"accuracy {_estimate(rotations.accuracy)}, "
            f"by majority {_estimate(rotations.majority)}, same choice in all {_estimate(rotations.consistency)}"
        )


def _estimate(estimate: Estimate) -> str:
    inside = estimate.interval
    return percent(estimate.value) + (f" ({percent(inside.lower)} to {percent(inside.upper)})" if inside else "")


REPORTING = Reporting(
    settings=(Setting("Examination questions", "no-tool", _COLUMNS, _metrics, lambda _: 0),),
    beside={
        "agrieval.accuracy": (
            ("authors' scorer", "agrieval.accuracy_published"),
            ("LexEval's rule", "agrieval.accuracy_lexeval"),
        ),
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
    paper=PaperOfRuns,
)
