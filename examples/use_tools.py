"""Tools called from Python: a result with its notes and flags, and an error that says what to change."""

import tempfile
from pathlib import Path

import numpy as np

from agrotools import ToolError
from agrotools_tools import calculate, measure_crop_weed_area


def row_field() -> np.ndarray:
    """Green rows on brown soil, uint8 (300, 400, 3)."""
    noise = np.random.default_rng(0).normal(0, 6, (300, 400, 3))
    picture = np.full((300, 400, 3), (120, 85, 60), float)
    for left in range(30, 400, 80):
        picture[:, left : left + 24] = (60, 140, 50)
    return np.clip(picture + noise, 0, 255).astype(np.uint8)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        result = measure_crop_weed_area(row_field(), gsd_m=0.01, out=folder)
        print(f"vegetation: {result.veg_pct:.1f} % of the picture")
        print("flags:", *result.flags)
        print("files:", *(path.name for path in result.paths.values()))
        print("mean:", calculate(expression="mean([12.5, 14, 9.5])").value)
        try:
            measure_crop_weed_area(image=Path(folder) / "missing.png")
        except ToolError as error:
            print(f"{error.kind}: {error}")


if __name__ == "__main__":
    main()
