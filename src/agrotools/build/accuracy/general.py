"""Accuracy of calculate, against exact fractions on generated expressions, and of plot."""

import random
from collections.abc import Callable
from fractions import Fraction
from statistics import mean, median, pvariance, variance
from typing import Any

from agrotools.build.accuracy.figures import Figure, mean_of
from agrotools.build.accuracy.study import Bench, Study

EXPRESSIONS = 300
_DEPTH = 4
_DIGITS = 1e-11
"""A value is right where it differs from the exact one by less than this share: precision=12 keeps 12 digits."""

Exact = tuple[str, Fraction]


def _arithmetic(rng: random.Random, depth: int = _DEPTH) -> Exact:
    """An expression in + - * / ** and brackets, and its exact value."""
    if depth == 0 or rng.random() < 0.15:
        number = Fraction(rng.randint(-9999, 9999), rng.choice((1, 1, 10, 100)))
        return f"({float(number)!r})" if number.denominator > 1 else f"({number})", number
    (left, a), (right, b) = _arithmetic(rng, depth - 1), _arithmetic(rng, depth - 1)
    sign = rng.choice("+-*/^")
    if sign == "^":
        power = rng.randint(2, 3)
        return f"({left} ** {power})", a**power
    if sign == "/":
        return (f"({left} / {right})", a / b) if b else (f"({left} - {right})", a - b)
    return f"({left} {sign} {right})", {"+": a + b, "-": a - b, "*": a * b}[sign]


def _numbers(rng: random.Random, least: int = 2) -> list[Fraction]:
    return [Fraction(rng.randint(1, 99_999), 100) for _ in range(rng.randint(least, 40))]


_OF_A_LIST: dict[str, Callable[[list[Fraction]], Fraction | float]] = {
    "sum(v)": lambda v: sum(v, Fraction(0)),
    "mean(v)": mean,
    "median(v)": median,
    "var(v)": variance,
    "var(v, ddof=0)": pvariance,
    "max(v) - min(v)": lambda v: max(v) - min(v),
    "cv(v) ** 2": lambda v: 10_000 * variance(v) / mean(v) ** 2,
    "percentile(v, 25)": lambda v: _percentile(v, Fraction(1, 4)),
    "percentile(v, 90)": lambda v: _percentile(v, Fraction(9, 10)),
    "rmse(v, scale(v, 1.25)) ** 2": lambda v: sum((x / 4) ** 2 for x in v) / len(v),
    "mape(v, scale(v, 1.25))": lambda _: Fraction(25),
    "linreg(v, scale(v, 3))[0]": lambda v: Fraction(3 if len(set(v)) > 1 else 0),
    "weighted_mean(v, v)": lambda v: sum(x * x for x in v) / sum(v),
    "percent_change(v[0], v[1])": lambda v: 100 * (v[1] - v[0]) / v[0],
    "ndvi(v[0], v[1])": lambda v: (v[0] - v[1]) / (v[0] + v[1]),
    "savi(v[0], v[1])": lambda v: Fraction(3, 2) * (v[0] - v[1]) / (v[0] + v[1] + Fraction(1, 2)),
    "severity(v[0], v[0] + v[1])": lambda v: 100 * v[0] / (v[0] + v[1]),
    "efficacy_abbott(v[0], v[1])": lambda v: 100 * (v[0] - v[1]) / v[0],
    "plants_per_ha(v[0], v[1])": lambda v: 10_000 / (v[0] * v[1]),
    "seeding_rate(v[0], v[1], 85)": lambda v: v[0] * v[1] / 85,
    "disease_index(v)": lambda v: 100 * sum(k * x for k, x in enumerate(v)) / ((len(v) - 1) * sum(v)),
    "convert(v[0], 'mu', 'ha')": lambda v: v[0] / 15,
    "convert(v[0], 't/ha', 'kg/ha')": lambda v: 1000 * v[0],
}


