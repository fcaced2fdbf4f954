"""The funnel of a folder that is under review: the counts of its drafting with those of the journal beside it."""

from agrotools.formats.benchmark import Benchmark
from agrotools.formats.funnel import DRAFTS_KEY, REVIEWED_KEY, Funnel, stored_funnel
from agrotools_build.drafting.funnel import funnel_under_review
from agrotools_build.review.agreement import REVIEW_FILE, ReviewJournal, valid_decisions
from agrotools_build.review.material import open_material


def funnel_of(benchmark: Benchmark) -> Funnel | None:
    """Return the funnel of a benchmark folder; None if no model drafted it."""
    metadata = benchmark.header.metadata
    journal = benchmark.root / REVIEW_FILE
    if DRAFTS_KEY not in metadata or REVIEWED_KEY in metadata or not journal.is_file():
        return stored_funnel(metadata)
    material = open_material(str(benchmark.root))
    decided = valid_decisions(ReviewJournal(journal).decisions(), material.contents)
    return funnel_under_review(benchmark, decided, material.corrected)
