"""Runs on GTA-2 beside its paper: the scores are a judge's, and what keeps them from comparison stands here."""

from agrotools.benchmarks.gta2.tools import GTA2_TOOLS
from agrotools.plugin import PublishedRun, Scoring
from agrotools.scoring.summary import PublishedFigures


def _published(run: PublishedRun) -> PublishedFigures:
    here = sum(tool in run.manifest.toolset for tool in GTA2_TOOLS)
    own = (
        f"{here} of its {len(GTA2_TOOLS)} tools offered",
        "a judge asked in words of ours, and shown texts and images of files, not the files",
    )
    return PublishedFigures(family="gta-2", differs=(*own, *run.differs))


SCORING = Scoring(published=_published)
