"""Rule that splits the questions of ``field`` into those that the tools of the package reach and those beyond them.

Group "reach of the tools" of docs/field-made.md, "Reach of the tools".

A class is a template about the things of one data set. Its rate is the mean score of the oracle, drawn towards the
median of all templates about these things with the weight of :data:`WEIGHT` questions, and that towards the median of
all things with the weight of one cluster; charts apart from the rest. These are the weights of
``study_scene_classes.py``. A class is reached from :data:`REACHED_FROM` on.

The split is cross-fitted: clusters (questions that share photographs) fall into :data:`FOLDS` parts by a hash, and a
question is judged by its class in the other parts alone. So the oracle's own luck with a question never decides where
this question goes, and its score on either side of the split is honest. A class can be reached in one part and beyond
in another.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

from agrotools.core import Sample
from agrotools_build.sources.part import REACH as GROUP

LEARNT_FROM = (
    "AppleBBCH81",
    "BRACOL coffee leaves",
    "CWFID",
    "CherryBBCH81",
    "DeepWeeds",
    "Jute Pest Dataset",
    "Pear640",
    "ibean (AI Lab Makerere)",
)
"""Sources of which nets, heads or packs of the tools learnt from other pictures: what is reached there says little
about other places."""
REACHED_KNOWN, REACHED_NEW, BEYOND = (
    "reached, in a collection that tools learnt from",
    "reached, in another collection",
    "beyond",
)
REACHED_FROM = 0.9
WEIGHT, WEIGHT_OF_ALL = 3.0, 1.0
FOLDS = 5


class Question(NamedTuple):
    """Answered question: its class, and the score of the oracle. ``things``: data set and True for charts."""

    things: tuple[str, bool]
    template: str
    cluster: str
    score: float


def with_reach(samples: Sequence[Sample], scores: Mapping[str, float]) -> list[Sample]:
    """Return the samples with the group :data:`GROUP`; an unanswerable question goes with its twin.

    Args:
        samples: samples with clusters.
        scores: scores of the oracle by sample id.
    """
    questions = {
        sample.id: Question(
            (sample.source, sample.answer_type == "plot"),
            sample.template or "",
            str(sample.cluster),
            scores[sample.id],
        )
        for sample in samples
        if sample.answerable
    }
    folds = folds_of(samples)
    reached = {
        name: rate_of(
            question,
            [each for each in questions.values() if folds[each.cluster] != folds[question.cluster]],
        )
        >= REACHED_FROM
        for name, question in questions.items()
    }
    split: list[Sample] = []
    for sample in samples:
        is_reached = reached[sample.id if sample.answerable else str(sample.twin)]
        side = side_of(sample.source) if is_reached else BEYOND
        split.append(sample.model_copy(update={"groups": {**sample.groups, GROUP: side}}))
    return split


def side_of(source: str) -> str:
    """Return the side of the reached questions of a source."""
    return REACHED_KNOWN if source in LEARNT_FROM else REACHED_NEW


def folds_of(samples: Sequence[Sample]) -> dict[str, int]:
    """Return the fold of each cluster, from the contents of its files."""
    digests: dict[str, set[str]] = defaultdict(set)
    for sample in samples:
        digests[str(sample.cluster)].update(str(file.sha256) for file in sample.files)
    return {
        cluster: int(hashlib.sha256(min(some).encode()).hexdigest()[:8], 16) % FOLDS
        for cluster, some in digests.items()
    }


def rate_of(question: Question, others: Collection[Question]) -> float:
    """Return the rate of the class of a question, from other questions."""
    alike = [each for each in others if each.things == question.things]
    same = [each.score for each in alike if each.template == question.template]
    clusters = len({each.cluster for each in alike})
    of_all = _middle([each for each in others if each.things[1] == question.things[1]])
    prior = (clusters * (_middle(alike) if alike else 0.0) + WEIGHT_OF_ALL * of_all) / (
        clusters + WEIGHT_OF_ALL
    )
    return (sum(same) + WEIGHT * prior) / (len(same) + WEIGHT)


def _middle(questions: Collection[Question]) -> float:
    """Return the median of the mean scores of classes."""
    classes: dict[tuple[tuple[str, bool], str], list[float]] = defaultdict(list)
    for each in questions:
        classes[each.things, each.template].append(each.score)
    return median(map(fmean, classes.values()))
