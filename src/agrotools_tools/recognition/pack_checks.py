"""What a pack can and cannot do, by cross-validation: the figures and thresholds that are stored with it.

No group of pictures is on both sides of a split. Strangers are judged by heads that learnt from other kinds of them,
and classes that are left out by heads that never saw them.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from agrotools_tools.recognition import NAMED_FROM
from agrotools_tools.recognition.net import (
    Floats,
    fit_temperature,
    probabilities,
    threshold_for_share,
    wilson,
)
from agrotools_tools.recognition.pack_heads import (
    Ints,
    TrainingData,
    fit_look_alikes,
    fit_names,
    fit_strangers,
)
from agrotools_tools.recognition.packs import (
    ClassFigures,
    CurvePoint,
    PackFigures,
    StrangerFigures,
)
from agrotools_tools.recognition.strangers import Strangers

KEEP = 0.95
"""Out-of-fold share of own pictures that are familiar enough for a name."""
KEEP_OF_STRANGERS = 0.98
"""Out-of-fold share of own pictures that each test for other things accepts, where it need not be stricter.

Chosen with KEEP and MOST_STRANGERS from 22 settings, by the held-out pictures and the other things of
``training/other_things.toml``: with 0.90 and 0.95 fewer own pictures get a name, with 0.97 and 0.98 more other things.
"""
MOST_STRANGERS = 0.05
"""Largest share of strangers, of kinds left out, that may get a name; else the test for strangers is made stricter.

