"""Count the independent subjects of the training pools, those that nets were calibrated on among them.

Makes studies/accuracy/calibration_subjects.json.

    python training/count_calibration_subjects.py --pool ../shared/train

From it the accuracy page says what is calibrated on how many subjects. A subject is a group of the pool's table: a
photograph, a leaf, a capture day or a set of look-alike pictures.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

from nets.overlap import LEFT_OUT, pool_rows
from nets.split import halves, random_parts

DATA = Path("src/agrotools/data")
STUDIES = Path("studies/accuracy")
Row = dict[str, str]


def by(column: str, rows: list[Row]) -> dict[str, int]:
    groups: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.get(column):
            groups[row[column]].add(row["group"])
    return {value: len(groups[value]) for value in sorted(groups)}


def rows_of(folder: Path) -> list[Row]:
    return [row for row in pool_rows(folder) if f"{folder.name}/{row['image']}" not in LEFT_OUT]


def counted(rows: list[Row]) -> dict[str, object]:
    return {
        "pictures": len(rows),
        "subjects": len({row["group"] for row in rows}),
        "subjects_by_label": by("label", rows),
        "subjects_by_crop": by("crop", rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Count the independent subjects of the training pools."
    )
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=STUDIES / "calibration_subjects.json")
    options = parser.parse_args()
    pools: dict[str, object] = {}
    for folder in sorted(path for path in options.pool.iterdir() if path.is_dir()):
        pools[folder.name] = counted(rows_of(folder))
    weeds, leaves = rows_of(options.pool / "weeds"), rows_of(options.pool / "leaf_disease")
    # The splits of train_weed_net.py and train_leaf_net.py.
    parts = random_parts(
        [row["label"] for row in weeds], {"learn": 0.8, "calibrate": 0.1, "report": 0.1}, seed=5
    )
    places = halves(
        [(row["group"], row["label"], row["split"] == "train") for row in leaves],
        share=0.125,
        seed=5,
    )
    nets = {
        "weeds": counted(
            [row for row, part in zip(weeds, parts, strict=True) if part == "calibrate"]
        ),
        "leaves": counted([row for place, row in enumerate(leaves) if place in places]),
    }
    options.out.write_text(json.dumps({"pools": pools, "calibrated_on": nets}, indent=1) + "\n")


if __name__ == "__main__":
    main()
