"""Agronomic formulas: golden values worked out by hand, and the properties their sources state."""

import math

import pytest

from agrotools.text.expressions import ExpressionError, evaluate


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("ndvi(nir=0.5, red=0.1)", 2 / 3), ("gndvi(0.5, 0.3)", 0.25), ("ndre(0.4, 0.3)", 1 / 7),
        ("ndwi(green=0.3, nir=0.1)", 0.5), ("savi(0.5, 0.1)", 1.5 * 0.4 / 1.1),
        ("evi(0.5, 0.1, 0.05)", 2.5 * 0.4 / (0.5 + 0.6 - 0.375 + 1)), ("exg(50, 100, 50)", 0.5),
        ("lai_beer(0.5, k=0.5)", 2 * math.log(2)), ("severity(12, 80)", 15.0),
        ("disease_index([10, 0, 0, 10])", 50.0), ("audpc([0, 7, 14], [0, 10, 30])", 35 + 140),
        ("efficacy_abbott(control=40, treated=10)", 75.0), ("plants_per_ha(0.75, 0.2)", 10_000 / 0.15),
        ("seeding_rate(300, 45, 90)", 150.0), ("gdd(28, 12, 10)", 10.0), ("rgr(1, e, 10)", 0.1),
        ("convert(32000, 'm^2', 'ha')", 3.2), ("convert(3, '亩', 'square metres')", 2000),
        ("convert(1.5, 't/ha', 'kg per hectare')", 1500), ("convert(0.35, 'fraction', '%')", 35),
        ("jm(1, 1, 3, 1)", 2 * (1 - math.exp(-0.5))),
        ("jm([1], [[2]], [1], [[8]])", 2 * (1 - math.exp(-0.5 * math.log(5 / 4)))),
        ("jm([0, 0], [[1, 0], [0, 1]], [2, 2], [[1, 0], [0, 1]])", 2 * (1 - math.exp(-1))),
        ("jm(1e300, 1, -1e300, 1e-300)", 2.0), ("oif([10, 20, 30], [0.5, -0.25, 0.25])", 60.0),
        ("oif([10, 20, 30], [[1, 0.5, -0.25], [0.5, 1, 0.25], [-0.25, 0.25, 1]])", 60.0),
    ],
)  # fmt: skip
def test_golden_values(expression, value):
    assert evaluate(expression) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "expression",
    [
        "ndvi(0, 0)", "lai_beer(0)", "lai_beer(0.5, k=0)", "severity(-1, 5)", "disease_index([0, 0])",
        "audpc([7, 0], [1, 2])", "seeding_rate(300, 45, 110)", "gdd(5, 9, 0)", "rgr(0, 1, 7)",
        "convert(1, 'm', 'm^2')", "convert(1, 'furlong', 'm')", "convert('a', 'm', 'cm')",
        "jm([1, 2], [[1]], [1, 2], [[1, 0], [0, 1]])",
        "jm([1, 2], [[1, 0.5], [0, 1]], [1, 2], [[1, 0], [0, 1]])", "jm(1, 0, 2, 1)",
        "oif([1, 2], [0.1, 0.2, 0.3])", "oif([1, 2, 3], [0, 0, 0])", "oif([1, 2, 3], [[1, 0], [0, 1]])",
    ],
)  # fmt: skip
def test_what_does_not_exist_is_refused(expression):
    with pytest.raises(ExpressionError) as caught:
        evaluate(expression)
    assert caught.value.hint