def _percentile(values: list[Fraction], share: Fraction) -> Fraction:
    ordered = sorted(values)
    rank = share * (len(ordered) - 1)
    below = rank.numerator // rank.denominator
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def _right(bench: Bench, expression: str, variables: dict[str, Any], exact: Fraction) -> float:
    """100 or 0. Where terms cancel, no rounding to 12 digits of them can give 12 digits of the rest."""
    value = bench.call(expression=expression, variables=variables, precision=12).value
    return 100.0 * (abs(Fraction(value) - exact) <= Fraction(_DIGITS) * max(abs(exact), Fraction(1)))


def _generated(bench: Bench) -> list[Figure]:
    rng = random.Random(11)
    arithmetic: list[float] = []
    while len(arithmetic) < EXPRESSIONS:
        text, exact = _arithmetic(rng)
        if abs(exact) < 10**15 and len(text) <= 500:
            arithmetic.append(_right(bench, text, {}, exact))
    functions: list[float] = []
    names = sorted(_OF_A_LIST)
    for number in range(EXPRESSIONS):
        name, values = names[number % len(names)], _numbers(rng)
        functions.append(
            _right(bench, name, {"v": [float(value) for value in values]}, Fraction(_OF_A_LIST[name](values)))
        )
    note = f"none wrong of {EXPRESSIONS} means under 1 % wrong of all such expressions, with 95 % confidence"
    return [
        mean_of("arithmetic, right to 11 digits, %", arithmetic, goal=100.0, note=note if min(arithmetic) else ""),
        mean_of("statistics and formulas, right to 11 digits, %", functions, goal=100.0,
                note=note if min(functions) else ""),
    ]  # fmt: skip


CALCULATE_STUDIES = (Study("calculate", "made-up expressions", _generated, needs_folder=False),)


KINDS = ("line", "bar", "grouped_bar", "scatter", "hist", "pie", "box", "heatmap")
PER_KIND = 6


def _series(kind: str, rng: random.Random) -> list[dict[str, Any]]:
    points = rng.randint(2, 12)
    count = 1 if kind in ("pie", "bar") else rng.randint(2, 4)
    x: list[Any] | None = [f"plot {number}" for number in range(points)]
    if kind in ("line", "scatter"):
        x = sorted(round(rng.uniform(0, 100), 2) for _ in range(points))
    if kind in ("hist", "box"):
        x = None
    made = [[round(rng.uniform(0.1, 900), 3) for _ in range(points)] for _ in range(count)]
    return [{"name": f"series {n}", **({} if x is None else {"x": x}), "y": y} for n, y in enumerate(made)]


def _round_trip(bench: Bench) -> list[Figure]:
    rng = random.Random(5)
    again: list[float] = []
    kept: list[float] = []
    for number in range(len(KINDS) * PER_KIND):
        kind = KINDS[number % len(KINDS)]
        given = _series(kind, rng)
        first = bench.call(kind=kind, series=given, title="yield", y_label="yield", y_unit="t/ha")
        drawn = [{"name": each.name, "x": list(each.x), "y": list(each.y)} for each in first.spec.series]
        # A box is drawn from raw values: its specification holds what is seen of them.
        second = first if kind == "box" else bench.call(
            kind=first.spec.kind, series=drawn, title="yield", y_label="yield", y_unit="t/ha"
        )  # fmt: skip
        pictures = [_bytes(bench, first, 2 if second is not first else 1), _bytes(bench, second, 1)]
        again.append(100.0 * (second.spec == first.spec and pictures[0] == pictures[1]))
        if kind not in ("hist", "box"):
            same = all(each["x"] == asked["x"] and each["y"] == asked["y"]
                       for each, asked in zip(drawn, given, strict=True))  # fmt: skip
            kept.append(100.0 * same)
    return [
        mean_of("figures whose specification draws the same figure, %", again, goal=100.0),
        mean_of("figures whose specification holds the values given, %", kept, goal=100.0),
    ]


def _bytes(bench: Bench, result: Any, calls_ago: int) -> bytes:
    return (bench.scratch / f"call-{len(bench.call_ms) - calls_ago}" / result.figure.name).read_bytes()


PLOT_STUDIES = (Study("plot", "made-up series", _round_trip, needs_folder=False),)
