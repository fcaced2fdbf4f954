"""DeepWeeds (Olsen et al. 2019): weeds of Australian rangeland, one label a picture; the test part of fold 0."""

from pathlib import Path

from agrotools.build.sources.field.weed_photos import CITATION, weed_photo_part
from agrotools.build.sources.part import Originals, Part, first_few
from agrotools.build.sources.public.reading import find_root, read_table, spread
from agrotools.core import BenchmarkError
from agrotools.formats.benchmark import SourceNote

GET_IT = (
    "get images.zip from github.com/AlexOlsen/DeepWeeds (468 MB) and its folder labels, so that images/ and"
    " labels/test_subset0.csv lie side by side"
)
SOURCE = SourceNote(
    name="DeepWeeds",
    licence="CC BY 4.0 (images and annotations, as its README says)",
    url="https://github.com/AlexOlsen/DeepWeeds",
    citation=CITATION,
    note="Questions and reference calls are by agrotools; images and names are the authors'. Test part of fold 0.",
)
CLASSES = (
    "chinee apple", "lantana", "parkinsonia", "parthenium", "prickly acacia", "rubber vine", "siam weed", "snake weed",
    "negative",
)  # fmt: skip
_SEED = 10
_PICTURES_A_SAMPLE = 2


def read(folder: Path, scratch: Path, samples: int) -> Part:  # noqa: ARG001 - nothing is made from these pictures
    """Raises BenchmarkError: the data set is incomplete, or not as its authors describe it."""
    root = find_root(folder, ("images", "labels/test_subset0.csv"), get_it=GET_IT)
    table = root / "labels" / "test_subset0.csv"
    rows = read_table(table, ("Filename", "Label"), get_it=GET_IT)
    strange = sorted({row["Label"] for row in rows} - {str(number) for number in range(len(CLASSES))})
    if strange:
        raise BenchmarkError(f"{table} has labels that are not 0 to 8: {', '.join(strange[:5])}", hint=GET_IT)
    missing = [row["Filename"] for row in rows if not (root / "images" / Path(row["Filename"]).name).is_file()]
    if missing:
        raise BenchmarkError(f"{root / 'images'} lacks {first_few(missing)}", hint=GET_IT)
    some = spread(rows, lambda row: row["Label"], _PICTURES_A_SAMPLE * samples, _SEED)
    pictures = [(root / "images" / Path(row["Filename"]).name, CLASSES[int(row["Label"])]) for row in some]
    return weed_photo_part("deepweeds", SOURCE, pictures, Originals(), samples)
