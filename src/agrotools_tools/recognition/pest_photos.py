"""Pictures of pests and the pack that is trained on them, by which ``diagnose_pest_disease`` names pests.

``data/pests.csv.xz`` lists the pictures: place, label, photograph (most are turned, sheared or cropped copies of a few)
and path in the repository that ``data/pests.toml`` names. ``training/list_pests.py`` writes it.
"""

import csv
import io
import lzma
import zipfile
from pathlib import Path
from urllib.parse import quote

from PIL import Image

from agrotools.core.errors import NoFileError
from agrotools.core.files import read_table, write_whole
from agrotools.formats.benchmark import SourceNote
from agrotools.loading.benchmarks import data_folder
from agrotools.loading.downloads import Downloader, Item, repository_urls
from agrotools.loading.obtaining import Obtained, Request
from agrotools_tools.recognition.candidates import PESTS
from agrotools_tools.recognition.labelled_pictures import read_labelled
from agrotools_tools.recognition.pack_subjects import ANY
from agrotools_tools.recognition.pack_training import Progress, train_pack
from agrotools_tools.recognition.packs import PackInfo, pack_path

SIDE, LIST = 160, "list.csv"
KEEP = 0.6
"""Share of new photographs that are familiar enough for a name.

The largest of those tried with which about nine of ten names are right. On 900 of the pictures (413 photographs, each
left out when it is judged), 0.46 get a name, and 0.89 of these are right; with 0.7 it is 0.53 and 0.87, with the usual
0.95 it is 0.68 and 0.85. Of 163 photographs of other things none gets a name, with 0.95 six
(``training/measure_heads.py pests``).
"""
_DATA = Path(__file__).parents[1] / "data"
FACTS = read_table(_DATA / "pests.toml")


def get_pests(request: Request) -> Obtained:
    """Download the pictures below ``request.root``, shrunk, and list them; InfrastructureError without a server.

    The mirror may also be a folder with ``images.zip`` and ``labels.csv`` (columns image, and source ``REPO:PATH``).
    """
    folder = request.root / PESTS
    listed = lzma.decompress((_DATA / "pests.csv.xz").read_bytes())
    places = {row["source"]: row["image"] for row in csv.DictReader(listed.decode().splitlines())}
    if (packed := Path(request.mirror or "-").expanduser() / "images.zip").is_file():
        with (
            zipfile.ZipFile(packed) as archive,
            packed.with_name("labels.csv").open(encoding="utf-8") as rows,
        ):
            for row in csv.DictReader(rows):
                if place := places.get(row["source"].partition(":")[2]):
                    (folder / place).parent.mkdir(parents=True, exist_ok=True)
                    write_whole(folder / place, archive.read(row["image"]), synced=False)
    urls = {
        source: repository_urls(quote(f"{FACTS['repo']}/{FACTS['commit']}/{source}"))
        for source in places
    }
    items = [
        Item(place, urls[source], (source,), convert=_small_jpeg)
        for source, place in places.items()
    ]
    failures = Downloader(folder, request.mirror, request.patience).fetch(
        items, request.progress, "pictures of pests"
    )
    write_whole(folder / LIST, listed, synced=False)
    paths = [path for place in (LIST, *places.values()) if (path := folder / place).is_file()]
    return Obtained(paths, [SourceNote(**FACTS["source"])], failures)


def _small_jpeg(content: bytes) -> bytes | None:
    """Return a picture as a JPEG of at most 160 pixels, unchanged if it is one; None if it is no picture."""
    buffer = io.BytesIO()
    try:
        with Image.open(io.BytesIO(content)) as picture:
            is_small = picture.format == "JPEG" and max(picture.size) <= SIDE
            picture.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
            picture.convert("RGB").save(buffer, "JPEG", quality=80)
    except (OSError, ValueError, SyntaxError):
        return None
    return content if is_small else buffer.getvalue()


def train_pests(data: Path | None, progress: Progress) -> PackInfo:
    """Train the pack on the pictures of :func:`get_pests`, or of ``data``; errors are those of :func:`train_pack`."""
    folder = data or data_folder() / PESTS
    if not folder.is_dir():
        hint = "agrotools benchmarks get pests; or name yours: --data DIR"
        raise NoFileError(f"there is no folder {folder}", hint=hint)
    listed, note = (
        (folder / LIST, FACTS["source"]["licence"]) if (folder / LIST).is_file() else (None, "")
    )
    return train_pack(
        read_labelled(folder, listed),
        pack_path(PESTS),
        licence_note=note,
        shows=(ANY,),
        keep=KEEP,
        progress=progress,
    )
