"""List the pictures of pests that ``agrotools benchmarks get pests`` fetches, and group them by photograph.

Makes src/agrotools_tools/data/pests.csv.xz.

    python training/list_pests.py --pool ../shared/train/pests

Columns: image, label, group, source. Folders and labels are those of pests.toml. Most pictures are augmented copies:
turned, mirrored, sheared, cropped. Two pictures of a label show one photograph if at least eight SIFT points of one, or
of its mirror image, lie in the other where an affine map puts them (Lowe 2004; Fischler and Bolles 1981); groups of the
pool are kept together. Copies that show no such points stay apart, and photographs that share a printed mark may be
joined. About 20 minutes on one core.
"""

import argparse
import csv
import io
import lzma
import tomllib
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

DATA = Path(__file__).parent.parent / "src/agrotools_tools/data"
POINTS, LEAST, RATIO, NEAR_PX, LONGEST = 70, 8, 0.7, 4.0, 320
Points = tuple[NDArray[np.float32], NDArray[np.float32]]
SIFT = cv2.SIFT_create(nfeatures=POINTS, contrastThreshold=0.01)  # pyright: ignore


def points_of(grey: NDArray[np.uint8]) -> Points:
    """Places (n, 2) and descriptions (n, 128) of the strongest points."""
    places, rows = np.zeros((POINTS, 2), np.float32), np.zeros((POINTS, 128), np.float32)
    found, described = SIFT.detectAndCompute(grey, None)
    if described is not None:
        order = np.argsort([-one.response for one in found])[:POINTS]
        places[: len(order)] = [found[place].pt for place in order]
        rows[: len(order)] = np.sqrt(
            described[order] / np.maximum(described[order].sum(1, keepdims=True), 1e-6)
        )
    return places, rows


def fits(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> bool:
    """Whether an affine map of plausible size puts enough distinct points of one picture on those of the other."""
    matrix, inside = cv2.estimateAffine2D(ours, theirs, ransacReprojThreshold=NEAR_PX)
    if matrix is None or inside.sum() < LEAST or inside.mean() <= 0.5:
        return False
    distinct = np.unique(np.round(ours[inside[:, 0] > 0] / 6), axis=0)
    return len(distinct) >= LEAST and 0.15 < abs(np.linalg.det(matrix[:, :2])) < 7


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--pool", type=Path, required=True, help="folder with images.zip and labels.csv"
    )
    pool: Path = parser.parse_args().pool
    cv2.setNumThreads(1)
    labels = tomllib.loads((DATA / "pests.toml").read_text(encoding="utf-8"))["classes"]
    with (pool / "labels.csv").open(encoding="utf-8") as file:
        rows = [row | {"path": row["source"].partition(":")[2]} for row in csv.DictReader(file)]
    rows = sorted(
        (row for row in rows if row["path"].split("/")[-2] in labels), key=lambda row: row["path"]
    )
    members: dict[str, list[int]] = defaultdict(list)
    first: dict[str, int] = {}
    above = list(range(len(rows)))

    def top(place: int) -> int:
        while above[place] != place:
            above[place] = place = above[above[place]]
        return place

    archive = zipfile.ZipFile(pool / "images.zip")
    for place, row in enumerate(rows):
        row["label"] = labels[row["path"].split("/")[-2]]
        members[row["label"]].append(place)
        above[top(place)] = top(first.setdefault(row["group"], place))
    for label, places in members.items():
        plain, mirrored = [], []
        for place in places:
            grey = cv2.imdecode(
                np.frombuffer(archive.read(rows[place]["image"]), np.uint8), cv2.IMREAD_GRAYSCALE
            )
            if max(grey.shape) < LONGEST:
                grey = cv2.resize(grey, None, fx=1.5, fy=1.5, interpolation=cv2.INTER_CUBIC)
            plain.append(points_of(grey))
            mirrored.append(points_of(np.ascontiguousarray(grey[:, ::-1])))
        stacked = np.concatenate([each[1] for each in plain])
        for some in (plain, mirrored):
            for one in range(len(places) - 1):
                of, described = (part[some[one][1].any(axis=1)] for part in some[one])
                likeness = (described @ stacked[(one + 1) * POINTS :].T).reshape(
                    len(described), -1, POINTS
                )
                nearest = likeness.argmax(axis=2)
                best = np.take_along_axis(likeness, nearest[..., None], 2)[..., 0]
                np.put_along_axis(likeness, nearest[..., None], -1, 2)
                is_clear = (1 - best) < RATIO * (1 - likeness.max(axis=2))
                for other in np.flatnonzero(is_clear.sum(axis=0) >= LEAST):
                    chosen, there = is_clear[:, other], one + 1 + int(other)
                    if top(places[one]) != top(places[there]) and fits(
                        of[chosen], plain[there][0][nearest[chosen, other]]
                    ):
                        above[top(places[one])] = top(places[there])
        print(
            f"{label}: {len(places)} pictures of {len({top(place) for place in places})} photographs",
            flush=True,
        )
    write(rows, [top(place) for place in range(len(rows))])


def write(rows: list[dict[str, str]], tops: list[int]) -> None:
    """Write the list; pictures and photographs get numbers in its order."""
    numbers: dict[int, int] = {}
    counts: Counter[str] = Counter()
    table = io.StringIO()
    out = csv.writer(table, lineterminator="\n")
    out.writerow(("image", "label", "group", "source"))
    for row, above in zip(rows, tops, strict=True):
        number = numbers.setdefault(above, len(numbers))
        counts[row["label"]] += 1
        out.writerow(
            (f"{row['label']}/{counts[row['label']]:03}.jpg", row["label"], number, row["path"])
        )
    (DATA / "pests.csv.xz").write_bytes(
        lzma.compress(table.getvalue().encode(), preset=9 | lzma.PRESET_EXTREME)
    )


if __name__ == "__main__":
    main()
