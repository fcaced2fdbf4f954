"""Whether plot gives back what it was given, and draws what it says: its specification drawn again is the same."""

import random
from typing import Any

from agrotools.build.accuracy.figures import Figure, mean_of
from agrotools.build.accuracy.study import Bench, Study

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


STUDIES = (Study("plot", "made-up series", _round_trip, needs_folder=False),)
