"""DeepWeeds (Olsen et al. 2019): weeds of Australian rangeland, one label a picture; the test part of fold 0."""

from pathlib import PurePath

from agrotools.build.sources.field.photos import weed_subjects
from agrotools.build.sources.part import DataSet, Part, adapter
from agrotools.build.sources.reading import find_root, read_table, refuse_missing, spread
from agrotools.core import BenchmarkError

_TABLE = "labels/test_subset0.csv"
CLASSES = (
    "chinee apple", "lantana", "parkinsonia", "parthenium", "prickly acacia", "rubber vine", "siam weed", "snake weed",
    "negative",
)  # fmt: skip
_SEED = 10


@adapter("deepweeds")
def read(data: DataSet) -> Part:
    """Pictures of eight weeds and of other plants, to be named."""
    root = find_root(data.folder, ("images", _TABLE))
    rows = read_table(root / _TABLE, ("Filename", "Label"))
    strange = sorted({row["Label"] for row in rows} - {str(number) for number in range(len(CLASSES))})
    if strange:
        raise BenchmarkError(f"{root / _TABLE} has labels that are not 0 to 8: {', '.join(strange[:5])}")
    pictures = [(root / "images" / PurePath(row["Filename"]).name, CLASSES[int(row["Label"])]) for row in rows]
    refuse_missing(root / "images", (path.name for path, _ in pictures))
    some = spread(pictures, lambda picture: picture[1], data.wanted, _SEED)
    return data.part(weed_subjects("deepweeds", some, data), ["weed"])
