"""Weeds named against DeepWeeds' labels, and pictures of other plants, which must be refused."""

from agrotools.build.accuracy.figures import Figure
from agrotools.build.accuracy.recognition import answers, figures_of_known, figures_of_unknown
from agrotools.build.accuracy.study import Bench, Study

_DAYS = "capture days, not pictures, are in common with the training: optimistic for a new place"


def _species(bench: Bench) -> list[Figure]:
    given = answers(bench, bench.items(), true=lambda label: label.lower().replace(" ", "_"))
    return figures_of_known(given, goal=0.85, note=_DAYS)


def _leaves(bench: Bench) -> list[Figure]:
    return figures_of_unknown(answers(bench, bench.items()), "leaves of crops, which the net does not know")


STUDIES = (
    Study("identify_weed", "deepweeds", _species),
    *(Study("identify_weed", folder, _leaves) for folder in ("apple_leaf_class", "coffee_leaf_class")),
)
