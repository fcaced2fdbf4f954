"""Fit how descriptions find entries of the knowledge base: the weights _LOOKS_ORDER and _LOOKS_CHANCE.

Weights in src/agrotools_tools/lookup/evidence.py.

    python training/fit_description_search.py

Prints both and the cross-validated figures; they are written by hand into ``lookup/evidence.py`` of the tools. Goes in:
the questions for development, and two phrases of each entry, each asked of a base that lacks it, at a quarter of the
weight. The order is a conditional logit over entries. The chance is a logistic regression on the first entry of each
question: right or wrong, questions outside the base, and, at a third of the weight, each description once more with its
own entry taken away. Needs scikit-learn.
"""

import random
import sys
import tomllib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from agrotools.knowledge.entries import SHIPPED, load, toml_files
from agrotools.knowledge.words import folded, terms
from agrotools_tools.lookup.text_index import FEATURES, AppearanceIndex

QUESTIONS = (
    Path(__file__).resolve().parents[1] / "studies" / "accuracy" / "questions" / "development.toml"
)
SEED, FOLDS = 3, 8
PHRASE_WEIGHT, TAKEN_AWAY_WEIGHT = 0.25, 0.3
STRANGE = FEATURES.index("strange")
"""The same for all entries of a question, so it says nothing of their order."""
Asked = tuple[NDArray[np.float64], tuple[int, ...], float]


def main() -> None:
    entries = load(toml_files(SHIPPED)).entries
    number = {entry.id: at for at, entry in enumerate(entries)}
    index = AppearanceIndex(entries)
    asked = tomllib.loads(QUESTIONS.read_text(encoding="utf-8"))
    described = [
        (_ask(index, text), tuple(number[one] for one in ids), 1.0)
        for text, ids in asked["symptoms"].items()
    ]
    outside = [_ask(index, text) for part in asked["outside"].values() for text in part]
    phrases = _left_out(entries)
    order = fit_order(described + phrases)
    _say("order ", np.round(order, 2).tolist())
    folds = np.random.default_rng(SEED).permutation(len(described)) % FOLDS
    first = np.zeros(len(described))
    for fold in range(FOLDS):
        weights = fit_order(
            [one for one, own in zip(described, folds, strict=True) if own != fold] + phrases
        )
        for at in np.flatnonzero(folds == fold):
            rows, right, _ = described[at]
            first[at] = int(np.argmax(rows @ weights)) in right
    _say(f"right entry first, cross-validated: {first.mean():.3f}")
    _fit_chance(described, outside, order)


def _say(*parts: object) -> None:
    sys.stdout.write(" ".join(map(str, parts)) + "\n")


def _ask(index: AppearanceIndex, text: str) -> NDArray[np.float64]:
    return index.features([terms(word) for word in folded(text).split()], text)


def _left_out(entries) -> list[Asked]:
    rng = random.Random(SEED)
    chosen = [(at, text) for at, one in enumerate(entries) for text in rng.sample(one.described_as, min(2, len(one.described_as)))]  # fmt: skip # noqa: E501
    found: list[Asked] = []
    for half in (chosen[::2], chosen[1::2]):
        gone = set(half)
        without = [
            one.model_copy(
                update={
                    "described_as": tuple(
                        text for text in one.described_as if (at, text) not in gone
                    )
                }
            )
            for at, one in enumerate(entries)
        ]
        index = AppearanceIndex(without)
        found += [(_ask(index, text), (at,), PHRASE_WEIGHT) for at, text in half]
    return found


def fit_order(sets: list[Asked], ridge: float = 0.5) -> NDArray[np.float64]:
    """(features,) weights of a conditional logit, ``ridge`` on their squares."""

    def loss(weights: NDArray[np.float64]):
        value, slope = ridge * weights @ weights / 2, ridge * weights
        for rows, right, counts in sets:
            scores = np.exp((known := rows @ weights) - known.max())
            shares = scores / scores.sum()
            mine = shares[list(right)].sum() + 1e-12
            aim = np.zeros(len(rows))
            aim[list(right)] = shares[list(right)] / mine
            value -= counts * np.log(mine)
            slope = slope - counts * (aim - shares) @ rows
        slope[STRANGE] = 0.0
        return value, slope

    return minimize(loss, np.zeros(len(FEATURES)), jac=True, method="L-BFGS-B").x


def _first(rows: NDArray[np.float64], order: NDArray[np.float64], without: tuple[int, ...] = ()):
    scores = rows @ order
    scores[list(without)] = -9.0
    best, second = (int(at) for at in np.argsort(-scores)[:2])
    return best, [
        scores[best],
        scores[best] - scores[second],
        rows[best, 0],
        rows[best, 3],
        rows[best, STRANGE],
    ]


def _fit_chance(
    described: list[Asked], outside: list[NDArray[np.float64]], order: NDArray[np.float64]
) -> None:
    firsts = [_first(rows, order) for rows, _, _ in described]
    data = [(values, best in right, 1.0, at) for at, ((best, values), (_, right, _)) in enumerate(zip(firsts, described, strict=True))]  # fmt: skip # noqa: E501
    count = len(data)
    data += [(_first(rows, order)[1], False, 1.0, count + at) for at, rows in enumerate(outside)]
    known = len(data)
    data += [(_first(rows, order, right)[1], False, TAKEN_AWAY_WEIGHT, at) for at, (rows, right, _) in enumerate(described)]  # fmt: skip # noqa: E501
    values, truth, weights, groups = (np.array(column) for column in zip(*data, strict=True))
    scale = values.std(axis=0)
    folds = np.random.default_rng(SEED).permutation(groups.max() + 1) % FOLDS
    chances = np.zeros(len(truth))
    for fold in range(FOLDS):
        own = folds[groups] == fold
        model = LogisticRegression(max_iter=2000).fit(
            values[~own] / scale, truth[~own], weights[~own]
        )
        chances[own] = model.predict_proba(values[own] / scale)[:, 1]
    for least in (0.4, 0.45, 0.5, 0.55):
        found = np.mean((chances[:count] >= least) & truth[:count])
        false = np.mean(chances[count:known] >= least)
        gone = np.mean(chances[known:] >= least)
        _say(
            f"from {least}: found {found:.3f}, outside answered {false:.3f}, entry taken away answered {gone:.3f}"
        )
    model = LogisticRegression(max_iter=2000).fit(values / scale, truth, weights)
    _say("chance", np.round([model.intercept_[0], *(model.coef_[0] / scale)], 3).tolist())


if __name__ == "__main__":
    main()
