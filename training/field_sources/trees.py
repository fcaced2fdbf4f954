"""Trees seen from the air."""

from csv import DictReader
from io import StringIO

from field_sources.snapshot import Prepared, Reader, drawn_by_lot

_PLACES = 60
"""Places that are asked about: more of them ask the same."""
_FEWEST_TREES, _MOST_TREES = 5, 60
"""In denser tiles crowns merge, so that people would not agree on their number."""
_GSD_M = 0.6


def _read_town_trees(prepared: Prepared) -> None:
    """Tiles of NAIP pictures of California with a point on every tree; a place has up to three years."""
    snapshot = prepared.snapshot
    years: dict[str, dict[str, str]] = {}
    for path in snapshot.paths("images/", ".tif"):
        town, year, number = path.removeprefix("images/").removesuffix(".tif").rsplit("_", 2)
        years.setdefault(f"{town}_{number}", {})[year] = path
    points: dict[str, list[tuple[float, float]]] = {}
    for by_year in years.values():
        for path in by_year.values():
            listed = path.replace("images/", "csv/").replace(".tif", ".csv")
            # A picture without a list has no tree.
            text = snapshot.text(listed) if snapshot.has(listed) else "x,y\n"
            points[path] = [
                (float(row["x"]), float(row["y"])) for row in DictReader(StringIO(text))
            ]
    suitable = [
        place
        for place, by_year in years.items()
        if all(_FEWEST_TREES <= len(points[path]) <= _MOST_TREES for path in by_year.values())
    ]
    for place in drawn_by_lot(suitable, _PLACES):
        for year, path in sorted(years[place].items()):
            prepared.add(
                f"{place}_{year}",
                place,
                {"image": path},
                year=int(year),
                gsd_m=_GSD_M,
                points=points[path],
            )


TOWN_TREES = Reader(
    "jonathanventura/urban-tree-detection-data",
    "78e81bdbb484048472e77cbedd3afb49a6b621c6",
    _read_town_trees,
)
