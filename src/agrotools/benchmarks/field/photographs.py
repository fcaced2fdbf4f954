"""Download of the photographs of ``field``, and training of the heads for crop and weeds that it needs."""

from collections.abc import Callable
from pathlib import Path

import orjson

from agrotools.benchmarks.downloads import Downloader
from agrotools.benchmarks.field.pack import DataSetNote, PackHead, read_head
from agrotools.benchmarks.obtaining import Obtained, Request
from agrotools.core import AgrotoolsError
from agrotools.core.files import write_whole
from agrotools.formats.benchmark import SourceNote

NO_HEADS = "no heads, so tools do not tell crop from weeds"


def get_field(request: Request) -> Obtained:
    """Download the photographs below ``request.root``, train missing heads; InfrastructureError without a server."""
    head, folder = read_head(), request.root / "field"
    for note in head.data_sets:
        if note.unused:
            request.say(f"left out of the benchmark: {note.source.name}, {note.questions} questions: {note.unused}")
    downloader = Downloader(folder, request.mirror, request.patience)
    failures = downloader.fetch([file.item for file in head.files], request.progress, "photographs")
    masks = [file.item for file in head.head_files]
    mask_failures = downloader.fetch(masks, request.progress, "masks for the heads") if masks else []
    lacking = ""
    if request.heads and not (failures or mask_failures):
        lacking = train_missing_heads(folder, request.say)
    notes = (
        ["heads for crop and weeds: on this machine"] if request.heads and not lacking and not lacks_heads(head) else []
    )
    sources = [_with_places(note, head) for note in head.data_sets if not note.unused]
    files = [folder / file.path for file in (*head.files, *head.head_files)]
    return Obtained([path for path in files if path.is_file()], sources, [*failures, *mask_failures], notes, lacking)


def _with_places(note: DataSetNote, head: PackHead) -> SourceNote:
    """Return the source of a data set with the repositories and commits that its files come from."""
    ours = [file for file in head.files if file.local.startswith(f"{note.folder}/")]
    places = dict.fromkeys(f"https://github.com/{file.repo}/tree/{file.commit}" for file in ours)
    return note.source.model_copy(update={"url": " ".join(places) or note.source.url})


def lacks_heads(head: PackHead) -> bool:
    """Return True if there is no head on this machine that never saw a certain photograph of crop and weeds."""
    from agrotools.tools.crop_weed.heads import list_heads

    photographs = {file.sha256 for file in head.files if file.local.startswith("cwfid/")}
    learnt = [{image.sha256 for image in each.training} for each in list_heads()[0]]
    ours = [some for some in learnt if some & photographs]
    return any(all(photograph in some for some in ours) for photograph in photographs)


def train_missing_heads(folder: Path, say: Callable[[str], None]) -> str:
    """Train the heads from the photographs in ``folder`` unless they are there.

    Returns the reason why heads are missing, and how to get them; empty if none is missing.
    """
    head = read_head()
    if not (head.head_files and lacks_heads(head)):
        return ""
    write_training_list(folder, head)
    from agrotools.tools.crop_weed.training import train_crop_weed_heads

    try:
        train_crop_weed_heads(folder, say)
    except AgrotoolsError as error:
        return f"{NO_HEADS}: {error.message}{f' ({error.hint})' if error.hint else ''}"
    return ""


def write_training_list(folder: Path, head: PackHead) -> None:
    """Write the list of photographs and masks that the training reads, ``cwfid/truth.json``."""
    stored = {file.local: file.path for file in (*head.files, *head.head_files)}
    names = sorted(Path(local).stem for local in stored if local.startswith("cwfid/images/"))
    places = {"image": "images/{}.jpg", "mask": "masks/{}.png", "vegetation": "vegetation/{}.png"}
    items = [
        {"id": name, **{key: f"../{stored['cwfid/' + place.format(name)]}" for key, place in places.items()}}
        for name in names
    ]
    write_whole(folder / "cwfid" / "truth.json", orjson.dumps(items, option=orjson.OPT_INDENT_2), synced=False)