Kinds that are left out are harder than pictures of other sources, of which fewer then get a name. Everyday photographs
are learnt but not counted here: they are so easy to tell that a share of them as well would be a weaker limit.
"""
MOST_LOOK_ALIKES = 0.1
"""Largest share of the other things of a user that may get a name; else the test for them is made stricter."""
REGULARISATIONS = (1.0, 10.0, 100.0)
"""Inverse penalty strengths to try; the one with the smallest out-of-fold loss is used."""
FOLDS = 5
CURVE = (10, 20, 50, 100)
"""Pictures of each class at which the curve of accuracy is measured."""
_MOST_LEFT_OUT = 8
"""Classes that are left out one by one, the largest first: a fit of the heads for each."""
_SURE = 1e3
"""Logit of a class that is certain beside others of 0."""

Folds = Sequence[tuple[Ints, Ints]]


@dataclass(frozen=True)
class Checked:
    """Settings of a pack that its checks found, and its figures."""

    regularisation: float
    temperature: float
    threshold: float
    most_stranger: float
    most_look_alike: float | None
    figures: PackFigures


@dataclass(frozen=True, eq=False)
class _Judged:
    """What heads say of pictures: logits (n, classes), familiarity (n,), log odds of a stranger and of a look-alike
    (n,); the last are None where the user gave no look-alikes."""

    logits: Floats
    familiarity: Floats
    odds: Floats
    look_alike_odds: Floats | None = None


@dataclass(frozen=True)
class _Rule:
    """When a picture gets a name."""

    temperature: float
    threshold: float
    most_stranger: float = np.inf
    most_look_alike: float | None = None

    def names(self, judged: _Judged) -> NDArray[np.bool_]:
        """Return for each picture whether it gets a name, (n,)."""
        is_sure = probabilities(judged.logits, self.temperature).max(axis=1) >= NAMED_FROM
        is_own = judged.odds <= self.most_stranger
        if self.most_look_alike is not None and judged.look_alike_odds is not None:
            is_own &= judged.look_alike_odds <= self.most_look_alike
        return is_sure & is_own & (judged.familiarity >= self.threshold)


def check_pack(data: TrainingData, strangers: Strangers, keep: float = KEEP) -> Checked:
    """Choose the settings of a pack by cross-validation, and measure it. ``keep``: as :data:`KEEP`."""
    folds = folds_of(data)
    tried = {strength: names_out_of_fold(data, folds, strength) for strength in REGULARISATIONS}
    strength = min(tried, key=lambda one: _loss(tried[one][0], data.classes))
    logits, familiarity = tried[strength]
    own_odds, of_strangers = _strangers_out_of_fold(data, folds, strangers, strength)
    own = _Judged(logits, familiarity, own_odds)
    temperature = fit_temperature(logits, data.classes)
    rule = _Rule(temperature, threshold_for_share(familiarity, keep))
    passes, is_users = rule.names(of_strangers), strangers.is_of_user
    sets_limit = ~is_users & ~strangers.is_everyday
    most_stranger = min(
        -threshold_for_share(-own_odds, KEEP_OF_STRANGERS),
        _strict_enough(of_strangers.odds[sets_limit], passes[sets_limit], MOST_STRANGERS),
    )
    rule = replace(rule, most_stranger=most_stranger)
    if is_users.any():
        look_alikes = strangers.of_user
        own_look_alike, of_users = _look_alikes_out_of_fold(data, folds, look_alikes)
        own = replace(own, look_alike_odds=own_look_alike)
        most_look_alike = min(
            -threshold_for_share(-own_look_alike, KEEP_OF_STRANGERS),
            _strict_enough(of_users, rule.names(of_strangers)[is_users], MOST_LOOK_ALIKES),
        )
        rule = replace(rule, most_look_alike=most_look_alike)
        # No shipped stranger is a look-alike: the other test alone judges these.
        look_alike_odds = np.full(len(strangers), -np.inf)
        look_alike_odds[is_users] = of_users
        of_strangers = replace(of_strangers, look_alike_odds=look_alike_odds)
    figures = _figures(
        data,
        logits,
        rule.names(own),
        folds=len(folds),
        strangers=_stranger_figures(strangers, rule.names(of_strangers), of_strangers.odds),
        left_out=_named_of_left_out(data, strangers, strength, rule),
        curve=_curve(data, folds, strength, logits),
    )
    return Checked(
        strength,
        rule.temperature,
        rule.threshold,
        rule.most_stranger,
        rule.most_look_alike,
        figures,
    )


def _strict_enough(odds: Floats, passes: NDArray[np.bool_], most: float) -> float:
    """Return the log odds up to which at most the share ``most`` of the strangers gets a name.

    ``passes``: strangers that would get one if nothing else refused them.
    """
    allowed = int(most * len(odds))
    passing = np.sort(odds[passes])
    return float(np.nextafter(passing[allowed], -np.inf)) if len(passing) > allowed else np.inf


def folds_of(data: TrainingData) -> list[tuple[Ints, Ints]]:
    """Return pairs of training and validation indices; no group is in both."""
    from sklearn.model_selection import StratifiedGroupKFold

    groups = np.array(data.groups)
    fewest = min(len(set(groups[data.classes == number])) for number in range(len(data.names)))
    split = StratifiedGroupKFold(min(FOLDS, fewest), shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = list(split.split(data.features, data.classes, list(data.groups)))
    return [
        (learn, check) for learn, check in folds if len(check) and len(set(data.classes[learn])) > 1
    ]


def names_out_of_fold(data: TrainingData, folds: Folds, strength: float) -> tuple[Floats, Floats]:
    """Return logits (n, classes) and familiarity (n,) of all pictures, each by a head that did not learn from it."""
    logits = np.zeros((len(data.classes), len(data.names)))
    familiarity = np.zeros(len(data.classes))
    for learn, check in folds:
        head = fit_names(data, learn, strength)
        logits[check] = head.logits(data.features[check])
        familiarity[check] = head.familiarity(data.features[check])
    return logits, familiarity


def _strangers_out_of_fold(
    data: TrainingData, folds: Folds, strangers: Strangers, strength: float
) -> tuple[Floats, _Judged]:
    """Return the log odds of a stranger of own pictures (n,), and what heads say of strangers (m,).

    The heads learnt neither from these pictures nor from these kinds of strangers, and from no look-alikes of the user.
    What a user's encoder would make of shipped strangers is not known: where one is learnt from, they count as surely
    named.
    """
    own, odds = np.zeros(len(data.classes)), np.zeros(len(strangers))
    logits, familiarity = np.zeros((len(strangers), len(data.names))), np.zeros(len(strangers))
    for number, (learn, check) in enumerate(folds):
        is_held = _held(strangers, number, len(folds))
        features = strangers.features[is_held]
        head = fit_strangers(data, learn, strangers.chosen(~is_held & ~strangers.is_of_user))
        own[check] = head.odds(data.features[check])
        odds[is_held] = head.odds(features)
        names = fit_names(data, learn, strength)
        logits[is_held] = names.logits(features)
        familiarity[is_held] = names.familiarity(features)
    if strangers.missing:
        is_shipped = ~strangers.is_of_user
        logits[is_shipped], logits[is_shipped, 0] = 0.0, _SURE
    return own, _Judged(logits, familiarity, odds)


def _look_alikes_out_of_fold(
    data: TrainingData, folds: Folds, look_alikes: Strangers
) -> tuple[Floats, Floats]:
    """Return the log odds of a look-alike of own pictures (n,) and of look-alikes (m,), by heads that did not learn
    from them, but from other pictures of the same kinds."""
    own, odds = np.zeros(len(data.classes)), np.zeros(len(look_alikes))
    for number, (learn, check) in enumerate(folds):
        is_held = np.zeros(len(look_alikes), np.bool_)
        is_held[number :: len(folds)] = True
        head = fit_look_alikes(data, learn, look_alikes.chosen(~is_held))
        own[check] = head.odds(data.features[check])
        odds[is_held] = head.odds(look_alikes.features[is_held])
    return own, odds


def _held(strangers: Strangers, fold: int, folds: int) -> NDArray[np.bool_]:
    """Return which strangers a fold judges: of those that ship whole kinds, each in one fold; of those of the user
    every picture in one fold."""
    is_users = strangers.is_of_user
    kinds = np.unique(strangers.kinds[~is_users])
    held = np.isin(strangers.kinds, kinds[fold::folds])
    held[np.flatnonzero(is_users)[fold::folds]] = True
    return held


def _stranger_figures(
    strangers: Strangers, is_named: NDArray[np.bool_], odds: Floats
) -> StrangerFigures:
    numbers = np.unique(strangers.kinds).tolist()
    named = {number: float(is_named[strangers.kinds == number].mean()) for number in numbers}
    median = {number: float(np.median(odds[strangers.kinds == number])) for number in numbers}
    first = len(strangers.names) if strangers.first_of_user is None else strangers.first_of_user
    by_kind = {strangers.names[number]: named[number] for number in numbers if number < first}
    return StrangerFigures(
        pictures=int((~strangers.is_of_user).sum()),
        named=float(np.mean(list(by_kind.values()))),
        by_kind=by_kind,
        not_strange=tuple(name for name in strangers.names[:first] if name not in by_kind),
        nearest=strangers.names[min(numbers, key=median.__getitem__)],
        look_alikes={
            strangers.names[number]: named[number] for number in numbers if number >= first
        },
    )


def _named_of_left_out(
    data: TrainingData, strangers: Strangers, strength: float, rule: _Rule
) -> dict[str, float]:
    """Return the share of the pictures of a class that get a name if the class is left out, for the largest classes."""
    if len(data.names) < 3:
        return {}
    shares: dict[str, float] = {}
    for number, _ in Counter(data.classes.tolist()).most_common(_MOST_LEFT_OUT):
        others = np.flatnonzero(data.classes != number)
        features = data.features[data.classes == number]
        names = fit_names(data, others, strength)
        odds = fit_strangers(data, others, strangers.shipped).odds(features)
        judged = _Judged(names.logits(features), names.familiarity(features), odds)
        if rule.most_look_alike is not None:
            look_alike = fit_look_alikes(data, others, strangers.of_user)
            judged = replace(judged, look_alike_odds=look_alike.odds(features))
        shares[data.names[number]] = float(rule.names(judged).mean())
    return shares


def _curve(
    data: TrainingData, folds: Folds, strength: float, logits: Floats
) -> tuple[CurvePoint, ...]:
    """Return the accuracy with few pictures of each class, and last with all of them (``logits``, out of fold).

    A point is left out if no class has more pictures than it, because it would be the last one.
    """
    draw = np.random.default_rng(0)
    order = draw.permutation(len(data.classes))
    largest = max(int(np.bincount(data.classes[learn]).max()) for learn, _ in folds)
    points: list[CurvePoint] = []
    for size in (size for size in CURVE if size < largest):
        right = np.zeros(len(data.classes), np.bool_)
        for learn, check in folds:
            few = _at_most(data, order[np.isin(order, learn)], size)
            of_few = fit_names(data, few, strength).logits(data.features[check])
            right[check] = of_few.argmax(axis=1) == data.classes[check]
        points.append(CurvePoint(pictures=size, accuracy=float(right.mean())))
    accuracy = float((logits.argmax(axis=1) == data.classes).mean())
    return (*points, CurvePoint(pictures=largest, accuracy=accuracy))


def _at_most(data: TrainingData, places: Ints, size: int) -> Ints:
    """Return the first ``size`` of the places of each class."""
    chosen = [
        places[data.classes[places] == number][:size] for number in np.unique(data.classes[places])
    ]
    return np.concatenate(chosen)


def _loss(logits: Floats, classes: Ints) -> float:
    shares = probabilities(logits, fit_temperature(logits, classes))
    true_probability = shares[np.arange(len(classes)), classes]
    return float(-np.log(np.maximum(true_probability, 1e-12)).mean())


def _figures(
    data: TrainingData,
    logits: Floats,
    is_named: NDArray[np.bool_],
    *,
    folds: int,
    strangers: StrangerFigures,
    left_out: dict[str, float],
    curve: tuple[CurvePoint, ...],
) -> PackFigures:
    predicted, classes, groups = logits.argmax(axis=1), data.classes, len({*data.groups})
    is_right = predicted == classes
    accuracy, by_class = float(is_right.mean()), _by_class(data, predicted)
    return PackFigures(
        pictures=len(classes),
        groups=groups,
        folds=folds,
        accuracy=accuracy,
        accuracy_95=wilson(accuracy * groups, groups),
        majority=float(np.bincount(classes).max() / len(classes)),
        macro_f1=float(np.mean([one.f1 for one in by_class.values()])),
        named=float(is_named.mean()),
        right_of_named=float(is_right[is_named].mean()) if is_named.any() else None,
        strangers=strangers,
        left_out=left_out,
        curve=curve,
        by_class=by_class,
    )


def _by_class(data: TrainingData, predicted: Ints) -> dict[str, ClassFigures]:
    from sklearn.metrics import precision_recall_fscore_support

    places, zero = list(range(len(data.names))), cast("Any", 0)
    scores: Any = precision_recall_fscore_support(
        data.classes, predicted, labels=places, zero_division=zero
    )
    rows = zip(data.names, np.stack(scores, axis=1).tolist(), strict=True)
    return {
        name: ClassFigures(n=int(n), precision=p, recall=recall, f1=f1)
        for name, (p, recall, f1, n) in rows
    }
