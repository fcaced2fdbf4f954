"""Fit the weights of the two tests on ponds, the ring test and the basin test, on drawn scenes.

Makes src/agrotools_tools/data/pond_evidence.json.

    python training/fit_pond_evidence.py [--seeds 1000 1360] [--processes 2] [--rows FILE.npz]

Nothing but drawn pairs (agrotools_build.scenes.ponds) goes in, so what is learnt is ours; figures are reported on other
seeds. Needs scikit-learn.

The ring test is learnt from the candidates that the component tree proposes: right where they share 0.6 of their union
with the water of one pond, wrong under 0.25; all candidates in drawn towns without ponds are wrong. It also keeps the
range of each feature over the right ones, a little widened: what lies outside is no pond. The basin test is learnt from
the dry date of pairs whose pond dried or filled (a basin is there) or was built or filled in (none), at the outline of
the water, moved and shrunk a little.
"""

import argparse
import json
import os
import sys
from multiprocessing import Pool
from pathlib import Path

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENCV_FOR_THREADS_NUM"):
    os.environ.setdefault(_threads, "1")

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from towns import make_town  # noqa: E402

from agrotools_build.scenes.ponds import EVENTS, make_pond_pair  # noqa: E402

TARGET = Path(__file__).parent.parent / "src/agrotools_tools/data/pond_evidence.json"
RIGHT, WRONG = 0.6, 0.25
CLIP = 4.0
"""Standardised features are held within this, so that odd pictures do not run away."""

GREENNESS, SPREAD, AREA = 12, 14, 15
"""Places among the features of the ring test. Greenness can be too little and too much, spread of brightness only too
much; area is not bounded; of all others there can only be too little: darker, bluer or flatter still is water."""
UNBOUNDED = 1e9
WIDENED = 0.25
"""Standard deviations by which the range of the right examples is widened."""

Rows = list[tuple[float, ...]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, nargs=2, default=(1000, 1360))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--rows", type=Path, help=".npz to keep the rows in, or to take them from if it exists"
    )
    options = parser.parse_args()
    if options.rows and options.rows.exists():
        kept = np.load(options.rows)
        ring_rows, basin_rows = kept["rings"].tolist(), kept["basins"].tolist()
    else:
        with Pool(options.processes) as pool:
            parts = pool.map(rows_of, range(*options.seeds), chunksize=4)
        ring_rows, basin_rows = ([row for part in parts for row in part[which]] for which in (0, 1))
        if options.rows:
            np.savez(options.rows, rings=np.array(ring_rows), basins=np.array(basin_rows))
    rings = fitted(ring_rows, "ring test", with_products=True, keep_range=True, regularisation=0.05)
    basins = fitted(basin_rows, "basin test")
    TARGET.write_text(as_json(rings, basins, tuple(options.seeds)))


def rows_of(seed: int) -> tuple[Rows, Rows]:
    """Rows of one pair: seed, whether right, features."""
    import cv2

    from agrotools_tools.change.ponds import (
        basin_features,
        candidates,
        channels_of,
        least_area_px,
        ring_features,
    )

    scene = make_pond_pair(seed, seed % 4, EVENTS[(seed // 4) % len(EVENTS)])  # pyright: ignore[reportArgumentType]
    rings: Rows = []
    looks = {}
    ponds: dict[str, list[NDArray[np.bool_]]] = {}
    for name in ("before", "after"):
        rgb = np.asarray(scene.images[name], np.uint8)
        looks[name] = channels_of(rgb, np.ones(rgb.shape[:2], np.bool_))
        count, labels = cv2.connectedComponents(scene.masks[f"water_{name}"])
        ponds[name] = [np.asarray(labels == label) for label in range(1, count)]
        least = least_area_px(float(str(scene.sidecar["gsd_m"])), None)
        for mask in candidates(looks[name], least):
            share = max(
                (float((mask & pond).sum() / (mask | pond).sum()) for pond in ponds[name]),
                default=0.0,
            )
            features = ring_features(looks[name], mask)
            if features is not None and not WRONG <= share <= RIGHT:
                rings.append((seed, float(share > RIGHT), *features))
    if seed % 3 == 0:
        town = make_town(seed, seed % 4)  # pyright: ignore[reportArgumentType]
        look = channels_of(town, np.ones(town.shape[:2], np.bool_))
        tested = (ring_features(look, mask) for mask in candidates(look, 240))
        rings += [(seed, 0.0, *features) for features in tested if features is not None]
    event = scene.truth["event"]
    basins: Rows = []
    wet, dry = ("before", "after") if event in ("demolished", "dried") else ("after", "before")
    elsewhere = cv2.dilate(scene.masks[f"water_{dry}"], np.ones((9, 9), np.uint8)) > 0
    for pond in ponds[wet] if event != "none" else []:
        if pond.sum() < 60 or (pond & elsewhere).any():
            continue
        shrunk = cv2.erode(pond.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
        for mask in (pond, shrunk, np.roll(pond, (1, 2), (0, 1))):
            features = basin_features(looks[dry], mask)
            if features is not None:
                basins.append((seed, float(event in ("dried", "wetted")), *features))
    return rings, basins


def fitted(
    rows: Rows,
    what: str,
    *,
    with_products: bool = False,
    keep_range: bool = False,
    regularisation: float = 0.5,
) -> dict[str, tuple[float, ...]]:
    """Logistic regression on standardised features, their squares and products; cross-validated by scene, printed."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import average_precision_score
    from sklearn.model_selection import GroupKFold, cross_val_predict

    table = np.asarray(rows, np.float64)
    seeds, right, features = table[:, 0], table[:, 1] > 0.5, table[:, 2:]
    mean, scale = features.mean(axis=0), features.std(axis=0) + 1e-9
    standard = np.clip((features - mean) / scale, -CLIP, CLIP)
    first, second = np.triu_indices(features.shape[1], 1)
    products = standard[:, first] * standard[:, second] if with_products else standard[:, :0]
    terms = np.hstack([standard, standard**2, products])
    model = LogisticRegression(C=regularisation, max_iter=5000)
    guess = cross_val_predict(
        model, terms, right, groups=seeds, cv=GroupKFold(5), method="predict_proba"
    )[:, 1]
    score = average_precision_score(right, guess)
    accuracy = float(np.mean((guess > 0.5) == right))
    sys.stdout.write(
        f"{what}: {len(table)} rows, {right.sum()} right; held out by scene: average precision {score:.3f},"
        f" accuracy {accuracy:.3f}\n"
    )
    model.fit(terms, right)
    weights = np.ravel(model.coef_)
    size = features.shape[1]
    found = {
        "mean": mean,
        "scale": scale,
        "linear": weights[:size],
        "square": weights[size : 2 * size],
    }
    if with_products:
        found["products"] = weights[2 * size :]
    if keep_range:
        good = np.asarray(features[right], np.float64)
        margin = WIDENED * good.std(axis=0)
        low, high = good.min(axis=0) - margin, good.max(axis=0) + margin
        low[[SPREAD, AREA]] = -UNBOUNDED
        high[[place for place in range(len(high)) if place not in (GREENNESS, SPREAD)]] = UNBOUNDED
        found |= {"low": low, "high": high}
    return {key: rounded(values) for key, values in found.items()} | {
        "bias": rounded(np.ravel(model.intercept_))
    }


def rounded(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{value:.4g}") for value in values)


def as_json(
    rings: dict[str, tuple[float, ...]],
    basins: dict[str, tuple[float, ...]],
    seeds: tuple[int, int],
) -> str:
    """The weights as JSON, one row of numbers to a line."""
    method = "logistic regression on features, their squares and products; written by training/fit_pond_evidence.py"
    lines = [f'{{\n "method": "{method}"']
    lines.append(f' "seeds": [{seeds[0]}, {seeds[1] - 1}]')
    for name, found in (("ring_test", rings), ("basin_test", basins)):
        rows = [f'  "bias": {found["bias"][0]!r}']
        keys = ("mean", "scale", "linear", "square", "products", "low", "high")
        rows += [f'  "{key}": {json.dumps(found[key])}' for key in keys if key in found]
        lines.append(f' "{name}": {{\n' + ",\n".join(rows) + "\n }")
    return ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    main()
